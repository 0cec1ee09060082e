//! Reads the chats of VS Code with Copilot: `workspaceStorage/<workspace>/chatSessions/<id>.json`,
//! the `.jsonl` of newer versions, and what "Chat: Export Chat…" writes.
//!
//! A document has a list of requests, each with the person's message and the parts of the answer.
//! The lines of newer versions are changes to such a document ([`journal`]). Calls come from
//! `toolCallRounds`, which holds their arguments, or else from the parts, which hold the terminal's
//! output and exit code.

mod journal;
mod request;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::Deserialize as _;
use serde::de::{IgnoredAny, MapAccess};

use super::SessionReadError;
use super::feed::SessionFeed;
use super::source::{DocumentReader, SessionSource, each_record};
use super::text::Text;
use super::time::Moment;
use super::wire::JsonValue;
use crate::entry::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::outline::JsonOutline;
use request::ChatRequest;

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
    if journal::is_journal(source)? {
        let document = journal::replay(source, &mut feed.notes)?;
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
    let size = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let text = (size <= MAX_WORKSPACE).then(|| std::fs::read_to_string(file).ok()).flatten()?;
    let uri = JsonValue::parse(&text).text("/folder");
    let path = uri.strip_prefix("file://").unwrap_or(&uri);
    (!path.is_empty()).then(|| selftest_text::one_line(&without_escapes(path), 400))
}

/// Decodes `%20` and the like.
fn without_escapes(uri: &str) -> String {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'%').then(|| after.get(..2)).flatten();
        let digits = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
