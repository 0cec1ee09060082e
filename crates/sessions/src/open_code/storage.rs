//! The folders in which `OpenCode` kept sessions before it had a database: below `storage/` a file
//! `session/PROJECT/SESSION.json` describes a session, `message/SESSION/MESSAGE.json` one of its
//! messages and `part/MESSAGE/PART.json` a part of one. Its first versions had a storage for each
//! project: `session/info/SESSION.json`, `session/message/SESSION/MESSAGE.json` and
//! `session/part/SESSION/MESSAGE/PART.json`.
//!
//! Paths are made of names of files that are there, never of what stands in them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::slice;

use super::{AGENT, Info, Part, Said, describe};
use crate::ReadError;
use crate::feed::Feed;
use crate::lines::Lines;
use crate::source::Source;
use crate::wire::Loose;

/// Folders of a storage that hold no session by themselves.
const OTHERS: [&str; 6] = ["message", "part", "todo", "project", "session_diff", "session_share"];

/// Where the messages of a session lie, and the folders of their parts.
struct Stored {
    messages: PathBuf,
    parts: PathBuf,
}

impl Stored {
    /// Of the session that this file describes; `None` where it lies in no storage.
    fn of(path: &Path) -> Option<Self> {
        let session = path.file_stem()?;
        let project = path.parent()?;
        let sessions = project.parent()?;
        if path.extension()? != "json" || !sessions.ends_with("session") {
            return None;
        }
        if project.ends_with("info") && sessions.join("message").is_dir() {
            let (messages, parts) = (sessions.join("message"), sessions.join("part"));
            return Some(Self { messages: messages.join(session), parts: parts.join(session) });
        }
        let storage = sessions.parent()?;
        let (messages, parts) = (storage.join("message"), storage.join("part"));
        messages.is_dir().then(|| Self { messages: messages.join(session), parts })
    }
}

/// Whether the folder is part of a storage, and its files are read with the sessions beside it.
pub(crate) fn is_beside_sessions(folder: &Path) -> bool {
    OTHERS.iter().any(|name| folder.ends_with(name))
        && folder.parent().is_some_and(|storage| {
            let holds = |name: &str| storage.join(name).is_dir();
            holds("message") && (holds("session") || storage.ends_with("session") && holds("info"))
        })
}

/// The files of the session that this one describes, itself first, each message before its parts.
/// `None` where the file lies in no storage.
pub(crate) fn files(path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let Some(stored) = Stored::of(path) else { return Ok(None) };
    let mut files = vec![path.to_owned()];
    for message in listed(&stored.messages)? {
        let parts = message.file_stem().map(|id| stored.parts.join(id));
        files.push(message);
        if let Some(parts) = parts {
            files.extend(listed(&parts)?);
        }
    }
    Ok(Some(files))
}

/// The JSON files of a folder by their names, which grow with time; none where it is not there.
fn listed(folder: &Path) -> io::Result<Vec<PathBuf>> {
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
    files.sort_unstable();
    Ok(files)
}

/// Whether the source is a session of such a storage.
pub(crate) fn is_stored(source: &Source) -> bool {
    matches!(source, Source::Folder { path, files } if files.first() == Some(path))
}

/// Reads a session, its files in the order of [`files`].
pub(super) fn read(files: &[PathBuf], feed: &mut Feed<'_>) -> Result<(), ReadError> {
    let Some((description, said)) = files.split_first() else { return Ok(()) };
    AGENT.clone_into(&mut feed.head.agent);
    let mut scratch = String::new();
    if let Some(line) = Lines::of_files(slice::from_ref(description)).next(&mut feed.notes)?
        && let Some(info) = line.parse::<Loose>(&mut scratch, &mut feed.notes)
    {
        describe(&info, feed);
    }
    for files in said.chunk_by(|_, next| !is_message(next)) {
        let (message, parts) = files.split_at(1);
        let mut lines = Lines::of_files(message);
        let Some(line) = lines.next(&mut feed.notes)? else { continue };
        let Some(info) = line.parse::<Info<'_>>(&mut scratch, &mut feed.notes) else { continue };
        let (mut lines, mut scratch) = (Lines::of_files(parts), String::new());
        let mut said = Said::default();
        while let Some(line) = lines.next(&mut feed.notes)? {
            if let Some(part) = line.parse::<Part<'_>>(&mut scratch, &mut feed.notes) {
                said.add(part.into_owned());
            }
        }
        info.send(said, feed);
    }
    Ok(())
}

fn is_message(path: &Path) -> bool {
    path.ancestors().nth(2).is_some_and(|folder| folder.ends_with("message"))
}
