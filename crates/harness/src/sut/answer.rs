//! What an adapter saw of an answer: a text, an empty one, or nothing at all; and its status, for
//! programs that do not report it. Pure.
//!
//! A missing answer decides no check: it is an error of the system under test. An empty one is an
//! answer, which satisfies only a check that asks for it. Texts are normalised here, and thinking
//! before the answer is taken off, before their status is inferred and before checks and judges see
//! them; the raw text is kept.
//!
//! The first matching rule decides about the status of a plain text:
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
use serde_json::Value;

use super::{SutError, SutReply};
use selftest_checks::check::is_blank;
use selftest_checks::check::questions::{
    count_questions, ends_in_question, is_question_mark, prose_lines,
};
use selftest_checks::scenario::TaskStatus;
use selftest_models::completion::texts_in_parts;
use selftest_models::thinking::{ReplySource, SeenThinking, see_thinking};
use selftest_text::normal::{NormalText, TextChange, describe_changes, normalise};
use selftest_text::redact::Redactor;
use selftest_text::wording::json_members;

/// Maximum length of the raw text to keep, in bytes.
const MAX_RAW: usize = 64 * 1024;

/// Maximum length of a quoted start of a text, in bytes.
const MAX_START: usize = 120;

/// An answer as an adapter saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sut) enum SeenAnswer {
    /// A text with at least one visible character.
    Text(AnswerText),
    /// The answer is there, and empty.
    Empty,
    /// There is no answer, for this reason.
    Missing(String),
    /// The text ended before an answer.
    Unfinished(String),
    /// An error is reported in its place or beside it.
    Failed(String),
}

/// A normalised text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sut) struct AnswerText {
    text: String,
    /// The text before it was normalised, if that changed it.
    raw: Option<String>,
    changes: Vec<TextChange>,
}

impl SeenAnswer {
    /// Sees the answer at a JSON Pointer of a reply. Values other than strings are formatted as
    /// JSON; null is no answer.
    pub(in crate::sut) fn at(reply: &Value, pointer: &str, decoding: &[TextChange]) -> Self {
        match reply.pointer(pointer) {
            Some(Value::String(text)) => Self::of(text, decoding),
            None | Some(Value::Null) => {
                let what = if reply.pointer(pointer).is_some() { "null" } else { "nothing" };
                Self::Missing(format!("{what} at {pointer}; {}", json_members(reply)))
            }
            Some(other) => match texts_in_parts(other) {
                Some(texts) if texts.is_empty() => {
                    Self::Missing(format!("no text in the parts at {pointer}"))
                }
                Some(texts) => {
                    let decoding = [decoding, &[TextChange::JoinedParts]].concat();
                    Self::read(&texts.concat(), &other.to_string(), &decoding)
                }
                // Any other JSON may be the answer itself.
                None => Self::of(&other.to_string(), decoding),
            },
        }
    }

    /// Sees the answer at a JSON Pointer of what a program printed: in the one JSON object that has
    /// something there. A banner and lines of a log may stand around it.
    ///
    /// Several such objects are pieces of a stream, and what follows the object may say that it
    /// failed: neither is an answer, and no text that breaks off is.
    pub(in crate::sut) fn in_json(text: &str, pointer: &str, decoding: &[TextChange]) -> Self {
        let start = || selftest_text::one_line(text, MAX_START);
        let missing = |why: &str| {
            Self::Missing(format!(
                "{why} to look for {pointer} in; the text starts with: {}",
                start()
            ))
        };
        let Some(documents) = read_documents(text) else {
            return Self::Unfinished(format!(
                "its JSON breaks off; the text starts with: {}",
                start()
            ));
        };
        let has_it = |value: &Value| value.pointer(pointer).is_some_and(|found| !found.is_null());
        let mut places = (0..documents.len()).filter(|at| has_it(&documents[*at]));
        let (first, second) = (places.next(), places.next());
        if second.is_some() {
            return missing("no single JSON");
        }
        // Without a place, the last document is named in the error.
        let Some(at) = first.or(documents.len().checked_sub(1)) else { return missing("no JSON") };
        let (found, failed) =
            (&documents[at], documents[at..].iter().find(|one| reports_error(one)));
        match failed {
            Some(failed) => Self::Failed(format!(
                "the program reports an error: {}",
                selftest_text::one_line(&failed.to_string(), MAX_START)
            )),
            None => Self::at(found, pointer, decoding),
        }
    }

    /// Sees a text that is an answer, even if it is empty. `decoding` are the changes made while it
    /// was decoded.
    pub(in crate::sut) fn of(raw: &str, decoding: &[TextChange]) -> Self {
        Self::read(raw, raw, decoding)
    }

    /// Sees what a program printed as its answer, unless it speaks a protocol or reports an error in
    /// place of it.
    pub(in crate::sut) fn printed(text: &str, decoding: &[TextChange]) -> Self {
        let text = text.trim();
        let start = || selftest_text::one_line(text, MAX_START);
        if text.starts_with(TRACEBACK) {
            let last = text.lines().last().unwrap_or_default();
            let last = selftest_text::one_line(last, MAX_START);
            return Self::Failed(format!("it printed a traceback that ends in: {last}"));
        }
        // Other JSON may be the answer itself.
        let documents = text.starts_with('{').then(|| read_documents(text)).flatten();
        let is_call = |value: &Value| value.get("jsonrpc").is_some_and(Value::is_string);
        match documents.as_deref() {
            Some(all) if !all.is_empty() && all.iter().all(is_call) => Self::Missing(
                "it speaks JSON-RPC, as a server of tools (MCP) or for editors does".to_owned(),
            ),
            Some([one]) if is_nothing_but_an_error(one) => {
                Self::Failed(format!("the program reports an error: {}", start()))
            }
            _ => Self::of(text, decoding),
        }
    }

    fn read(text: &str, raw: &str, decoding: &[TextChange]) -> Self {
        if is_blank(text) {
            return Self::Empty;
        }
        let NormalText { text, changes } = normalise(text);
        let mut changes = [decoding, &changes[..]].concat();
        let text = match see_thinking(&text, ReplySource::Agent) {
            SeenThinking::None => text.into_owned(),
            SeenThinking::TakenOff { answer } => {
                changes.push(TextChange::Thinking);
                answer.to_owned()
            }
            SeenThinking::Unfinished => {
                let start = selftest_text::one_line(&text, MAX_START);
                return Self::Unfinished(format!("the text ends within its thinking: {start}"));
            }
        };
        // Thoughts without anything after them are an empty answer.
        if is_blank(&text) {
            return Self::Empty;
        }
        // Otherwise reports would hold most answers twice.
        let raw = (text != raw).then(|| selftest_text::clip(raw, MAX_RAW));
        changes.sort_unstable();
        changes.dedup();
        Self::Text(AnswerText { text, raw, changes })
    }

    /// Returns the text of the answer; empty without an answer.
    pub(in crate::sut) fn text(&self) -> &str {
        match self {
            SeenAnswer::Text(answer) => &answer.text,
            SeenAnswer::Empty
            | SeenAnswer::Missing(_)
            | SeenAnswer::Unfinished(_)
            | SeenAnswer::Failed(_) => "",
        }
    }

    /// Creates the reply with this status. A missing answer is an error, unless the system reports
    /// one itself.
    pub(in crate::sut) fn into_reply(
        self,
        status: TaskStatus,
        redactor: &Redactor,
    ) -> Result<SutReply, SutError> {
        let answer = match self {
            SeenAnswer::Text(answer) => answer,
            SeenAnswer::Missing(why) | SeenAnswer::Unfinished(why) | SeenAnswer::Failed(why)
                // An agent that reports an error may do so without a word.
                if status != TaskStatus::Error =>
            {
                let what = redactor.apply(&format!("no answer seen: {why}")).into_owned();
                return Err(SutError::failed(what));
            }
            SeenAnswer::Empty
            | SeenAnswer::Missing(_)
            | SeenAnswer::Unfinished(_)
            | SeenAnswer::Failed(_) => {
                return Ok(SutReply::new(status, ""));
            }
        };
        let redacted = |text: &str| redactor.apply(text).into_owned();
        let notes = describe_changes(&answer.changes)
            .map(|changes| format!("normalised before it was checked: {changes}"));
        Ok(SutReply {
            raw_output: answer.raw.as_deref().map(redacted),
            notes: notes.into_iter().collect(),
            ..SutReply::new(status, redacted(&answer.text))
        })
    }
}

/// Minimum number of words before the last sentence for an answer to count as given.
const ANSWER_WORDS: usize = 25;

/// Minimum number of words before a closing question and a request to answer it: `Any questions? Just
/// let me know.` ends also a short answer.
const CLOSED_WORDS: usize = 3;

/// Questions that leave nothing to decide.
static CLOSING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\W*(?:(?:(?:is|was) there|would you like|do you want|do you need|can i help (?:you )?with) )?(?:anything|something) else\b|^\W*(?:can i help|need (?:any )?more|(?:do you have )?any (?:other |more |further )?(?:questions?|feedback)|make sense|does (?:this|that|it) (?:help|answer|make sense)|did (?:this|that) (?:help|answer)|is that (?:clear|helpful))\b",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// Questions whose answer the work may wait for, unless an answer stands before them.
static PROPOSAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(?:would you like|do you want|shall i|should i|may i)\b")
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
        r"(?i)^\W*(?:(?:please|kindly|just)\s+(?:reply|respond|answer|tell|let|give|send|share|state|name|pick|choose|say|include|paste|add|provide|point|enter)\b|tell me\b|let me know\b|bitte (?:nenn|geb|gib|sag|teil|wähl|schick|schreib)|por favor,? (?:di[gm]|ind[ií]|espec|env[ií]|escrib|inform)|merci de (?:me |nous )?(?:précis|dire|donn|indiqu))",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// Returns the JSON documents of what a program printed, each of which starts a line. `None` if one
/// breaks off.
pub fn read_documents(text: &str) -> Option<Vec<Value>> {
    let (mut documents, mut at) = (Vec::new(), 0);
    let mut is_broken = false;
    while let Some(line) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let indent = line.len() - line.trim_start_matches([' ', '\t', '\u{feff}']).len();
        let mut length = line.find('\n').map_or(line.len(), |end| end + 1);
        if line[indent..].starts_with(['{', '[']) {
            let mut stream =
                serde_json::Deserializer::from_str(&line[indent..]).into_iter::<Value>();
            match stream.next() {
                Some(Ok(value)) => {
                    length = indent + stream.byte_offset();
                    documents.push(value);
                }
                // `[INFO] started` is no JSON; a text that ends within one is cut.
                Some(Err(error)) => is_broken |= error.is_eof(),
                None => {}
            }
        }
        at += length;
    }
    (!is_broken).then_some(documents)
}

/// How Python starts to report an exception.
const TRACEBACK: &str = "Traceback (most recent call last):";

/// Members of objects that report an error.
const OF_ERRORS: [&str; 14] = [
    "error",
    "errors",
    "message",
    "code",
    "status",
    "type",
    "detail",
    "details",
    "success",
    "ok",
    "is_error",
    "request_id",
    "timestamp",
    "param",
];

/// Returns true if an object reports an error, and has no other member that may be an answer.
fn is_nothing_but_an_error(object: &Value) -> bool {
    let is_known = |name: &String| OF_ERRORS.contains(&name.as_str());
    object.as_object().is_some_and(|members| members.keys().all(is_known)) && reports_error(object)
}

/// Returns true if an object that a program printed, or a server sent, says that it failed.
pub(in crate::sut) fn reports_error(object: &Value) -> bool {
    let error = object.get("error");
    // Some programs name it in every reply.
    let is_error = error.is_some_and(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::Number(code) => code.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    });
    let is_unsuccessful = ["success", "ok"].iter().any(|name| object[*name] == false);
    is_error || is_unsuccessful || object["is_error"] == true || object["type"] == "error"
}

/// The rule for an empty answer, as opposed to a missing one.
pub const EMPTY_ANSWER: &str = "an empty answer";

/// Infers the status of a task from this answer, and returns it with the name of the rule.
///
/// Returns `None` if the answer is empty.
pub fn infer_status(output: &str) -> Option<(TaskStatus, &'static str)> {
    if output.trim().is_empty() {
        return None;
    }
    let prose: Vec<String> = prose_lines(output).filter(|line| !line.trim().is_empty()).collect();
    let last = prose.last().map_or("", |line| line.trim());
    let sentence = last_sentence(last);
    let before = last[..last.len() - sentence.len()].trim_end();
    // In the same line, or in the one above.
    let line_before = prose.iter().nth_back(1).map_or("", |line| line.trim());
    let before = if before.is_empty() { line_before } else { before };
    let asks = ends_in_question(last);
    let asked_before = !asks && ends_in_question(before) && AFTER_QUESTION.is_match(sentence);
    let question = if asked_before { last_sentence(before) } else { sentence };
    let words = |text: &str| text.split_whitespace().count();
    let of_end = words(sentence) + if asked_before { words(question) } else { 0 };
    let words_before = prose.iter().map(|line| words(line)).sum::<usize>() - of_end;
    let closed_words = if asked_before { CLOSED_WORDS } else { ANSWER_WORDS };
    let is_offer = (words_before >= closed_words && CLOSING.is_match(question))
        || (words_before >= ANSWER_WORDS && PROPOSAL.is_match(question));
    Some(if (asks || asked_before) && is_offer {
        (TaskStatus::Complete, "an answer that ends in an offer of more help")
    } else if asks {
        (TaskStatus::AwaitingResponse, "ends in a question")
    } else if REQUEST.is_match(sentence) {
        (TaskStatus::AwaitingResponse, "ends in a request for details")
    } else if asked_before {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_empty_ones_and_missing_ones_are_told_apart() {
        let reply = json!({ "status": "COMPLETE", "output": "At 9.", "null": null, "empty": "",
                            "blank": " \n", "list": [1], "zero": 0 });
        let seen = |pointer: &str| SeenAnswer::at(&reply, pointer, &[]);
        for (pointer, text) in [("/output", "At 9."), ("/list", "[1]"), ("/zero", "0")] {
            assert!(matches!(seen(pointer), SeenAnswer::Text(_)), "{pointer}");
            assert_eq!(seen(pointer).text(), text);
        }
        assert_eq!(seen("/empty"), SeenAnswer::Empty);
        assert_eq!(seen("/blank"), SeenAnswer::Empty);
        let members = "the reply has: status, output, null, empty, blank, list, zero";
        let missing = |what: &str| SeenAnswer::Missing(format!("{what}; {members}"));
        assert_eq!(seen("/answer/text"), missing("nothing at /answer/text"));
        assert_eq!(seen("/null"), missing("null at /null"));
    }

    #[test]
    fn an_answer_is_found_in_printed_json() {
        let seen = |text: &str| SeenAnswer::in_json(text, "/result", &[]);
        let answer = "{\"type\": \"result\", \"result\": \"At 9.\"}";
        for text in [
            answer.to_owned(),
            format!("starting\n{answer}\n"),
            format!("{{\"type\": \"system\"}}\n{answer}\n{{\"type\": \"usage\"}}\n"),
            "{\n  \"result\": \"At 9.\"\n}\n".to_owned(),
            "{\n\"result\": \"At 9.\"\n}\n{\"level\": \"info\"}\n".to_owned(),
            "[INFO] banner\n{\"result\": \"At 9.\", \"error\": null}\n".to_owned(),
            "> agent\n> node a.js\n{\"level\": 1}\n{\n  \"result\": \"At 9.\"\n}\n".to_owned(),
        ] {
            assert_eq!(seen(&text).text(), "At 9.", "{text}");
        }
        let missing = |text: &str| match seen(text) {
            SeenAnswer::Missing(why) | SeenAnswer::Failed(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(missing("{\"a\": 1}"), "nothing at /result; the reply has: a");
        assert_eq!(missing("x\n{\"a\": 1}"), "nothing at /result; the reply has: a");
        let why = "no JSON to look for /result in; the text starts with: busy";
        assert_eq!(missing("busy\n"), why);
        for text in [
            // Pieces of a stream, also of several lines.
            "{\"result\": \"At 8, or\"}\n{\"result\": \"at 9.\"}\n",
            "{\n\"result\": \"At 8, or\"\n}\n{\n\"result\": \"at 9.\"\n}\n",
        ] {
            assert!(missing(text).starts_with("no single JSON to look for /result in"), "{text}");
        }
        for text in [
            "starting\n{\n\"is_error\": true,\n\"result\": \"API Error: 529\"\n}\n",
            "{\"is_error\": true, \"result\": \"API Error: 529\"}",
            "{\"success\": false, \"result\": \"API Error: 529\"}",
            "{\"result\": \"At 9.\"}\n{\n\"error\": \"rate limited\"\n}\n",
        ] {
            assert!(missing(text).starts_with("the program reports an error: {"), "{text}");
        }
        for text in
            ["{\"result\": \"At 9, un\"}\n{\"result\": \"til 8", "[\n{\"result\": \"At 9.\"},\n"]
        {
            assert!(matches!(seen(text), SeenAnswer::Unfinished(_)), "{text}");
        }
        assert_eq!(seen("{\"result\": \"\"}"), SeenAnswer::Empty);
    }

    #[test]
    fn messages_of_a_protocol_are_no_answer() {
        let message = r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32700}}"#;
        for text in [message.to_owned(), format!("{message}\n{message}\n")] {
            assert!(matches!(SeenAnswer::printed(&text, &[]), SeenAnswer::Missing(_)), "{text}");
        }
        for text in [
            r#"{"error": {"message": "rate limited"}, "request_id": "1"}"#,
            r#"{"success": false, "message": "busy"}"#,
            "Traceback (most recent call last):\n  File \"a.py\"\nValueError: x",
        ] {
            assert!(matches!(SeenAnswer::printed(text, &[]), SeenAnswer::Failed(_)), "{text}");
        }
        let example = "Send this:\n{\"error\": \"x\"}";
        for text in [
            format!("Send {message}"),
            example.to_owned(),
            r#"{"answer": 1}"#.to_owned(),
            r#"{"error": "x", "answer": "At 9."}"#.to_owned(),
            r#"{"status": "ok"}"#.to_owned(),
        ] {
            assert_eq!(SeenAnswer::printed(&text, &[]).text(), text);
        }
    }

    #[test]
    fn a_missing_answer_is_an_error_unless_one_is_reported() {
        let missing = || SeenAnswer::at(&json!({ "status": "x" }), "/output", &[]);
        let reply = |status| missing().into_reply(status, &Redactor::default());
        let error = reply(TaskStatus::Complete).unwrap_err().to_string();
        assert_eq!(error, "no answer seen: nothing at /output; the reply has: status");
        assert_eq!(reply(TaskStatus::Error).unwrap().output, "");
    }

    #[test]
    fn thinking_and_parts_are_no_answer() {
        let reply = |seen: SeenAnswer| seen.into_reply(TaskStatus::Complete, &Redactor::default());
        let thought = reply(SeenAnswer::of("<think>Maybe 8?</think>\nAt 9.", &[])).unwrap();
        assert_eq!(thought.output, "At 9.");
        assert_eq!(thought.raw_output.as_deref(), Some("<think>Maybe 8?</think>\nAt 9."));
        assert_eq!(
            thought.notes,
            ["normalised before it was checked: thinking before the answer taken off"]
        );
        let cut = reply(SeenAnswer::of("<think>At 9? Or", &[])).unwrap_err().to_string();
        assert_eq!(cut, "no answer seen: the text ends within its thinking: <think>At 9? Or");
        assert_eq!(SeenAnswer::of("<think>all</think>", &[]), SeenAnswer::Empty);
        let parts = json!({ "output": [{"type": "thinking", "thinking": "8?"},
                                       {"type": "text", "text": "At 9."}],
                            "only": [{"type": "thinking", "thinking": "8?"}] });
        let joined = reply(SeenAnswer::at(&parts, "/output", &[])).unwrap();
        assert_eq!(joined.output, "At 9.");
        assert!(joined.notes[0].ends_with("text parts joined, others left out"));
        let missing = SeenAnswer::Missing("no text in the parts at /only".to_owned());
        assert_eq!(SeenAnswer::at(&parts, "/only", &[]), missing);
    }

    #[test]
    fn texts_are_normalised_and_kept() {
        let seen = SeenAnswer::of("\u{1b}[32mAt 9.\u{1b}[0m\r\n", &[TextChange::InvalidUnicode]);
        let reply = seen.into_reply(TaskStatus::Complete, &Redactor::default()).unwrap();
        assert_eq!(reply.output, "At 9.\n");
        assert_eq!(reply.raw_output.as_deref(), Some("\u{1b}[32mAt 9.\u{1b}[0m\r\n"));
        let note = "normalised before it was checked: lone surrogates or invalid bytes replaced by \
                    U+FFFD; terminal colour and control codes removed; line ends CRLF or CR changed \
                    to LF";
        assert_eq!(reply.notes, [note]);
        let plain =
            SeenAnswer::of("At 9.", &[]).into_reply(TaskStatus::Complete, &Redactor::default());
        let plain = plain.unwrap();
        assert!(plain.raw_output.is_none() && plain.notes.is_empty());
        assert_eq!(SeenAnswer::of("\u{1b}[0m\r\n", &[]), SeenAnswer::Empty);
    }

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
                "I found two old files. Should I delete both? Please reply with yes or no.",
                "AWAITING_RESPONSE",
                "ends in a request for details",
            ),
            (
                "Which trip do you mean? Please tell me the date.",
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
            let (found, name) = infer_status(output).unwrap();
            assert_eq!((found.as_str(), name), (status, rule), "{output:?}");
        }
        for offer in [
            "Anything else?",
            "Would you like me to list them?",
            "Does that help?",
            "Would you like me to list them? Let me know!",
            "Any questions? Just reply.",
        ] {
            let (status, rule) = infer_status(&format!("{long} {offer}")).unwrap();
            assert_eq!(status, TaskStatus::Complete, "{offer}");
            assert_eq!(rule, "an answer that ends in an offer of more help");
        }
        let (status, _) = infer_status(&format!("{long}\nWhich of them do you mean?")).unwrap();
        assert_eq!(status, TaskStatus::AwaitingResponse);
    }

    #[test]
    fn an_empty_answer_has_no_status() {
        assert_eq!(infer_status(""), None);
        assert_eq!(infer_status(" \n\t"), None);
    }
}
