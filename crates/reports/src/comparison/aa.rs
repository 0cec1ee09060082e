//! A/A comparison of a run with itself: since nothing was changed, any difference is noise. For
//! programs and for a terminal. Pure.

use serde::Serialize;

use super::CaseNames;
use crate::document::ReportDocument;
use crate::terminal::{StatusColour, TerminalStyle};
use selftest_harness::experiment::power::PowerPlan;
use selftest_harness::experiment::{
    Arm, Arms, Conclusion, ExperimentAnalysis, ExperimentTrial, analyse, format_signed,
};
use selftest_harness::outcome::CaseStatus;
use selftest_text::wording::{percent, plural};

/// A comparison of a run's odd repeats with its even ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelfComparison {
    /// ID of the run.
    pub run_id: String,
    /// Number of cases with repeats.
    pub cases: u32,
    /// Number of trials of each case in each half.
    pub repeats: u32,
    /// Number of pairs of trials of the same case with a verdict in both halves.
    pub pairs: u32,
    /// Number of pairs of which one trial passed and the other failed.
    pub flips: u32,
    /// Number of cases with both passed and failed trials.
    pub flaky: u32,
    /// Smallest difference in scores that a comparison of two such runs can detect; absent if it
    /// cannot detect any.
    pub detectable_score: Option<f64>,
    /// Smallest detectable difference in the share of passed trials.
    pub detectable_pass_rate: Option<f64>,
    /// The result in one sentence.
    pub sentence: String,
    /// The halves as the arms of an experiment: `control` are the odd repeats.
    #[serde(flatten)]
    pub analysis: ExperimentAnalysis,
}

/// Splits the repeats of a run into halves; `None` if no case has two.
pub fn against_itself(report: &ReportDocument) -> Option<SelfComparison> {
    let names = CaseNames::of([report]);
    let mut trials: Vec<ExperimentTrial> = Vec::new();
    let (mut pairs, mut flips) = (0, 0);
    let mut odd = std::collections::HashMap::new();
    let ran = report
        .cases
        .iter()
        .filter(|case| !matches!(case.status, CaseStatus::Skipped | CaseStatus::NotRun));
    for case in ran {
        let Some(repeat) = case.repeat else { continue };
        let arm = if repeat % 2 == 1 { Arm::Control } else { Arm::Treatment };
        // The last of an odd number of repeats has no partner.
        if arm == Arm::Control && repeat == report.summary.repeats.unwrap_or(repeat) {
            continue;
        }
        let trial = names.trial(case, arm);
        // Repeats run in rounds, so an odd repeat precedes its partner in the report.
        match arm {
            Arm::Control => {
                odd.insert((trial.case.clone(), repeat), trial.pass);
            }
            Arm::Treatment => {
                let before = odd.get(&(trial.case.clone(), repeat - 1)).copied().flatten();
                if let Some((before, pass)) = before.zip(trial.pass) {
                    pairs += 1;
                    flips += u32::from(before != pass);
                }
            }
        }
        trials.push(trial);
    }
    let analysis = analyse(&trials);
    if analysis.cases.is_empty() {
        return None;
    }
    let cases = u32::try_from(analysis.cases.len()).unwrap_or(u32::MAX);
    let repeats = report.summary.repeats.unwrap_or(1) / 2;
    let plan = PowerPlan::new(cases, repeats, &trials);
    let flaky = report.repeats.as_ref().map_or_else(
        // Older versions did not count them.
        || flaky_cases(&analysis),
        |repeats| repeats.flaky,
    );
    Some(SelfComparison {
        run_id: report.run_id.to_string(),
        cases,
        repeats,
        pairs,
        flips,
        flaky,
        detectable_score: plan.score.detectable,
        detectable_pass_rate: plan.pass_rate.detectable,
        sentence: sentence(&analysis),
        analysis,
    })
}

fn flaky_cases(analysis: &ExperimentAnalysis) -> u32 {
    let is_flaky = |rate: Option<f64>| rate.is_some_and(|rate| rate > 0.0 && rate < 1.0);
    let flaky = analysis.cases.iter().filter(|case| {
        let Arms { control, treatment } = case.pass_rate;
        // Each half can be consistent in itself and still differ from the other.
        is_flaky(control) || is_flaky(treatment) || control != treatment
    });
    u32::try_from(flaky.count()).unwrap_or(u32::MAX)
}

fn sentence(analysis: &ExperimentAnalysis) -> String {
    if analysis.conclusion == Conclusion::NotEnoughEvidence {
        return "The halves do not differ beyond chance, as expected: nothing was changed."
            .to_owned();
    }
    let names = Arms { control: "the other one", treatment: "One half" };
    format!(
        "{} Nothing was changed: either this is the one false alarm in twenty, or trials depend on \
         each other, for example through a cache or a slowing server.",
        analysis.sentence(names)
    )
}

/// Formats the comparison for a terminal.
pub fn text(found: &SelfComparison, style: TerminalStyle) -> String {
    let SelfComparison { cases, repeats, pairs, flips, flaky, .. } = found;
    let share = f64::from(*flips) / f64::from((*pairs).max(1));
    let or_none = |difference: Option<f64>, show: fn(f64) -> String| {
        difference.map_or_else(|| "none".to_owned(), show)
    };
    let colour = match found.analysis.conclusion {
        Conclusion::NotEnoughEvidence => StatusColour::Good,
        Conclusion::Helps | Conclusion::Harms | Conclusion::Blocked => StatusColour::Unsure,
    };
    format!(
        "{}: {} × {}, compared with as many trials of the same run\n\
         flips: {flips} of {pairs} pairs of trials, {} %\n\
         flaky: {flaky} of {}\n\
         smallest detectable difference between two such runs: score {}, passed {}\n\n{}\n",
        found.run_id,
        plural(*cases, "case"),
        plural(*repeats, "trial"),
        percent(share),
        plural(*cases, "case"),
        or_none(found.detectable_score, |value| format_signed(value, 2)),
        or_none(found.detectable_pass_rate, |value| {
            format!("{} points", format_signed(100.0 * value, 0))
        }),
        style.paint(colour, &found.sentence)
    )
}
