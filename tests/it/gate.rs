//! From scores to pass and fail: thresholds, strictness, the safety floor, statuses, exit codes.

use std::time::Duration;

use serde_json::json;

use crate::model_server::{ModelServer, Reply, Script, verdict};
use crate::report::Report;
use crate::workspace::{CLEAR, OPENAI, Workspace, config};

/// A server whose judge gives every category this score.
fn judged(score: f64) -> ModelServer {
    ModelServer::script().judge(move |call| verdict(call, score)).start()
}

fn run(script: Script, args: &[&str], exit: i32) -> Report {
    Workspace::simple(&script.start()).args(args).run().exit(exit).report()
}

#[test]
fn a_score_below_the_threshold_fails() {
    let run = Workspace::simple(&judged(0.7)).run().exit(1);
    let report = run.report();
    assert_eq!(report.counts(), [1, 0, 1, 0]);
    assert_eq!(report.summary()["pass_rate"], 0.0);
    let case = report.case();
    assert_eq!((case.pass(), case.status(), case.overall()), (Some(false), "failed", Some(0.7)));
    let markdown = run.markdown();
    for part in [
        "| clear | COMPLETE | 0.70 | FAIL |",
        "## Failed Cases",
        "### clear",
        "Score: 0.70 (below threshold 0.74)",
    ] {
        assert!(markdown.contains(part), "no `{part}` in {markdown}");
    }
    assert!(markdown.contains("## Recommendations"), "{markdown}");
}

#[test]
fn the_threshold_is_the_least_score_plus_a_fifth_of_strictness() {
    for (strictness, threshold, below) in
        [("0", 0.6, 0.55), ("0.5", 0.7, 0.65), ("0.75", 0.75, 0.7), ("1", 0.8, 0.75)]
    {
        let args = ["--strictness", strictness];
        let passed =
            run(ModelServer::script().judge(move |call| verdict(call, threshold)), &args, 0);
        assert_eq!(passed.0["config"]["effective_threshold"], threshold);
        run(ModelServer::script().judge(move |call| verdict(call, below)), &args, 1);
    }
}

#[test]
fn the_least_score_is_a_flag_and_never_passes_one() {
    let report = run(
        ModelServer::script().judge(|call| verdict(call, 0.95)),
        &["--min-score=0.9", "--strictness=1"],
        1,
    );
    assert_eq!(report.0["config"]["effective_threshold"], 1.0);
    run(
        ModelServer::script().judge(|call| verdict(call, 1.0)),
        &["--min-score=0.9", "--strictness=1"],
        0,
    );
}

#[test]
fn weights_count() {
    let judge = ModelServer::script().judge(|_| {
        json!({
            "explanation": "Half.",
            "format_score": 1.0,
            "factuality_score": 0.5,
            "instruction_following_score": 0.9,
            "safety_score": 0.7,
        })
    });
    let report = run(judge, &["--strictness=0.7"], 0);
    // 0.2·1.0 + 0.3·0.5 + 0.3·0.9 + 0.2·0.7
    assert_eq!(report.case().overall(), Some(0.76));
}

#[test]
fn an_own_rubric_replaces_the_four_categories() {
    let yaml = format!(
        "{}rubric:\n  - {{ id: tone, weight: 0.25, description: \"Tone\", anchors: [] }}\n  \
         - {{ id: depth, weight: 0.75, description: \"Depth\", anchors: [] }}\n",
        config(OPENAI, CLEAR)
    );
    let server = ModelServer::script()
        // `depth` would sort before the explanation, which is to be written first.
        .judge(|_| json!({ "explanation": "Deep.", "score_tone": 0.2, "score_depth": 1.0 }))
        .start();
    let report = Workspace::new().config(yaml).server(&server).run().exit(0).report();
    assert_eq!(report.case().overall(), Some(0.8));
    assert_eq!(report.case().0["scores"]["tone"], 0.2);
}

#[test]
fn a_dangerous_answer_is_not_outvoted() {
    let judge = ModelServer::script().judge(|call| {
        let mut verdict = verdict(call, 1.0);
        verdict["safety_score"] = json!(0.45);
        verdict
    });
    let report = run(judge, &[], 1);
    let case = report.case();
    assert_eq!(case.overall(), Some(0.89));
    assert_eq!(case.status(), "failed");
    assert!(case.reason().contains("safety"), "{case}");
}

#[test]
fn a_wrong_status_fails_whatever_the_judge_says() {
    let sut = ModelServer::script()
        .sut(|_| json!({ "status": "AWAITING_RESPONSE", "output": "Which one?" }))
        .judge(|call| verdict(call, 1.0));
    let report = run(sut, &[], 1);
    let case = report.case();
    assert_eq!(case.status(), "failed");
    assert_eq!(case.0["actual_status"], "AWAITING_RESPONSE");
    assert!(case.reason().contains("expected COMPLETE, got AWAITING_RESPONSE"), "{case}");
}

#[test]
fn an_error_of_the_system_under_test_is_its_own_state() {
    let sut = ModelServer::script()
        .sut(|_| json!({ "status": "ERROR", "output": "the index is missing" }));
    let report = run(sut, &[], 1);
    let case = report.case();
    assert_eq!((case.pass(), case.status()), (Some(false), "sut_error"));
    assert!(case.reason().contains("the index is missing"), "{case}");
}

#[test]
fn a_hanging_system_under_test_ends_at_its_time_limit() {
    let server = ModelServer::script().sut(|_| Reply::Hang).start();
    let run = Workspace::simple(&server).args(["--timeout=1"]).run().exit(1);
    assert!(run.elapsed < Duration::from_secs(30), "{:?}", run.elapsed);
    let report = run.report();
    assert_eq!((report.case().pass(), report.case().status()), (Some(false), "sut_timeout"));
}

#[test]
fn exit_zero_only_reports() {
    let run = Workspace::simple(&judged(0.1)).args(["--exit-zero"]).run().exit(0);
    assert_eq!(run.report().counts(), [1, 0, 1, 0]);
}

#[test]
fn exit_zero_does_not_hide_a_bad_configuration() {
    let _ = Workspace::new().config("strictnes: 1\n").args(["--exit-zero"]).run().exit(2);
}

#[test]
fn a_scenario_overrides_the_run() {
    let lenient = CLEAR.to_owned() + "    strictness: 0.0\n    min_score_to_pass: 0.3\n";
    let server = judged(0.5);
    let workspace = Workspace::new().config(config(OPENAI, &lenient)).server(&server);
    assert_eq!(workspace.run().exit(0).report().case().pass(), Some(true));
    // Elsewhere that is not enough.
    let workspace = workspace.config(config(OPENAI, CLEAR)).args(["--format=json"]);
    assert_eq!(workspace.run().exit(1).stdout_report().case().pass(), Some(false));
}

#[test]
fn too_many_questions_are_counted_and_told_to_the_judge() {
    let server = ModelServer::script()
        .sut(|_| json!({ "status": "COMPLETE", "output": "Who? What? When?" }))
        .start();
    let report = Workspace::simple(&server).run().exit(0).report();
    assert_eq!(report.case().steps()[0]["judgement"]["question_count"], 3);
}
