//! Grades recorded sessions from disk into the store, and derives patterns and reports from the
//! grades: the library interface of docs/spec/session-grades.md#library.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use selftest_service::grader::{GraderOptions, SelfGrader};
//!
//! # let folder = tempfile::tempdir()?;
//! # let sessions = folder.path().join("sessions");
//! # std::fs::create_dir(&sessions)?;
//! let session = r#"{"session_start": "2026-11-20T10:00:00Z", "session_id": "s1", "messages": [
//!     {"role": "user", "content": "fix the login"},
//!     {"role": "assistant", "content": "Done: the login works again."}]}"#;
//! std::fs::write(sessions.join("s1.json"), session)?;
//!
//! let options = GraderOptions { sources: vec![sessions], ..GraderOptions::default() };
//! let grader = SelfGrader::open(":memory:", options).await?;
//!
//! let scan = grader.grade_latest_sessions(10, &mut ()).await?;
//! assert!(scan.grades[0].task_completed);
//!
//! let patterns = grader.identify_patterns(36_500).await?;
//! assert_eq!(patterns.task_types[0].task_type.name(), "debugging");
//!
//! let report = grader.generate_weekly_report(Some("2026-W47".parse()?)).await?;
//! assert_eq!(report.summary.sessions, 1);
//!
//! assert!(grader.grades_summary(36_500).await?.starts_with("1 session"));
//! # Ok(()) }
//! ```
//!
//! Prints nothing and writes no report files. Progress is reported to a [`ScanObserver`].

mod deliver;
mod insight;
mod patterns;
pub mod proposals;
pub mod quality;
pub mod reflection;
mod scan;
mod signals;
pub mod skills;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::mpsc;

pub use insight::WeeklyOutcome;
pub use patterns::{keep_tallies_current, patterns, routing, tally_days, type_evidence};
pub use proposals::GapDetection;
use scan::{ExaminedFile, KnownFiles, KnownFilesCollector, ResultFiles, ScanTask, SessionFilter};
use selftest_grading::grade::heuristic::warm_up;
use selftest_grading::grade::{GradeRecord, GradeSettings};
use selftest_models::prices::ModelPrices;
use selftest_sessions::SessionFile;
use selftest_store::{DroppedGrade, FileOutcome, FileResult, KnownFile, Store, StoreError};
use selftest_text::redact::Redactor;
pub use signals::{SignalCounts, SignalMessage, SignalScan, scan_signals};

/// Maximum number of files whose grades are saved in one transaction.
const BATCH: usize = 500;

/// Maximum time to collect results for one transaction, which is also the work lost if the process
/// dies.
const BATCH_TIMEOUT: Duration = Duration::from_millis(50);

/// Selects sessions to grade, with the settings for grading.
#[derive(Debug, Clone, Default)]
pub struct GraderOptions {
    /// Folders and files with sessions.
    pub sources: Vec<PathBuf>,
    /// Only sessions with a date at this time or later.
    pub since: Option<Timestamp>,
    /// Only sessions of this agent.
    pub agent: Option<String>,
    /// The `grade` section of the configuration; its `sources` are ignored here.
    pub settings: GradeSettings,
    /// The `prices` section of the configuration.
    pub prices: ModelPrices,
    /// Redacts secrets in stored texts.
    pub redactor: Redactor,
}

/// Receives scan progress. `()` ignores it.
pub trait ScanObserver: Send {
    /// Reports the number of files to read.
    fn found(&mut self, to_read: usize);
    /// Reports that a file was read and its gradable sessions graded.
    fn read(&mut self, result: &FileResult);
}

impl ScanObserver for () {
    fn found(&mut self, _: usize) {}
    fn read(&mut self, _: &FileResult) {}
}

/// Result of a scan. Counts are numbers of files unless stated otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ScanSummary {
    /// Files that could contain sessions.
    pub found: u64,
    /// Files skipped because size and date, or else the content, are unchanged since the last scan.
    pub unchanged: u64,
    /// Files read.
    pub read: u64,
    /// Files read that have a grade that counts.
    pub graded: u64,
    /// Files read with too little content for a grade.
    pub not_gradable: u64,
    /// Files read without a session.
    pub no_session: u64,
    /// Files that could not be opened or read.
    pub unreadable: u64,
    /// Files whose session is at least as long in another file.
    pub duplicate: u64,
    /// Number of sessions graded.
    pub sessions: u64,
    /// New rule-based grades of the requested sessions, newest sessions first. At most
    /// [`ScanSummary::MAX_GRADES`]; the store has all.
    pub grades: Vec<GradeRecord>,
    /// Partly unreadable files: path and reason. At most [`ScanSummary::MAX_SKIPPED`].
    pub damaged: Vec<(String, String)>,
    /// Files without a grade: path and reason. At most [`ScanSummary::MAX_SKIPPED`].
    pub skipped: Vec<(String, String)>,
    /// Folders that could not be read, with the reason.
    pub problems: Vec<String>,
}

impl ScanSummary {
    /// Maximum number of grades returned, so that memory does not grow with a first scan of
    /// everything.
    pub const MAX_GRADES: usize = 10_000;
    /// Maximum number of skipped files listed.
    pub const MAX_SKIPPED: usize = 1000;
    const DUPLICATE: &str = "another file holds the same session, at least as long";
}

/// Selects the files that a scan reads.
#[derive(Debug, Clone, Copy)]
enum FileSelection {
    /// New and changed files.
    All,
    /// New and changed files, newest first, until this number of sessions is graded.
    Latest(usize),
    /// New and changed files that were last changed before this time.
    QuietSince(Timestamp),
}

/// Grades recorded sessions and reports on the grades.
pub struct SelfGrader {
    store: Store,
    options: GraderOptions,
}

impl SelfGrader {
    /// Opens or creates the database: a path, or a `sqlite:` or `postgres:` address.
    pub async fn open(database: &str, options: GraderOptions) -> Result<Self, StoreError> {
        Ok(Self { store: Store::open(database).await?, options })
    }

    /// Returns a grader for readers of that rubric version: [`Store::with_rubric`].
    pub async fn with_rubric(self, version: u32) -> Result<Self, StoreError> {
        Ok(Self { store: self.store.with_rubric(version).await?, options: self.options })
    }

    /// Returns the database.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the options.
    pub fn options(&self) -> &GraderOptions {
        &self.options
    }

    /// Grades the `n` newest sessions that have no grade yet or have changed since.
    pub async fn grade_latest_sessions(
        &self,
        n: usize,
        observer: &mut dyn ScanObserver,
    ) -> Result<ScanSummary, StoreError> {
        self.scan(FileSelection::Latest(n), observer).await
    }

    /// Grades every session that has no grade yet or has changed since.
    pub async fn grade_new_sessions(
        &self,
        observer: &mut dyn ScanObserver,
    ) -> Result<ScanSummary, StoreError> {
        self.scan(FileSelection::All, observer).await
    }

    /// Grades new and changed sessions whose files have not been written to since `moment`.
    pub async fn grade_finished_sessions(
        &self,
        moment: Timestamp,
        observer: &mut dyn ScanObserver,
    ) -> Result<ScanSummary, StoreError> {
        self.scan(FileSelection::QuietSince(moment), observer).await
    }

    /// Returns the grades of the requested sessions of the sources, whenever they were graded,
    /// newest sessions first. At most [`ScanSummary::MAX_GRADES`].
    pub async fn grades_of_sources(&self) -> Result<Vec<GradeRecord>, StoreError> {
        let (mut grades, wanted) = (Vec::new(), self.wanted());
        for source in &self.options.sources {
            // The directory walk reports canonical paths.
            let Ok(path) = source.canonicalize() else { continue };
            let (path, limit) = (path.to_string_lossy(), ScanSummary::MAX_GRADES as u64);
            let agent = self.options.agent.as_deref();
            grades.extend(self.store.grades_below(&path, agent, limit).await?.items);
        }
        grades.retain(|grade| wanted.matches(grade));
        grades.sort_by(|a: &GradeRecord, b| {
            (b.details.counts_at, &a.session_id).cmp(&(a.details.counts_at, &b.session_id))
        });
        // Sources may contain each other, such as a folder and a file in it.
        grades.dedup_by(|a, b| a.session_id == b.session_id);
        grades.truncate(ScanSummary::MAX_GRADES);
        Ok(grades)
    }

    async fn scan(
        &self,
        which: FileSelection,
        observer: &mut dyn ScanObserver,
    ) -> Result<ScanSummary, StoreError> {
        let sources = self.options.sources.clone();
        let walk = tokio::task::spawn_blocking(move || {
            let mut problems = Vec::new();
            let found = selftest_sessions::find_session_files(&sources, |problem| {
                problems.push(problem.to_owned());
            });
            (found, problems)
        });
        let rules = self.options.settings.weights.rules_digest();
        // After a panic the walk has found nothing; the panic was printed to stderr.
        let (found, problems) = walk.await.unwrap_or_default();
        let mut scan =
            ScanSummary { found: found.len() as u64, problems, ..ScanSummary::default() };

        // The walk and the database have canonical paths. A source that is gone has none.
        let canonical = |source: &PathBuf| source.canonicalize().unwrap_or_else(|_| source.clone());
        let sources: Vec<PathBuf> = self.options.sources.iter().map(canonical).collect();
        let mut known = KnownFilesCollector::new(&found, &sources);
        self.store.for_each_known_file(&rules, |path, row| known.add(path, row)).await?;
        let KnownFiles { unchanged, changed, gone } = known.finish();
        if !gone.is_empty() {
            // So that copies elsewhere take over the sessions. The grades stay.
            self.store.release_files(&gone).await?;
        }
        let is_all_known = unchanged.iter().all(|is_unchanged| *is_unchanged);
        let around: &[SessionFile] = if is_all_known { &[] } else { &found };
        let results = Arc::new(ResultFiles::new(around, &sources));
        let since = self.options.since;
        let possible = found.into_iter().zip(unchanged);
        let mut files = Vec::new();
        for (file, is_unchanged) in
            possible.filter(|(file, _)| file.may_contain_session_since(since))
        {
            if is_unchanged {
                scan.unchanged += 1;
            } else {
                files.push(file);
            }
        }
        if let FileSelection::QuietSince(moment) = which {
            files.retain(|file| i128::from(file.modified_ns) < moment.as_nanosecond());
        }
        // Newest first, since `Latest` takes files from the front until it has enough.
        files.sort_by_key(|file| std::cmp::Reverse(file.modified_ns));
        let wanted = match which {
            FileSelection::Latest(n) => n,
            FileSelection::All | FileSelection::QuietSince(_) => usize::MAX,
        };
        observer.found(files.len().min(wanted));
        if !files.is_empty() {
            // Patterns are compiled while the first files are opened. A scan that reads nothing
            // needs none of them.
            std::thread::spawn(warm_up);
        }
        let name = |file: &SessionFile| file.source.path().to_string_lossy().into_owned();
        let order: HashMap<String, usize> = files.iter().map(name).zip(0..).collect();

        let known = Arc::new(changed);
        let mut files = files.into_iter().peekable();
        while files.peek().is_some() && scan.sessions < wanted as u64 {
            // Most files contain one session, so a few at a time are read until there are enough.
            let graded = usize::try_from(scan.sessions).unwrap_or(usize::MAX);
            let part = files.by_ref().take(wanted - graded).collect();
            let task = ScanTask {
                files: part,
                known: known.clone(),
                weights: self.options.settings.weights,
                rules: rules.clone(),
                redactor: self.options.redactor.clone(),
                now: selftest_clock::now(),
                wanted: self.wanted(),
                results: results.clone(),
            };
            self.store_results(scan::start_threads(task), &mut scan, observer).await?;
        }
        // If several runs have the same id, all but one were renamed when they were saved.
        for renamed in self.store.renamed_sessions().await? {
            if let Some(grade) = scan.grades.iter_mut().find(|grade| renamed.matches(grade)) {
                grade.session_id = renamed.session_id;
            }
        }
        // Threads finish in any order; users read the newest first.
        scan.grades.sort_by_key(|grade| std::cmp::Reverse(grade.details.counts_at));
        scan.skipped.sort_by_key(|(path, _)| order.get(path));
        scan.damaged.sort_by_key(|(path, _)| order.get(path));
        // The last file can contain more sessions than were still needed.
        scan.grades.truncate(wanted);
        Ok(scan)
    }

    fn wanted(&self) -> SessionFilter {
        SessionFilter { agent: self.options.agent.clone(), since: self.options.since }
    }

    async fn store_results(
        &self,
        mut results: mpsc::Receiver<ExaminedFile>,
        scan: &mut ScanSummary,
        observer: &mut dyn ScanObserver,
    ) -> Result<(), StoreError> {
        let (mut batch, mut touched) = (Vec::new(), Vec::<(String, KnownFile)>::new());
        let (mut examined, mut graded) = (Vec::new(), HashSet::new());
        while results.recv_many(&mut examined, BATCH).await > 0 {
            // Collect more files first: a transaction per file would cost more than its grades.
            let full = async {
                while examined.len() < BATCH {
                    let room = BATCH - examined.len();
                    if results.recv_many(&mut examined, room).await == 0 {
                        break;
                    }
                }
            };
            // After a timeout, the results received so far are used.
            let _ = tokio::time::timeout(BATCH_TIMEOUT, full).await;
            for one in examined.drain(..) {
                match one {
                    ExaminedFile::Touched(path, known) => {
                        scan.unchanged += 1;
                        touched.push((path, known));
                    }
                    ExaminedFile::Read(result) => {
                        observer.read(&result);
                        batch.push(*result);
                    }
                }
            }
            let lost = self.store.save(&batch).await?;
            // A grade of an earlier scan may have lost too, which this one has not counted.
            for earlier in lost.iter().filter(|lost| graded.contains(&lost.file)) {
                scan.remove_lost_grade(earlier);
            }
            let lost: HashSet<(&str, u64, &str)> = lost
                .iter()
                .map(|lost| (lost.session_id.as_str(), lost.beginning, lost.file.as_str()))
                .collect();
            for result in batch.drain(..) {
                if !result.grades.is_empty() {
                    graded.insert(result.file.path.clone());
                }
                scan.add(result, &lost, &self.wanted());
            }
        }
        self.store.touch_files(&touched).await
    }
}

impl ScanSummary {
    /// Adds the result of a file, except grades that lost against another file's.
    fn add(
        &mut self,
        result: FileResult,
        lost: &HashSet<(&str, u64, &str)>,
        wanted: &SessionFilter,
    ) {
        self.read += 1;
        let FileResult { file, grades } = result;
        let had_grades = !grades.is_empty();
        let is_kept = |grade: &GradeRecord| {
            let run = (&*grade.session_id, grade.details.lineage.beginning, &*file.path);
            !lost.contains(&run)
        };
        let mut kept: Vec<GradeRecord> = grades.into_iter().filter(is_kept).collect();
        let all_lost = had_grades && kept.is_empty();
        kept.retain(|grade| wanted.matches(grade));
        // Counted before the list is cut to its maximum.
        self.sessions += kept.len() as u64;
        kept.truncate(Self::MAX_GRADES.saturating_sub(self.grades.len()));
        self.grades.append(&mut kept);
        if let Some(what) = file.lost_parts()
            && self.damaged.len() < Self::MAX_SKIPPED
        {
            self.damaged.push((file.path.clone(), what));
        }
        let (count, why) = match file.outcome {
            FileOutcome::Graded if all_lost => {
                (&mut self.duplicate, Some(Self::DUPLICATE.to_owned()))
            }
            FileOutcome::Graded => (&mut self.graded, None),
            FileOutcome::NotGradable => (&mut self.not_gradable, file.reason),
            FileOutcome::NoSession => (&mut self.no_session, file.reason),
            FileOutcome::Unreadable => (&mut self.unreadable, file.reason),
            FileOutcome::Duplicate => (&mut self.duplicate, file.reason),
        };
        *count += 1;
        if let Some(why) = why.filter(|_| self.skipped.len() < Self::MAX_SKIPPED) {
            self.skipped.push((file.path, why));
        }
    }

    /// Removes a grade that was added earlier and has now lost against a file read later.
    fn remove_lost_grade(&mut self, lost: &DroppedGrade) {
        let is_lost = |grade: &GradeRecord| {
            grade.session_id == lost.session_id
                && grade.details.lineage.beginning == lost.beginning
                && grade.session_file == lost.file
        };
        let before = self.grades.len();
        self.grades.retain(|grade| !is_lost(grade));
        self.sessions -= (before - self.grades.len()) as u64;
        if lost.was_last {
            self.graded -= 1;
            self.duplicate += 1;
            if self.skipped.len() < Self::MAX_SKIPPED {
                self.skipped.push((lost.file.clone(), Self::DUPLICATE.to_owned()));
            }
        }
    }
}
