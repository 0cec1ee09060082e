//! Reads the folders in which `OpenCode` stored sessions before it had a database. Below
//! `storage/`, `session/PROJECT/SESSION.json` describes a session, `message/SESSION/MESSAGE.json` a
//! message and `part/MESSAGE/PART.json` a part. The first versions have one storage per project:
//! `session/info/SESSION.json`, `session/message/SESSION/MESSAGE.json` and
//! `session/part/SESSION/MESSAGE/PART.json`.
//!
//! Paths are built only from the names of existing files, never from their content.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::slice;

use super::{AGENT, MessageInfo, MessageParts, OpenCodePart, copy_metadata, is_undone, send_undo};
use crate::SessionReadError;
use crate::feed::SessionFeed;
use crate::lines::JsonLines;
use crate::source::SessionSource;
use crate::wire::JsonValue;

/// Folders of a storage that contain no session descriptions.
const OTHERS: [&str; 6] = ["message", "part", "todo", "project", "session_diff", "session_share"];

/// Message folder of a session, and the parent of its part folders.
struct SessionFolders {
    messages: PathBuf,
    parts: PathBuf,
}

impl SessionFolders {
    /// Locates the session that this file describes; `None` if the file is not in a storage.
    fn of(path: &Path) -> Option<Self> {
        let session = path.file_stem()?;
        let project = path.parent()?;
        let sessions = project.parent()?;
        // `storage/session/<project>/<id>.json`.
        if path.extension()? != "json" || !sessions.ends_with("session") {
            return None;
        }
        // The layout of the first versions.
        // `session/info/<id>.json`, `session/message/<id>/…`, `session/part/<id>/<message>/…`.
        if project.ends_with("info") && sessions.join("message").is_dir() {
            let (messages, parts) = (sessions.join("message"), sessions.join("part"));
            return Some(Self { messages: messages.join(session), parts: parts.join(session) });
        }
        let storage = sessions.parent()?;
        let (messages, parts) = (storage.join("message"), storage.join("part"));
        messages.is_dir().then(|| Self { messages: messages.join(session), parts })
    }
}

/// Returns true if the folder is part of a storage. Its files are then read with their sessions.
pub(crate) fn is_beside_sessions(folder: &Path) -> bool {
    OTHERS.iter().any(|name| folder.ends_with(name))
        && folder.parent().is_some_and(|storage| {
            let holds = |name: &str| storage.join(name).is_dir();
            holds("message") && (holds("session") || storage.ends_with("session") && holds("info"))
        })
}

/// Returns the files of the session that this file describes: the file itself, then each message
/// followed by its parts. Returns `None` if the file is not in a storage.
pub(crate) fn files(path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let Some(stored) = SessionFolders::of(path) else { return Ok(None) };
    let mut files = vec![path.to_owned()];
    for message in list_json_files(&stored.messages)? {
        let parts = message.file_stem().map(|id| stored.parts.join(id));
        files.push(message);
        if let Some(parts) = parts {
            files.extend(list_json_files(&parts)?);
        }
    }
    Ok(Some(files))
}

/// Lists the JSON files of a folder by name, which is also by time. A missing folder is empty.
fn list_json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    // Symbolic links are not followed: they could point outside of the storage.
    let kind = match fs::symlink_metadata(folder) {
        Ok(kind) => kind,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    if !kind.is_dir() {
        return Ok(files);
    }
    for entry in folder.read_dir()? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_file() && path.extension().is_some_and(|own| own == "json") {
            files.push(path);
        }
    }
    // Ids of OpenCode ascend with time.
    files.sort_unstable();
    Ok(files)
}

/// Returns true if the source is a session of such a storage.
pub(crate) fn is_stored(source: &SessionSource) -> bool {
    matches!(source, SessionSource::Folder { path, files } if files.first() == Some(path))
}

/// Reads a session from its files, in the order of [`files`].
pub(super) fn read(files: &[PathBuf], feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let Some((description, said)) = files.split_first() else { return Ok(()) };
    AGENT.clone_into(&mut feed.head.agent);
    let (mut scratch, mut was_undone) = (String::new(), false);
    if let Some(line) = JsonLines::of_files(slice::from_ref(description)).next(&mut feed.notes)?
        && let Some(info) = line.parse::<JsonValue>(&mut scratch, &mut feed.notes)
    {
        was_undone = is_undone(&info);
        copy_metadata(&info, feed);
    }
    // Each chunk is a message file followed by the files of its parts.
    for files in said.chunk_by(|_, next| !is_message(next)) {
        let (message, parts) = files.split_at(1);
        let mut lines = JsonLines::of_files(message);
        let Some(line) = lines.next(&mut feed.notes)? else { continue };
        let Some(info) = line.parse::<MessageInfo<'_>>(&mut scratch, &mut feed.notes) else {
            continue;
        };
        let (mut lines, mut scratch) = (JsonLines::of_files(parts), String::new());
        let mut said = MessageParts::default();
        while let Some(line) = lines.next(&mut feed.notes)? {
            if let Some(part) = line.parse::<OpenCodePart<'_>>(&mut scratch, &mut feed.notes) {
                said.add(part.into_owned());
            }
        }
        info.send(said, feed);
    }
    if was_undone {
        send_undo(feed);
    }
    Ok(())
}

fn is_message(path: &Path) -> bool {
    path.ancestors().nth(2).is_some_and(|folder| folder.ends_with("message"))
}
