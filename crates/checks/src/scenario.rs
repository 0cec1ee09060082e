//! The model of a test case: scenarios, the prompts, hints and grounds generated for them, and the
//! validation of project file names in them.

use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::check::TaskStatus;
use crate::check::{Check, CheckKind};
use crate::request;
use crate::sentence::{self, BY_RULE_SUFFIX, SentenceContext};
use selftest_stats::score::{Score, Strictness};

/// One step of a reply flow: a message, and the expected status of the task afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplyStep {
    /// Message from the harness to the system under test.
    #[schemars(length(min = 1))]
    pub reply: String,
    /// Expected status of the task after the reply.
    pub expected_status: TaskStatus,
}

/// One scenario of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Unique name, also of the prompt template: letters, digits, `_` and `-`. When testing several
    /// skills, cases are prefixed with the skill's name: `skill/case`.
    #[schemars(regex(
        pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})?$"
    ))]
    pub id: String,
    /// Purpose in one line; the generic template is built from it.
    #[schemars(length(min = 1))]
    pub description: String,
    /// Expected status of the task after the first answer.
    pub expected_status: TaskStatus,
    /// Play the reply flow if the system under test asks back.
    #[serde(default)]
    pub requires_reply: bool,
    /// Messages to the system under test, step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply_flow: Vec<ReplyStep>,
    /// Further user messages, sent one after the other in the same session, whatever the answers
    /// are unless they are errors. Status, checks and judge then use the last answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1)))]
    pub follow_ups: Vec<String>,
    /// Overrides the run's strictness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strictness: Option<Strictness>,
    /// Overrides the run's minimum passing score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score_to_pass: Option<Score>,
    /// Overrides whether minor format deviations are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_minor_format_deviation: Option<bool>,
    /// Overrides the maximum number of questions in an answer that asks back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1000))]
    pub max_questions_allowed: Option<u32>,
    /// Overrides the timeout of the system under test for this case, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.1, max = 86400.0))]
    pub timeout_seconds: Option<f64>,
    /// Yes/no criteria for a good answer, each about one thing, in addition to those of the case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 1000)))]
    pub expectations: Vec<String>,
    /// Checks that need no model, in addition to those of the case. If one fails, the case fails,
    /// whatever the judge decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub checks: Vec<Check>,
    /// A good answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20_000))]
    pub reference: Option<String>,
    /// Project files that the case is about, relative to the project root. The judge sees the start
    /// of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 1000)))]
    pub files: Vec<String>,
}

impl Scenario {
    /// Creates a scenario with only an ID and an expected status.
    pub fn new(id: String, expected_status: TaskStatus) -> Self {
        Self {
            id,
            description: String::new(),
            expected_status,
            requires_reply: false,
            reply_flow: Vec::new(),
            follow_ups: Vec::new(),
            strictness: None,
            min_score_to_pass: None,
            allow_minor_format_deviation: None,
            max_questions_allowed: None,
            timeout_seconds: None,
            expectations: Vec::new(),
            checks: Vec::new(),
            reference: None,
            files: Vec::new(),
        }
    }

    /// Returns the grounds shared by all cases of the scenario, except its files.
    pub fn grounds(&self) -> CaseGrounds {
        CaseGrounds {
            expectations: self.expectations.clone(),
            checks: self.checks.clone(),
            reference: self.reference.clone(),
            ..CaseGrounds::default()
        }
    }
}

/// One case: the prompt, and everything by which the answer is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratedCase {
    /// The request to the system under test: the only part of a case that it ever sees.
    pub prompt: String,
    /// Hints for the judge.
    pub hints: String,
    /// Grounds on which the answer is judged.
    #[serde(default, skip_serializing_if = "CaseGrounds::is_empty")]
    pub grounds: CaseGrounds,
}

impl GeneratedCase {
    /// Returns true if a judge is needed: a case with nothing but checks needs none.
    pub fn needs_judge(&self) -> bool {
        let CaseGrounds { expectations, checks, .. } = &self.grounds;
        checks.is_empty() || !expectations.is_empty() || !self.hints.trim().is_empty()
    }

    /// Returns the checks of the case, and those that its last message states, if that asks for a
    /// complete answer. The latter do not make a judge needless.
    pub fn checks_after(&self, message: &str, expected: TaskStatus) -> Vec<Check> {
        let mut checks = self.grounds.checks.clone();
        if expected == TaskStatus::Complete && self.should_load().is_none() {
            let stated = request::stated_checks(message).into_iter();
            // What the author of the case checks is more certain than the wording of a message.
            let is_new = |check: &Check| {
                !self.grounds.checks.iter().any(|own| own.kind.name() == check.kind.name())
            };
            checks.extend(stated.filter(is_new));
        }
        checks
    }

    /// Returns true if the checks decide alone, and a judge's scores only stand beside them.
    pub fn is_decided_by_checks(&self) -> bool {
        !self.grounds.checks.is_empty()
            && (self.grounds.judge == JudgeRole::Advises || !self.needs_judge())
    }

    /// Returns whether the skill should be loaded, for a case that checks nothing else.
    pub fn should_load(&self) -> Option<bool> {
        match &self.grounds.checks[..] {
            [check] if !self.needs_judge() => should_load(check),
            _ => None,
        }
    }
}

/// Returns the expected loading of skills, if the check requires nothing else.
pub fn should_load(check: &Check) -> Option<bool> {
    match &check.kind {
        CheckKind::SkillLoaded(_) => Some(true),
        CheckKind::Not(inner) => should_load(inner).map(|wanted| !wanted),
        CheckKind::Any(inner) => {
            let mut wanted = inner.iter().map(should_load);
            // All alternatives must agree on whether the skill should be loaded.
            let first = wanted.next()??;
            wanted.all(|other| other == Some(first)).then_some(first)
        }
        _ => None,
    }
}

/// What the verdict of a judge counts for in a case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JudgeRole {
    /// It decides what checks leave open.
    #[default]
    Decides,
    /// The checks demand everything that was asked for and decide; its scores stand beside them.
    Advises,
}

impl JudgeRole {
    /// Returns true for the role that is not written down.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Grounds on which an answer is judged. The system under test sees none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseGrounds {
    /// Yes/no criteria for a good answer, each about one thing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<String>,
    /// Checks that need no model. If one fails, the case fails, whatever the judge decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Verbatim quotes from the excerpts that a good answer agrees with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Excerpts of the project for the judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excerpts: Vec<FileExcerpt>,
    /// A good answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// What the verdict of a judge counts for.
    #[serde(default, skip_serializing_if = "JudgeRole::is_default")]
    pub judge: JudgeRole,
}

impl CaseGrounds {
    /// Returns true if there are no grounds.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Turns expectations that state a check plainly into checks. With a reference they stay
    /// expectations as well, because the judge then compares the whole answer.
    ///
    /// Checks of files stay expectations: not every system under test has a work folder. `prompt` is what
    /// is asked; empty if that is not one message.
    pub fn state_checks(&mut self, prompt: &str) {
        let mut stated = Vec::new();
        let keeps = self.reference.is_some();
        let texts = self.expectations.iter().map(String::as_str);
        let context = SentenceContext::of(prompt, texts, None);
        self.expectations.retain(|sentence| {
            let check = sentence::check_in(sentence, &context);
            // Nor does every one report its calls, which the judge can do without.
            let is_deed = |kind: &CheckKind| {
                matches!(kind, CheckKind::CommandRun(_) | CheckKind::FileRead(_))
            };
            let is_elsewhere = |kind: &CheckKind| kind.needs_workspace() || is_deed(kind);
            let is_answer = |check: &Check| !check.walk().iter().any(|c| is_elsewhere(&c.kind));
            let Some(check) = check.filter(is_answer) else { return true };
            let name = format!("{sentence}{BY_RULE_SUFFIX}");
            stated.push(Check { name: Some(name), ..check });
            keeps
        });
        for check in stated {
            if !self.checks.iter().any(|own| own.kind == check.kind) {
                self.checks.push(check);
            }
        }
    }

    /// Merges in grounds written by people; these come first.
    pub fn add(&mut self, own: Self) {
        let Self { expectations, checks, facts, excerpts, reference, judge } = own;
        let has_sentences = !expectations.is_empty();
        prepend_missing(&mut self.expectations, expectations);
        prepend_missing(&mut self.checks, checks);
        prepend_missing(&mut self.facts, facts);
        prepend_missing(&mut self.excerpts, excerpts);
        self.reference = reference.or_else(|| self.reference.take());
        // What people expect beyond the checks is for the judge to decide.
        if has_sentences && judge == JudgeRole::Decides {
            self.judge = judge;
        }
    }
}

fn prepend_missing<T: PartialEq>(all: &mut Vec<T>, mut first: Vec<T>) {
    let rest = std::mem::take(all);
    for one in rest {
        if !first.contains(&one) {
            first.push(one);
        }
    }
    *all = first;
}

/// A part of a project file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileExcerpt {
    /// Path relative to the project root, with `/`.
    pub path: String,
    /// The lines.
    pub text: String,
}

/// A reason why a named file cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamedFileError {
    /// The path is absolute.
    #[error("the path is absolute")]
    Absolute,
    /// The path leaves the project, through `..` or a symlink.
    #[error("the path leaves the project")]
    Outside,
    /// The file is missing.
    #[error("there is no such file")]
    Missing,
    /// The file is hidden from the system under test, or from everything.
    #[error("the file is hidden from the system under test")]
    Hidden,
    /// The file contains bytes that are not text.
    #[error("the file is not text")]
    Binary,
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file exists but cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
}

/// Checks a path for faults that do not depend on the project's contents.
pub fn path_error(path: &str) -> Option<NamedFileError> {
    if Path::new(path).has_root() {
        return Some(NamedFileError::Absolute);
    }
    let mut depth = 0;
    for component in Path::new(path).components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Some(NamedFileError::Outside);
            }
        }
    }
    // An empty path, or only dots, names no file.
    (depth == 0).then_some(NamedFileError::Missing)
}
