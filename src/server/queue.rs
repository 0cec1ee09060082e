//! Sessions that wait to be graded by a model: a bounded queue in memory. What waits when the
//! server ends is not lost work: it has no grade, and a backfill finds it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::{OnceCell, mpsc};

use super::{GradingQueue, GradingRequest, QueueError};
use crate::grader::quality::QualityGrader;
use crate::store::Store;

/// Sessions that may wait.
const ROOM: usize = 1000;

/// Requests that are remembered: those that wait, and the failed ones.
const REMEMBERED: usize = 2 * ROOM;

/// Finds the model when the first session asks for it, or says why there is none.
pub type FindGrader = dyn Fn() -> BoxFuture<'static, Result<QualityGrader, String>> + Send + Sync;

/// A queue with workers behind it, which end with the runtime.
pub struct GradingWorkers {
    sender: mpsc::Sender<String>,
    requests: Arc<Requests>,
}

/// By session.
#[derive(Default)]
struct Requests(Mutex<HashMap<String, GradingRequest>>);

impl Requests {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, GradingRequest>> {
        // Names and words: whatever a panic elsewhere left is still good.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Worker {
    store: Store,
    find: Box<FindGrader>,
    grader: OnceCell<QualityGrader>,
    requests: Arc<Requests>,
}

impl GradingWorkers {
    /// Grades at most `concurrency` sessions at once, in the runtime that this is called in.
    pub fn start(store: Store, concurrency: usize, find: Box<FindGrader>) -> Self {
        let (sender, receiver) = mpsc::channel::<String>(ROOM);
        let requests: Arc<Requests> = Arc::default();
        let worker = Arc::new(Worker {
            store,
            find,
            grader: OnceCell::new(),
            requests: Arc::clone(&requests),
        });
        let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
        for _ in 0..concurrency.max(1) {
            let (worker, receiver) = (Arc::clone(&worker), Arc::clone(&receiver));
            tokio::spawn(async move {
                loop {
                    let next = receiver.lock().await.recv().await;
                    let Some(session_id) = next else { return };
                    worker.grade(session_id).await;
                }
            });
        }
        Self { sender, requests }
    }
}

impl GradingQueue for GradingWorkers {
    fn enqueue(&self, session_id: &str) -> Result<(), QueueError> {
        let mut requests = self.requests.lock();
        if requests.get(session_id) == Some(&GradingRequest::Waiting) {
            return Err(QueueError::Waiting);
        }
        self.sender.try_send(session_id.to_owned()).map_err(|_| QueueError::Full)?;
        if requests.len() >= REMEMBERED {
            requests.retain(|_, request| *request == GradingRequest::Waiting);
        }
        requests.insert(session_id.to_owned(), GradingRequest::Waiting);
        Ok(())
    }

    fn request(&self, session_id: &str) -> Option<GradingRequest> {
        self.requests.lock().get(session_id).cloned()
    }
}

impl Worker {
    async fn grade(&self, session_id: String) {
        let graded = self.try_grade(&session_id).await;
        let mut requests = self.requests.lock();
        if let Err(why) = graded {
            let why = crate::text::one_line(&why, 400);
            tracing::warn!("no grade for {}: {why}", crate::text::one_line(&session_id, 80));
            requests.insert(session_id, GradingRequest::Failed(why));
        } else {
            requests.remove(&session_id);
        }
    }

    async fn try_grade(&self, session_id: &str) -> Result<(), String> {
        let found = self.store.grade(session_id).await.map_err(|error| error.to_string())?;
        let found = found.ok_or("it has no grade by rules any more")?;
        let grader = self.grader.get_or_try_init(|| (self.find)()).await?;
        let graded = grader.grade(session_id, &found.session_file).await;
        graded.map(drop).map_err(|fault| fault.to_string())
    }
}
