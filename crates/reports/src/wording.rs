//! Texts for results of runs: pass rates, intervals, arms, suites, outcomes. Pure.

use selftest_stats::Interval;
use selftest_stats::score::Score;
use selftest_text::escape::terminal;
use selftest_text::wording::{cases, duration, percent, plural, trials};

use selftest_harness::event::{ExperimentRun, NO_JUDGE, RejudgedRun, SuiteRun};
use selftest_harness::experiment::Arm;
use selftest_harness::outcome::usage::RoleUsage;
use selftest_harness::outcome::{CaseStatus, RunOutcome, RunSummary};
use selftest_harness::sut::Isolation;

/// Formats as `4/5 (80%)`, see docs/spec/selftest.md#markdown-report, or `no verdict`.
pub fn pass_rate(summary: &RunSummary) -> String {
    match summary.pass_rate {
        Some(rate) => {
            format!("{}/{} ({}%)", summary.passed, summary.passed + summary.failed, percent(rate))
        }
        None => "no verdict".to_owned(),
    }
}

/// Describes the interval of the pass rate, with a remark if it is wide; `None` without a verdict.
pub fn interval(summary: &RunSummary) -> Option<String> {
    // With a wider interval, a change of ten points in the pass rate cannot be detected.
    const NARROW_INTERVAL: f64 = 0.2;
    let Interval { low, high } = summary.pass_rate_interval?;
    let ends = format!("95 % interval {:.0} % to {:.0} %", low * 100.0, high * 100.0);
    if high - low <= NARROW_INTERVAL {
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

/// Describes how many cases have no verdict and how many were not run, if any.
pub fn undecided(summary: &RunSummary) -> Vec<String> {
    let not_run = summary.count(CaseStatus::NotRun) + summary.count(CaseStatus::Skipped);
    // The summary counts cases that were not run among those without a verdict.
    let unscored = summary.unscored.saturating_sub(not_run);
    let flaky = summary.count(CaseStatus::Flaky);
    let words = [
        (flaky, "flaky, counted as failed"),
        (unscored, "without a verdict"),
        (not_run, "not run"),
    ];
    let counted = words.into_iter().filter(|(count, _)| *count > 0);
    counted.map(|(count, words)| format!("{} {words}", cases(count))).collect()
}

/// Describes how many results were reused from an earlier run; `None` if all cases were run.
pub fn unchanged(summary: &RunSummary) -> Option<String> {
    let count = summary.unchanged;
    (count > 0).then(|| format!("{} unchanged", cases(count)))
}

/// Describes the arm of an experiment.
pub fn arm(experiment: &ExperimentRun) -> String {
    let with = match experiment.arm {
        Arm::Control => "without",
        Arm::Treatment => "with",
    };
    format!("{with} the skill {}", experiment.skill)
}

/// Describes the experiment and the arm.
pub fn experiment(experiment: &ExperimentRun) -> String {
    let digest: String = experiment.skill_digest.chars().take(12).collect();
    format!(
        "Experiment: {} (digest {digest}); the other arm is {}",
        arm(experiment),
        experiment.other_run_id
    )
}

/// Describes a suite: its shortened digest, its origin, and the number of repeats.
pub fn suite(suite: &SuiteRun) -> String {
    let digest: String = suite.digest.chars().take(12).collect();
    let from = suite.run_id.as_ref().map(|run| format!(", frozen from {run}")).unwrap_or_default();
    let repeats = match suite.repeats {
        0 | 1 => String::new(),
        repeats => format!(", each case {repeats} times"),
    };
    format!("{} (digest {digest}{from}{repeats})", suite.path)
}

/// Describes the run whose answers were judged again.
pub fn rejudged(rejudged: &RejudgedRun) -> String {
    format!("answers of {}, judged before by {}", rejudged.run_id, rejudged.judge)
}

/// Summarises how many protections were enforced.
pub fn enforcement(isolation: &Isolation) -> String {
    let enforced = plural(isolation.enforced.len() as u64, "protection");
    match isolation.not_enforced.len() {
        0 => format!("{enforced} enforced"),
        missing => format!("{enforced} enforced, {missing} not"),
    }
}

/// Returns the vote of a panel judge on a case.
pub const fn vote(pass: Option<bool>) -> &'static str {
    match pass {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "no score",
    }
}

/// Describes the usage of a role on one line; costs only if prices have a currency.
pub fn usage(used: &RoleUsage, currency: Option<&str>) -> String {
    let mut words = Vec::new();
    if used.calls > 0 {
        words.push(plural(used.calls, "model call"));
        if used.prompt_tokens > 0 {
            words.push(format!("{} tokens in and {} out", tokens_in(used), tokens_out(used)));
        }
        words.push(format!("{} of model time", duration(used.model_ms)));
    }
    if used.undivided_tokens > 0 {
        words.push(format!("{} of the system under test", plural(used.undivided_tokens, "token")));
    }
    words.extend(cost(used, currency));
    words.join(", ")
}

/// Returns the number of input tokens, or `-` if unknown.
pub(super) fn tokens_in(used: &RoleUsage) -> String {
    counted(used, used.prompt_tokens)
}

/// Returns the number of output tokens, or `-` if unknown.
pub(super) fn tokens_out(used: &RoleUsage) -> String {
    counted(used, used.completion_tokens)
}

fn counted(used: &RoleUsage, tokens: u64) -> String {
    match (tokens, used.uncounted_calls) {
        (0, _) => "-".to_owned(),
        (_, 0) => tokens.to_string(),
        // Calls without usage data make the sum a lower bound.
        _ => format!("at least {tokens}"),
    }
}

/// Formats the cost with its currency; `None` if no call has a price.
pub(super) fn cost(used: &RoleUsage, currency: Option<&str>) -> Option<String> {
    let (amount, currency) = (used.cost?, terminal(currency?, 12));
    let amount = match amount {
        0.0 => "0".to_owned(),
        ..0.0001 => return Some(format!("less than 0.0001 {currency}")),
        ..1.0 => format!("{amount:.4}"),
        _ => format!("{amount:.2}"),
    };
    // The cost of tokens used by a program under test is unknown.
    let is_all = used.unpriced_calls == 0 && used.undivided_tokens == 0;
    let least = if is_all { "" } else { "at least " };
    Some(format!("{least}{amount} {currency}"))
}

/// Formats the cost for a table, or `-` if unknown.
pub(super) fn cost_cell(used: &RoleUsage, currency: &str) -> String {
    cost(used, Some(currency)).unwrap_or_else(|| "-".to_owned())
}

/// Names the judge, as in the report.
pub fn judged(judge: &str) -> String {
    if judge == NO_JUDGE { "without a judge".to_owned() } else { format!("judged by {judge}") }
}

/// Formats a share in percent, or `-`.
pub(super) fn rate(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{} %", percent(share)))
}

/// Formats the share of a count in percent, or `-` if there is nothing to share.
pub fn share(count: u32, of: u32) -> String {
    rate((of > 0).then(|| f64::from(count) / f64::from(of)))
}

/// Formats a score, or `-`.
pub fn score(score: Option<Score>) -> String {
    score.map_or_else(|| "-".to_owned(), |score| score.to_string())
}

/// Joins IDs, each once and at most `most`: `a, b (3 times) and c`.
pub(super) fn listed<'a>(ids: impl Iterator<Item = &'a str>, most: usize) -> Option<String> {
    let mut counts: Vec<(&str, u32)> = Vec::new();
    for id in ids {
        match counts.iter_mut().find(|(known, _)| *known == id) {
            Some((_, count)) => *count += 1,
            None => counts.push((id, 1)),
        }
    }
    let word = |(id, count): &(&str, u32)| match count {
        1 => (*id).to_owned(),
        _ => format!("{id} ({count} times)"),
    };
    let words: Vec<String> = counts.iter().map(word).collect();
    match &words[..] {
        [] => None,
        [only] => Some(only.clone()),
        [rest @ .., last] if words.len() <= most => Some(format!("{} and {last}", rest.join(", "))),
        _ => Some(format!("{} and {} more", words[..most].join(", "), words.len() - most)),
    }
}

/// Describes an outcome; `None` means that the run has not ended.
pub const fn outcome(outcome: Option<RunOutcome>) -> &'static str {
    match outcome {
        Some(RunOutcome::Passed) => "passed",
        Some(RunOutcome::Failed) => "failed",
        Some(RunOutcome::Inconclusive) => "inconclusive",
        Some(RunOutcome::ModelUnavailable) => "a model or server was unavailable",
        Some(RunOutcome::NothingRan) => "nothing ran",
        Some(RunOutcome::Interrupted) => "interrupted",
        None => "not finished",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_stats::wilson;

    #[test]
    fn money_is_told_only_where_it_is_known() {
        let used = |cost, unpriced_calls| RoleUsage {
            calls: 2,
            prompt_tokens: 900,
            completion_tokens: 70,
            model_ms: 1_500,
            cost,
            unpriced_calls,
            ..RoleUsage::default()
        };
        let words = "2 model calls, 900 tokens in and 70 out, 1.5 s of model time";
        assert_eq!(usage(&used(None, 2), Some("USD")), words);
        assert_eq!(usage(&used(Some(0.5), 0), None), words);
        let told = |cost, unpriced| super::cost(&used(cost, unpriced), Some("EUR")).unwrap();
        assert_eq!(told(Some(0.01234), 0), "0.0123 EUR");
        assert_eq!(told(Some(12.345), 1), "at least 12.35 EUR");
        assert_eq!(told(Some(0.000_01), 0), "less than 0.0001 EUR");
        assert_eq!(told(Some(0.0), 0), "0 EUR", "a stated price of nothing is known");
        let uncounted = RoleUsage { uncounted_calls: 1, ..used(None, 1) };
        assert!(usage(&uncounted, None).contains("at least 900 tokens in"));
        let stated = RoleUsage { undivided_tokens: 120, ..RoleUsage::default() };
        let partly = RoleUsage { undivided_tokens: 5, ..used(Some(0.5), 0) };
        assert_eq!(super::cost(&partly, Some("EUR")).unwrap(), "at least 0.5000 EUR");
        assert_eq!(usage(&stated, None), "120 tokens of the system under test");
    }

    #[test]
    fn small_runs_say_so() {
        let summary = |passed, failed| RunSummary {
            passed,
            failed,
            pass_rate_interval: wilson(passed, passed + failed),
            ..RunSummary::default()
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
        let repeated = RunSummary { repeats: Some(5), ..summary(8, 2) };
        assert!(
            interval(&repeated)
                .unwrap()
                .ends_with("; 10 trials of 2 cases are too few to tell small differences")
        );
    }
}
