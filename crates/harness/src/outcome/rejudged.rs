//! Compares the verdicts on answers that were judged twice: what changed, and whether the judges
//! agree. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agreement::JudgeAgreement;
use super::case::CaseResult;
use selftest_text::wording::cases;

/// Changes in the verdicts of a rejudged run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictChanges {
    /// Number of cases judged again so far.
    pub cases: u32,
    /// Failed before, passed now.
    pub fail_to_pass: u32,
    /// Passed before, failed now.
    pub pass_to_fail: u32,
    /// Without a verdict before, with one now.
    pub gained: u32,
    /// With a verdict before, without one now.
    pub lost: u32,
    /// Agreement of the two judges on the cases that scores decided both times. Absent if there is
    /// no such case.
    pub agreement: Option<JudgeAgreement>,
}

impl VerdictChanges {
    /// Compares the cases that have an earlier verdict.
    pub fn of<'a>(results: impl IntoIterator<Item = &'a CaseResult>) -> Self {
        let (mut changes, mut pairs) = (Self::default(), Vec::new());
        for case in results {
            let Some(former) = case.former else { continue };
            let (then, now) = (former.status.pass(), case.status().0.pass());
            changes.cases += 1;
            match (then, now) {
                (Some(false), Some(true)) => changes.fail_to_pass += 1,
                (Some(true), Some(false)) => changes.pass_to_fail += 1,
                (None, Some(_)) => changes.gained += 1,
                (Some(_), None) => changes.lost += 1,
                (Some(true), Some(true)) | (Some(false), Some(false)) | (None, None) => {}
            }
            // Agreement is about judges, so cases decided by checks or errors are left out.
            if let (Some(then), Some(now)) = (then, now)
                && former.by_judge
                && case.is_by_judge()
            {
                pairs.push((then, now));
            }
        }
        changes.agreement = JudgeAgreement::of(&pairs);
        changes
    }

    /// Returns the changes in one line, for reports.
    pub fn sentence(&self) -> String {
        let flips = self.pass_to_fail + self.fail_to_pass;
        let mut parts = vec![
            format!("{} pass to fail", self.pass_to_fail),
            format!("{} fail to pass", self.fail_to_pass),
        ];
        let others = [(self.gained, "without one before"), (self.lost, "without one now")];
        parts.extend(
            others
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, words)| format!("{count} {words}")),
        );
        let agreement = match &self.agreement {
            Some(found) => format!("both judges agree {}", found.describe()),
            None => "no case was decided by both judges".to_owned(),
        };
        let of = cases(self.cases);
        format!("verdicts changed: {flips} of {of} ({}); {agreement}", parts.join(", "))
    }
}
