//! From trials to differences: averages of each case, paired over both arms.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conclusion::{Conclusion, conclude};
use super::{Arm, Arms, Trial};
use crate::score::Score;
use crate::stats::{Interval, holm, paired_difference, sign_test};

/// Scores and shares closer than this are a tie: sums in binary floating point differ in their
/// last bits.
const TIE: f64 = 1e-9;

/// What the trials of an experiment say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// What follows.
    pub conclusion: Conclusion,
    /// All trials of each arm.
    pub trials: Arms<u32>,
    /// Trials without a verdict. They count in no average.
    pub unscored: Arms<u32>,
    /// Trials that failed before they could be judged, as by a timeout. They count as not passed
    /// and in no average of scores.
    pub broken: Arms<u32>,
    /// Overall scores, 0.0 to 1.0.
    pub score: Comparison,
    /// Shares of passed trials, 0.0 to 1.0.
    pub pass_rate: Comparison,
    /// Wall time of the system under test in milliseconds.
    pub duration_ms: Measure,
    /// Tokens of the system under test, where it says.
    pub tokens: Measure,
    /// The cases with trials in both arms, in the order of their first trials.
    pub cases: Vec<PairedCase>,
    /// The cases with trials in one arm only.
    pub unpaired: Arms<Vec<String>>,
}

/// A measure over the cases that have it in both arms.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// How many cases have it in both arms. The rest concerns these.
    pub cases: u32,
    /// Its mean over the cases, without the change and with it; absent without cases.
    pub mean: Arms<Option<f64>>,
    /// Mean of treatment less control; absent without cases.
    pub difference: Option<f64>,
    /// 95 % interval of the difference by the paired t-test; absent with fewer than two cases.
    pub interval: Option<Interval>,
}

/// A measure of which more is better, with what is won and lost by it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The averages and their difference.
    #[serde(flatten)]
    pub measure: Measure,
    /// Cases that are better with the change.
    pub wins: u32,
    /// Cases that are the same.
    pub ties: u32,
    /// Cases that are worse.
    pub losses: u32,
    /// Two-sided p-value of the exact sign test on wins and losses, after Holm's correction for
    /// the two tests that are made, on scores and on passes.
    pub p_value: f64,
}

/// How a case went with the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// Better.
    Win,
    /// The same.
    Tie,
    /// Worse.
    Loss,
}

/// The averages of one case; absent where no trial of that arm has the measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedCase {
    /// Which case.
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
    /// By the score; absent where one arm has none.
    pub decided: Option<Decided>,
}

/// Pairs the trials by case and compares the arms.
pub fn analyse(trials: &[Trial]) -> Analysis {
    let mut order: Vec<&str> = Vec::new();
    let mut of_case: HashMap<&str, Arms<Vec<&Trial>>> = HashMap::new();
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
    for name in order {
        let arms = &of_case[name];
        match (arms.control.is_empty(), arms.treatment.is_empty()) {
            (false, false) => cases.push(paired(name, arms)),
            (_, true) => unpaired.control.push(name.to_owned()),
            (true, _) => unpaired.treatment.push(name.to_owned()),
        }
    }
    let bounded = |of: fn(&PairedCase) -> Arms<Option<f64>>| within(measure(&cases, of), -1.0, 1.0);
    let (mut score, mut pass_rate) = (
        compare(&cases, bounded(|case| case.score), |case| case.score),
        compare(&cases, bounded(|case| case.pass_rate), |case| case.pass_rate),
    );
    let corrected = holm(&[score.p_value, pass_rate.p_value]);
    (score.p_value, pass_rate.p_value) = (corrected[0], corrected[1]);
    Analysis {
        conclusion: conclude(&score, &pass_rate),
        trials: total,
        unscored,
        broken,
        score,
        pass_rate,
        duration_ms: measure(&cases, |case| case.duration_ms),
        tokens: measure(&cases, |case| case.tokens),
        cases,
        unpaired,
    }
}

fn paired(name: &str, trials: &Arms<Vec<&Trial>>) -> PairedCase {
    let means = |value: fn(&Trial) -> Option<f64>| {
        trials.as_ref().map(|trials| mean(trials.iter().filter_map(|trial| value(trial))))
    };
    let score = means(|trial| trial.overall.map(Score::get));
    PairedCase {
        case: name.to_owned(),
        trials: trials.as_ref().map(|trials| u32::try_from(trials.len()).unwrap_or(u32::MAX)),
        score,
        pass_rate: means(|trial| trial.pass.map(|pass| f64::from(u8::from(pass)))),
        duration_ms: means(|trial| trial.duration_ms.map(real)),
        tokens: means(|trial| trial.tokens.map(real)),
        decided: score.both().map(decide),
    }
}

fn decide(means: Arms<f64>) -> Decided {
    match means.treatment - means.control {
        difference if difference.abs() < TIE => Decided::Tie,
        difference if difference > 0.0 => Decided::Win,
        _ => Decided::Loss,
    }
}

fn measure(cases: &[PairedCase], of: impl Fn(&PairedCase) -> Arms<Option<f64>>) -> Measure {
    let pairs: Vec<Arms<f64>> = cases.iter().filter_map(|case| of(case).both()).collect();
    let differences: Vec<f64> = pairs.iter().map(|pair| pair.treatment - pair.control).collect();
    let difference = paired_difference(&differences);
    Measure {
        cases: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        mean: Arms {
            control: mean(pairs.iter().map(|pair| *pair.of(Arm::Control))),
            treatment: mean(pairs.iter().map(|pair| *pair.of(Arm::Treatment))),
        },
        difference: difference.map(|difference| difference.mean),
        interval: difference.and_then(|difference| difference.interval),
    }
}

/// The measure with its interval cut to what differences can be.
fn within(measure: Measure, least: f64, most: f64) -> Measure {
    let cut = |interval: Interval| Interval {
        low: interval.low.max(least),
        high: interval.high.min(most),
    };
    Measure { interval: measure.interval.map(cut), ..measure }
}

fn compare(
    cases: &[PairedCase],
    measure: Measure,
    of: impl Fn(&PairedCase) -> Arms<Option<f64>>,
) -> Comparison {
    let decided: Vec<Decided> =
        cases.iter().filter_map(|case| of(case).both().map(decide)).collect();
    let count = |wanted: Decided| {
        let found = decided.iter().filter(|decided| **decided == wanted).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let (wins, losses) = (count(Decided::Win), count(Decided::Loss));
    let p_value = sign_test(wins, losses);
    Comparison { measure, wins, ties: count(Decided::Tie), losses, p_value }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / real(count))
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds and tokens are far below 2^53")]
fn real(count: u64) -> f64 {
    count as f64
}
