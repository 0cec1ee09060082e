//! Power analysis before a run: the number of cases and repeats that a difference needs. The noise
//! comes from an earlier run or, without one, from a stated assumption.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ALPHA;
use super::{ExperimentTrial, MIN_CASES, format_signed};
use selftest_stats::score::Score;
use selftest_stats::{PlannedEffect, TARGET_POWER, detectable_difference, variance_components};
use selftest_text::wording::{cases, percent, plural};

/// Differences to plan for, in scores and in shares of passed trials.
const DIFFERENCES: [f64; 3] = [0.05, 0.1, 0.2];
const PASS_DIFFERENCES: [f64; 3] = [0.1, 0.2, 0.4];
/// Numbers of repeats to compare side by side.
const REPEATS: [u32; 4] = [1, 3, 5, 10];
/// Assumed deviation of a case's trials if no run has measured it.
const ASSUMED_DEVIATION: f64 = 0.1;
const ASSUMED_PASS_DEVIATION: f64 = 0.4;
/// Maximum deviation that counts as zero, because sums are rounded.
const ROUNDING: f64 = 1e-9;

/// Variation between trials of one case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrialNoise {
    /// The standard deviation.
    pub deviation: f64,
    /// The source of the estimate.
    pub source: NoiseSource,
}

/// The source of a deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseSource {
    /// Measured from the repeats of a run.
    Measured,
    /// Assumed, since no case was repeated.
    NotRepeated,
    /// Assumed, since all trials of each case were equal: a few equal trials do not prove that
    /// there is no noise.
    NoneDiffered,
}

impl NoiseSource {
    const fn description(self) -> &'static str {
        match self {
            Self::Measured => "as measured",
            Self::NotRepeated => "assumed, no case was repeated",
            Self::NoneDiffered => "assumed, since no trial differed from the others of its case",
        }
    }
}

/// The differences that a comparison with a given number of cases and repeats can find.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PowerPlan {
    /// Number of cases.
    pub cases: u32,
    /// Trials of each case in each arm.
    pub repeats: u32,
    /// Power: the probability to find a real difference.
    pub power: f64,
    /// Plan for scores.
    pub score: MeasurePlan,
    /// Plan for passes.
    pub pass_rate: MeasurePlan,
}

/// The plan for one measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasurePlan {
    /// The assumed or measured noise.
    pub noise: TrialNoise,
    /// The smallest difference that the plan finds on these cases. Absent if it finds none.
    pub detectable: Option<f64>,
    /// Number of cases needed, by difference and repeats.
    pub needs: Vec<CasesNeeded>,
}

/// Number of cases that a difference needs with a given number of repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CasesNeeded {
    /// The difference.
    pub difference: f64,
    /// Trials of each case in each arm.
    pub repeats: u32,
    /// Cases for a conclusion on these cases. Absent if ten thousand are not enough.
    pub these_cases: Option<usize>,
    /// Cases for a conclusion on cases like these, if the true differences deviate between cases by
    /// as much as their mean.
    pub cases_like_these: Option<usize>,
}

impl PowerPlan {
    /// Creates a plan for this number of cases and repeats, with the noise of these trials.
    pub fn new(cases: u32, repeats: u32, trials: &[ExperimentTrial]) -> Self {
        let passed = |trial: &ExperimentTrial| Some(f64::from(u8::from(trial.pass?)));
        let score = noise(trials, |trial| trial.overall.map(Score::get), ASSUMED_DEVIATION);
        let pass_rate = noise(trials, passed, ASSUMED_PASS_DEVIATION);
        let plan = |noise: TrialNoise, differences: [f64; 3]| MeasurePlan {
            noise,
            detectable: detectable_difference(
                noise.deviation,
                // Scores and passes are tested together: Holm's correction gives the first
                // of the two half of the error.
                ALPHA / 2.0,
                cases as usize,
                repeats as usize,
            ),
            needs: differences
                .iter()
                .flat_map(|difference| {
                    REPEATS.map(|repeats| cases_needed(noise, *difference, repeats))
                })
                .collect(),
        };
        Self {
            cases,
            repeats,
            power: TARGET_POWER,
            score: plan(score, DIFFERENCES),
            pass_rate: plan(pass_rate, PASS_DIFFERENCES),
        }
    }

    /// Renders the plan as text.
    pub fn text(&self) -> String {
        let scores = |value: f64| format_signed(value, 2);
        let points = |value: f64| format!("{} points", format_signed(100.0 * value, 0));
        let plan = format!("{} × {}", cases(self.cases), plural(self.repeats, "trial"));
        let mut text = format!("{plan} in each arm:\n");
        let (score, pass_rate) = (&self.score, &self.pass_rate);
        text += &measure_line("score", score, scores);
        text += &measure_line("passed", pass_rate, points);
        text += &format!(
            "\nCases needed to find a difference with {} % probability, on these cases (and on \
             cases like these):\n\n{:<20}",
            percent(self.power),
            "trials of each case"
        );
        text.extend(REPEATS.map(|repeats| format!("{repeats:>14}")));
        text.push('\n');
        text += &rows("score", score, scores);
        text += &rows("passed", pass_rate, points);
        text
    }
}

/// Estimates the noise of the trials, or returns the assumption if no case was repeated.
fn noise(
    trials: &[ExperimentTrial],
    value: fn(&ExperimentTrial) -> Option<f64>,
    assumed: f64,
) -> TrialNoise {
    let mut of_case: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for trial in trials {
        of_case.entry(&trial.case).or_default().extend(value(trial).map(|value| vec![value]));
    }
    let cases: Vec<Vec<Vec<f64>>> = of_case.into_values().collect();
    match variance_components(&cases).repeats.map(f64::sqrt) {
        // With a noise of zero, the plan would claim to detect any difference.
        Some(measured) if measured > ROUNDING => {
            TrialNoise { deviation: measured, source: NoiseSource::Measured }
        }
        Some(_) => TrialNoise { deviation: assumed, source: NoiseSource::NoneDiffered },
        None => TrialNoise { deviation: assumed, source: NoiseSource::NotRepeated },
    }
}

fn cases_needed(noise: TrialNoise, difference: f64, repeats: u32) -> CasesNeeded {
    // The tests of scores and of passes share the 5 % error rate.
    let alpha = ALPHA / 2.0;
    let even = PlannedEffect { difference, within: noise.deviation, between: 0.0, alpha };
    // The effect is assumed to vary between cases by as much as it is large.
    let uneven = PlannedEffect { between: difference, ..even };
    let repeated = repeats as usize;
    let these_cases = even.min_same_cases(repeated);
    let cases_like_these = uneven.min_new_cases(repeated);
    CasesNeeded { difference, repeats, these_cases, cases_like_these }
}

fn measure_line(name: &str, plan: &MeasurePlan, shown: impl Fn(f64) -> String) -> String {
    let noise = &plan.noise;
    let source = noise.source.description();
    let finds = match plan.detectable {
        Some(difference) => format!("finds {} or more on these cases", shown(difference)),
        None => "finds no difference, however large".to_owned(),
    };
    format!("  {name}: {finds}; trials deviate by {:.2} ({source})\n", noise.deviation)
}

fn rows(name: &str, plan: &MeasurePlan, shown: impl Fn(f64) -> String) -> String {
    let count = |cases: Option<usize>| cases.map_or("-".to_owned(), |cases| cases.to_string());
    let mut text = String::new();
    for needs in plan.needs.chunks(REPEATS.len()) {
        let Some(first) = needs.first() else { continue };
        text += &format!("{:<20}", format!("{name} {}", shown(first.difference)));
        for need in needs {
            let (these, like) = (count(need.these_cases), count(need.cases_like_these));
            text += &format!("{:>14}", format!("{these} ({like})"));
        }
        text.push('\n');
    }
    text
}

/// Explains why a suite with `count` cases can never reach a conclusion, or only with repeats.
/// Returns `None` if it can.
pub fn inconclusive_reason(count: usize) -> Option<String> {
    if count >= MIN_CASES as usize || count == 0 {
        return None;
    }
    // The smallest possible p-value: 2 of all labellings, doubled because scores and passes are
    // both tested.
    let least = |repeats: u32| {
        let labellings: f64 =
            (1..=repeats).map(|place| f64::from(repeats + place) / f64::from(place)).product();
        4.0 / labellings.powi(i32::try_from(count).unwrap_or(i32::MAX))
    };
    let repeats = (1..=20).find(|repeats| least(*repeats) <= ALPHA)?;
    let suite = plural(count as u64, "case");
    let on_these = match repeats {
        1 => String::new(),
        _ => format!(", and on these cases only with --repeats {repeats} or more"),
    };
    Some(format!(
        "{suite}: comparisons of this suite can never conclude for cases like these, which takes at \
         least {MIN_CASES}{on_these}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Arm;

    fn trials() -> Vec<ExperimentTrial> {
        let trial = |case: u32, repeat: u32| ExperimentTrial {
            case: format!("case-{case}"),
            arm: Arm::Control,
            overall: Score::new(0.5 + 0.1 * f64::from((case + repeat) % 3)).ok(),
            pass: Some(!(case + repeat).is_multiple_of(3)),
            duration_ms: None,
            tokens: None,
        };
        (0..8).flat_map(|case| (0..3).map(move |repeat| trial(case, repeat))).collect()
    }

    #[test]
    fn a_plan_from_a_run() {
        let plan = PowerPlan::new(8, 3, &trials());
        // 0.5, 0.6 and 0.7 in each case: a deviation of 0.1.
        assert!((plan.score.noise.deviation - 0.1).abs() < 1e-9, "{plan:?}");
        let sources = [plan.score.noise.source, plan.pass_rate.noise.source];
        assert_eq!(sources, [NoiseSource::Measured; 2]);
        insta::assert_snapshot!(plan.text());
    }

    #[test]
    fn a_plan_without_a_run_says_what_it_assumes() {
        let plan = PowerPlan::new(2, 1, &[]);
        assert_eq!(plan.score.noise.source, NoiseSource::NotRepeated);
        assert_eq!(plan.score.detectable, None, "two trials have four labellings");
        let text = plan.text();
        assert!(text.contains("finds no difference, however large"), "{text}");
        assert!(text.contains("assumed, no case was repeated"), "{text}");
    }

    #[test]
    fn alike_trials_do_not_promise_to_find_anything() {
        let trials: Vec<ExperimentTrial> = trials()
            .into_iter()
            .map(|trial| ExperimentTrial {
                overall: Score::new(0.7).ok(),
                pass: Some(true),
                ..trial
            })
            .collect();
        let plan = PowerPlan::new(8, 3, &trials);
        assert_eq!(plan.score.noise.source, NoiseSource::NoneDiffered);
        assert_eq!(plan.score.detectable, PowerPlan::new(8, 3, &[]).score.detectable);
        assert!(plan.text().contains("since no trial differed"), "{}", plan.text());
    }

    #[test]
    fn small_suites_are_told() {
        assert_eq!(inconclusive_reason(7), None);
        let five = inconclusive_reason(5).unwrap();
        assert!(
            five.contains("takes at least 7, and on these cases only with --repeats 2"),
            "{five}"
        );
        let one = inconclusive_reason(1).unwrap();
        assert!(one.contains("with --repeats 5 or more"), "{one}");
        let six = inconclusive_reason(6).unwrap();
        assert!(six.contains("with --repeats 2"), "{six}");
    }
}
