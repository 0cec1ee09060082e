//! A run as the reward of a Harbor task: one JSON object of numbers.
//!
//! `reward` is the share of the cases with a verdict that passed. Without any verdict there is none, so
//! that a run that was not judged is not taken for one that failed.

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
    if passed + failed > 0 {
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
    fn what_has_no_verdict_is_no_reward() {
        let statuses = [CaseStatus::Passed, CaseStatus::Failed, CaseStatus::Unscored];
        let counts = document(&statuses, 1);
        assert_eq!(
            counts,
            json!({"passed": 1, "failed": 1, "undecided": 1, "not_run": 1, "reward": 0.5})
        );
        assert_eq!(document(&[CaseStatus::Unscored], 0).get("reward"), None);
    }
}
