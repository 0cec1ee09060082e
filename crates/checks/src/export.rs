//! Suites in the forms of other programs. What such a form has no word for is left out with its reason.

use serde_json::{Map, Value, json};

use crate::check::{Check, CheckKind, CountBounds};
use crate::suite::{Suite, SuiteCase};

/// A form that suites are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    /// The `evals.json` of a skill.
    EvalsJson,
    /// A configuration of promptfoo, as JSON, which is YAML.
    Promptfoo,
    /// A folder with a task of Harbor for each case.
    Harbor,
}

/// The files of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportedSuite {
    /// Path and text of each file.
    pub files: Vec<(String, String)>,
    /// Parts that are left out, one line each.
    pub left_out: Vec<String>,
}

/// Writes a suite in another form.
pub fn export(suite: &Suite, form: ExportForm, skill: Option<&str>) -> ExportedSuite {
    match form {
        ExportForm::EvalsJson => evals_json(suite, skill),
        ExportForm::Promptfoo => promptfoo(suite),
        ExportForm::Harbor => harbor(suite),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn evals_json(suite: &Suite, skill: Option<&str>) -> ExportedSuite {
    let mut exported = ExportedSuite::default();
    let cases: Vec<Value> = suite
        .cases
        .iter()
        .map(|case| {
            let mut members = Map::new();
            members.insert("id".to_owned(), json!(case.scenario.id));
            if case.scenario.follow_ups.is_empty() {
                members.insert("prompt".to_owned(), json!(case.prompt));
            } else {
                let messages = std::iter::once(&case.prompt).chain(&case.scenario.follow_ups);
                members.insert("query_flow".to_owned(), messages.cloned().collect());
            }
            let reference = case.reference.as_ref().or(case.scenario.reference.as_ref());
            if let Some(reference) = reference {
                members.insert("expected_output".to_owned(), json!(reference));
            }
            let (sentences, checks) = demands(case);
            if !sentences.is_empty() {
                members.insert("expectations".to_owned(), json!(sentences));
            }
            let checks: Vec<Value> = checks.iter().map(|check| json!(check)).collect();
            if !checks.is_empty() {
                members.insert("assertions".to_owned(), json!(checks));
            }
            if let Some(seconds) = case.scenario.timeout_seconds {
                members.insert("timeout_seconds".to_owned(), json!(seconds));
            }
            note_lost(case, &mut exported.left_out);
            Value::Object(members)
        })
        .collect();
    let mut whole = Map::new();
    if let Some(skill) = skill {
        whole.insert("skill_name".to_owned(), json!(skill));
    }
    whole.insert("evals".to_owned(), Value::Array(cases));
    exported.files.push(("evals.json".to_owned(), pretty(&Value::Object(whole))));
    exported
}

/// Returns the sentences and checks of a case, with those of its scenario.
fn demands(case: &SuiteCase) -> (Vec<&String>, Vec<&Check>) {
    let sentences = case.expectations.iter().chain(&case.scenario.expectations).collect();
    (sentences, case.checks.iter().chain(&case.scenario.checks).collect())
}

fn note_lost(case: &SuiteCase, left_out: &mut Vec<String>) {
    let id = &case.scenario.id;
    for (is_there, what) in [
        (!case.hints.is_empty(), "hints"),
        (!case.scenario.reply_flow.is_empty(), "reply_flow"),
        (!case.facts.is_empty(), "facts"),
        (!case.excerpts.is_empty(), "excerpts"),
        (!case.files.is_empty() || !case.scenario.files.is_empty(), "files"),
    ] {
        if is_there {
            left_out.push(format!("case {id}: `{what}` has no counterpart"));
        }
    }
}

fn promptfoo(suite: &Suite) -> ExportedSuite {
    let mut exported = ExportedSuite::default();
    let mut tests = Vec::new();
    for case in &suite.cases {
        let id = &case.scenario.id;
        if !case.scenario.follow_ups.is_empty() {
            exported.left_out.push(format!("case {id}: it has several messages"));
            continue;
        }
        // promptfoo fills in its own templates in variables too.
        if is_template(&case.prompt) {
            exported.left_out.push(format!("case {id}: its prompt reads like a template"));
            continue;
        }
        let (sentences, checks) = demands(case);
        let mut asserts = Vec::new();
        for check in checks {
            if let Some(mut assert) =
                promptfoo_assert(&check.kind).filter(|assert| !is_template(&assert.to_string()))
            {
                if check.weight.get() != 1.0 {
                    assert["weight"] = json!(check.weight);
                }
                asserts.push(assert);
            } else {
                let words = format!("case {id}: the check `{}`", check.describe());
                exported.left_out.push(words);
            }
        }
        for sentence in sentences {
            if is_template(sentence) {
                let words = selftest_text::one_line(sentence, 60);
                exported.left_out.push(format!("case {id}: \"{words}\" reads like a template"));
            } else {
                asserts.push(json!({"type": "llm-rubric", "value": sentence}));
            }
        }
        note_lost(case, &mut exported.left_out);
        if asserts.is_empty() {
            exported.left_out.push(format!("case {id}: nothing of what it demands can be said"));
            continue;
        }
        tests.push(json!({"description": id, "vars": {"prompt": case.prompt}, "assert": asserts}));
    }
    let whole = json!({"prompts": ["{{prompt}}"], "tests": tests});
    exported.files.push(("promptfooconfig.yaml".to_owned(), pretty(&whole)));
    exported
}

fn promptfoo_assert(kind: &CheckKind) -> Option<Value> {
    let bounds = |bounds: &CountBounds| {
        let (min, max) = bounds.limits();
        match (min, max) {
            (Some(min), Some(max)) if min == max => json!(min),
            (Some(min), Some(max)) => json!({"min": min, "max": max}),
            (Some(min), None) => json!({ "min": min }),
            (None, max) => json!({ "max": max }),
        }
    };
    Some(match kind {
        CheckKind::Contains(text) => json!({"type": "contains", "value": text}),
        CheckKind::NotContains(text) => json!({"type": "not-contains", "value": text}),
        CheckKind::Regex(pattern) => {
            json!({"type": "regex", "value": javascript(pattern.as_str())?})
        }
        CheckKind::NotRegex(pattern) => {
            json!({"type": "not-regex", "value": javascript(pattern.as_str())?})
        }
        CheckKind::Equals(text) => json!({"type": "equals", "value": text}),
        CheckKind::Words(limits) => json!({"type": "word-count", "value": bounds(limits)}),
        CheckKind::Any(checks) => {
            // promptfoo has a choice of texts, and none of other assertions.
            let texts: Option<Vec<&str>> = checks
                .iter()
                .map(|check| match &check.kind {
                    CheckKind::Contains(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            json!({"type": "contains-any", "value": texts?})
        }
        CheckKind::All(checks) => {
            let all: Option<Vec<Value>> =
                checks.iter().map(|check| promptfoo_assert(&check.kind)).collect();
            json!({"type": "assert-set", "assert": all?})
        }
        CheckKind::Not(check) => match promptfoo_assert(&check.kind)? {
            Value::Object(mut members) => {
                let kind = members.get("type")?.as_str()?.to_owned();
                let kind = match kind.strip_prefix("not-") {
                    Some(kind) => kind.to_owned(),
                    // promptfoo negates single assertions only.
                    None if kind == "assert-set" => return None,
                    None => format!("not-{kind}"),
                };
                members.insert("type".to_owned(), json!(kind));
                Value::Object(members)
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Returns a pattern if JavaScript reads it alike; `None` if it lacks such flags, anchors or classes,
/// or would take them for other characters: its `\A` is an `A`.
fn javascript(pattern: &str) -> Option<&str> {
    const OTHERS: [&str; 9] = [r"\A", r"\z", r"\Z", r"\a", r"\p", r"\P", r"\x{", r"\u{", "[[:"];
    let is_other = pattern.replace("(?:", "").contains("(?")
        || OTHERS.iter().any(|other| pattern.contains(other));
    (!is_other).then_some(pattern)
}

/// Returns true if promptfoo would fill in a text as a template.
fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

fn harbor(suite: &Suite) -> ExportedSuite {
    let mut exported = ExportedSuite::default();
    for case in &suite.cases {
        let id = &case.scenario.id;
        let (sentences, checks) = demands(case);
        let lines: Vec<Option<String>> =
            checks.iter().map(|check| shell_test(&check.kind)).collect();
        // A task of Harbor is all or nothing: with one demand less, a wrong answer would earn the
        // reward.
        let why = if !case.scenario.follow_ups.is_empty() {
            Some("it has several messages".to_owned())
        } else if let Some(sentence) = sentences.first() {
            Some(format!("a judge decides \"{}\"", selftest_text::one_line(sentence, 60)))
        } else {
            let lost = checks.iter().zip(&lines).find(|(_, line)| line.is_none());
            lost.map(|(check, _)| format!("a test sees files, not `{}`", check.describe()))
                .or_else(|| checks.is_empty().then(|| "it demands nothing of files".to_owned()))
        };
        if let Some(why) = why {
            exported.left_out.push(format!("case {id}: {why}"));
            continue;
        }
        note_lost(case, &mut exported.left_out);
        let seconds = case.scenario.timeout_seconds.unwrap_or(600.0);
        // Each task is a folder of its own.
        let folder = id.replace('/', "-");
        let config = format!(
            "version = \"1.0\"\n\n[verifier]\ntimeout_sec = 120.0\n\n[agent]\ntimeout_sec = {seconds:.1}\n\n[environment]\ncpus = 1\nmemory_mb = 2048\n"
        );
        let tests: String =
            lines.into_iter().flatten().map(|line| format!("{line} || fail=1\n")).collect();
        let script = format!(
            "#!/bin/bash\ncd /app || exit 1\nfail=0\n{tests}mkdir -p /logs/verifier\necho $((1 - fail)) > /logs/verifier/reward.txt\n"
        );
        for (path, text) in [
            ("task.toml", config),
            ("instruction.md", format!("{}\n", case.prompt.trim_end())),
            ("environment/Dockerfile", "FROM ubuntu:24.04\nWORKDIR /app\n".to_owned()),
            ("tests/test.sh", script),
        ] {
            exported.files.push((format!("{folder}/{path}"), text));
        }
    }
    exported
}

/// Returns a command of the shell that succeeds if a check of files holds.
fn shell_test(kind: &CheckKind) -> Option<String> {
    // Within single quotes a shell interprets nothing; a single quote ends them, stands escaped and
    // begins them again.
    let word = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    // A pattern of several files would need more than a test.
    let plain = |path: &str| (!path.contains('*')).then(|| word(path));
    Some(match kind {
        CheckKind::FileExists(path) | CheckKind::FileCreated(path) => {
            format!("test -e {}", plain(path.as_str())?)
        }
        CheckKind::FileDeleted(path) => format!("test ! -e {}", plain(path.as_str())?),
        // For grep, each line of a text is a text of its own.
        CheckKind::FileContains(wanted) if !wanted.text.as_str().contains('\n') => {
            let path = plain(wanted.path.as_str())?;
            // A text may begin with a dash, like an option: `-e` says that it is none.
            format!("grep -qF -e {} {path}", word(wanted.text.as_str()))
        }
        CheckKind::Not(inner) => format!("! {}", shell_test(&inner.kind)?),
        CheckKind::All(checks) => {
            let all: Option<Vec<String>> =
                checks.iter().map(|check| shell_test(&check.kind)).collect();
            format!("{{ {}; }}", all?.join(" && "))
        }
        CheckKind::Any(checks) => {
            let all: Option<Vec<String>> =
                checks.iter().map(|check| shell_test(&check.kind)).collect();
            format!("{{ {}; }}", all?.join(" || "))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::evals::{self, DemandDecider};
    use crate::suite::SUITE_VERSION;

    fn suite() -> Suite {
        let case = |value: Value| serde_json::from_value::<SuiteCase>(value).unwrap();
        let cases = vec![
            case(json!({"id": "port", "prompt": "Which port?", "reference": "80",
                "expect": [{"contains": "80"}, {"words": {"max": 9}}, "It is brief."]})),
            case(json!({"id": "file", "prompt": "Write it's.md.",
                "expect": [{"file_exists": "it's.md"}, {"not": {"file_exists": "b"}}]})),
        ];
        let (run_id, rubric_digest, prompt_digests) = (None, None, BTreeMap::new());
        Suite { version: SUITE_VERSION, run_id, rubric_digest, prompt_digests, cases }
    }

    #[test]
    fn evals_json_comes_back_as_it_was() {
        let exported = export(&suite(), ExportForm::EvalsJson, Some("ferry"));
        assert!(exported.left_out.is_empty(), "{exported:?}");
        let (name, text) = &exported.files[0];
        let file = evals::read(name, text.as_bytes(), &()).unwrap();
        assert!(file.refused.is_empty() && file.warnings.is_empty(), "{file:?}");
        assert_eq!(file.skill.as_deref(), Some("ferry"));
        let counts = file.counts();
        assert_eq!((counts.typed, counts.judge, counts.unknown), (4, 1, 0), "{file:?}");
        let of_file = file.cases[1].demands.iter().filter_map(|demand| demand.decider.check());
        let wanted: Vec<&CheckKind> =
            suite().cases.leak()[1].checks.iter().map(|it| &it.kind).collect();
        assert_eq!(of_file.map(|check| &check.kind).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn promptfoo_gets_what_it_has_words_for() {
        let exported = export(&suite(), ExportForm::Promptfoo, None);
        assert_eq!(exported.left_out.len(), 3, "{:?}", exported.left_out);
        let (name, text) = &exported.files[0];
        let file = evals::read(name, text.as_bytes(), &()).unwrap();
        assert_eq!(file.cases.len(), 1);
        let judged = |demand: &&crate::evals::CaseDemand| demand.decider == DemandDecider::Judge;
        assert_eq!(file.cases[0].demands.iter().filter(judged).count(), 1);
        assert_eq!(file.counts().typed, 2);
    }

    #[test]
    fn what_promptfoo_would_read_otherwise_is_left_out() {
        for (pattern, is_alike) in [
            (r"(?:a|b)\s+\d", true),
            (r"(?i)a", false),
            (r"\Aa\z", false),
            (r"\p{L}", false),
            ("[[:alpha:]]", false),
        ] {
            assert_eq!(javascript(pattern).is_some(), is_alike, "{pattern}");
        }
        let mut suite = suite();
        suite.cases.truncate(1);
        let with_template = json!({"id": "port", "prompt": "Which port?",
            "expect": [{"contains": "{{port}}"}, {"contains": "80"}, "It names {{port}}."]});
        suite.cases[0] = serde_json::from_value(with_template).unwrap();
        let exported = export(&suite, ExportForm::Promptfoo, None);
        assert_eq!(exported.left_out.len(), 2, "{:?}", exported.left_out);
        assert!(!exported.files[0].1.contains("{{port}}"), "{:?}", exported.files);
    }

    #[test]
    fn harbor_gets_what_a_test_can_see() {
        let exported = export(&suite(), ExportForm::Harbor, None);
        assert_eq!(exported.left_out.len(), 1, "{:?}", exported.left_out);
        let paths: Vec<&str> = exported.files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "file/task.toml",
                "file/instruction.md",
                "file/environment/Dockerfile",
                "file/tests/test.sh"
            ]
        );
        let script = &exported.files[3].1;
        assert!(script.contains(r"test -e 'it'\''s.md' || fail=1"), "{script}");
        assert!(script.contains("! test -e 'b' || fail=1"), "{script}");
    }
}
