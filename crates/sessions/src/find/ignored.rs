//! Which files cannot be sessions, by their names and by what stands beside them, and why.

use std::ffi::OsStr;
use std::path::Path;

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
