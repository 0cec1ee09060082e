//! Quality of the final response (docs/spec/session-grades.md#response-quality) and efficiency of
//! tool use (#tool-efficiency).

use std::sync::LazyLock;

use regex::Regex;

use super::completion::error_rate;
use super::final_message::RedactedMessage;
use super::grade_record::{GradeEvidence, GradePoint};
use super::level::GradeLevel;
use super::tally::SessionTally;
use super::weights::ResponseWeights;
use selftest_text::redact::REDACTED;

/// Errors in a row that count as repeated.
const REPEATED: u64 = 3;
/// Errors in a row that indicate a loop.
const LOOP_ERRORS: u64 = 5;
/// Number of model calls above which a loop is likely.
const LOOP_CALLS: u64 = 50;
/// Limit for "more than 5 errors".
const MANY_ERRORS: u64 = 5;

/// Matches web addresses, Markdown links and numbered references.
static LINKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"https?://[^\s)]|\[[^\]\n]+\]\([^)\s]+\)|\[\d{1,3}\]")
        .expect("the pattern is a constant")
});

/// Returns true if there were 3 or more errors in a row.
pub(super) fn had_repeated_errors(tally: &SessionTally) -> bool {
    tally.longest_error_run >= REPEATED
}

/// Returns true if there were 5 or more errors in a row, or more than 50 model calls.
pub(super) fn had_infinite_loop_risk(tally: &SessionTally) -> bool {
    tally.longest_error_run >= LOOP_ERRORS || tally.model_calls > LOOP_CALLS
}

/// Returns the points of the quality formula that apply. Quotes come from the redacted text, as in
/// [`super::completion::indicators`].
pub(super) fn quality(
    tally: &SessionTally,
    weights: &ResponseWeights,
    shown: &RedactedMessage<'_>,
) -> Vec<GradeEvidence> {
    let response = tally.response.text();
    let length = response.chars().count();
    let event_at = |byte: Option<usize>| tally.response.event_at(byte?);
    // The event with the character that exceeds the limit.
    let behind = |characters| event_at(response.char_indices().nth(characters).map(|(at, _)| at));
    let code = response.find("```");
    let link = LINKS.find(response).map(|hit| hit.start());
    let around_link = || {
        let shown = shown.text();
        let link = LINKS.find(shown).map(|hit| hit.start());
        link.map_or(REDACTED, |at| &shown[at..shown.floor_char_boundary(at + 80)]).to_owned()
    };
    let rows = [
        (
            GradePoint::Over500,
            weights.over_500,
            length > 500,
            behind(500),
            format!("{length} characters"),
        ),
        (
            GradePoint::Over1000,
            weights.over_1000,
            length > 1000,
            behind(1000),
            format!("{length} characters"),
        ),
        (
            GradePoint::HasCode,
            weights.has_code,
            code.is_some(),
            event_at(code),
            "a code block".to_owned(),
        ),
        (
            GradePoint::HasLinks,
            weights.has_links,
            link.is_some(),
            event_at(link),
            if link.is_some() { around_link() } else { String::new() },
        ),
        (
            GradePoint::RepeatedErrors,
            weights.repeated_errors,
            had_repeated_errors(tally),
            tally.last_error,
            format!("{} errors in a row", tally.longest_error_run),
        ),
        (
            GradePoint::Over5Errors,
            weights.over_5_errors,
            tally.errors > MANY_ERRORS,
            tally.last_error,
            format!("{} errors", tally.errors),
        ),
        (
            GradePoint::LoopRisk,
            weights.loop_risk,
            had_infinite_loop_risk(tally),
            None,
            format!(
                "{} errors in a row, {} model calls",
                tally.longest_error_run, tally.model_calls
            ),
        ),
    ];
    let applies = rows.into_iter().filter(|(.., applies, _, _)| *applies);
    applies
        .map(|(point, worth, _, event, words)| GradeEvidence { point, worth, event, words })
        .collect()
}

/// Applies the rows of the efficiency table in order. Returns the level, with the matching row as
/// evidence.
pub(super) fn efficiency(tally: &SessionTally) -> (GradeLevel, GradeEvidence) {
    let (rate, calls) = (error_rate(tally), tally.tool_calls);
    let level = if rate == 0.0 && calls <= 10 {
        5
    } else if rate <= 0.1 && calls <= 15 {
        4
    } else if rate <= 0.25 && calls <= 25 {
        3
    } else if rate <= 0.4 {
        2
    } else {
        1
    };
    let level = GradeLevel::new(level).unwrap_or(GradeLevel::LOWEST);
    let words =
        format!("{calls} tool calls, {} errors in {} model calls", tally.errors, tally.model_calls);
    let worth = f64::from(level.get());
    (level, GradeEvidence { point: GradePoint::Efficiency, worth, event: None, words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::final_message::FinalMessage;

    #[test]
    fn the_efficiency_table() {
        for (tool_calls, errors, model_calls, level) in [
            (0, 0, 1, 5),
            (10, 0, 10, 5),
            (11, 0, 11, 4),
            (15, 1, 10, 4),
            (16, 0, 16, 3),
            (10, 2, 10, 3),
            (25, 1, 4, 3),
            (26, 0, 26, 2),
            (10, 4, 10, 2),
            (200, 0, 200, 2),
            (10, 41, 100, 1),
            (3, 3, 3, 1),
        ] {
            let tally = SessionTally { model_calls, tool_calls, errors, ..SessionTally::default() };
            assert_eq!(efficiency(&tally).0.get(), level, "{tool_calls} {errors} {model_calls}");
        }
    }

    fn points(tally: &SessionTally) -> (u8, Vec<GradePoint>) {
        let weights = ResponseWeights::default();
        let found =
            quality(tally, &weights, &RedactedMessage::new(&tally.response, &str::to_owned));
        let sum: f64 = found.iter().map(|evidence| evidence.worth).sum();
        let points = found.iter().map(|evidence| evidence.point).collect();
        (GradeLevel::nearest(weights.base + sum).get(), points)
    }

    fn with_response(text: &str) -> SessionTally {
        let response = FinalMessage::new(3, text);
        SessionTally { model_calls: 1, response, ..SessionTally::default() }
    }

    #[test]
    fn the_quality_formula() {
        assert_eq!(points(&with_response("short")), (3, vec![]));
        assert_eq!(points(&with_response(&"x".repeat(500))), (3, vec![]));
        assert_eq!(points(&with_response(&"é".repeat(501))), (4, vec![GradePoint::Over500]));
        let long = with_response(&"x".repeat(1001));
        assert_eq!(points(&long), (5, vec![GradePoint::Over500, GradePoint::Over1000]));
        assert_eq!(points(&with_response("```\ncode\n```")), (4, vec![GradePoint::HasCode]));
        // 3.5 rounds up.
        for link in ["see https://example.org", "see [this](docs/a.md)", "as in [1]"] {
            assert_eq!(points(&with_response(link)), (4, vec![GradePoint::HasLinks]), "{link}");
        }
        assert_eq!(points(&with_response("a[i] = b(c)")), (3, vec![]));
    }

    #[test]
    fn the_penalties() {
        let tally = |longest_error_run, errors, model_calls| SessionTally {
            model_calls,
            errors,
            longest_error_run,
            ..SessionTally::default()
        };
        assert_eq!(points(&tally(2, 5, 50)), (3, vec![]));
        assert_eq!(points(&tally(3, 3, 50)), (2, vec![GradePoint::RepeatedErrors]));
        assert_eq!(points(&tally(1, 6, 50)), (2, vec![GradePoint::Over5Errors]));
        assert_eq!(points(&tally(0, 0, 51)), (1, vec![GradePoint::LoopRisk]));
        let all = vec![GradePoint::RepeatedErrors, GradePoint::Over5Errors, GradePoint::LoopRisk];
        assert_eq!(points(&tally(6, 6, 60)), (1, all));
    }
}
