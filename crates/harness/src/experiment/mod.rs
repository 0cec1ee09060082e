//! Evaluates whether a change helps, from paired trials of the same cases with and without it.
//!
//! The unit is the case: its trials are averaged first, because they are not independent of each
//! other. A trial without a score is counted separately and never treated as zero. Runs nothing.
//!
//! [`WithinCaseTests`] are about the very cases that were run, from the trials within each;
//! [`MeasureComparison`] is about cases like these.

mod conclusion;
pub mod power;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use conclusion::conclude;
pub use conclusion::{
    ArmNames, Conclusion, ConclusionScope, MIN_CASES, format_p_value, format_signed,
};
use selftest_stats::score::Score;
use selftest_stats::{
    CaseTrials, Interval, MIN_DRAWS, PermutationTest, holm, paired_difference, permutation_test,
    sign_test,
};

/// Probability of a false conclusion if the change has no effect.
pub const ALPHA: f64 = 0.05;

/// One side of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// Without the change: without the skill, or the first of two runs.
    Control,
    /// With the change: with the skill, or the second of two runs.
    Treatment,
}

impl Arm {
    /// Both arms, in the order in which they are numbered.
    pub const BOTH: [Self; 2] = [Self::Control, Self::Treatment];

    /// Returns the other arm.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Control => Self::Treatment,
            Self::Treatment => Self::Control,
        }
    }
}

/// A pair of values, one for each arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Arms<T> {
    /// Without the change.
    pub control: T,
    /// With the change.
    pub treatment: T,
}

impl<T> Arms<T> {
    /// Returns the value of one arm.
    pub fn of(&self, arm: Arm) -> &T {
        match arm {
            Arm::Control => &self.control,
            Arm::Treatment => &self.treatment,
        }
    }

    /// Returns the value of one arm mutably.
    pub fn of_mut(&mut self, arm: Arm) -> &mut T {
        match arm {
            Arm::Control => &mut self.control,
            Arm::Treatment => &mut self.treatment,
        }
    }

    /// Maps the values of both arms.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Arms<U> {
        Arms { control: make(self.control), treatment: make(self.treatment) }
    }

    /// Borrows both values.
    pub fn as_ref(&self) -> Arms<&T> {
        Arms { control: &self.control, treatment: &self.treatment }
    }
}

impl<T> Arms<Option<T>> {
    /// Returns both values if both are present.
    pub fn both(self) -> Option<Arms<T>> {
        Some(Arms { control: self.control?, treatment: self.treatment? })
    }
}

/// One trial of a case in one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentTrial {
    /// Id of the case; the same in both arms.
    pub case: String,
    /// The arm.
    pub arm: Arm,
    /// The overall score. `None` means no score, which is not zero.
    pub overall: Option<Score>,
    /// True if it passed; `None` without a verdict. A trial may fail without a score, for example
    /// by a timeout.
    pub pass: Option<bool>,
    /// Wall time of the system under test in milliseconds.
    pub duration_ms: Option<u64>,
    /// Input and output tokens of the system under test, if it reports them.
    pub tokens: Option<u64>,
}

/// Result of the trials of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentAnalysis {
    /// The conclusion drawn from the comparison.
    pub conclusion: Conclusion,
    /// How far the conclusion generalises. Absent if there is not enough evidence.
    #[serde(default)]
    pub scope: Option<ConclusionScope>,
    /// Test for a difference on these very cases, from the trials within each.
    #[serde(default)]
    pub these_cases: WithinCaseTests,
    /// Number of trials of each arm.
    pub trials: Arms<u32>,
    /// Trials without a verdict. They count in no average.
    pub unscored: Arms<u32>,
    /// Trials decided without a score, for example by a check or a timeout. They are excluded from
    /// averages of scores.
    pub broken: Arms<u32>,
    /// Overall scores, 0.0 to 1.0.
    pub score: MeasureComparison,
    /// Shares of passed trials, 0.0 to 1.0.
    pub pass_rate: MeasureComparison,
    /// Wall time of the system under test in milliseconds.
    pub duration_ms: PairedMeasure,
    /// Tokens of the system under test, if it reports them.
    pub tokens: PairedMeasure,
    /// The cases with trials in both arms, in the order of their first trials.
    pub cases: Vec<PairedCase>,
    /// The cases with trials in one arm only.
    pub unpaired: Arms<Vec<String>>,
}

/// The averages of one case. An average is absent if no trial of that arm has the measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedCase {
    /// Id of the case.
    pub case: String,
    /// Trials of each arm.
    pub trials: Arms<u32>,
    /// Mean overall score.
    pub score: Arms<Option<f64>>,
    /// Share of passed trials among those with a verdict.
    pub pass_rate: Arms<Option<f64>>,
    /// Mean wall time of the system under test in milliseconds.
    pub duration_ms: Arms<Option<f64>>,
    /// Mean tokens of the system under test.
    pub tokens: Arms<Option<f64>>,
    /// Winner by passes and by score. Absent if no trial of one arm has a verdict.
    pub decided: Option<PairOutcome>,
}

impl PairedCase {
    /// Returns true if every trial with a verdict passed without the change and failed with it.
    pub fn is_new_failure(&self) -> bool {
        let passes = |arm: Option<f64>, share: f64| {
            arm.is_some_and(|passed| (passed - share).abs() < SHARE_TIE)
        };
        passes(self.pass_rate.control, 1.0) && passes(self.pass_rate.treatment, 0.0)
    }
}

/// Pairs the trials by case and compares the arms.
pub fn analyse(trials: &[ExperimentTrial]) -> ExperimentAnalysis {
    // Keeps the order in which the cases first ran, which a map of them does not.
    let mut order: Vec<&str> = Vec::new();
    let mut of_case: HashMap<&str, Arms<Vec<&ExperimentTrial>>> = HashMap::new();
    let [mut total, mut unscored, mut broken] = [Arms::<u32>::default(); 3];
    for trial in trials {
        let case = of_case.entry(&trial.case).or_insert_with(|| {
            order.push(&trial.case);
            Arms::default()
        });
        case.of_mut(trial.arm).push(trial);
        *total.of_mut(trial.arm) += 1;
        match (trial.pass, trial.overall) {
            (None, _) => *unscored.of_mut(trial.arm) += 1,
            (Some(_), None) => *broken.of_mut(trial.arm) += 1,
            (Some(_), Some(_)) => {}
        }
    }
    let (mut cases, mut unpaired) = (Vec::new(), Arms::<Vec<String>>::default());
    let (mut scores, mut passes) = (Vec::new(), Vec::new());
    for name in order {
        let arms = &of_case[name];
        match (arms.control.is_empty(), arms.treatment.is_empty()) {
            (false, false) => {
                cases.push(paired(name, arms));
                scores.push(values(arms, |trial| trial.overall.map(Score::get)));
                passes.push(values(arms, passed));
            }
            (_, true) => unpaired.control.push(name.to_owned()),
            (true, _) => unpaired.treatment.push(name.to_owned()),
        }
    }
    let of = |measure: fn(&PairedCase) -> Arms<Option<f64>>| -> Vec<Arms<f64>> {
        cases.iter().filter_map(|case| measure(case).both()).collect()
    };
    let mut score = MeasureComparison::of(&of(|case| case.score), SCORE_TIE);
    let mut pass_rate = MeasureComparison::of(&of(|case| case.pass_rate), SHARE_TIE);
    // Two tests on the same trials are corrected. Checks alone give no scores, and then one is made.
    if score.measure.cases > 0 && pass_rate.measure.cases > 0 {
        let corrected = holm(&[score.p_value, pass_rate.p_value]);
        (score.p_value, pass_rate.p_value) = (corrected[0], corrected[1]);
    }
    let these_cases = WithinCaseTests::of(&scores, &passes);
    let (conclusion, scope) = conclude(&these_cases, &score, &pass_rate);
    ExperimentAnalysis {
        conclusion,
        scope,
        these_cases,
        trials: total,
        unscored,
        broken,
        score,
        pass_rate,
        duration_ms: PairedMeasure::of(&of(|case| case.duration_ms)),
        tokens: PairedMeasure::of(&of(|case| case.tokens)),
        cases,
        unpaired,
    }
}

/// Collects the values of the trials that have one.
fn values(
    trials: &Arms<Vec<&ExperimentTrial>>,
    value: fn(&ExperimentTrial) -> Option<f64>,
) -> CaseTrials {
    let of =
        |trials: &Vec<&ExperimentTrial>| trials.iter().filter_map(|trial| value(trial)).collect();
    CaseTrials { control: of(&trials.control), treatment: of(&trials.treatment) }
}

fn passed(trial: &ExperimentTrial) -> Option<f64> {
    trial.pass.map(|pass| f64::from(u8::from(pass)))
}

fn paired(name: &str, trials: &Arms<Vec<&ExperimentTrial>>) -> PairedCase {
    let means = |value: fn(&ExperimentTrial) -> Option<f64>| {
        trials.as_ref().map(|trials| mean(trials.iter().filter_map(|trial| value(trial))))
    };
    let score = means(|trial| trial.overall.map(Score::get));
    let pass_rate = means(passed);
    let by_passes = pass_rate.both().map(|rates| PairOutcome::of(rates, SHARE_TIE));
    let by_scores = score.both().map(|scores| PairOutcome::of(scores, SCORE_TIE));
    PairedCase {
        case: name.to_owned(),
        trials: trials.as_ref().map(|trials| u32::try_from(trials.len()).unwrap_or(u32::MAX)),
        score,
        pass_rate,
        duration_ms: means(|trial| trial.duration_ms.map(real)),
        tokens: means(|trial| trial.tokens.map(real)),
        decided: PairOutcome::combined(by_passes, by_scores),
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds and tokens are far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}

/// Shares closer than this are a tie: sums in binary floating point differ in their last bits.
const SHARE_TIE: f64 = 1e-9;

/// Scores closer than this are a tie: reports show two decimals, and a difference that they do not
/// show is none.
const SCORE_TIE: f64 = 0.005;

/// A measure over the cases that have it in both arms.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PairedMeasure {
    /// Number of cases that have it in both arms. The other fields cover only these.
    pub cases: u32,
    /// Mean over the cases, without and with the change. Absent if there are no cases.
    pub mean: Arms<Option<f64>>,
    /// Mean of treatment minus control. Absent if there are no cases.
    pub difference: Option<f64>,
    /// 95 % interval of the difference by the paired t-test. Absent with fewer than two cases.
    pub interval: Option<Interval>,
}

/// A measure for which higher is better, with the numbers of wins and losses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasureComparison {
    /// The averages and their difference.
    #[serde(flatten)]
    pub measure: PairedMeasure,
    /// Cases that are better with the change.
    pub wins: u32,
    /// Cases that are equal.
    pub ties: u32,
    /// Cases that are worse.
    pub losses: u32,
    /// Two-sided p-value of the exact sign test on wins and losses. If there are both scores and
    /// passes, after Holm's correction for the two tests.
    pub p_value: f64,
}

/// Result of a case with the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    /// Better.
    Win,
    /// Equal.
    Tie,
    /// Worse.
    Loss,
    /// The score is better and fewer trials pass, or the other way round.
    Mixed,
}

impl PairOutcome {
    /// Compares two means. Those closer than `tie` are equal.
    fn of(means: Arms<f64>, tie: f64) -> Self {
        match means.treatment - means.control {
            difference if difference.abs() < tie => Self::Tie,
            difference if difference > 0.0 => Self::Win,
            _ => Self::Loss,
        }
    }

    /// Combines the outcomes by passes and by scores; `None` if both are absent.
    fn combined(passes: Option<Self>, scores: Option<Self>) -> Option<Self> {
        Some(match (passes, scores) {
            (None, outcome) | (outcome, None) => return outcome,
            (Some(Self::Tie), Some(outcome)) | (Some(outcome), Some(Self::Tie)) => outcome,
            (Some(one), Some(other)) if one == other => one,
            (Some(_), Some(_)) => Self::Mixed,
        })
    }
}

impl PairedMeasure {
    /// Computes the measure from the means of each case.
    fn of(cases: &[Arms<f64>]) -> Self {
        let differences: Vec<f64> =
            cases.iter().map(|case| case.treatment - case.control).collect();
        let difference = paired_difference(&differences);
        Self {
            cases: u32::try_from(cases.len()).unwrap_or(u32::MAX),
            mean: Arms {
                control: mean(cases.iter().map(|case| case.control)),
                treatment: mean(cases.iter().map(|case| case.treatment)),
            },
            difference: difference.map(|difference| difference.mean),
            interval: difference.and_then(|difference| difference.interval),
        }
    }
}

impl MeasureComparison {
    /// Compares the means of each case, 0.0 to 1.0. Those closer than `tie` are equal. The p-value
    /// is not corrected yet.
    fn of(cases: &[Arms<f64>], tie: f64) -> Self {
        let count = |wanted: PairOutcome| {
            let found = cases.iter().filter(|case| PairOutcome::of(**case, tie) == wanted).count();
            u32::try_from(found).unwrap_or(u32::MAX)
        };
        let (wins, losses) = (count(PairOutcome::Win), count(PairOutcome::Loss));
        let measure = PairedMeasure::of(cases);
        // A difference of shares cannot exceed 1.
        let cut = |Interval { low, high }| Interval { low: low.max(-1.0), high: high.min(1.0) };
        Self {
            measure: PairedMeasure { interval: measure.interval.map(cut), ..measure },
            wins,
            ties: count(PairOutcome::Tie),
            losses,
            p_value: sign_test(wins, losses),
        }
    }
}

/// Returns the mean, or `None` if there are no values.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// Fixed seed for random relabellings, so that the same data always gives the same p-value.
const SEED: u64 = 0;

/// Permutation tests within the cases, with Holm's correction if there are two of them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WithinCaseTests {
    /// Test of the overall scores. Absent if no case has one in both arms.
    pub score: Option<PermutationTest>,
    /// Test of passes.
    pub pass_rate: Option<PermutationTest>,
}

impl WithinCaseTests {
    /// Tests the scores and passes of each case's trials.
    fn of(scores: &[CaseTrials], passes: &[CaseTrials]) -> Self {
        // The seed is fixed, so that the same trials give the same p-value each time.
        let mut score = permutation_test(scores, SEED, MIN_DRAWS);
        let mut pass_rate = permutation_test(passes, SEED, MIN_DRAWS);
        // One test needs no correction: checks alone give no scores.
        if let (Some(score), Some(pass_rate)) = (&mut score, &mut pass_rate) {
            let corrected = holm(&[score.p_value, pass_rate.p_value]);
            (score.p_value, pass_rate.p_value) = (corrected[0], corrected[1]);
        }
        Self { score, pass_rate }
    }

    /// Returns the directions in which scores and passes differ beyond chance; `Equal` if no
    /// difference is shown.
    fn directions(&self) -> [Ordering; 2] {
        [self.score, self.pass_rate].map(|test| match test {
            Some(test) if test.p_value <= ALPHA => test.difference.total_cmp(&0.0),
            _ => Ordering::Equal,
        })
    }
}
