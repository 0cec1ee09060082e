//! References so plain that an answer is compared with them without judgement: a text in another
//! typography, a number, a name, a JSON object, a command, tool calls. Pure.
//!
//! Nothing is said wherever a reader could doubt it. A difference counts only if what it replaces is
//! grounded: it stands in the request, the excerpt, a fact or an expectation, and the request leaves no
//! choice, so that it was demanded and is no example.

use std::sync::LazyLock;

use regex::Regex;
use selftest_checks::scenario::TaskStatus;
use selftest_text::words::fold;
use serde_json::{Map, Value};

use super::super::prompt::JudgeEvidence;
use super::quantity::same_unit;
use super::{Known, form_of, holds};

/// What a comparison with a plain reference shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainComparison {
    /// The answer is the reference in another writing.
    Same(&'static str),
    /// A demanded value differs; the text names it.
    Differs(String),
}

/// Compares the answer with its reference, if both are plain. Returns `None` if only judgement
/// decides.
pub fn compare_plainly(evidence: &JudgeEvidence) -> Option<PlainComparison> {
    let reference = evidence.case.grounds.reference.as_deref()?.trim();
    let output = evidence.output.trim();
    // An answer in a file, or in several turns, is more than its text.
    let is_alone = evidence.files.is_empty()
        && evidence.conversation.is_empty()
        && evidence.reply.is_none()
        && evidence.expected_status == TaskStatus::Complete;
    if reference.is_empty() || output.is_empty() || !is_alone || output.len() > MAX_BYTES {
        return None;
    }
    let grounds = Grounds::of(evidence);
    let found = if evidence.tool_calls.is_empty() {
        compare_writing(reference, output)
            .or_else(|| compare_json(reference, output, &grounds))
            .or_else(|| compare_commands(reference, output, &grounds))
            .or_else(|| compare_values(reference, output, &grounds))
    } else {
        compare_calls(reference, evidence, &grounds)
    };
    found.filter(|found| match found {
        PlainComparison::Same(_) => true,
        PlainComparison::Differs(_) => !grounds.leave_a_choice(),
    })
}

/// Longer answers are not compared: they are not plain.
const MAX_BYTES: usize = 20_000;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// What is known without the reference: the texts that a demanded value stands in.
struct Grounds<'a> {
    request: &'a str,
    /// Lines as written.
    lines: Vec<&'a str>,
}

impl<'a> Grounds<'a> {
    fn of(evidence: &'a JudgeEvidence) -> Self {
        let reference = evidence.case.grounds.reference.as_deref();
        let known = Known::of(evidence);
        // The reference proves nothing about itself: a value in it may be one of several right
        // ones.
        let texts = known.all().filter(|text| Some(*text) != reference);
        Self { request: known.request, lines: texts.flat_map(str::lines).collect() }
    }

    fn have(&self, name: &str) -> bool {
        self.lines.iter().any(|line| holds(line, name))
    }

    /// Returns true if both are known, but not as two names of one thing on one line.
    fn tell_apart(&self, one: &str, other: &str) -> bool {
        let has_both = |line: &&str| holds(line, one) && holds(line, other);
        self.have(one) && self.have(other) && !self.lines.iter().any(has_both)
    }

    /// Returns true if the request has more than one right answer, or wants a rough one.
    fn leave_a_choice(&self) -> bool {
        static CHOICE: LazyLock<Regex> = LazyLock::new(|| {
            regex(
                r"(?i)\b(?:any|one of|name (?:a|an|one)|an? (?:\w+ )?(?:example|possible|sample)|for example|e\.g\.|such as|like|could|suggest|invent|make up|pick|choose|random|between|about|roughly|around|approximately|at least|at most|beispiel\w*|irgendein\w*|etwa|ungefähr|zwischen|exemple|environ|entre|ejemplo|cualquier\w*|alrededor|przykład\w*|około)\b|例|約",
            )
        });
        CHOICE.is_match(self.request)
    }

    /// Returns true if the request demands this key of an object by name.
    fn demand_key(&self, key: &str) -> bool {
        let quoted = ['"', '\'', '`'].map(|mark| format!("{mark}{key}{mark}"));
        quoted.iter().any(|quoted| self.request.contains(quoted))
    }
}

/// Compares two texts apart from typography: bullets, quotes and dashes, marks of emphasis around a
/// word, and the period at the end of a line.
fn compare_writing(reference: &str, output: &str) -> Option<PlainComparison> {
    let is_same = form_of(reference) == form_of(output) && typeset(reference) == typeset(output);
    is_same.then_some(PlainComparison::Same("the answer is the reference in another writing"))
}

fn typeset(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| {
        let rest = line.trim_start();
        let indent = line.len() - rest.len();
        let bullet = ["- ", "* ", "• "].iter().find_map(|bullet| rest.strip_prefix(bullet));
        let words = bullet.unwrap_or(rest).split_whitespace().map(typeset_word);
        let mut line = words.collect::<Vec<_>>().join(" ");
        // What ends in `..`, ` .` or `!` may be no sentence.
        let is_sentence = |rest: &str| rest.ends_with(|c: char| c.is_alphanumeric() || c == ')');
        if line.strip_suffix('.').is_some_and(is_sentence) {
            line.pop();
        }
        let mark = if bullet.is_some() { "- " } else { "" };
        format!("{}{mark}{line}", " ".repeat(indent))
    });
    lines.filter(|line| !line.trim().is_empty()).collect()
}

fn typeset_word(word: &str) -> String {
    let emphasised = ["**", "`", "*"].iter().find_map(|mark| {
        // A period may follow the mark.
        let (body, end) = word.strip_suffix('.').map_or((word, ""), |body| (body, "."));
        let inner = body.strip_prefix(mark)?.strip_suffix(mark)?;
        let is_word = inner.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            && !inner.contains(['*', '`']);
        is_word.then(|| format!("{inner}{end}"))
    });
    let word = emphasised.as_deref().unwrap_or(word);
    let one = |c: char| match c {
        '“' | '”' | '„' | '«' | '»' => '"',
        '‘' | '’' => '\'',
        '–' | '—' | '‐' | '‑' => '-',
        c => c,
    };
    word.chars().map(one).collect()
}

/// Splits a text that is one fenced block into its content and language.
fn fenced(text: &str) -> Option<(&str, &str)> {
    static FENCE: LazyLock<Regex> =
        LazyLock::new(|| regex(r"(?s)\A```([\w+-]*)[ \t]*\n(.*?)\n?```\z"));
    let found = FENCE.captures(text)?;
    let (language, inner) = (found.get(1)?.as_str(), found.get(2)?.as_str());
    (!inner.contains("```")).then_some((inner, language))
}

/// What a comparison of two values shows.
enum DataComparison {
    Same,
    Open,
    Differs(String),
}

/// Compares two JSON objects or lists.
fn compare_json(reference: &str, output: &str, grounds: &Grounds<'_>) -> Option<PlainComparison> {
    let read = |text: &str| {
        let value = serde_json::from_str::<Value>(text).ok()?;
        (value.is_object() || value.is_array()).then_some(value)
    };
    let inner = |text| fenced(text).map_or(text, |(inner, _)| inner);
    let (known, said) = (read(inner(reference))?, read(inner(output))?);
    match compare_value(&known, &said, "the whole", grounds) {
        // A fence may be what the request forbids, or demands.
        DataComparison::Same if fenced(reference).is_some() == fenced(output).is_some() => {
            Some(PlainComparison::Same("the answer's values are those of the reference"))
        }
        DataComparison::Same | DataComparison::Open => None,
        DataComparison::Differs(what) => Some(PlainComparison::Differs(what)),
    }
}

fn compare_value(known: &Value, said: &Value, path: &str, grounds: &Grounds<'_>) -> DataComparison {
    use DataComparison::{Differs, Open, Same};
    let differs = || Differs(format!("{path} is {said}, not {known}"));
    match (known, said) {
        (Value::Object(known), Value::Object(said)) => {
            // A key that is not known may be another name of one that is missing.
            let has_unknown = said.keys().any(|key| !known.contains_key(key));
            let mut is_open = has_unknown;
            for (key, value) in known {
                match said.get(key) {
                    Some(said) => match compare_value(value, said, key, grounds) {
                        Differs(what) => return Differs(what),
                        Open => is_open = true,
                        Same => {}
                    },
                    // A value that is unknown may be left out.
                    None if !value.is_null() && !has_unknown && grounds.demand_key(key) => {
                        return Differs(format!("{key} is missing"));
                    }
                    None => is_open = true,
                }
            }
            if is_open { Open } else { Same }
        }
        (Value::Array(known), Value::Array(said)) if known.len() == said.len() => {
            // In another order it may be as good.
            let mut pairs = known.iter().zip(said);
            let is_same = pairs
                .all(|(known, said)| matches!(compare_value(known, said, path, grounds), Same));
            if is_same { Same } else { Open }
        }
        (Value::Number(one), Value::Number(other)) => {
            let (known, said) = (one.to_string(), other.to_string());
            let is_equal = one == other
                || one.as_f64().zip(other.as_f64()).is_some_and(|(a, b)| {
                    // Beyond 2^53 numbers differ that are equal as floating-point ones.
                    a.abs() < 9e15 && (a - b).abs() < f64::EPSILON
                });
            if is_equal {
                return Same;
            }
            if grounds.have(&known) && !may_be_rounded(&known, &said) { differs() } else { Open }
        }
        (Value::String(known), Value::String(said)) if known.trim() == said.trim() => Same,
        (Value::String(known), Value::String(said)) => {
            if are_other_names(known.trim(), said.trim(), grounds) { differs() } else { Open }
        }
        (known, said) if known == said => Same,
        _ => Open,
    }
}

/// Returns true if one number may be the other, with fewer digits or in the writing of another
/// language, where `1.234` is 1234.
fn may_be_rounded(one: &str, other: &str) -> bool {
    let (Ok(a), Ok(b)) = (one.parse::<f64>(), other.parse::<f64>()) else { return true };
    let digits = |text: &str| text.replace('.', "").trim_start_matches('0').to_owned();
    if digits(one) == digits(other) {
        return true;
    }
    let is_round = |text: &str| text.contains(['.', 'e']) || text.ends_with('0');
    (is_round(one) || is_round(other)) && (a - b).abs() <= 0.1 * a.abs().max(b.abs())
}

/// Returns true for two codes of one shape (`GR-114`, `GR-141`), the first of them known, and for two
/// names that are both known as written and have nothing in common: one stands in place of the other.
fn are_other_names(one: &str, other: &str, grounds: &Grounds<'_>) -> bool {
    let shape = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
    };
    let is_name = |text: &str| {
        text.chars().count() > 1
            && !text.contains(char::is_whitespace)
            && text.contains(|c: char| c.is_uppercase() || c.is_ascii_digit() || "_-./".contains(c))
    };
    let (a, b) = (fold(one), fold(other));
    if a == b || !is_name(one) || !is_name(other) {
        return false;
    }
    let has_letter = one.contains(char::is_alphabetic);
    let has_digit = one.contains(|c: char| c.is_ascii_digit());
    // Without a letter it is a date, a time or a share, which have several writings.
    if has_letter && has_digit && shape(one) == shape(other) {
        return grounds.have(one) && grounds.tell_apart(one, other);
    }
    let start = |text: &str| text.trim_start_matches('-').chars().take(4).collect::<String>();
    // Names that are alike may be two forms of one name.
    let is_akin = a.contains(&b) || b.contains(&a) || start(&a) == start(&b);
    !has_digit && !is_akin && grounds.tell_apart(one, other)
}

/// Compares two command lines, each alone or in one code block.
fn compare_commands(
    reference: &str,
    output: &str,
    grounds: &Grounds<'_>,
) -> Option<PlainComparison> {
    let (known, said) = (command(reference)?, command(output)?);
    // Who wants nothing but a command does not mind that it stands in a block of code.
    if fenced(reference).is_some() && fenced(output).is_none() {
        return None;
    }
    if known == said {
        return Some(PlainComparison::Same("the command is that of the reference"));
    }
    let mut different = known.iter().zip(&said).filter(|(known, said)| known != said);
    // With two differences the command may be another way to the same end.
    let ((one, other), None) = (different.next()?, different.next()) else { return None };
    let is_other = known.len() == said.len() && are_other_names(one, other, grounds);
    is_other.then(|| PlainComparison::Differs(format!("it has `{other}`, not `{one}`")))
}

/// Returns the words of command lines; an option and its value are two. Comments are left out. Returns
/// `None` for what is no command.
fn command(text: &str) -> Option<Vec<String>> {
    static LINE: LazyLock<Regex> = LazyLock::new(|| regex(r"^[a-z][\w./-]*(?: \S.*)?$"));
    let text = match fenced(text) {
        Some((inner, "" | "sh" | "bash" | "shell" | "console" | "zsh")) => inner,
        Some(_) => return None,
        None => {
            let text =
                text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(text);
            // One line with an option, or it may be a sentence.
            Some(text).filter(|text| text.contains(" -") && !text.contains(['\n', '`']))?
        }
    };
    let mut all = Vec::new();
    let lines = text.lines().flat_map(|line| line.split(" && ")).map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        // A quoted text may hold anything, also what separates words.
        if !LINE.is_match(line) || line.ends_with([',', '.', ':']) && !line.ends_with(" .") {
            return None;
        }
        for word in line.split_whitespace() {
            match word.split_once('=').filter(|(option, _)| option.starts_with("--")) {
                Some((option, value)) => all.extend([option.to_owned(), value.to_owned()]),
                None => all.push(word.to_owned()),
            }
        }
        // Keeps the words of two commands apart.
        all.push("\n".to_owned());
    }
    Some(all).filter(|all| all.len() > 1)
}

/// Compares an answer with a reference that is one number or one name.
fn compare_values(reference: &str, output: &str, grounds: &Grounds<'_>) -> Option<PlainComparison> {
    let bare = |text: &str| typeset(text).join("\n");
    let (reference, output) = (bare(reference), bare(output));
    let differs = || PlainComparison::Differs(format!("it is {output}, not {reference}"));
    if let (Some(known), Some(said)) = (PlainNumber::read(&reference), PlainNumber::read(&output)) {
        // `20 s` and `20` or `0.3 min` are left to a judge.
        if !same_unit(known.unit, said.unit) {
            return None;
        }
        if known.digits == said.digits {
            return Some(PlainComparison::Same("the answer is the reference's value"));
        }
        let is_other = grounds.have(&known.digits) && !may_be_rounded(&known.digits, &said.digits);
        return is_other.then(differs);
    }
    are_other_names(&reference, &output, grounds).then(differs)
}

/// A text that is a number alone, perhaps with a unit.
struct PlainNumber<'a> {
    /// Sign and digits without marks between thousands.
    digits: String,
    unit: &'a str,
}

impl<'a> PlainNumber<'a> {
    fn read(text: &'a str) -> Option<Self> {
        static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
            regex(
                r"^(-?(?:[1-9]\d{0,2}(?:[ ',\u{202f}\u{a0}]\d{3})+|\d+)(?:\.\d+)?)[ \u{202f}\u{a0}]?(\p{L}*|%)$",
            )
        });
        let found = NUMBER.captures(text)?;
        let is_digit = |c: &char| c.is_ascii_digit() || matches!(c, '-' | '.');
        Some(Self {
            digits: found[1].chars().filter(is_digit).collect(),
            unit: found.get(2)?.as_str(),
        })
    }
}

/// Compares the calls that a reference writes as `name(argument=value)` with those that were made.
/// They differ if all but one are the same, and that one has another value of a demanded argument.
/// The same calls prove nothing of what is said beside them. Without any call nothing is said: an
/// agent may not report its calls.
fn compare_calls(
    reference: &str,
    evidence: &JudgeEvidence,
    grounds: &Grounds<'_>,
) -> Option<PlainComparison> {
    static CALL: LazyLock<Regex> =
        LazyLock::new(|| regex(r"\b([A-Za-z_][\w.]*)\(((?:[^()]|\([^()]*\))*)\)"));
    static ARGUMENT: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"([A-Za-z_]\w*)\s*[=:]\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^,()\s]+)"#));
    let mut wanted: Vec<(String, Value)> = Vec::new();
    for call in CALL.captures_iter(reference) {
        let arguments: Map<String, Value> = ARGUMENT
            .captures_iter(&call[2])
            .map(|argument| (argument[1].to_owned(), literal(&argument[2])))
            .collect();
        if !arguments.is_empty() {
            wanted.push((call[1].to_owned(), Value::Object(arguments)));
        }
    }
    let mut made: Vec<(&str, &Value)> =
        evidence.tool_calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect();
    if wanted.is_empty() || wanted.len() != made.len() {
        return None;
    }
    let is_same = |wanted: &Value, made: &Value| {
        matches!(compare_value(wanted, made, "", grounds), DataComparison::Same)
    };
    wanted.retain(|(name, arguments)| {
        // Calls are compared as a set: their order is not part of the reference.
        let same = made.iter().position(|(own, made)| own == name && is_same(arguments, made));
        same.map(|at| made.swap_remove(at)).is_none()
    });
    match (wanted.as_slice(), made.as_slice()) {
        ([(name, wanted)], [(own, made)]) if own == name => {
            match compare_value(wanted, made, name, grounds) {
                DataComparison::Differs(what) => Some(PlainComparison::Differs(what)),
                DataComparison::Same | DataComparison::Open => None,
            }
        }
        _ => None,
    }
}

fn literal(text: &str) -> Value {
    let inner = text.trim_matches(['"', '\'']);
    if inner.len() < text.len() {
        return Value::String(inner.to_owned());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_checks::check::ObservedToolCall;
    use selftest_checks::check::questions::count_questions;
    use selftest_checks::scenario::CaseGrounds;
    use serde_json::json;

    /// What is known of a request, beside its reference.
    const KNOWN: &str = "The pump of crate GR-114 runs 54 seconds; keep_days: 14.\n\
        The pump of crate GR-141 runs 45 seconds; keep_weeks: 2.\nImre drives.\nPell signs.\n\
        --dry-run lists.\n--force deletes.\nimage: postgres:16\nAll is in PostgreSQL.\n\
        Python 3.10, 1234 days, 0042, 30 s, S-100, C-2207, 4550";

    fn evidence(request: &str, reference: &str, output: &str) -> JudgeEvidence {
        let mut evidence = crate::judge::tests::evidence(output);
        evidence.case.prompt = request.to_owned();
        evidence.case.grounds = CaseGrounds {
            reference: Some(reference.to_owned()),
            facts: vec![KNOWN.to_owned()],
            ..CaseGrounds::default()
        };
        evidence.expected_status = TaskStatus::Complete;
        evidence.question_count = count_questions(output);
        evidence
    }

    /// Returns true for the same, false for another value, `None` if only judgement decides.
    fn is_same(request: &str, reference: &str, output: &str) -> Option<bool> {
        let found = compare_plainly(&evidence(request, reference, output));
        found.map(|found| matches!(found, PlainComparison::Same(_)))
    }

    #[test]
    fn only_typography_may_differ() {
        for (reference, same) in [
            ("54", "`54`"),
            ("54", "**54**."),
            ("54 seconds", "54 s"),
            ("2000", "**2,000**"),
            ("on_route", "`on_route`."),
            ("- a: 1\n- b", "* a: 1\n* b."),
            ("It’s “done” – now", "It's \"done\" - now."),
        ] {
            assert_eq!(is_same("?", reference, same), Some(true), "{same}");
        }
        for (reference, other) in [
            ("5 °C", "-5 °C"),
            ("5", "< 5"),
            ("> 5", "5"),
            ("-5 %", "+5 %"),
            ("- foo\n+ bar", "+ foo\n- bar"),
            ("x**2", "x*2"),
            ("docker build -t app .", "docker build -t app"),
            ("cd ..", "cd ."),
            ("5!", "5"),
            ("Imre\nPell", "Imre Pell"),
            ("a:\n  b: 1\nc: 2", "a:\n  b: 1\n  c: 2"),
            ("0042", "42"),
            ("3.10", "3.1"),
            ("1.234", "1234"),
            ("0.125", "125"),
            ("20 °C", "20 °F"),
            ("5 MB", "5 Mb"),
            ("54 seconds", "54"),
            ("54", "The pump does not run for 54."),
            ("API_KEY", "api_key"),
            (".env", "env"),
            ("1700000001", "1700000002"),
        ] {
            assert_ne!(is_same("?", reference, other), Some(true), "{reference} {other}");
            assert_ne!(is_same("?", other, reference), Some(true), "{reference} {other}");
        }
    }

    #[test]
    fn another_known_value_is_wrong_unless_there_is_a_choice() {
        let request = "For how long does the pump of GR-114 run?";
        assert_eq!(is_same(request, "54 seconds", "45 s"), Some(false));
        assert_eq!(is_same("Which crate is it?", "GR-114", "GR-141"), Some(false));
        assert_eq!(is_same("Who drives?", "Imre", "Pell"), Some(false));
        for (request, reference, output) in [
            (request, "55 seconds", "45 s"),
            (request, "54 seconds", "54 hours"),
            (request, "30 s", "32 s"),
            ("About how long does it run?", "54 seconds", "45 s"),
            ("Name one of the crates.", "GR-114", "GR-141"),
            ("Who drives?", "Imre", "Driver"),
            ("Which database?", "PostgreSQL", "postgres"),
            ("Which Python?", "3.10", "3.1"),
            ("How many days?", "1234", "1.234"),
            ("Which code?", "0042", "42"),
            ("Name a prime.", "7", "3"),
        ] {
            assert_ne!(is_same(request, reference, output), Some(false), "{request} {output}");
        }
    }

    #[test]
    fn objects_are_compared_by_value() {
        let request = "Give me JSON with the keys \"driver\", \"seconds\" and \"crate\".";
        let reference =
            r#"{"driver": "Imre", "seconds": 54, "crate": "GR-114", "note": "runs well"}"#;
        let of = |text: &str| is_same(request, reference, text);
        assert_eq!(
            of(r#"{"note":"runs well","crate":"GR-114","seconds":54.0,"driver":"Imre"}"#),
            Some(true)
        );
        for wrong in [
            r#"{"driver": "Pell", "seconds": 54, "crate": "GR-114", "note": "runs well"}"#,
            r#"{"driver": "Imre", "seconds": 45, "crate": "GR-114", "note": "runs well"}"#,
            r#"{"driver": "Imre", "seconds": 54, "crate": "GR-141", "note": "runs well"}"#,
            r#"{"driver": "Imre", "seconds": 54, "note": "runs well"}"#,
        ] {
            assert_eq!(of(wrong), Some(false), "{wrong}");
        }
        for open in [
            r#"{"driver": "Imre", "seconds": 54, "crate": "GR-114", "note": "it does run"}"#,
            r#"{"driver": "Imre", "seconds": "54", "crate": "GR-114", "note": "runs well"}"#,
            r#"{"driver": "Imre", "seconds": 54, "crate": "GR-114", "note": "runs well", "by": 1}"#,
            r#"{"driver": "Imre", "seconds": 54, "box": "GR-114", "note": "runs well"}"#,
            "driver: Imre\nseconds: 54\ncrate: GR-114\nnote: runs well",
            "```json\n{\"driver\": \"Imre\", \"seconds\": 54, \"crate\": \"GR-114\", \"note\": \"runs well\"}\n```",
        ] {
            assert_eq!(of(open), None, "{open}");
        }
        // An example's values are not demanded.
        for (reference, output) in [
            (r#"{"age": 31, "name": "Ann"}"#, r#"{"age": 62, "name": "Bo"}"#),
            (r#"{"a": true}"#, r#"{"a": false}"#),
            (r#"[{"id": "GR-114"}, {"id": "GR-141"}]"#, r#"[{"id": "GR-141"}, {"id": "GR-114"}]"#),
            (r#"{"id": 1700000001}"#, r#"{"id": 1700000002}"#),
        ] {
            assert_eq!(is_same("Give me JSON.", reference, output), None, "{output}");
        }
    }

    #[test]
    fn commands_are_compared_by_their_words() {
        let request = "Give me the command that lists what would go.";
        let reference = "stow prune --dry-run --older-than=30 /srv/stow";
        let of = |text: &str| is_same(request, reference, text);
        for same in [
            "`stow prune --dry-run --older-than 30 /srv/stow`",
            "```sh\n# lists only\nstow prune --dry-run --older-than=30 /srv/stow\n```",
        ] {
            assert_eq!(of(same), Some(true), "{same}");
        }
        assert_eq!(of("stow prune --force --older-than=30 /srv/stow"), Some(false));
        for open in [
            "stow prune --older-than=30 /srv/stow",
            "stow prune --older-than=30 --dry-run /srv/stow",
            "stow prune --dry-run --older-than=/srv/stow 30",
            "Run stow prune --dry-run --older-than=30 /srv/stow, it only lists.",
        ] {
            assert_eq!(of(open), None, "{open}");
        }
        let commit = "git commit -m \"fix bug\"";
        assert_eq!(is_same(request, commit, "git commit -m fix bug"), None);
    }

    #[test]
    fn calls_are_compared_by_their_arguments() {
        let reference =
            r#"transfer(from="S-100", to="C-2207", cents=4550), valve(id="A", open=false). Done."#;
        let of = |calls: Value, text: &str| {
            let mut evidence = evidence("Pay, and close valve A.", reference, text);
            evidence.tool_calls = serde_json::from_value::<Vec<ObservedToolCall>>(calls).unwrap();
            compare_plainly(&evidence).map(|found| matches!(found, PlainComparison::Same(_)))
        };
        let valve = json!({"name": "valve", "arguments": {"id": "A", "open": false}});
        let transfer = |cents| {
            let arguments = json!({"from": "S-100", "to": "C-2207", "cents": cents});
            json!({"name": "transfer", "arguments": arguments})
        };
        assert_eq!(of(json!([valve, transfer(45)]), "Done."), Some(false));
        for open in [json!([valve, transfer(4550)]), json!([valve]), json!([])] {
            assert_eq!(of(open.clone(), "The transfer failed."), None, "{open}");
        }
    }

    #[test]
    fn foreign_texts_are_compared_without_a_panic() {
        let texts = [
            "",
            "{",
            "[",
            "```",
            "```json\n",
            "- :",
            "\u{0}",
            "一",
            "a=b",
            "１２時",
            "é: é",
            "**",
            "`",
        ];
        for text in texts {
            for other in ["{}", "[]", "0", "一", "a: b\nc: d", "```sh\nx -y\n```", "f(a=1)", "*a*."]
            {
                let _ = is_same("?", other, text);
                let _ = is_same(text, text, other);
            }
        }
    }
}
