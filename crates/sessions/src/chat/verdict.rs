//! Reads the verdict of a benchmark's verifier: the `reward` of tau-bench or the `scores` of
//! Inspect. Each becomes the last event of its session. A number other than 0 or 1 is shown but
//! decides nothing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::event::{Event, Mark, Origin, Role};
use crate::feed::Feed;
use crate::wire::Object;
use selftest_text::one_line;

/// Maximum number of scorers kept per sample.
const MAX_SCORERS: usize = 16;

/// A score of Inspect. Its explanation may contain the answer and is dropped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Score {
    value: Value,
}

/// Sends the reward of a run: 1 for success, 0 for failure. The meaning of other numbers depends on
/// the benchmark.
pub(super) fn send_reward(reward: &Value, feed: &mut Feed<'_>) {
    if reward.is_number() || reward.is_boolean() {
        send(format!("reward: {reward}"), yes_or_no(reward), feed);
    }
}

/// Sends the scores of a sample. Of several scorers, only *correct* and *incorrect* decide, because
/// a number may be a count and *true* may be a refusal.
pub(super) fn send_scores(scores: Object<BTreeMap<String, Object<Score>>>, feed: &mut Feed<'_>) {
    let scores = scores.0.unwrap_or_default();
    let is_only = scores.len() == 1;
    for (scorer, Object(score)) in scores.into_iter().take(MAX_SCORERS) {
        let value = score.unwrap_or_default().value;
        let passed = match &value {
            // Inspect's CORRECT and INCORRECT.
            Value::String(word) if word == "C" => Some(true),
            Value::String(word) if word == "I" => Some(false),
            value if is_only => yes_or_no(value),
            _ => None,
        };
        let said = match &value {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        };
        send(format!("{}: {}", one_line(&scorer, 80), one_line(&said, 80)), passed, feed);
    }
}

fn yes_or_no(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(passed) => Some(*passed),
        Value::Number(number) => match number.as_f64() {
            Some(1.0) => Some(true),
            Some(0.0) => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn send(text: String, passed: Option<bool>, feed: &mut Feed<'_>) {
    // A session that consists only of a verdict is useless.
    if feed.is_empty() {
        return;
    }
    let mark =
        passed.map(|passed| if passed { Mark::VerifierPassed } else { Mark::VerifierFailed });
    let (role, origin) = (Role::System, Origin::Harness);
    feed.event(Event { role, origin, text: text.into(), mark, ..Event::default() });
}
