//! One message.

use serde_json::json;

use crate::workspace::Workspace;

fn classify(words: &[&str]) -> Workspace {
    Workspace::new().args([&["improve", "signals", "classify"], words].concat())
}

/// The program with a file on standard input.
fn with_input(contents: impl AsRef<[u8]>, words: &[&str]) -> Workspace {
    classify(words).file("input", contents).within(["sh", "-c", "exec \"$@\" < input", "sh"])
}

#[test]
fn for_people() {
    let run = classify(&["Thanks!", "--previous", "run the tests", "--skill", "s\u{1b}[2J7"]).run();
    let _ = run.exit(0).snapshot("signals_classify");
    let _ = classify(&["ugh"]).run().exit(0).stdout_contains("no --previous message");
}

/// docs/spec/skills-and-signals.md#signals-of-a-message: exactly the four keys.
#[test]
fn for_programs() {
    for (words, expected) in [
        (&["No, that’s not what I asked"][..], json!([false, null, true, null])),
        (&["Thanks but no", "--previous=thanks but no"], json!([false, true, false, null])),
        (&["ty", "--previous", "sort it", "--skill", "v1"], json!([true, false, false, "v1"])),
        (&["--", "-v"], json!([false, null, false, null])),
    ] {
        let run = classify(&[&["--json"], words].concat()).run().exit(0);
        let said = run.json();
        let fields = ["gratitude", "repetition", "frustration", "skill_version_id"];
        assert_eq!(json!(fields.map(|name| &said[name])), expected, "{words:?}");
        assert_eq!(said.as_object().unwrap().len(), 4);
    }
}

#[test]
fn from_standard_input() {
    for words in [&["--json"][..], &["-", "--json"]] {
        let json = with_input("Thanks,\nthat's it\n", words).run().exit(0).json();
        assert_eq!(json["gratitude"], true);
    }
    // What is no UTF-8 is looked at as far as it is.
    let json = with_input(b"\xff\xfe thanks \xc3", &["--json"]).run().exit(0).json();
    assert_eq!(json["gratitude"], true);
    let run = with_input("", &["--json"]).run().exit(0);
    assert_eq!(run.json()["gratitude"], false);
    let run = with_input("x".repeat(1024 * 1024 + 1), &[]).run().exit(2);
    let _ = run.one_error(&["more than 1024 KiB"]);
}

/// Precision and recall on a person's own labelled messages.
#[test]
fn rules_are_measured_on_labelled_messages() {
    let lines = r#"{"message": "no, i mean the other one", "previous": "add it", "objection": true}
{"message": "it is odd somehow", "objection": true}

{"message": "now a test", "objection": false, "gratitude": false}
"#;
    let measure = |words: &[&str]| {
        Workspace::new()
            .file("labels.jsonl", lines)
            .file("bad.jsonl", "{\"objection\": true}\n")
            .file("none.jsonl", "{\"message\": \"hi\"}\n")
            .args([&["improve", "signals", "measure"], words].concat())
            .run()
    };
    let json = measure(&["labels.jsonl", "--json"]).exit(0).json();
    assert_eq!(json[0]["signal"], "objection");
    assert_eq!(json[0]["rules"]["precision"]["count"], 1, "{json:#}");
    assert_eq!(json[0]["rules"]["recall"]["of"], 2, "{json:#}");
    let run = measure(&["labels.jsonl", "--misread", "5"]).exit(0);
    let run = run.stdout_contains("1 of 2, 50 %");
    let _ = run.stdout_contains("missed       it is odd somehow");
    let _ = measure(&["bad.jsonl"]).exit(2).one_error(&["bad.jsonl: line 1: missing field"]);
    let _ = measure(&["missing.jsonl"]).exit(2).one_error(&["cannot read missing.jsonl"]);
    let _ = measure(&["none.jsonl"]).exit(4);
}
