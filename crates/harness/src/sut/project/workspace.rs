//! A writable copy of a project for one case, which reports the changed files afterwards.
//!
//! It never contains an answer key, and links out of the copy are not followed.

use std::io::{Error, ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};

use super::snapshot::{FileChange, files};
use super::{ANSWER_KEYS, AnchoredFolder, ProjectSnapshot, barred_paths};
use crate::sut::{Fixture, FixtureSource};
use selftest_checks::check::{FileChanges, FileContent, PathGlobs, is_glob};

/// Maximum number of files of a copy.
const MAX_FILES: usize = 20_000;
/// Maximum total size of a copy in bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum number of files that a path with `*` may stand for.
const MAX_MATCHES: usize = 200;
/// Maximum size in bytes of a file whose content is reported.
const MAX_CONTENT: u64 = 1 << 20;

/// The copy, with its initial snapshot.
#[derive(Debug, Clone)]
pub struct Workspace {
    folder: PathBuf,
    anchor: AnchoredFolder,
    first: ProjectSnapshot,
}

impl Workspace {
    /// Copies the project without `.git`, build folders, files ignored by `.gitignore`, answer keys
    /// and other protected paths. Links are skipped. The error is an I/O error, or states that the
    /// project is too large.
    ///
    /// The fixtures of the case are copied over it, and count as part of the initial state.
    pub fn copy(
        project: &Path,
        protected: &[PathBuf],
        fixtures: &[Fixture],
        folder: PathBuf,
    ) -> Result<Self, Error> {
        let project = project.canonicalize()?;
        std::fs::create_dir_all(&folder)?;
        let mut copy = CopyTotals { count: 0, bytes: 0 };
        for path in files(&project, &barred_paths(&project, ANSWER_KEYS, protected)) {
            copy.copy_file(&project.join(&path), &folder.join(&path))?;
        }
        for Fixture { path, source } in fixtures {
            if !is_inside(path) {
                return Err(Error::other(format!("the fixture `{path}` leads out of the folder")));
            }
            let to = folder.join(path);
            match source {
                FixtureSource::Text(text) => {
                    make_parent(&to)?;
                    std::fs::write(&to, text)?;
                }
                FixtureSource::Disk(from) if from.is_dir() => {
                    // A skill under trial is hidden where it lies, and laid on purpose.
                    let real = from.canonicalize()?;
                    let is_around =
                        |path: &&PathBuf| from.starts_with(path) || real.starts_with(path);
                    let inside: Vec<PathBuf> =
                        protected.iter().filter(|path| !is_around(path)).cloned().collect();
                    for inner in files(from, &barred_paths(from, &[], &inside)) {
                        copy.copy_file(&from.join(&inner), &to.join(&inner))?;
                    }
                }
                FixtureSource::Disk(from) => copy.copy_file(from, &to)?,
            }
        }
        let anchor = AnchoredFolder::open(&folder)?;
        let first = ProjectSnapshot::take_whole(&anchor);
        Ok(Self { folder, anchor, first })
    }

    /// Returns the same copy with its current state as the initial one. Blocks.
    #[must_use]
    pub fn with_new_baseline(self) -> Self {
        let first = ProjectSnapshot::take_whole(&self.anchor);
        Self { first, ..self }
    }

    /// Returns the opened folder, for adapters that read files on behalf of the program.
    pub fn anchor(&self) -> &AnchoredFolder {
        &self.anchor
    }

    /// Returns the path of the copy, as the program knows it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the changes so far, and the content of the named files. Blocks.
    pub fn report(&self, named: &[String]) -> FileChanges {
        let now = self.first.refresh();
        let mut report = FileChanges::default();
        for (path, change) in now.difference(&self.first) {
            let list = match change {
                FileChange::Added => &mut report.created,
                FileChange::Changed => &mut report.changed,
                FileChange::Deleted => &mut report.deleted,
            };
            list.insert(path.to_string_lossy().into_owned());
        }
        for path in named {
            if !is_glob(path) {
                report.after.insert(path.clone(), self.content(path));
                continue;
            }
            let Ok(globs) = PathGlobs::new(vec![path.clone()]) else { continue };
            let names = now.paths().filter_map(Path::to_str);
            let found: Vec<&str> = names.filter(|name| globs.matches_path(name)).collect();
            // Too many are not read: the check stays undecided.
            if found.len() <= MAX_MATCHES {
                let contents = found.into_iter().map(|name| (name.to_owned(), self.content(name)));
                report.after.extend(contents);
                report.listed.insert(path.clone());
            }
        }
        report
    }

    fn content(&self, path: &str) -> FileContent {
        let unreadable = |why: &str| FileContent::Unreadable(why.to_owned());
        if !is_inside(path) {
            return unreadable("it is not a path inside the project");
        }
        let file = match self.anchor.open_file(Path::new(path)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return FileContent::Missing,
            Err(error) => return unreadable(&error.to_string()),
        };
        let mut bytes = Vec::new();
        // One extra byte shows if the file is too large.
        let read = file.take(MAX_CONTENT + 1).read_to_end(&mut bytes);
        match read {
            Err(error) => unreadable(&error.to_string()),
            Ok(_) if bytes.len() as u64 > MAX_CONTENT => unreadable("it has more than 1 MiB"),
            Ok(_) => String::from_utf8(bytes)
                .map_or_else(|_| unreadable("it is not UTF-8"), FileContent::Text),
        }
    }
}

/// Totals of the copied files.
struct CopyTotals {
    count: usize,
    bytes: u64,
}

impl CopyTotals {
    /// Copies a file. Links are skipped.
    fn copy_file(&mut self, from: &Path, to: &Path) -> Result<(), Error> {
        // Does not follow links.
        let metadata = from.symlink_metadata()?;
        if !metadata.is_file() {
            return Ok(());
        }
        self.count += 1;
        self.bytes += metadata.len();
        if self.count > MAX_FILES || self.bytes > MAX_BYTES {
            return Err(Error::other(format!(
                "a copy of the project would have more than {MAX_FILES} files or {} MiB",
                MAX_BYTES >> 20
            )));
        }
        make_parent(to)?;
        std::fs::copy(from, to).map(drop)
    }
}

fn make_parent(path: &Path) -> Result<(), Error> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
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
        let fixture = |path: &str| Fixture {
            path: path.to_owned(),
            source: FixtureSource::Text("port 81".to_owned()),
        };
        let folder = scratch.path().join("w");
        let fixtures = [fixture("README.md"), fixture("data/in.csv")];
        let copy = Workspace::copy(project.path(), &protected, &fixtures, folder).unwrap();
        assert_eq!(fs::read_to_string(copy.folder().join("README.md")).unwrap(), "port 81");
        assert!(copy.folder().join("data/in.csv").exists());
        assert_eq!(copy.report(&[]), FileChanges::default(), "fixtures are no changes");
        let out = [fixture("../out")];
        assert!(Workspace::copy(project.path(), &[], &out, scratch.path().join("x")).is_err());
        let there = |path: &str| copy.folder().join(path).exists();
        assert!(there("README.md") && there("src/a.rs") && there(".gitignore"));
        for left_out in ["reports/old.md", "config/selftest.yaml", "secret", "src/b.rs"] {
            assert!(!there(left_out), "{left_out}");
        }
    }

    #[test]
    fn what_became_of_files_is_told() {
        let (project, scratch) = (project(), tempfile::tempdir().unwrap());
        let copy = Workspace::copy(project.path(), &[], &[], scratch.path().join("w")).unwrap();
        assert_eq!(copy.report(&[]), FileChanges::default());
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
        assert_eq!(copy.with_new_baseline().report(&[]), FileChanges::default());
    }
}
