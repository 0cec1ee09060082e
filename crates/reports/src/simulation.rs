//! Runs under faults, by the thousand: a seed decides the cases, the replies of the model and how its
//! server fails, how programs end, the clock, how the disk fails, when it is synced, and where the
//! process is killed or the power lost. After each death the run is resumed, until it finishes. What
//! must hold whatever happens:
//!
//! - the journal opens, and has every case and call that was recorded without an error; after a loss
//!   of power, all that was synced;
//! - no recorded call is made again, and each case has one result;
//! - a report is either absent or complete, no verdict differs from the run without faults, and a
//!   finished run survives a loss of power.
//!
//! `just simulate N` runs any number of seeds, `just simulate 1 SEED` a failing one again. The code is
//! that of every run, on a [`SimulatedDisk`]; a seed uses one thread, so that it always fails in the
//! same places.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;
use selftest_harness::event::{EventLog, Observer as _, RunEvent, RunEventKind, RunHeader};
use selftest_harness::journal::{
    self, Journal, JournalError, JournalHeader, JournalSync, RecordFile, RunDigests, recover_on,
};
use selftest_harness::outcome::case::Interruption;
use selftest_harness::outcome::{CaseResult, CaseStatus};
use selftest_models::journaled::{CallLog, CallSink, FinishedCall, JournaledModel, StoredCall};
use selftest_models::structured::UnscoredReason;
use selftest_models::{
    ChatModel, ChatReply, ChatRequest, FinishReason, ModelError, PromptMessage, SamplingParameters,
    ThinkingMode,
};
use selftest_text::disk::Disk;
use selftest_text::disk::simulated_disk::{FaultPlan, SeededNumbers, SimulatedDisk};
use selftest_text::seeds::run_seeds;

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
/// Most operations before a planned death; a run has up to about as many.
const MAX_OPERATIONS: u64 = 150;

/// A broken invariant.
type Violation = String;

/// What must be there ever after.
#[derive(Debug, Clone, Default)]
struct Finished {
    cases: BTreeSet<usize>,
    /// Texts of the requests.
    calls: BTreeSet<String>,
}

/// What was written without an error, and what of it survives a loss of power.
#[derive(Default)]
struct Durable {
    written: Finished,
    synced: Finished,
}

/// The run of a seed.
struct SimulatedRun {
    seed: u64,
    disk: SimulatedDisk,
    /// Texts of the requests of each case.
    requests: Vec<Vec<String>>,
    /// The cases of the run without faults, and their reports.
    expected: Vec<(Arc<CaseResult>, CaseDocument)>,
    /// Texts of all requests by their digest.
    texts: Arc<BTreeMap<String, String>>,
    header: RunHeader,
    durable: Arc<Mutex<Durable>>,
}

/// How a start of the run ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Finished,
    /// The process was killed, gave up because of its disk, or its model did not answer.
    Interrupted,
}

impl SimulatedRun {
    fn new(seed: u64) -> Self {
        let mut numbers = SeededNumbers::new(seed);
        let count = 1 + numbers.index(5);
        let requests: Vec<Vec<String>> = (0..count)
            .map(|index| {
                let calls = 1 + numbers.below(3);
                (0..calls).map(|call| format!("case {index}, call {call}")).collect()
            })
            .collect();
        let case = |(index, texts): (usize, &Vec<String>)| {
            let replies: Vec<Reply> = texts.iter().map(|text| reply(seed, text)).collect();
            Arc::new(judged(seed, index, &replies))
        };
        let cases: Vec<Arc<CaseResult>> = requests.iter().enumerate().map(case).collect();
        let header = fixture::header(&cases);
        let with_document = |case: Arc<CaseResult>| {
            let document = CaseDocument::new(&case, &header.rubric.categories, None);
            (case, document)
        };
        let expected = cases.into_iter().map(with_document).collect();
        let texts = requests.iter().flatten().map(|text| (request(text).digest(), text.clone()));
        Self {
            seed,
            disk: SimulatedDisk::default(),
            texts: Arc::new(texts.collect()),
            requests,
            header,
            expected,
            durable: Arc::default(),
        }
    }

    fn durable(&self) -> MutexGuard<'_, Durable> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(self.disk.clone())
    }

    /// Runs until it has finished, and checks after each start.
    fn run(&self) -> Result<(), Violation> {
        let mut numbers = SeededNumbers::new(self.seed ^ 0xd15c);
        for start in 0..MAX_STARTS {
            let is_faulty = start < FAULTY_STARTS;
            let plan = if is_faulty {
                FaultPlan {
                    // Three starts of four die, at any operation of the disk.
                    death: (!numbers.one_in(4)).then(|| 1 + numbers.below(MAX_OPERATIONS)),
                    // Half of the starts have a sound disk, so that progress is made.
                    failure: [None, None, Some(40), Some(8)][numbers.index(4)],
                }
            } else {
                FaultPlan::default()
            };
            self.disk.start_process(plan, numbers.draw());
            let outage = is_faulty.then(|| [None, Some(9)][numbers.index(2)]).flatten();
            let end = self
                .start(outage, numbers.draw())
                .map_err(|why| format!("start {start}, {plan:?}: {why}"))?;
            let has_power = !numbers.one_in(3);
            if !has_power {
                self.disk.lose_power(numbers.draw());
                let mut durable = self.durable();
                // What was not synced is gone, and nothing of it may be expected back.
                durable.written = durable.synced.clone();
            }
            self.check_reports(end == End::Finished).map_err(|why| {
                format!("after start {start}, {plan:?}, power {has_power}: {why}")
            })?;
            if end == End::Finished {
                self.disk.start_process(FaultPlan::default(), 0);
                let left = self.open_journal().map_err(|why| format!("in the end: {why}"))?;
                let left = left.map_or(0, |recovered| recovered.cases.len());
                return if left == self.expected.len() {
                    Ok(())
                } else {
                    Err(format!("in the end the journal has {left} cases"))
                };
            }
        }
        Err("it never finishes on a disk that works".to_owned())
    }

    /// Starts the run, or resumes it. The model fails once in `outage` requests.
    fn start(&self, outage: Option<u64>, seed: u64) -> Result<End, Violation> {
        let (json, markdown) = folders();
        let disk = self.disk();
        if disk.create_folder(json).is_err() {
            return Ok(End::Interrupted);
        }
        journal::remove_leftovers_on(&*disk, json, markdown);
        let Some(Recovered { journal, cases, calls }) = self.open_journal()? else {
            return Ok(End::Interrupted);
        };
        let known_calls = self.durable().written.calls.clone();
        let journal = Arc::new(journal);
        let run_id = &self.header.run_id;
        let Ok(files) = ReportFiles::reopen_on(disk, json, markdown, run_id) else {
            return Ok(End::Interrupted);
        };
        let mut observer = ReportObserver::new(files);
        let mut flushes = SeededNumbers::new(seed);
        let mut show = |kind: RunEventKind, last: bool| {
            let event = RunEvent { elapsed: Duration::ZERO, kind };
            observer.on_event(&event).is_ok() && {
                // Events between two pauses are written together.
                let is_written = last || flushes.one_in(2);
                observer.skip_pause();
                !is_written || observer.flush(last).is_ok()
            }
        };
        show(RunEventKind::RunStarted(Arc::new(self.header.clone())), false);
        let recalled: Vec<Arc<CaseResult>> = cases.into_values().map(Arc::new).collect();
        let known: BTreeSet<usize> = recalled.iter().map(|case| case.index).collect();
        if !recalled.is_empty() {
            show(RunEventKind::CasesRecalled(recalled.clone().into()), false);
        }
        let log = Arc::new(CallLog::with_calls(calls));
        log.set_sink(0, Arc::new(self.tracked(&journal)));
        let mut numbers = SeededNumbers::new(seed);
        let outages = Mutex::new(SeededNumbers::new(numbers.draw()));
        let model = SeededModel { seed: self.seed, asked: Mutex::default(), outage, outages };
        let model = Arc::new(model);
        let journaled = JournaledModel::new(Arc::clone(&model) as Arc<dyn ChatModel>, log);
        let mut finished = recalled;
        // Several cases run at once, so they finish in any order.
        let mut left: Vec<usize> =
            (0..self.expected.len()).filter(|it| !known.contains(it)).collect();
        while !left.is_empty() {
            let index = left.swap_remove(numbers.index(left.len()));
            let requests = &self.requests[index];
            let replies: Vec<Reply> = requests.iter().map(|text| ask(&journaled, text)).collect();
            if self.disk.is_dead() {
                return Ok(End::Interrupted);
            }
            let case = Arc::new(judged(self.seed, index, &replies));
            let is_settled = case.is_settled();
            let event = RunEventKind::CaseFinished(Arc::clone(&case));
            EventLog::record(&*journal, &event);
            if is_settled && self.is_written(&journal) {
                self.durable().written.cases.insert(index);
            }
            if numbers.one_in(3) {
                self.sync(&journal);
            }
            show(event, false);
            finished.push(case);
        }
        for text in model.asked.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // A call that the journal had when this start began costs money, and must not be made
            // twice.
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
        journal.close();
        let is_written = self.is_written(&journal);
        if is_written {
            let mut durable = self.durable();
            durable.synced = durable.written.clone();
        }
        let is_complete = finished.iter().all(|case| case.is_settled());
        Ok(if is_shown && is_written && is_complete { End::Finished } else { End::Interrupted })
    }

    /// Returns true if all that was recorded up to now was written without an error.
    fn is_written(&self, journal: &Journal) -> bool {
        !self.disk.is_dead() && journal.fault().is_none()
    }

    fn sync(&self, journal: &Journal) {
        journal.sync();
        if self.is_written(journal) {
            let mut durable = self.durable();
            durable.synced = durable.written.clone();
        }
    }

    fn tracked(&self, journal: &Arc<Journal>) -> TrackedJournal {
        TrackedJournal {
            journal: Arc::clone(journal),
            disk: self.disk.clone(),
            durable: Arc::clone(&self.durable),
            texts: Arc::clone(&self.texts),
        }
    }

    /// Opens the journal and checks what is in it. Returns `None` if it cannot be written.
    fn open_journal(&self) -> Result<Option<Recovered>, Violation> {
        let (json, _) = folders();
        let disk = self.disk();
        let found = journal::find_journal_on(&*disk, json, None, Timestamp::MAX);
        let Ok(found) = found else { return Ok(None) };
        let recovered = match found.map(|path| recover_on(Arc::clone(&disk), &path)) {
            Some(Ok(recovered)) => Some(recovered),
            // It was killed while it wrote the first record, and nothing was begun.
            Some(Err(JournalError::Empty { path })) => {
                if disk.remove(&path).is_err() {
                    return Ok(None);
                }
                None
            }
            Some(Err(JournalError::Unreadable { .. })) => return Ok(None),
            Some(Err(error)) => return Err(format!("the journal does not open: {error}")),
            None => None,
        };
        let sync = JournalSync::OnRequest;
        let durable = self.durable();
        let Some(mut recovered) = recovered else {
            if !durable.written.cases.is_empty() || !durable.written.calls.is_empty() {
                return Err("the journal is lost".to_owned());
            }
            let header = JournalHeader::new(&self.header, RunDigests::new(), serde_json::json!({}));
            let created = Journal::create_on(disk, json, &header, sync).ok();
            return Ok(created.map(|journal| Recovered {
                journal,
                cases: BTreeMap::new(),
                calls: Vec::new(),
            }));
        };
        let (cases, calls) =
            (std::mem::take(&mut recovered.cases), std::mem::take(&mut recovered.calls));
        for index in &durable.written.cases {
            if !cases.contains_key(index) {
                return Err(format!("the finished case {index} is lost"));
            }
        }
        if let Some(case) = cases.values().find(|case| **case != *self.expected[case.index].0) {
            return Err(format!("case {} came back changed", case.index));
        }
        let found = calls.iter().filter_map(|call| self.texts.get(&call.key.digest));
        let found: BTreeSet<&String> = found.collect();
        if let Some(text) = durable.written.calls.iter().find(|text| !found.contains(text)) {
            return Err(format!("a finished call is lost: {text}"));
        }
        drop(durable);
        let resumed = Journal::resume_with(recovered, sync).ok();
        Ok(resumed.map(|journal| Recovered { journal, cases, calls }))
    }

    /// Checks the report files, which may be of an earlier moment.
    fn check_reports(&self, is_finished: bool) -> Result<(), Violation> {
        let (json, markdown) = folders();
        let Some(text) = self.disk.content(&json.join(format!("{}.json", self.header.run_id)))
        else {
            return if is_finished { Err("there is no report".to_owned()) } else { Ok(()) };
        };
        let report: ReportDocument = serde_json::from_slice(&text)
            .map_err(|error| format!("the report is broken: {error}"))?;
        let mut seen = BTreeSet::new();
        for case in &report.cases {
            let should = self.expected.iter().find(|(_, should)| should.id == case.id);
            let is_right = should
                .is_some_and(|(_, it)| (it.status, &it.scores) == (case.status, &case.scores));
            let is_open = !is_finished && case.status == CaseStatus::Unscored;
            // An unfinished run may show a case whose model was lost as open; a resume runs it
            // again.
            if !is_right && !is_open {
                return Err(format!("{}: {:?} with {:?}", case.id, case.status, case.scores));
            }
            if !seen.insert(&case.id) {
                return Err(format!("{} has two results", case.id));
            }
        }
        if !is_finished {
            return Ok(());
        }
        if !report.complete || report.cases.len() != self.expected.len() {
            let (found, all) = (report.cases.len(), self.expected.len());
            return Err(format!("the report has {found} of {all} cases"));
        }
        for name in [format!("{}.md", self.header.run_id), "index.md".to_owned()] {
            let end = self.disk.content(&markdown.join(&name));
            if !end.is_some_and(|text| text.ends_with(b"\n")) {
                return Err(format!("{name} is missing or cut"));
            }
        }
        Ok(())
    }
}

/// Folders of the JSON and the Markdown reports.
fn folders() -> (&'static Path, &'static Path) {
    (Path::new("/room/json"), Path::new("/room/md"))
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
    disk: SimulatedDisk,
    durable: Arc<Mutex<Durable>>,
    /// Texts of the run's requests by their digest.
    texts: Arc<BTreeMap<String, String>>,
}

impl CallSink for TrackedJournal {
    fn record(&self, call: &FinishedCall<'_>) {
        CallSink::record(&*self.journal, call);
        if !self.disk.is_dead() && self.journal.fault().is_none() {
            let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
            durable.written.calls.extend(self.texts.get(&call.key.digest).cloned());
        }
    }
}

/// Answers a request with what depends on seed and text alone, and notes the request.
struct SeededModel {
    seed: u64,
    asked: Mutex<Vec<String>>,
    /// One request in this many is not answered.
    outage: Option<u64>,
    outages: Mutex<SeededNumbers>,
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
        let mut outages = self.outages.lock().unwrap_or_else(PoisonError::into_inner);
        let is_out = self.outage.is_some_and(|times| outages.one_in(times));
        let reply = match reply(self.seed, &text) {
            _ if is_out => Err(ModelError::Unreachable {
                endpoint: "http://127.0.0.1:1".to_owned(),
                why: "connection refused".to_owned(),
                hint: String::new(),
            }),
            Reply::Score(number) => Ok(number.to_string()),
            Reply::Malformed | Reply::Missing => Ok("no number".to_owned()),
        };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        Box::pin(async move { reply.map(|text| ChatReply::plain(text, FinishReason::Stop)) })
    }

    fn check(&self) -> futures_util::future::BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { Ok(()) })
    }
}

/// What a judge says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// From 0 to 100.
    Score(u32),
    Malformed,
    /// Its server did not answer.
    Missing,
}

/// Returns the model's reply.
fn reply(seed: u64, text: &str) -> Reply {
    let text = text.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    match SeededNumbers::new(text).index(108) {
        score @ 0..=100 => Reply::Score(u32::try_from(score).unwrap()),
        _ => Reply::Malformed,
    }
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

fn ask(model: &JournaledModel, text: &str) -> Reply {
    let request = request(text);
    let mut asked = pin!(model.chat(&request));
    match asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(reply)) => reply.text.parse().map_or(Reply::Malformed, Reply::Score),
        Poll::Ready(Err(_)) => Reply::Missing,
        Poll::Pending => unreachable!("nothing in it waits"),
    }
}

/// The case that the judge said this about. Some programs end before they answer.
fn judged(seed: u64, index: usize, replies: &[Reply]) -> CaseResult {
    let id = format!("case-{index}");
    let mut numbers = SeededNumbers::new(seed ^ index as u64);
    let without = |reason, detail| fixture::case(index, &id, fixture::unscored(reason, detail));
    if replies.contains(&Reply::Missing) {
        return without(UnscoredReason::Unavailable, "connection refused");
    }
    if numbers.one_in(9) {
        let exit = format!("exit code {}", 1 + numbers.below(255));
        return fixture::broken(index, &id, Interruption::SutError(exit));
    }
    let scores = replies.iter().map(|reply| match reply {
        Reply::Score(score) => Some(*score),
        Reply::Malformed | Reply::Missing => None,
    });
    let Some(scores) = scores.collect::<Option<Vec<u32>>>() else {
        return without(UnscoredReason::Malformed, "no number");
    };
    let count = f64::from(u32::try_from(scores.len()).unwrap());
    let score = f64::from(scores.iter().sum::<u32>()) / count / 100.0;
    fixture::case(index, &id, fixture::scored([score; 4], "It says so."))
}

/// Parts of a measurement, each of which must stay once it is recorded.
fn simulate_records(seed: u64) -> Result<(), Violation> {
    let mut numbers = SeededNumbers::new(seed ^ 0x7ec0);
    let (path, disk) = (PathBuf::from("/room/records/file"), SimulatedDisk::default());
    let mut durable: Vec<u64> = Vec::new();
    for start in 0..FAULTY_STARTS {
        let plan = FaultPlan {
            death: numbers.one_in(2).then(|| 1 + numbers.below(16)),
            failure: numbers.one_in(2).then_some(4),
        };
        disk.start_process(plan, numbers.draw());
        let Ok((mut file, read)) = RecordFile::<u64>::open_on(Arc::new(disk.clone()), &path) else {
            continue;
        };
        if !read.starts_with(&durable) {
            return Err(format!("records, start {start}, {plan:?}: {durable:?} became {read:?}"));
        }
        // One that was written as a whole, although an error was returned, counts until the power
        // is lost.
        let first = read.len() as u64;
        for next in first..first + numbers.below(6) {
            if file.append(&next).is_err() {
                break;
            }
            durable = (0..=next).collect();
        }
        if numbers.one_in(3) {
            disk.lose_power(numbers.draw());
        }
    }
    Ok(())
}

fn simulate(seed: u64) -> Result<(), Violation> {
    let whole = || SimulatedRun::new(seed).run().and_then(|()| simulate_records(seed));
    catch_unwind(AssertUnwindSafe(whole)).unwrap_or_else(|_| Err("it panicked".to_owned()))
}

#[test]
fn runs_survive_every_fault() {
    run_seeds(SEEDS, "simulate", || (), |(), seed| simulate(seed));
}
