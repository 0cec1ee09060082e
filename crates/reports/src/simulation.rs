//! Runs under faults, by the thousand: a seed decides the cases, the replies of the model, how the
//! disk fails, and where the process is killed. After each death the run is resumed, until it
//! finishes. What must hold whatever happens:
//!
//! - the journal opens, and has every case and call that was recorded without an error;
//! - no recorded call is made again, and each case has one result;
//! - a report is either absent or complete, and no verdict differs from the run without faults.
//!
//! `just simulate N` runs any number of seeds, `just simulate 1 SEED` a failing one again. Journal,
//! reports and records go through [`SimulatedDisk`]; a thread's syncs do not, so that a seed always
//! fails in the same places.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use selftest_harness::event::{EventLog, Observer as _, RunEvent, RunEventKind, RunHeader};
use selftest_harness::journal::{
    self, Journal, JournalError, JournalHeader, RecordFile, RunDigests, recover,
};
use selftest_harness::outcome::CaseResult;
use selftest_models::journaled::{CallLog, CallSink, FinishedCall, JournaledModel, StoredCall};
use selftest_models::{
    ChatModel, ChatReply, ChatRequest, FinishReason, ModelError, PromptMessage, SamplingParameters,
    ThinkingMode,
};
use selftest_text::disk::Disk;
use selftest_text::disk::simulated_disk::{FaultPlan, SeededNumbers, SimulatedDisk};

use crate::document::{CaseDocument, ReportDocument};
use crate::files::ReportFiles;
use crate::fixture;
use crate::observer::ReportObserver;

/// Seeds of an ordinary test run.
const SEEDS: u64 = 1_000;
/// Starts of a run after which the disk works and nothing dies.
const FAULTY_STARTS: u64 = 6;
/// Most starts of a run: with a working disk one is enough.
const MAX_STARTS: u64 = FAULTY_STARTS + 2;
/// Most operations before a planned death; a run has some dozens.
const MAX_OPERATIONS: u64 = 60;

/// A broken invariant.
type Violation = String;

/// What was written without an error, and must be there ever after.
#[derive(Default)]
struct Durable {
    cases: BTreeSet<usize>,
    /// Texts of the requests.
    calls: BTreeSet<String>,
}

/// The run of a seed.
struct SimulatedRun {
    seed: u64,
    root: PathBuf,
    /// Number of model calls of each case.
    calls: Vec<u64>,
    header: RunHeader,
    durable: Arc<Mutex<Durable>>,
}

/// How a start of the run ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Finished,
    /// The process was killed, or gave up because of its disk.
    Interrupted,
}

impl SimulatedRun {
    fn new(seed: u64, root: &Path) -> Self {
        let mut numbers = SeededNumbers::new(seed);
        let cases = 1 + numbers.below(5);
        let calls = (0..cases).map(|_| 1 + numbers.below(3)).collect::<Vec<_>>();
        let mut run = Self {
            seed,
            root: root.to_owned(),
            calls,
            header: fixture::header(&[]),
            durable: Arc::default(),
        };
        run.header = fixture::header(&run.expected());
        run
    }

    /// The cases of the run without faults.
    fn expected(&self) -> Vec<Arc<CaseResult>> {
        let case = |index| {
            let replies: Vec<u64> =
                self.requests(index).map(|request| reply(self.seed, &request)).collect();
            Arc::new(judged(index, &replies))
        };
        (0..self.calls.len()).map(case).collect()
    }

    fn requests(&self, index: usize) -> impl Iterator<Item = String> + use<> {
        (0..self.calls[index]).map(move |call| format!("case {index}, call {call}"))
    }

    fn folders(&self) -> (PathBuf, PathBuf) {
        (self.root.join("json"), self.root.join("md"))
    }

    fn durable(&self) -> std::sync::MutexGuard<'_, Durable> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until it has finished, and checks after each start.
    fn run(&self) -> Result<(), Violation> {
        let mut numbers = SeededNumbers::new(self.seed ^ 0xd15c);
        for start in 0..MAX_STARTS {
            let plan = match start {
                0..FAULTY_STARTS => FaultPlan {
                    death: (!numbers.one_in(4)).then(|| 1 + numbers.below(MAX_OPERATIONS)),
                    failure: [None, None, Some(40), Some(8)][numbers.index(4)],
                },
                _ => FaultPlan::default(),
            };
            let disk = Arc::new(SimulatedDisk::new(plan, numbers.draw()));
            let end = self.start(&disk).map_err(|why| format!("start {start}, {plan:?}: {why}"))?;
            self.check_reports(end == End::Finished)
                .map_err(|why| format!("after start {start}, {plan:?}: {why}"))?;
            if end == End::Finished {
                return Ok(());
            }
        }
        Err("it never finishes on a disk that works".to_owned())
    }

    /// Starts the run, or resumes it.
    fn start(&self, disk: &Arc<SimulatedDisk>) -> Result<End, Violation> {
        let (json, markdown) = self.folders();
        fs::create_dir_all(&json).unwrap();
        let on_disk: Arc<dyn Disk> = Arc::clone(disk) as Arc<dyn Disk>;
        journal::remove_leftovers(&json, &markdown);
        let Some(Recovered { journal, cases, calls }) = self.open_journal(&json, &on_disk)? else {
            return Ok(End::Interrupted);
        };
        let known_calls = self.durable().calls.clone();
        let journal = Arc::new(journal);
        let files = ReportFiles::reopen(&json, &markdown, &self.header.run_id).unwrap();
        let mut observer = ReportObserver::new(files.on_disk(on_disk));
        let mut show = |kind: RunEventKind, last: bool| {
            let event = RunEvent { elapsed: Duration::ZERO, kind };
            observer.on_event(&event).is_ok() && {
                observer.skip_pause();
                observer.flush(last).is_ok()
            }
        };
        show(RunEventKind::RunStarted(Arc::new(self.header.clone())), false);
        let recalled: Vec<Arc<CaseResult>> = cases.into_values().map(Arc::new).collect();
        let known: BTreeSet<usize> = recalled.iter().map(|case| case.index).collect();
        if !recalled.is_empty() {
            show(RunEventKind::CasesRecalled(recalled.clone().into()), false);
        }
        let log = Arc::new(CallLog::with_calls(calls));
        log.set_sink(0, Arc::new(TrackedJournal::of(self, &journal, disk)));
        let model = Arc::new(SeededModel { seed: self.seed, asked: Mutex::default() });
        let journaled = JournaledModel::new(Arc::clone(&model) as Arc<dyn ChatModel>, log);
        let mut finished = recalled;
        // Several cases run at once, so they finish in any order.
        let mut left: Vec<usize> = (0..self.calls.len()).filter(|it| !known.contains(it)).collect();
        let mut numbers = SeededNumbers::new(self.seed ^ left.len() as u64);
        while !left.is_empty() {
            let index = left.swap_remove(numbers.index(left.len()));
            let replies =
                self.requests(index).map(|text| ask(&journaled, &text)).collect::<Vec<_>>();
            if disk.is_dead() {
                return Ok(End::Interrupted);
            }
            let case = Arc::new(judged(index, &replies));
            let event = RunEventKind::CaseFinished(Arc::clone(&case));
            EventLog::record(&*journal, &event);
            if !disk.is_dead() && journal.fault().is_none() {
                self.durable().cases.insert(index);
            }
            show(event, false);
            finished.push(case);
        }
        for text in model.asked.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if known_calls.contains(text) {
                return Err(format!("asked again: {text}"));
            }
        }
        finished.sort_by_key(|case| case.index);
        let (summary, outcome) = fixture::fold(&finished);
        // The clock may have been set back meanwhile.
        let at = fixture::at(["2026-02-06T12:36:00Z", "2026-02-05T00:00:00Z"][numbers.index(2)]);
        let end = RunEventKind::RunFinished {
            summary,
            outcome,
            at,
            changed_files: Vec::new(),
            gate: None,
        };
        EventLog::record(&*journal, &end);
        let is_shown = show(end, true);
        let is_finished = is_shown && !disk.is_dead() && journal.fault().is_none();
        Ok(if is_finished { End::Finished } else { End::Interrupted })
    }

    /// Opens the journal and checks what is in it. Returns `None` if it cannot be written.
    fn open_journal(
        &self,
        folder: &Path,
        disk: &Arc<dyn Disk>,
    ) -> Result<Option<Recovered>, Violation> {
        let found = journal::find_journal(folder, None).unwrap();
        let recovered = match found.as_deref().map(recover) {
            Some(Ok(recovered)) => Some(recovered),
            // It was killed while it wrote the first record, and nothing was begun.
            Some(Err(JournalError::Empty { path })) => {
                fs::remove_file(path).unwrap();
                None
            }
            Some(Err(error)) => return Err(format!("the journal does not open: {error}")),
            None => None,
        };
        let durable = self.durable();
        let Some(mut recovered) = recovered else {
            if !durable.cases.is_empty() || !durable.calls.is_empty() {
                return Err("the journal is lost".to_owned());
            }
            let header = JournalHeader::new(&self.header, RunDigests::new(), serde_json::json!({}));
            return Ok(Journal::create_on(Arc::clone(disk), folder, &header)
                .ok()
                .map(|journal| Recovered { journal, cases: BTreeMap::new(), calls: Vec::new() }));
        };
        let (cases, calls) =
            (std::mem::take(&mut recovered.cases), std::mem::take(&mut recovered.calls));
        let expected = self.expected();
        for index in &durable.cases {
            if !cases.contains_key(index) {
                return Err(format!("the finished case {index} is lost"));
            }
        }
        if let Some(case) = cases.values().find(|case| **case != *expected[case.index]) {
            return Err(format!("case {} came back changed", case.index));
        }
        let digests: BTreeSet<&str> = calls.iter().map(|call| call.key.digest.as_str()).collect();
        for text in &durable.calls {
            if !digests.contains(request(text).digest().as_str()) {
                return Err(format!("a finished call is lost: {text}"));
            }
        }
        drop(durable);
        Ok(Journal::resume_on(Arc::clone(disk), recovered).ok().map(|journal| Recovered {
            journal,
            cases,
            calls,
        }))
    }

    /// Checks the report files, which may be of an earlier moment.
    fn check_reports(&self, is_finished: bool) -> Result<(), Violation> {
        let (json, markdown) = self.folders();
        let path = json.join(format!("{}.json", self.header.run_id));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(_) if !is_finished => return Ok(()),
            Err(error) => return Err(format!("there is no report: {error}")),
        };
        let report: ReportDocument = serde_json::from_str(&text)
            .map_err(|error| format!("the report is broken: {error}"))?;
        let expected = self.expected();
        let mut seen = BTreeSet::new();
        for case in &report.cases {
            let should = expected.iter().find(|it| it.scenario.id == case.id);
            let should = should.map(|it| CaseDocument::new(it, &[], None));
            if !should.is_some_and(|it| (it.status, &it.scores) == (case.status, &case.scores)) {
                return Err(format!("{}: {:?} with {:?}", case.id, case.status, case.scores));
            }
            if !seen.insert(&case.id) {
                return Err(format!("{} has two results", case.id));
            }
        }
        if !is_finished {
            return Ok(());
        }
        if !report.complete || report.cases.len() != expected.len() {
            return Err(format!(
                "the report has {} of {} cases",
                report.cases.len(),
                expected.len()
            ));
        }
        let end = fs::read_to_string(markdown.join(format!("{}.md", self.header.run_id)));
        if !end.is_ok_and(|text| text.ends_with('\n')) {
            return Err("the Markdown report is missing or cut".to_owned());
        }
        Ok(())
    }
}

/// An opened journal with what it had.
struct Recovered {
    journal: Journal,
    cases: BTreeMap<usize, CaseResult>,
    calls: Vec<StoredCall>,
}

/// Remembers which calls were recorded without an error.
struct TrackedJournal {
    journal: Arc<Journal>,
    disk: Arc<SimulatedDisk>,
    durable: Arc<Mutex<Durable>>,
    /// Texts of the run's requests by their digest.
    texts: BTreeMap<String, String>,
}

impl TrackedJournal {
    fn of(run: &SimulatedRun, journal: &Arc<Journal>, disk: &Arc<SimulatedDisk>) -> Self {
        let texts = (0..run.calls.len()).flat_map(|index| run.requests(index));
        let texts = texts.map(|text| (request(&text).digest(), text)).collect();
        let (journal, disk) = (Arc::clone(journal), Arc::clone(disk));
        Self { journal, disk, durable: Arc::clone(&run.durable), texts }
    }
}

impl CallSink for TrackedJournal {
    fn record(&self, call: &FinishedCall<'_>) {
        CallSink::record(&*self.journal, call);
        if !self.disk.is_dead() && self.journal.fault().is_none() {
            let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
            durable.calls.extend(self.texts.get(&call.key.digest).cloned());
        }
    }
}

/// Answers a request with a number that depends on seed and text alone, and notes the request.
struct SeededModel {
    seed: u64,
    asked: Mutex<Vec<String>>,
}

impl ChatModel for SeededModel {
    fn id(&self) -> &'static str {
        "simulated"
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> futures_util::future::BoxFuture<'a, Result<ChatReply, ModelError>> {
        let text = request.messages[0].text.to_string();
        let number = reply(self.seed, &text);
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        Box::pin(async move { Ok(ChatReply::plain(number.to_string(), FinishReason::Stop)) })
    }

    fn check(&self) -> futures_util::future::BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Returns the model's reply, from 0 to 100.
fn reply(seed: u64, text: &str) -> u64 {
    let text = text.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    SeededNumbers::new(text).below(101)
}

fn request(text: &str) -> ChatRequest {
    ChatRequest {
        messages: vec![PromptMessage::user(text)],
        schema: None,
        sampling: SamplingParameters { temperature: 0.0, max_tokens: 9, seed: 1 },
        context_tokens: 1024,
        think: ThinkingMode::Off,
        nonce: None,
        first_token: None,
    }
}

fn ask(model: &JournaledModel, text: &str) -> u64 {
    let request = request(text);
    let mut asked = pin!(model.chat(&request));
    match asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(reply) => reply.unwrap().text.parse().unwrap(),
        Poll::Pending => unreachable!("nothing in it waits"),
    }
}

/// The case that the judge gave these numbers to.
fn judged(index: usize, replies: &[u64]) -> CaseResult {
    let total: u64 = replies.iter().sum();
    let score = f64::from(u32::try_from(total).unwrap())
        / f64::from(u32::try_from(replies.len()).unwrap())
        / 100.0;
    fixture::case(index, &format!("case-{index}"), fixture::scored([score; 4], "It says so."))
}

/// Parts of a measurement, each of which must stay once it is recorded.
fn simulate_records(seed: u64, root: &Path) -> Result<(), Violation> {
    let mut numbers = SeededNumbers::new(seed ^ 0x7ec0);
    let path = root.join("records");
    let mut durable: Vec<u64> = Vec::new();
    for start in 0..FAULTY_STARTS {
        let plan = FaultPlan {
            death: numbers.one_in(2).then(|| 1 + numbers.below(12)),
            failure: numbers.one_in(2).then_some(4),
        };
        let disk = Arc::new(SimulatedDisk::new(plan, numbers.draw()));
        let opened = RecordFile::<u64>::open_on(Arc::clone(&disk) as Arc<dyn Disk>, &path);
        let Ok((mut file, read)) = opened else { continue };
        if !read.starts_with(&durable) {
            return Err(format!("records, start {start}, {plan:?}: {durable:?} became {read:?}"));
        }
        // One that was written as a whole, although an error was returned, counts as well.
        durable = read;
        for _ in 0..numbers.below(6) {
            let next = durable.len() as u64;
            if file.append(&next).is_err() {
                break;
            }
            durable.push(next);
        }
    }
    Ok(())
}

fn simulate(seed: u64, room: &Path) -> Result<(), Violation> {
    let root = room.join(seed.to_string());
    fs::create_dir(&root).unwrap();
    let result = SimulatedRun::new(seed, &root).run().and_then(|()| simulate_records(seed, &root));
    fs::remove_dir_all(&root).unwrap();
    result
}

/// Number of an environment variable.
fn number_of(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn runs_survive_every_fault() {
    let first = number_of("SELFTEST_SIMULATE_FROM").unwrap_or(0);
    let count = number_of("SELFTEST_SIMULATE").unwrap_or(SEEDS);
    // In memory: only the order of operations counts, not when they reach a disk.
    let memory = Path::new("/dev/shm");
    let room = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let room = room.unwrap();
    let begun = Instant::now();
    let next = AtomicU64::new(first);
    let violations = Mutex::new(Vec::new());
    // Each waits for its journal's thread most of the time.
    let threads = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    if let Err(why) = simulate(seed, room.path()) {
                        violations
                            .lock()
                            .unwrap()
                            .push(format!("seed {seed} (again: just simulate 1 {seed}): {why}"));
                    }
                }
            });
        }
    });
    let violations = violations.into_inner().unwrap();
    let (failed, took) = (violations.len(), begun.elapsed());
    println!("{count} seeds from {first}, {failed} violations, {:.1} s", took.as_secs_f64());
    assert!(
        violations.is_empty(),
        "{failed} of {count} seeds: {:#?}",
        &violations[..failed.min(10)]
    );
}
