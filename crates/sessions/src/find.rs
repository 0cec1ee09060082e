//! Finds files that may contain sessions, by name and metadata. No file is opened.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use ignore::{DirEntry, WalkBuilder, WalkState};
use jiff::Timestamp;

use self::ignored::BASE_STATE;
use super::open_code::storage;
use super::source::SessionSource;
use super::sqlite;

mod ignored;

pub use ignored::{FileAudit, IgnoredFiles, audit_files};

/// A file, or a folder of event files, that may contain sessions.
#[derive(Debug, Clone)]
pub struct SessionFile {
    /// Path of the file or folder.
    pub source: SessionSource,
    /// Size in bytes; for a folder, the sum over its event files; for a database, with its
    /// write-ahead log.
    pub size: u64,
    /// Last modification in nanoseconds since 1970, negative before. For a folder, that of the
    /// newest event file; for a database, that of its write-ahead log if it is newer. 0 if the file
    /// system does not report it.
    pub modified_ns: i64,
}

impl SessionFile {
    /// Returns the last modification time, or 1970 if it is out of range.
    pub fn modified(&self) -> Timestamp {
        Timestamp::from_nanosecond(self.modified_ns.into()).unwrap_or_default()
    }

    /// Returns true if the file may contain a session started since this time. A file last modified
    /// earlier cannot.
    pub fn may_contain_session_since(&self, since: Option<Timestamp>) -> bool {
        since.is_none_or(|since| i128::from(self.modified_ns) >= since.as_nanosecond())
    }
}

/// Returns every candidate in these folders and files, sorted by path and without duplicates.
///
/// Hidden files are included, and `.gitignore` is ignored. Symbolic links are followed only if they
/// are roots; `node_modules` and `.git` are never entered. A root that is a file is always a
/// candidate, regardless of its name. Paths that cannot be read are skipped and reported to
/// `on_error`, with the path in the message.
pub fn find_session_files(roots: &[PathBuf], mut on_error: impl FnMut(&str)) -> Vec<SessionFile> {
    let mut problems = Vec::new();
    // Canonical paths, so that a file reached through several roots is found once.
    let mut resolved = Vec::new();
    for root in roots {
        match root.canonicalize() {
            Ok(path) => resolved.push(path),
            Err(error) => problems.push(format!("{}: {error}", root.display())),
        }
    }
    let together: Mutex<WalkResult> = Mutex::default();
    if let Some((first, others)) = resolved.split_first() {
        let mut builder = WalkBuilder::new(first);
        for root in others {
            builder.add(root);
        }
        // Agents store sessions in hidden folders, which the standard filters skip.
        builder.standard_filters(false).follow_links(false).filter_entry(may_enter);
        builder.build_parallel().run(|| {
            let mut part = WalkPart { found: Vec::new(), problems: Vec::new(), all: &together };
            Box::new(move |entry| part.add(entry))
        });
    }
    let WalkResult { mut found, problems: others } =
        together.into_inner().unwrap_or_else(PoisonError::into_inner);
    problems.extend(others);
    // The parallel walk reports in any order.
    problems.sort_unstable();
    for problem in &problems {
        on_error(problem);
    }
    found.sort_unstable_by(|one: &SessionFile, other| one.source.path().cmp(other.source.path()));
    // Roots may overlap.
    found.dedup_by(|one, other| one.source.path() == other.source.path());
    found
}

/// What all threads of a walk found.
#[derive(Default)]
struct WalkResult {
    found: Vec<SessionFile>,
    problems: Vec<String>,
}

/// What one thread of a walk found. It is added to the rest when the thread ends.
struct WalkPart<'w> {
    found: Vec<SessionFile>,
    problems: Vec<String>,
    all: &'w Mutex<WalkResult>,
}

impl WalkPart<'_> {
    fn add(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        let seen = entry.map_err(|error| error.to_string()).and_then(|entry| {
            check_entry(&entry).map_err(|error| format!("{}: {error}", entry.path().display()))
        });
        match seen {
            // The files of such a folder belong to its session and must not be found individually.
            Ok(Some(file)) if matches!(file.source, SessionSource::Folder { .. }) => {
                self.found.push(file);
                return WalkState::Skip;
            }
            Ok(file) => self.found.extend(file),
            Err(problem) => self.problems.push(problem),
        }
        WalkState::Continue
    }
}

impl Drop for WalkPart<'_> {
    fn drop(&mut self) {
        // Parts are added whole, so a panic of another thread leaves the rest usable.
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.found.append(&mut self.found);
        all.problems.append(&mut self.problems);
    }
}

fn may_enter(entry: &DirEntry) -> bool {
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    entry.depth() == 0
        || !is_folder
        || (!ignored::is_unsearched(entry.file_name())
            && !ignored::is_beside_chats(entry.path())
            && !storage::is_beside_sessions(entry.path()))
}

/// Returns the entry if it may contain sessions.
fn check_entry(entry: &DirEntry) -> io::Result<Option<SessionFile>> {
    let path = entry.path();
    let Some(kind) = entry.file_type() else { return Ok(None) };
    if kind.is_dir() {
        let is_events = entry.file_name() == "events";
        return if is_events { event_folder(path) } else { Ok(None) };
    }
    // A root file was named explicitly, so its name does not matter.
    if !kind.is_file() || (entry.depth() > 0 && !is_candidate(path)) {
        return Ok(None);
    }
    if let Some(files) = storage::files(path)? {
        return combine_files(path, files).map(Some);
    }
    let metadata = entry.metadata().map_err(io::Error::other)?;
    let (mut size, mut modified_ns) = (metadata.len(), modified(&metadata));
    // SQLite adds new rows to the log first, leaving the database file unchanged. A root may be a
    // database of any name.
    if (entry.depth() == 0 || ignored::is_database(path))
        && let Some(log) = sqlite::log_metadata(path)
    {
        size += log.len();
        modified_ns = modified_ns.max(modified(&log));
    }
    Ok(Some(SessionFile { source: SessionSource::File(path.to_owned()), size, modified_ns }))
}

fn is_candidate(path: &Path) -> bool {
    ignored::reason(path).is_none()
}

/// Returns a folder named `events` as one session, if it has event files of `OpenHands`. These are
/// `event-00000-….json` beside `base_state.json` or, in older versions, `0.json` in a folder below
/// `sessions` or `conversations`.
fn event_folder(path: &Path) -> io::Result<Option<SessionFile>> {
    let Some(session) = path.parent() else { return Ok(None) };
    let of_sdk = session.join(BASE_STATE).is_file();
    let kept_in = session.parent().and_then(Path::file_name);
    let of_older = kept_in.is_some_and(|name| name == "sessions" || name == "conversations");
    if !of_sdk && !of_older {
        return Ok(None);
    }
    let mut files = Vec::new();
    let (mut size, mut modified_ns) = (0, i64::MIN);
    for entry in path.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| event_number(name, of_sdk)) else {
            continue;
        };
        let metadata = entry.metadata()?;
        if metadata.is_file() {
            size += metadata.len();
            modified_ns = modified_ns.max(modified(&metadata));
            files.push((number, entry.path()));
        }
    }
    if files.is_empty() {
        return Ok(None);
    }
    // Sort by number: the padding of the names is too short for large numbers.
    files.sort_unstable();
    let files = files.into_iter().map(|(_, file)| file).collect();
    let source = SessionSource::Folder { path: session.to_owned(), files };
    Ok(Some(SessionFile { source, size, modified_ns }))
}

/// Combines the files of one session under the path of the first.
fn combine_files(path: &Path, files: Vec<PathBuf>) -> io::Result<SessionFile> {
    let (mut size, mut modified_ns) = (0, i64::MIN);
    for file in &files {
        let metadata = file.metadata()?;
        size += metadata.len();
        modified_ns = modified_ns.max(modified(&metadata));
    }
    Ok(SessionFile {
        source: SessionSource::Folder { path: path.to_owned(), files },
        size,
        modified_ns,
    })
}

/// Parses the number in the name of an event file.
fn event_number(name: &str, of_sdk: bool) -> Option<u64> {
    let stem = name.strip_suffix(".json")?;
    let number = if of_sdk { stem.strip_prefix("event-")?.split('-').next()? } else { stem };
    number.parse().ok()
}

fn modified(metadata: &Metadata) -> i64 {
    let nanoseconds = |duration: std::time::Duration| i64::try_from(duration.as_nanos()).ok();
    let time = metadata.modified().ok();
    let since = time.and_then(|time| match time.duration_since(UNIX_EPOCH) {
        Ok(after) => nanoseconds(after),
        Err(before) => nanoseconds(before.duration()).map(|duration| -duration),
    });
    since.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn names(root: &Path, found: &[SessionFile]) -> Vec<String> {
        let name = |found: &SessionFile| {
            let path = found.source.path().strip_prefix(root).unwrap();
            format!("{} {}", path.display(), found.size)
        };
        found.iter().map(name).collect()
    }

    #[test]
    fn candidates_by_name_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in [
            ".hidden/a.jsonl",
            "b/c.traj.json",
            "b/d.traj",
            "b/e.NDJSON",
            "b/state.db",
            "b/other.db",
            "b/notes.md",
            "b/f.jsonl.zst",
            "b/g.json.bak",
            "b/h.log.gz",
            "node_modules/x.json",
            "b/.git/y.json",
            "b/node_modules",
            "ignored.json",
        ] {
            write(root, name, "12345");
        }
        write(root, ".gitignore", "ignored.json\n");
        let expected = [
            ".hidden/a.jsonl 5",
            "b/c.traj.json 5",
            "b/d.traj 5",
            "b/e.NDJSON 5",
            "b/f.jsonl.zst 5",
            "b/g.json.bak 5",
            "b/state.db 5",
            "ignored.json 5",
        ];
        let mut problems = Vec::new();
        let roots = [root.to_owned(), root.join("b"), root.join("none"), root.join("b/d.traj")];
        let found = find_session_files(&roots, |problem| problems.push(problem.to_owned()));
        assert_eq!(names(root, &found), expected);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("none: "), "{problems:?}");
        let written = fs::metadata(root.join(".hidden/a.jsonl")).unwrap().modified().unwrap();
        let written = written.duration_since(UNIX_EPOCH).unwrap().as_nanos();
        assert_eq!(i128::from(found[0].modified_ns), i128::try_from(written).unwrap());
        // Every file there is found, or ignored for a reason.
        let found = find_session_files(&[root.to_owned()], |problem| panic!("{problem}"));
        let audit = audit_files(root, &found);
        let reasons: Vec<_> =
            audit.ignored.iter().map(|ignored| (&*ignored.reason, ignored.count)).collect();
        assert_eq!(
            reasons,
            [
                ("in a folder that is not searched (node_modules, .git)", 2),
                ("no ending, which session files have", 1),
                ("no session file ends with .db", 1),
                ("no session file ends with .gitignore", 1),
                ("no session file ends with .log", 1),
                ("no session file ends with .md", 1),
            ]
        );
        assert_eq!(audit.files, found.len() as u64 + 7);
        let file = find_session_files(&[root.join("b/d.traj")], |problem| panic!("{problem}"));
        assert_eq!(names(root, &file), ["b/d.traj 5"]);
        assert!(find_session_files(&[], |problem| panic!("{problem}")).is_empty());
    }

    #[test]
    fn the_log_of_a_database_counts_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["x.db", "state.db", "a.json"] {
            write(&root, name, "12345");
        }
        let dated = |name: &str, seconds: u64| {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let file = fs::File::options().write(true).open(root.join(name)).unwrap();
            file.set_modified(at).unwrap();
        };
        let found = |path: PathBuf| {
            let found = find_session_files(&[path], |problem| panic!("{problem}"));
            let dates: Vec<i64> = found.iter().map(|one| one.modified_ns).collect();
            (names(&root, &found), dates)
        };
        dated("x.db", 1000);
        assert_eq!(found(root.join("x.db")), (vec!["x.db 5".to_owned()], vec![1_000_000_000_000]));
        let alone = SessionSource::file(root.join("x.db"));
        assert!(!alone.has_logged_rows());
        for name in ["x.db", "state.db", "a.json"] {
            write(&root, &format!("{name}-wal"), "");
        }
        assert!(!alone.has_logged_rows(), "an empty log has no rows");
        for name in ["x.db", "state.db", "a.json"] {
            write(&root, &format!("{name}-wal"), "123");
        }
        assert!(alone.has_logged_rows());
        dated("x.db-wal", 2000);
        assert_eq!(found(root.join("x.db")), (vec!["x.db 8".to_owned()], vec![2_000_000_000_000]));
        dated("x.db-wal", 500);
        assert_eq!(found(root.join("x.db")).1, [1_000_000_000_000], "the newer one counts");
        assert_eq!(found(root.clone()).0, ["a.json 5", "state.db 8"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_only_as_roots() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        write(&root, "real/a.json", "1");
        fs::create_dir(root.join("walked")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("walked/link")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("walked/loop")).unwrap();
        assert!(
            find_session_files(&[root.join("walked")], |problem| panic!("{problem}")).is_empty()
        );
        let found = find_session_files(&[root.join("walked/link")], |problem| panic!("{problem}"));
        assert_eq!(names(&root, &found), ["real/a.json 1"]);
    }

    #[test]
    fn a_folder_of_events_is_one_source() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "conversations/c1/base_state.json", "{}");
        for (number, text) in [("100000", "123"), ("99999", "12"), ("00002", "1")] {
            write(root, &format!("conversations/c1/events/event-{number}-ab.json"), text);
        }
        let old = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789);
        for number in ["00002", "99999"] {
            let path = root.join(format!("conversations/c1/events/event-{number}-ab.json"));
            fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
        }
        write(root, "sessions/s1/events/10.json", "{}");
        write(root, "sessions/s1/events/9.json", "{}");
        write(root, "elsewhere/events/event-1.json", "{}");
        let found = find_session_files(&[root.to_owned()], |problem| panic!("{problem}"));
        assert_eq!(
            names(root, &found),
            ["conversations/c1 6", "elsewhere/events/event-1.json 2", "sessions/s1 4"]
        );
        let SessionSource::Folder { files, .. } = &found[0].source else { panic!("no folder") };
        let ends = |file: &PathBuf, end: &str| file.to_string_lossy().ends_with(end);
        assert!(ends(&files[0], "00002-ab.json") && ends(&files[2], "100000-ab.json"));
        assert!(found[0].modified_ns > 1_700_000_000_123_456_789);
        let SessionSource::Folder { files, .. } = &found[2].source else { panic!("no folder") };
        assert!(ends(&files[0], "events/9.json"));
    }
}
