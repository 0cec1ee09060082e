//! Accounts for every file of a folder: it may hold sessions, belongs to one, or is ignored for a
//! reason.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::{SessionFile, ignored};
use crate::open_code::storage;
use crate::source::SessionSource;

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
    if above()
        .any(|folder| folder != root && folder.file_name().is_some_and(ignored::is_unsearched))
    {
        return "in a folder that is not searched (node_modules, .git)".to_owned();
    }
    if above().any(|folder| folders.contains(&folder)) {
        return "beside the events of a session".to_owned();
    }
    if above().any(storage::is_beside_sessions) {
        return "belongs to no session beside it".to_owned();
    }
    if above().any(|folder| folder != root && ignored::is_beside_chats(folder)) {
        return "describes a workspace of an editor, beside its chats".to_owned();
    }
    if is_link {
        return "a link or a special file".to_owned();
    }
    ignored::reason(path).unwrap_or_else(|| "cannot be read".to_owned())
}
