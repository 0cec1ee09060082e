//! Observer that keeps the report files up to date during a run.
//!
//! The texts of finished cases, from which the JSON report is assembled, are appended to an unlinked
//! file, so that a report of ten thousand cases is neither kept in memory nor regenerated each time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::document::{HostMachine, ReportDocument};
use super::files::{ReportFiles, ReportPaths, ReportWriteError};
use super::state::{ReportFrame, RunState, SEPARATOR};
use selftest_harness::event::{Observer, ObserverError, RunEvent, RunEventKind};

/// Minimum pause between two writes, as a multiple of the duration of the previous one. Writing
/// thus costs at most a hundredth of a run.
const MIN_PAUSE_FACTOR: u32 = 100;

/// Writes the JSON and Markdown reports after each case, and the index of runs at the end.
///
/// A killed run leaves a valid report of the cases that finished.
#[derive(Debug)]
pub struct ReportObserver {
    files: ReportFiles,
    state: Arc<Mutex<RunState>>,
    texts: CaseTexts,
    /// Set if something has changed since the last write.
    is_stale: bool,
    last_write: Option<(Instant, Duration)>,
    /// The last error, so that a full disk is reported once rather than after each case.
    last_error: Option<String>,
}

/// Access to the reports after the run has taken ownership of the [`ReportObserver`].
#[derive(Debug, Clone)]
pub struct ReportHandle {
    paths: ReportPaths,
    state: Arc<Mutex<RunState>>,
}

impl ReportHandle {
    /// Returns the current JSON report; `None` if the run never started.
    pub fn json_text(&self) -> Option<String> {
        lock(&self.state).json()?.ok()
    }

    /// Returns the report as data; `None` if the run never started.
    pub fn document(&self) -> Option<ReportDocument> {
        lock(&self.state).document()
    }

    /// Returns the paths of the reports.
    pub fn paths(&self) -> &ReportPaths {
        &self.paths
    }
}

fn lock(state: &Mutex<RunState>) -> std::sync::MutexGuard<'_, RunState> {
    // The state is a fold of plain data, so it is still valid after a panic elsewhere.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ReportObserver {
    /// Creates an observer that writes to these files.
    pub fn new(files: ReportFiles) -> Self {
        let state = Arc::new(Mutex::new(RunState::new(HostMachine::this())));
        let texts = CaseTexts::default();
        Self { files, state, texts, is_stale: false, last_write: None, last_error: None }
    }

    /// Returns a handle that outlives the observer.
    pub fn handle(&self) -> ReportHandle {
        ReportHandle { paths: self.files.paths(), state: Arc::clone(&self.state) }
    }

    /// Writes again at the next flush, however soon that is.
    #[cfg(test)]
    pub(crate) fn skip_pause(&mut self) {
        self.last_write = None;
    }

    fn should_pause(&self) -> bool {
        // Measured by the last write, so that reports take a bounded share of the run, however
        // large they are.
        self.last_write.is_some_and(|(at, took)| at.elapsed() < took * MIN_PAUSE_FACTOR)
    }

    /// Attempts to write every file, even if another one fails. Returns all errors in one.
    fn write(&self, last: bool) -> Result<(), ObserverError> {
        let state = lock(&self.state);
        // The JSON report goes last: once it says that the run is over, the Markdown report is
        // complete too.
        let markdown = match state.markdown(self.files.json_link()) {
            Some(Ok(text)) => self.files.write_markdown(&text),
            Some(Err(source)) => {
                Err(ReportWriteError::Template { what: "the Markdown report", source })
            }
            None => Ok(()),
        };
        let json = match state.frame() {
            Some(Ok(ReportFrame { before, after: behind })) => self.files.write_json(|file| {
                file.write_all(before.as_bytes())?;
                // The cases are copied as rendered when they finished.
                self.texts.write_to(file)?;
                file.write_all(behind.as_bytes())
            }),
            Some(Err(cause)) => Err(ReportWriteError::Json(cause)),
            None => return Ok(()),
        };
        // Rendering the index reads a whole folder; do not hold the lock during that.
        drop(state);
        let index = if last { self.files.write_index() } else { Ok(()) };
        let errors = [json, markdown, index].into_iter().filter_map(Result::err);
        let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
        if errors.is_empty() { Ok(()) } else { Err(ObserverError(errors.join("; "))) }
    }
}

impl Observer for ReportObserver {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ObserverError> {
        let mut state = lock(&self.state);
        self.is_stale |= state.fold(event);
        let cases = match &event.kind {
            RunEventKind::CaseFinished(case) | RunEventKind::CaseRunAgain(case) => {
                std::slice::from_ref(case)
            }
            RunEventKind::CasesRecalled(cases) => &**cases,
            _ => &[],
        };
        for case in cases {
            let text = state.case_text(case).map_err(|cause| {
                ObserverError(format!("cannot add a case to the report: {cause}"))
            })?;
            self.texts.store(case.index, text, || self.files.create_unlinked());
        }
        Ok(())
    }

    fn flush(&mut self, last: bool) -> Result<(), ObserverError> {
        if !last && (!self.is_stale || self.should_pause()) {
            return Ok(());
        }
        let started = Instant::now();
        let result = self.write(last);
        self.last_write = Some((Instant::now(), started.elapsed()));
        // After a failure, the next flush tries again.
        self.is_stale = result.is_err();
        match result {
            Ok(()) => {
                self.last_error = None;
                Ok(())
            }
            // The same fault is reported once, not every second; the last write always reports it.
            Err(error) if !last && self.last_error.as_ref() == Some(&error.0) => Ok(()),
            Err(error) => {
                self.last_error = Some(error.0.clone());
                Err(error)
            }
        }
    }
}

/// Maximum number of bytes buffered before they are written in plan order, which keeps cases that
/// finish around the same time contiguous.
const MAX_HELD: usize = 1 << 20;

/// The texts of cases by position.
#[derive(Debug, Default)]
pub(super) struct CaseTexts {
    places: BTreeMap<usize, TextLocation>,
    /// Size of the texts in memory, in bytes.
    held: usize,
    file: Option<File>,
    /// Length of the file, in bytes.
    length: u64,
    /// Set when the file cannot be written to any more.
    has_failed: bool,
}

/// Location of a text.
#[derive(Debug)]
enum TextLocation {
    InMemory(String),
    /// In the file, after its separator.
    InFile {
        at: u64,
        length: u64,
    },
}

impl CaseTexts {
    /// Stores a text, replacing an earlier one of the same case. `file` opens the file, at most
    /// once and only if needed; if it fails, all texts stay in memory.
    pub(super) fn store(
        &mut self,
        position: usize,
        text: String,
        file: impl FnOnce() -> io::Result<File>,
    ) {
        self.held += text.len();
        if let Some(TextLocation::InMemory(former)) =
            self.places.insert(position, TextLocation::InMemory(text))
        {
            // A case that was run again replaces its text. One that is in the file stays there
            // unused.
            self.held -= former.len();
        }
        // After one failure all texts stay in memory: a report is worth more than the memory.
        if self.held >= MAX_HELD && !self.has_failed {
            self.has_failed = self.append(file).is_err();
        }
    }

    /// Appends the texts in memory to the file. On failure they stay in memory.
    fn append(&mut self, open: impl FnOnce() -> io::Result<File>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open()?),
        };
        let mut bytes = Vec::with_capacity(self.held + self.held / 8);
        for place in self.places.values() {
            if let TextLocation::InMemory(text) = place {
                bytes.extend_from_slice(SEPARATOR.as_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        }
        // `copy` moves the position of the same file.
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(&bytes)?;
        for place in self.places.values_mut() {
            if let TextLocation::InMemory(text) = place {
                let length = (SEPARATOR.len() + text.len()) as u64;
                // Only after the write, so that a failed one leaves every text where it was.
                *place = TextLocation::InFile { at: self.length, length };
                self.length += length;
            }
        }
        self.held = 0;
        Ok(())
    }

    /// Writes all texts in order, with separators.
    pub(super) fn write_to(&self, out: &mut dyn io::Write) -> io::Result<()> {
        // The first text has no comma before it.
        let mut left_out = 1;
        // Contiguous ranges of the file are copied as one.
        let mut piece = 0..0;
        for place in self.places.values() {
            match place {
                TextLocation::InFile { at, length } if *at == piece.end && left_out == 0 => {
                    piece.end += length;
                }
                TextLocation::InFile { at, length } => {
                    self.copy(piece, out)?;
                    // Skip the comma before the first text.
                    piece = at + left_out..at + length;
                }
                TextLocation::InMemory(text) => {
                    self.copy(std::mem::take(&mut piece), out)?;
                    let separator = if left_out > 0 { &SEPARATOR[1..] } else { SEPARATOR };
                    out.write_all(&[separator.as_bytes(), text.as_bytes()].concat())?;
                }
            }
            left_out = 0;
        }
        self.copy(piece, out)
    }

    /// Copies a range of the file.
    fn copy(&self, piece: std::ops::Range<u64>, out: &mut dyn io::Write) -> io::Result<()> {
        let (Some(mut file), length) = (self.file.as_ref(), piece.end - piece.start) else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(piece.start))?;
        let copied = io::copy(&mut file.take(length), out)?;
        // A short copy would otherwise leave an invalid report unnoticed.
        if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::fixture;

    struct World {
        root: tempfile::TempDir,
        observer: ReportObserver,
        handle: ReportHandle,
    }

    fn world() -> World {
        let root = tempfile::tempdir().unwrap();
        let (json, markdown) = (root.path().join("json"), root.path().join("md"));
        let files = ReportFiles::open(&json, &markdown, &fixture::run_id()).unwrap();
        let observer = ReportObserver::new(files);
        let handle = observer.handle();
        World { root, observer, handle }
    }

    impl World {
        fn report(&self) -> ReportDocument {
            let text = fs::read_to_string(&self.handle.paths().json).unwrap();
            serde_json::from_str(&text).unwrap()
        }
    }

    #[test]
    fn a_killed_run_leaves_a_valid_report() {
        let mut world = world();
        let events = fixture::rich_events();
        for event in &events[..3] {
            world.observer.on_event(event).unwrap();
        }
        world.observer.flush(false).unwrap();
        let report = world.report();
        assert!(!report.complete && report.outcome.is_none() && report.ended_at.is_none());
        assert_eq!(report.cases.len(), 2);
        assert_eq!(report.summary.total, 2);
        let schema = selftest_schema::Schema::compile(&crate::document::schema()).unwrap();
        let value = serde_json::to_value(&report).unwrap();
        assert!(schema.is_valid(&value));
        let markdown = fs::read_to_string(&world.handle.paths().markdown).unwrap();
        assert!(markdown.contains("Not finished: 2 of 15 cases so far."), "{markdown}");
        assert!(!world.root.path().join("md/index.md").exists());
    }

    #[test]
    fn the_last_flush_writes_everything() {
        let mut world = world();
        assert_eq!(world.handle.json_text(), None);
        for event in &fixture::rich_events() {
            world.observer.on_event(event).unwrap();
            world.observer.flush(false).unwrap();
        }
        world.observer.flush(true).unwrap();
        let report = world.report();
        assert!(report.complete);
        assert_eq!(report.cases.len(), 15);
        let written = fs::read_to_string(&world.handle.paths().json).unwrap();
        drop(world.observer);
        assert_eq!(world.handle.json_text(), Some(written));
        let index = fs::read_to_string(world.root.path().join("md/index.md")).unwrap();
        assert!(index.contains("selftest-20260206-1234-bcdfgh.md"), "{index}");
        assert!(world.root.path().join("md/trend.svg").is_file());
    }

    #[test]
    fn writing_rests_but_not_at_the_end() {
        let mut world = world();
        let events = fixture::rich_events();
        world.observer.on_event(&events[0]).unwrap();
        world.observer.flush(false).unwrap();
        world.observer.last_write = Some((Instant::now(), Duration::from_mins(1)));
        world.observer.on_event(&events[1]).unwrap();
        world.observer.flush(false).unwrap();
        assert_eq!(world.report().cases.len(), 0);
        world.observer.flush(true).unwrap();
        assert_eq!(world.report().cases.len(), 1);
    }

    #[test]
    fn two_runs_in_one_folder_do_not_disturb_each_other() {
        let root = tempfile::tempdir().unwrap();
        let (json, markdown) = (root.path().join("json"), root.path().join("md"));
        std::thread::scope(|scope| {
            for name in ["aaaaaa", "bbbbbb"] {
                let id = format!("selftest-20260206-1234-{name}");
                let files =
                    ReportFiles::open(&json, &markdown, &id.clone().try_into().unwrap()).unwrap();
                scope.spawn(move || {
                    let mut observer = ReportObserver::new(files);
                    for mut event in fixture::rich_events() {
                        if let selftest_harness::event::RunEventKind::RunStarted(header) =
                            &mut event.kind
                        {
                            Arc::make_mut(header).run_id = id.clone().try_into().unwrap();
                        }
                        observer.on_event(&event).unwrap();
                        observer.last_write = None;
                        observer.flush(false).unwrap();
                    }
                    observer.flush(true).unwrap();
                });
            }
        });
        let count = |folder| fs::read_dir(folder).unwrap().count();
        assert_eq!((count(&json), count(&markdown)), (2, 4), "no temporary file is left");
        let index = fs::read_to_string(markdown.join("index.md")).unwrap();
        assert!(index.contains("aaaaaa.md") || index.contains("bbbbbb.md"), "{index}");
    }

    #[test]
    fn one_broken_folder_does_not_cost_the_other_report() {
        let mut world = world();
        let events = fixture::rich_events();
        world.observer.on_event(&events[0]).unwrap();
        // A folder that was merely deleted would be recreated.
        fs::remove_dir(world.root.path().join("json")).unwrap();
        fs::write(world.root.path().join("json"), "in the way").unwrap();
        let error = world.observer.flush(false).unwrap_err().to_string();
        assert!(error.contains("bcdfgh.json"), "{error}");
        assert!(world.handle.paths().markdown.is_file());
        // The same error is not reported again, except at the end.
        world.observer.last_write = None;
        world.observer.flush(false).unwrap();
        assert!(world.observer.flush(true).is_err());
    }

    fn written(texts: &CaseTexts) -> String {
        let mut out = tempfile::tempfile().unwrap();
        texts.write_to(&mut out).unwrap();
        let mut text = String::new();
        out.rewind().unwrap();
        out.read_to_string(&mut text).unwrap();
        text
    }

    fn expected(texts: &BTreeMap<usize, String>) -> String {
        let joined = texts.values().map(String::as_str).collect::<Vec<_>>().join(SEPARATOR);
        if texts.is_empty() { String::new() } else { format!("{}{joined}", &SEPARATOR[1..]) }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn texts_come_in_the_order_of_the_plan_whatever_was_kept_when(
            kept in proptest::collection::vec((0_usize..12, 0_usize..MAX_HELD / 2), 0..24),
        ) {
            let (mut texts, mut all) = (CaseTexts::default(), BTreeMap::new());
            for (number, (position, length)) in kept.into_iter().enumerate() {
                // A retried case has a different text.
                let text = format!("{number} {}", "x".repeat(length));
                texts.store(position, text.clone(), tempfile::tempfile);
                all.insert(position, text);
            }
            prop_assert!(texts.held < MAX_HELD);
            prop_assert!(written(&texts) == expected(&all));
        }
    }

    #[test]
    fn without_a_file_nothing_is_lost() {
        let (mut texts, mut all) = (CaseTexts::default(), BTreeMap::new());
        for position in [2, 0, 1] {
            let text = position.to_string().repeat(MAX_HELD);
            texts.store(position, text.clone(), || Err(io::ErrorKind::StorageFull.into()));
            all.insert(position, text);
        }
        assert!(written(&texts) == expected(&all));
    }
}
