//! Walks of project folders that respect `.gitignore` and `.ignore`, whatever stands in their place.

use std::fs;
use std::path::{Path, PathBuf};

pub use ignore::{DirEntry, WalkBuilder};

use crate::file::read_bounded;

/// The files of a folder that name what is ignored.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// Their maximum size in bytes. All patterns of one are compiled into a single automaton.
const MAX_IGNORE_FILE: u64 = 1 << 20;

/// Returns the ignore file of a folder that cannot be read safely: one that is a pipe, a device, a
/// folder, or too large, also behind a link. The walk would wait for a pipe without end, and read
/// `/dev/zero` until no memory is left.
pub fn unsafe_ignore_file(folder: &Path) -> Option<PathBuf> {
    let files = IGNORE_FILES.iter().map(|name| folder.join(name)).chain(linked_files(folder));
    // What is not there, or cannot be opened, is not read.
    let is_unsafe = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|data| !data.is_file() || data.len() > MAX_IGNORE_FILE)
    };
    files.into_iter().find(is_unsafe)
}

/// Returns what the walk reads for a linked working tree, whose `.git` is a file: that file, the one
/// that it leads to, and the ignore file of the repository.
fn linked_files(folder: &Path) -> Vec<PathBuf> {
    let first_line = |file: &Path| {
        let bytes = read_bounded(file, MAX_IGNORE_FILE).ok()?;
        Some(String::from_utf8_lossy(&bytes).lines().next()?.to_owned())
    };
    let pointer = folder.join(".git");
    if !pointer.metadata().is_ok_and(|data| data.is_file()) {
        return Vec::new();
    }
    let mut files = vec![pointer];
    let line = first_line(&files[0]).unwrap_or_default();
    if let Some(data) = line.strip_prefix("gitdir: ").map(Path::new) {
        let common = data.join("commondir");
        if let Some(line) = first_line(&common) {
            // The walk takes some relative paths from the current folder.
            files.extend([data.join(&line), PathBuf::from(line)].map(|it| it.join("info/exclude")));
        }
        files.push(common);
    }
    files
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_a_linked_working_tree_leads_to_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("data/common/info")).unwrap();
        fs::write(at(".git"), format!("gitdir: {}\n", at("data").display())).unwrap();
        assert_eq!(unsafe_ignore_file(folder.path()), None);
        fs::write(at("data/commondir"), "./common\n").unwrap();
        assert_eq!(unsafe_ignore_file(folder.path()), None);
        let exclude = at("data/./common/info/exclude");
        std::os::unix::fs::symlink("/dev/zero", &exclude).unwrap();
        assert_eq!(unsafe_ignore_file(folder.path()), Some(exclude));
        fs::remove_file(at("data/commondir")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("data/commondir")).unwrap();
        assert_eq!(unsafe_ignore_file(folder.path()), Some(at("data/commondir")));
        fs::File::create(at(".git")).unwrap().set_len(3 << 30).unwrap();
        assert_eq!(unsafe_ignore_file(folder.path()), Some(at(".git")));
    }
}
