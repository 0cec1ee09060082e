//! A run as the reward of a Harbor task: one JSON object of numbers.
//!
//! A reward is what one attempt of the agent is worth; Harbor itself averages over attempts. So it is
//! the share of first trials that passed: a case that passes only when it is run again (`flaky`) has
//! failed its attempt, and repeats are attempts of their own. It is there only if each planned case has
//! a verdict: a run that was not judged is not taken for one that failed, and one that was cut short
//! not for one that passed.

use serde_json::{Value, json};

use super::CiRunView;
use selftest_harness::outcome::CaseStatus;

/// Renders a run.
pub(super) fn render(run: &CiRunView<'_>) -> String {
    let statuses: Vec<CaseStatus> = run.cases().iter().map(|case| case.status).collect();
    format!("{:#}\n", document(&statuses, run.missing().len()))
}

fn document(statuses: &[CaseStatus], missing: usize) -> Value {
    let count = |is: fn(&CaseStatus) -> bool| statuses.iter().filter(|status| is(status)).count();
    let passed = count(|status| status.pass() == Some(true));
    let failed = count(|status| status.pass() == Some(false));
    let not_run =
        missing + count(|status| matches!(status, CaseStatus::NotRun | CaseStatus::Skipped));
    let undecided = statuses.len() + missing - passed - failed - not_run;
    let mut document = json!({
        "passed": passed,
        "failed": failed,
        "flaky": count(|status| *status == CaseStatus::Flaky),
        "undecided": undecided,
        "not_run": not_run,
    });
    if passed + failed > 0 && undecided + not_run == 0 {
        #[expect(clippy::cast_precision_loss, reason = "numbers of cases")]
        let reward = passed as f64 / (passed + failed) as f64;
        document["reward"] = json!(reward);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reward_is_of_cases_that_all_have_a_verdict() {
        let statuses = [CaseStatus::Passed, CaseStatus::Failed, CaseStatus::Flaky];
        assert_eq!(
            document(&[&statuses[..], &[CaseStatus::SutError]].concat(), 0),
            json!({"passed": 1, "failed": 3, "flaky": 1, "undecided": 0, "not_run": 0,
                   "reward": 0.25})
        );
        assert_eq!(
            document(&[&statuses[..], &[CaseStatus::Unscored]].concat(), 1),
            json!({"passed": 1, "failed": 2, "flaky": 1, "undecided": 1, "not_run": 1})
        );
    }

    #[test]
    fn what_has_no_verdict_is_no_reward() {
        assert_eq!(document(&[], 0).get("reward"), None);
        assert_eq!(document(&[CaseStatus::Unscored], 0).get("reward"), None);
        // 1 of 1 passed, and of the others nothing is known.
        assert_eq!(document(&[CaseStatus::Passed], 1).get("reward"), None);
        for open in [
            CaseStatus::GenerationFailed,
            CaseStatus::Unscored,
            CaseStatus::NotRun,
            CaseStatus::Skipped,
        ] {
            assert_eq!(document(&[CaseStatus::Passed, open], 0).get("reward"), None, "{open:?}");
        }
    }
}
