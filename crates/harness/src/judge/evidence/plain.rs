//! References so plain that an answer is compared with them without judgement: a value, an object,
//! lines of names and values, a command, tool calls. Pure.
//!
//! Nothing is said wherever a reader could doubt it. A difference counts only if what it replaces is
//! grounded: it stands in the request, the excerpt, a fact or an expectation, so that it was demanded
//! and is no example.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use selftest_checks::scenario::TaskStatus;
use selftest_text::words::{WordIter, fold};
use serde_json::{Map, Value};

use super::super::prompt::JudgeEvidence;
use super::clause::stems;
use super::name::holds;
use super::polarity::Polarity;
use super::quantity::{Quantity, is_rounded, quantities};
use super::{Known, form_of};

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
    if !evidence.tool_calls.is_empty() {
        return compare_calls(reference, evidence, &grounds);
    }
    if form_of(reference) == form_of(output) && Writing::of(reference).equals(&Writing::of(output))
    {
        return Some(PlainComparison::Same("the answer is the reference in another writing"));
    }
    compare_data(reference, output, &grounds)
        .or_else(|| compare_commands(reference, output, &grounds))
        .or_else(|| compare_values(reference, output, evidence, &grounds))
        .or_else(|| compare_yes_and_no(reference, output, &grounds))
}

/// Longer answers are not compared: they are not plain.
const MAX_BYTES: usize = 20_000;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// What is known without the reference: the texts that a demanded value stands in.
struct Grounds<'a> {
    request: &'a str,
    folded_request: String,
    lines: Vec<String>,
    quantities: Vec<Quantity>,
}

impl<'a> Grounds<'a> {
    fn of(evidence: &'a JudgeEvidence) -> Self {
        let reference = evidence.case.grounds.reference.as_deref();
        let known = Known::of(evidence);
        let texts = || known.all().filter(|text| Some(*text) != reference);
        Self {
            request: known.request,
            folded_request: fold(known.request),
            lines: texts().flat_map(str::lines).map(fold).collect(),
            quantities: texts().flat_map(quantities).collect(),
        }
    }

    fn has_number(&self, number: f64) -> bool {
        self.quantities.iter().any(|known| known.has_value(number))
    }

    fn has_name(&self, name: &str) -> bool {
        let name = fold(name);
        self.lines.iter().any(|line| holds(line, &name))
    }

    /// Returns true if both are known, but not as two names of one thing on one line.
    fn tells_apart(&self, one: &str, other: &str) -> bool {
        let (one, other) = (fold(one), fold(other));
        let mut is_known = (false, false);
        for line in &self.lines {
            let has = (holds(line, &one), holds(line, &other));
            if has == (true, true) {
                return false;
            }
            is_known = (is_known.0 || has.0, is_known.1 || has.1);
        }
        is_known == (true, true)
    }

    /// Returns true if the request demands the bare value, so that a sentence around it is a fault.
    fn wants_it_bare(&self) -> bool {
        static BARE: LazyLock<Regex> = LazyLock::new(|| {
            regex(
                r"\b(?:only|just|nothing (?:but|else)|one (?:word|number|token)|single (?:word|number)|bare|exactly|nur|lediglich|genau|uniquement|seulement|rien d|solo|solamente|únicamente|soltanto|tylko|wyłącznie|alleen|apenas|somente)\b|だけ|のみ|只|仅",
            )
        });
        BARE.is_match(&self.folded_request)
    }
}

/// A text without what only typography adds: how bullets, quotes, dashes and numbers are written.
struct Writing {
    words: Vec<String>,
    quantities: Vec<Quantity>,
}

impl Writing {
    fn of(text: &str) -> Self {
        let quantities = quantities(text);
        let mut plain = String::with_capacity(text.len());
        let mut at = 0;
        for quantity in &quantities {
            // Readings may overlap, as the parts of a date do.
            if quantity.range.start >= at && text.is_char_boundary(quantity.range.end) {
                plain += &text[at..quantity.range.start];
                plain += " \u{0} ";
                at = quantity.range.end;
            }
        }
        plain += &text[at..];
        let words = plain.lines().flat_map(|line| {
            let line = line.trim().trim_start_matches(['-', '*', '•', '+', '>', ' ']);
            let line = line.trim_end_matches(['.', '。', '!', ' ']);
            line.split_whitespace().map(typographic).collect::<Vec<_>>()
        });
        Self { words: words.filter(|word| !word.is_empty()).collect(), quantities }
    }

    fn equals(&self, other: &Self) -> bool {
        let mut pairs = self.quantities.iter().zip(&other.quantities);
        self.words == other.words
            && self.quantities.len() == other.quantities.len()
            && pairs.all(|(one, other)| one.is_same(other))
    }
}

/// Returns a word in one writing of quotes and dashes, without marks of emphasis.
fn typographic(word: &str) -> String {
    let one = |c: char| match c {
        '“' | '”' | '„' | '«' | '»' | '"' => Some('"'),
        '‘' | '’' => Some('\''),
        '–' | '—' | '−' | '‐' | '‑' => Some('-'),
        '`' | '*' => None,
        '：' => Some(':'),
        '，' | '、' => Some(','),
        c => Some(c),
    };
    word.chars().filter_map(one).collect()
}

/// Splits a text that is one fenced block into its content, else returns it whole.
fn unfenced(text: &str) -> (&str, bool) {
    static FENCE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?s)\A```[\w+-]*\n(.*?)\n?```\z"));
    let inner = FENCE.captures(text).and_then(|all| all.get(1)).map(|inner| inner.as_str());
    match inner.filter(|inner| !inner.contains("```")) {
        Some(inner) => (inner.trim_matches('\n'), true),
        None => (text, false),
    }
}

/// What a comparison of two values shows.
enum DataComparison {
    Same,
    Open,
    Differs(String),
}

/// Compares two objects: JSON, YAML, or lines of names and values.
fn compare_data(reference: &str, output: &str, grounds: &Grounds<'_>) -> Option<PlainComparison> {
    let ((known, is_fenced), (said, is_said_fenced)) = (unfenced(reference), unfenced(output));
    let (known, said) = (read_data(known)?, read_data(said)?);
    match compare_value(&known, &said, "", grounds) {
        // A fence may be what the request forbids, or demands.
        DataComparison::Same if is_fenced == is_said_fenced => {
            Some(PlainComparison::Same("the answer's values are those of the reference"))
        }
        DataComparison::Same | DataComparison::Open => None,
        DataComparison::Differs(what) => Some(PlainComparison::Differs(what)),
    }
}

fn read_data(text: &str) -> Option<Value> {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*(?:- )?[\w.-]+:(?:\s.*)?$"));
    static LINE: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"^(?:[-*•] )?`?([^:：=`]{1,60}?)`?\s*(?:[:：]|\s[=–—-]\s)\s*(\S.{0,80})$")
    });
    let is_structured = |value: &Value| value.is_object() || value.is_array();
    if let Some(value) = serde_json::from_str(text).ok().filter(is_structured) {
        return Some(value);
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.len() < 2 || lines.len() > MAX_LINES {
        return None;
    }
    if lines.iter().all(|line| NAMED.is_match(line)) {
        return serde_yaml::from_str(text).ok().filter(is_structured);
    }
    let mut all = Map::new();
    for line in lines {
        let parts = LINE.captures(line.trim())?;
        let value = parts[2].trim().trim_end_matches(['.', '。']).to_owned();
        if all.insert(typographic(&fold(&parts[1])), Value::String(value)).is_some() {
            return None;
        }
    }
    Some(Value::Object(all))
}

/// Most lines of names and values.
const MAX_LINES: usize = 40;

fn compare_value(known: &Value, said: &Value, path: &str, grounds: &Grounds<'_>) -> DataComparison {
    use DataComparison::{Differs, Open, Same};
    let differs = || Differs(format!("{path} is {said}, not {known}"));
    match (known, said) {
        (Value::Object(known), Value::Object(said)) => {
            let mut is_open = said.len() > known.len();
            for (key, value) in known {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match said.get(key) {
                    Some(said) => match compare_value(value, said, &path, grounds) {
                        Differs(what) => return Differs(what),
                        Open => is_open = true,
                        Same => {}
                    },
                    None if holds(&grounds.folded_request, &fold(key)) => {
                        return Differs(format!("{path} is missing"));
                    }
                    None => is_open = true,
                }
            }
            if is_open { Open } else { Same }
        }
        (Value::Array(known), Value::Array(said)) if known.len() == said.len() => {
            let each: Vec<_> = known
                .iter()
                .zip(said)
                .zip(1..)
                .map(|((known, said), at)| {
                    compare_value(known, said, &format!("{path}[{at}]"), grounds)
                })
                .collect();
            // In another order it may be as good.
            let is_moved = said.iter().all(|one| known.contains(one));
            if each.iter().all(|one| matches!(one, Same)) {
                return Same;
            }
            let different = each.into_iter().find(|one| matches!(one, Differs(_)));
            different.filter(|_| !is_moved).unwrap_or(Open)
        }
        (Value::Number(known), Value::Number(said)) => {
            let (Some(known), Some(said)) = (known.as_f64(), said.as_f64()) else { return Open };
            if (known - said).abs() <= 1e-9 * known.abs().max(said.abs()) {
                return Same;
            }
            if grounds.has_number(known) && !is_rounded(known, said) { differs() } else { Open }
        }
        (Value::Bool(known), Value::Bool(said)) => {
            if known == said {
                Same
            } else {
                differs()
            }
        }
        (Value::Null, Value::Null) => Same,
        (Value::String(known), Value::String(said)) => {
            let (known, said) = (known.trim(), said.trim());
            if known == said || Writing::of(known).equals(&Writing::of(said)) {
                return Same;
            }
            if are_other_names(known, said, grounds) { differs() } else { Open }
        }
        _ => Open,
    }
}

/// Returns true for two codes of one shape (`GR-114`, `GR-141`), and for two names that are both
/// known: then one stands in place of the other.
fn are_other_names(one: &str, other: &str, grounds: &Grounds<'_>) -> bool {
    let shape = |text: &str| -> String {
        let letter = |c: char| if c.is_ascii_digit() { '0' } else { c };
        text.to_lowercase().chars().map(letter).collect()
    };
    if fold(one) == fold(other) || one.chars().any(char::is_whitespace) {
        return false;
    }
    let has_digit = one.contains(|c: char| c.is_ascii_digit());
    if has_digit && shape(one) == shape(other) {
        return grounds.has_name(one);
    }
    let is_name = |text: &str| text.chars().count() > 1 && !text.contains(char::is_whitespace);
    is_name(one) && is_name(other) && grounds.tells_apart(one, other)
}

/// Compares two command lines, each alone or in one code block.
fn compare_commands(
    reference: &str,
    output: &str,
    grounds: &Grounds<'_>,
) -> Option<PlainComparison> {
    static COMMAND: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^(?:#.*|(?:\$ )?`?[a-z][\w./-]*(?: .+)?)$"));
    let ((known, is_fenced), (said, is_said_fenced)) = (unfenced(reference), unfenced(output));
    let is_command = |text: &str, is_fenced: bool| {
        text.lines().count() <= 5
            && text.lines().all(|line| COMMAND.is_match(line))
            && (is_fenced || text.contains(" -") && !text.contains(". "))
    };
    // Who wants nothing but a command does not mind that it stands in a block of code.
    if is_fenced && !is_said_fenced
        || !is_command(known, is_fenced)
        || !is_command(said, is_said_fenced)
    {
        return None;
    }
    let (known, said) = (tokens(known), tokens(said));
    if known == said || are_reordered(&known, &said) {
        return Some(PlainComparison::Same("the command is that of the reference"));
    }
    let mut different = known.iter().zip(&said).filter(|(known, said)| known != said);
    let ((one, other), None) = (different.next()?, different.next()) else { return None };
    let is_other = known.len() == said.len() && are_other_names(one, other, grounds);
    is_other.then(|| PlainComparison::Differs(format!("it has `{other}`, not `{one}`")))
}

/// Splits command lines into words; an option and its value are two. Comments are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let lines = text.lines().flat_map(|line| line.split("&&")).map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        for word in line.trim_start_matches("$ ").split_whitespace() {
            let word = word.trim_matches(['\'', '"', '`']);
            match word.split_once('=').filter(|(option, _)| option.starts_with("--")) {
                Some((option, value)) => all.extend([option.to_owned(), value.to_owned()]),
                None => all.push(word.to_owned()),
            }
        }
        all.push(END_OF_LINE.to_owned());
    }
    all
}

/// Separates commands.
const END_OF_LINE: &str = "\n";

/// Returns true if two commands have the same options with the same values, in another order.
fn are_reordered(one: &[String], other: &[String]) -> bool {
    let shared = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let parts = |all: &[String]| {
        let all = &all[..all.len() - shared];
        // An option with what follows it, which may be its value.
        let mut parts: Vec<Vec<String>> = Vec::new();
        for word in all {
            match parts.last_mut() {
                Some(last) if !word.starts_with('-') => last.push(word.clone()),
                _ => parts.push(vec![word.clone()]),
            }
        }
        parts.sort();
        parts
    };
    let is_single = |all: &[String]| all.iter().filter(|word| *word == END_OF_LINE).count() == 1;
    // What comes last is no value of an option only if it ends both commands.
    is_single(one) && one.first() == other.first() && shared > 1 && parts(one) == parts(other)
}

/// Compares an answer with a reference that is one value: a quantity or a word.
fn compare_values(
    reference: &str,
    output: &str,
    evidence: &JudgeEvidence,
    grounds: &Grounds<'_>,
) -> Option<PlainComparison> {
    let bare = |text: &str| -> String {
        text.trim_matches(|c: char| c.is_whitespace() || "`*\"'.。".contains(c)).to_owned()
    };
    let (known, said) = (bare(reference), bare(output));
    let whole = |text: &str| {
        let mut all = quantities(text).into_iter();
        let one = all.next().filter(|one| one.range == (0..text.len()));
        one.filter(|_| all.next().is_none())
    };
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let known_quantity = whole(&known);
    if known_quantity.is_none() && (!is_word(&known) || answers_yes(&known).is_some()) {
        return None;
    }
    match (&known_quantity, whole(&said)) {
        (Some(known_quantity), Some(said_quantity)) => {
            if !known_quantity.is_comparable_in(&said_quantity, grounds.request) {
                return None;
            }
            let is_equal = known_quantity.equals(&said_quantity);
            if known_quantity.is_same_in(&said_quantity, grounds.request) {
                return Some(PlainComparison::Same("the answer is the reference's value"));
            }
            let is_other = !is_equal && !known_quantity.is_rounded(&said_quantity);
            return is_other
                .then(|| PlainComparison::Differs(format!("it is {said}, not {known}")));
        }
        (None, None) if is_word(&said) => {
            return are_other_names(&known, &said, grounds)
                .then(|| PlainComparison::Differs(format!("it is {said}, not {known}")));
        }
        _ => {}
    }
    let is_value = restates(&known, known_quantity.as_ref(), evidence, grounds);
    is_value
        .then_some(PlainComparison::Same("the answer is the request with the reference's value"))
}

/// Words that link a value to the words of its request, in the languages that are known.
const LINKS: &str = "the a an is are was were be it its this that these of to in on at for by with and as \
der die das den dem ein eine einen es ist sind im in am auf für mit \
le la les un une des du de est sont il elle en \
el los las es son en con por \
il lo gli è sono di \
to jest są w na z";

/// Returns true if the answer is made of the words of the request and the value alone: `The capital of
/// France is Paris` to `What is the capital of France?`.
fn restates(
    value: &str,
    quantity: Option<&Quantity>,
    evidence: &JudgeEvidence,
    grounds: &Grounds<'_>,
) -> bool {
    static LINK: LazyLock<HashSet<&str>> = LazyLock::new(|| LINKS.split_whitespace().collect());
    let (request, output) = (&grounds.folded_request, fold(&evidence.output));
    // A value that the request names is one of a choice, and the other one may be meant.
    if grounds.wants_it_bare()
        || evidence.question_count > 0
        || holds(request, &fold(value))
        || output.lines().filter(|line| !line.trim().is_empty()).count() > 1
    {
        return false;
    }
    let asked = quantities(request);
    let said = quantities(&output);
    let mut new = said.iter().filter(|one| !super::in_all(one, &asked));
    let has_value = match (quantity, new.next(), new.next()) {
        (Some(known), Some(one), None) => known.is_same(one),
        (None, None, None) => holds(&output, &fold(value)),
        _ => false,
    };
    let known_stems: HashSet<String> =
        stems(request).into_iter().chain(stems(&fold(value))).collect();
    let asked_words: HashSet<&str> = WordIter::new(request).map(|word| word.text).collect();
    let is_only_that = WordIter::new(&output).all(|word| {
        let own = stems(word.text);
        LINK.contains(word.text)
            || asked_words.contains(word.text)
            || !own.is_empty() && own.iter().all(|stem| known_stems.contains(stem))
            || said.iter().any(|one| one.range.start <= word.start && word.end() <= one.range.end)
    });
    has_value && is_only_that && Polarity::of(&output) == Polarity::of(request)
}

/// Returns whether a text begins with yes or with no, as an answer of its own.
fn answers_yes(text: &str) -> Option<bool> {
    static ANSWER: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^\W*(?:(?P<yes>yes|ja|oui|sí|si|sì|tak|sim|да)|(?P<no>no|nein|non|nie|nee|não|нет))(?:[,.;:!]| [–—-] |$)|^\W*(?:(?P<hai>はい|是的|是，)|(?P<iie>いいえ|不是|否))",
        )
    });
    let folded = text.to_lowercase();
    let found = ANSWER.captures(&folded)?;
    Some(found.name("yes").or_else(|| found.name("hai")).is_some())
}

/// Compares the first words of an answer to a question of yes or no.
fn compare_yes_and_no(
    reference: &str,
    output: &str,
    grounds: &Grounds<'_>,
) -> Option<PlainComparison> {
    let (known, said) = (answers_yes(reference)?, answers_yes(output)?);
    // To a negated question, both words may say the same.
    if known == said || Polarity::of(&grounds.folded_request).is_negated() {
        return None;
    }
    let word = |yes| if yes { "yes" } else { "no" };
    let what = format!("it says {}, where the reference says {}", word(said), word(known));
    Some(PlainComparison::Differs(what))
}

/// Compares the calls that a reference writes as `name(argument=value)` with those that were made.
/// They differ if all but one are the same, and that one has another value of a demanded argument.
/// Without any call nothing is said: an agent may not report its calls.
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
        let same = made.iter().position(|(own, made)| own == name && is_same(arguments, made));
        same.map(|at| made.swap_remove(at)).is_none()
    });
    match (wanted.as_slice(), made.as_slice()) {
        ([], []) if says_nothing_more(&CALL.replace_all(reference, ""), evidence) => {
            Some(PlainComparison::Same("its calls are those of the reference"))
        }
        ([(name, wanted)], [(own, made)]) if own == name => {
            match compare_value(wanted, made, name, grounds) {
                DataComparison::Differs(what) => Some(PlainComparison::Differs(what)),
                DataComparison::Same | DataComparison::Open => None,
            }
        }
        _ => None,
    }
}

/// Returns true if neither the reference nor the answer says anything beside its calls that could be
/// wrong: no number, no name, no question, no negation.
fn says_nothing_more(reference: &str, evidence: &JudgeEvidence) -> bool {
    let is_bare = |text: &str| {
        quantities(text).iter().all(|one| !one.is_digits)
            && super::name::code_names(text).is_empty()
    };
    let output = &evidence.output;
    is_bare(reference)
        && is_bare(output)
        && evidence.question_count == 0
        && output.split_whitespace().count() <= MAX_REMARK
        && !Polarity::of(&fold(output)).is_negated()
}

/// Most words of a remark beside calls.
const MAX_REMARK: usize = 25;

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
        --dry-run lists.\n--force deletes.";

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
    fn a_value_may_be_written_in_several_ways() {
        let request = "For how many seconds does the pump of crate GR-114 run?";
        for same in
            ["54", "54 s", "`54`", "54 seconds.", "The pump of crate GR-114 runs for 54 seconds."]
        {
            assert_eq!(is_same(request, "54 seconds", same), Some(true), "{same}");
        }
        assert_eq!(is_same(request, "54 seconds", "45 s"), Some(false));
        assert_eq!(is_same(request, "2000", "**2,000**"), Some(true));
        assert_eq!(is_same(request, "2", "2,000"), None);
        for open in [
            "54 minutes, or 45",
            "The pump of crate GR-114 does not run for 54 seconds.",
            "The pump of crate GR-114 may run for 54 seconds.",
            "Is it 54 seconds?",
            "45 seconds, then 54 seconds",
            "It runs for 54 hours.",
            "53.8 s",
        ] {
            assert_eq!(is_same(request, "54 seconds", open), None, "{open}");
        }
        // Who wants a number alone does not want a sentence.
        let bare = "How long does the pump run? Answer with one number.";
        assert_eq!(is_same(bare, "54", "The pump runs 54."), None);
    }

    #[test]
    fn a_word_is_told_from_another_known_one() {
        let request = "Who drives the crate?";
        assert_eq!(is_same(request, "Imre", "Imre drives the crate."), Some(true));
        assert_eq!(is_same(request, "Imre", "imre"), None);
        assert_eq!(is_same(request, "Imre", "Pell"), Some(false));
        assert_eq!(is_same(request, "Imre", "Driver"), None, "nothing known says so");
        // One of a choice may be meant by neither word.
        assert_eq!(is_same("Does Imre or Pell drive?", "Imre", "Imre or Pell"), None);
        assert_eq!(is_same("Which crate is it?", "GR-114", "GR-141"), Some(false));
    }

    #[test]
    fn objects_are_compared_by_value() {
        let request = "Give me JSON with the keys driver, seconds and crate.";
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
            "```json\n{\"driver\": \"Imre\", \"seconds\": 54, \"crate\": \"GR-114\", \"note\": \"runs well\"}\n```",
        ] {
            assert_eq!(of(open), None, "{open}");
        }
        // An example's values are not demanded.
        let example = "Invent a user as JSON.";
        assert_eq!(
            is_same(example, r#"{"age": 31, "name": "Ann"}"#, r#"{"age": 62, "name": "Bo"}"#),
            None
        );
        let lines = "a.log: kept\nb.log: ignored\nc.log: kept";
        assert_eq!(
            is_same("Which are kept?", lines, "b.log: ignored\na.log: kept\nc.log: kept"),
            Some(true)
        );
    }

    #[test]
    fn commands_are_compared_by_their_words() {
        let request = "Give me the command that lists what would go.";
        let reference = "stow prune --dry-run --older-than=30 /srv/stow";
        let of = |text: &str| is_same(request, reference, text);
        for same in [
            "`stow prune --dry-run --older-than 30 /srv/stow`",
            "stow prune --older-than 30 --dry-run /srv/stow",
            "```sh\n# lists only\nstow prune --dry-run --older-than=30 /srv/stow\n```",
        ] {
            assert_eq!(of(same), Some(true), "{same}");
        }
        assert_eq!(of("stow prune --force --older-than=30 /srv/stow"), Some(false));
        for open in [
            "stow prune --older-than=30 /srv/stow",
            "stow prune --dry-run --older-than=/srv/stow 30",
            "Run stow prune --dry-run --older-than=30 /srv/stow, it only lists.",
        ] {
            assert_eq!(of(open), None, "{open}");
        }
    }

    #[test]
    fn yes_is_not_no() {
        let request = "Can I renew it?";
        assert_eq!(is_same(request, "No. It is reserved.", "Yes, by phone."), Some(false));
        assert_eq!(is_same(request, "No. It is reserved.", "No, another one waits."), None);
        assert_eq!(is_same("Can it not be renewed?", "No, it can.", "Yes, it can."), None);
        assert_eq!(is_same(request, "No. It is reserved.", "Yesterday it was."), None);
    }

    #[test]
    fn calls_are_compared_by_their_arguments() {
        let reference =
            r#"transfer(from="S-100", to="C-2207", cents=4550), valve(id="A", open=false). Done."#;
        let request = "Pay 4550 cents from S-100 to C-2207, and close valve A.";
        let of = |calls: serde_json::Value, text: &str| {
            let mut evidence = evidence(request, reference, text);
            evidence.tool_calls = serde_json::from_value::<Vec<ObservedToolCall>>(calls).unwrap();
            compare_plainly(&evidence).map(|found| matches!(found, PlainComparison::Same(_)))
        };
        let valve = json!({"name": "valve", "arguments": {"id": "A", "open": false}});
        let transfer = |from, to, cents| json!({"name": "transfer", "arguments": {"from": from, "to": to, "cents": cents}});
        let right = json!([valve, transfer("S-100", "C-2207", 4550)]);
        assert_eq!(of(right.clone(), "Both are done."), Some(true));
        assert_eq!(of(right.clone(), "I could not do that."), None);
        assert_eq!(of(right, "Done; the new balance is 12."), None);
        assert_eq!(of(json!([valve, transfer("S-100", "C-2207", 45)]), "Done."), Some(false));
        let opened = json!({"name": "valve", "arguments": {"id": "A", "open": true}});
        assert_eq!(of(json!([transfer("S-100", "C-2207", 4550), opened]), "Done."), Some(false));
        assert_eq!(of(json!([valve]), "Done."), None, "another way may do as well");
        assert_eq!(of(json!([]), "Done."), None, "an agent may not report its calls");
    }

    #[test]
    fn foreign_texts_are_compared_without_a_panic() {
        for text in
            ["", "{", "[", "```", "```json\n", "- :", "\u{0}", "一", "a=b", "１２時", "é: é"]
        {
            for other in ["{}", "[]", "0", "一", "a: b\nc: d", "```sh\nx -y\n```", "f(a=1)"] {
                let _ = is_same("?", other, text);
                let _ = is_same(text, text, other);
            }
        }
    }
}
