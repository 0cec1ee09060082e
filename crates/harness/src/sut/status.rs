//! Infers the status of a task from a plain-text answer, for programs that do not report it. Pure.
//!
//! The first matching rule decides:
//!
//! | rule | status |
//! |---|---|
//! | the answer contains no question and does not end in a request for details | `COMPLETE` |
//! | the last line of prose ends in a question that only offers more help ("Anything else?"), after at least 25 words | `COMPLETE` |
//! | the last line of prose ends in a question | `AWAITING_RESPONSE` |
//! | the last line of prose asks for details without a question mark ("Please specify the file.") | `AWAITING_RESPONSE` |
//! | a question, and one short sentence after it that asks for its answer ("Which trip? Please tell me the date.") | `AWAITING_RESPONSE` |
//! | questions, but none at the end | `COMPLETE` |
//!
//! Prose is the text outside fenced code blocks. An empty answer has no status.

use std::sync::LazyLock;

use regex::Regex;

use selftest_checks::check::questions::{
    count_questions, ends_in_question, is_question_mark, prose_lines,
};
use selftest_checks::scenario::TaskStatus;

/// Minimum number of words before the last sentence for an answer to count as given.
const ANSWER_WORDS: usize = 25;

static OFFER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\W*(?:(?:is|was) there )?(?:anything|something) else\b|^\W*(?:would you like|do you want|shall i|should i|may i|can i help|need (?:any )?more|does (?:this|that|it) (?:help|answer)|did (?:this|that) (?:help|answer)|is that (?:clear|helpful))\b",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

static REQUEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\W*(?:please|kindly|could you|can you)\s+(?:also\s+)?(?:clarify|specify|confirm|choose|answer|reply|(?:provide|give|share|send|tell|let)\b.{0,40}?\b(?:more|detail|details|which|what|whether|where|how|know|information|name|path))|^\W*(?:tell me|let me know) (?:which|what|whether|where|how|who|when)\b",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// What people and agents say right after a question, and never after one that they answer
/// themselves.
static AFTER_QUESTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\W*(?:(?:please|kindly|just)\s+(?:reply|respond|answer|tell|let|give|send|share|state|name|pick|choose|say|include|paste|add|provide|point|enter)\b|tell me\b|let me know\b|i(?:'ll|’ll| will)? need (?:to know\b|(?:the|your|a|an|one|more)\b)|i (?:can(?:'|’)?t|cannot|can not|do not know|don(?:'|’)t know)\b.{0,60}\b(?:without|until|before|which|what|whether)\b|(?:once|as soon as|when) (?:i|you) (?:know|have|tell|answer|reply)\b|(?:then|so(?: that)?) i (?:can|will|know)\b|bitte (?:nenn|geb|gib|sag|teil|wähl|schick|schreib)|por favor,? (?:di[gm]|ind[ií]|espec|env[ií]|escrib|inform)|merci de (?:me |nous )?(?:précis|dire|donn|indiqu))",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// The rule for an empty answer, as opposed to a missing one.
pub const EMPTY: &str = "an empty answer";

/// Infers the status of a task from this answer, and returns it with the name of the rule.
///
/// Returns `None` if the answer is empty.
pub fn infer(output: &str) -> Option<(TaskStatus, &'static str)> {
    if output.trim().is_empty() {
        return None;
    }
    let prose: Vec<String> = prose_lines(output).filter(|line| !line.trim().is_empty()).collect();
    let last = prose.last().map_or("", |line| line.trim());
    let asks = ends_in_question(last);
    let sentence = last_sentence(last);
    // In the same line, or in the one above.
    let before = last[..last.len() - sentence.len()].trim_end();
    let line_before = prose.iter().nth_back(1).map_or("", String::as_str);
    let before = if before.is_empty() { line_before } else { before };
    let words_before = prose.iter().map(|line| line.split_whitespace().count()).sum::<usize>()
        - sentence.split_whitespace().count();
    Some(if asks && words_before >= ANSWER_WORDS && OFFER.is_match(sentence) {
        (TaskStatus::Complete, "an answer that ends in an offer of more help")
    } else if asks {
        (TaskStatus::AwaitingResponse, "ends in a question")
    } else if REQUEST.is_match(sentence) {
        (TaskStatus::AwaitingResponse, "ends in a request for details")
    } else if ends_in_question(before) && AFTER_QUESTION.is_match(sentence) {
        (TaskStatus::AwaitingResponse, "a question and a request for its answer")
    } else if count_questions(output) > 0 {
        (TaskStatus::Complete, "questions, but none at the end")
    } else {
        (TaskStatus::Complete, "no question")
    })
}

/// Returns the last sentence of a line with its final punctuation mark.
fn last_sentence(line: &str) -> &str {
    let body = line.trim_end_matches(|c: char| !c.is_alphanumeric());
    let start = body
        .char_indices()
        .rfind(|&(index, c)| match c {
            '.' | '?' | '!' | ':' => body[index + 1..].starts_with(char::is_whitespace),
            '。' | '！' | '։' => true,
            c => is_question_mark(c) && c != '՞',
        })
        .map_or(0, |(index, c)| index + c.len_utf8());
    line[start..].trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule() {
        let long = "The project has three folders: src holds the code, docs holds the pages, and \
                    tests holds the tests; the README says how they are built and run together.";
        for (output, status, rule) in [
            ("It has 3 files.", "COMPLETE", "no question"),
            ("Which file do you mean?", "AWAITING_RESPONSE", "ends in a question"),
            (
                "I need more.\n\n1. Which file?\n2. **Since when?**",
                "AWAITING_RESPONSE",
                "ends in a question",
            ),
            ("どのファイルですか？", "AWAITING_RESPONSE", "ends in a question"),
            ("أي ملف تقصد؟", "AWAITING_RESPONSE", "ends in a question"),
            ("Ποιο αρχείο εννοείς;", "AWAITING_RESPONSE", "ends in a question"),
            ("Ո՞ր ֆայլն ես նկատի ունենում։", "AWAITING_RESPONSE", "ends in a question"),
            ("Would you like A or B?", "AWAITING_RESPONSE", "ends in a question"),
            (
                "Which one? Please specify the file.",
                "AWAITING_RESPONSE",
                "ends in a request for details",
            ),
            (
                "There are several. Let me know which you mean.",
                "AWAITING_RESPONSE",
                "ends in a request for details",
            ),
            ("Please provide more details.", "AWAITING_RESPONSE", "ends in a request for details"),
            (
                "Which trip do you mean? Please tell me the date.",
                "AWAITING_RESPONSE",
                "a question and a request for its answer",
            ),
            (
                "Which of the two?\n\nI need the name of the file.",
                "AWAITING_RESPONSE",
                "a question and a request for its answer",
            ),
            (
                "Is it open? Please note that it closes at noon.",
                "COMPLETE",
                "questions, but none at the end",
            ),
            (
                "Welche Fahrt meinen Sie? Bitte nennen Sie das Datum.",
                "AWAITING_RESPONSE",
                "a question and a request for its answer",
            ),
            (
                "Who needs it? I need it for the build.",
                "COMPLETE",
                "questions, but none at the end",
            ),
            (
                "Why is it slow? Because it reads everything twice.",
                "COMPLETE",
                "questions, but none at the end",
            ),
            ("The check is:\n```\nis it ok?\n```", "COMPLETE", "no question"),
            ("```\ncode only?\n```", "COMPLETE", "no question"),
        ] {
            let (found, name) = infer(output).unwrap();
            assert_eq!((found.as_str(), name), (status, rule), "{output:?}");
        }
        for offer in ["Anything else?", "Would you like me to list them?", "Does that help?"] {
            let (status, rule) = infer(&format!("{long} {offer}")).unwrap();
            assert_eq!(status, TaskStatus::Complete, "{offer}");
            assert_eq!(rule, "an answer that ends in an offer of more help");
        }
        let (status, _) = infer(&format!("{long}\nWhich of them do you mean?")).unwrap();
        assert_eq!(status, TaskStatus::AwaitingResponse);
    }

    #[test]
    fn an_empty_answer_has_no_status() {
        assert_eq!(infer(""), None);
        assert_eq!(infer(" \n\t"), None);
    }
}
