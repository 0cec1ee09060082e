//! Splits the change between two runs into the parts of the agent, of the judge and of the
//! infrastructure. Pure.
//!
//! The judge is measured on anchors: identical answers that it scored in both runs. Whatever moves
//! on them cannot be the agent's doing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::format_signed;
use crate::outcome::CaseResult;
use crate::outcome::CaseStatus;
use selftest_stats::{Interval, paired_difference, sign_test};
use selftest_text::wording::plural;

/// Mean distance of two scores of the same answer from which the judge has moved. The judges that
/// were measured differ from themselves by less than half of it.
const MOVED: f64 = 0.1;

/// Shift in one direction from which the judge has moved, if all anchors agree on the direction.
const SHIFTED: f64 = 0.02;

/// Share of anchors with another verdict from which the judge has moved.
const FLIPPED: f64 = 0.2;

/// One answer that a judge scored twice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Anchor {
    /// Overall scores, 0 to 1, before and now.
    pub scores: [f64; 2],
    /// True if the verdicts contradict each other.
    pub flipped: bool,
}

impl Anchor {
    /// Returns the anchor of a case whose recorded answers were judged again; `None` without a
    /// score before and now.
    pub fn of(case: &CaseResult) -> Option<Self> {
        let former = case.former?;
        let now = case.weakest_step()?.overall()?;
        let verdicts = (former.status.pass(), case.status().0.pass());
        Some(Self {
            scores: [former.overall?.get(), now.get()],
            flipped: matches!(verdicts, (Some(then), Some(now)) if then != now),
        })
    }

    fn shift(&self) -> f64 {
        self.scores[1] - self.scores[0]
    }
}

/// The changes of cases that both runs decided, each `now - before`, 0 to 1 in size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseShifts {
    /// Scores of judged cases whose answer changed or may have changed.
    pub judged: Vec<f64>,
    /// Shares of passed trials of cases that checks alone decide.
    pub checked: Vec<f64>,
    /// Number of judged cases with the same answer as before.
    pub same_answer: usize,
    /// Reasons of cases that the infrastructure kept from a result.
    pub not_run: Vec<String>,
}

/// A mean change with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EstimatedShift {
    /// The mean, −1 to 1.
    pub mean: f64,
    /// Its interval; absent with fewer than two values.
    pub interval: Option<Interval>,
}

impl std::fmt::Display for EstimatedShift {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = |value: f64| format_signed(value, 2);
        formatter.write_str(&number(self.mean))?;
        match self.interval {
            Some(Interval { low, high }) => {
                write!(formatter, " [{}, {}]", number(low), number(high))
            }
            None => Ok(()),
        }
    }
}

/// The change between two runs, by cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeAttribution {
    /// Change of the agent, per case. Absent if no case was decided in both runs, or if the judge
    /// is another one and no answer was scored by both.
    pub agent: Option<EstimatedShift>,
    /// Change of the judge on identical answers. Absent without anchors.
    pub judge: Option<EstimatedShift>,
    /// Number of anchors.
    pub anchors: u32,
    /// Number of anchors with a contradicting verdict.
    pub flipped: u32,
    /// True if the judge decides identical answers differently, beyond its noise.
    pub judge_moved: bool,
    /// Cases without a result because of the infrastructure.
    pub not_run: u32,
    /// The first reason of those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_run_reason: Option<String>,
}

impl ChangeAttribution {
    /// Splits the change. `same_judge` is true if the judge of both runs has the same weights,
    /// prompt and rubric; without anchors it then counts as unchanged.
    ///
    /// The agent's part is the mean change of the cases after the judge's mean shift is taken off
    /// those that it scored. The interval combines both by the method of variance estimates
    /// recovery: Zou and Donner, "Construction of confidence limits about effect measures" (2008).
    ///
    /// Returns `None` if there is nothing to say.
    pub fn of(shifts: &CaseShifts, anchors: &[Anchor], same_judge: bool) -> Option<Self> {
        let moves: Vec<f64> = anchors.iter().map(Anchor::shift).collect();
        let judge = paired_difference(&moves)
            .map(|found| EstimatedShift { mean: found.mean, interval: found.interval });
        let flipped = anchors.iter().filter(|anchor| anchor.flipped).count();
        let judge_moved = has_moved(&moves, flipped);
        let total = shifts.judged.len() + shifts.checked.len() + shifts.same_answer;
        // A judge that is neither the same nor measured may have caused any change of its scores.
        let separable = judge.is_some() || same_judge || shifts.judged.is_empty();
        let agent = (total > 0 && separable).then(|| agent_shift(shifts, judge, total));
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let attribution = Self {
            agent,
            judge,
            anchors: count(anchors.len()),
            flipped: count(flipped),
            judge_moved,
            not_run: count(shifts.not_run.len()),
            not_run_reason: shifts.not_run.first().cloned(),
        };
        let says_something = total > 0 || judge.is_some() || attribution.not_run > 0;
        says_something.then_some(attribution)
    }

    /// Returns the split in one line, for reports. A judge that moved is named first.
    pub fn sentence(&self) -> String {
        let agent = match self.agent {
            Some(agent) => format!("agent {agent}"),
            None => "agent unknown: another judge, and no answer was scored by both".to_owned(),
        };
        let on = plural(self.anchors, "anchor");
        let judge = match self.judge {
            Some(judge) if self.judge_moved => format!(
                "the judge moved: {judge} on {on}, answers that did not change; {} of them got the \
                 opposite verdict",
                self.flipped
            ),
            Some(judge) => format!("judge {judge} on {on}"),
            None => "judge not measured: no anchors".to_owned(),
        };
        let mut parts = if self.judge_moved { vec![judge, agent] } else { vec![agent, judge] };
        if self.not_run > 0 {
            let why = self.not_run_reason.as_ref().map(|why| format!(": {why}"));
            let cases = plural(self.not_run, "case");
            parts.push(format!("{cases} not run{}", why.unwrap_or_default()));
        }
        parts.join("; ")
    }
}

/// Returns true if the scores of identical answers differ by more than noise.
fn has_moved(moves: &[f64], flipped: usize) -> bool {
    let Some(mean) = selftest_stats::mean(moves) else { return false };
    let sizes: Vec<f64> = moves.iter().map(|shift| shift.abs()).collect();
    let distance = selftest_stats::mean(&sizes).unwrap_or(0.0);
    let (up, down): (Vec<f64>, Vec<f64>) =
        moves.iter().filter(|shift| **shift != 0.0).partition(|shift| shift.is_sign_positive());
    let count = |moved: &[f64]| u32::try_from(moved.len()).unwrap_or(u32::MAX);
    // A chance of one in a hundred, so that noise is not taken for a move.
    let is_shift = sign_test(count(&up), count(&down)) < 0.01 && mean.abs() >= SHIFTED;
    #[expect(clippy::cast_precision_loss, reason = "counts of cases are far below 2^53")]
    let share = flipped as f64 / moves.len() as f64;
    is_shift || distance >= MOVED || (flipped >= 2 && share >= FLIPPED)
}

#[expect(clippy::cast_precision_loss, reason = "counts of cases are far below 2^53")]
fn agent_shift(shifts: &CaseShifts, judge: Option<EstimatedShift>, total: usize) -> EstimatedShift {
    let judged = shifts.judged.len() as f64 / total as f64;
    let own: Vec<f64> = shifts.judged.iter().chain(&shifts.checked).copied().collect();
    // The same answers as before are no change of the agent.
    let share = own.len() as f64 / total as f64;
    let Some(seen) = paired_difference(&own) else {
        return EstimatedShift { mean: 0.0, interval: Some(Interval { low: 0.0, high: 0.0 }) };
    };
    let (offset, judge_interval) = judge.map_or((0.0, None), |judge| {
        let scaled = |interval: Interval| Interval {
            low: judged * interval.low,
            high: judged * interval.high,
        };
        (judged * judge.mean, judge.interval.map(scaled))
    });
    let mean = share * seen.mean - offset;
    let interval = seen.interval.map(|found| {
        let none = Interval { low: offset, high: offset };
        let judge = judge_interval.unwrap_or(none);
        let (low, high) = (share * found.low, share * found.high);
        let centre = share * seen.mean;
        // A share or a score cannot change by more than one.
        Interval {
            low: (mean - (centre - low).hypot(judge.high - offset)).max(-1.0),
            high: (mean + (high - centre).hypot(offset - judge.low)).min(1.0),
        }
    });
    EstimatedShift { mean, interval }
}

/// Returns the reason of a case that the infrastructure kept from a result; `None` if it has a
/// result, or if the agent or the user is the cause.
pub fn infrastructure_failure(case: &CaseResult) -> Option<String> {
    let (status, why) = case.status();
    let why = why.filter(|_| status == CaseStatus::NotRun)?;
    Some(selftest_text::one_line(&why, 120))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in 0..1 that look random.
    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            #[expect(clippy::cast_precision_loss, reason = "53 bits")]
            let value = (state >> 11) as f64 / (1_u64 << 53) as f64;
            value
        }
    }

    fn anchor(before: f64, now: f64) -> Anchor {
        Anchor { scores: [before, now], flipped: (before >= 0.7) != (now >= 0.7) }
    }

    #[test]
    fn a_swapped_judge_is_blamed_each_time_and_the_agent_never() {
        for seed in 0..100 {
            let mut random = noise(seed + 1);
            // A hundred answers that did not change; another judge scores them independently,
            // lower, higher, or all alike.
            let anchors: Vec<Anchor> = (0..100)
                .map(|_| {
                    let before = random();
                    let now = match seed % 4 {
                        0 => random(),
                        1 => (before - 0.05).max(0.0),
                        2 => 0.5,
                        _ => f64::midpoint(before, 1.0),
                    };
                    anchor(before, now)
                })
                .collect();
            let shifts = CaseShifts { same_answer: 100, ..CaseShifts::default() };
            let found = ChangeAttribution::of(&shifts, &anchors, false).unwrap();
            assert!(found.judge_moved, "{seed}: {found:?}");
            assert_eq!(found.agent.unwrap().mean.abs(), 0.0);
        }
    }

    #[test]
    fn an_agent_that_got_worse_is_never_charged_to_the_judge() {
        let mut covered = 0;
        for seed in 0..200 {
            let mut random = noise(seed + 7);
            // A judge that differs from itself by up to 0.06 on the same answer.
            let mut wobble = |centre: f64| centre + 0.12 * (random() - 0.5);
            let anchors: Vec<Anchor> = (0..10).map(|_| anchor(0.85, wobble(0.85))).collect();
            let judged: Vec<f64> = (0..20).map(|_| wobble(-0.1)).collect();
            let shifts = CaseShifts { judged, ..CaseShifts::default() };
            let found = ChangeAttribution::of(&shifts, &anchors, true).unwrap();
            assert!(!found.judge_moved, "{seed}: {found:?}");
            let interval = found.agent.unwrap().interval.unwrap();
            assert!(interval.high < 0.0, "{seed}: {interval:?}");
            covered += u32::from(interval.low <= -0.1 && interval.high >= -0.1);
        }
        // A 95 % interval; by Wilson 186 of 200 are its lower end.
        assert!(covered >= 186, "{covered}");
    }

    #[test]
    fn the_judges_part_is_taken_off_the_cases_that_it_scored() {
        let anchors = vec![anchor(0.9, 0.7); 4];
        // Half of the cases were decided by checks, and did not change.
        let shifts = CaseShifts {
            judged: vec![-0.2, -0.2],
            checked: vec![0.0, 0.0],
            ..CaseShifts::default()
        };
        let found = ChangeAttribution::of(&shifts, &anchors, true).unwrap();
        assert!(found.agent.unwrap().mean.abs() < 1e-12, "{found:?}");
        assert!(found.judge_moved);
    }

    #[test]
    fn sentences() {
        let shifts = CaseShifts {
            judged: vec![-0.1, -0.06],
            not_run: vec!["server".to_owned(); 3],
            ..CaseShifts::default()
        };
        let still = ChangeAttribution::of(&shifts, &[anchor(0.8, 0.8); 10], true).unwrap();
        assert_eq!(
            still.sentence(),
            "agent -0.08 [-0.33, +0.17]; judge 0.00 [0.00, 0.00] on 10 anchors; 3 cases not run: \
             server"
        );
        let all_run = CaseShifts { not_run: Vec::new(), ..shifts.clone() };
        let all_run = ChangeAttribution::of(&all_run, &[], true).unwrap();
        assert!(all_run.sentence().ends_with("judge not measured: no anchors"), "{all_run:?}");
        let moved = ChangeAttribution::of(&shifts, &[anchor(0.8, 0.3); 10], true).unwrap();
        assert!(moved.sentence().starts_with("the judge moved: -0.50"), "{}", moved.sentence());
        let other = ChangeAttribution::of(&shifts, &[], false).unwrap();
        assert!(other.sentence().starts_with("agent unknown"), "{}", other.sentence());
        assert_eq!(ChangeAttribution::of(&CaseShifts::default(), &[], true), None);
    }
}
