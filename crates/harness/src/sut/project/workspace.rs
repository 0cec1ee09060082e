//! A writable copy of a project for one case, and the changes of files between two moments by digest.
//!
//! The copy never contains an answer key, and links out of it are not followed.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{Error, ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use super::{ANSWER_KEYS, AnchoredFolder, GENERATED, barred_paths, is_barred};
use crate::sut::{Fixture, FixtureSource};
use selftest_checks::check::{FileChanges, FileContent, PathGlobs, is_glob};
use selftest_text::file::open_unlinked;
use selftest_text::tree::{self, DirEntry};

/// Maximum number of files of a copy, and of files whose contents are compared.
const MAX_FILES: usize = 20_000;
/// Their maximum total size in bytes.
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
        // Opened before the program starts, which may put something else in its place.
        let anchor = AnchoredFolder::open(&folder)?;
        // Taken after the fixtures were laid, because they are no changes by the program.
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

/// A file that changed within this time before it was read may change again without a new
/// timestamp, because file system clocks are coarse.
const TICK: Duration = Duration::from_millis(50);

/// Folders that the harness itself writes to during a run.
const WRITTEN: &[&str] = &["reports", "docs/reports", ".selftest"];

/// The project tree at one moment, without `.git`, build folders, folders that a run writes to, and
/// files ignored by `.gitignore`.
#[derive(Debug, Clone)]
pub struct ProjectSnapshot {
    root: PathBuf,
    barred: Vec<PathBuf>,
    files: BTreeMap<PathBuf, SnapshotEntry>,
    /// Time before the first file was inspected.
    taken_at: SystemTime,
    metadata_only: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SnapshotEntry {
    bytes: u64,
    /// Time of the last change of content or attributes (ctime), which programs cannot set.
    changed: (i64, i64),
    inode: u64,
    mode: u32,
    /// Digest of the content, or of a link's target. Absent if contents are not read.
    digest: Option<[u8; 32]>,
}

/// The kind of difference of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub(super) enum FileChange {
    Added,
    Changed,
    Deleted,
}

impl SnapshotEntry {
    fn same_file(&self, other: &Self) -> bool {
        (self.bytes, self.changed, self.inode) == (other.bytes, other.changed, other.inode)
    }

    fn differs(&self, other: &Self) -> bool {
        match (&self.digest, &other.digest) {
            // A program may change the mode alone, for example make a file executable.
            (Some(one), Some(two)) => one != two || self.mode != other.mode,
            _ => !self.same_file(other),
        }
    }
}

impl ProjectSnapshot {
    /// Reads the tree. `excluded` paths are absolute or below `root`.
    pub fn take(root: &Path, excluded: &[PathBuf]) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let barred = barred_paths(&root, WRITTEN, excluded);
        Self::read(root, barred, None)
    }

    /// Reads a tree that is used by a case alone, so that no folder is excluded.
    pub(super) fn take_whole(folder: &AnchoredFolder) -> Self {
        Self::read(folder.walk_path(), Vec::new(), None)
    }

    /// Reads the same tree again. Contents are read only if a file's metadata changed.
    #[must_use]
    pub fn refresh(&self) -> Self {
        Self::read(self.root.clone(), self.barred.clone(), Some(self))
    }

    /// Returns true if the tree is too large to read its contents, so that sizes and times are
    /// compared.
    pub fn metadata_only(&self) -> bool {
        self.metadata_only
    }

    /// Returns one line for each changed path: `added: a`, `changed: b`, `deleted: c`.
    pub fn changes_since(&self, earlier: &Self) -> Vec<String> {
        let changes = self.difference(earlier).into_iter();
        changes.map(|(path, change)| format!("{change}: {}", path.display())).collect()
    }

    /// Returns the paths of all files, in order.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// Returns the changed paths: those of this tree in order, then the deleted ones.
    pub(super) fn difference<'a>(&'a self, earlier: &'a Self) -> Vec<(&'a Path, FileChange)> {
        let here = self.files.iter().filter_map(|(path, entry)| {
            let change = match earlier.files.get(path) {
                None => FileChange::Added,
                Some(before) if entry.differs(before) => FileChange::Changed,
                Some(_) => return None,
            };
            Some((path.as_path(), change))
        });
        let deleted = earlier.files.keys().filter(|path| !self.files.contains_key(*path));
        here.chain(deleted.map(|path| (path.as_path(), FileChange::Deleted))).collect()
    }

    #[expect(clippy::disallowed_methods, reason = "it is compared with times of files")]
    fn read(root: PathBuf, barred: Vec<PathBuf>, earlier: Option<&Self>) -> Self {
        // Taken before the walk, so that a change during it counts as later.
        let taken_at = SystemTime::now();
        let mut files = metadata(&root, &barred);
        let bytes: u64 = files.values().map(|entry| entry.bytes).sum();
        let metadata_only = files.len() > MAX_FILES || bytes > MAX_BYTES;
        if !metadata_only {
            // An earlier digest is reused only if the file is clearly older than the earlier
            // snapshot.
            let known_until = earlier.and_then(|earlier| earlier.taken_at.checked_sub(TICK));
            for (path, entry) in &mut files {
                let before = earlier.and_then(|earlier| earlier.files.get(path)).filter(|before| {
                    before.same_file(entry)
                        && known_until.is_some_and(|until| entry.is_older(until))
                });
                entry.digest = match before {
                    Some(before) => before.digest,
                    None => digest(&root.join(path)),
                };
            }
        }
        Self { root, barred, files, taken_at, metadata_only }
    }
}

impl SnapshotEntry {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            mode: metadata.mode(),
            digest: None,
        }
    }

    /// Windows reports only when the content changed, which programs can set. [`SnapshotEntry::is_older`]
    /// therefore never trusts it.
    #[cfg(not(unix))]
    fn of(metadata: &Metadata) -> Self {
        let changed = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let changed = changed.unwrap_or_default();
        let seconds = i64::try_from(changed.as_secs()).unwrap_or(i64::MAX);
        Self {
            bytes: metadata.len(),
            changed: (seconds, changed.subsec_nanos().into()),
            inode: 0,
            mode: u32::from(metadata.permissions().readonly()),
            digest: None,
        }
    }

    fn is_older(&self, than: SystemTime) -> bool {
        if cfg!(not(unix)) {
            return false;
        }
        let than = than.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(than.as_secs()).unwrap_or(i64::MAX);
        self.changed < (seconds, i64::from(than.subsec_nanos()))
    }
}

fn metadata(root: &Path, barred: &[PathBuf]) -> BTreeMap<PathBuf, SnapshotEntry> {
    // Output redirected into the project grows during the run, and is no change by a case.
    let own = own_output();
    files(root, barred)
        .filter_map(|path| {
            let found = root.join(&path).symlink_metadata().ok()?;
            let is_own = is_one_of(&found, &own);
            (!is_own).then(|| (path, SnapshotEntry::of(&found)))
        })
        .collect()
}

/// Returns true if a file is one of these, by device and inode.
#[cfg(unix)]
fn is_one_of(file: &Metadata, known: &[(u64, u64)]) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    known.contains(&(file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn is_one_of(_file: &Metadata, _known: &[(u64, u64)]) -> bool {
    false
}

#[cfg(not(unix))]
fn own_output() -> Vec<(u64, u64)> {
    Vec::new()
}

/// Returns the files that this process writes its own output to: `selftest >out 2>err`.
#[cfg(unix)]
#[cfg_attr(
    target_os = "linux",
    expect(clippy::useless_conversion, reason = "these numbers have other types elsewhere")
)]
fn own_output() -> Vec<(u64, u64)> {
    use std::os::fd::AsFd as _;
    let (out, err) = (std::io::stdout(), std::io::stderr());
    [out.as_fd(), err.as_fd()]
        .into_iter()
        .filter_map(|output| rustix::fs::fstat(output).ok())
        .filter(|found| rustix::fs::FileType::from_raw_mode(found.st_mode).is_file())
        .filter_map(|found| Some((found.st_dev.try_into().ok()?, found.st_ino.try_into().ok()?)))
        .collect()
}

/// Returns every file and link below a folder by relative path, without `.git`, build folders,
/// barred paths, and files ignored by `.gitignore`.
pub(super) fn files(root: &Path, barred: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let barred = barred.to_vec();
    let root = root.to_owned();
    let enters = move |entry: &DirEntry| {
        let name = entry.file_name();
        !is_barred(entry.path(), &barred)
            && name != ".git"
            && !GENERATED.iter().any(|folder| name == *folder)
    };
    tree::walk(&root, enters)
        .hidden(false)
        .require_git(false)
        .build()
        .flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()))
        .filter_map(move |entry| Some(entry.path().strip_prefix(&root).ok()?.to_owned()))
}

fn digest(path: &Path) -> Option<[u8; 32]> {
    let kind = path.symlink_metadata().ok()?.file_type();
    let mut hash = Sha256::new();
    if kind.is_symlink() {
        hash.update(path.read_link().ok()?.as_os_str().as_encoded_bytes());
    } else if kind.is_file() {
        // The program may have put something else in its place just now.
        let mut file = open_unlinked(path).ok()?;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match file.read(&mut chunk).ok()? {
                0 => break,
                read => hash.update(&chunk[..read]),
            }
        }
    } else {
        // A pipe or a device: opening it could block.
        return None;
    }
    Some(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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

    #[test]
    fn changes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["a.txt", "b.txt", "c.txt", "src/d.txt", "e.txt"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "12345").unwrap();
        }
        fs::write(root.join(".gitignore"), "*.log\n").unwrap();
        let first = ProjectSnapshot::take(root, &["e.txt".into()]);
        assert!(!first.metadata_only());
        assert_eq!(first.refresh().changes_since(&first), [] as [&str; 0]);

        fs::write(root.join("a.txt"), "1234!").unwrap();
        fs::remove_file(root.join("b.txt")).unwrap();
        // The same content again is no change.
        fs::write(root.join("c.txt"), "12345").unwrap();
        fs::write(root.join("src/new.txt"), "").unwrap();
        fs::write(root.join(".hidden"), "").unwrap();
        fs::write(root.join("e.txt"), "excluded").unwrap();
        fs::write(root.join("x.log"), "ignored").unwrap();
        for path in ["target", "node_modules", ".git", "reports", ".selftest", "prompts"] {
            fs::create_dir(root.join(path)).unwrap();
            fs::write(root.join(path).join("file"), "x").unwrap();
        }
        let second = first.refresh();
        assert_eq!(
            second.changes_since(&first),
            [
                "added: .hidden",
                "changed: a.txt",
                "added: prompts/file",
                "added: src/new.txt",
                "deleted: b.txt"
            ]
        );
        assert_eq!(second.refresh().changes_since(&second), [] as [&str; 0]);
    }

    #[test]
    fn a_change_with_the_old_time_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "12345").unwrap();
        let time = path.metadata().unwrap().modified().unwrap();
        let first = ProjectSnapshot::take(folder.path(), &[]);
        fs::write(&path, "54321").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(first.refresh().changes_since(&first), ["changed: a.txt"]);
    }

    #[test]
    fn links_and_modes_count() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("run.sh"), "x").unwrap();
        symlink("run.sh", root.join("link")).unwrap();
        let first = ProjectSnapshot::take(root, &[]);
        fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("/etc/passwd", root.join("link")).unwrap();
        assert_eq!(first.refresh().changes_since(&first), ["changed: link", "changed: run.sh"]);
    }
}
