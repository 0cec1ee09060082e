//! Reads the verdict of a benchmark's verifier: the `reward` of tau-bench or the `scores` of
//! Inspect. Each becomes the last event of its session. A number other than 0 or 1 is shown but
//! decides nothing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::event::{Event, EventMark, EventOrigin, EventRole};
use crate::feed::SessionFeed;
use crate::wire::LenientObject;
use selftest_text::one_line;

/// Maximum number of scorers kept per sample.
const MAX_SCORERS: usize = 16;

/// A score of Inspect. Its explanation may contain the answer and is dropped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InspectScore {
    value: Value,
}

/// Sends the reward of a run: 1 for success, 0 for failure. The meaning of other numbers depends on
/// the benchmark.
pub(super) fn send_reward(reward: &Value, feed: &mut SessionFeed<'_>) {
    if reward.is_number() || reward.is_boolean() {
        send_verdict(format!("reward: {reward}"), parse_verdict(reward), feed);
    }
}

/// Sends the scores of a sample. Of several scorers, only *correct* and *incorrect* decide, because
/// a number may be a count and *true* may be a refusal.
pub(super) fn send_scores(
    scores: LenientObject<BTreeMap<String, LenientObject<InspectScore>>>,
    feed: &mut SessionFeed<'_>,
) {
    let scores = scores.0.unwrap_or_default();
    let is_only = scores.len() == 1;
    for (scorer, LenientObject(score)) in scores.into_iter().take(MAX_SCORERS) {
        let value = score.unwrap_or_default().value;
        let passed = match &value {
            // Inspect's CORRECT and INCORRECT.
            Value::String(word) if word == "C" => Some(true),
            Value::String(word) if word == "I" => Some(false),
            value if is_only => parse_verdict(value),
            _ => None,
        };
        let said = match &value {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        };
        send_verdict(format!("{}: {}", one_line(&scorer, 80), one_line(&said, 80)), passed, feed);
    }
}

fn parse_verdict(value: &Value) -> Option<bool> {
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

fn send_verdict(text: String, passed: Option<bool>, feed: &mut SessionFeed<'_>) {
    // A session that consists only of a verdict is useless.
    if feed.is_empty() {
        return;
    }
    let mark = passed
        .map(|passed| if passed { EventMark::VerifierPassed } else { EventMark::VerifierFailed });
    let (role, origin) = (EventRole::System, EventOrigin::Harness);
    feed.send(Event { role, origin, text: text.into(), mark, ..Event::default() });
}
