//! Tests of detection: the parts that identify a format may stand anywhere in a file.

use super::*;

fn format(text: impl Into<Vec<u8>>) -> Result<SessionFormat, SessionReadError> {
    detect(&SessionSource::bytes("some.json", text))
}

/// More than is looked at first.
fn bulk() -> String {
    "lorem ipsum ".repeat(30_000)
}

#[test]
fn what_tells_the_format_may_stand_behind_the_bulk() {
    let bulk = bulk();
    let tools = format!(r#"[{{"type":"function","function":{{"description":"{bulk}"}}}}]"#);
    let messages = r#"[{"role":"user","content":"hello"}]"#;
    for (text, expected) in [
        (
            format!(
                r#"{{"session_id":"s","session_start":"2026-01-01","tools":{tools},"messages":{messages}}}"#
            ),
            SessionFormat::HermesSnapshot,
        ),
        (format!(r#"{{"tools":{tools},"messages":{messages}}}"#), SessionFormat::Chat),
        (
            format!(r#"[{{"content":"{bulk}","role":"system"}},{{"role":"user","content":"a"}}]"#),
            SessionFormat::Chat,
        ),
        (
            format!("{{\"content\":\"{bulk}\",\"role\":\"user\"}}\n{{\"role\":\"assistant\"}}\n"),
            SessionFormat::Chat,
        ),
        (
            format!(r#"{{"steps":[{{"message":"{bulk}"}}],"schema_version":"ATIF-v1.5"}}"#),
            SessionFormat::Atif,
        ),
        (
            format!("{{\"message\":{{\"content\":\"{bulk}\"}},\"type\":\"user\"}}\n"),
            SessionFormat::ClaudeCode,
        ),
        (
            format!("{{\"tools\":{tools},\"role\":\"session_meta\"}}\n"),
            SessionFormat::HermesGateway,
        ),
        (
            format!(
                r#"[{{"id":1,"args":{{"content":"{bulk}"}},"source":"user","action":"message"}}]"#
            ),
            SessionFormat::OpenHands,
        ),
        (
            format!(r#"{{"environment":"{bulk}","trajectory":[],"history":[]}}"#),
            SessionFormat::SweAgent,
        ),
    ] {
        let shown = &text[..40];
        assert_eq!(format(text.clone()).unwrap(), expected, "{shown}");
        // One value over many lines, and half a character in the middle of it.
        let text = text.replacen("lorem", r"\ud83d", 1).replace(",\"", ",\n\"");
        if !matches!(expected, SessionFormat::ClaudeCode | SessionFormat::HermesGateway)
            && !text.ends_with('\n')
        {
            assert_eq!(format(text).unwrap(), expected, "{shown}");
        }
    }
}

#[test]
fn what_is_broken_in_the_first_line_hides_no_format() {
    for broken in [&br"\ud83d"[..], b"\xff", b"\0"] {
        let line = [
            &br#"{"type":"user","message":{"role":"user","content":""#[..],
            broken,
            br#""},"sessionId":"s"}"#,
        ];
        assert_eq!(format(line.concat()).unwrap(), SessionFormat::ClaudeCode);
    }
}

#[test]
fn what_is_no_session_is_described_in_few_words() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for (text, words) in [
        (&b"{}"[..], "an empty object"),
        (b"[]", "a list without objects"),
        (b"[1, 2]", "a list without objects"),
        (b"[{}]", "a list of an empty object"),
        (nested(100).as_bytes(), "lists inside of a list"),
        (nested(100_000).as_bytes(), "lists inside of a list"),
        (b"just words", "no JSON object was found in it"),
        (b"{\"shopping\": [\"milk\"]}", "objects with the keys shopping"),
        (b"\x1f\x8b\x08\x00", "gunzip"),
        (b"\xff\xfe{\x00\"\x00", "UTF-16"),
        (b"{\x00\"\x00", "UTF-16"),
    ] {
        let error = format(text).unwrap_err().to_string();
        assert!(error.contains(words) && error.len() < 120, "{error}");
    }
}

#[test]
fn a_large_file_of_something_else_is_none() {
    let bulk = bulk();
    let error = format(format!(r#"{{"words":"{bulk}","more":"{bulk}"}}"#)).unwrap_err().to_string();
    assert!(error.contains("objects with the keys words, more"), "{error}");
}
