//! Tests of suite files: written, read again, and invalid.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use selftest_checks::check::Check;
use selftest_checks::scenario::{
    CaseGrounds, FileExcerpt, GeneratedCase, JudgeRole, ReplyStep, Scenario, TaskStatus,
};
use selftest_checks::suite::{SUITE_VERSION, SuiteCase};
use selftest_stats::score::{Score, Strictness};

fn read(text: &str) -> Result<Suite, ConfigErrors> {
    parse(Path::new("config/suites/a.yaml"), text.to_owned())
}

fn case(id: &str, prompt: &str, hints: &str) -> SuiteCase {
    let scenario = Scenario {
        id: id.to_owned(),
        description: "Asks back".to_owned(),
        expected_status: TaskStatus::AwaitingResponse,
        requires_reply: true,
        reply_flow: vec![ReplyStep {
            reply: "Flat: yes, \"please\"".to_owned(),
            expected_status: TaskStatus::Complete,
        }],
        follow_ups: Vec::new(),
        strictness: Some(Strictness::new(0.7).unwrap()),
        min_score_to_pass: Some(Score::new(0.6).unwrap()),
        allow_minor_format_deviation: Some(true),
        max_questions_allowed: Some(5),
        timeout_seconds: Some(60.0),
        expectations: vec!["The answer is short: \"yes\".".to_owned()],
        checks: checks(),
        reference: Some("Yes.\n\n- flat".to_owned()),
        files: vec!["docs/usage.md".to_owned()],
    };
    let (prompt, hints) = (prompt.to_owned(), hints.to_owned());
    let grounds = CaseGrounds {
        expectations: vec!["The answer asks: flat or nested?".to_owned()],
        checks: checks(),
        facts: vec!["The page is `flat`.".to_owned()],
        excerpts: vec![FileExcerpt {
            path: "docs/usage.md".to_owned(),
            text: "# Usage\n\nThe page is `flat`.\n".to_owned(),
        }],
        reference: Some("Which: flat or nested?".to_owned()),
        judge: JudgeRole::Advises,
    };
    let case = SuiteCase::new(scenario, GeneratedCase { prompt, hints, grounds });
    SuiteCase { files: vec!["README.md".to_owned()], ..case }
}

fn checks() -> Vec<Check> {
    serde_json::from_value(json!([
        {"contains": "port: 80 # \"\u{85}\u{2028}\n"},
        {"name": "three", "weight": 2.5, "lines": {"max": 3}},
        {"not": {"any": [{"regex": "^a\\b"}, {"tool_called": {"name": "Bash", "arguments": {"a": null}}}]}},
        {"json": {"pointer": "/a", "equals": {"b": [1, 2.5, true, "yes"]}}},
    ]))
    .unwrap()
}

fn suite(cases: Vec<SuiteCase>) -> Suite {
    Suite {
        version: SUITE_VERSION,
        run_id: Some("selftest-20260206-1234-bcdfgh".to_owned()),
        rubric_digest: Some("d".repeat(64)),
        prompt_digests: BTreeMap::from([("judge/rubric.md".to_owned(), "e".repeat(64))]),
        cases,
    }
}

#[test]
fn a_suite_for_people() {
    let mut plain = case("plain", "Explain the build.", "names cargo: \\ and #");
    plain.scenario = Scenario {
        requires_reply: false,
        reply_flow: Vec::new(),
        strictness: None,
        ..plain.scenario
    };
    let flow = case("flow", "Sort the docs.\n\n  - flat\n  - nested", "asks \u{1b}[31mfirst");
    let suite = suite(vec![plain, flow]);
    let text = suite_text(&suite);
    assert_eq!(read(&text).unwrap(), suite);
    insta::assert_snapshot!(text);
}

#[test]
fn every_mistake_has_its_line() {
    let broken = "\
version: 2
runid: selftest-20260206-1234-bcdfgh
cases:
  - scenario:
      id: clear
      description: d
      expected_status: DONE
    prompt:
    hints: h
  - scenario:
      id: clear
      description: d
      expected_status: COMPLETE
      requires_reply: true
    prompt: p
    prompt: q
    hnits: h
  - id: loose
    prompt: p
    hints: h
";
    insta::assert_snapshot!(read(broken).unwrap_err());
}

#[test]
fn a_broken_check_has_its_line() {
    let broken = "\
version: 1
cases:
  - scenario:
      id: clear
      description: d
      expected_status: COMPLETE
      checks:
        - contians: port
    prompt: p
    hints: h
    checks:
      - lines: {min: 3, max: 1}
      - any:
          - regex: \"(a\"
          - { contains: x, regex: y }
      - json: { schema: { $ref: http://example.org/schema.json } }
";
    insta::assert_snapshot!(read(broken).unwrap_err());
}

#[test]
fn what_is_no_suite_is_refused() {
    let absent = load(Path::new("absent/suite.yaml")).unwrap_err().to_string();
    let all: Vec<String> = ["", "cases: []\nversion: 1\n", "hello\n", "version: 1\ncases: [a\n"]
        .into_iter()
        .map(|text| read(text).unwrap_err().to_string())
        .chain([absent])
        .collect();
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn thousands_of_cases_are_read() {
    let long = "Explain what the module does, in three lines.\nName a file.";
    let cases = (0..5_000).map(|at| case(&format!("case-{at}"), long, long)).collect();
    let suite = suite(cases);
    assert_eq!(read(&suite_text(&suite)).unwrap().cases.len(), 5_000);
}

proptest! {
    #[test]
    fn what_is_written_reads_as_the_same(
        prompt in "[ -~\n\té\u{85}\u{2028}\u{feff}|>#:'\"-]{1,60}",
        hints in "\\PC{1,40}",
        description in ".{1,30}",
        id in "[A-Za-z0-9][A-Za-z0-9_-]{0,20}(/[A-Za-z0-9][A-Za-z0-9_-]{0,20})?",
        converses in any::<bool>(),
    ) {
        let mut case = case(&id, &prompt, &hints);
        case.scenario.description = description;
        if converses {
            case.scenario.requires_reply = false;
            case.scenario.reply_flow.clear();
            case.scenario.follow_ups = vec![hints];
        }
        let suite = suite(vec![case]);
        prop_assert_eq!(read(&suite_text(&suite)).unwrap(), suite);
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = read(&text);
    }
}
