//! A week that is really worse than the four before it: who is alerted, and how often.

use serde_json::Value;

use super::receiver::Receiver;
use super::weekly::five_weeks;
use crate::run::Run;
use crate::workspace::{NOBODY, Workspace};

fn told(workspace: Workspace, alerts: &str) -> Workspace {
    workspace.grade_config(&format!("{{ alerts: {{ {alerts} }} }}"))
}

#[track_caller]
fn report(workspace: &Workspace) -> Run {
    workspace.clone().grade(&["weekly", "--week=2026-W47"]).run().exit(0)
}

fn metrics(body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap();
    assert_eq!((&body["kind"], &body["week"]), (&"selftest.alerts".into(), &"2026-W47".into()));
    let alerts = body["alerts"].as_array().unwrap();
    alerts.iter().map(|alert| alert["metric"].as_str().unwrap().to_owned()).collect()
}

const ALL: [&str; 2] = ["tool_efficiency", "error_rate"];

#[test]
fn on_stdout_and_in_the_report() {
    let workspace = five_weeks();
    let run = report(&workspace);
    assert_eq!(run.stdout.matches("ALERT: ").count(), 2, "{}", run.stdout);
    let run = run.stdout_contains("ALERT: Tool efficiency: worse than before, 1.0 this week");
    let page = run.read("docs/reports/weekly/2026-W47.md");
    assert!(page.contains("Tool efficiency: worse than before"), "{page}");
    let index = run.read("docs/reports/weekly/index.md");
    assert!(index.contains("tool efficiency, error rate"), "{index}");
    // What is on the page is said again: only receivers are spared.
    assert_eq!(report(&workspace).stdout.matches("ALERT: ").count(), 2);
}

#[test]
fn a_week_like_the_others_raises_none() {
    let workspace = five_weeks();
    let run = workspace.grade(&["weekly", "--week=2026-W46"]).run().exit(0);
    assert!(!run.stdout.contains("ALERT"), "{}", run.stdout);
}

#[test]
fn a_command_gets_them_once() {
    let workspace = told(five_weeks(), r#"command: [sh, -c, "cat >> told.json"]"#);
    let run = report(&workspace);
    assert_eq!(metrics(run.read("told.json").as_bytes()), ALL);
    let run = report(&workspace);
    assert_eq!(metrics(run.read("told.json").as_bytes()), ALL, "and not a second time");
}

#[test]
fn a_webhook_gets_them_once() {
    let receiver = Receiver::answering(204);
    let workspace = told(five_weeks(), &format!("webhook: \"{}\"", receiver.address));
    let run = report(&workspace);
    assert_eq!(run.stdout.matches("ALERT: ").count(), 2);
    let _ = report(&workspace);
    let requests = receiver.requests.lock().unwrap();
    let [request] = &requests[..] else { panic!("{} requests", requests.len()) };
    assert_eq!((&*request.method, &*request.path), ("POST", "/hook?token=t0p-s3cret"));
    let kind = request.headers.iter().find(|(name, _)| name == "content-type");
    assert_eq!(kind.unwrap().1, "application/json");
    assert_eq!(metrics(&request.body), ALL);
}

#[test]
fn a_receiver_that_fails_is_a_warning() {
    let refusing = Receiver::answering(500);
    for (alerts, words) in [
        (
            r#"command: [sh, -c, "exit 3"]"#.to_owned(),
            "alert command \"sh\" failed: exit status: 3",
        ),
        ("command: [no-such-program-here]".to_owned(), "alert command \"no-such-program-here\""),
        (format!("webhook: \"{}\"", refusing.address), "the server answered 500"),
        (
            format!("webhook: \"http://{NOBODY}/hook?token=t0p-s3cret\""),
            "alert webhook at http://127.0.0.1:1 failed: Connection refused",
        ),
    ] {
        let run = report(&told(five_weeks(), &alerts));
        assert!(run.stdout.contains("2026-W47.md") && run.stdout.contains("ALERT: "));
        let run = run.stderr_contains("warning: the ").stderr_contains(words);
        assert!(!run.stderr.contains("t0p-s3cret"), "{}", run.stderr);
    }
}

#[test]
fn a_receiver_that_works_is_not_told_again_for_one_that_does_not() {
    let alerts = format!(
        r#"command: [sh, -c, "cat >> told.json"], webhook: "http://{NOBODY}/hook?token=t0p-s3cret""#
    );
    let workspace = told(five_weeks(), &alerts);
    for _ in 0..3 {
        let run = report(&workspace).stderr_contains("alert webhook at http://127.0.0.1:1 failed");
        assert_eq!(metrics(run.read("told.json").as_bytes()), ALL);
    }
    let kept = &workspace.sql("SELECT report_json FROM weekly_reports")[0][0];
    assert!(kept.contains("\"delivered_to\":{\"command ") && !kept.contains("t0p"), "{kept}");
}

#[test]
fn a_receiver_that_is_named_later_hears_of_the_week() {
    let workspace = five_weeks();
    let _ = report(&workspace);
    let run = report(&told(workspace.clone(), r#"command: [sh, -c, "cat >> told.json"]"#));
    assert_eq!(metrics(run.read("told.json").as_bytes()), ALL);
    let receiver = Receiver::answering(204);
    let both = format!(r#"command: [sh, -c, "cat >> told.json"], webhook: "{}""#, receiver.address);
    let run = report(&told(workspace, &both));
    assert_eq!(metrics(run.read("told.json").as_bytes()), ALL, "and not a second time");
    assert_eq!(receiver.requests.lock().unwrap().len(), 1);
}

#[test]
fn what_did_not_arrive_is_sent_again() {
    let workspace =
        told(five_weeks(), r#"command: [sh, -c, "cat > told.json; test -e receiver-is-up"]"#);
    let run = report(&workspace).stderr_contains("warning: the alert command");
    assert_eq!(metrics(run.read("told.json").as_bytes()), ALL);
    let workspace = workspace.file("told.json", "").file("receiver-is-up", "");
    assert_eq!(metrics(report(&workspace).read("told.json").as_bytes()), ALL);
    let workspace = workspace.file("told.json", "nothing");
    assert_eq!(report(&workspace).read("told.json"), "nothing", "it has arrived");
}
