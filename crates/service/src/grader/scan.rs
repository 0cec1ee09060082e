//! Reads and grades files on all CPU cores, with the files of results in the folders around a
//! session. Files whose size, date or content the database knows are not read again.
//!
//! Uses plain threads; results are sent over a channel to the task that stores them.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::SelfGrader;
use selftest_grading::grade::beside::{
    RESULT_FILES, TaskResult, apply_results, read_results, results_of,
};
use selftest_grading::grade::heuristic::{GradingContext, GradingResult, RuleGrader};
use selftest_grading::grade::{GradeRecord, GradeWeights};
use selftest_sessions::{FileDigest, SessionFile, SessionReadError, SessionSource};
use selftest_store::{FileOutcome, FileRecord, FileResult, KnownFile};
use selftest_text::file::read_bounded_text;
use selftest_text::redact::Redactor;

/// Maximum bytes of a reason.
const MAX_REASON: usize = 300;

/// Maximum number of results waiting to be stored, so that memory does not grow on a slow disk.
const MAX_WAITING: usize = 1024;

/// Result of one file.
#[derive(Debug)]
pub(super) enum ExaminedFile {
    /// The content is unchanged; only the date differs.
    Touched(String, KnownFile),
    /// The file was read.
    Read(Box<FileResult>),
}

/// Input shared by all threads.
pub(super) struct ScanTask {
    pub(super) files: Vec<SessionFile>,
    pub(super) known: Arc<HashMap<String, KnownFile>>,
    pub(super) weights: GradeWeights,
    /// Identifier of these weights: [`Weights::rules`].
    pub(super) rules: String,
    pub(super) redactor: Redactor,
    pub(super) now: Timestamp,
    /// Filter; files without a matching session are not recorded.
    pub(super) wanted: SessionFilter,
    /// Results beside the sessions.
    pub(super) results: Arc<ResultFiles>,
}

/// Filter for sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionFilter {
    /// Only sessions of this agent.
    pub(super) agent: Option<String>,
    /// Only sessions with a date at this time or later.
    pub(super) since: Option<Timestamp>,
}

impl SessionFilter {
    fn is_all(&self) -> bool {
        self.agent.is_none() && self.since.is_none()
    }

    pub(super) fn matches(&self, grade: &GradeRecord) -> bool {
        self.agent.as_ref().is_none_or(|agent| grade.details.agent == *agent)
            && self.since.is_none_or(|since| grade.started_at().is_some_and(|at| at >= since))
    }
}

/// Examines every file of the task. The threads stop when the receiver is dropped, for instance
/// after an interrupt.
pub(super) fn start_threads(mut task: ScanTask) -> mpsc::Receiver<ExaminedFile> {
    task.files.sort_by_key(|found| reading_order(found.size));
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let (task, next) = (Arc::new(task), Arc::new(AtomicUsize::new(0)));
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    for _ in 0..threads.min(task.files.len()) {
        let (task, next, sender) = (task.clone(), next.clone(), sender.clone());
        // A separate thread, because the reader of database files has its own tokio runtime.
        std::thread::spawn(move || {
            // Relaxed: only the number matters, and the files do not change any more.
            while let Some(found) = task.files.get(next.fetch_add(1, Ordering::Relaxed))
                && !sender.is_closed()
            {
                if let Some(examined) = examine(found, &task) {
                    // If the receiver is gone, the next loop check ends the thread.
                    let _ = sender.blocking_send(examined);
                }
            }
        });
    }
    receiver
}

/// Returns the sort key for the reading order. Large files come first, largest to smallest, so that
/// no thread is left with one at the end. Small files follow, smallest to largest, so that few
/// results remain to be stored at the end.
fn reading_order(size: u64) -> (Reverse<u64>, u64) {
    const LARGE: u64 = 1_000_000;
    // Large files first, so that no thread starts the largest when the others are done.
    if size < LARGE { (Reverse(0), size) } else { (Reverse(size), 0) }
}

/// Reads and grades one file; returns `None` if no session matches the filter.
fn examine(found: &SessionFile, task: &ScanTask) -> Option<ExaminedFile> {
    let path = found.source.path().to_string_lossy().into_owned();
    // Only the date may have changed, and a digest is cheaper than grading.
    if let Some(known) = task.known.get(&path)
        && known.by_these_rules
        // The digest is of the database alone, and new rows are in its log first.
        && !found.source.has_logged_rows()
        && let Ok(digest) = digest_of(&found.source)
        && known.digest == digest
    {
        let (size, modified_ns) = (found.size, found.modified_ns);
        return Some(ExaminedFile::Touched(
            path,
            KnownFile { size, modified_ns, digest, by_these_rules: true },
        ));
    }
    // Computes the digest while grading reads the file.
    let source = match &found.source {
        SessionSource::File(file) => {
            SessionSource::DigestedFile(file.clone(), FileDigest::default())
        }
        other => other.clone(),
    };
    let context = GradingContext { session_file: &path, graded_at: task.now };
    let mut heuristic = RuleGrader::new(context, task.weights, &task.redactor);
    let reading = selftest_sessions::read(&source, &mut heuristic);
    let digest = match &source {
        SessionSource::DigestedFile(file, digest) => digest.finish(file),
        other => digest_of(other),
    };
    let gradings = heuristic.into_gradings();
    let sessions = gradings.len() as u64;

    let mut grades = Vec::new();
    let mut reason = None;
    for grading in gradings {
        match grading {
            GradingResult::Graded(record) => grades.push(*record),
            GradingResult::NotGradable { reason: why, .. } => reason = Some(why.to_owned()),
        }
    }
    // Results change grades, so they are applied before the filter sees them.
    let grades = task.results.apply(found.source.path(), grades);
    if !task.wanted.is_all() && !grades.iter().any(|grade| task.wanted.matches(grade)) {
        return None;
    }
    let (outcome, reason, format, notes) = match reading {
        Ok(reading) if grades.is_empty() => {
            (FileOutcome::NotGradable, reason, Some(reading.format), Some(reading.notes))
        }
        Ok(reading) => (FileOutcome::Graded, None, Some(reading.format), Some(reading.notes)),
        Err(error) => {
            let outcome = match error {
                SessionReadError::Io(_) => FileOutcome::Unreadable,
                SessionReadError::Empty
                | SessionReadError::Unrecognised(_)
                | SessionReadError::NoSession { .. } => FileOutcome::NoSession,
            };
            (outcome, Some(error.to_string()), None, None)
        }
    };
    let file = FileRecord {
        path,
        size: found.size,
        modified_ns: found.modified_ns,
        // An empty digest matches no file, so that this one is read again.
        digest: digest.unwrap_or_default(),
        scanned_at: task.now,
        outcome,
        reason: reason.map(|why| selftest_text::one_line(&task.redactor.apply(&why), MAX_REASON)),
        format,
        sessions,
        graded: grades.len() as u64,
        notes_json: notes.and_then(|notes| serde_json::to_string(&notes).ok()),
        rules: Some(task.rules.clone()),
    };
    Some(ExaminedFile::Read(Box::new(FileResult { file, grades })))
}

fn digest_of(source: &SessionSource) -> std::io::Result<String> {
    match source {
        SessionSource::Folder { files, .. } => {
            FileDigest::of_files(files.iter().map(PathBuf::as_path))
        }
        other => FileDigest::of_files([other.path()]),
    }
}

/// What the database knows of the files that were found.
#[derive(Debug, Default)]
pub(super) struct KnownFiles {
    /// For each found file: true if size and date are those of its last grading by these rules, so
    /// that it need not be opened.
    pub(super) unchanged: Vec<bool>,
    /// Found files that differ from their last grading.
    pub(super) changed: HashMap<String, KnownFile>,
    /// Files of the sources that are gone.
    pub(super) gone: Vec<String>,
}

/// Collects [`KnownFiles`] from the rows of the database, in any order.
pub(super) struct KnownFilesCollector<'a> {
    found: &'a [SessionFile],
    /// Places of the files, by the name that the database has: a path that is not UTF-8 is changed.
    places: HashMap<Cow<'a, str>, usize>,
    /// Canonical paths, as the walk and the database have them.
    sources: &'a [PathBuf],
    known: KnownFiles,
}

impl<'a> KnownFilesCollector<'a> {
    pub(super) fn new(found: &'a [SessionFile], sources: &'a [PathBuf]) -> Self {
        let name = |file: &'a SessionFile| file.source.path().to_string_lossy();
        // Paths are not compared as such: that takes them apart each time.
        let places = found.iter().map(name).zip(0..).collect();
        let known = KnownFiles { unchanged: vec![false; found.len()], ..KnownFiles::default() };
        Self { found, places, sources, known }
    }

    /// Adds a file that the database knows.
    pub(super) fn add(&mut self, path: String, row: KnownFile) {
        let Some(at) = self.places.get(path.as_str()).copied() else {
            // Files outside the sources were not searched, so they do not count as gone.
            let is_searched =
                self.sources.iter().any(|source| Path::new(&path).starts_with(source));
            if is_searched && !Path::new(&path).exists() {
                self.known.gone.push(path);
            }
            return;
        };
        let file = &self.found[at];
        if row.by_these_rules && row.size == file.size && row.modified_ns == file.modified_ns {
            self.known.unchanged[at] = true;
        } else {
            self.known.changed.insert(path, row);
        }
    }

    pub(super) fn finish(self) -> KnownFiles {
        self.known
    }
}

/// Maximum size in bytes of a file with results.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Number of folders above a session in which results are looked for.
const MAX_FOLDERS: usize = 4;

/// Results of the folders around sessions; each folder is read once.
pub(super) struct ResultFiles {
    /// Number of session files in each folder.
    sessions: HashMap<PathBuf, usize>,
    folders: Mutex<HashMap<PathBuf, Arc<Vec<TaskResult>>>>,
}

impl ResultFiles {
    /// Prepares for the sessions of a scan, with canonical sources. The neighbours of a file that is
    /// itself a source are not known: it may not be alone in its folder.
    pub(super) fn new(files: &[SessionFile], sources: &[PathBuf]) -> Self {
        let mut sessions: HashMap<PathBuf, usize> = HashMap::new();
        let named: HashSet<&Path> = sources.iter().map(PathBuf::as_path).collect();
        // The paths that were found begin with a canonical source, and no link is followed below.
        let is_named = |path: &Path| named.contains(path);
        for file in files {
            let path = file.source.path();
            if let Some(folder) = path.parent().filter(|_| !is_named(path)) {
                *sessions.entry(folder.to_owned()).or_default() += 1;
            }
        }
        Self { sessions, folders: Mutex::default() }
    }

    /// Adds the results around a file to the grades of its sessions.
    pub(super) fn apply(&self, path: &Path, grades: Vec<GradeRecord>) -> Vec<GradeRecord> {
        // A result without an id cannot be told apart between the sessions of one file.
        let is_single = grades.len() == 1;
        let folders: Vec<(bool, Arc<Vec<TaskResult>>)> = path
            .ancestors()
            .skip(1)
            .take(MAX_FOLDERS)
            .enumerate()
            .map(|(level, folder)| {
                // In the session's own folder another session could be meant; further up only the
                // layout of a trial says that the folder is the task's.
                let is_own =
                    level == 0 && self.sessions.get(folder).is_some_and(|sessions| *sessions == 1);
                (is_single && (is_own || is_trial(folder)), self.folder(folder))
            })
            .filter(|(_, results)| !results.is_empty())
            .collect();
        if folders.is_empty() {
            return grades;
        }
        let with_results = |grade: GradeRecord| {
            let joined = folders.iter().flat_map(|(is_alone, results)| {
                results_of(&grade.session_id, &grade.session_file, results, *is_alone)
            });
            let joined: Vec<&TaskResult> = joined.collect();
            apply_results(grade, &joined)
        };
        grades.into_iter().map(with_results).collect()
    }

    fn folder(&self, folder: &Path) -> Arc<Vec<TaskResult>> {
        // Results are only added, so a panic of another thread leaves them usable.
        let lock = || self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        // Two threads may read the same folder at once, which costs less than holding the lock
        // meanwhile.
        if let Some(known) = lock().get(folder) {
            return known.clone();
        }
        let read = RESULT_FILES.iter().filter_map(|name| {
            let path = folder.join(name);
            // A pipe would wait for its writer.
            path.metadata().ok().filter(std::fs::Metadata::is_file)?;
            // A part of the results would be other results.
            let text = read_bounded_text(&path, MAX_FILE).ok()?;
            Some(read_results(&path.to_string_lossy(), &text))
        });
        let results = Arc::new(read.flatten().collect::<Vec<_>>());
        lock().insert(folder.to_owned(), results.clone());
        results
    }
}

/// Grades of single files, without the database.
impl SelfGrader {
    /// Grades the sessions of one file anew, without the database.
    ///
    /// # Errors
    ///
    /// The reason why the file cannot be read as a session.
    pub fn grade_file(&self, path: &Path) -> Result<Vec<GradeRecord>, SessionReadError> {
        let shown = path.to_string_lossy();
        let now = selftest_clock::now();
        let context = GradingContext { session_file: &shown, graded_at: now };
        let (weights, redactor) = (self.options.settings.weights, &self.options.redactor);
        let mut rules = RuleGrader::new(context, weights, redactor);
        selftest_sessions::read(&SessionSource::file(path), &mut rules)?;
        let graded = rules.into_gradings().into_iter().filter_map(|grading| match grading {
            GradingResult::Graded(record) => Some(*record),
            GradingResult::NotGradable { .. } => None,
        });
        Ok(ResultFiles::new(&[], &[]).apply(path, graded.collect()))
    }
}

/// Returns true for the folder of one trial: a verifier's folder stands in it.
fn is_trial(folder: &Path) -> bool {
    folder.join("verifier").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_sessions::SessionSource;

    #[test]
    fn large_files_come_first_and_the_smallest_before_the_last() {
        let mut sizes = [20, 5_000_000, 999_999, 0, 1_000_000, 300_000];
        sizes.sort_by_key(|size| reading_order(*size));
        assert_eq!(sizes, [5_000_000, 1_000_000, 0, 20, 300_000, 999_999]);
    }

    #[test]
    fn files_are_unchanged_changed_or_gone() {
        let file = |path: &str, size| SessionFile {
            source: SessionSource::File(PathBuf::from(path)),
            size,
            modified_ns: 7,
        };
        let found = [file("/s/a.json", 1), file("/s/b.json", 2), file("/s/c.json", 3)];
        let sources = [PathBuf::from("/s")];
        let row = |size, by_these_rules| KnownFile {
            size,
            modified_ns: 7,
            digest: String::new(),
            by_these_rules,
        };
        let mut collector = KnownFilesCollector::new(&found, &sources);
        for (path, row) in [
            ("/s/c.json", row(3, false)),
            ("/s/a.json", row(1, true)),
            ("/s/b.json", row(9, true)),
            ("/s/gone.json", row(1, true)),
            ("/elsewhere/d.json", row(1, true)),
        ] {
            collector.add(path.to_owned(), row);
        }
        let known = collector.finish();
        assert_eq!(known.unchanged, [true, false, false]);
        let mut changed: Vec<&str> = known.changed.keys().map(String::as_str).collect();
        changed.sort_unstable();
        assert_eq!(changed, ["/s/b.json", "/s/c.json"]);
        assert_eq!(known.gone, ["/s/gone.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_no_text_are_found_again() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/s/\xff.json"));
        let shown = path.to_string_lossy().into_owned();
        let source = SessionSource::File(path);
        let found = [SessionFile { source, size: 1, modified_ns: 7 }];
        let row =
            KnownFile { size: 1, modified_ns: 7, digest: String::new(), by_these_rules: true };
        let sources = [PathBuf::from("/s")];
        let mut collector = KnownFilesCollector::new(&found, &sources);
        collector.add(shown, row);
        let known = collector.finish();
        assert_eq!((known.unchanged, known.gone), (vec![true], Vec::new()));
    }
}
