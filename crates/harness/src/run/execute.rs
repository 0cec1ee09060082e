//! Executes a plan: runs cases concurrently up to a limit, cancellable at any point, and retries
//! failures as the gate requires.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::{Either, ready};
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::watch;

use super::case::CaseRun;
use super::delivery::EventSender;
use super::plan::PlannedCase;
use super::runner::{RunLimits, RunSpending, Runner};
use crate::event::{RunEventKind, RunHeader};
use crate::gate::attribution::Anchor;
use crate::gate::finding::GateFinding;
use crate::gate::{BaselineGate, RunGate};
use crate::outcome::case::Interruption;
use crate::outcome::{CaseResult, Rerun, RunEnding, RunOutcome, RunSummary, absolute_outcome};
use crate::sut::namespace::SessionId;
use selftest_models::journaled::for_run;

/// The results of a run.
#[derive(Debug)]
pub struct RunResults {
    /// The cases in the order of the plan.
    pub cases: Vec<Arc<CaseResult>>,
    /// Summary of the cases.
    pub summary: RunSummary,
    /// The outcome.
    pub outcome: RunOutcome,
    /// The comparison with the baseline, if there is one.
    pub gate: Option<Arc<GateFinding>>,
}

/// Options that control how a run proceeds and when it ends.
#[derive(Debug)]
pub struct RunOptions {
    /// The gate.
    pub gate: RunGate,
    /// True if no further case is started after the first failure.
    pub fail_fast: bool,
    /// Limits of the run.
    pub limits: RunLimits,
    /// Cases that finished before the run was interrupted. They are not run again.
    pub recalled: Vec<Arc<CaseResult>>,
    /// Recorded answers of the baseline's run, which are judged again after the last case.
    pub anchors: Vec<PlannedCase>,
    /// Becomes true when the user interrupts. Cases in flight are then closed with the results so
    /// far, and the others are skipped.
    pub cancel: watch::Receiver<bool>,
}

impl RunOptions {
    /// Creates the options of a run that only the user can end early.
    pub fn new(gate: RunGate, cancel: watch::Receiver<bool>) -> Self {
        let (fail_fast, limits, recalled) = (false, RunLimits::default(), Vec::new());
        Self { gate, fail_fast, limits, recalled, anchors: Vec::new(), cancel }
    }

    /// Returns how many of the last cases get their prompts prefetched. Cases with several
    /// sequential calls do not finish together, and slots that finish first would stay empty.
    /// Returns 0 if the run may end early, because an unused prompt would appear in no report.
    fn prefetch_count(&self, cases: usize, concurrency: usize) -> usize {
        // A prompt that is generated ahead is wasted if its case never runs.
        let may_end_early = self.fail_fast || self.limits != RunLimits::default();
        let is_worth_it = concurrency > 1 && cases > concurrency;
        if is_worth_it && !may_end_early { concurrency } else { 0 }
    }
}

/// Runs the plan.
pub async fn execute(
    runner: &Arc<Runner>,
    header: Arc<RunHeader>,
    plan: &[PlannedCase],
    events: &EventSender,
    course: &RunOptions,
) -> RunResults {
    let concurrency = header.config.concurrency.max(1);
    let prices = header.prices.clone().unwrap_or_default();
    let mut run = RunExecution::start(0, runner, header, events, &course.cancel);
    let mut results =
        CaseResults::new(plan, &course.recalled, RunSpending::start(course.limits, prices));
    run.deadline =
        results.spending.deadline().map(|at| (at, results.spending.time_limit_message()));
    run.emit_recalled(&course.recalled);
    let known: BTreeSet<usize> = course.recalled.iter().map(|case| case.index).collect();
    let left: Vec<&PlannedCase> =
        plan.iter().filter(|planned| !known.contains(&planned.index)).collect();
    let mut waiting = &left[..];
    loop {
        // Failures are confirmed before the end is decided, since a retry may clear them.
        if let RunGate::Baseline(gate) = &course.gate {
            run.confirm_failures(gate, concurrency, &mut results, waiting.is_empty()).await;
        }
        if let Some(why) = results.stop_reason(course) {
            results.cases.extend(waiting.iter().map(|planned| run.skip_case(planned, &why)));
            break;
        }
        if waiting.is_empty() {
            break;
        }
        let begun = run.run_cases(waiting, concurrency, course, &mut results).await;
        waiting = &waiting[begun..];
    }
    // A limit reached after the last case had finished does not change the outcome.
    let limit = results.spending.reached_limit(Instant::now());
    let is_short = results.cases.iter().any(|case| case.was_stopped_by_limit());
    let limit = limit.filter(|_| is_short);
    let anchors = run.judge_anchors(&course.anchors, concurrency, &results).await;
    run.finish(results.cases, &course.gate, &anchors, limit)
}

/// The finished cases of a run.
struct CaseResults<'a> {
    plan: &'a [PlannedCase],
    cases: Vec<Arc<CaseResult>>,
    spending: RunSpending,
    /// Number of retried trials.
    again: usize,
}

impl<'a> CaseResults<'a> {
    fn new(
        plan: &'a [PlannedCase],
        recalled: &[Arc<CaseResult>],
        mut spending: RunSpending,
    ) -> Self {
        // What a run had spent before it was interrupted counts against the same limits: otherwise
        // each resumption would get the whole budget again.
        for case in recalled {
            spending.add(case);
        }
        let again = recalled.iter().map(|case| case.reruns.len()).sum();
        Self { plan, cases: recalled.to_vec(), spending, again }
    }

    fn add(&mut self, case: Arc<CaseResult>) {
        self.spending.add(&case);
        self.cases.push(case);
    }

    /// Returns the reason why no further case is started, if any.
    fn stop_reason(&self, course: &RunOptions) -> Option<Interruption> {
        let failure = self.cases.iter().find(|case| course.gate.is_settled_miss(case));
        if let Some(case) = failure.filter(|_| course.fail_fast) {
            let why = format!("{} failed, and --fail-fast ends the run there", case.name());
            return Some(Interruption::NotBegun(why));
        }
        self.spending.reached_limit(Instant::now()).map(Interruption::LimitReached)
    }

    /// Plans another trial of a case, with the same prompt but its own sampling seeds.
    fn plan_retry(&mut self, case: &CaseResult) -> Option<PlannedCase> {
        let planned = self.plan.iter().find(|planned| planned.index == case.index)?;
        let last = self.plan.iter().map(|planned| planned.index).max()?;
        self.again += 1;
        // Seeds derive from the index, so a fresh index gives fresh samples.
        Some(PlannedCase { index: last + self.again, frozen: case.case.clone(), ..planned.clone() })
    }
}

/// A unit of work that occupies a slot.
#[derive(Debug, PartialEq)]
enum RunJob<'a, Case> {
    /// Generates the prompt of a case.
    Prefetch(&'a Case),
    /// Runs a case.
    Run(&'a Case),
}

/// Returns the jobs of a run; the prompts of the last `prepared` cases are generated before they
/// start.
fn jobs<Case>(plan: &[Case], prepared: usize) -> impl Iterator<Item = RunJob<'_, Case>> {
    let (first, last) = plan.split_at(plan.len().saturating_sub(prepared));
    let prepares = last.iter().map(RunJob::Prefetch);
    first.iter().map(RunJob::Run).chain(prepares).chain(last.iter().map(RunJob::Run))
}

/// A run in progress.
pub(super) struct RunExecution<'a> {
    runner: &'a Arc<Runner>,
    header: Arc<RunHeader>,
    events: &'a EventSender,
    cancel: &'a watch::Receiver<bool>,
    /// Time at which cases in flight are closed, with the reason.
    deadline: Option<(Instant, String)>,
    /// Number of this run among those that share its models.
    number: usize,
}

impl<'a> RunExecution<'a> {
    /// Starts a run. `number` distinguishes it from others that share its models; see [`for_run`].
    pub(super) fn start(
        number: usize,
        runner: &'a Arc<Runner>,
        header: Arc<RunHeader>,
        events: &'a EventSender,
        cancel: &'a watch::Receiver<bool>,
    ) -> Self {
        events.emit(RunEventKind::RunStarted(Arc::clone(&header)));
        Self { runner, header, events, cancel, deadline: None, number }
    }

    /// Returns the run with a time at which cases in flight are closed, and the reason.
    pub(super) fn with_deadline(self, deadline: Option<(Instant, String)>) -> Self {
        Self { deadline, ..self }
    }

    /// Reports the cases that finished before the run was interrupted.
    pub(super) fn emit_recalled(&self, cases: &[Arc<CaseResult>]) {
        if !cases.is_empty() {
            self.events.emit(RunEventKind::CasesRecalled(cases.to_vec().into()));
        }
    }

    /// Starts a case. The returned future waits for it to finish.
    pub(super) fn start_case(
        &self,
        planned: &PlannedCase,
    ) -> impl Future<Output = Arc<CaseResult>> + use<> {
        let events = self.events.clone();
        let case = match &planned.reused_result {
            Some(former) => Either::Left(ready(Arc::clone(former))),
            None => Either::Right(self.start_trial(planned).map(Arc::new)),
        };
        case.map(move |case| {
            events.emit(RunEventKind::CaseFinished(Arc::clone(&case)));
            case
        })
    }

    /// Starts a case without emitting its result.
    fn start_trial(&self, planned: &PlannedCase) -> impl Future<Output = CaseResult> + use<> {
        let (play, cancel) = (self.new_case_run(planned), self.cancel.clone());
        let case = run_case(play, cancel, self.deadline.clone());
        // A task of its own, so that cases run on all threads and not only as the stream below is
        // polled.
        let running = tokio::spawn(for_run(self.number, case));
        // A panic in a case is a bug and is propagated.
        running.map(|end| end.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())))
    }

    fn new_case_run(&self, planned: &PlannedCase) -> CaseRun {
        let (runner, group) = (Arc::clone(self.runner), self.header.task_group_id.clone());
        let session = SessionId::within(&self.header.run_id);
        CaseRun::new(runner, self.events.clone(), planned.clone(), group, session)
    }

    /// Records a case that is not started.
    pub(super) fn skip_case(&self, planned: &PlannedCase, why: &Interruption) -> Arc<CaseResult> {
        let case = Arc::new(self.new_case_run(planned).not_started(why.clone()));
        self.events.emit(RunEventKind::CaseFinished(Arc::clone(&case)));
        case
    }

    /// Runs cases until all have finished, a failure stops the run, or a limit is reached. Returns
    /// the number of cases started.
    async fn run_cases(
        &self,
        plan: &[&PlannedCase],
        concurrency: usize,
        course: &RunOptions,
        results: &mut CaseResults<'_>,
    ) -> usize {
        let stop = AtomicBool::new(false);
        let before = results.cases.len();
        // The stream pulls jobs lazily, so that none starts once `stop` is set.
        let jobs = jobs(plan, course.prefetch_count(plan.len(), concurrency));
        let cases = jobs.map_while(|job| {
            (!stop.load(Ordering::Relaxed)).then(|| match job {
                RunJob::Prefetch(planned) => {
                    Either::Left(self.prefetch_prompt(planned).map(|()| None))
                }
                RunJob::Run(planned) => Either::Right(self.start_case(planned).map(Some)),
            })
        });
        // Unordered: a slow case would otherwise keep finished ones, and the slots behind them,
        // waiting.
        let mut cases = stream::iter(cases).buffer_unordered(concurrency);
        while let Some(case) = cases.next().await {
            let Some(case) = case else { continue };
            // Whether the failure stands is known only after its retries; until then nothing new
            // starts.
            let is_miss = course.fail_fast && course.gate.is_miss(&case);
            results.add(case);
            // Cases in flight still finish. Their answers are paid for already.
            if is_miss || results.spending.reached_limit(Instant::now()).is_some() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        results.cases.len() - before
    }

    /// Generates the prompt of a case that needs one, unless the run is stopping.
    fn prefetch_prompt(&self, planned: &PlannedCase) -> impl Future<Output = ()> + use<> {
        let is_given = planned.frozen.is_some()
            || planned.recorded.is_some()
            || planned.reused_result.is_some()
            || self.runner.prefetch.has(planned.index);
        let Some(generator) = self.runner.generator.as_ref().filter(|_| !is_given) else {
            return Either::Left(ready(()));
        };
        if *self.cancel.borrow() || self.runner.outages.first().is_some() {
            return Either::Left(ready(()));
        }
        let Runner { prefetch: ahead, library, seed, .. } = &**self.runner;
        let making = ahead.start_one(generator, library, *seed, planned, self.number);
        let mut cancel = self.cancel.clone();
        Either::Right(async move {
            tokio::select! {
                biased;
                // The prompt in the making is dropped: a run that was cancelled ends at once.
                Ok(_) = cancel.wait_for(|cancelled| *cancelled) => {}
                () = making => {}
            }
        })
    }

    /// Retries failures, and then whole rounds, until the gate can decide. Each case records its
    /// further trials.
    async fn confirm_failures(
        &self,
        gate: &BaselineGate,
        concurrency: usize,
        results: &mut CaseResults<'_>,
        all_ran: bool,
    ) {
        while !*self.cancel.borrow()
            && self.runner.outages.first().is_none()
            && results.spending.reached_limit(Instant::now()).is_none()
        {
            let all: Vec<&CaseResult> = results.cases.iter().map(|case| &**case).collect();
            // Asked again after each round: a retry may leave a case open or open another one.
            let ids: BTreeSet<String> = gate.to_confirm(&all, all_ran).into_iter().collect();
            let mut positions: Vec<(usize, PlannedCase)> = Vec::new();
            for id in &ids {
                // The first failed repeat of a case collects its retries, else the first one.
                let of_case = |case: &Arc<CaseResult>| case.scenario.id == *id;
                let failed = |case: &Arc<CaseResult>| {
                    of_case(case) && case.first_status().0.pass() == Some(false)
                };
                let position = results.cases.iter().position(failed);
                let position = position.or_else(|| results.cases.iter().position(of_case));
                let Some(position) = position else { continue };
                let case = Arc::clone(&results.cases[position]);
                positions.extend(results.plan_retry(&case).map(|planned| (position, planned)));
            }
            if positions.is_empty() {
                return;
            }
            let trials = positions.iter().map(|(position, planned)| {
                let position = *position;
                self.start_trial(planned).map(move |case| (position, case))
            });
            let mut trials = stream::iter(trials).buffer_unordered(concurrency);
            while let Some((position, again)) = trials.next().await {
                results.spending.add(&again);
                // Observers may still hold the result, which is then cloned.
                let case = Arc::make_mut(&mut results.cases[position]);
                case.reruns.push(Rerun::from(again));
                let case = Arc::clone(&results.cases[position]);
                self.events.emit(RunEventKind::CaseRunAgain(case));
            }
        }
    }

    /// Judges the anchors again. Returns those that have a score then and now; none if the run ends
    /// early, because the verdicts of its cases are then worth more than the comparison.
    async fn judge_anchors(
        &self,
        anchors: &[PlannedCase],
        concurrency: usize,
        results: &CaseResults<'_>,
    ) -> Vec<Anchor> {
        let is_over = *self.cancel.borrow()
            || self.runner.outages.first().is_some()
            || results.spending.reached_limit(Instant::now()).is_some();
        if is_over || self.runner.judge.is_none() {
            return Vec::new();
        }
        // Behind the indices of all cases and retries, from which seeds derive.
        let last = results.plan.iter().map(|planned| planned.index).max().unwrap_or_default();
        let trials = anchors
            .iter()
            .zip(last + results.again + 1..)
            .map(|(planned, index)| self.start_trial(&PlannedCase { index, ..planned.clone() }));
        // In order, unlike the cases: anchors are compared pair by pair, and reports list them
        // alike in each run.
        let trials = stream::iter(trials).buffered(concurrency);
        trials.filter_map(|case| ready(Anchor::of(&case))).collect().await
    }

    /// Sums up the run. `anchors` are the judged anchors of the gate's baseline. `limit` is the limit that kept cases from being run.
    pub(super) fn finish(
        self,
        mut results: Vec<Arc<CaseResult>>,
        rule: &RunGate,
        anchors: &[Anchor],
        limit: Option<String>,
    ) -> RunResults {
        let (runner, events) = (self.runner, self.events);
        // The report lists cases in the order of the plan, whatever order they finished in.
        results.sort_by_key(|case| case.index);
        let mut summary = RunSummary::default();
        for case in &results {
            summary.add(case);
        }
        // Ctrl-C explains what is missing better than a limit, and a limit better than an outage.
        let ending = match (*self.cancel.borrow(), &limit) {
            (true, _) => RunEnding::Interrupted,
            (false, Some(_)) => RunEnding::LimitReached,
            (false, None) if runner.outages.first().is_some() => RunEnding::ServerLost,
            (false, None) => RunEnding::Complete,
        };
        let finding = match rule {
            RunGate::Absolute => None,
            RunGate::Baseline(gate) => {
                Some(Arc::new(gate.finding(results.iter().map(|case| &**case), anchors)))
            }
        };
        let outcome = match &finding {
            None => absolute_outcome(&summary, ending),
            Some(finding) => finding.outcome(&summary, ending),
        };
        if let Some(why) = runner.outages.first().or(limit) {
            events.emit(RunEventKind::Warning(format!("the run ended early: {why}")));
        }
        // Hashing the project blocks the thread.
        let changed_files = runner.watch.as_ref().map_or_else(Vec::new, |watch| {
            tokio::task::block_in_place(|| watch.detect_changes().1)
        });
        if !changed_files.is_empty() && !runner.sut.can_reach_project() {
            events.emit(RunEventKind::Warning(format!(
                "files of the project changed during the run, though the system under test \
                 cannot reach them: {}",
                changed_files.join(", ")
            )));
        }
        events.emit(RunEventKind::RunFinished {
            summary: summary.clone(),
            outcome,
            // A clock that was set back must not make a run end before it started.
            at: selftest_clock::now().max(self.header.started_at),
            changed_files,
            gate: finding.clone(),
        });
        RunResults { cases: results, summary, outcome, gate: finding }
    }
}

async fn run_case(
    mut play: CaseRun,
    mut cancel: watch::Receiver<bool>,
    deadline: Option<(Instant, String)>,
) -> CaseResult {
    let (at, why) = deadline.unzip();
    let out_of_time = async {
        match at {
            Some(at) => tokio::time::sleep_until(at.into()).await,
            None => std::future::pending().await,
        }
    };
    let cut = tokio::select! {
        // Cancellation takes precedence over a limit, and a limit over a result.
        biased;
        // An error means that the sender is gone and the run cannot be cancelled any more.
        Ok(_) = cancel.wait_for(|cancelled| *cancelled) => Some(Interruption::Cancelled),
        () = out_of_time => why.map(Interruption::LimitReached),
        () = play.run() => None,
    };
    play.finish(cut).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cases_are_prepared_before_they_begin() {
        use RunJob::{Prefetch, Run};
        let found: Vec<_> = jobs(&[0, 1, 2, 3], 2).collect();
        assert_eq!(found, [Run(&0), Run(&1), Prefetch(&2), Prefetch(&3), Run(&2), Run(&3)]);
        assert_eq!(jobs(&[0, 1], 0).collect::<Vec<_>>(), [Run(&0), Run(&1)]);
        assert_eq!(jobs(&[0], 4).collect::<Vec<_>>(), [Prefetch(&0), Run(&0)]);
    }
}
