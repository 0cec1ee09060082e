//! The pages of a run and of its cases: what changed against the baseline, why, and what came instead
//! of what was expected.

use serde_json::json;

use super::ci_report::compared;
use super::site::{Contents, Site};
use selftest_harness::outcome::CaseStatus;
use selftest_reports::document::ReportDocument;

fn get(document: ReportDocument, path: &str) -> String {
    let run_id = document.run_id.to_string();
    let site = Site::with(Contents { runs: vec![document], ..Contents::default() });
    let (status, html) = site.get(&format!("/selftests/{run_id}{path}"));
    assert_eq!(status, 200, "{html}");
    assert!(!html.contains("<script>document"), "{html}");
    html
}

#[test]
fn a_run_says_what_changed_and_states_a_cause_once() {
    let mut document = compared();
    for at in [3, 4] {
        let case = &mut document.cases[at];
        case.status = CaseStatus::SutError;
        case.pass = Some(false);
        case.reason = Some("the program ended with exit code 7".to_owned());
        case.steps.clear();
    }
    let html = get(document, "");
    for part in [
        "1 regression, 1 flaky case, 1 fixed case, 1 new case, 6 cases compared with the baseline",
        "REGRESSION contradiction_detect: passed before, fails now",
        "FIXED ambiguous_request: failed before, passes now",
        ">REGRESSION</span>",
        ">FLAKY</span>",
        ">NEW</span>",
        "no more there: ",
        "<b>cause 1</b>",
        "json_only and unsafe_cleanup",
        "<summary>Isolation: 1 protection enforced</summary>",
    ] {
        assert!(html.contains(part), "no {part} in {html}");
    }
    assert_eq!(html.matches("exit code 7").count(), 1, "{html}");
    let place = |words: &str| html.find(&format!(">{words}</a>")).unwrap();
    assert!(place("contradiction_detect") < place("docs_reorganization"), "a regression is first");
    assert!(place("docs_reorganization") < place("three_line_summary"), "then what failed");
}

#[test]
fn a_case_shows_what_was_expected_and_what_came() {
    let mut document = compared();
    let case = &mut document.cases[2];
    let call = json!({ "name": "read_file", "arguments": { "path": "<b>" } });
    let reply = case.steps[0].reply.as_mut().unwrap();
    "The ferry leaves at nine".clone_into(&mut reply.output);
    reply.tool_calls = Some(vec![serde_json::from_value(call).unwrap()]);
    case.grounds.reference = Some("The ferry leaves at seven".to_owned());
    case.grounds.expectations = vec!["It names the hour".to_owned()];
    case.grounds.facts = vec!["The ferry leaves at seven.".to_owned()];
    let html = get(document, "/contradiction_detect");
    for part in [
        "REGRESSION</span> against the baseline: score 0.90 then, 0.45 now",
        "The ferry leaves at <del>seven</del><ins>nine</ins>",
        "<h2>Reference against answer</h2>",
        "<li>It names the hour</li>",
        "<summary>1 call</summary>",
        "read_file {&#34;path&#34;:&#34;&#60;b&#62;&#34;}",
        "<summary>Facts of the project</summary>",
    ] {
        assert!(html.contains(part), "no {part} in {html}");
    }
}
