//! Explains why files are not read as sessions: by their names and by what stands beside them. An
//! audit accounts for every file of a folder.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::SessionFile;
use crate::open_code::storage;
use crate::source::SessionSource;

/// File extensions of sessions. Parquet is included so that it is rejected with advice instead of
/// being skipped.
const EXTENSIONS: [&str; 6] = ["json", "jsonl", "ndjson", "traj", "eval", "parquet"];

/// Extensions of compressed files and backups, after that of the session.
const WRAPPED: [&str; 5] = ["gz", "zst", "zstd", "bak", "old"];

/// File names that agents use for databases.
const DATABASES: [&str; 7] =
    ["state.db", "opencode.db", "sessions.db", "crush.db", "threads.db", "state.vscdb", "store.db"];

/// File name that Aider uses for a history.
const CHAT_HISTORY: &str = ".aider.chat.history.md";

/// State file that `OpenHands` stores beside a folder of events.
pub(super) const BASE_STATE: &str = "base_state.json";

/// Returns true for folders that are never searched.
pub(super) fn is_unsearched(name: &OsStr) -> bool {
    name == "node_modules" || name == ".git"
}

/// Returns true if the folder is part of a workspace of VS Code and holds no chats.
pub(super) fn is_beside_chats(folder: &Path) -> bool {
    let storage = folder.parent().and_then(Path::parent);
    storage.is_some_and(|storage| storage.ends_with("workspaceStorage"))
        && !folder.ends_with("chatSessions")
}

/// Returns true if an agent gives a database this name.
pub(super) fn is_database(path: &Path) -> bool {
    path.file_name().is_some_and(|name| DATABASES.iter().any(|database| name == *database))
}

/// Returns why a file cannot hold sessions; `None` if it may.
pub(super) fn reason(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    if is_database(path) || name == CHAT_HISTORY {
        return in_workspace(path);
    }
    let is_story = || {
        let history = path.parent().filter(|history| history.ends_with("history"));
        name.ends_with(".md")
            && history.is_some_and(|history| history.ends_with(".specstory/history"))
    };
    let extension = extension(&name);
    if !EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()) && !is_story() {
        return Some(match extension {
            "" => "no ending, which session files have".to_owned(),
            other => format!("no session file ends with .{}", selftest_text::one_line(other, 20)),
        });
    }
    companion(path, &name).map(str::to_owned).or_else(|| in_workspace(path))
}

/// Returns the extension of a session, below those of compressed files and backups.
fn extension(name: &str) -> &str {
    let mut rest = name;
    loop {
        let Some((stem, extension)) = rest.rsplit_once('.') else { return "" };
        let lower = extension.to_ascii_lowercase();
        // Without an extension below it, it is that of the file.
        if !WRAPPED.contains(&lower.as_str()) || !stem.contains('.') {
            return extension;
        }
        rest = stem;
    }
}

/// Returns why a file in a workspace of VS Code is no chat.
fn in_workspace(path: &Path) -> Option<String> {
    let storage = path.parent().and_then(Path::parent)?;
    let is_beside = storage.ends_with("workspaceStorage");
    is_beside.then(|| "describes a workspace of an editor, beside its chats".to_owned())
}

/// Returns why a file beside a session is none.
fn companion(path: &Path, name: &str) -> Option<&'static str> {
    const DESCRIBES: &str = "describes the session beside it";
    const REPEATS: &str = "repeats the session beside it";
    let beside = |name: &str| path.with_file_name(name).is_file();
    match name {
        BASE_STATE => Some(DESCRIBES),
        // Kimi.
        "state.json" if beside("wire.jsonl") => Some(DESCRIBES),
        _ if name.starts_with("context") && name.ends_with(".jsonl") && beside("wire.jsonl") => {
            Some(REPEATS)
        }
        // Antigravity.
        "transcript.jsonl" if beside("transcript_full.jsonl") => Some(REPEATS),
        // Grok.
        "chat_history.jsonl" => None,
        "updates.jsonl" if beside("chat_history.jsonl") => Some(REPEATS),
        _ if name.ends_with(".json") && beside("chat_history.jsonl") && beside("summary.json") => {
            Some(DESCRIBES)
        }
        // Kiro.
        _ => {
            let is_described =
                name.strip_suffix(".json").is_some_and(|stem| beside(&format!("{stem}.jsonl")))
                    && path.components().any(|part| part.as_os_str() == ".kiro");
            is_described.then_some(DESCRIBES)
        }
    }
}

/// Files that are named for a reason.
const MAX_NAMED: usize = 3;

/// Maximum number of distinct reasons.
const MAX_REASONS: usize = 40;

/// The files of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileAudit {
    /// All files, also those in folders that are not searched.
    pub files: u64,
    /// Files that belong to sessions of several files, beside the first of each.
    pub parts: u64,
    /// The others that may not hold sessions, most files first.
    pub ignored: Vec<IgnoredFiles>,
}

/// Files that are ignored for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredFiles {
    /// Why they cannot hold sessions.
    pub reason: String,
    /// Number of files.
    pub count: u64,
    /// The first of them.
    pub files: Vec<PathBuf>,
}

/// Counts the files below `root` beside those that were found there.
pub fn audit_files(root: &Path, found: &[SessionFile]) -> FileAudit {
    let (mut sources, mut parts, mut folders) = (HashSet::new(), HashSet::new(), Vec::new());
    for file in found {
        match &file.source {
            SessionSource::Folder { path, files } => {
                parts.extend(files.iter().map(PathBuf::as_path));
                if files.first() == Some(path) {
                    sources.insert(path.as_path());
                } else {
                    folders.push(path.as_path());
                }
            }
            other => {
                sources.insert(other.path());
            }
        }
    }
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut audit = FileAudit::default();
    let mut reasons: BTreeMap<String, IgnoredFiles> = BTreeMap::new();
    let walk = WalkBuilder::new(&root).standard_filters(false).follow_links(false).build();
    for entry in walk.flatten() {
        let path = entry.path();
        // A root that is a link was followed.
        let is_folder = entry.file_type().is_none_or(|kind| kind.is_dir());
        if is_folder || (entry.depth() == 0 && path.is_dir()) {
            continue;
        }
        audit.files += 1;
        if sources.contains(path) {
            continue;
        }
        if parts.contains(path) {
            audit.parts += 1;
            continue;
        }
        let is_link = entry.file_type().is_some_and(|kind| !kind.is_file());
        let reason = reason_of(path, &root, &folders, is_link);
        let key = if reasons.len() < MAX_REASONS || reasons.contains_key(&reason) {
            reason
        } else {
            "other reasons".to_owned()
        };
        let ignored = reasons.entry(key.clone()).or_insert_with(|| IgnoredFiles {
            reason: key,
            count: 0,
            files: Vec::new(),
        });
        ignored.count += 1;
        if ignored.files.len() < MAX_NAMED {
            ignored.files.push(path.to_owned());
        }
    }
    // The files of a session in a folder stand for it, and the folder itself is no file.
    audit.parts = audit.parts.saturating_sub(folders.len() as u64);
    audit.ignored = reasons.into_values().collect();
    audit.ignored.sort_by(|a, b| (b.count, &a.reason).cmp(&(a.count, &b.reason)));
    audit
}

/// Returns why a file was not found.
fn reason_of(path: &Path, root: &Path, folders: &[&Path], is_link: bool) -> String {
    let above = || path.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    if above().any(|folder| folder != root && folder.file_name().is_some_and(is_unsearched)) {
        return "in a folder that is not searched (node_modules, .git)".to_owned();
    }
    if above().any(|folder| folders.contains(&folder)) {
        return "beside the events of a session".to_owned();
    }
    if above().any(storage::is_beside_sessions) {
        return "belongs to no session beside it".to_owned();
    }
    if above().any(|folder| folder != root && is_beside_chats(folder)) {
        return "describes a workspace of an editor, beside its chats".to_owned();
    }
    if is_link {
        return "a link or a special file".to_owned();
    }
    reason(path).unwrap_or_else(|| "cannot be read".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_below_others() {
        for (name, expected) in [
            ("a.jsonl", "jsonl"),
            ("a.jsonl.zst", "jsonl"),
            ("a.json.bak", "json"),
            ("a.jsonl.gz.bak", "jsonl"),
            ("a.tar.gz", "tar"),
            ("a.gz", "gz"),
            ("a", ""),
            (".hidden", "hidden"),
        ] {
            assert_eq!(extension(name), expected, "{name}");
        }
    }

    #[test]
    fn what_stands_beside_a_session() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
        };
        for name in [
            "kimi/wire.jsonl",
            "kimi/context.jsonl",
            "kimi/state.json",
            "grok/chat_history.jsonl",
            "grok/summary.json",
            ".kiro/sessions/cli/a.jsonl",
            ".kiro/sessions/cli/a.json",
            "logs/transcript_full.jsonl",
            "logs/transcript.jsonl",
            "w/.specstory/history/2026-01-01_10-00Z-x.md",
            "w/history/x.md",
            "workspaceStorage/1/chatSessions/a.json",
            "workspaceStorage/1/workspace.json",
            "workspaceStorage/1/state.vscdb",
            "globalStorage/state.vscdb",
        ] {
            write(name);
        }
        for (name, is_session) in [
            ("kimi/wire.jsonl", true),
            ("kimi/context.jsonl", false),
            ("kimi/state.json", false),
            ("grok/chat_history.jsonl", true),
            ("grok/summary.json", false),
            (".kiro/sessions/cli/a.jsonl", true),
            (".kiro/sessions/cli/a.json", false),
            ("logs/transcript.jsonl", false),
            ("w/.specstory/history/2026-01-01_10-00Z-x.md", true),
            ("w/history/x.md", false),
            ("workspaceStorage/1/chatSessions/a.json", true),
            ("workspaceStorage/1/workspace.json", false),
            ("workspaceStorage/1/state.vscdb", false),
            ("globalStorage/state.vscdb", true),
        ] {
            let path = folder.path().join(name);
            assert_eq!(reason(&path).is_none(), is_session, "{name}: {:?}", reason(&path));
        }
        assert!(is_beside_chats(Path::new("/c/workspaceStorage/1/x.copilot")));
        assert!(!is_beside_chats(Path::new("/c/workspaceStorage/1/chatSessions")));
    }
}
