//! Walks of project folders that respect `.gitignore` and `.ignore`, whatever stands in their place.

use std::fs;
use std::path::{Path, PathBuf};

pub use ignore::{DirEntry, WalkBuilder};

/// The files of a folder that name what is ignored.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// Their maximum size in bytes. All patterns of one are compiled into a single automaton.
const MAX_IGNORE_FILE: u64 = 1 << 20;

/// Returns the ignore file of a folder that cannot be read safely: one that is a pipe, a device, a
/// folder, or too large, also behind a link. The walk would wait for a pipe without end, and read
/// `/dev/zero` until no memory is left.
pub fn unsafe_ignore_file(folder: &Path) -> Option<PathBuf> {
    let files = IGNORE_FILES.iter().map(|name| folder.join(name));
    // What is not there, or cannot be opened, is not read.
    let is_unsafe = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|data| !data.is_file() || data.len() > MAX_IGNORE_FILE)
    };
    files.into_iter().find(is_unsafe)
}

/// Returns the error for a folder with such a file, as a sentence without the folder.
pub fn ignore_file_error(path: &Path) -> String {
    let limit = MAX_IGNORE_FILE >> 20;
    format!("{} is not a regular file of at most {limit} MiB, as git expects it", path.display())
}

/// Returns a walk that does not follow links, does not depend on the settings of the user, and enters
/// the folders that `enters` accepts. A folder with an [unsafe ignore file](unsafe_ignore_file) is
/// not entered; in the root or above it, ignore files are not read at all.
pub fn walk(
    root: &Path,
    enters: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
) -> WalkBuilder {
    let reads_own = unsafe_ignore_file(root).is_none();
    let mut above = root.ancestors().skip(1);
    let reads_above = reads_own && above.all(|folder| unsafe_ignore_file(folder).is_none());
    let mut builder = WalkBuilder::new(root);
    builder
        .follow_links(false)
        // Without the ignore file of the user: a project has the same files for everyone.
        .git_global(false)
        .parents(reads_above)
        .ignore(reads_own)
        .git_ignore(reads_own)
        .git_exclude(reads_own)
        .filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            enters(entry) && !(is_folder && unsafe_ignore_file(entry.path()).is_some())
        });
    builder
}
