//! Numbers in words: shares, intervals, durations, dates, plurals. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::event::{ExperimentRun, SuiteRun};
use crate::improve::experiment::Arm;
use crate::outcome::{Outcome, Summary};
use crate::score::Score;
use crate::stats::Interval;

/// A share in whole per cent. Only all is 100 and only none is 0.
pub(crate) fn percent(share: f64) -> String {
    let rounded = (share * 100.0).round();
    let honest = if share > 0.0 && share < 1.0 { rounded.clamp(1.0, 99.0) } else { rounded };
    format!("{honest:.0}")
}

/// `4/5 (80%)` as in seed 001, or `no verdict`.
pub(crate) fn pass_rate(summary: &Summary) -> String {
    match summary.pass_rate {
        Some(rate) => {
            format!("{}/{} ({}%)", summary.passed, summary.passed + summary.failed, percent(rate))
        }
        None => "no verdict".to_owned(),
    }
}

/// What the pass rate can and cannot say; `None` without a verdict.
pub(crate) fn interval(summary: &Summary) -> Option<String> {
    // Wider than this, a change of ten points in the pass rate cannot be seen.
    const TELLING: f64 = 0.2;
    let Interval { low, high } = summary.pass_rate_interval?;
    let ends = format!("95 % interval {:.0} % to {:.0} %", low * 100.0, high * 100.0);
    if high - low <= TELLING {
        return Some(ends);
    }
    let decided = summary.passed + summary.failed;
    let verb = if decided == 1 { "is" } else { "are" };
    let trials = match summary.repeats {
        Some(repeats) => trials(decided, decided.div_ceil(repeats.max(1))),
        None => cases(decided),
    };
    Some(format!("{ends}; {trials} {verb} too few to tell small differences"))
}

/// `10 trials of 2 cases`.
pub(crate) fn trials(count: u32, of: u32) -> String {
    format!("{} of {}", plural(count, "trial"), cases(of))
}

/// Which arm of an experiment a run is.
pub(crate) fn arm(experiment: &ExperimentRun) -> String {
    let with = match experiment.arm {
        Arm::Control => "without",
        Arm::Treatment => "with",
    };
    format!("{with} the skill {}", experiment.skill)
}

/// Which arm of which experiment a run is.
pub(crate) fn experiment(experiment: &ExperimentRun) -> String {
    let digest: String = experiment.skill_digest.chars().take(12).collect();
    format!(
        "Experiment: {} (digest {digest}); the other arm is {}",
        arm(experiment),
        experiment.other_run_id
    )
}

/// A word of a command line, quoted where a shell would take it for anything else.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A suite with its digest in short, where it comes from, and how often its cases are run.
pub(crate) fn suite(suite: &SuiteRun) -> String {
    let digest: String = suite.digest.chars().take(12).collect();
    let from = suite.run_id.as_ref().map(|run| format!(", frozen from {run}")).unwrap_or_default();
    let repeats = match suite.repeats {
        0 | 1 => String::new(),
        repeats => format!(", each case {repeats} times"),
    };
    format!("{} (digest {digest}{from}{repeats})", suite.path)
}

/// `1 case`, `2 cases`.
pub(crate) fn cases(count: u32) -> String {
    plural(count, "case")
}

/// A count with its noun.
pub fn plural(count: impl Into<u64>, noun: &str) -> String {
    let count: u64 = count.into();
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// `850 ms`, `12.3 s`, `4 min 05 s`.
pub(crate) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => {
            // Tenths, rounded down, so that nothing below a minute shows as 60.0 s.
            format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100)
        }
        _ => format!("{} min {:02} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

/// `2026-02-06 12:34:56`, in UTC.
pub(crate) fn date_time(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// `2026-02-06`, in UTC.
pub(crate) fn date(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d").to_string()
}

/// A score, or `-` where there is none.
pub(crate) fn score(score: Option<Score>) -> String {
    score.map_or_else(|| "-".to_owned(), |score| score.to_string())
}

/// An outcome for people; `None` is a run that has not ended.
pub(crate) const fn outcome(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Passed) => "passed",
        Some(Outcome::Failed) => "failed",
        Some(Outcome::Inconclusive) => "inconclusive",
        Some(Outcome::NothingRan) => "nothing ran",
        Some(Outcome::Interrupted) => "interrupted",
        None => "not finished",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::wilson;

    #[test]
    fn only_all_is_a_hundred_per_cent() {
        let shown = [0.0, 0.001, 0.8, 0.999, 1.0].map(percent);
        assert_eq!(shown, ["0", "1", "80", "99", "100"]);
    }

    #[test]
    fn durations() {
        let shown = [850, 12_399, 59_999, 245_000].map(duration);
        assert_eq!(shown, ["850 ms", "12.3 s", "59.9 s", "4 min 05 s"]);
    }

    #[test]
    fn small_runs_say_so() {
        let summary = |passed, failed| Summary {
            passed,
            failed,
            pass_rate_interval: wilson(passed, passed + failed),
            ..Summary::default()
        };
        assert_eq!(
            interval(&summary(4, 1)).unwrap(),
            "95 % interval 38 % to 96 %; 5 cases are too few to tell small differences"
        );
        assert_eq!(
            interval(&summary(1, 0)).unwrap(),
            "95 % interval 21 % to 100 %; 1 case is too few to tell small differences"
        );
        assert_eq!(interval(&summary(400, 100)).unwrap(), "95 % interval 76 % to 83 %");
        assert_eq!(interval(&summary(0, 0)), None);
        let repeated = Summary { repeats: Some(5), ..summary(8, 2) };
        assert!(
            interval(&repeated)
                .unwrap()
                .ends_with("; 10 trials of 2 cases are too few to tell small differences")
        );
    }
}
