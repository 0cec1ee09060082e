//! What all cases of a run share: models, system under test, templates, the watched project folder,
//! prefetched prompts, and the limits of time, tokens and money.
//!
//! Prompts are prefetched before their cases start. While models are being checked, models that need no
//! check already generate; at the end of a run, no slot has to wait for a prompt. A run that reaches a
//! limit ends in an orderly way, and the remaining cases are not run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::plan::{PlannedCase, SeedPurpose, derive_seed};
use crate::judge::panel::JudgePanel;
use crate::outcome::CaseResult;
use crate::outcome::usage::{ModelPrices, UsageByRole};
use crate::scenario::generate::{GenerationAttempt, GenerationOutput, Generator, GeneratorError};
use crate::sut::SystemUnderTest;
use crate::sut::command::CommandRunner;
use crate::sut::project::ProjectSnapshot;
use selftest_models::guarded::Outages;
use selftest_models::journaled::for_run;
use selftest_models::prompts::PromptLibrary;
use selftest_text::redact::Redactor;

/// Resources that all cases of a run share.
pub struct Runner {
    /// Writes prompts. Absent if all cases are frozen.
    pub generator: Option<Arc<Generator>>,
    /// Prompts that are being prefetched.
    pub prefetch: PromptPrefetch,
    /// Judges answers. Absent if checks alone decide.
    pub judge: Option<Arc<JudgePanel>>,
    /// The system under test.
    pub sut: Arc<dyn SystemUnderTest>,
    /// All templates, loaded.
    pub library: Arc<PromptLibrary>,
    /// Runs the commands of checks.
    pub commands: Arc<CommandRunner>,
    /// Removes secrets from the output of the system under test.
    pub redactor: Arc<Redactor>,
    /// The model servers that were given up. Once one is, no further case is started.
    pub outages: Arc<Outages>,
    /// Seed of the run.
    pub seed: u64,
    /// Detects changes of the project folder. Absent if nothing in the run could change it.
    pub watch: Option<Arc<ProjectWatch>>,
}

/// The project folder with its first and latest snapshots.
pub struct ProjectWatch {
    first: Arc<ProjectSnapshot>,
    latest: Mutex<Arc<ProjectSnapshot>>,
}

impl ProjectWatch {
    /// Takes the first snapshot of the folder. `excluded` are the report folders.
    pub fn new(root: &Path, excluded: &[PathBuf]) -> Self {
        let first = Arc::new(ProjectSnapshot::take(root, excluded));
        let latest = Mutex::new(Arc::clone(&first));
        Self { first, latest }
    }

    /// Returns the changes since the last call, and since the start.
    pub(super) fn detect_changes(&self) -> (Vec<String>, Vec<String>) {
        // Held during the scan: two cases that finish together must not both report one change.
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Arc::new(latest.refresh());
        let changes = (now.changes_since(&latest), now.changes_since(&self.first));
        *latest = now;
        changes
    }
}

impl Runner {
    /// Returns the same resources with another system under test.
    #[must_use]
    pub fn with_sut(&self, sut: Arc<dyn SystemUnderTest>) -> Self {
        Self {
            generator: None,
            prefetch: PromptPrefetch::default(),
            judge: self.judge.clone(),
            sut,
            library: Arc::clone(&self.library),
            commands: Arc::clone(&self.commands),
            redactor: Arc::clone(&self.redactor),
            outages: Arc::clone(&self.outages),
            seed: self.seed,
            watch: self.watch.clone(),
        }
    }

    /// Returns the files that changed since the last snapshot, if the system under test can reach
    /// the project.
    pub(super) fn project_changes(&self) -> Vec<String> {
        match &self.watch {
            Some(watch) if self.sut.can_reach_project() => {
                tokio::task::block_in_place(|| watch.detect_changes().0)
            }
            _ => Vec::new(),
        }
    }
}

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
        // The task's handle stays in the map for `take`, so that its end is signalled separately.
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

/// Limits of a run. An absent limit does not apply.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunLimits {
    /// Maximum duration. Cases in flight are closed when it is over.
    pub duration: Option<Duration>,
    /// Maximum number of input and output tokens over all models that count them. Cases in flight
    /// finish.
    pub tokens: Option<u64>,
    /// Maximum cost by the configured prices. Cases in flight finish.
    pub cost: Option<f64>,
}

/// Resources spent by a run, with its limits.
#[derive(Debug)]
pub(super) struct RunSpending {
    limits: RunLimits,
    prices: ModelPrices,
    deadline: Option<Instant>,
    tokens: u64,
    cost: f64,
}

impl RunSpending {
    /// Starts counting now.
    pub(super) fn start(limits: RunLimits, prices: ModelPrices) -> Self {
        // A duration beyond the range of the clock is no limit.
        let deadline = limits.duration.and_then(|limit| Instant::now().checked_add(limit));
        Self { limits, prices, deadline, tokens: 0, cost: 0.0 }
    }

    /// Returns the time at which the run has to end.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Counts the usage of a trial.
    pub(super) fn add(&mut self, case: &CaseResult) {
        let used = UsageByRole::of(case, &self.prices).total;
        let tokens = used.prompt_tokens.saturating_add(used.completion_tokens);
        // Programs that state only a sum count as well: a limit that overlooks the agent's own
        // tokens would not be one.
        self.tokens = self.tokens.saturating_add(tokens).saturating_add(used.undivided_tokens);
        self.cost += used.cost.unwrap_or(0.0);
    }

    /// Returns a description of the limit that is reached.
    pub(super) fn reached_limit(&self, now: Instant) -> Option<String> {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Some(self.time_limit_message());
        }
        let RunLimits { tokens, cost, .. } = self.limits;
        if let Some(limit) = tokens.filter(|limit| self.tokens >= *limit) {
            return Some(format!("--max-tokens {limit} was reached ({} used)", self.tokens));
        }
        // Tested after each trial and not before each call, so that the cases in flight can exceed
        // it.
        let limit = cost.filter(|limit| self.cost >= *limit)?;
        let (cost, currency) = (self.cost, &self.prices.currency);
        Some(format!("--max-cost {limit} was reached ({cost:.4} {currency} used)"))
    }

    /// Returns a description of the time limit.
    pub(super) fn time_limit_message(&self) -> String {
        let seconds = self.limits.duration.unwrap_or_default().as_secs_f64();
        format!("--max-duration {seconds} s was reached")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn reached(limits: RunLimits, after: Duration) -> Option<String> {
        let cases = fixtures::rich_cases();
        let prices = fixtures::header(&cases).prices.unwrap();
        let mut spending = RunSpending::start(limits, prices);
        for case in &cases {
            spending.add(case);
        }
        spending.reached_limit(Instant::now() + after)
    }

    #[test]
    fn each_limit_is_said_by_its_flag() {
        let none = RunLimits::default();
        assert_eq!(reached(none, Duration::from_hours(1000)), None);
        let time = RunLimits { duration: Some(Duration::from_secs(90)), ..none };
        assert_eq!(reached(time, Duration::ZERO), None);
        assert_eq!(
            reached(time, Duration::from_mins(2)).unwrap(),
            "--max-duration 90 s was reached"
        );
        let tokens = |limit| reached(RunLimits { tokens: Some(limit), ..none }, Duration::ZERO);
        assert_eq!(tokens(100_000_000), None);
        assert!(tokens(1).unwrap().starts_with("--max-tokens 1 was reached ("));
        let cost = |limit| reached(RunLimits { cost: Some(limit), ..none }, Duration::ZERO);
        assert_eq!(cost(1e6), None);
        let words = cost(0.0).unwrap();
        assert!(
            words.starts_with("--max-cost 0 was reached (") && words.contains("EUR"),
            "{words}"
        );
    }
}
