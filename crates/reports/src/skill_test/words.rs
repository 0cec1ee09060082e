//! Names and numbers that all renderings of a test of skills share. Pure.

use super::{ArmResult, SkillEffect, SkillTestReport, SkillTestResult};
use selftest_harness::experiment::{Conclusion, format_p_value, format_signed};
use selftest_harness::outcome::skills::LoadingRate;
use selftest_harness::skill_test::{RuleOutcome, SkillArm};
use selftest_stats::Interval;
use selftest_text::escape::terminal;

/// Maximum length of a foreign name, in bytes.
pub(super) const MAX_NAME: usize = 120;

/// Names the arms; the branch has its own name.
pub(super) fn arm_name(report: &SkillTestReport, arm: &SkillArm) -> String {
    match arm {
        SkillArm::Without => "without".to_owned(),
        SkillArm::Base => match &report.base {
            Some(base) => terminal(&base.name, MAX_NAME),
            None => "base".to_owned(),
        },
        SkillArm::Here => "this branch".to_owned(),
        SkillArm::Again => "this branch, again".to_owned(),
        SkillArm::Lacking(sibling) => format!("lacking {}", terminal(sibling, MAX_NAME)),
    }
}

/// The name of a skill, with the model if several are compared.
pub(super) fn skill_name(skill: &SkillTestResult) -> String {
    let model = skill.model.as_ref().map(|model| format!(" by {}", terminal(model, MAX_NAME)));
    format!("{}{}", terminal(&skill.skill, MAX_NAME), model.unwrap_or_default())
}

/// The cells of an arm: passed, precision and recall of loading, time, tokens, cost.
pub(super) struct ArmCells {
    pub(super) passed: String,
    pub(super) loading: String,
    pub(super) time: String,
    pub(super) tokens: String,
    pub(super) cost: String,
}

impl ArmCells {
    pub(super) fn of(arm: &ArmResult, currency: Option<&str>) -> Self {
        let none = || "-".to_owned();
        // Decided trials are some of all trials, so that this cannot underflow.
        let undecided = arm.trials - arm.decided;
        let passed = match (arm.trials, undecided) {
            (0, _) => none(),
            (_, 0) => format!("{} of {}", arm.passed, arm.decided),
            _ => format!("{} of {}, {undecided} open", arm.passed, arm.decided),
        };
        let rate = |rate: &LoadingRate| match rate.share {
            Some(_) => format!("{} of {}", rate.count, rate.of),
            None => none(),
        };
        let loading = arm.rates.as_ref().map_or_else(none, |rates| {
            format!("{} right, {} found", rate(&rates.precision), rate(&rates.recall))
        });
        let cost = arm.mean_cost.map(|cost| format!("{cost:.4} {}", currency.unwrap_or_default()));
        Self {
            passed,
            loading,
            time: arm.mean_ms.map_or_else(none, |ms| format!("{:.1} s", ms / 1000.0)),
            tokens: arm.mean_tokens.map_or_else(none, |tokens| format!("{tokens:.0}")),
            cost: cost.map_or_else(none, |cost| cost.trim_end().to_owned()),
        }
    }
}

/// The headings of those cells.
pub(super) const HEADINGS: [&str; 5] = ["passed", "loading", "time", "tokens", "cost"];

/// The effects of a skill that were measured, by name.
pub(super) fn effects(skill: &SkillTestResult) -> Vec<(&'static str, &SkillEffect)> {
    if skill.blocked.is_some() {
        return Vec::new();
    }
    let all = [
        ("lift", &skill.lift),
        ("change", &skill.change),
        ("loading", &skill.loading),
        ("a/a", &skill.again),
    ];
    all.into_iter().filter_map(|(name, effect)| Some((name, effect.as_ref()?))).collect()
}

/// An effect in one line: `+50 points (95 % interval +12 to +88), p = 0.008: better`.
pub(super) fn effect_line(effect: &SkillEffect) -> String {
    let analysis = &effect.analysis;
    if analysis.conclusion == Conclusion::Blocked {
        return "blocked".to_owned();
    }
    let (score, passes) = (&analysis.score.measure, &analysis.pass_rate.measure);
    let ends = |interval: Option<Interval>, factor: f64, decimals: usize| {
        interval.map_or_else(String::new, |Interval { low, high }| {
            format!(
                " (95 % interval {} to {})",
                format_signed(factor * low, decimals),
                format_signed(factor * high, decimals)
            )
        })
    };
    let mut parts = Vec::new();
    if let Some(difference) = passes.difference {
        let p = analysis.these_cases.pass_rate.map(|test| format_p_value(test.p_value));
        let p = p.map(|p| format!(", {p}")).unwrap_or_default();
        let points = format_signed(100.0 * difference, 0);
        parts.push(format!("{points} points{}{p}", ends(passes.interval, 100.0, 0)));
    }
    if let Some(difference) = score.difference {
        let p = analysis.these_cases.score.map(|test| format_p_value(test.p_value));
        let p = p.map(|p| format!(", {p}")).unwrap_or_default();
        let difference = format_signed(difference, 2);
        parts.push(format!("score {difference}{}{p}", ends(score.interval, 1.0, 2)));
    }
    if parts.is_empty() {
        parts.push("no case has a verdict in both arms".to_owned());
    }
    format!("{}: {}", parts.join("; "), conclusion(analysis.conclusion))
}

/// A conclusion in a few words.
pub(super) const fn conclusion(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Helps => "better",
        Conclusion::Harms => "worse",
        Conclusion::NotEnoughEvidence => "not enough evidence of a difference",
        Conclusion::Blocked => "blocked",
    }
}

/// The outcome of a rule in one word.
pub(super) const fn outcome(outcome: RuleOutcome) -> &'static str {
    match outcome {
        RuleOutcome::Met => "met",
        RuleOutcome::Missed => "missed",
        RuleOutcome::Undecided => "undecided",
    }
}

/// The remarks about one skill: a false alarm, and siblings that interfere.
pub(super) fn remarks(skill: &SkillTestResult) -> Vec<String> {
    let mut remarks = Vec::new();
    let again = skill.again.as_ref().map(|effect| effect.analysis.conclusion);
    if matches!(again, Some(Conclusion::Helps | Conclusion::Harms)) {
        remarks.push(
            "a/a: the skill differs from itself, so differences of this agent prove little"
                .to_owned(),
        );
    }
    if !skill.siblings.is_empty() {
        let guilty: Vec<String> = skill
            .siblings
            .iter()
            .filter(|sibling| sibling.interferes)
            .map(|sibling| {
                let p = sibling.p_value.map(format_p_value).unwrap_or_default();
                let difference = sibling.effect.analysis.pass_rate.measure.difference;
                let points = format_signed(100.0 * difference.unwrap_or_default(), 0);
                format!("{} ({points} points, {p})", terminal(&sibling.sibling, MAX_NAME))
            })
            .collect();
        remarks.push(match guilty.as_slice() {
            [] => format!("none of {} siblings makes it worse", skill.siblings.len()),
            _ => format!("worse beside: {}", guilty.join(", ")),
        });
    }
    if let Some(why) = &skill.unknown_loading {
        remarks.push(format!("loading: {}", terminal(why, 300)));
        return remarks;
    }
    if let Some(rates) = skill.arm(&SkillArm::Here).and_then(|arm| arm.rates.as_ref()) {
        remarks.extend(rates.sentences().into_iter().take(1));
    }
    remarks
}
