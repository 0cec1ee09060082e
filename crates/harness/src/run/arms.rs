//! Executes the arms of an experiment, with their trials interleaved at random, so that no arm is always
//! first and changes over time favour none.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::stream::StreamExt as _;
use futures_util::{FutureExt as _, stream};
use tokio::sync::watch;

use super::delivery::EventSender;
use super::execute::{RunExecution, RunResults};
use super::plan::PlannedCase;
use super::runner::{RunLimits, RunSpending, Runner};
use crate::event::RunHeader;
use crate::gate::RunGate;
use crate::outcome::CaseResult;
use crate::outcome::case::Interruption;
use crate::scenario::mix;

/// One arm of an experiment.
pub struct ArmRun {
    /// Resources shared by its cases.
    pub runner: Arc<Runner>,
    /// Facts that are known before the first case.
    pub header: Arc<RunHeader>,
    /// Receives its events.
    pub events: EventSender,
    /// Cases that finished before the experiment was interrupted. They are not run again.
    pub recalled: Vec<Arc<CaseResult>>,
    /// Its trials.
    pub plan: Vec<PlannedCase>,
}

/// A trial in the order of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArmTrial {
    /// Position of the arm.
    pub arm: usize,
    /// Position in the plan of that arm.
    pub position: usize,
}

/// Runs the trials of all arms in this order, within limits that all arms share. The number of an
/// arm in the call log of its models is its position. For `cancel` see [`super::execute::execute`].
pub async fn execute_arms(
    arms: &[ArmRun],
    order: &[ArmTrial],
    limits: RunLimits,
    cancel: watch::Receiver<bool>,
) -> Vec<RunResults> {
    let Some(first) = arms.first() else { return Vec::new() };
    let at_once = first.header.config.concurrency.max(1);
    let mut spending = RunSpending::start(limits, first.header.prices.clone().unwrap_or_default());
    let deadline = spending.deadline().map(|at| (at, spending.time_limit_message()));
    let runs: Vec<RunExecution<'_>> = arms
        .iter()
        .enumerate()
        .map(|(number, ArmRun { runner, header, events, recalled, .. })| {
            let run = RunExecution::start(number, runner, Arc::clone(header), events, &cancel)
                .with_deadline(deadline.clone());
            run.emit_recalled(recalled);
            run
        })
        .collect();
    let mut results: Vec<Vec<Arc<CaseResult>>> =
        arms.iter().map(|arm| arm.recalled.clone()).collect();
    // What the experiment spent before it was interrupted counts against the same limits.
    for case in results.iter().flatten() {
        spending.add(case);
    }
    let known: Vec<BTreeSet<usize>> =
        arms.iter().map(|arm| arm.recalled.iter().map(|case| case.index).collect()).collect();
    // A resumed experiment skips finished trials but keeps the order of the others.
    let waiting: Vec<(usize, &PlannedCase)> = order
        .iter()
        .filter_map(|trial| Some((trial.arm, arms.get(trial.arm)?.plan.get(trial.position)?)))
        .filter(|(arm, planned)| !known[*arm].contains(&planned.index))
        .collect();
    let stop = AtomicBool::new(spending.reached_limit(Instant::now()).is_some());
    let mut begun = 0;
    // Trials start lazily in the given order, and none does once a limit is reached.
    let trials = (0..waiting.len()).map_while(|at| {
        let goes_on = !stop.load(Ordering::Relaxed);
        let (arm, planned) = waiting[at];
        goes_on.then(|| runs[arm].start_case(planned).map(move |case| (arm, case)))
    });
    let mut trials = stream::iter(trials).buffer_unordered(at_once);
    while let Some((arm, case)) = trials.next().await {
        begun += 1;
        spending.add(&case);
        results[arm].push(case);
        if spending.reached_limit(Instant::now()).is_some() {
            stop.store(true, Ordering::Relaxed);
        }
    }
    // The stream borrows `runs`, which are consumed below.
    drop(trials);
    let limit = spending.reached_limit(Instant::now());
    if let Some(why) = &limit {
        for &(arm, planned) in &waiting[begun..] {
            let why = Interruption::LimitReached(why.clone());
            results[arm].push(runs[arm].skip_case(planned, &why));
        }
    }
    let finish = |(run, results): (RunExecution<'_>, Vec<Arc<CaseResult>>)| {
        // An arm all of whose trials ran is complete, even if the limit stopped another one.
        let is_short = results.iter().any(|case| case.was_stopped_by_limit());
        run.finish(results, &RunGate::Absolute, &[], limit.clone().filter(|_| is_short))
    };
    runs.into_iter().zip(results).map(finish).collect()
}

/// One trial of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrialSlot {
    /// Position of the case, from 0.
    pub case: usize,
    /// Number of the repeat, from 1.
    pub repeat: u32,
    /// Position of the arm, from 0.
    pub arm: usize,
}

impl TrialSlot {
    /// Returns the trial's index in a plan of `cases` cases that is repeated in rounds.
    pub fn position(&self, cases: usize) -> usize {
        (self.repeat.saturating_sub(1) as usize).saturating_mul(cases).saturating_add(self.case)
    }
}

/// Returns the order of all trials: in each round, every case once in every arm, in a fresh random
/// order. The trials of a case are adjacent. Each arm comes first in an equal share of a round's
/// cases; the shares are drawn anew each round. The same seed gives the same order.
pub fn interleave(cases: usize, repeats: u32, arms: usize, seed: u64) -> Vec<TrialSlot> {
    if arms == 0 {
        return Vec::new();
    }
    let mut random = ShuffleRng(seed);
    // Where the cases cannot be shared equally, decides which arm leads in one more.
    let coin = random.below(arms);
    let mut slots = Vec::with_capacity(cases.saturating_mul(repeats as usize).saturating_mul(arms));
    for (round, repeat) in (1..=repeats).enumerate() {
        let mut order: Vec<usize> = (0..cases).collect();
        random.shuffle(&mut order);
        // Which arm is first is shuffled independently of the position in the round.
        let mut firsts: Vec<usize> = (0..cases).map(|at| (at + round + coin) % arms).collect();
        random.shuffle(&mut firsts);
        for (case, first) in order.into_iter().zip(firsts) {
            let turned = (0..arms).map(|place| (first + place) % arms);
            slots.extend(turned.map(|arm| TrialSlot { case, repeat, arm }));
        }
    }
    slots
}

struct ShuffleRng(u64);

impl ShuffleRng {
    fn below(&mut self, limit: usize) -> usize {
        // The increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let wide = u128::from(mix(self.0)) * limit as u128;
        // The high half of the product distributes values evenly, up to a bias of limit / 2^64.
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// Fisher–Yates shuffle.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_case_alternates() {
        for seed in 0..20 {
            let slots = interleave(1, 4, 2, seed);
            let firsts: Vec<usize> = slots.chunks(2).map(|pair| pair[0].arm).collect();
            assert!(firsts.windows(2).all(|pair| pair[0] != pair[1]), "{firsts:?}");
        }
        for arms in [2, 3] {
            let firsts: HashSet<usize> =
                (0..40).map(|seed| interleave(1, 1, arms, seed)[0].arm).collect();
            assert_eq!(firsts.len(), arms);
        }
        assert_eq!(interleave(0, 5, 2, 1), []);
        assert_eq!(interleave(5, 5, 0, 1), []);
    }

    #[test]
    fn every_case_is_first_and_last_at_some_time() {
        let firsts: HashSet<usize> =
            (0..200).map(|seed| interleave(5, 1, 2, seed)[0].case).collect();
        let lasts: HashSet<usize> =
            (0..200).map(|seed| interleave(5, 1, 2, seed)[9].case).collect();
        assert_eq!((firsts.len(), lasts.len()), (5, 5));
        assert_ne!(interleave(20, 1, 2, 1), interleave(20, 1, 2, 2));
    }

    proptest! {
        #[test]
        fn each_trial_once_and_no_arm_favoured(
            cases in 1..30_usize,
            repeats in 1..6_u32,
            arms in 1..5_usize,
            seed: u64,
        ) {
            let slots = interleave(cases, repeats, arms, seed);
            prop_assert_eq!(&slots, &interleave(cases, repeats, arms, seed));
            prop_assert_eq!(slots.len(), arms * cases * repeats as usize);
            let distinct: HashSet<TrialSlot> = slots.iter().copied().collect();
            prop_assert_eq!(distinct.len(), slots.len());
            for round in slots.chunks(arms * cases) {
                prop_assert!(round.iter().all(|slot| slot.repeat == round[0].repeat));
                let groups = round.chunks(arms);
                prop_assert!(groups.clone().all(|group| group.iter().all(|s| s.case == group[0].case)));
                let firsts: Vec<usize> = (0..arms)
                    .map(|arm| groups.clone().filter(|group| group[0].arm == arm).count())
                    .collect();
                let least = firsts.iter().min().unwrap();
                prop_assert!(firsts.iter().all(|count| count - least <= 1), "{:?}", firsts);
            }
        }
    }
}
