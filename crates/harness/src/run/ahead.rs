//! Prompts that are made before their cases begin: while models are being checked, those that need no
//! check can work already, and at the end of a run no place in flight need wait for a prompt.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::plan::PlannedCase;
use super::seed::{Purpose, derive};
use crate::scenario::generate::{GenerationAttempt, Generator, Made};
use selftest_models::journaled::for_run;
use selftest_models::prompts::PromptLibrary;

/// Result of generating a case.
pub(super) struct Generated {
    pub(super) attempts: Vec<GenerationAttempt>,
    /// Prompts that were not used: number of the try, and why.
    pub(super) rejected: Vec<(u32, String)>,
    pub(super) made: Result<Made, String>,
    /// How long it took.
    pub(super) took: Duration,
}

/// Cases in the making, by their positions.
#[derive(Default)]
pub struct Ahead(Mutex<HashMap<usize, JoinHandle<Generated>>>);

impl Ahead {
    /// Begins with these cases, as they would be made in the run.
    pub fn begin<'a>(
        generator: &Arc<Generator>,
        library: &Arc<PromptLibrary>,
        seed: u64,
        cases: impl Iterator<Item = &'a PlannedCase>,
    ) -> Self {
        let begun = cases.map(|planned| {
            let (generator, library) = (Arc::clone(generator), Arc::clone(library));
            let (index, planned) = (planned.index, planned.clone());
            let making = async move { generate(&generator, &library, &planned, seed).await };
            (index, tokio::spawn(making))
        });
        Self(Mutex::new(begun.collect()))
    }

    /// Begins with one more case, for the run of that number. Ends when it is made.
    pub(super) fn add(
        &self,
        generator: &Arc<Generator>,
        library: &Arc<PromptLibrary>,
        seed: u64,
        planned: &PlannedCase,
        run: usize,
    ) -> impl Future<Output = ()> + use<> {
        let (told, is_made) = oneshot::channel();
        let (generator, library) = (Arc::clone(generator), Arc::clone(library));
        let (index, planned) = (planned.index, planned.clone());
        let making = async move {
            let generated = generate(&generator, &library, &planned, seed).await;
            // Nobody waits any more where the run was ended.
            let _ = told.send(());
            generated
        };
        let begun = tokio::spawn(for_run(run, making));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(index, begun);
        is_made.map(drop)
    }

    /// Whether the case at this position was begun and not handed out.
    pub(super) fn has(&self, index: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&index)
    }

    /// The case at this position, if it was begun; it is handed out once.
    pub(super) async fn take(&self, index: usize) -> Option<Generated> {
        let begun = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&index)?;
        // A panic in a case is a bug, and goes on as one.
        Some(begun.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())))
    }
}

/// Makes one case.
async fn generate(
    generator: &Generator,
    library: &PromptLibrary,
    planned: &PlannedCase,
    run_seed: u64,
) -> Generated {
    let begun = Instant::now();
    let (mut attempts, rejected) = (Vec::new(), Mutex::new(Vec::new()));
    let seed = |number| derive(run_seed, planned.index, Purpose::Generate, number);
    let on_rejected = |number, why: &str| {
        rejected.lock().unwrap_or_else(PoisonError::into_inner).push((number, why.to_owned()));
    };
    let grounds = &planned.grounds;
    let made = generator
        .generate(library, &planned.scenario, grounds, &mut attempts, seed, on_rejected)
        .await;
    let rejected = rejected.into_inner().unwrap_or_else(PoisonError::into_inner);
    Generated { attempts, rejected, made, took: begun.elapsed() }
}
