//! The scores that make up a grade by rules: task completion, estimated from the final message and
//! errors (docs/spec/session-grades.md#task-completion), quality of the final response
//! (#response-quality), and efficiency of tool use (#tool-efficiency).

use std::sync::LazyLock;

use regex::{Match, Regex};

use super::grade_record::{GradeEvidence, GradeLevel, GradePoint};
use super::grade_settings::{CompletionWeights, ResponseWeights};
use super::tally::{RedactedMessage, SessionTally};
use crate::english;
use selftest_text::redact::REDACTED;

/// Maximum error rate for "few errors for the number of calls". The bound is that of the row "good"
/// of tool efficiency.
const FEW_ERRORS: f64 = 0.1;
/// Error rate for "errors in more than 30 % of all calls".
const MAX_ERROR_RATE: f64 = 0.3;
/// Number of characters below which "the final response is empty or very short".
const MIN_RESPONSE_CHARS: usize = 20;

/// The specified phrases on word boundaries. "success" also covers its other forms.
static DONE: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"(?i)\b(done|completed|success(es|ful|fully)?|finished)\b"));
static OUTPUT: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"(?i)\b(saved to\b|here is\b|here['’]s\b|output:)"));
static FAILED: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"(?i)\b(failed|unable to|could not|couldn['’]t)\b"));

/// Returns the number of errors per model call.
pub(super) fn error_rate(tally: &SessionTally) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    match tally.model_calls {
        0 => 0.0,
        calls => tally.errors as f64 / calls as f64,
    }
}

/// Returns the indicators found. The task counts as completed if their sum is above 0.
///
/// Quotes come from the redacted text: clipping can separate a secret from its name, after which it
/// can no longer be recognized.
pub(super) fn indicators(
    tally: &SessionTally,
    weights: &CompletionWeights,
    shown: &RedactedMessage<'_>,
) -> Vec<GradeEvidence> {
    let mut found = Vec::new();
    let response = &tally.response;
    let phrases = [
        (GradePoint::SaysDone, &DONE, weights.says_done),
        (GradePoint::NamesOutput, &OUTPUT, weights.names_output),
        (GradePoint::SaysFailed, &FAILED, weights.says_failed),
    ];
    for (point, pattern, worth) in phrases {
        if let Some(hit) = find_unnegated(response.text(), pattern) {
            let event = response.event_at(hit.start());
            // Redaction may have removed the phrase itself.
            let words = find_excerpt(shown.text(), pattern).unwrap_or(REDACTED).to_owned();
            found.push(GradeEvidence { point, worth, event, words });
        }
    }
    let rate = error_rate(tally);
    let words = || format!("{} errors in {} model calls", tally.errors, tally.model_calls);
    if rate <= FEW_ERRORS {
        let (point, worth) = (GradePoint::FewErrors, weights.few_errors);
        found.push(GradeEvidence { point, worth, event: None, words: words() });
    }
    if rate > MAX_ERROR_RATE {
        let (point, worth) = (GradePoint::ManyErrors, weights.many_errors);
        let event = tally.last_error;
        found.push(GradeEvidence { point, worth, event, words: words() });
    }
    let length = response.text().trim().chars().count();
    if length < MIN_RESPONSE_CHARS {
        let (point, worth) = (GradePoint::ShortResponse, weights.short_response);
        let words = match length {
            0 => "the session does not end with a message of the agent".to_owned(),
            _ => format!("the final message has {length} characters"),
        };
        let event = response.event_at(response.text().trim_end().len()).filter(|_| length > 0);
        found.push(GradeEvidence { point, worth, event, words });
    }
    found
}

/// Returns the first occurrence of a phrase that is not negated.
pub(super) fn find_unnegated<'t>(text: &'t str, pattern: &Regex) -> Option<Match<'t>> {
    pattern.find_iter(text).find(|hit| !is_negated(&text[..hit.start()]))
}

/// Returns that occurrence with a few words of context.
pub(super) fn find_excerpt<'t>(text: &'t str, pattern: &Regex) -> Option<&'t str> {
    let hit = find_unnegated(text, pattern)?;
    // The excerpt stays within its sentence and line.
    let from = text[..hit.start()].rfind(['\n', '.']).map_or(0, |at| at + 1);
    let from = from.max(text.ceil_char_boundary(hit.start().saturating_sub(60)));
    let to = text[hit.end()..].find('\n').map_or(text.len(), |at| hit.end() + at);
    let to = to.min(text.floor_char_boundary(hit.end() + 60));
    Some(text[from..to].trim())
}

/// Returns true if one of the three preceding words in the same clause negates the phrase: "not yet
/// done", "0 tests failed", "couldn't be completed".
fn is_negated(before: &str) -> bool {
    const NEGATIONS: [&str; 12] = [
        "not", "no", "never", "without", "none", "nothing", "cannot", "0", "zero", "neither",
        "nor", "hardly",
    ];
    let clause =
        before.rsplit(['.', ',', ';', ':', '!', '?', '\n', '(']).next().unwrap_or_default();
    // Further back, the negation mostly belongs to another verb.
    clause.split_whitespace().rev().take(3).any(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
        let word = word.to_lowercase().replace('’', "'");
        NEGATIONS.contains(&word.as_str()) || word.ends_with("n't")
    })
}

/// Errors in a row that count as repeated.
const REPEATED: u64 = 3;
/// Errors in a row that indicate a loop.
const LOOP_ERRORS: u64 = 5;
/// Number of model calls above which a loop is likely.
const LOOP_CALLS: u64 = 50;
/// Limit for "more than 5 errors".
const MAX_ERRORS: u64 = 5;

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
/// [`indicators`].
pub(super) fn quality(
    tally: &SessionTally,
    weights: &ResponseWeights,
    shown: &RedactedMessage<'_>,
) -> Vec<GradeEvidence> {
    let response = tally.response.text();
    let length = response.chars().count();
    let event_at = |byte: Option<usize>| tally.response.event_at(byte?);
    // The event with the character that exceeds the limit.
    // Characters, not bytes: the specification's limits would be lower for other scripts.
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
            tally.longest_run_start,
            format!("{} errors in a row", tally.longest_error_run),
        ),
        (
            GradePoint::Over5Errors,
            weights.over_5_errors,
            tally.errors > MAX_ERRORS,
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
    // The table of docs/spec/session-grades.md#tool-efficiency.
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
    use super::super::tally::FinalMessage;
    use super::*;

    fn completion_points(response: &str, errors: u64, model_calls: u64) -> Vec<GradePoint> {
        let tally = SessionTally {
            model_calls,
            errors,
            response: FinalMessage::new(7, response),
            ..SessionTally::default()
        };
        let shown = RedactedMessage::new(&tally.response, &str::to_owned);
        let found = indicators(&tally, &CompletionWeights::default(), &shown);
        found.iter().map(|evidence| evidence.point).collect()
    }

    #[test]
    fn phrases_stand_on_word_boundaries() {
        for text in
            ["Everything is done here.", "It is COMPLETED now, all of it", "A success, I think so"]
        {
            assert_eq!(
                completion_points(text, 0, 1),
                [GradePoint::SaysDone, GradePoint::FewErrors],
                "{text}"
            );
        }
        for text in
            ["It was abandoned long ago", "the unfinished symphony", "it condones the whole thing"]
        {
            assert_eq!(completion_points(text, 0, 1), [GradePoint::FewErrors], "{text}");
        }
        for text in
            ["The file was saved to /tmp/x", "Here is the list you want", "I see it, output: none"]
        {
            assert_eq!(
                completion_points(text, 0, 1),
                [GradePoint::NamesOutput, GradePoint::FewErrors],
                "{text}"
            );
        }
        for text in [
            "The build failed on me again",
            "I was unable to find the file",
            "I couldn’t find the file",
        ] {
            assert_eq!(
                completion_points(text, 0, 1),
                [GradePoint::SaysFailed, GradePoint::FewErrors],
                "{text}"
            );
        }
    }

    #[test]
    fn a_negated_phrase_says_nothing() {
        for text in [
            "The work is not done, sorry",
            "This isn’t finished at all",
            "We have 0 tests failed so far",
            "It has never been completed before",
        ] {
            assert_eq!(completion_points(text, 0, 1), [GradePoint::FewErrors], "{text}");
        }
        assert_eq!(
            completion_points("No, it is not hard. All done now.", 0, 1)[0],
            GradePoint::SaysDone
        );
    }

    #[test]
    fn error_rates_and_short_responses() {
        let long = "An answer of some length.";
        assert_eq!(completion_points(long, 1, 10), [GradePoint::FewErrors]);
        assert_eq!(completion_points(long, 2, 10), []);
        assert_eq!(completion_points(long, 3, 10), []);
        assert_eq!(completion_points(long, 4, 10), [GradePoint::ManyErrors]);
        assert_eq!(completion_points("", 0, 1), [GradePoint::FewErrors, GradePoint::ShortResponse]);
        assert_eq!(
            completion_points("  Paris.  ", 0, 1),
            [GradePoint::FewErrors, GradePoint::ShortResponse]
        );
    }

    #[test]
    fn the_words_around_a_phrase_are_evidence() {
        let text = "First I looked. Then the tests are finally done and pushed\nBye";
        assert_eq!(find_excerpt(text, &DONE), Some("Then the tests are finally done and pushed"));
    }

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

    fn quality_points(tally: &SessionTally) -> (u8, Vec<GradePoint>) {
        let weights = ResponseWeights::default();
        let found =
            quality(tally, &weights, &RedactedMessage::new(&tally.response, &str::to_owned));
        let sum: f64 = found.iter().map(|evidence| evidence.worth).sum();
        let quality_points = found.iter().map(|evidence| evidence.point).collect();
        (GradeLevel::nearest(weights.base + sum).get(), quality_points)
    }

    fn with_response(text: &str) -> SessionTally {
        let response = FinalMessage::new(3, text);
        SessionTally { model_calls: 1, response, ..SessionTally::default() }
    }

    #[test]
    fn the_quality_formula() {
        assert_eq!(quality_points(&with_response("short")), (3, vec![]));
        assert_eq!(quality_points(&with_response(&"x".repeat(500))), (3, vec![]));
        assert_eq!(
            quality_points(&with_response(&"é".repeat(501))),
            (4, vec![GradePoint::Over500])
        );
        let long = with_response(&"x".repeat(1001));
        assert_eq!(quality_points(&long), (5, vec![GradePoint::Over500, GradePoint::Over1000]));
        assert_eq!(
            quality_points(&with_response("```\ncode\n```")),
            (4, vec![GradePoint::HasCode])
        );
        // 3.5 rounds up.
        for link in ["see https://example.org", "see [this](docs/a.md)", "as in [1]"] {
            assert_eq!(
                quality_points(&with_response(link)),
                (4, vec![GradePoint::HasLinks]),
                "{link}"
            );
        }
        assert_eq!(quality_points(&with_response("a[i] = b(c)")), (3, vec![]));
    }

    #[test]
    fn the_penalties() {
        let tally = |longest_error_run, errors, model_calls| SessionTally {
            model_calls,
            errors,
            longest_error_run,
            ..SessionTally::default()
        };
        assert_eq!(quality_points(&tally(2, 5, 50)), (3, vec![]));
        assert_eq!(quality_points(&tally(3, 3, 50)), (2, vec![GradePoint::RepeatedErrors]));
        assert_eq!(quality_points(&tally(1, 6, 50)), (2, vec![GradePoint::Over5Errors]));
        assert_eq!(quality_points(&tally(0, 0, 51)), (1, vec![GradePoint::LoopRisk]));
        let all = vec![GradePoint::RepeatedErrors, GradePoint::Over5Errors, GradePoint::LoopRisk];
        assert_eq!(quality_points(&tally(6, 6, 60)), (1, all));
    }
}
