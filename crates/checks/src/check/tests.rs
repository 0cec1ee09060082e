//! Parsing, deciding and combining checks.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::check::TaskStatus;

fn check(value: &Value) -> Check {
    read(value).unwrap_or_else(|faults| panic!("{value}: {faults:?}"))
}

fn refused(value: &Value) -> String {
    let faults = read(value).expect_err(&value.to_string());
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

const ANSWER: &str = "The server listens on port 80.\n\nWhich file do you mean?\n";

fn calls() -> Vec<ObservedToolCall> {
    serde_json::from_value(json!([
        {"name": "Read", "arguments": {"file_path": "src/a.rs"}},
        {"name": "Edit", "arguments": {"file_path": "src/b.rs", "count": 2}},
        {"name": "Read", "arguments": {"file_path": "src/b.rs"}},
    ]))
    .unwrap()
}

fn files() -> FileChanges {
    serde_json::from_value(json!({
        "created": ["out/new.txt"],
        "changed": ["src/b.rs"],
        "deleted": ["old.md"],
        "after": {
            "src/a.rs": {"text": "fn a() {}"},
            "gone.md": "missing",
            "logo.png": {"unreadable": "not text"},
        },
    }))
    .unwrap()
}

/// Decides on an observation in which everything is reported.
fn found(value: &Value) -> (CheckOutcome, String) {
    let (calls, files) = (calls(), files());
    let commands = distinct_commands(&[check(&json!({"all": [value]}))])
        .into_iter()
        .map(|command| CommandRun { command: command.clone(), end: end(command.run.program()) })
        .collect::<Vec<_>>();
    let seen = CheckObservation {
        status: Some(TaskStatus::AwaitingResponse),
        output: ANSWER,
        answers: &["I begin with step one.", ANSWER],
        tool_calls: Some(&calls),
        files: Some(&files),
        turns: Some(2),
        tokens: Some(1200),
        duration: Some(Duration::from_millis(2500)),
        commands: &commands,
    };
    let CheckFinding { outcome, sentence } = decide(&check(value), &seen);
    (outcome, sentence)
}

/// Result of the command with this name.
fn end(program: &str) -> CommandOutcome {
    match program {
        "hang" => CommandOutcome::TimedOut,
        "absent" => CommandOutcome::NotStarted { why: "no such file".to_owned() },
        "yes" => CommandOutcome::TooMuchOutput,
        "crash" => CommandOutcome::Killed { signal: 11 },
        "three" => CommandOutcome::Exited { code: 3, stdout: "bad\nworse\n".to_owned() },
        _ => CommandOutcome::Exited { code: 0, stdout: " ok \nand more\n".to_owned() },
    }
}

#[test]
fn each_kind_says_what_happened() {
    for (value, outcome, sentence) in [
        (json!({"contains": "port 80"}), "held", "the answer contains \"port 80\""),
        (json!({"contains": "Port 80"}), "failed", "the answer does not contain \"Port 80\""),
        (
            json!({"not_contains": "port 80"}),
            "failed",
            "the answer contains \"port 80\", which is forbidden",
        ),
        (json!({"not_contains": "x9"}), "held", "the answer does not contain \"x9\""),
        (json!({"regex": "p.rt \\d+"}), "held", "the answer matches `p.rt \\d+` with \"port 80\""),
        (json!({"regex": "^port"}), "failed", "the answer does not match `^port`"),
        (
            json!({"not_regex": "(?i)PORT"}),
            "failed",
            "the answer matches `(?i)PORT` with \"port\", which is forbidden",
        ),
        (json!({"lines": 2}), "held", "2 lines"),
        (json!({"lines": 3}), "failed", "2 lines, 3 expected"),
        (json!({"not": {"lines": 2}}), "failed", "2 lines, which is forbidden"),
        (json!({"words": {"min": 5, "max": 9}}), "failed", "11 words, 5 to 9 expected"),
        (json!({"questions": {"max": 0}}), "failed", "1 question, at most 0 expected"),
        (json!({"characters": {"min": 100}}), "failed", "55 characters, at least 100 expected"),
        (json!({"turns": 2}), "held", "2 turns"),
        (json!({"tokens": {"max": 1000}}), "failed", "1200 tokens, at most 1000 expected"),
        (json!({"seconds": {"max": 2}}), "failed", "took 2.5 s, at most 2 s expected"),
        (
            json!({"status": "COMPLETE"}),
            "failed",
            "the status is AWAITING_RESPONSE, COMPLETE expected",
        ),
        (
            json!({"occurrences": {"of": "port", "max": 1}}),
            "held",
            "\"port\" occurs 1 time in the answer",
        ),
        (
            json!({"equals": "80"}),
            "failed",
            "the answer is \"The server listens on port 80. Which file do you mean?\", \"80\" expected",
        ),
        (
            json!({"similar": {"to": "The server listens on port 81.\n\nWhich file do you mean?", "at_least": 0.95}}),
            "held",
            "the similarity to \"The server listens on port 81. Which file do you mean?\" is 0.98",
        ),
        (
            json!({"similar": {"to": "Nothing", "at_least": 0.5}}),
            "failed",
            "the similarity to \"Nothing\" is 0.09, at least 0.50 expected",
        ),
        (json!({"json": {}}), "failed", "the answer is not JSON and has no fenced block with JSON"),
        (json!({"tool_called": "Edit"}), "held", "calls the tool `Edit`"),
        (json!({"tool_called": "Bash"}), "failed", "does not call the tool `Bash`"),
        (json!({"tool_not_called": "Edit"}), "failed", "calls the tool `Edit`, which is forbidden"),
        (
            json!({"tool_called": {"name": "Read", "min": 3}}),
            "failed",
            "calls the tool `Read` 2 times, at least 3 expected",
        ),
        (
            json!({"tool_called": {"name": "Edit", "arguments": {"file_path": "b.rs", "count": 2.0}}}),
            "held",
            "calls the tool `Edit` with these arguments",
        ),
        (
            json!({"tool_called": {"name": "Edit", "arguments": {"count": 3}}}),
            "failed",
            "calls the tool `Edit`, but never with these arguments, last with `{\"file_path\":\"src/b.rs\",\"count\":2}`",
        ),
        (
            json!({"tools_in_order": ["Read", "Edit", "Read"]}),
            "held",
            "calls the tools in this order: `Read`, `Edit`, `Read`",
        ),
        (
            json!({"tools_in_order": ["Edit", "Edit"]}),
            "failed",
            "does not call the tool `Edit` after `Edit`",
        ),
        (
            json!({"transcript_regex": "step one"}),
            "held",
            "an answer matches `step one` with \"step one\"",
        ),
        (
            json!({"transcript_regex": "Edit .*b\\.rs"}),
            "held",
            "a call of the tool `Edit` matches `Edit .*b\\.rs`",
        ),
        (json!({"transcript_regex": "sudo"}), "failed", "nothing in the transcript matches `sudo`"),
        (json!({"file_created": "./out/new.txt"}), "held", "`out/new.txt` was created"),
        (
            json!({"file_created": "src/b.rs"}),
            "failed",
            "`src/b.rs` was changed, expected: was created",
        ),
        (
            json!({"file_changed": "src/a.rs"}),
            "failed",
            "`src/a.rs` was not changed, expected: was changed",
        ),
        (json!({"file_deleted": "old.md"}), "held", "`old.md` was deleted"),
        (json!({"file_unchanged": "src/b.rs"}), "failed", "`src/b.rs` was changed"),
        (json!({"file_unchanged": "src/a.rs"}), "held", "`src/a.rs` was not changed"),
        (
            json!({"file_unchanged": "gone.md"}),
            "undecided",
            "there is no file `gone.md`, before or after",
        ),
        (json!({"file_exists": "out/new.txt"}), "held", "there is a file `out/new.txt`"),
        (json!({"file_exists": "gone.md"}), "failed", "there is no file `gone.md`"),
        (json!({"file_exists": "unseen"}), "undecided", "`unseen` was not looked for"),
        (
            json!({"file_contains": {"path": "src/a.rs", "text": "fn a"}}),
            "held",
            "`src/a.rs` contains \"fn a\"",
        ),
        (
            json!({"file_contains": {"path": "logo.png", "text": "x"}}),
            "undecided",
            "`logo.png` cannot be read: \"not text\"",
        ),
        (
            json!({"only_changes": ["src/*.rs", "out"]}),
            "failed",
            "`old.md` was deleted, changes only in `src/*.rs`, `out` expected",
        ),
        (
            json!({"only_changes": ["src/**", "out/", "*.md"]}),
            "held",
            "only what may be changed was changed",
        ),
        (
            json!({"only_changes": []}),
            "failed",
            "`out/new.txt` was created, `src/b.rs` was changed, `old.md` was deleted, no change expected",
        ),
        (
            json!({"command": {"run": ["cat"], "first_line": "ok", "prints": "more"}}),
            "held",
            "the command `cat` ended with exit code 0: \"ok\"",
        ),
        (
            json!({"command": {"run": ["cat"], "first_line": "yes"}}),
            "failed",
            "the command `cat` printed \"ok\", \"yes\" expected",
        ),
        (
            json!({"command": {"run": ["three"]}}),
            "failed",
            "the command `three` ended with exit code 3: \"bad\", 0 expected",
        ),
        (
            json!({"command": {"run": ["three"], "exit_code": 3}}),
            "held",
            "the command `three` ended with exit code 3: \"bad\"",
        ),
        (
            json!({"not": {"command": {"run": ["hang"], "timeout_seconds": 2}}}),
            "undecided",
            "the command `hang` did not end within 2 s",
        ),
        (
            json!({"command": {"run": ["yes"]}}),
            "undecided",
            "the command `yes` printed without end",
        ),
        (
            json!({"command": {"run": ["crash"]}}),
            "undecided",
            "the command `crash` was ended by signal 11",
        ),
        (
            json!({"not": {"command": {"run": ["absent"]}}}),
            "undecided",
            "the command `absent` did not start: \"no such file\"",
        ),
        (
            json!({"all": [{"lines": 2}, {"lines": 3}, {"tool_not_called": "Edit"}]}),
            "failed",
            "2 lines, 3 expected; calls the tool `Edit`, which is forbidden",
        ),
        (json!({"any": [{"lines": 3}, {"lines": 2}]}), "held", "2 lines"),
        (
            json!({"not": {"any": [{"lines": 3}, {"contains": "port"}]}}),
            "failed",
            "the answer contains \"port\", which is forbidden",
        ),
    ] {
        let (found, said) = found(&value);
        assert_eq!((found.to_string().as_str(), said.as_str()), (outcome, sentence), "{value}");
    }
}

#[test]
fn json_is_found_in_the_whole_answer_and_in_fenced_blocks() {
    let fenced = "Here:\n```text\nno\n```\n```json\n{\"a\": {\"b\": 3}}\n```\n";
    let schema = json!({"type": "object", "required": ["a"], "$defs": {"n": {"type": "number"}},
        "properties": {"a": {"properties": {"b": {"$ref": "#/$defs/n"}}}}});
    for (answer, value, outcome, sentence) in [
        (fenced, json!({}), "held", "the answer holds JSON"),
        (fenced, json!({"pointer": "/a/b", "equals": 3.0}), "held", "`/a/b` is `3`"),
        (
            fenced,
            json!({"pointer": "/a/b", "equals": "3"}),
            "failed",
            "`/a/b` is `3`, `'3'` expected",
        ),
        (fenced, json!({"pointer": "/a/c"}), "failed", "the JSON has nothing at `/a/c`"),
        (fenced, json!({ "schema": schema }), "held", "the JSON satisfies the schema"),
        (
            "{\"a\": {\"b\": \"x\"}}",
            json!({ "schema": schema }),
            "failed",
            "the JSON does not satisfy the schema: /a/b: the value is not of type \"number\"",
        ),
        ("null", json!({"equals": null}), "held", "the JSON is `null`"),
        ("7", json!({"equals": null}), "failed", "the JSON is `7`, `null` expected"),
        // Equal as floating-point numbers, and not the same id.
        (
            "1234567890123456788",
            json!({"equals": 1_234_567_890_123_456_789_u64}),
            "failed",
            "the JSON is `1234567890123456788`, `1234567890123456789` expected",
        ),
    ] {
        let seen = CheckObservation { output: answer, ..CheckObservation::default() };
        let CheckFinding { outcome: found, sentence: said } =
            decide(&check(&json!({"json": value})), &seen);
        let said = said.replace('"', "'");
        let sentence = sentence.replace('"', "'");
        assert_eq!((found.to_string().as_str(), said), (outcome, sentence), "{value}");
    }
}

#[test]
fn what_is_not_reported_is_undecided_and_so_is_its_opposite() {
    let seen = CheckObservation { output: "x", ..CheckObservation::default() };
    for value in [
        json!({"tool_called": "a"}),
        json!({"tool_not_called": "a"}),
        json!({"tools_in_order": ["a"]}),
        json!({"file_created": "a"}),
        json!({"file_unchanged": "a"}),
        json!({"file_exists": "a"}),
        json!({"file_contains": {"path": "a", "text": "b"}}),
        json!({"only_changes": ["a"]}),
        json!({"status": "COMPLETE"}),
        json!({"turns": 1}),
        json!({"tokens": 1}),
        json!({"seconds": {"max": 1}}),
        json!({"command": {"run": ["true"]}}),
        json!({"transcript_regex": "y"}),
        json!({"all": [{"contains": "x"}, {"turns": 1}]}),
        json!({"any": [{"contains": "y"}, {"turns": 1}]}),
    ] {
        assert_eq!(decide(&check(&value), &seen).outcome, CheckOutcome::Undecided, "{value}");
        let opposite = check(&json!({ "not": value }));
        assert_eq!(decide(&opposite, &seen).outcome, CheckOutcome::Undecided, "{value}");
    }
    let decided = json!({"all": [{"contains": "y"}, {"turns": 1}]});
    assert_eq!(decide(&check(&decided), &seen).outcome, CheckOutcome::Failed);
    let decided = json!({"any": [{"contains": "x"}, {"turns": 1}]});
    assert_eq!(decide(&check(&decided), &seen).outcome, CheckOutcome::Held);
}

#[test]
fn one_failure_fails_the_case_whatever_it_weighs() {
    let seen = CheckObservation { output: "x", ..CheckObservation::default() };
    let summary = |value: Value| {
        let checks = read_list(&value).unwrap();
        let CheckSummary { outcome, score, findings } = decide_all(&checks, &seen);
        assert_eq!(findings.len(), checks.len());
        (outcome, score.map(selftest_stats::score::Score::get))
    };
    let (held, failed) = (json!({"weight": 9, "contains": "x"}), json!({"contains": "y"}));
    assert_eq!(summary(json!([held, failed])), (Some(CheckOutcome::Failed), Some(0.9)));
    assert_eq!(summary(json!([held, {"turns": 1}])), (Some(CheckOutcome::Undecided), Some(1.0)));
    assert_eq!(summary(json!([{"turns": 1}])), (Some(CheckOutcome::Undecided), None));
    assert_eq!(summary(json!([held])), (Some(CheckOutcome::Held), Some(1.0)));
    assert_eq!(summary(json!([])), (None, None), "a case without a check is never a pass");
}

#[test]
fn broken_checks_are_refused_with_their_place() {
    let long = "x".repeat(5000);
    let deep = (0..40).fold(json!({"contains": "x"}), |inner, _| json!({ "not": inner }));
    for (value, why) in [
        (json!({"contians": "x"}), "/contians: unknown kind of check `contians`"),
        (json!({}), "a check must have a kind"),
        (json!("contains x"), "a check must be a mapping with one kind"),
        (json!({"contains": "a", "regex": "b"}), "/regex: a check has one kind"),
        (json!({"contains": ""}), "expected text that is not empty"),
        (json!({"contains": "a", "weight": 0}), "/weight: a weight must be above 0"),
        (json!({"contains": "a", "weight": 1e9}), "/weight: a weight must be above 0"),
        (json!({"contains": "a", "name": ""}), "/name: `name` must be text"),
        (json!({"lines": {"min": 2, "max": 1}}), "`min` is 2, above `max` 1"),
        (json!({"lines": {}}), "expected a whole number"),
        (json!({"lines": -1}), "expected a whole number"),
        (json!({"seconds": 3}), "write {max: 3}"),
        (json!({"regex": "(a"}), "unclosed group"),
        (json!({"regex": "a\\Z"}), "unrecognized escape"),
        (json!({"regex": "((a{100}){100}){100}"}), "the pattern is too big when compiled"),
        (json!({ "regex": long }), "at most 4096 characters"),
        (json!({"json": {"pointer": "a"}}), "`pointer` must be a JSON pointer such as `/a`"),
        (json!({"json": {"schema": {"$ref": "http://x/y"}}}), "refers outside, to `http://x/y`"),
        (
            json!({"json": {"schema": {"items": [{"$ref": "file:///etc/passwd"}]}}}),
            "refers outside, to `file:///etc/passwd`",
        ),
        (json!({"json": {"schema": {"type": "text"}}}), "`schema` is not a JSON Schema"),
        (json!({"json": {"schema": {"pattern": "((a{100}){100}){100}"}}}), "not a JSON Schema"),
        (json!({"command": {"run": []}}), "`run` must begin with a program"),
        (json!({"command": {"run": ["a"], "timeout_seconds": 1e9}}), "at most 3600"),
        (json!({"tool_called": {"name": "a", "max": 0}}), "no call at all is `tool_not_called`"),
        (json!({"only_changes": ["a[".to_owned()]}), "`a[`"),
        (json!({"all": []}), "`all` must have at least one check"),
        (json!({"any": [{"x": 1}]}), "/any/0/x: unknown kind of check `x`"),
        (deep, "nested deeper than 16"),
    ] {
        let said = refused(&value);
        assert!(said.contains(why), "{value}: {said}");
    }
    let many = json!(vec![json!({"contains": "x"}); MAX_CHECKS + 5]);
    assert_eq!(read_list(&many).unwrap_err().len(), 1, "said once");
    let hint = read(&json!({"contains": 80})).unwrap_err()[0].hint.clone();
    assert_eq!(hint.as_deref(), Some("put it in quotes"));
    let hint = read(&json!({"contians": "x"})).unwrap_err()[0].hint.clone().unwrap();
    assert!(hint.starts_with("did you mean `contains`? the kinds are `contains`, "), "{hint}");
}

#[test]
fn a_schema_that_only_refers_to_itself_comes_to_an_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"$ref": "#/$defs/a%20b"}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [true, {"$ref": "#/$defs/b"}]},
            "b": {"if": {"$ref": "#/$defs/a"}}}}),
    ] {
        assert!(refused(&json!({"json": {"schema": schema}})).contains("itself"), "{schema}");
    }
    let inner = json!({"$defs": {"a": {"$id": "http://x/a", "$ref": "#"}}, "$ref": "#/$defs/a"});
    assert!(refused(&json!({"json": {"schema": inner}})).contains("`$id` within"));
    // A tree descends before it returns to itself.
    let tree = json!({"type": "object", "properties": {"child": {"$ref": "#"}}});
    let seen =
        CheckObservation { output: "{\"child\": {\"child\": 3}}", ..CheckObservation::default() };
    let found = decide(&check(&json!({"json": {"schema": tree}})), &seen);
    assert_eq!(found.outcome, CheckOutcome::Failed);
}

#[test]
fn what_has_to_be_run_and_read_is_named_once() {
    let command = json!({"command": {"run": ["true"]}});
    let checks = read_list(&json!([
        command,
        {"any": [command, {"not": {"file_exists": "./a.md"}}]},
        {"file_contains": {"path": "a.md", "text": "x"}},
        {"file_unchanged": "b.md"},
        {"file_created": "c.md"},
    ]))
    .unwrap();
    assert_eq!(distinct_commands(&checks).len(), 1);
    assert_eq!(needed_paths(&checks).into_iter().collect::<Vec<_>>(), ["a.md", "b.md"]);
}

#[test]
fn contradictions_are_told() {
    for (checks, count) in [
        (json!([{"contains": "x"}, {"not_contains": "x"}]), 1),
        (json!([{"contains": "x"}, {"not_contains": "y"}]), 0),
        (json!([{"contains": "port 80"}, {"not_contains": "port"}]), 1),
        (json!([{"contains": "port"}, {"not_contains": "port 80"}]), 0),
        (json!([{"contains": "x"}, {"not": {"contains": "x"}}]), 1),
        (json!([{"any": [{"contains": "x"}, {"not_contains": "x"}]}]), 0),
        (json!([{"lines": 3}, {"all": [{"lines": {"max": 2}}]}]), 1),
        (json!([{"lines": {"min": 1}}, {"lines": {"max": 2}}]), 0),
        (json!([{"tool_called": "a"}, {"tool_not_called": "a"}]), 1),
        (json!([{"tools_in_order": ["b", "a"]}, {"tool_not_called": "a"}]), 1),
        (json!([{"file_deleted": "a"}, {"file_exists": "a"}]), 1),
        (json!([{"file_created": "a"}, {"file_exists": "a"}]), 0),
        (json!([{"file_changed": "a"}, {"file_unchanged": "a"}]), 1),
        (json!([{"status": "COMPLETE"}, {"status": "ERROR"}]), 1),
        (json!([{"equals": "a"}, {"contains": "b"}]), 1),
        (json!([{"not": {"any": [{"regex": "a"}, {"lines": 2}]}}, {"regex": "a"}]), 1),
        (json!([{"contains": "x"}, {"contains": "x"}]), 0),
    ] {
        let found = warnings(&read_list(&checks).unwrap());
        assert_eq!(found.len(), count, "{checks}: {found:?}");
    }
    let checks = json!([{"contains": "a`b"}, {"not_contains": "a`b"}]);
    let found = warnings(&read_list(&checks).unwrap());
    assert_eq!(found, ["`contains: \"a'b\"` and `not_contains: \"a'b\"` cannot both hold"]);
}

#[test]
fn foreign_text_cannot_steer_a_terminal() {
    let text = "a\u{1b}[31m\"b\nc`\u{202e}";
    let seen = CheckObservation { output: text, ..CheckObservation::default() };
    for value in [json!({"contains": text}), json!({"tool_called": text}), json!({"equals": "x"})] {
        let sentence = decide(&check(&value), &seen).sentence;
        let bad = |c: char| c.is_control() || c == '\u{202e}';
        assert!(!sentence.contains(bad), "{sentence:?}");
    }
}

/// Any single check, satisfied or not, decided or not.
fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-c ]{1,3}".prop_map(|text| json!({"contains": text})),
        "[a-c ]{1,3}".prop_map(|text| json!({"not_contains": text})),
        "[a-c.*]{1,3}".prop_filter_map("a pattern", |text| {
            let value = json!({"regex": text});
            read(&value).is_ok().then_some(value)
        }),
        (0..4u64).prop_map(|count| json!({"lines": count})),
        (0..4u64).prop_map(|count| json!({"words": {"max": count}})),
        (0..4u64).prop_map(|count| json!({"turns": {"min": count}})),
        "[a-c]".prop_map(|name| json!({"tool_called": name})),
        "[a-c]".prop_map(|name| json!({"tool_not_called": name})),
        "[a-c]".prop_map(|path| json!({"file_changed": path})),
        "[a-c]".prop_map(|path| json!({"file_exists": path})),
        "[a-c]".prop_map(|path| json!({"only_changes": [path]})),
        "[a-c]{1,4}".prop_map(|to| json!({"similar": {"to": to, "at_least": 0.5}})),
        Just(json!({"command": {"run": ["a"]}})),
        Just(json!({"json": {"pointer": "/a"}})),
    ]
}

proptest! {
    /// What stands in a description is read as the same check.
    #[test]
    fn descriptions_are_yaml(text in r#"[a-z0-9 .,:#'"{}\[\]&*!|>%@-]{1,12}|\PC{1,6}"#, count in 0..9u64) {
        for value in [
            json!({"contains": text}),
            json!({"all": [{"file_contains": {"path": "a/b", "text": text}}, {"lines": count}]}),
        ] {
            let Ok(check) = read(&value) else { continue };
            let written = serde_json::to_value(&check.kind).unwrap();
            let flow = super::flow(&written);
            let again: Value = serde_yaml::from_str(&flow).unwrap();
            prop_assert_eq!(again, written, "{}", flow);
        }
    }
}

#[test]
fn descriptions_have_quotes_where_they_are_needed() {
    for (value, described) in [
        (json!({"contains": "14 days"}), "contains: 14 days"),
        (json!({"lines": 3}), "lines: 3"),
        (json!({"contains": "14"}), r#"contains: "14""#),
        (json!({"only_changes": ["src/a.rs", "docs/**"]}), "only_changes: [src/a.rs, docs/**]"),
        (json!({"not": {"file_deleted": "src/b.rs"}}), "not: {file_deleted: src/b.rs}"),
        (json!({"regex": "^a"}), r#"regex: "^a""#),
    ] {
        assert_eq!(check(&value).describe(), described);
    }
}

/// The example of docs/extending.md is parsed, described and decided like every other kind.
#[test]
fn a_new_kind_takes_one_file_and_one_entry() {
    let capitals = check(&json!({"capitals": {"at_most": 0.2}}));
    let decided = |output| {
        let seen = CheckObservation { output, ..CheckObservation::default() };
        let CheckFinding { outcome, sentence } = decide(&capitals, &seen);
        (outcome, sentence)
    };
    let sentence = "0.29 of the letters are capitals, at most 0.20 expected".to_owned();
    assert_eq!(decided("STop now"), (CheckOutcome::Failed, sentence));
    assert_eq!(decided("Stop now").0, CheckOutcome::Held);
    assert_eq!(decided("80").0, CheckOutcome::Undecided);
    let refusal = refused(&json!({"capitals": {"at_most": 2}}));
    assert!(refusal.contains("must be a number from 0 to 1"), "{refusal}");
    let schema = serde_json::to_value(schemars::schema_for!(Check)).unwrap();
    let described = &schema["properties"]["capitals"];
    assert_eq!(described["required"], json!(["at_most"]));
    assert!(described["description"].as_str().unwrap().starts_with("The share of letters"));
}

fn any_check() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 24, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            list.clone().prop_map(|checks| json!({ "all": checks })),
            list.prop_map(|checks| json!({ "any": checks })),
            inner.prop_map(|check| json!({ "not": check })),
        ]
    })
}

/// Observable facts of a case: the answer, and turns, tools and changed files if reported.
type Seen = (String, Option<u64>, Option<Vec<String>>, Option<Vec<String>>);

fn with_observation<T>(seen: &Seen, then: impl FnOnce(&CheckObservation<'_>) -> T) -> T {
    let (output, turns, calls, changed) = seen;
    let call = |name: &String| ObservedToolCall {
        name: name.clone(),
        arguments: Value::Null,
        failed: false,
    };
    let calls: Option<Vec<ObservedToolCall>> =
        calls.as_ref().map(|names| names.iter().map(call).collect());
    let files = changed.as_ref().map(|changed| FileChanges {
        changed: changed.iter().cloned().collect(),
        ..FileChanges::default()
    });
    then(&CheckObservation {
        output,
        turns: *turns,
        tool_calls: calls.as_deref(),
        files: files.as_ref(),
        ..CheckObservation::default()
    })
}

/// The answer is not empty, because one that is satisfies fewer checks than logic says.
fn seen() -> impl Strategy<Value = Seen> {
    let names = || prop::option::of(prop::collection::vec("[a-c]", 0..3));
    ("[a-c][a-c {}\"\n]{0,11}", prop::option::of(0..4u64), names(), names())
}

proptest! {
    #[test]
    fn deciding_never_panics(value in any_check(), output in ".{0,200}") {
        let seen = CheckObservation { output: &output, ..CheckObservation::default() };
        let finding = decide(&check(&value), &seen);
        prop_assert!(!finding.sentence.is_empty() && !finding.sentence.contains('\n'));
        prop_assert!(finding.sentence.len() <= 1500);
    }

    #[test]
    fn a_double_negation_is_nothing(value in any_check(), seen in seen()) {
        let one = check(&value);
        let twice = one.clone().negated().negated();
        with_observation(&seen, |seen| {
            assert_eq!(decide(&twice, seen), decide(&one, seen));
            let opposite = decide(&one.negated(), seen).outcome;
            assert_eq!(opposite.negated(), decide(&twice, seen).outcome);
        });
    }

    #[test]
    fn de_morgan_holds(values in prop::collection::vec(any_check(), 1..4), seen in seen()) {
        let negated: Vec<Value> = values.iter().map(|value| json!({"not": value})).collect();
        with_observation(&seen, |seen| {
            let outcome = |value: Value| decide(&check(&value), seen).outcome;
            assert_eq!(outcome(json!({"not": {"all": values}})), outcome(json!({"any": negated})));
            assert_eq!(outcome(json!({"not": {"any": values}})), outcome(json!({"all": negated})));
        });
    }

    #[test]
    fn what_is_written_reads_as_the_same(value in any_check()) {
        let one = check(&value);
        prop_assert_eq!(&check(&serde_json::to_value(&one).unwrap()), &one);
        let schema = serde_json::to_value(schemars::schema_for!(Check)).unwrap();
        let schema = selftest_schema::Schema::compile(&schema).unwrap();
        prop_assert!(schema.is_valid(&serde_json::to_value(&one).unwrap()));
    }

    #[test]
    fn any_value_is_read_or_refused(key in "[a-z_]{1,12}|contains|regex|lines|json|command", text in ".{0,60}") {
        let _ = read(&json!({ key.clone(): text.clone() }));
        let _ = read(&json!({ key: { text.clone(): [text] } }));
    }
}

#[test]
fn arguments_in_a_string_are_read() {
    let read = |arguments: Value| {
        let call = json!({"name": "Skill", "arguments": arguments});
        serde_json::from_value::<ObservedToolCall>(call).unwrap().arguments
    };
    assert_eq!(read(json!("{\"skill\": \"ferry\"}")), json!({"skill": "ferry"}));
    assert_eq!(read(json!("{broken")), json!("{broken"));
    assert_eq!(read(json!("ferry")), json!("ferry"));
    assert_eq!(read(json!({"a": 1})), json!({"a": 1}));
}
