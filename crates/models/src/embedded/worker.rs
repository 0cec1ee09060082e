//! The thread that owns the engine, and its job queue.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::engine::{self, InferenceEngine};
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
