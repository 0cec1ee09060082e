//! The thread that owns the engine: its job queue, its turn on the processors, and the number of
//! threads that a call gets.
//!
//! llama.cpp's kernels are chosen at build time: a statically linked library cannot select them at
//! startup. An older CPU is rejected before it hits an illegal instruction.
//!
//! llama.cpp's threads spin while they wait for each other. Two models on the same cores can take a
//! hundred times as long as one after the other, so models of one process take turns, as do
//! processes that use the same file. If other programs occupy the cores, one thread can be ten
//! times as fast as two.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle, available_parallelism, sleep};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::engine::{self, InferenceEngine};
use super::llama;
use crate::model_settings::ModelSettings;
use crate::{ChatReply, ChatRequest, ModelError, TimeoutPhase};

/// Starts its thread with the first job. Dropping it stops and joins the thread.
pub(super) struct EngineWorker {
    file: PathBuf,
    cache_folder: PathBuf,
    context_tokens: u32,
    call_limit: Duration,
    running: Mutex<Option<WorkerThread>>,
}

struct WorkerThread {
    jobs: Sender<EngineJob>,
    thread: JoinHandle<()>,
}

enum EngineJob {
    /// Loads the file and replies with the context size in tokens.
    Load(oneshot::Sender<Result<u32, ModelError>>),
    Chat(Box<ChatRequest>, Arc<AtomicBool>, oneshot::Sender<Result<ChatReply, ModelError>>),
}

/// Sets the flag when the future that holds it is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl EngineWorker {
    /// Creates a worker for this file without starting a thread.
    pub(super) fn new(file: PathBuf, cache_folder: PathBuf, settings: &ModelSettings) -> Self {
        let (context_tokens, call_limit) = (settings.context_tokens, settings.total());
        Self { file, cache_folder, context_tokens, call_limit, running: Mutex::new(None) }
    }

    /// Loads the file if needed. Returns the maximum number of tokens of prompt and reply together.
    pub(super) async fn load(&self) -> Result<u32, ModelError> {
        let (answer, receiver) = oneshot::channel();
        self.submit(EngineJob::Load(answer))?;
        receiver.await.unwrap_or_else(|_| Err(engine_stopped(&self.file)))
    }

    /// Generates a reply. Dropping the future cancels the work at the next token.
    pub(super) async fn chat(&self, request: ChatRequest) -> Result<ChatReply, ModelError> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let _guard = CancelOnDrop(cancelled.clone());
        let (answer, receiver) = oneshot::channel();
        self.submit(EngineJob::Chat(Box::new(request), cancelled, answer))?;
        receiver.await.unwrap_or_else(|_| Err(engine_stopped(&self.file)))
    }

    fn submit(&self, job: EngineJob) -> Result<(), ModelError> {
        // Held while the thread starts, so that two first jobs do not load the file twice.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs = match running.as_ref() {
            Some(running) => &running.jobs,
            None => &running.insert(self.start()?).jobs,
        };
        jobs.send(job).map_err(|_| engine_stopped(&self.file))
    }

    fn start(&self) -> Result<WorkerThread, ModelError> {
        let (jobs, queue) = channel();
        let (file, cache) = (self.file.clone(), self.cache_folder.clone());
        let (context_tokens, limit) = (self.context_tokens, self.call_limit);
        let thread = Builder::new()
            .name("embedded-model".to_owned())
            .spawn(move || run_jobs(&file, &cache, context_tokens, limit, &queue))
            .map_err(|error| {
                ModelError::engine(format!("cannot start the engine's thread: {error}"), None)
            })?;
        Ok(WorkerThread { jobs, thread })
    }
}

impl Drop for EngineWorker {
    // llama.cpp must not be running while the process runs its exit handlers. No call is pending,
    // since each borrows the worker, so the thread ends within one batch.
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(WorkerThread { jobs, thread }) = running {
            // Closing the channel ends the loop of the thread.
            drop(jobs);
            // A panic of the thread was already reported as the answer to its job.
            let _ = thread.join();
        }
    }
}

fn run_jobs(
    file: &Path,
    cache_folder: &Path,
    context_tokens: u32,
    limit: Duration,
    queue: &Receiver<EngineJob>,
) {
    // The model is not `Send`, so it is loaded on the thread that uses it.
    let model = engine::load(file);
    let opened = |model| InferenceEngine::new(model, file, cache_folder, context_tokens);
    let mut engine = model.as_ref().map_err(Clone::clone).and_then(opened);
    // A dropped receiver is not an error.
    for job in queue {
        match (job, &mut engine) {
            (EngineJob::Load(answer), Ok(engine)) => drop(answer.send(Ok(engine.context_tokens()))),
            (EngineJob::Load(answer), Err(error)) => drop(answer.send(Err(error.clone()))),
            (EngineJob::Chat(_, _, answer), Err(error)) => drop(answer.send(Err(error.clone()))),
            (EngineJob::Chat(request, cancelled, answer), Ok(engine)) => {
                let name = file.display().to_string();
                let interrupt = CallInterrupt { cancelled, started: Instant::now(), limit, name };
                drop(answer.send(engine.reply(&request, &interrupt)));
            }
        }
    }
}

fn engine_stopped(file: &Path) -> ModelError {
    ModelError::engine(
        format!("the engine of {} stopped unexpectedly", file.display()),
        Some("the file may be damaged: try another one, or an ollama/ model".to_owned()),
    )
}

/// Cancellation flag and time limit of a call, checked between tokens and batches.
pub(super) struct CallInterrupt {
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) started: Instant,
    pub(super) limit: Duration,
    pub(super) name: String,
}

impl CallInterrupt {
    /// Returns an error if the call was cancelled or timed out.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(ModelError::engine("the call was given up".to_owned(), None));
        }
        if self.started.elapsed() > self.limit {
            return Err(ModelError::Timeout {
                endpoint: self.name.clone(),
                phase: TimeoutPhase::Total,
                after: self.limit,
            });
        }
        Ok(())
    }
}

/// Above this number, threads mostly wait for each other on models small enough for a CPU.
const MAX_THREADS: usize = 8;
/// Number of samples of the system load and the pause between them, so that short bursts are
/// ignored.
const SAMPLES: u32 = 3;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(3);

/// Returns the number of threads to use on an idle machine.
pub(super) fn max_threads() -> usize {
    available_parallelism().map_or(1, std::num::NonZero::get).min(MAX_THREADS)
}

/// Returns the number of threads that match the free processors. Keeps `current` if the difference
/// is small. Falls back to [`max_threads`] if the load is unknown.
pub(super) fn available_threads(current: usize) -> usize {
    let mut most_free = None;
    for look in 0..SAMPLES {
        if look > 0 {
            sleep(SAMPLE_INTERVAL);
        }
        let free =
            std::fs::read_to_string("/proc/stat").ok().and_then(|stat| idle_processors(&stat));
        most_free = most_free.max(free);
    }
    choose_threads(most_free, current, max_threads())
}

fn choose_threads(free: Option<usize>, current: usize, all: usize) -> usize {
    let Some(free) = free else { return all };
    let wanted = free.clamp(1, all);
    // Shrinks at once, but grows only to the maximum or by a factor of two.
    let close = wanted >= current && wanted < all && wanted < 2 * current;
    if close { current } else { wanted }
}

/// Returns the number of idle processors from Linux's `/proc/stat`, without counting the calling
/// thread.
fn idle_processors(stat: &str) -> Option<usize> {
    let processors = stat
        .lines()
        .filter_map(|line| line.strip_prefix("cpu"))
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .count();
    let running = stat.lines().find_map(|line| line.strip_prefix("procs_running "))?;
    let others = running.trim().parse::<usize>().ok()?.saturating_sub(1);
    (processors > 0).then(|| processors.saturating_sub(others))
}

static TURN: Mutex<()> = Mutex::new(());

/// An extra handle to the weights file, locked during computation. `None` if it cannot be opened;
/// processes then only slow each other down.
pub(super) struct ComputeLock(Option<File>);

/// The right to compute until dropped.
pub(super) struct ComputeGuard<'a> {
    file: Option<&'a File>,
    _process: MutexGuard<'static, ()>,
}

impl ComputeLock {
    pub(super) fn open(file: &Path) -> Self {
        // On other systems, a lock would keep other processes from reading the file.
        Self(if cfg!(unix) { File::open(file).ok() } else { None })
    }

    /// Waits for a turn, at most one batch of each other model.
    pub(super) fn acquire(&self) -> ComputeGuard<'_> {
        let process = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a lock, processes with the same file only slow each other down.
        let file = self.0.as_ref().filter(|file| file.lock().is_ok());
        ComputeGuard { file, _process: process }
    }
}

impl Drop for ComputeGuard<'_> {
    fn drop(&mut self) {
        // Runs before the fields are dropped, so the file is unlocked before the mutex.
        if let Some(file) = self.file {
            // Closing the file releases the lock anyway.
            let _ = file.unlock();
        }
    }
}

/// Returns an error if instructions are missing.
pub(super) fn check() -> Result<(), ModelError> {
    check_against(&llama::compiled_features(), cpu_supports)
}

fn check_against(wanted: &[&'static str], has: impl Fn(&str) -> bool) -> Result<(), ModelError> {
    let missing: Vec<&str> = wanted.iter().copied().filter(|name| !has(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("the embedded engine needs a processor with {}", missing.join(", "));
    let hint = "use a model server (ollama/NAME, openai/NAME), or build selftest on this machine \
                with RUSTFLAGS=-Ctarget-cpu=native";
    Err(ModelError::engine(what, Some(hint.to_owned())))
}

#[cfg(target_arch = "x86_64")]
fn cpu_supports(name: &str) -> bool {
    match name {
        "SSSE3" => std::is_x86_feature_detected!("ssse3"),
        "AVX" => std::is_x86_feature_detected!("avx"),
        "AVX2" => std::is_x86_feature_detected!("avx2"),
        "FMA" => std::is_x86_feature_detected!("fma"),
        "F16C" => std::is_x86_feature_detected!("f16c"),
        "BMI2" => std::is_x86_feature_detected!("bmi2"),
        "AVX-512" => std::is_x86_feature_detected!("avx512f"),
        _ => true,
    }
}

/// Builds for other architectures target the oldest processors.
#[cfg(not(target_arch = "x86_64"))]
fn cpu_supports(_: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_free_that_no_other_program_uses() {
        let stat =
            |running: u32| format!("cpu  1 2\ncpu0 1\ncpu1 1\nintr 5 0\nprocs_running {running}\n");
        assert_eq!(idle_processors(&stat(1)), Some(2));
        assert_eq!(idle_processors(&stat(2)), Some(1));
        assert_eq!(idle_processors(&stat(9)), Some(0));
        assert_eq!(idle_processors("cpu  1 2\nprocs_running 1\n"), None);
        assert_eq!(idle_processors("nonsense"), None);
    }

    #[test]
    fn threads_follow_the_free_processors() {
        assert_eq!(choose_threads(None, 1, 2), 2);
        assert_eq!(choose_threads(Some(2), 2, 2), 2);
        assert_eq!(choose_threads(Some(1), 2, 2), 1);
        assert_eq!(choose_threads(Some(0), 2, 2), 1);
        assert_eq!(choose_threads(Some(2), 1, 2), 2);
        assert_eq!(choose_threads(Some(9), 4, 8), 8);
        assert_eq!(choose_threads(Some(6), 4, 8), 4, "not worth a change");
        assert_eq!(choose_threads(Some(3), 4, 8), 3);
    }

    #[test]
    fn what_runs_these_tests_has_all_of_it() {
        check().unwrap();
    }

    #[test]
    fn what_is_missing_is_named_with_a_way_out() {
        let error = check_against(&["AVX", "AVX2", "FMA"], |name| name == "AVX").unwrap_err();
        assert_eq!(error.to_string(), "the embedded engine needs a processor with AVX2, FMA");
        assert!(error.hint().unwrap().contains("ollama/NAME"));
    }

    #[cfg(unix)]
    #[test]
    fn a_turn_locks_the_file_until_it_ends() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let other = File::open(file.path()).unwrap();
        let turns = ComputeLock::open(file.path());
        let turn = turns.acquire();
        assert!(other.try_lock().is_err());
        drop(turn);
        other.try_lock().unwrap();
    }
}
