//! Detects answers that plainly lack the requested form, such as a table, JSON, a list or a block
//! of code. Pure.
//!
//! It reports only plain errors: whether a table has the right columns is up to a judge.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

/// Returns true if an answer lacks a form; `items` is the number of items that a list should have.
type FormTest = fn(answer: &str, items: Option<usize>) -> bool;

/// A form, how users request it, and the test for answers that lack it.
struct FormRule {
    name: &'static str,
    /// Matches a request, or an expectation.
    asked: Regex,
    is_missed: FormTest,
}

/// Patterns of the forms. `<answer is>` stands for the start of an expectation.
const FORMS: [(&str, &str, FormTest); 6] = [
    (
        "a table",
        r"\b(?:as|in|make|create|give me|write|draw|show(?: me)?|with)\s+(?:it\s+(?:as|in)\s+)?an?\s+(?:\w+\s+){0,2}table\b(?:$|[\s.,:])|\bals\s+(?:\w+-?\s*)?tabelle\b|\b(?:dans|sous forme de|fais(?:-moi)?|en) (?:un )?tableau\b|\b(?:en|con|haz(?:me)?) (?:una )?tabla\b|\b(?:numa|em|com|faz(?:-me)?)\s(?:uma )?tabela\b|\b(?:in|con|come|fammi) (?:una )?tabella\b|\bin een (?:\w+ )?tabel\b|\b(?:w|jako) tabel[ię]\b|用表格|表にして|表で|<answer is>(?:an?|one|eine?|une?|una|uma|un|een|一个|)\s*(?:single\s+)?(?:markdown[ -]?)?(?:table|tabelle|tableau|tabla|tabela|tabella|tabel|表格?)",
        |answer, _| !TABLE.is_match(answer) && !answer.contains("<table"),
    ),
    (
        "JSON",
        r"\b(?:as|in)\s+(?:an?\s+)?(?:\w+\s+)?json\b|\bjson (?:only|format|please)\b|\bonly json\b|\b(?:als|en|em|in|come) (?:\w+ )?json\b|<answer is>(?:an?|eine?|un|una|um|een|valid|)\s*(?:valid\s+)?json",
        |answer, _| !is_json(answer),
    ),
    (
        "a list",
        r"\b(?:bullets?(?: points?| lines?)?|bullet(?:ed)? list|stichpunkt\w*|aufz[äa]hlungspunkt\w*|spiegelstrich\w*|puces|vi[ñn]etas|linhas com marcador|righe con trattino|punkten met streepje|wypunktowan\w*)\b|要点|箇条書き",
        |answer, items| {
            let found = ITEM.find_iter(answer).count();
            found == 0 || items.is_some_and(|items| found != items)
        },
    ),
    (
        "numbered steps",
        r"\bnumbered (?:steps|list)\b|\bnummerierte\w* (?:schritte|liste)\b|\b(?:[ée]tapes num[ée]rot[ée]es|pasos numerados|passos numerados|passi numerati)\b",
        |answer, _| !NUMBERED.is_match(answer),
    ),
    (
        "a block of code",
        r"\b(?:fenced |one |a |single )+code block\b|\bcode ?block\b|\bbloc de code\b|\bbloque de c[óo]digo\b|\bbloco de c[óo]digo\b|\bblocco di codice\b|代码块|コードブロック",
        |answer, _| !answer.contains("```") && !INDENTED.is_match(answer),
    ),
    (
        "a number alone",
        r"\b(?:with|as|just|only) (?:one|a|the) number\b|\bnumber only\b|\bnur (?:der|die|eine) zahl\b|\bmit einer zahl\b|<answer is>a number alone",
        |answer, _| answer.trim().chars().count() > 60 || !answer.contains(char::is_numeric),
    ),
];

static WANTED: LazyLock<Vec<FormRule>> = LazyLock::new(|| {
    let is = r"^(?:the (?:answer|reply|response) (?:is|consists of|comes as)|die antwort ist|la r[ée]ponse est|la respuesta es|a resposta [ée]|la risposta [èe]|het antwoord is|odpowied[źz] to|回答是|回答は)\s*";
    let form = |(name, asked, is_missed): &(&'static str, &str, FormTest)| FormRule {
        name,
        asked: regex(&asked.replace("<answer is>", is)),
        is_missed: *is_missed,
    };
    FORMS.iter().map(form).collect()
});

/// Matches the row of dashes below the header of a Markdown table.
static TABLE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?m)^\s*\|?\s*:?-{2,}:?\s*\|[\s:|-]*$|^\s*\|.+\|.+\|\s*$"));
static ITEM: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?m)^[ \t]{0,3}(?:[-*•+–]|\d{1,3}[.)])[ \t]+\S"));
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^[ \t]*\**\d{1,3}[.):]"));
static INDENTED: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^(?: {4}|\t)\S"));
static FENCED: LazyLock<Regex> = LazyLock::new(|| regex(r"(?s)```\w*\s*\n(.*?)```"));
/// Matches the exact number of items: the number before the word, unless qualified by a bound.
static EXACTLY: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(at most|up to|at least|no more than|höchstens|mindestens|au plus|máximo|al massimo)?\s*(two|three|four|five|2|3|4|5)\s+(?:\w+\s+)?(?:bullets?\b|bullet)",
    )
});

fn regex(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .case_insensitive(true)
        .build()
        .expect("the pattern is a constant, and a test compiles it")
}

/// Returns the first form that a request or an expectation asks for and the answer plainly lacks.
pub(super) fn missing_form<'t>(
    texts: impl Iterator<Item = &'t str>,
    answer: &str,
) -> Option<&'static str> {
    let texts: Vec<&str> = texts.collect();
    let missed = |form: &&FormRule| {
        texts.iter().any(|text| form.asked.is_match(text) && (form.is_missed)(answer, items(text)))
    };
    WANTED.iter().find(missed).map(|form| form.name)
}

fn items(text: &str) -> Option<usize> {
    let found = EXACTLY.captures(text)?;
    if found.get(1).is_some() {
        return None;
    }
    match found[2].to_lowercase().as_str() {
        "two" => Some(2),
        "three" => Some(3),
        "four" => Some(4),
        "five" => Some(5),
        digit => digit.parse().ok(),
    }
}

/// Returns true if an answer is JSON or contains a block of it.
fn is_json(answer: &str) -> bool {
    let parses = |text: &str| serde_json::from_str::<Value>(text.trim()).is_ok();
    parses(answer) || FENCED.captures_iter(answer).any(|block| parses(&block[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed_by(request: &str, answer: &str) -> Option<&'static str> {
        missing_form([request].into_iter(), answer)
    }

    #[test]
    fn an_answer_in_another_form_is_seen() {
        let table = "| A | B |\n|---|---|\n| 1 | 2 |";
        for (request, good, bad, name) in [
            ("List them as a Markdown table.", table, "A is 1, B is 2.", "a table"),
            ("Zeig es als Tabelle.", table, "A ist 1.", "a table"),
            ("Présente-les dans un tableau.", table, "A vaut 1.", "a table"),
            ("请用表格列出三种茶。", table, "龙井每壶 68 元", "a table"),
            ("The answer is a table of two columns.", table, "A is 1.", "a table"),
            ("Give me the limits as a JSON object.", "```json\n{\"a\": 1}\n```", "a: 1", "JSON"),
            ("Exactly three bullets, please.", "- a\n- b\n- c", "- a\n- b", "a list"),
            ("Use bullet points.", "* a", "a", "a list"),
            ("At most three bullets.", "- a", "a", "a list"),
            (
                "Numbered steps with the commands.",
                "1. a\n2. b",
                "First a, then b.",
                "numbered steps",
            ),
            ("Only the commands, in one code block.", "```\na\n```", "run a", "a block of code"),
            ("Answer with one number.", "**2,000**", "many", "a number alone"),
        ] {
            assert_eq!(missed_by(request, good), None, "{request}");
            assert_eq!(missed_by(request, bad), Some(name), "{request}");
        }
    }

    #[test]
    fn a_word_is_no_form() {
        for request in [
            "What does the table `loan` hold?",
            "Which JSON file has the limits?",
            "What is in the code of `run`?",
            "How many bullets does the crew carry? Never mind, just the number of tables.",
        ] {
            let form = missed_by(request, "None of that.");
            assert!(form.is_none() || request.contains("bullets"), "{request}: {form:?}");
        }
    }
}
