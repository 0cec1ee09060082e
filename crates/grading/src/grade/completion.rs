//! Estimates from a session's final message and errors if its task was completed
//! (docs/spec/session-grades.md#task-completion).

use std::sync::LazyLock;

use regex::{Match, Regex};

use super::final_message::RedactedMessage;
use super::grade_record::{GradeEvidence, GradePoint};
use super::tally::SessionTally;
use super::weights::CompletionWeights;
use crate::english;
use selftest_text::redact::REDACTED;

/// Maximum error rate for "few errors for the number of calls". The bound is that of the row "good"
/// of tool efficiency.
const FEW_ERRORS: f64 = 0.1;
/// Error rate for "errors in more than 30 % of all calls".
const MANY_ERRORS: f64 = 0.3;
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
    if rate > MANY_ERRORS {
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
    clause.split_whitespace().rev().take(3).any(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
        let word = word.to_lowercase().replace('’', "'");
        NEGATIONS.contains(&word.as_str()) || word.ends_with("n't")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::final_message::FinalMessage;

    fn points(response: &str, errors: u64, model_calls: u64) -> Vec<GradePoint> {
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
            assert_eq!(points(text, 0, 1), [GradePoint::SaysDone, GradePoint::FewErrors], "{text}");
        }
        for text in
            ["It was abandoned long ago", "the unfinished symphony", "it condones the whole thing"]
        {
            assert_eq!(points(text, 0, 1), [GradePoint::FewErrors], "{text}");
        }
        for text in
            ["The file was saved to /tmp/x", "Here is the list you want", "I see it, output: none"]
        {
            assert_eq!(
                points(text, 0, 1),
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
                points(text, 0, 1),
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
            assert_eq!(points(text, 0, 1), [GradePoint::FewErrors], "{text}");
        }
        assert_eq!(points("No, it is not hard. All done now.", 0, 1)[0], GradePoint::SaysDone);
    }

    #[test]
    fn error_rates_and_short_responses() {
        let long = "An answer of some length.";
        assert_eq!(points(long, 1, 10), [GradePoint::FewErrors]);
        assert_eq!(points(long, 2, 10), []);
        assert_eq!(points(long, 3, 10), []);
        assert_eq!(points(long, 4, 10), [GradePoint::ManyErrors]);
        assert_eq!(points("", 0, 1), [GradePoint::FewErrors, GradePoint::ShortResponse]);
        assert_eq!(points("  Paris.  ", 0, 1), [GradePoint::FewErrors, GradePoint::ShortResponse]);
    }

    #[test]
    fn the_words_around_a_phrase_are_evidence() {
        let text = "First I looked. Then the tests are finally done and pushed\nBye";
        assert_eq!(find_excerpt(text, &DONE), Some("Then the tests are finally done and pushed"));
    }
}
