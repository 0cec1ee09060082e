//! A suite: frozen cases that were generated once and are rerun unchanged.
//!
//! Types and digests only. A suite contains hints and is therefore an answer key: code that reads
//! or writes one must keep it from the system under test.
//!
//! A case has a short form: `prompt`, `expect` and perhaps `reference`. It is brought into the normal
//! form when it is read, so that nothing else knows of it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::check::{Check, CheckKind};
use crate::scenario::{CaseGrounds, FileExcerpt, GeneratedCase, JudgeRole, Scenario, TaskStatus};
use selftest_text::digest;
use selftest_text::words::fold;

/// Version of the format. Increases when a key changes its meaning or is removed.
pub const SUITE_VERSION: u32 = 1;

/// Frozen cases, run with `selftest --suite`. An answer key: keep it from the system under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "selftest suite")]
pub struct Suite {
    /// Version of this format; 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// ID of the run that the cases come from; absent in a hand-written suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// SHA-256 of that run's rubric. With another rubric, scores have a different meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric_digest: Option<String>,
    /// SHA-256 of each prompt template of that run, by path under `prompts/`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompt_digests: BTreeMap<String, String>,
    /// The cases, in this order.
    #[schemars(length(min = 1, max = 10_000))]
    pub cases: Vec<SuiteCase>,
}

impl Suite {
    /// Returns the SHA-256 of the cases, independent of the file's comments, key order and run ID.
    pub fn digest(&self) -> String {
        digest::json_sha256_hex(json!(self.cases))
    }
}

/// Returns the SHA-256 of what makes two cases the same: the messages to the system under test, the
/// expected answer, and the judge's criteria. Thresholds and limits are excluded, because they only
/// affect how an answer is rated.
pub fn case_digest(scenario: &Scenario, case: &GeneratedCase) -> String {
    let mut parts = json!(case);
    parts["expected_status"] = json!(scenario.expected_status);
    parts["reply_flow"] = json!(scenario.reply_flow);
    // Omitted if empty, so that digests from before this key stay valid.
    if !scenario.follow_ups.is_empty() {
        parts["follow_ups"] = json!(scenario.follow_ups);
    }
    digest::json_sha256_hex(parts)
}

/// Maximum length of a description that is taken from a prompt, in bytes.
const MAX_DESCRIPTION: usize = 120;
/// Number of words of a prompt that make the id of a case.
const ID_WORDS: usize = 6;
/// Maximum length of an id that is taken from a prompt.
const MAX_ID: usize = 48;

/// One frozen case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "SuiteCaseText")]
pub struct SuiteCase {
    /// The scenario, with the strictness and limits of the run.
    pub scenario: Scenario,
    /// The request to the system under test.
    pub prompt: String,
    /// Hints for the judge.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hints: String,
    /// Yes/no criteria for a good answer, each about one thing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<String>,
    /// Checks that need no model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Verbatim quotes from the excerpts that a good answer agrees with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Excerpts of the project for the judge, as of when the case was created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excerpts: Vec<FileExcerpt>,
    /// A good answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// What the verdict of a judge counts for.
    #[serde(skip_serializing_if = "JudgeRole::is_default")]
    pub judge: JudgeRole,
    /// Project files whose start the judge sees, as of when the case is run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A case as it is written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SuiteCaseText {
    /// Name of the case; made of the first words of the prompt if absent. In `scenario` if there is
    /// one.
    #[serde(default)]
    #[schemars(regex(
        pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})?$"
    ))]
    id: Option<String>,
    /// The request to the system under test: the only part of a case that it ever sees.
    #[schemars(length(min = 1))]
    prompt: String,
    /// What a good answer is: checks, which need no model, and sentences, which a judge decides. Without
    /// a `scenario`, `status` in it is the expected status of the task; without one, an answer that
    /// has to ask (`questions` with a `min`) is expected to wait for a reply, and any other to be complete.
    #[serde(default)]
    #[schemars(length(min = 1, max = 500))]
    expect: Vec<Expectation>,
    /// A good answer. Judges decide more with one.
    #[serde(default)]
    reference: Option<String>,
    /// Project files whose start the judge sees, as of when the case is run.
    #[serde(default)]
    #[schemars(length(max = 20), inner(length(min = 1, max = 1000)))]
    files: Vec<String>,
    /// The scenario, with the strictness and limits of the run: for all that `id` and `expect` cannot
    /// say.
    #[serde(default)]
    scenario: Option<Scenario>,
    /// Hints for the judge. A case with checks but neither hints nor expectations is decided by its
    /// checks alone, without a judge.
    #[serde(default)]
    hints: String,
    /// Yes/no criteria for a good answer, each about one thing: the sentences of `expect`.
    #[serde(default)]
    expectations: Vec<String>,
    /// Checks that need no model: those of `expect`. If one fails, the case fails, whatever the judge
    /// decides.
    #[serde(default)]
    #[schemars(length(max = 500))]
    checks: Vec<Check>,
    /// Verbatim quotes from the excerpts that a good answer agrees with.
    #[serde(default)]
    facts: Vec<String>,
    /// Excerpts of the project for the judge, as of when the case was created.
    #[serde(default)]
    excerpts: Vec<FileExcerpt>,
    /// What the verdict of a judge counts for: `decides`, or `advises` if the checks demand all that
    /// is right.
    #[serde(default)]
    judge: JudgeRole,
}

/// An item of `expect`.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Expectation {
    /// A sentence that holds of a good answer, for the judge.
    Sentence(String),
    /// A check.
    Check(Box<Check>),
}

impl From<SuiteCaseText> for SuiteCase {
    fn from(text: SuiteCaseText) -> Self {
        let SuiteCaseText {
            id,
            prompt,
            expect,
            reference,
            files,
            scenario,
            hints,
            mut expectations,
            mut checks,
            facts,
            excerpts,
            judge,
        } = text;
        for item in expect {
            match item {
                Expectation::Sentence(sentence) => expectations.push(sentence),
                Expectation::Check(check) => checks.push(*check),
            }
        }
        let scenario = scenario.unwrap_or_else(|| {
            let expected_status = expected_status(&mut checks);
            let id = id.unwrap_or_else(|| id_of_prompt(&prompt));
            let description = selftest_text::one_line(&prompt, MAX_DESCRIPTION);
            Scenario { description, ..Scenario::new(id, expected_status) }
        });
        Self {
            scenario,
            prompt,
            hints,
            expectations,
            checks,
            facts,
            excerpts,
            reference,
            judge,
            files,
        }
    }
}

/// Takes the expected status out of the checks, or infers it from them.
fn expected_status(checks: &mut Vec<Check>) -> TaskStatus {
    let stated = checks.iter().find_map(|check| match check.kind {
        CheckKind::Status(status) => Some(status),
        _ => None,
    });
    // The status becomes that of the scenario, and would otherwise be decided twice. One that stands
    // alone is all that the case demands, and decides it without a judge.
    let is_status = |check: &Check| matches!(check.kind, CheckKind::Status(_));
    if !checks.iter().all(is_status) {
        checks.retain(|check| !is_status(check));
    }
    // An answer that has to ask something waits for a reply.
    let asks = |check: &Check| matches!(check.kind, CheckKind::Questions(bounds) if bounds.limits().0.unwrap_or(0) > 0);
    stated.unwrap_or(if checks.iter().any(asks) {
        TaskStatus::AwaitingResponse
    } else {
        TaskStatus::Complete
    })
}

/// Returns the id of a case that names none: the first words of its prompt, or its digest if it has
/// no Latin words.
pub fn id_of_prompt(prompt: &str) -> String {
    let folded = fold(prompt);
    let words = folded.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut id = String::new();
    for word in words.take(ID_WORDS) {
        if id.len() + word.len() >= MAX_ID {
            break;
        }
        if !id.is_empty() {
            id.push('_');
        }
        id += word;
    }
    if id.is_empty() {
        let digest = digest::sha256_hex(prompt.as_bytes());
        id = format!("case_{}", &digest[..8]);
    }
    id
}

impl JsonSchema for SuiteCase {
    fn schema_name() -> Cow<'static, str> {
        "SuiteCase".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SuiteCaseText::json_schema(generator)
    }
}

impl SuiteCase {
    /// Creates a frozen case.
    pub fn new(scenario: Scenario, case: GeneratedCase) -> Self {
        let GeneratedCase { prompt, hints, grounds } = case;
        let CaseGrounds { expectations, checks, facts, excerpts, reference, judge } = grounds;
        let files = Vec::new();
        Self {
            scenario,
            prompt,
            hints,
            expectations,
            checks,
            facts,
            excerpts,
            reference,
            judge,
            files,
        }
    }

    /// Returns the case in the form a generator produces.
    pub fn generated(&self) -> GeneratedCase {
        let mut grounds = self.scenario.grounds();
        grounds.add(CaseGrounds {
            expectations: self.expectations.clone(),
            checks: self.checks.clone(),
            facts: self.facts.clone(),
            excerpts: self.excerpts.clone(),
            reference: self.reference.clone(),
            judge: self.judge,
        });
        // The role is the case's own, whatever sentences were merged in above.
        grounds.judge = self.judge;
        let is_one_message =
            self.scenario.follow_ups.is_empty() && self.scenario.reply_flow.is_empty();
        grounds.state_checks(if is_one_message { &self.prompt } else { "" });
        GeneratedCase { prompt: self.prompt.clone(), hints: self.hints.clone(), grounds }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::scenario::{ReplyStep, TaskStatus};
    use selftest_stats::score::Strictness;

    fn case() -> SuiteCase {
        let scenario = json!({"id": "a", "description": "d", "expected_status": "COMPLETE"});
        let (prompt, hints) = ("Explain x".to_owned(), "names y".to_owned());
        let case = GeneratedCase { prompt, hints, ..GeneratedCase::default() };
        SuiteCase::new(serde_json::from_value(scenario).unwrap(), case)
    }

    fn suite(cases: Vec<SuiteCase>) -> Suite {
        let (run_id, rubric_digest, prompt_digests) = (None, None, BTreeMap::new());
        Suite { version: SUITE_VERSION, run_id, rubric_digest, prompt_digests, cases }
    }

    #[test]
    fn only_the_cases_make_the_digest() {
        let one = suite(vec![case()]);
        let mut same = one.clone();
        same.run_id = Some("selftest-20260206-1234-bcdfgh".into());
        assert_eq!(one.digest(), same.digest());
        let mut other = one.clone();
        other.cases[0].hints.push('!');
        assert_ne!(one.digest(), other.digest());
        other = one.clone();
        other.cases[0].scenario.strictness = Some(Strictness::new(0.1).unwrap());
        assert_ne!(one.digest(), other.digest());
    }

    #[test]
    fn a_case_is_what_is_said_and_expected() {
        let digest = |case: &SuiteCase| case_digest(&case.scenario, &case.generated());
        let one = case();
        let mut same = one.clone();
        same.scenario.strictness = Some(Strictness::new(0.1).unwrap());
        same.scenario.timeout_seconds = Some(5.0);
        assert_eq!(digest(&one), digest(&same));
        let changes: [fn(&mut SuiteCase); 7] = [
            |case| case.prompt.push('!'),
            |case| case.hints.push('!'),
            |case| case.checks.push(serde_json::from_value(json!({"lines": 3})).unwrap()),
            |case| case.scenario.checks.push(serde_json::from_value(json!({"lines": 3})).unwrap()),
            |case| case.scenario.expected_status = TaskStatus::Error,
            |case| case.scenario.follow_ups.push("And then?".to_owned()),
            |case| {
                let (reply, expected_status) = ("Flat".to_owned(), TaskStatus::Complete);
                case.scenario.reply_flow.push(ReplyStep { reply, expected_status });
            },
        ];
        for change in changes {
            let mut other = one.clone();
            change(&mut other);
            assert_ne!(digest(&one), digest(&other), "{other:?}");
        }
    }

    fn read(value: Value) -> SuiteCase {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_short_case_is_brought_into_the_normal_form() {
        let short = read(json!({
            "id": "returns",
            "prompt": "How long may I return a ticket?",
            "expect": [{"contains": "14 days"}, "The answer names the page."],
            "reference": "For 14 days.",
        }));
        let long = read(json!({
            "scenario": {
                "id": "returns",
                "description": "How long may I return a ticket?",
                "expected_status": "COMPLETE",
            },
            "prompt": "How long may I return a ticket?",
            "checks": [{"contains": "14 days"}],
            "expectations": ["The answer names the page."],
            "reference": "For 14 days.",
        }));
        assert_eq!(short, long);
        assert_eq!(read(serde_json::to_value(&short).unwrap()), short);
    }

    #[test]
    fn what_has_to_ask_waits_for_a_reply() {
        let status = |expect: Value| {
            let case = read(json!({"prompt": "Change it.", "expect": expect}));
            (case.scenario.expected_status, case.checks.len())
        };
        assert_eq!(status(json!([{"questions": {"min": 1}}])), (TaskStatus::AwaitingResponse, 1));
        assert_eq!(status(json!([{"questions": 0}])), (TaskStatus::Complete, 1));
        let stated = json!([{"status": "COMPLETE"}, {"questions": {"min": 1}}]);
        assert_eq!(status(stated), (TaskStatus::Complete, 1));
        assert_eq!(status(json!([{"status": "ERROR"}])), (TaskStatus::Error, 1));
    }

    #[test]
    fn a_case_without_an_id_has_one_of_its_first_words() {
        assert_eq!(id_of_prompt("Which port is it, and why? Say so."), "which_port_is_it_and_why");
        assert_eq!(id_of_prompt(&"x".repeat(300)).len(), "case_".len() + 8);
        assert!(id_of_prompt("どのポートですか").starts_with("case_"));
    }
}
