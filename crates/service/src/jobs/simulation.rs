//! The store and the queue of gradings under kills, by the hundred: a seed decides what is scanned,
//! queued and graded in which order, and at which byte of which write the process dies. The files as
//! a killed process leaves them are opened anew. What must hold whatever happens:
//!
//! - both databases open and are whole;
//! - a grade that was saved stays, and none differs from the run without kills;
//! - a session that was queued stays until it is graded, is queued once, and is not graded again for
//!   the same request.
//!
//! `just simulate-store N` runs any number of seeds, `just simulate-store 1 SEED` a failing one
//! again. Scanner, store, queue and the handling of an entry are those of every worker; its loop, which
//! waits, is not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use apalis::prelude::{Attempt, Data, Status, Task, WorkerContext};
use apalis_sqlite::queries::{AckPayload, ack_tasks, fetch_next, register_worker};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, SqlitePool};
use tempfile::TempDir;

use super::JobSettings;
use super::queue::{GradingJob, GradingQueue, GradingState};
use super::worker::{GradingRunner, handle};
use crate::grader::quality::QualityGrader;
use crate::grader::{GraderOptions, SelfGrader};
use selftest_grading::grade::GradeRecord;
use selftest_grading::grade::quality::{QualityDimension, QualitySettings, TEMPLATE};
use selftest_models::prompts::PromptLibrary;
use selftest_models::{ChatModel, ChatReply, ChatRequest, FinishReason, ModelError};
use selftest_store::QueuePool;
use selftest_text::disk::simulated_disk::SeededNumbers;
use selftest_text::redact::Redactor;
use selftest_text::seeds::run_seeds;

/// Seeds of an ordinary test run.
const SEEDS: u64 = 30;
/// Processes that may be killed, before one that finishes the work.
const LIVES: u64 = 6;
/// Sessions of each seed.
const SESSIONS: usize = 3;
/// Most steps of a process that is killed.
const MAX_STEPS: u64 = 9;
/// Bytes of a page of SQLite.
const PAGE: usize = 4096;
/// Files of the two databases, each with its write-ahead log.
const DATABASES: [[&str; 2]; 2] =
    [["grades.db", "grades.db-wal"], ["grades-jobs.db", "grades-jobs.db-wal"]];

/// Numbers the workers of all seeds.
static WORKERS: AtomicU64 = AtomicU64::new(0);

/// A broken invariant.
type Violation = String;

/// Names and contents of the databases' files.
type Files = BTreeMap<&'static str, Vec<u8>>;

/// What is the same for all seeds.
struct Template {
    room: PathBuf,
    sessions: PathBuf,
    /// Empty databases.
    files: Files,
    /// Grades of the run without kills, by session.
    expected: BTreeMap<String, GradeRecord>,
    library: Arc<PromptLibrary>,
}

/// What was completed, and must be there ever after.
#[derive(Debug, Default)]
struct Completed {
    is_scanned: bool,
    queued: BTreeSet<String>,
    graded: BTreeSet<String>,
    done: BTreeSet<String>,
}

/// A process with its open databases.
struct World<'a> {
    template: &'a Template,
    folder: TempDir,
    grader: SelfGrader,
    queue: GradingQueue,
    runner: Arc<GradingRunner>,
    worker: WorkerContext,
    held: Option<Task<Vec<u8>>>,
}

/// What a process does before it dies.
#[derive(Debug, Clone, Copy)]
enum Step {
    Scan,
    Enqueue(usize),
    /// Takes an entry from the queue, grades its session, or says that it is done.
    Work,
    Requeue,
    Prune,
}

impl Template {
    async fn new(room: &Path) -> Self {
        let sessions = room.join("sessions");
        fs::create_dir(&sessions).unwrap();
        for number in 0..SESSIONS {
            let session = serde_json::json!({
                "session_start": "2026-11-20T10:00:00Z",
                "session_id": session_id(number),
                "messages": [
                    { "role": "user", "content": format!("fix the login of site {number}") },
                    { "role": "assistant", "content": "Done: the login works again." },
                ],
            });
            let path = sessions.join(format!("{}.json", session_id(number)));
            fs::write(path, session.to_string()).unwrap();
        }
        let nowhere = Path::new("/nonexistent");
        let mut library = PromptLibrary::new(nowhere, selftest_grading::prompts::BUILT_IN);
        library.load(TEMPLATE).unwrap();
        let mut template = Self {
            room: room.to_owned(),
            sessions,
            files: Files::new(),
            expected: BTreeMap::new(),
            library: Arc::new(library),
        };
        let world = World::open(&template, &Files::new(), &Arc::default()).await.unwrap();
        let files = world.close().await;
        let world = World::open(&template, &files, &Arc::default()).await.unwrap();
        world.grader.grade_new_sessions(&mut ()).await.unwrap();
        let expected = world.grades().await;
        world.close().await;
        (template.files, template.expected) = (files, expected);
        assert_eq!(template.expected.len(), SESSIONS);
        template
    }
}

fn session_id(number: usize) -> String {
    format!("session-{number}")
}

/// Counts the calls for each session, by its number.
type Calls = Mutex<BTreeMap<usize, u32>>;

impl<'a> World<'a> {
    async fn open(
        template: &'a Template,
        files: &Files,
        calls: &Arc<Calls>,
    ) -> Result<Self, Violation> {
        let folder = tempfile::tempdir_in(&template.room).unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        let address = folder.path().join(DATABASES[0][0]).to_string_lossy().into_owned();
        let options =
            GraderOptions { sources: vec![template.sessions.clone()], ..GraderOptions::default() };
        let fails = |why| format!("a database does not open: {why}");
        let grader = SelfGrader::open(&address, options).await.map_err(fails)?;
        let settings = JobSettings { max_attempts: 1000, ..JobSettings::default() };
        let queue = GradingQueue::open(&address, &settings).await.map_err(fails)?;
        let model: Arc<dyn ChatModel> = Arc::new(SimulatedGrader { calls: Arc::clone(calls) });
        let quality = QualityGrader::new(
            grader.store().clone(),
            model,
            QualitySettings::default(),
            Arc::clone(&template.library),
            Redactor::default(),
        );
        let quality = quality.await.unwrap();
        let runner = Arc::new(GradingRunner {
            store: grader.store().clone(),
            find: Arc::new(move |_| {
                let quality = quality.clone();
                Box::pin(async move { Ok(quality) })
            }),
            settings,
            should_wait_for_model: false,
            unanswered: AtomicU32::new(0),
        });
        let worker =
            WorkerContext::new(&format!("worker-{}", WORKERS.fetch_add(1, Ordering::Relaxed)));
        Ok(Self { template, folder, grader, queue, runner, worker, held: None })
    }

    /// Time passes: what dead processes held has expired.
    async fn expire(&self) {
        self.pool().execute("UPDATE Workers SET last_seen = 0").await.unwrap();
        let path = self.folder.path().join(DATABASES[0][0]);
        let mut grades = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
        grades.execute("UPDATE job_leases SET seen = 0").await.unwrap();
        grades.close().await.unwrap();
    }

    fn pool(&self) -> &SqlitePool {
        match &self.queue.database.pool {
            QueuePool::Sqlite(pool) => pool,
            #[cfg(feature = "postgres")]
            QueuePool::Postgres(_) => unreachable!("it is a file"),
        }
    }

    fn config(&self) -> apalis_sqlite::Config {
        apalis_sqlite::Config::default().queue(&self.queue.name).batch_size(1).lock_tasks(false)
    }

    /// Reads the databases as they are on disk.
    fn files(&self) -> Files {
        let read = |name| Some((name, fs::read(self.folder.path().join(name)).ok()?));
        DATABASES.into_iter().flatten().filter_map(read).collect()
    }

    /// Closes the databases, and returns what is left of them.
    async fn close(self) -> Files {
        self.queue.close().await;
        self.grader.store().clone().close().await;
        self.files()
    }

    async fn grades(&self) -> BTreeMap<String, GradeRecord> {
        let mut grades = BTreeMap::new();
        for number in 0..SESSIONS {
            let id = session_id(number);
            if let Some(grade) = self.grader.store().grade(&id).await.unwrap() {
                grades.insert(id, GradeRecord { graded_at: Timestamp::UNIX_EPOCH, ..grade });
            }
        }
        grades
    }

    /// Checks both databases, and notes what is in them.
    async fn check(&self, completed: &mut Completed) -> Result<(), Violation> {
        let path = self.folder.path().join(DATABASES[0][0]);
        let mut grades = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
        let query = || sqlx::query_scalar::<_, String>("PRAGMA integrity_check");
        let found = [
            query().fetch_one(&mut grades).await.map_err(|error| error.to_string())?,
            query().fetch_one(self.pool()).await.map_err(|error| error.to_string())?,
        ];
        grades.close().await.unwrap();
        if found != ["ok", "ok"] {
            return Err(format!("a database is not whole: {found:?}"));
        }
        let grades = self.grades().await;
        for (id, grade) in &grades {
            if self.template.expected[id] != *grade {
                return Err(format!("the grade of {id} differs: {grade:?}"));
            }
        }
        if completed.is_scanned && grades.len() < SESSIONS {
            return Err(format!("of {SESSIONS} grades {} are left", grades.len()));
        }
        for number in 0..SESSIONS {
            self.check_session(number, completed).await?;
        }
        let counts = self.queue.counts().await.map_err(|error| error.to_string())?;
        let entries = counts.waiting + counts.running + counts.failed + counts.done;
        if entries != completed.queued.len() as u64 || counts.failed > 0 {
            return Err(format!("{counts:?} for {:?}", completed.queued));
        }
        Ok(())
    }

    async fn check_session(
        &self,
        number: usize,
        completed: &mut Completed,
    ) -> Result<(), Violation> {
        let id = session_id(number);
        let found = self.grader.store().session_quality_grades(&id).await;
        let found = found.map_err(|error| error.to_string())?.items;
        let state = self.queue.request_state(&id).await.map_err(|error| error.to_string())?;
        if found.len() > 1 || found.iter().any(|grade| grade.problem_solved != Some(score(number)))
        {
            return Err(format!("{id} has other grades: {found:?}"));
        }
        let is_done = state == Some(GradingState::Done);
        if completed.done.contains(&id) && !is_done {
            return Err(format!("{id} was done and is {state:?}"));
        }
        if (is_done || completed.graded.contains(&id)) && found.is_empty() {
            return Err(format!("{id} is {state:?} and has no grade"));
        }
        if completed.queued.contains(&id) && state.is_none() {
            return Err(format!("{id} was queued and is not"));
        }
        if !found.is_empty() {
            completed.graded.insert(id.clone());
        }
        if state.is_some() {
            completed.queued.insert(id.clone());
        }
        if is_done {
            completed.done.insert(id);
        }
        Ok(())
    }

    /// Takes a step; returns what it completed, as a change of the notes.
    async fn step(&mut self, step: Step) -> Result<Completed, Violation> {
        let mut completed = Completed::default();
        let failed = |error: &dyn std::fmt::Display| format!("{step:?}: {error}");
        match step {
            Step::Scan => {
                let scan = self.grader.grade_new_sessions(&mut ()).await;
                scan.map_err(|error| failed(&error))?;
                completed.is_scanned = true;
            }
            Step::Enqueue(number) => {
                let job = GradingJob::new(&session_id(number), None);
                self.queue.enqueue(&[job]).await.map_err(|error| failed(&error))?;
                completed.queued.insert(session_id(number));
            }
            Step::Work => return self.work().await,
            Step::Requeue => {
                self.queue.requeue_abandoned().await.map_err(|error| failed(&error))?;
            }
            Step::Prune => self.queue.prune().await.map_err(|error| failed(&error))?,
        }
        Ok(completed)
    }

    async fn work(&mut self) -> Result<Completed, Violation> {
        let mut completed = Completed::default();
        let failed = |error: &dyn std::fmt::Display| format!("the worker failed: {error}");
        let Some(task) = self.held.take() else {
            let mut taking = self.pool().begin().await.map_err(|error| failed(&error))?;
            let found = fetch_next(&mut *taking, &self.config(), &self.worker).await;
            let mut found = found.map_err(|error| failed(&error))?;
            taking.commit().await.map_err(|error| failed(&error))?;
            self.held = found.pop();
            return Ok(completed);
        };
        let job = GradingJob::read(&task.args).map_err(|error| failed(&error))?;
        let id = job.session_id;
        let found = self.grader.store().session_quality_grades(&id).await;
        if found.is_ok_and(|found| found.items.is_empty()) {
            let attempt = Attempt::new_with_value(task.attempt() + 1);
            let handled = handle(task.args.clone(), attempt, Data::new(Arc::clone(&self.runner)));
            handled.await.map_err(|error| failed(&error))?;
            self.held = Some(task);
            completed.graded.insert(id);
            return Ok(completed);
        }
        // Graded by this worker, or by one that died before it could say so: then it is asked
        // again.
        let attempt = task.attempt() + 1;
        let again = Attempt::new_with_value(attempt);
        let handled = handle(task.args.clone(), again, Data::new(Arc::clone(&self.runner)));
        handled.await.map_err(|error| failed(&error))?;
        let task_id = task.task_id().cloned().unwrap();
        let result = Ok(serde_json::Value::Null);
        let done = AckPayload { task_id, attempt, status: Status::Done, result };
        let acknowledged = ack_tasks(self.pool(), &[&done], self.worker.name()).await;
        if acknowledged.map_err(|error| failed(&error))? != 1 {
            return Err(format!("{id} was not this worker's any more"));
        }
        completed.done.insert(id);
        Ok(completed)
    }
}

impl Completed {
    fn add(&mut self, other: Completed) {
        self.is_scanned |= other.is_scanned;
        self.queued.extend(other.queued);
        self.graded.extend(other.graded);
        self.done.extend(other.done);
    }
}

/// Returns what a process leaves that is killed while it changes the files from `before` to `after`:
/// one database is written up to some byte.
fn torn(before: &Files, after: &Files, numbers: &mut SeededNumbers) -> Files {
    let mut left = after.clone();
    for [database, log] in DATABASES {
        let empty = Vec::new();
        let content = |files: &'static str, of: &Files| of.get(files).cloned().unwrap_or_default();
        if before.get(database).unwrap_or(&empty) != after.get(database).unwrap_or(&empty) {
            // A checkpoint copies pages of the log, which stays until all are there.
            let (old, new) = (content(database, before), content(database, after));
            let mut mixed = new.clone();
            for (page, old) in mixed.chunks_mut(PAGE).zip(old.chunks(PAGE)) {
                if page.len() == old.len() && numbers.one_in(2) {
                    page.copy_from_slice(old);
                }
            }
            if numbers.one_in(2) {
                mixed.truncate(old.len().max(PAGE).min(new.len()));
            }
            left.insert(database, mixed);
            left.insert(log, content(log, before));
            continue;
        }
        let (old, new) = (content(log, before), content(log, after));
        if new.len() < old.len() {
            continue;
        }
        let first = old.iter().zip(&new).position(|(old, new)| old != new).unwrap_or(old.len());
        let cut = first + numbers.index(new.len() - first + 1);
        let mut mixed = new[..cut].to_vec();
        mixed.extend_from_slice(old.get(cut..).unwrap_or_default());
        left.insert(log, mixed);
    }
    left
}

/// Gives each session its own score.
struct SimulatedGrader {
    calls: Arc<Calls>,
}

impl ChatModel for SimulatedGrader {
    fn id(&self) -> &'static str {
        "simulated"
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let text: String =
            request.messages.iter().map(|message| message.text.to_string()).collect();
        let number = (0..SESSIONS)
            .find(|number| text.contains(&format!("fix the login of site {number}")))
            .unwrap();
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry(number).or_default() += 1;
        let part = serde_json::json!({
            "evidence": format!("fix the login of site {number}"),
            "reasoning": "It says so.",
            "score": score(number),
        });
        let mut reply = serde_json::json!({ "summary": "Fine." });
        for dimension in QualityDimension::ALL {
            reply[dimension.name()] = part.clone();
        }
        Box::pin(async move { Ok(ChatReply::plain(reply.to_string(), FinishReason::Stop)) })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { Ok(()) })
    }
}

fn score(number: usize) -> f64 {
    [0.1, 0.5, 0.9][number % 3]
}

/// Draws a step that tests kills: most of them are work.
fn draw_step(numbers: &mut SeededNumbers) -> Step {
    match numbers.below(9) {
        0 => Step::Scan,
        1..3 => Step::Enqueue(numbers.index(SESSIONS)),
        3 => Step::Requeue,
        4 => Step::Prune,
        _ => Step::Work,
    }
}

async fn simulate(seed: u64, template: &Template) -> Result<(), Violation> {
    let mut numbers = SeededNumbers::new(seed);
    let mut files = template.files.clone();
    let mut completed = Completed::default();
    let calls: Arc<Calls> = Arc::default();
    // Sessions whose grading was interrupted, and how often.
    let mut interrupted = 0;
    for life in 0..LIVES {
        let mut world = World::open(template, &files, &calls).await?;
        world.check(&mut completed).await.map_err(|why| format!("life {life}: {why}"))?;
        world.expire().await;
        register_worker(world.pool(), &world.config(), &world.worker, "SqliteStorage")
            .await
            .map_err(|error| format!("life {life}: {error}"))?;
        world.step(Step::Requeue).await?;
        let steps = 1 + numbers.below(MAX_STEPS);
        let mut is_killed = false;
        for number in 0..steps {
            let step = draw_step(&mut numbers);
            // Without a grade by rules there is nothing to work on.
            let step = match step {
                Step::Work | Step::Enqueue(_) if !completed.is_scanned => Step::Scan,
                // Another request would be for another grade.
                Step::Enqueue(number) if completed.done.contains(&session_id(number)) => Step::Work,
                step => step,
            };
            let before = world.files();
            let graded = completed.graded.clone();
            let asked = calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let change =
                world.step(step).await.map_err(|why| format!("life {life}: {step:?}: {why}"))?;
            for (session, count) in calls.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                let is_asked = asked.get(session) != Some(count);
                if is_asked && graded.contains(&session_id(*session)) {
                    return Err(format!("life {life}: the model was asked again about {session}"));
                }
            }
            if number + 1 == steps && !numbers.one_in(4) {
                files = torn(&before, &world.files(), &mut numbers);
                interrupted += u32::from(!change.graded.is_empty());
                is_killed = true;
            } else {
                completed.add(change);
            }
        }
        let before = world.files();
        let after = world.close().await;
        if !is_killed {
            // It ends by itself, or is killed in the middle of that.
            files = if numbers.one_in(2) { after } else { torn(&before, &after, &mut numbers) };
        }
    }
    finish(template, &files, &mut completed, &calls).await?;
    let calls: u32 = calls.lock().unwrap_or_else(PoisonError::into_inner).values().sum();
    let most = u32::try_from(SESSIONS).unwrap_or(u32::MAX) + interrupted;
    if calls > most { Err(format!("{calls} calls, expected at most {most}")) } else { Ok(()) }
}

/// Does all that is left, without kills.
async fn finish(
    template: &Template,
    files: &Files,
    completed: &mut Completed,
    calls: &Arc<Calls>,
) -> Result<(), Violation> {
    let mut world = World::open(template, files, calls).await?;
    world.check(completed).await.map_err(|why| format!("in the end: {why}"))?;
    world.expire().await;
    register_worker(world.pool(), &world.config(), &world.worker, "SqliteStorage")
        .await
        .map_err(|error| format!("in the end: {error}"))?;
    world.step(Step::Scan).await?;
    for number in 0..SESSIONS {
        // What is done already is not asked for again.
        if !completed.done.contains(&session_id(number)) {
            world.step(Step::Enqueue(number)).await?;
        }
    }
    world.step(Step::Requeue).await?;
    for _ in 0..3 * SESSIONS {
        world.step(Step::Work).await?;
    }
    completed.add(Completed {
        is_scanned: true,
        queued: (0..SESSIONS).map(session_id).collect(),
        graded: (0..SESSIONS).map(session_id).collect(),
        done: (0..SESSIONS).map(session_id).collect(),
    });
    world.check(completed).await.map_err(|why| format!("in the end: {why}"))?;
    world.close().await;
    Ok(())
}

#[test]
fn store_and_queue_survive_kills() {
    // In memory: only the order of writes counts.
    let memory = Path::new("/dev/shm");
    let room = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let room = room.unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let template = runtime().block_on(Template::new(room.path()));
    run_seeds(SEEDS, "simulate-store", runtime, |runtime, seed| {
        runtime.block_on(simulate(seed, &template))
    });
}
