//! The model of a test case: scenarios, and the prompts, hints and grounds generated for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Check, CheckKind};
pub use crate::task_status::TaskStatus;
use selftest_stats::score::{Score, Strictness};

/// One step of a reply flow: what is said, and how the task should stand afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplyStep {
    /// A message of the harness to the system under test.
    #[schemars(length(min = 1))]
    pub reply: String,
    /// How the task should stand after it.
    pub expected_status: TaskStatus,
}

/// One scenario of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Unique name, also the name of its prompt template: letters, digits, `_` and `-`. The cases of
    /// several skills have the name of the skill before it: `skill/case`.
    #[schemars(regex(
        pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})?$"
    ))]
    pub id: String,
    /// Purpose, in one line; the generic template is built from it.
    #[schemars(length(min = 1))]
    pub description: String,
    /// How the task should stand after the first answer.
    pub expected_status: TaskStatus,
    /// Whether the reply flow is played when the system under test asks back.
    #[serde(default)]
    pub requires_reply: bool,
    /// Messages to the system under test, step by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply_flow: Vec<ReplyStep>,
    /// More messages of the user, said one after the other in the same session, whatever the system
    /// under test answers but an error. Status, checks and judge then go by the last answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1)))]
    pub follow_ups: Vec<String>,
    /// Overrides the run's strictness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strictness: Option<Strictness>,
    /// Overrides the run's least passing score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_score_to_pass: Option<Score>,
    /// Overrides whether minor format deviations cost nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_minor_format_deviation: Option<bool>,
    /// Overrides how many questions an answer that asks back may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1000))]
    pub max_questions_allowed: Option<u32>,
    /// Overrides the seconds that the system under test has for this case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.1, max = 86400.0))]
    pub timeout_seconds: Option<f64>,
    /// Yes/no criteria, each about one thing, that a good answer meets, besides those of the case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 1000)))]
    pub expectations: Vec<String>,
    /// Checks that need no model, besides those of the case. One that fails fails the case, whatever the judge says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub checks: Vec<Check>,
    /// A good answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20_000))]
    pub reference: Option<String>,
    /// Files of the project that the case is about, paths from its root. The judge sees how each
    /// begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 1000)))]
    pub files: Vec<String>,
}

impl Scenario {
    /// A scenario with nothing but an id and the status that is expected.
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

    /// Grounds of every case of the scenario, but for its files.
    pub fn grounds(&self) -> Grounds {
        Grounds {
            expectations: self.expectations.clone(),
            checks: self.checks.clone(),
            reference: self.reference.clone(),
            ..Grounds::default()
        }
    }
}

/// One case: what is asked, and all by which the answer is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratedCase {
    /// The request to the system under test: the only part of a case that it ever sees.
    pub prompt: String,
    /// Hints for the judge.
    pub hints: String,
    /// Grounds on which the answer is judged.
    #[serde(default, skip_serializing_if = "Grounds::is_empty")]
    pub grounds: Grounds,
}

impl GeneratedCase {
    /// Whether there is anything that only a judge can tell: a case of checks alone asks none.
    pub fn asks_judge(&self) -> bool {
        let Grounds { expectations, checks, .. } = &self.grounds;
        checks.is_empty() || !expectations.is_empty() || !self.hints.trim().is_empty()
    }

    /// Whether the skill should be loaded, for a case that asks for nothing else.
    pub fn should_load(&self) -> Option<bool> {
        match &self.grounds.checks[..] {
            [check] if !self.asks_judge() => should_load(check),
            _ => None,
        }
    }
}

/// The demand on the loading of skills, where a check demands nothing else.
fn should_load(check: &Check) -> Option<bool> {
    match &check.kind {
        CheckKind::SkillLoaded(_) => Some(true),
        CheckKind::Not(inner) => should_load(inner).map(|wanted| !wanted),
        CheckKind::Any(inner) => {
            let mut wanted = inner.iter().map(should_load);
            let first = wanted.next()??;
            wanted.all(|other| other == Some(first)).then_some(first)
        }
        _ => None,
    }
}

/// Grounds on which an answer is judged. The system under test sees none of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grounds {
    /// Yes/no criteria, each about one thing, that a good answer meets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<String>,
    /// Checks that need no model. One that fails fails the case, whatever the judge says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Quotes from the excerpts, letter by letter, that a good answer agrees with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Excerpts of the project for the judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excerpts: Vec<Excerpt>,
    /// A good answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl Grounds {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what people wrote down, which comes first.
    pub fn add(&mut self, own: Self) {
        let Self { expectations, checks, facts, excerpts, reference } = own;
        put_first(&mut self.expectations, expectations);
        put_first(&mut self.checks, checks);
        put_first(&mut self.facts, facts);
        put_first(&mut self.excerpts, excerpts);
        self.reference = reference.or_else(|| self.reference.take());
    }
}

fn put_first<T: PartialEq>(all: &mut Vec<T>, mut first: Vec<T>) {
    let rest = std::mem::take(all);
    for one in rest {
        if !first.contains(&one) {
            first.push(one);
        }
    }
    *all = first;
}

/// A part of a file of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Excerpt {
    /// Path from the project's root, with `/`.
    pub path: String,
    /// The lines.
    pub text: String,
}
