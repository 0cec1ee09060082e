//! A copy of a project for one case, in which a program may write. Afterwards it tells what became
//! of the files.
//!
//! Never holds an answer key, and never follows a link out of the copy.

use std::io::{Error, Read as _};
use std::path::{Component, Path, PathBuf};

use super::snapshot::{Change, files};
use super::{ANSWER_KEYS, Snapshot, barred};
use crate::check::{FileContent, FileReport};

/// Most files of a copy.
const MAX_FILES: usize = 20_000;
/// Most bytes of a copy.
const MAX_BYTES: u64 = 256 << 20;
/// Most bytes of a file whose content is reported.
const MAX_CONTENT: u64 = 1 << 20;

/// The copy, and how it looked at first.
#[derive(Debug, Clone)]
pub struct Workspace {
    folder: PathBuf,
    first: Snapshot,
}

impl Workspace {
    /// Copies the project without `.git`, build folders, what `.gitignore` names, answer keys and
    /// what else is protected. Links are left out. The error is one of the disk, or says that the
    /// project is too large.
    pub fn copy(project: &Path, protected: &[PathBuf], folder: PathBuf) -> Result<Self, Error> {
        let project = project.canonicalize()?;
        std::fs::create_dir_all(&folder)?;
        let (mut count, mut bytes) = (0, 0);
        for path in files(&project, &barred(&project, ANSWER_KEYS, protected)) {
            let from = project.join(&path);
            let metadata = from.symlink_metadata()?;
            if !metadata.is_file() {
                continue;
            }
            (count, bytes) = (count + 1, bytes + metadata.len());
            if count > MAX_FILES || bytes > MAX_BYTES {
                return Err(Error::other(format!(
                    "a copy of the project would have more than {MAX_FILES} files or {} MiB",
                    MAX_BYTES >> 20
                )));
            }
            let to = folder.join(&path);
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::copy(&from, &to)?;
        }
        let first = Snapshot::take_whole(&folder);
        Ok(Self { folder, first })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The changes so far, and the content of the named files. Blocks.
    pub fn report(&self, named: &[String]) -> FileReport {
        let now = self.first.again();
        let mut report = FileReport::default();
        for (path, change) in now.difference(&self.first) {
            let list = match change {
                Change::Added => &mut report.created,
                Change::Changed => &mut report.changed,
                Change::Deleted => &mut report.deleted,
            };
            list.insert(path.to_string_lossy().into_owned());
        }
        let contents = named.iter().map(|path| (path.clone(), self.content(path)));
        report.after = contents.collect();
        report
    }

    fn content(&self, path: &str) -> FileContent {
        let unreadable = |why: &str| FileContent::Unreadable(why.to_owned());
        let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside {
            return unreadable("it is not a path inside the project");
        }
        let Ok(real) = self.folder.join(path).canonicalize() else { return FileContent::Missing };
        if !self.folder.canonicalize().is_ok_and(|folder| real.starts_with(folder)) {
            return unreadable("it is a link that leads out of the project");
        }
        if !real.is_file() {
            return unreadable("it is no file");
        }
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&real)
            .and_then(|file| file.take(MAX_CONTENT + 1).read_to_end(&mut bytes));
        match read {
            Err(error) => unreadable(&error.to_string()),
            Ok(_) if bytes.len() as u64 > MAX_CONTENT => unreadable("it has more than 1 MiB"),
            Ok(_) => String::from_utf8(bytes)
                .map_or_else(|_| unreadable("it is not UTF-8"), FileContent::Text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("README.md", "port 80"),
            ("src/a.rs", "a"),
            ("src/b.rs", "b"),
            ("reports/old.md", "answers"),
            ("config/selftest.yaml", "answers"),
            (".gitignore", "secret"),
            ("secret", "x"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_copy_holds_no_answers() {
        let (project, scratch) = (project(), tempfile::tempdir().unwrap());
        let protected = [PathBuf::from("src/b.rs")];
        let copy = Workspace::copy(project.path(), &protected, scratch.path().join("w")).unwrap();
        let there = |path: &str| copy.folder().join(path).exists();
        assert!(there("README.md") && there("src/a.rs") && there(".gitignore"));
        for left_out in ["reports/old.md", "config/selftest.yaml", "secret", "src/b.rs"] {
            assert!(!there(left_out), "{left_out}");
        }
    }

    #[test]
    fn what_became_of_files_is_told() {
        let (project, scratch) = (project(), tempfile::tempdir().unwrap());
        let copy = Workspace::copy(project.path(), &[], scratch.path().join("w")).unwrap();
        assert_eq!(copy.report(&[]), FileReport::default());
        let at = |path: &str| copy.folder().join(path);
        fs::write(at("src/a.rs"), "aa").unwrap();
        fs::remove_file(at("src/b.rs")).unwrap();
        fs::create_dir(at("reports")).unwrap();
        fs::write(at("reports/new.md"), "new").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", at("link")).unwrap();
        let named = ["src/a.rs", "src/b.rs", "link", "../README.md", "src"].map(ToOwned::to_owned);
        let report = copy.report(&named);
        let sets = [&report.created, &report.changed, &report.deleted];
        let sets = sets.map(|set| set.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(sets, [vec!["link", "reports/new.md"], vec!["src/a.rs"], vec!["src/b.rs"]]);
        assert_eq!(report.after["src/a.rs"], FileContent::Text("aa".to_owned()));
        assert_eq!(report.after["src/b.rs"], FileContent::Missing);
        for hostile in ["link", "../README.md", "src"] {
            let content = &report.after[hostile];
            assert!(matches!(content, FileContent::Unreadable(_)), "{hostile}: {content:?}");
        }
        assert_eq!(fs::read_to_string(project.path().join("src/a.rs")).unwrap(), "a");
    }
}
