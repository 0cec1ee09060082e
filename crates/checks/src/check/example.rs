//! A check of its own value: the share of capitals among the letters of an answer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::CheckObservation;
use super::decide::FactStatement;
use super::kind::{CheckParameter, mapping};
use selftest_stats::score::Score;

/// The value of the check, as suites write it: `{at_most: 0.2}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapitalShare {
    at_most: Score,
}

impl CheckParameter for CapitalShare {
    fn value_schema() -> Value {
        let share = json!({"type": "number", "minimum": 0.0, "maximum": 1.0});
        mapping(&["at_most"], &json!({ "at_most": share }))
    }
}

/// Decides the check. Without letters there is no share, and the check stays undecided.
pub(super) fn capitals(wanted: &CapitalShare, seen: &CheckObservation<'_>) -> FactStatement {
    let letters = seen.output.chars().filter(|letter| letter.is_alphabetic());
    let (capitals, others): (Vec<char>, Vec<char>) = letters.partition(|it| it.is_uppercase());
    let all = capitals.len() + others.len();
    if all == 0 {
        return FactStatement::undecided("the answer has no letters");
    }
    #[expect(clippy::cast_precision_loss, reason = "answers are far shorter than 2^52")]
    let share = capitals.len() as f64 / all as f64;
    FactStatement::new(
        share <= wanted.at_most.get(),
        format!("{share:.2} of the letters are capitals"),
    )
    .with_demand(format!("at most {} expected", wanted.at_most))
}
