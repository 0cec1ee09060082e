//! Converts a case file into a selftest suite. Pure: what cannot be converted is reported, not
//! dropped.

use std::collections::{BTreeMap, BTreeSet};

use selftest_text::digest;
use selftest_text::wording::plural;

use super::{DemandDecider, EvalCase, EvalFile, EvalsFile, RoutingCase, ShellLine, ShellUse};
use crate::check::{self, Check, CheckKind, CheckText, CheckWeight, CommandCheck};
use crate::scenario::{Scenario, TaskStatus};
use crate::sentence::BY_RULE_SUFFIX;
use crate::suite::{SUITE_VERSION, Suite, SuiteCase};

/// Maximum length of an ID in a selftest suite, in characters.
const MAX_ID: usize = 64;
/// Maximum length of a description, in bytes.
const MAX_DESCRIPTION: usize = 200;
/// Maximum length of the words in a check's name, in bytes: a name has at most 200 characters, with an
/// ellipsis and a remark.
const MAX_NAME: usize = 180;
/// Timeout of a command that prepares a case, in seconds.
const SET_UP_SECONDS: u32 = 120;

/// The suite converted from a case file.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedSuite {
    /// The suite.
    pub suite: Suite,
    /// Input files of each case by its new ID; most cases have none.
    pub files: BTreeMap<String, Vec<EvalFile>>,
    /// Commands that prepare each case, by its new ID; most cases have none.
    pub set_up: BTreeMap<String, Vec<CommandCheck>>,
    /// Shell lines that will be run, one line each.
    pub allowed: Vec<String>,
    /// IDs of the cases that only check whether a skill is loaded.
    pub loading: BTreeSet<String>,
    /// Parts that will not be run, apart from those in the file's own warnings; one line each.
    pub left_out: Vec<String>,
}

/// Permission to run the shell lines of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellPermission {
    /// Run in the sandbox.
    Allowed,
    /// Not run, for this reason.
    Denied(String),
}

impl EvalsFile {
    /// Converts the cases into a suite. Checks are decided mechanically, sentences by the judge; a
    /// case with an undecidable demand never passes. `skill` contains the names under which the
    /// surrounding skill can be loaded; if empty, the name in the file is used. `rule` decides
    /// about shell lines and is called with the ID of a case that has any.
    pub fn suite(&self, skill: &[String], rule: &dyn Fn(&str) -> ShellPermission) -> ImportedSuite {
        let mut taken = BTreeSet::new();
        let mut imported = ImportedSuite {
            suite: Suite {
                version: SUITE_VERSION,
                run_id: None,
                rubric_digest: None,
                prompt_digests: BTreeMap::new(),
                cases: Vec::new(),
            },
            files: BTreeMap::new(),
            set_up: BTreeMap::new(),
            allowed: Vec::new(),
            loading: BTreeSet::new(),
            left_out: self.refused.clone(),
        };
        for case in &self.cases {
            let id = unique_id(&case.id, &mut taken);
            if !case.files.is_empty() {
                imported.files.insert(id.clone(), case.files.clone());
            }
            let runs = |line: &ShellLine| line.purpose != ShellUse::NeverRun;
            // Permission matters only for cases that would run something.
            let rule = case.shell.iter().any(runs).then(|| rule(&id));
            if rule == Some(ShellPermission::Allowed) {
                let lines = case.shell.iter().filter(|line| runs(line));
                // In the words of the reader's warning, so that the caller can take that back.
                imported.allowed.extend(lines.map(|line| line.not_run_warning(&case.id)));
                let commands = case.shell.iter().filter_map(set_up_command).collect();
                imported.set_up.insert(id.clone(), commands);
            }
            imported.suite.cases.push(suite_case(id, case, rule.as_ref()));
        }
        // The caller knows the actual skill folder; the name in the file is only a fallback.
        let named: Vec<String> = self.skill.iter().cloned().collect();
        let around = if skill.is_empty() { &named[..] } else { skill };
        // Where no skill lies around the file, none of those that it names is meant by "none".
        let mut all: Vec<String> = Vec::new();
        for name in self.routing.iter().flat_map(|routing| &routing.skills) {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        let mut nameless = 0u64;
        for (routing, number) in self.routing.iter().zip(1..) {
            let id = unique_id(&format!("trigger-{number}"), &mut taken);
            let none_of = around.is_empty() && !routing.should_trigger;
            match loading_case(id.clone(), routing, if none_of { &all } else { around }) {
                Some(case) => {
                    imported.suite.cases.push(case);
                    imported.loading.insert(id);
                }
                None => nameless += 1,
            }
        }
        if nameless > 0 {
            let count = plural(nameless, "prompt");
            imported.left_out.push(format!(
                "{count} about loading a skill: neither the file nor a SKILL.md around it names one"
            ));
        }
        imported
    }
}

/// Creates a case that only checks whether any of these skills is loaded.
fn loading_case(id: String, routing: &RoutingCase, around: &[String]) -> Option<SuiteCase> {
    let skills = if routing.skills.is_empty() { around } else { &routing.skills };
    let names = || skills.iter().filter_map(|name| CheckText::new(name.as_str()).ok());
    let mut checks: Vec<Check> =
        names().map(|name| Check::new(CheckKind::SkillLoaded(name))).collect();
    // A prompt may name several skills, any of which is right.
    let check = match checks.len() {
        0 | 1 => checks.pop()?,
        _ => Check::new(CheckKind::Any(checks)),
    };
    let check = if routing.should_trigger { check } else { check.negated() };
    let verb = if routing.should_trigger { "loads" } else { "does not load" };
    let name = format!("{verb} the skill {}", skills.first()?);
    let scenario = Scenario {
        description: selftest_text::one_line(&routing.query, MAX_DESCRIPTION),
        ..Scenario::new(id, TaskStatus::Complete)
    };
    Some(SuiteCase {
        prompt: routing.query.clone(),
        checks: vec![with_name(&check, &name, None)],
        ..SuiteCase::new(scenario, crate::scenario::GeneratedCase::default())
    })
}

/// Returns the command of a set-up line.
fn set_up_command(line: &ShellLine) -> Option<CommandCheck> {
    let value = serde_json::json!({
        "run": [line.program, "-c", line.line],
        "timeout_seconds": SET_UP_SECONDS,
    });
    (line.purpose == ShellUse::SetUp).then(|| serde_json::from_value(value).ok()).flatten()
}

fn suite_case(id: String, case: &EvalCase, rule: Option<&ShellPermission>) -> SuiteCase {
    let words = case.name.as_deref().unwrap_or(&case.prompt);
    let scenario = Scenario {
        description: selftest_text::one_line(words, MAX_DESCRIPTION),
        // The range that a scenario allows.
        timeout_seconds: case.timeout_seconds.map(|seconds| seconds.clamp(0.1, 86_400.0)),
        follow_ups: case.replies.clone(),
        ..Scenario::new(id, TaskStatus::Complete)
    };
    let (mut checks, mut expectations) = (Vec::new(), Vec::new());
    for demand in &case.demands {
        match &demand.decider {
            // The file's author is unknown, so its commands need the user's permission.
            DemandDecider::Typed(check)
                if !check::distinct_commands(std::slice::from_ref(check)).is_empty()
                    && rule != Some(&ShellPermission::Allowed) =>
            {
                let why = match rule {
                    Some(ShellPermission::Denied(why)) => why,
                    _ => "commands of such a file are not run",
                };
                checks.push(undecidable_check(&demand.text, why));
            }
            DemandDecider::Typed(check) => checks.push(with_name(check, &demand.text, None)),
            DemandDecider::Rule(check) => {
                checks.push(with_name(check, &demand.text, Some(BY_RULE_SUFFIX)));
            }
            DemandDecider::Judge => expectations.push(demand.text.clone()),
            DemandDecider::Unknown { why } => checks.push(undecidable_check(&demand.text, why)),
        }
    }
    // Without its set-up, the answer proves nothing: no check may fail the case.
    let lacks_set_up = case.shell.iter().any(|line| line.purpose == ShellUse::SetUp)
        && rule != Some(&ShellPermission::Allowed);
    if lacks_set_up {
        checks.clear();
        expectations.clear();
    }
    for line in case.shell.iter().filter(|line| line.purpose == ShellUse::SetUp) {
        let words = format!("set-up `{}`", line.line);
        match rule {
            Some(ShellPermission::Allowed) if set_up_command(line).is_some() => {}
            Some(ShellPermission::Denied(why)) => checks.push(undecidable_check(&words, why)),
            _ => checks.push(undecidable_check(&words, "it is too long for a command")),
        }
    }
    if let Some(check) = untouched(case, &checks) {
        checks.push(check);
    }
    if checks.is_empty() && expectations.is_empty() {
        checks.push(undecidable_check("the case demands nothing", "no answer could pass or fail"));
    }
    SuiteCase {
        prompt: case.prompt.clone(),
        checks,
        expectations,
        reference: case.reference.clone(),
        ..SuiteCase::new(scenario, crate::scenario::GeneratedCase::default())
    }
}

/// Returns a check that the agent left alone what decides the case: the files of the case that its
/// commands name, and the settings of CI.
fn untouched(case: &EvalCase, checks: &[Check]) -> Option<Check> {
    let commands = check::distinct_commands(checks);
    if commands.is_empty() {
        return None;
    }
    let words = || commands.iter().flat_map(|command| command.run.words());
    let is_named =
        // Longer words are files that a command brings along, and no lines of a shell.
        |file: &&EvalFile| words().any(|word| word.len() < 20_000 && names_file(word, &file.path));
    let mut paths: Vec<String> =
        case.files.iter().filter(is_named).map(|file| file.path.clone()).collect();
    // An agent that changes what its repository is tested by changes what decides the case.
    paths.extend([".github/workflows", ".gitlab-ci.yml"].map(ToOwned::to_owned));
    // A check takes no more paths, and without it the case would go unguarded.
    paths.truncate(100);
    let globs = crate::check::PathGlobs::new(paths).ok()?;
    let name = "what the case is decided by is untouched".to_owned();
    Some(Check { name: Some(name), weight: CheckWeight::ONE, kind: CheckKind::Untouched(globs) })
}

/// Returns true if a command names a file, as a word of its own.
fn names_file(line: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    line.match_indices(path).any(|(at, _)| {
        // `./tests/run.sh` names `tests/run.sh`, and `my-tests/run.sh` does not.
        let before = line[..at].trim_end_matches("./");
        !before.ends_with(is_part) && !line[at + path.len()..].starts_with(is_part)
    })
}

/// Names the check by its author's words.
fn with_name(check: &Check, words: &str, remark: Option<&str>) -> Check {
    let words = selftest_text::one_line(words, MAX_NAME);
    let name = match remark {
        Some(remark) => words + remark,
        None => words,
    };
    Check { name: Some(name), ..check.clone() }
}

fn undecidable_check(words: &str, why: &str) -> Check {
    let words = selftest_text::one_line(words, MAX_NAME);
    let text = selftest_text::one_line(&format!("{words}: {why}"), 2 * MAX_NAME);
    // Cannot fail: the text is never empty.
    let kind = CheckText::new(text).map_or_else(|_| CheckKind::Any(Vec::new()), CheckKind::Unknown);
    let name = Some(words).filter(|name| !name.is_empty());
    Check { name, weight: CheckWeight::ONE, kind }
}

/// Turns a foreign ID into a valid and unused one.
pub fn unique_id(theirs: &str, taken: &mut BTreeSet<String>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain: String = theirs.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let plain = plain.trim_matches(['-', '_']);
    // A name in another script has a digest that stays the same wherever it stands.
    let other = format!("case-{}", &digest::sha256_hex(theirs.as_bytes())[..8]);
    let plain = match plain.is_empty() {
        true if theirs.trim().is_empty() => "case",
        true => &other,
        false => plain,
    };
    // Leave room for a numeric suffix.
    let plain: String = plain.chars().take(MAX_ID - 6).collect();
    let numbered = (2..).map(|number| format!("{plain}-{number}"));
    let id = std::iter::once(plain.clone()).chain(numbered).find(|id| !taken.contains(id));
    // The numbers have no end, so that one of them is always free.
    let id = id.unwrap_or(plain);
    taken.insert(id.clone());
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evals::read;

    const REFUSED: fn(&str) -> ShellPermission =
        |_| ShellPermission::Denied("not allowed".to_owned());

    fn imported(text: &str) -> ImportedSuite {
        read("evals.json", text.as_bytes(), &()).unwrap().suite(&["s".to_owned()], &REFUSED)
    }

    #[test]
    fn demands_go_to_those_who_can_decide_them() {
        let imported = imported(
            r#"{"skill_name": "s", "evals": [
                {"id": 1, "prompt": "Do it", "expected_output": "Done.",
                 "expectations": ["The answer mentions \"port 80\"", "The tone is friendly"],
                 "assertions": [{"type": "contains", "value": "80"}, {"type": "telepathy", "x": 1}]},
                {"id": "a b/../c", "prompt": "Do that", "expectations": ["It is short"]}
            ]}"#,
        );
        let [first, second] = &imported.suite.cases[..] else { panic!("two cases") };
        assert_eq!((first.scenario.id.as_str(), second.scenario.id.as_str()), ("1", "a-b----c"));
        assert_eq!(first.expectations, ["The tone is friendly"]);
        let kinds: Vec<&str> = first.checks.iter().map(|check| check.kind.name()).collect();
        assert!(kinds.contains(&"contains") && kinds.contains(&"unknown"), "{kinds:?}");
        let names = first.checks.iter().filter_map(|check| check.name.as_deref());
        assert!(names.into_iter().any(|name| name.ends_with("(by rule)")), "{first:?}");
        assert!(first.hints.is_empty() && second.checks.is_empty());
    }

    #[test]
    fn commands_of_strangers_are_run_by_rule() {
        let text = r#"{"evals": [
            {"id": 1, "prompt": "x", "setup": ["mkdir a", "mkdir b"], "teardown": "rm a",
             "assertions": [{"type": "cmd", "cmd": "curl http://x | sh", "expect_exit": 0}]},
            {"id": 2, "prompt": "x", "setup": "mkdir c", "expectations": ["contains \"x\""]}]}"#;
        let file = read("evals.json", text.as_bytes(), &()).unwrap();
        let rule = |id: &str| match id {
            "1" => ShellPermission::Allowed,
            _ => REFUSED(id),
        };
        let found = file.suite(&[], &rule);
        let [first, second] = &found.suite.cases[..] else { panic!("two cases") };
        assert_eq!(check::distinct_commands(&first.checks).len(), 1);
        let lines: Vec<&str> =
            found.set_up["1"].iter().map(|command| command.run.words()[2].as_str()).collect();
        assert_eq!(lines, ["mkdir a", "mkdir b"]);
        assert_eq!(found.allowed.len(), 3, "nothing cleans up: {:?}", found.allowed);
        assert!(found.allowed.iter().all(|line| file.warnings.contains(line)), "{found:?}");
        assert!(!found.set_up.contains_key("2"));
        let unknown = second.checks.iter().find(|check| check.kind.name() == "unknown").unwrap();
        assert_eq!(unknown.kind.value(), "set-up `mkdir c`: not allowed");
        let refused = file.suite(&[], &REFUSED).suite;
        assert!(refused.cases.iter().all(|case| check::distinct_commands(&case.checks).is_empty()));
    }

    #[test]
    fn without_its_set_up_no_check_can_fail_a_case() {
        let imported = imported(
            r#"{"evals": [{"id": 1, "prompt": "x", "setup": "mkdir a", "expectations": ["Is kind"],
                "assertions": [{"type": "contains", "value": "80"}]}]}"#,
        );
        let case = &imported.suite.cases[0];
        let kinds: Vec<&str> = case.checks.iter().map(|check| check.kind.name()).collect();
        assert_eq!(kinds, ["unknown"]);
        assert!(case.expectations.is_empty(), "{case:?}");
    }

    #[test]
    fn a_verifier_that_the_agent_may_change_is_watched() {
        let text = r#"{"evals": [{"id": 1, "prompt": "x", "files": [{"path": "tests/a.py", "content": "a"},
            {"path": "b.py", "content": "b"}], "assertions": [{"type": "cmd", "cmd": "pytest tests/a.py"}]}]}"#;
        let file = read("evals.json", text.as_bytes(), &()).unwrap();
        let allowed = |_: &str| ShellPermission::Allowed;
        let watched = |rule| {
            let suite = file.suite(&[], rule).suite;
            let found = suite.cases[0].checks.iter().find(|check| check.kind.name() == "untouched");
            found.map(|check| check.kind.value())
        };
        let wanted = serde_json::json!(["tests/a.py", ".github/workflows", ".gitlab-ci.yml"]);
        assert_eq!(watched(&allowed), Some(wanted));
        assert_eq!(watched(&REFUSED), None);
    }

    #[test]
    fn a_case_without_demands_is_never_passed() {
        let imported = imported(r#"{"evals": [{"id": 0, "prompt": "Do it"}]}"#);
        let [check] = &imported.suite.cases[0].checks[..] else { panic!("one check") };
        assert_eq!(check.kind.name(), "unknown");
    }

    #[test]
    fn prompts_about_loading_are_cases_of_their_own() {
        let text = r#"[{"query": "When is the ferry?", "should_trigger": true},
                       {"query": "Bake a cake", "should_trigger": false}]"#;
        let found = imported(text);
        let [first, second] = &found.suite.cases[..] else { panic!("two cases") };
        assert_eq!(
            (first.scenario.id.as_str(), second.prompt.as_str()),
            ("trigger-1", "Bake a cake")
        );
        let wanted = [first, second].map(|case| case.generated().should_load());
        assert_eq!(wanted, [Some(true), Some(false)]);
        assert_eq!(found.loading.len(), 2);
        let file = read("trigger-evals.json", text.as_bytes(), &()).unwrap();
        let two = file.suite(&["ferry".to_owned(), "harbour-ferry".to_owned()], &REFUSED);
        assert_eq!(two.suite.cases[1].generated().should_load(), Some(false));
        let none = file.suite(&[], &REFUSED);
        assert!(none.suite.cases.is_empty() && none.left_out[0].contains("2 prompts"), "{none:?}");
    }

    #[test]
    fn ids_are_unique_and_ours() {
        let mut taken = BTreeSet::new();
        let mut free = |id: &str| unique_id(id, &mut taken);
        assert_eq!(
            ["x", "x", "x!", "", "ж"].map(&mut free),
            ["x", "x-2", "x-3", "case", "case-dd591284"]
        );
        assert!(free(&"y".repeat(200)).len() <= MAX_ID);
    }
}
