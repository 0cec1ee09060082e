//! Each command of `selftest improve skills`, and what is wrong on its command line.

use super::shows;
use crate::workspace::Workspace;

/// docs/spec/skills-and-signals.md#skill-effectiveness: `promote_skill`, `score_all_skills` with
/// its keys and what it updates, `rollback_skill`, `disable_skill`.
#[test]
fn a_skill_from_its_promotion_to_its_rollback() {
    let workspace = Workspace::new();
    let run = workspace.skills(&["list"]).run().exit(4);
    let _ = run.stderr_contains("no skill is known yet").stderr_contains("hint: ");

    let workspace = workspace.promoted("pr", "# PR").promoted("pr", "# A better PR");
    assert_eq!(workspace.statuses("pr"), ["2 active", "1 superseded"]);
    let contents = workspace.sql("SELECT content FROM skill_versions ORDER BY version");
    assert_eq!(contents, [["# PR"], ["# A better PR"]]);

    let workspace = workspace.used("pr", "success", 3).used("pr", "error", 1);
    shows(workspace.skills(&["score"]).run().exit(0), "skills_score_insufficient");
    let workspace = workspace.used("pr", "timeout", 1).promoted("plan", "# Plan");
    shows(workspace.skills(&["score"]).run().exit(0), "skills_score");
    let json = workspace.skills(&["score", "--json"]).run().exit(0).json();
    // `score_all_skills`: the specified keys. 0.4 * 3 / 5 + 0.25 + 0.2.
    assert_eq!(
        json["scores"],
        serde_json::json!([
            { "skill_name": "plan", "version": "1", "score": null, "total_executions": 0 },
            { "skill_name": "pr", "version": "2", "score": 0.69, "total_executions": 5 },
        ])
    );
    let kept = workspace.sql(
        "SELECT effectiveness_score, total_executions, last_scored_at IS NOT NULL \
         FROM skill_versions WHERE skill_name = 'pr' AND is_active",
    );
    assert_eq!(kept, [["0.69", "5", "1"]]);

    shows(workspace.skills(&["rollback", "pr"]).run().exit(0), "skills_rollback");
    assert_eq!(workspace.statuses("pr"), ["1 active", "2 disabled"]);
    let run = workspace.skills(&["disable", "pr", "--reason", "not needed"]).run().exit(0);
    shows(run, "skills_disable");
    shows(workspace.skills(&["list"]).run().exit(0), "skills_list");
    let run = workspace.skills(&["promote", "pr", "--version", "2"]).run().exit(0);
    shows(run, "skills_promote_again");
    assert_eq!(workspace.statuses("pr"), ["2 active", "1 disabled"]);
    shows(workspace.skills(&["history", "pr"]).run().exit(0), "skills_history");
    assert_eq!(
        workspace.actions("pr"),
        ["promote", "promote", "rollback", "promote", "disable", "promote"]
    );
}

/// docs/spec/skills-and-signals.md#recording-executions: one row, and its id is a UUID.
#[test]
fn one_execution_is_one_row() {
    let workspace = Workspace::new().promoted("pr", "# PR");
    let words = [
        "record",
        "--skill",
        "pr",
        "--version",
        "1",
        "--status",
        "timeout",
        "--session",
        "s-1",
        "--time-ms",
        "1500",
        "--turns",
        "4",
        "--error",
        "too late",
        "--edited",
    ];
    let run = workspace.skills(&words).run().exit(0);
    let _ = run.stdout_contains("recorded: pr, version 1: timeout");
    let rows = workspace.sql(
        "SELECT user_id, session_id, execution_status, user_edited_output, user_sent_thank_you, \
         user_repeated_request, conversation_turns, execution_time_ms, error_message \
         FROM skill_executions",
    );
    assert_eq!(rows, [["local", "s-1", "timeout", "1", "0", "0", "4", "1500", "too late"]]);
    let json = workspace.skills(&[&words[..], &["--json"]].concat()).run().exit(0).json();
    assert_eq!(json["execution_status"], "timeout");
    assert_eq!(json["id"].as_str().unwrap().len(), 36);
}

/// docs/spec/skills-and-signals.md#next-message: the next message updates the execution before it.
#[test]
fn the_next_message_is_kept_as_what_it_says() {
    let workspace = Workspace::new().promoted("pr", "# PR");
    let record = |words: &[&str]| workspace.skills(&[&["record"], words].concat()).run();
    let used = ["--skill", "pr", "--status", "success", "--session", "s"];
    let _ = record(&used).exit(0);
    let thanks = ["--session", "s", "--message", "Thank you, that is perfect!"];
    let run = record(&thanks).exit(0);
    let _ = run
        .stdout_contains("gratitude: yes, repetition: unknown without --previous, frustration: no");
    // A later message is not the next one.
    let _ = record(&thanks).exit(4).stderr_contains("waits for a message");
    let _ = record(&used).exit(0);
    let again =
        ["--session", "s", "--message", "open the pull request", "--previous", "open pull request"];
    let json = record(&[&again[..], &["--json", "--edited"]].concat()).exit(0).json();
    assert_eq!((&json["signals"]["repetition"], &json["counted"]), (&true.into(), &true.into()));
    let flags = workspace.sql(
        "SELECT user_sent_thank_you, user_repeated_request, user_edited_output \
         FROM skill_executions ORDER BY created_at",
    );
    assert_eq!(flags, [["1", "0", "0"], ["0", "1", "1"]]);
    // What was written is nowhere.
    let _ = record(&["--session", "t", "--message", "Thank you, that is perfect!"])
        .exit(4)
        .nowhere("that is perfect");
}

#[test]
fn users_are_kept_apart() {
    let workspace = Workspace::new().promoted("pr", "# PR");
    let other = workspace.clone().env("SELFTEST_USER", "ada");
    let _ = other.skills(&["list"]).run().exit(4);
    let _ = other.skills(&["disable", "pr"]).run().exit(2).stderr_contains("no skill \"pr\"");
    let other = other.promoted("pr", "# Mine");
    let users = workspace.sql("SELECT user_id, version FROM skill_versions ORDER BY user_id");
    assert_eq!(users, [["ada", "1"], ["local", "1"]]);
    let third = other.env("SELFTEST_SKILLS_USER_ID", "bob");
    let _ = third.skills(&["list"]).run().exit(4);
}

#[test]
fn secrets_are_taken_out() {
    let workspace = Workspace::new().promoted("pr", "# PR").env("OPENAI_API_KEY", "open-sesame-77");
    let secret = "sk-proj-0123456789abcdefghij";
    let error = format!("no access with {secret} or open-sesame-77");
    let words = ["record", "--skill", "pr", "--status", "error", "--error", &error];
    let _ = workspace.skills(&words).run().exit(0).nowhere(secret).nowhere("open-sesame-77");
    let reason = format!("it prints {secret}");
    let run = workspace.skills(&["disable", "pr", "--reason", &reason]).run().exit(0);
    let _ = run.nowhere(secret);
    let _ = workspace.skills(&["history", "pr"]).run().exit(0).stdout_contains("[redacted]");
}

#[test]
fn hostile_names_are_shown_as_they_are() {
    let workspace = Workspace::new().promoted("pr", "# PR");
    workspace.sql("UPDATE skill_versions SET skill_name = 'a' || char(27) || '[31mb\u{202e}c'");
    let run = workspace.skills(&["list"]).run().exit(0);
    assert!(!run.stdout.contains(['\u{1b}', '\u{202e}']), "{}", run.stdout);
}

#[test]
fn what_cannot_be_done_is_said() {
    let workspace = Workspace::new()
        .promoted("pr", "# PR")
        .file("empty.md", " \n")
        .file("binary.md", [0xff, 0xfe])
        .file("long.md", "x".repeat(300_000));
    for (words, part) in [
        (&["disable", "nobody"][..], "there is no skill \"nobody\""),
        (&["rollback", "nobody"], "there is no skill \"nobody\""),
        (&["history", "nobody"], "there is no skill \"nobody\""),
        (&["promote", "pr", "--version", "9"], "there is no skill \"pr\" in version \"9\""),
        (&["promote", "pr", "--version", "1"], "is in use already"),
        (&["rollback", "pr"], "there is no version before \"pr\""),
        (&["record", "--skill", "x", "--status", "error"], "there is no skill \"x\""),
        (&["record", "--session", " ", "--message", "x"], "--session is empty"),
        (&["promote", "pr", "--file", "none.md"], "cannot read the skill from none.md"),
        (&["promote", "pr", "--file", "empty.md"], "the skill in empty.md is empty"),
        (&["promote", "pr", "--file", "binary.md"], "the skill in binary.md is not UTF-8"),
        (&["promote", "pr", "--file", "long.md"], "longer than 262144 bytes"),
        (&["promote", " ", "--file", "SKILL.md"], "the name of the skill is empty"),
        (&["promote", "a\nb", "--file", "SKILL.md"], "holds control characters"),
        (&["promote", &"x".repeat(201), "--file", "SKILL.md"], "more than 200 characters"),
        (&["promote", "pr", "--file", "SKILL.md", "--version", "1"], "has that version already"),
        (&["record", "--from-sessions", "--source", "none"], "--source none"),
        (&["record", "--from-sessions", "--source", "empty.md", "--since", "x"], "--since"),
    ] {
        let _ = workspace.skills(words).run().exit(2).one_error(&[part]);
    }
    assert_eq!(workspace.statuses("pr"), ["1 active"]);
    let _ = workspace.skills(&["disable", "pr"]).run().exit(0);
    let again = workspace.skills(&["disable", "pr"]).run().exit(2);
    let _ = again.one_error(&["\"pr\", version \"1\", is not in use"]);
    let _ = workspace.skills(&["rollback", "pr"]).run().exit(2).one_error(&["is not in use"]);
    let _ = workspace.skills(&["score"]).run().exit(4).stderr_contains("no skill is in use");
}
