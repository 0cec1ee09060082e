//! Prefetches prompts before their cases start. While models are being checked, models that need no
//! check already generate; at the end of a run, no slot has to wait for a prompt.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::plan::PlannedCase;
use super::seed::{SeedPurpose, derive_seed};
use crate::scenario::generate::{GenerationAttempt, GenerationOutput, Generator, GeneratorError};
use selftest_models::journaled::for_run;
use selftest_models::prompts::PromptLibrary;

/// Result of generating a case.
pub(super) struct CaseGeneration {
    pub(super) attempts: Vec<GenerationAttempt>,
    /// Rejected prompts: number of the attempt, and the reason.
    pub(super) rejected: Vec<(u32, String)>,
    pub(super) result: Result<GenerationOutput, GeneratorError>,
    /// Time spent generating.
    pub(super) duration: Duration,
}

/// Cases being generated, by position.
#[derive(Default)]
pub struct PromptPrefetch(Mutex<HashMap<usize, JoinHandle<CaseGeneration>>>);

impl PromptPrefetch {
    /// Starts generating these cases exactly as the run would.
    pub fn start<'a>(
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

    /// Starts generating one more case for the run with this number. The future completes when it
    /// is done.
    pub(super) fn start_one(
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
            // The receiver is gone if the run was stopped.
            let _ = told.send(());
            generated
        };
        let begun = tokio::spawn(for_run(run, making));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(index, begun);
        is_made.map(drop)
    }

    /// Returns true if the case at this position was started and not taken yet.
    pub(super) fn has(&self, index: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&index)
    }

    /// Waits for the case at this position, if it was started. Each case can be taken once.
    pub(super) async fn take(&self, index: usize) -> Option<CaseGeneration> {
        let begun = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&index)?;
        // A panic in a case is a bug and is propagated.
        Some(begun.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())))
    }
}

/// Generates one case.
async fn generate(
    generator: &Generator,
    library: &PromptLibrary,
    planned: &PlannedCase,
    run_seed: u64,
) -> CaseGeneration {
    let begun = Instant::now();
    let (mut attempts, rejected) = (Vec::new(), Mutex::new(Vec::new()));
    let seed = |number| derive_seed(run_seed, planned.index, SeedPurpose::Generate, number);
    let on_rejected = |number, why: &str| {
        rejected.lock().unwrap_or_else(PoisonError::into_inner).push((number, why.to_owned()));
    };
    let grounds = &planned.grounds;
    let made = generator
        .generate(library, &planned.scenario, grounds, &mut attempts, seed, on_rejected)
        .await;
    let rejected = rejected.into_inner().unwrap_or_else(PoisonError::into_inner);
    CaseGeneration { attempts, rejected, result: made, duration: begun.elapsed() }
}
