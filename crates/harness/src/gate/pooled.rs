//! Tests whether the agent as a whole became less reliable than its baseline shows. Pure.
//!
//! The test of single cases cannot see an agent that answers rubbish now and then: a case that
//! fails and then passes is flaky and blocks nothing, whichever case it is and however many are.
//! This test counts the first trial of every case. If that settles nothing, every case is run once
//! more, and then again, until Wald's sequential test decides. Whole rounds keep it fair: cases
//! that failed are not the only ones that are run again.
//!
//! The failure rate that counts as unchanged is at least that of a reliable agent
//! (1 - [`RELIABLE`]), and more if the trials in the baseline show more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rule::RELIABLE;
use super::trials::{TrialCounts, TrialGroup};
use super::{BaselineGate, BaselineStanding};
use selftest_stats::{
    SequentialDecision, SequentialTest, binomial_tail, multiplied_odds, upper_bound,
};
use selftest_text::wording::{cases, plural};

/// Maximum number of rounds, including the first.
pub const MAX_ROUNDS: u32 = 10;

/// Number of cases from which one trial of each in the baseline is enough.
const MANY_CASES: usize = 4;

/// Number of trials of fewer cases that the baseline has to show. A single one passes by luck: an
/// unchanged agent that fails every other trial of one case would be blocked in one of five runs.
const MIN_TRIALS: u32 = 10;

/// Odds of failing, relative to the tolerated ones, that the test looks for: 25 % if 10 % are
/// tolerated.
const WORSE_ODDS: f64 = 3.0;

/// Probability that an unchanged agent is blocked.
const FALSE_ALARM: f64 = 0.004;

/// Probability that an agent with [`WORSE_ODDS`] is taken for an unchanged one.
const MISS: f64 = 0.3;

/// Confidence of the upper bound of a baseline's failure rate.
const CONFIDENCE: f64 = 0.975;

/// Number of passed trials that are assumed besides those of a baseline, so that one failure in a
/// small baseline does not excuse every later one.
const ASSUMED_PASSES: u64 = 10;

/// The conclusion of the pooled test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PooledVerdict {
    /// The agent fails no more often than its baseline shows.
    Unchanged,
    /// It fails more often, beyond chance. The gate blocks.
    Worse,
    /// It fails more often, but by the scores of a judge that decides identical answers
    /// differently.
    JudgeMoved,
    /// Neither was shown in the rounds that were allowed. The gate does not block.
    Unclear,
    /// More rounds are needed.
    Open,
}

/// Result of the pooled test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PooledFinding {
    /// The conclusion.
    pub verdict: PooledVerdict,
    /// Number of pooled cases.
    pub cases: u32,
    /// Number of rounds, including the first.
    pub rounds: u32,
    /// Trials now, over all rounds.
    pub now: TrialCounts,
    /// Trials of these cases in the baseline. What is tolerated depends on all cases there.
    pub before: TrialCounts,
    /// Failure rate up to which the agent counts as unchanged, 0 to 1.
    pub tolerated: f64,
}

/// The test for one baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PooledTest {
    tolerated: f64,
    /// True if a case both passed and failed in the baseline.
    is_flaky: bool,
    max_rounds: u32,
}

impl PooledTest {
    /// Creates the test from the trials of each case in the baseline.
    pub fn new(before: impl IntoIterator<Item = TrialCounts>, max_rounds: u32) -> Self {
        let mut is_flaky = false;
        let pooled = before.into_iter().filter(|trials| !trials.is_known_failure());
        let before = pooled.fold(TrialCounts::default(), |sum, trials| {
            is_flaky |= trials.passed > 0 && trials.failed > 0;
            sum.plus(trials)
        });
        let reliable = 1.0 - RELIABLE;
        let tolerated = if before.failed == 0 {
            reliable
        } else {
            let trials = u64::from(before.all()) + ASSUMED_PASSES;
            upper_bound(before.failed.into(), trials, CONFIDENCE).max(reliable)
        };
        Self { tolerated, is_flaky, max_rounds }
    }

    /// Returns the failure rate that is tolerated of a single case that passed in the baseline. A
    /// baseline of one run cannot tell a flaky agent from one with broken cases, and those say
    /// nothing about the others.
    pub fn tolerated_of_case(&self) -> f64 {
        if self.is_flaky { self.tolerated } else { 1.0 - RELIABLE }
    }

    /// Weighs the trials of the run, one sequence per case. `first` is the number of trials of each
    /// case in the first round; each later round adds one. `before` counts the trials of the same
    /// cases in the baseline. Returns `None` without cases, or if they are few and so are their
    /// trials in the baseline.
    pub fn weigh(
        &self,
        trials: &[Vec<Option<bool>>],
        before: TrialCounts,
        first: usize,
    ) -> Option<PooledFinding> {
        if trials.is_empty() || (trials.len() < MANY_CASES && before.all() < MIN_TRIALS) {
            return None;
        }
        let worse = multiplied_odds(self.tolerated, WORSE_ODDS);
        let test = SequentialTest::new(self.tolerated, worse, FALSE_ALARM, MISS);
        let mut finding = PooledFinding {
            verdict: PooledVerdict::Open,
            cases: u32::try_from(trials.len()).unwrap_or(u32::MAX),
            rounds: 0,
            now: TrialCounts::default(),
            before,
            tolerated: self.tolerated,
        };
        let mut begin = 0;
        let mut end = first;
        // A round counts once every case has had its trial in it.
        while trials.iter().all(|trials| trials.len() >= end) {
            finding.rounds += 1;
            for pass in trials.iter().flat_map(|trials| &trials[begin..end]) {
                finding.now.add(*pass);
            }
            // A decision is final: a later round must not be able to take it back.
            let TrialCounts { failed, .. } = finding.now;
            if failed == 0 && finding.now.passed > 0 {
                // Few cases that all pass are no reason to run them again.
                finding.verdict = PooledVerdict::Unchanged;
                break;
            }
            match test.decide(failed, finding.now.all()) {
                SequentialDecision::Tolerated => finding.verdict = PooledVerdict::Unchanged,
                SequentialDecision::Excessive => finding.verdict = PooledVerdict::Worse,
                SequentialDecision::Continue if finding.rounds >= self.max_rounds => {
                    finding.verdict = self.last_word(finding.now);
                }
                SequentialDecision::Continue => {}
            }
            if finding.verdict != PooledVerdict::Open {
                break;
            }
            (begin, end) = (end, end + 1);
        }
        (finding.rounds > 0).then_some(finding)
    }

    /// Decides without further rounds, by the exact binomial test.
    fn last_word(&self, now: TrialCounts) -> PooledVerdict {
        let chance = binomial_tail(now.failed.into(), now.all().into(), self.tolerated);
        if chance <= FALSE_ALARM { PooledVerdict::Worse } else { PooledVerdict::Unclear }
    }
}

impl PooledFinding {
    /// Returns the finding as one sentence, or `None` if there is nothing to say: nothing failed
    /// beyond what the cases themselves report.
    pub fn sentence(&self) -> Option<String> {
        let Self { now, before, .. } = self;
        let numbers = format!(
            "{} of {} of {} failed{}, before {} of {}",
            now.failed,
            plural(now.all(), "trial"),
            cases(self.cases),
            if self.rounds > 1 { format!(" in {} rounds", self.rounds) } else { String::new() },
            before.failed,
            before.all()
        );
        let tolerated = format!("{:.0} %", 100.0 * self.tolerated);
        match self.verdict {
            PooledVerdict::Worse => Some(format!(
                "the agent as a whole fails more often than before: {numbers}; an agent that fails \
                 in {tolerated} of trials is blocked by chance in less than 1 of 100 runs"
            )),
            PooledVerdict::JudgeMoved => Some(format!(
                "{numbers}, by a judge that decides differently: the agent is not blamed"
            )),
            PooledVerdict::Unclear => Some(format!(
                "{numbers}: too many to call it unchanged, too few to call it worse than the \
                 {tolerated} that are tolerated; it does not block"
            )),
            PooledVerdict::Open => Some(format!(
                "{numbers}: the cases could not be run again often enough to tell a less reliable \
                 agent from chance"
            )),
            PooledVerdict::Unchanged if self.rounds > 1 => Some(format!(
                "all cases were run again to tell a less reliable agent from chance: {numbers}, no \
                 more than the {tolerated} that are tolerated"
            )),
            PooledVerdict::Unchanged => None,
        }
    }
}

impl BaselineGate {
    /// Returns the pooled test of this gate.
    pub(super) fn pooled_test(&self) -> PooledTest {
        let planned = self.baseline.cases.iter().filter(|case| self.planned.contains(&case.id));
        PooledTest::new(planned.map(super::baseline::BaselineCase::first_trials), self.max_rounds())
    }

    /// Returns the trials of the case in the baseline, if it counts in the pooled test.
    fn pooled_before(&self, trials: &TrialGroup<'_>) -> Option<TrialCounts> {
        let BaselineStanding::Accepted(then) = self.standing(trials.first()) else { return None };
        let before = then.first_trials();
        // What never passed cannot fail more often.
        (before.passed > 0 && trials.decided() > 0).then_some(before)
    }

    /// Weighs the cases that may count: all, or those that no judge decides.
    pub(super) fn pooled(
        &self,
        all: &[TrialGroup<'_>],
        may_count: impl Fn(&TrialGroup<'_>) -> bool,
    ) -> Option<PooledFinding> {
        let mut pool: Vec<&TrialGroup<'_>> = Vec::new();
        let mut before = TrialCounts::default();
        for trials in all.iter().filter(|trials| may_count(trials)) {
            if let Some(counts) = self.pooled_before(trials) {
                pool.push(trials);
                before = before.plus(counts);
            }
        }
        // Fewer repeats of a case, as after an interruption, would compare unequal rounds.
        let first = pool.iter().map(|trials| trials.repeats()).min()?;
        let trials: Vec<Vec<Option<bool>>> = pool.iter().map(|trials| trials.in_order()).collect();
        self.pooled_test().weigh(&trials, before, first)
    }

    /// Returns the ids of the cases that the next round of the pooled test needs; none if it is
    /// decided, or if a regression blocks the run anyway.
    pub(super) fn next_round(&self, all: &[TrialGroup<'_>]) -> Vec<String> {
        let Some(finding) = self.pooled(all, |_| true) else { return Vec::new() };
        if finding.verdict != PooledVerdict::Open {
            return Vec::new();
        }
        let pool = all.iter().filter(|trials| self.pooled_before(trials).is_some());
        let first = pool.clone().map(TrialGroup::repeats).min().unwrap_or_default();
        let needed = first + finding.rounds as usize;
        let short = pool.filter(|trials| trials.in_order().len() < needed);
        short.map(|trials| trials.id().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests;
