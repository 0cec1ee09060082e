//! Reads the chats of VS Code with Copilot: `workspaceStorage/<workspace>/chatSessions/<id>.json`,
//! the `.jsonl` of newer versions, and what "Chat: Export Chat…" writes.
//!
//! A document has a list of requests, each with the person's message and the parts of the answer.
//! The lines of newer versions are changes to such a document: `kind` 0 is the document,
//! 1 sets the value at a path, 2 cuts the list there and appends to it, 3 deletes. Calls come from
//! `toolCallRounds`, which holds their arguments, or else from the parts, which hold the terminal's
//! output and exit code.

mod request;

use std::io;
use std::path::Path;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};
use serde_json::Value;

use crate::SessionReadError;
use crate::feed::{ReadNotes, SessionFeed};
use crate::format::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::lines::JsonLines;
use crate::outline::JsonOutline;
use crate::source::{DocumentReader, SessionSource, each_record};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{JsonValue, LenientInt};
use request::ChatRequest;
use selftest_text::file::read_bounded_text;

/// Maximum bytes of the file that names the folder of a workspace.
const MAX_WORKSPACE: u64 = 64 * 1024;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| {
        is_chat(value) || (value.mark("kind") == "0" && value.inner("v").is_some_and(is_chat))
    },
    ids: IdSource::FileName,
    folders: &[AgentFolders {
        agent: "vscode-copilot",
        variable: None,
        roots: &[
            HomeRoot::EditorUser("Code"),
            HomeRoot::EditorUser("Code - Insiders"),
            HomeRoot::EditorUser("VSCodium"),
        ],
        parts: &["workspaceStorage", "globalStorage/emptyWindowChatSessions"],
    }],
    ..FormatEntry::new(read)
};

fn is_chat(value: &JsonOutline) -> bool {
    let known = ["responderUsername", "initialLocation", "lastMessageDate", "creationDate"];
    value.has("requests") && known.iter().any(|key| value.has(key))
}

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "vscode-copilot".clone_into(&mut feed.head.agent);
    // The document must be in memory to be changed, while one without changes is read as a stream.
    if is_journal(source)? {
        let document = replay(source, &mut feed.notes)?;
        let text = |name: &str| Text::deserialize(&document[name]).unwrap_or_default();
        text("sessionId").as_str().clone_into(&mut feed.head.id);
        feed.record_time(Moment::deserialize(&document["creationDate"]).unwrap_or_default());
        for request in document["requests"].as_array().into_iter().flatten() {
            match ChatRequest::deserialize(request) {
                Ok(request) => request.send(feed),
                Err(_) => feed.notes.bad_records += 1,
            }
        }
    } else {
        source.read_document(&mut ChatFile, feed)?;
    }
    // Last, because a document that needs repair is read a second time with an empty head.
    feed.head.cwd = workspace_folder(source.path());
    Ok(())
}

/// A document with all requests.
struct ChatFile;

impl DocumentReader for ChatFile {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        "vscode-copilot".clone_into(&mut feed.head.agent);
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "sessionId" => {
                    map.next_value::<Text<'de>>()?.as_str().clone_into(&mut feed.head.id);
                }
                "creationDate" => feed.record_time(map.next_value()?),
                "requests" => {
                    let send = |request: ChatRequest<'de>, feed: &mut SessionFeed<'_>| {
                        request.send(feed);
                    };
                    map.next_value_seed(each_record(feed, send))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Returns the folder of the workspace, which a file two folders up names.
fn workspace_folder(path: &Path) -> Option<String> {
    let file = path.parent()?.parent()?.join("workspace.json");
    let text = read_bounded_text(&file, MAX_WORKSPACE).ok()?;
    let uri = JsonValue::parse(&text).text("/folder");
    let path = uri.strip_prefix("file://").unwrap_or(&uri);
    // Lossy: an escape may be half of a character in a foreign file.
    let path = percent_decode_str(path).decode_utf8_lossy();
    (!path.is_empty()).then(|| selftest_text::one_line(&path, 400))
}

/// Maximum bytes of changes that are replayed. The document has to be in memory.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Maximum length of a path. Deeper documents would exhaust the stack.
const MAX_PATH: usize = 32;

/// Fields that hold copies of files and prompts and nothing of the conversation.
const HEAVY: [&str; 8] = [
    "contentReferences",
    "codeCitations",
    "variableData",
    "renderedUserMessage",
    "renderedGlobalContext",
    "codeBlocks",
    "inputState",
    "edits",
];

/// One change.
#[derive(Deserialize, Default)]
#[serde(default)]
struct JournalChange {
    kind: LenientInt,
    /// Path of keys and indices.
    k: Vec<Value>,
    v: Value,
    /// Length to which the list is cut first.
    i: LenientInt,
}

/// Returns true if the first line is a change and not a whole document.
fn is_journal(source: &SessionSource) -> io::Result<bool> {
    let mut lines = source.lines()?;
    let Some(first) = lines.next(&mut ReadNotes::default())? else { return Ok(false) };
    let change = first.parse::<JournalChange>(&mut String::new(), &mut ReadNotes::default());
    Ok(change.is_some_and(|change| change.kind.0.is_some() && !change.v.is_null()))
}

/// Returns the document after all changes.
fn replay(source: &SessionSource, notes: &mut ReadNotes) -> io::Result<Value> {
    let (mut document, mut read) = (Value::Null, 0);
    let (mut lines, mut scratch): (JsonLines<'_>, String) = (source.lines()?, String::new());
    while let Some(line) = lines.next(notes)? {
        read += line.bytes.len();
        if read > MAX_BYTES {
            notes.torn = Some(format!("line {}, after 256 MB of changes", line.number));
            break;
        }
        let Some(mut change) = line.parse::<JournalChange>(&mut scratch, notes) else { continue };
        // Before the change is applied: copies of files are most of the bytes of a long chat.
        shed(&mut change.v);
        if !change.apply(&mut document) {
            notes.ignored_records += 1;
        }
    }
    Ok(document)
}

impl JournalChange {
    /// Applies the change. Returns false if it fits nothing.
    fn apply(self, document: &mut Value) -> bool {
        if self.kind.0 == Some(0) {
            *document = self.v;
            return true;
        }
        if self.k.len() > MAX_PATH {
            return false;
        }
        let Some((last, path)) = self.k.split_last() else { return false };
        let Some(place) = path.iter().try_fold(document, |at, key| step(at, key)) else {
            return false;
        };
        match self.kind.0 {
            Some(1) => step(place, last).map(|place| *place = self.v).is_some(),
            Some(2) => {
                let Some(place) = step(place, last) else { return false };
                // The list may not exist yet, or be one of the fields that were emptied.
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let Some(list) = place.as_array_mut() else { return false };
                if let Some(length) = self.i.0.and_then(|length| usize::try_from(length).ok()) {
                    list.truncate(length);
                }
                match self.v {
                    Value::Array(mut more) => list.append(&mut more),
                    Value::Null => {}
                    one => list.push(one),
                }
                true
            }
            Some(3) => match (place, last) {
                (Value::Object(object), Value::String(key)) => object.remove(key).is_some(),
                _ => false,
            },
            _ => false,
        }
    }
}

/// Returns the value at a key or index, which is made if it is missing.
fn step<'v>(at: &'v mut Value, key: &Value) -> Option<&'v mut Value> {
    match key {
        Value::String(key) => {
            if at.is_null() {
                *at = Value::Object(serde_json::Map::new());
            }
            at.as_object_mut().map(|object| object.entry(key.as_str()).or_insert(Value::Null))
        }
        key => {
            let index = usize::try_from(key.as_u64()?).ok()?;
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let list = at.as_array_mut()?;
            // A change continues a list. A gap would cost memory for nothing.
            if index == list.len() {
                list.push(Value::Null);
            }
            list.get_mut(index)
        }
    }
}

/// Empties what is not part of the conversation, so that it is not held in memory.
fn shed(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                if HEAVY.contains(&key.as_str()) {
                    *inner = Value::Null;
                } else {
                    shed(inner);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(shed),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::survives_damage;
    use super::super::{Session, SessionCollector, SessionFormat, read};
    use super::*;
    use crate::event::{EventMark, EventRole, ToolOutcome};

    /// 2 human turns, 3 calls: one failed with exit code 1, one was refused, one ended.
    const FIXTURE: &str = r#"{"version":3,"responderUsername":"GitHub Copilot","initialLocation":"panel","requests":[
 {"requestId":"r1","timestamp":1777493100000,"modelId":"copilot/gpt-5","message":{"text":"fix the build","parts":[]},
  "response":[{"kind":"mcpServersStarting"},{"value":"I look at "},{"kind":"inlineReference","inlineReference":{"fsPath":"/w/Makefile"}},{"value":"."},
   {"kind":"thinking","value":"hm"},
   {"kind":"toolInvocationSerialized","toolId":"run_in_terminal","toolCallId":"c1","isComplete":true,"isConfirmed":{"type":4},
    "toolSpecificData":{"kind":"terminal","commandLine":{"original":"make"},"terminalCommandState":{"exitCode":1},"terminalCommandOutput":{"text":"no rule"}}},
   {"kind":"toolInvocationSerialized","toolId":"copilot_readFile","toolCallId":"c2","isComplete":true,"invocationMessage":{"value":"Reading a"},"pastTenseMessage":{"value":"Read a"}},
   {"kind":"toolInvocationSerialized","toolId":"run_in_terminal","toolCallId":"c3","isComplete":true,"isConfirmed":{"type":0},"toolSpecificData":{"commandLine":{"original":"rm -r x"}}},
   {"kind":"hologram"},{"value":"It has no rule."}],
  "promptTokens":100,"completionTokens":7,"isCanceled":false},
 {"requestId":"r2","timestamp":1777493160000,"message":"add one","response":[],"isCanceled":true,"result":{"errorDetails":{"message":"Canceled"}}}
],"sessionId":"s-1","creationDate":1777493099000}"#;

    fn only(name: &str, text: &str) -> Session {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes(name, text), &mut collector).unwrap();
        assert_eq!((reading.format, reading.sessions), (SessionFormat::VsCode, 1));
        collector.into_sessions().remove(0)
    }

    fn check(session: &Session) {
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("s-1", "vscode-copilot"));
        assert_eq!(head.models, ["gpt-5"]);
        assert_eq!(head.start.unwrap().to_string(), "2026-04-29T20:04:59Z");
        let said: Vec<_> = session
            .events
            .iter()
            .filter(|event| !event.text.is_empty())
            .map(|event| (event.role, event.text.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::User, "fix the build"),
                (EventRole::Assistant, "I look at `Makefile`."),
                (EventRole::Assistant, "It has no rule."),
                (EventRole::User, "add one"),
                (EventRole::System, "Canceled"),
            ]
        );
        assert_eq!(session.events.last().unwrap().mark, Some(EventMark::Interrupted));
        let results: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.tool.as_str(), result.outcome, result.exit_code))
            .collect();
        assert_eq!(
            results,
            [
                ("run_in_terminal", ToolOutcome::Failed, Some(1)),
                ("copilot_readFile", ToolOutcome::Unknown, None),
                ("run_in_terminal", ToolOutcome::Rejected, None),
            ]
        );
        let call = session.events.iter().flat_map(|event| &event.calls).next().unwrap();
        assert_eq!(call.arguments.as_str(), r#"{"command":"make"}"#);
        assert_eq!(head.unknown_blocks.total(), 1);
        let usage: Vec<_> = session.events.iter().filter_map(|event| event.usage).collect();
        assert_eq!((usage.len(), usage[0].input, usage[0].output), (1, 100, 7));
    }

    #[test]
    fn a_document_has_its_counted_totals() {
        check(&only("s-1.json", FIXTURE));
    }

    /// The same session as it grows: parts are appended, a request is taken back, values are set.
    #[test]
    fn changes_add_up_to_the_same_document() {
        let whole: serde_json::Value = serde_json::from_str(FIXTURE).unwrap();
        let requests = &whole["requests"];
        let mut first = requests[0].clone();
        first["response"] = serde_json::json!([]);
        let parts = requests[0]["response"].as_array().unwrap();
        let lines = [
            serde_json::json!({"kind": 0, "v": {"version": 3, "creationDate": whole["creationDate"], "sessionId": "s-1", "requests": []}}),
            serde_json::json!({"kind": 2, "k": ["requests"], "v": [first]}),
            serde_json::json!({"kind": 2, "k": ["requests", 0, "response"], "v": parts[..3]}),
            serde_json::json!({"kind": 2, "k": ["requests"], "v": [{"message": {"text": "taken back"}}]}),
            serde_json::json!({"kind": 2, "k": ["requests", 0, "response"], "v": parts[3..], "i": 3}),
            serde_json::json!({"kind": 2, "k": ["requests"], "v": [{"message": "add one", "timestamp": 1_777_493_160_000_i64}], "i": 1}),
            serde_json::json!({"kind": 1, "k": ["requests", 1, "isCanceled"], "v": true}),
            serde_json::json!({"kind": 1, "k": ["requests", 1, "result"], "v": {"errorDetails": {"message": "Canceled"}}}),
            serde_json::json!({"kind": 3, "k": ["customTitle"]}),
            serde_json::json!({"kind": 1, "k": ["requests", 999_999_999, "x"], "v": 1}),
        ];
        let text = lines.map(|line| line.to_string()).join("\n");
        check(&only("s-1.jsonl", &text));
        survives_damage(SessionFormat::VsCode, text.as_bytes());
    }

    /// The arguments and the output that the model saw come from the rounds, the exit code from what
    /// was shown.
    #[test]
    fn rounds_of_calls_say_more_than_what_was_shown() {
        let text = r#"{"responderUsername":"GitHub Copilot","requests":[{"message":{"text":"test it"},"timestamp":1777493100000,
     "response":[{"value":"I run them."},{"kind":"toolInvocationSerialized","toolId":"run_in_terminal","toolCallId":"toolu_1__vscode-9","isComplete":true,
       "toolSpecificData":{"commandLine":{"original":"npm test"},"terminalCommandState":{"exitCode":2}}},{"value":"Two fail."}],
     "result":{"metadata":{"resolvedModel":"claude-x","promptTokens":9,"outputTokens":3,
       "toolCallRounds":[{"response":"I run them.","toolCalls":[{"name":"run_in_terminal","arguments":"{\"command\":\"npm test\",\"explanation\":\"e\"}","id":"toolu_1"}]},
         {"response":"Two fail.","toolCalls":[]}],
       "toolCallResults":{"toolu_1":{"content":[{"value":"2 failed"}]}}}}}]}"#;
        let session = only("export.json", text);
        assert_eq!(session.head.models, ["claude-x"]);
        let said: Vec<_> = session.events.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(said, ["test it", "I run them.", "", "Two fail."]);
        let result = &session.events[2].results[0];
        assert_eq!((result.text.as_str(), result.exit_code), ("2 failed", Some(2)));
        assert_eq!(result.outcome, ToolOutcome::Failed);
        assert!(session.events[1].calls[0].arguments.contains("explanation"));
    }

    #[test]
    fn the_folder_is_that_of_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let chats = folder.path().join("chatSessions");
        std::fs::create_dir(&chats).unwrap();
        std::fs::write(folder.path().join("workspace.json"), r#"{"folder":"file:///w/my%20app"}"#)
            .unwrap();
        assert_eq!(workspace_folder(&chats.join("a.json")).as_deref(), Some("/w/my app"));
        assert_eq!(workspace_folder(Path::new("a.json")), None);
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::VsCode, FIXTURE.as_bytes());
    }

    #[test]
    fn what_became_of_the_changes_is_said_before_the_next_request() {
        let text = r#"{"version":3,"responderUsername":"GitHub Copilot","initialLocation":"panel","sessionId":"s-1","creationDate":1777493099000,"requests":[
 {"timestamp":1777493100000,"message":{"text":"fix it"},"response":[{"value":"Done."}]},
 {"timestamp":1777493160000,"message":{"text":"and the other"},"response":[],
  "editedFileEvents":[{"uri":{"path":"/w/a.ts"},"eventKind":1},{"uri":{"path":"/w/b.ts"},"eventKind":2},
   {"uri":{"path":"/w/c.ts"},"eventKind":3},{"eventKind":"x"}]}]}"#;
        let session = only("s-1.json", text);
        let said: Vec<_> =
            session.events.iter().map(|event| (event.mark, event.text.as_str())).collect();
        assert_eq!(
            said,
            [
                (None, "fix it"),
                (None, "Done."),
                (Some(EventMark::EditUndone), "/w/b.ts"),
                (Some(EventMark::FileEdited), "/w/c.ts"),
                (None, "and the other"),
            ]
        );
    }
}
