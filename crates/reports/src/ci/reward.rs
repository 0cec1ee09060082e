//! A run as the reward of a Harbor task: one JSON object of numbers.
//!
//! `reward` is the share of the cases that passed. It is there only if each planned case has a verdict:
//! a run that was not judged is not taken for one that failed, and one that was cut short not for one
//! that passed.

use serde_json::{Value, json};

use super::run_view::CiRunView;
use selftest_harness::outcome::CaseStatus;

/// Renders a run.
pub(super) fn render(run: &CiRunView<'_>) -> String {
    let statuses: Vec<CaseStatus> = run.cases().iter().map(|case| case.status).collect();
    format!("{:#}\n", document(&statuses, run.missing().len()))
}

fn document(statuses: &[CaseStatus], missing: usize) -> Value {
    let (mut passed, mut failed, mut undecided, mut not_run) = (0usize, 0usize, 0usize, missing);
    for status in statuses {
        *match status {
            CaseStatus::Passed | CaseStatus::Flaky => &mut passed,
            CaseStatus::Failed
            | CaseStatus::SutError
            | CaseStatus::SutTimeout
            | CaseStatus::IsolationViolation => &mut failed,
            CaseStatus::GenerationFailed | CaseStatus::Unscored => &mut undecided,
            CaseStatus::NotRun | CaseStatus::Skipped => &mut not_run,
        } += 1;
    }
    let mut document = json!({
        "passed": passed,
        "failed": failed,
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
            json!({"passed": 2, "failed": 2, "undecided": 0, "not_run": 0, "reward": 0.5})
        );
        assert_eq!(
            document(&[&statuses[..], &[CaseStatus::Unscored]].concat(), 1),
            json!({"passed": 2, "failed": 1, "undecided": 1, "not_run": 1})
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
