//! Tests for a difference on the very cases that were run, from the trials within each. Does not
//! generalise to other cases.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ALPHA;
use selftest_stats::{CaseTrials, MIN_DRAWS, PermutationTest, holm, permutation_test};

/// Fixed seed for random relabellings, so that the same data always gives the same p-value.
const SEED: u64 = 0;

/// Permutation tests within the cases, with Holm's correction if there are two of them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WithinCaseTests {
    /// Test of the overall scores. Absent if no case has one in both arms.
    pub score: Option<PermutationTest>,
    /// Test of passes.
    pub pass_rate: Option<PermutationTest>,
}

impl WithinCaseTests {
    /// Tests the scores and passes of each case's trials.
    pub(super) fn of(scores: &[CaseTrials], passes: &[CaseTrials]) -> Self {
        let mut score = permutation_test(scores, SEED, MIN_DRAWS);
        let mut pass_rate = permutation_test(passes, SEED, MIN_DRAWS);
        // One test needs no correction: checks alone give no scores.
        if let (Some(score), Some(pass_rate)) = (&mut score, &mut pass_rate) {
            let corrected = holm(&[score.p_value, pass_rate.p_value]);
            (score.p_value, pass_rate.p_value) = (corrected[0], corrected[1]);
        }
        Self { score, pass_rate }
    }

    /// Returns the directions in which scores and passes differ beyond chance; `Equal` if no
    /// difference is shown.
    pub(super) fn directions(&self) -> [Ordering; 2] {
        [self.score, self.pass_rate].map(|test| match test {
            Some(test) if test.p_value <= ALPHA => test.difference.total_cmp(&0.0),
            _ => Ordering::Equal,
        })
    }
}
