//! Computes differences from trials: averages per case, paired over both arms.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::comparison::{
    MeasureComparison, PairOutcome, PairedMeasure, SCORE_TIE, SHARE_TIE, mean,
};
use super::conclusion::{Conclusion, ConclusionScope, conclude};
use super::within_cases::WithinCaseTests;
use super::{Arms, ExperimentTrial};
use selftest_stats::score::Score;
use selftest_stats::{CaseTrials, holm};

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
