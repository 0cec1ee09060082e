//! `selftest report comment` against a scripted GitHub: written, updated, refused.

use crate::github::{GitHub, Refusal, TOKEN};
use crate::model_server::ModelServer;
use crate::run::Run;
use crate::workspace::Workspace;

const MARKER: &str = "<!-- selftest:comment main -->";

/// A project with a run in which an answer is hostile.
fn project() -> Workspace {
    let server = ModelServer::script()
        .sut(|_| {
            serde_json::json!({
                "status": "COMPLETE",
                "output": "@everyone ![x](https://evil.example/p.png) <img src=x> fixes #1 ``` end",
            })
        })
        .judge(|call| crate::model_server::verdict(call, 0.2))
        .start();
    let workspace = Workspace::simple(&server);
    let _ = workspace.run().exit(1);
    workspace.args(["report", "comment"])
}

fn comment(github: &GitHub, workspace: &Workspace, args: &[&str]) -> Run {
    let fixed = ["report", "comment", "--repo=acme/agent", "--number=7"];
    github.commenting(workspace).args(fixed.iter().chain(args)).run().nowhere(TOKEN)
}

#[test]
fn a_comment_is_written_and_then_updated() {
    let (github, workspace) = (GitHub::start(), project());
    let _ = comment(&github, &workspace, &[])
        .exit(0)
        .stderr_contains("comment written on acme/agent#7: https://github.example/");
    assert!(github.comment(0).starts_with(&format!("{MARKER}\n## selftest: failed")));
    let _ = comment(&github, &workspace, &[]).exit(0).stderr_contains("comment updated");
    assert_eq!(github.comments(), 1);
    let _ = comment(&github, &workspace, &["--key=other"]).exit(0).stderr_contains("written");
    assert_eq!(github.comments(), 2, "another job has a comment of its own");
    assert!(github.comment(1).starts_with("<!-- selftest:comment other -->"));
    // What was said can be read and can do nothing.
    let text = github.comment(0);
    assert!(text.contains("```text\n@everyone") || text.contains("````text\n@everyone"), "{text}");
    assert!(!text.split("```").step_by(2).any(|part| part.contains("@everyone")), "{text}");
}

#[test]
fn an_old_comment_is_found_behind_many_others() {
    let mut github = GitHub::start();
    for _ in 0..230 {
        github = github.with_comment("hello", "User");
    }
    let github = github.with_comment(&format!("{MARKER}\nold"), "Bot");
    let _ = comment(&github, &project(), &[]).exit(0).stderr_contains("updated");
    assert_eq!(github.comments(), 231);
    assert!(github.comment(230).contains("## selftest: failed"));
    // Whoever only quotes the marker is left alone.
    let github = GitHub::start().with_comment(&format!("I saw {MARKER}"), "User");
    let _ = comment(&github, &project(), &[]).exit(0).stderr_contains("written");
    assert_eq!(github.comments(), 2);
}

#[test]
fn a_dry_run_prints_and_sends_nothing() {
    let github = GitHub::start();
    let run = comment(&github, &project(), &["--dry-run"]).exit(0);
    assert!(run.stdout.starts_with(MARKER), "{}", run.stdout);
    assert!(github.requests().is_empty());
    // It needs neither token nor target.
    let _ = project().args(["report", "comment", "latest", "--dry-run"]).run().exit(0);
}

fn refusal(code: u16, headers: Vec<(&'static str, &'static str)>, times: usize) -> Refusal {
    let message = "no ghp_0123456789abcdefghij \u{1b}[31m";
    Refusal { code, headers, message, times }
}

#[test]
fn refusals_say_what_to_do_and_not_the_token() {
    let workspace = project();
    for (code, headers, words, hint) in [
        (401, vec![], "the token is not valid (401", "set GITHUB_TOKEN"),
        (403, vec![], "the token may not comment on acme/agent (403", "pull-requests: write"),
        (404, vec![], "there is no acme/agent#7, or the token cannot see it (404", "--repo"),
        (422, vec![], "acme/agent#7 takes no such comment (422", "locked"),
        (301, vec![("location", "http://127.0.0.1:1/")], "acme/agent has moved (301", "--repo"),
        (500, vec![], "it gave no comment (500", "later"),
        (429, vec![("retry-after", "3600")], "rate limit (429), for 3600 s more", "later"),
        (403, vec![("retry-after", "3600")], "rate limit (403), for 3600 s more", "later"),
        (
            403,
            vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "9999999999")],
            "rate limit (403)",
            "later",
        ),
    ] {
        let github = GitHub::start();
        github.refuse(refusal(code, headers, 9));
        let run = comment(&github, &workspace, &[]).exit(5);
        let _ = run.one_error(&[words]).stderr_contains("hint: ").stderr_contains(hint);
        assert_eq!(github.comments(), 0);
    }
}

#[test]
fn a_short_wait_is_waited_for() {
    for (code, headers) in [(429, vec![("retry-after", "0")]), (403, vec![("retry-after", "0")])] {
        let github = GitHub::start();
        github.refuse(refusal(code, headers.clone(), 2));
        let _ = comment(&github, &project(), &[]).exit(0).stderr_contains("written");
        github.refuse(refusal(code, headers, 3));
        let _ = comment(&github, &project(), &[]).exit(5).one_error(&["rate limit"]);
    }
}

#[test]
fn a_target_that_nobody_names() {
    let (github, workspace) = (GitHub::start(), project());
    let run = |workspace: &Workspace, args: &[&str]| {
        github.commenting(workspace).args(["report", "comment"].iter().chain(args)).run()
    };
    let _ = run(&workspace, &[]).exit(2).one_error(&["GITHUB_REPOSITORY is not set"]);
    let _ = run(&workspace, &["--repo=acme"]).exit(2).one_error(&["`acme` is no repository"]);
    let _ = run(&workspace, &["--repo=../x"]).exit(2).one_error(&["is no repository"]);
    let _ = run(&workspace, &["--repo=acme/agent"]).exit(2).one_error(&["no pull request"]);
    let here = workspace.clone().env("GITHUB_REPOSITORY", "acme/agent");
    let event = |text: &str| {
        let workspace = here.clone().file("event.json", text);
        let path = workspace.path("event.json");
        workspace.env("GITHUB_EVENT_PATH", path)
    };
    let _ = run(&event("{}"), &[]).exit(2).one_error(&["no pull request"]);
    let _ = run(&event("{"), &[]).exit(2).one_error(&["GITHUB_EVENT_PATH"]);
    let _ = run(&event("{\"pull_request\": {\"number\": 7}}"), &[]).exit(0);
    let _ = run(&event("{\"number\": 8}"), &[]).exit(5).one_error(&["no acme/agent#8"]);
    let from_ref = here.env("GITHUB_REF", "refs/pull/7/merge");
    let _ = run(&from_ref, &[]).exit(0);
    // Without a token, without GitHub, over an open line, offline.
    let _ = from_ref.clone().args(["report", "comment"]).run().exit(2).one_error(&["GITHUB_TOKEN"]);
    let open = from_ref.clone().env("GH_TOKEN", TOKEN).env("GITHUB_API_URL", "http://e.example");
    let _ = open.args(["report", "comment"]).run().exit(2).one_error(&["unencrypted"]);
    let gone = from_ref.clone().env("GH_TOKEN", TOKEN).env("GITHUB_API_URL", "http://127.0.0.1:1");
    let _ = gone
        .args(["report", "comment"])
        .run()
        .exit(5)
        .one_error(&["http://127.0.0.1:1"])
        .nowhere(TOKEN);
    let _ = run(&from_ref, &["--offline"]).exit(2).one_error(&["--offline forbids it"]);
}
