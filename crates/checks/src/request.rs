//! Counts that a request demands of its answer so plainly that no reader doubts them. Pure.
//!
//! "Answer in exactly three lines." is a check, whatever else is asked. "Describe each module in at
//! most 20 words." is not: the words are counted per module. What is not read as a whole is left
//! to the judge, because a count that was not meant fails right answers.

use std::sync::LazyLock;

use regex::{Captures, Regex, RegexBuilder};

use crate::check::{Check, CheckKind, CountBounds};
use crate::sentence::BY_RULE_SUFFIX;

/// Requests beyond this length, in bytes, are mostly material for the task.
const MAX_REQUEST: usize = 4_000;

/// The words by which a language states a count, as alternatives of a regular expression.
struct CountWords {
    /// Imperatives that are about the whole answer, whatever was asked before.
    answer: &'static str,
    /// Imperatives that are about the answer only if nothing else is asked.
    tell: &'static str,
    /// Words between the imperative and the count.
    form: &'static str,
    exactly: &'static str,
    at_most: &'static str,
    at_least: &'static str,
    lines: &'static str,
    words: &'static str,
    items: &'static str,
    /// One, two, three and so on.
    numbers: &'static [&'static str],
}

const LANGUAGES: [CountWords; 4] = [
    CountWords {
        answer: "answer|reply|respond|(?:your|the) (?:whole |entire )?(?:answer|reply|response) (?:must|should|has to|may) (?:be|have|contain|consist of)|(?:please )?(?:be brief|keep it short)",
        tell: "summari[sz]e|explain|describe|tell|say|state|outline|recap|review|sum up|give|list|name|write|introduce|compare",
        form: "in|as|with|using|within|of|to",
        exactly: "exactly|precisely|just",
        at_most: "at most|no more than|not more than|up to|a maximum of|max(?:imum)?\\.?",
        at_least: "at least|no fewer than|no less than|a minimum of",
        lines: "lines?",
        words: "words?",
        items: "bullets?|bullet points?|bullet(?:ed)? items?|list items?",
        numbers: &[
            "one|a single",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
        ],
    },
    CountWords {
        answer: "antworte|antworten sie|beantworte (?:es|das|die frage)|(?:deine|ihre|die) antwort (?:hat|soll|muss|darf)(?: \\w+)?",
        tell: "fasse?|erkläre|beschreibe|nenne|sage?|schreibe?|liste|gib",
        form: "in|als|mit|aus",
        exactly: "genau|exakt",
        at_most: "höchstens|maximal|nicht mehr als|bis zu",
        at_least: "mindestens",
        lines: "zeilen?",
        words: "wort|worten|wörtern?",
        items: "stichpunkten?|aufzählungspunkten?|spiegelstrichen?",
        numbers: &[
            "eine[rmn]?|ein",
            "zwei",
            "drei",
            "vier",
            "fünf",
            "sechs",
            "sieben",
            "acht",
            "neun",
            "zehn",
        ],
    },
    CountWords {
        answer: "réponds|répondez|(?:ta|votre|la) réponse (?:doit|compte|fait)(?: \\w+)?",
        tell: "résume[zr]?|explique[zr]?|décris|décrivez|dis|dites|donne[zr]?|liste[zr]?|écris|écrivez",
        form: "en|avec|de|sous forme de",
        exactly: "exactement|précisément",
        at_most: "au plus|au maximum|maximum|pas plus de",
        at_least: "au moins|au minimum",
        lines: "lignes?",
        words: "mots?",
        items: "puces|tirets",
        numbers: &["une?", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix"],
    },
    CountWords {
        answer: "responde|responda|contesta|conteste|(?:tu|su|la) respuesta (?:debe|tiene)(?: \\w+)?",
        tell: "resume|resuma|explica|explique|describe|describa|di|diga|da|dé|enumera|escribe|escriba",
        form: "en|con|de",
        exactly: "exactamente|justo",
        at_most: "como máximo|a lo sumo|máximo|no más de",
        at_least: "al menos|como mínimo|por lo menos",
        lines: "líneas?",
        words: "palabras?",
        items: "viñetas",
        numbers: &[
            "una?", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez",
        ],
    },
];

/// The compiled patterns of a language.
struct CountPatterns {
    /// The sentence is about the whole answer.
    answer: Regex,
    /// The sentence is about the answer if it is the only one.
    tell: Regex,
    numbers: Vec<Regex>,
    lines: Regex,
    words: Regex,
}

impl CountPatterns {
    fn of(words: &CountWords) -> Self {
        let CountWords { answer, tell, form, exactly, at_most, at_least, lines, items, .. } = words;
        let unit = format!("{lines}|{}|{items}", words.words);
        let number = format!("[0-9]{{1,4}}|{}", words.numbers.join("|"));
        // The unit ends its sentence: "in two lines of YAML" counts something else.
        let count = format!(
            r"(?:(?P<exactly>{exactly})\s+|(?P<most>{at_most})\s+|(?P<least>{at_least})\s+)?(?P<number>{number})\s+(?P<unit>{unit})(?:,?\s+(?:long|only|please|bitte|maximum|au maximum|como máximo))?"
        );
        let end = r"[\s.!,;:)]*$";
        let sentence = |start: &str, between: &str| {
            regex(&format!(r"^(?:please\s+|bitte\s+)?(?:{start})\b{between}{count}{end}"))
        };
        Self {
            // A sentence that is nothing but a count is about the answer as well.
            answer: regex(&format!(
                r"^(?:please\s+|bitte\s+)?(?:(?:{answer})\b[\s,:]*(?:(?:{form})\s+)?)?{count}{end}"
            )),
            tell: sentence(tell, &format!(r"[^,;:]*\s(?:{form})\s+")),
            numbers: words.numbers.iter().map(|one| regex(&format!("^(?:{one})$"))).collect(),
            lines: regex(&format!("^(?:{lines})$")),
            words: regex(&format!("^(?:{})$", words.words)),
        }
    }

    /// Returns the check that a sentence states.
    fn check(&self, sentence: &str, is_alone: bool) -> Option<CheckKind> {
        let found = self.answer.captures(sentence);
        let found = found.or_else(|| self.tell.captures(sentence).filter(|_| is_alone))?;
        let number = self.number(&found["number"])?;
        let unit = &found["unit"];
        let (is_words, is_lines) = (self.words.is_match(unit), self.lines.is_match(unit));
        let bounds = bounds(&found, number, is_words || is_lines)?;
        Some(if is_words {
            CheckKind::Words(bounds)
        } else if is_lines {
            CheckKind::Lines(bounds)
        } else {
            CheckKind::Items(bounds)
        })
    }

    fn number(&self, text: &str) -> Option<u64> {
        let named = self.numbers.iter().zip(1..).find(|(one, _)| one.is_match(text));
        named.map(|(_, number)| number).or_else(|| text.parse().ok())
    }
}

/// Returns the bounds of a count. Words and lines without "exactly" are meant roughly unless it is
/// one: "in 50 words", but "in one word".
fn bounds(found: &Captures<'_>, number: u64, is_rough: bool) -> Option<CountBounds> {
    if number == 0 {
        return None;
    }
    Some(if found.name("most").is_some() {
        CountBounds::at_most(number)
    } else if found.name("least").is_some() {
        CountBounds::at_least(number)
    } else if found.name("exactly").is_some() || !is_rough || number == 1 {
        CountBounds::exactly(number)
    } else {
        return None;
    })
}

static PATTERNS: LazyLock<Vec<CountPatterns>> =
    LazyLock::new(|| LANGUAGES.iter().map(CountPatterns::of).collect());
/// Matches words by which a count is of each part of the answer.
static PARTS: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"\b(?:each|every|per|apiece|respectively|both|jede\w*|pro|chaque|par|cada|por)\b")
});
/// Matches sentences behind a count that demand nothing more of the answer.
static AFTER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?:no|not|do not|don't|without|nothing|please|thanks?|thank you|kein\w*|ohne|danke|bitte|sans|pas|merci|sin|gracias|nada)\b",
    )
});
/// Matches material inside a request that the user did not write.
static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| regex("(?s)```.*?(?:```|$)|`[^`\n]*`|\"[^\"]*\"|“[^”]*”|«[^»]*»|(?m:^>.*$)"));
static SENTENCE_END: LazyLock<Regex> = LazyLock::new(|| regex(r"[.!?](?:\s+|$)|\n+"));

fn regex(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .case_insensitive(true)
        .build()
        .expect("the pattern is a constant, and a test compiles it")
}

/// Returns the checks that a request states: the number of lines, words or list items of its
/// answer. English, German, French and Spanish are known.
///
/// ```
/// let checks = selftest_checks::request::stated_checks("What is it? Answer in at most 20 words.");
/// assert_eq!(checks[0].describe(), "the request: Answer in at most 20 words (by rule)");
/// assert!(selftest_checks::request::stated_checks("Count the words.").is_empty());
/// ```
pub fn stated_checks(request: &str) -> Vec<Check> {
    if request.len() > MAX_REQUEST {
        return Vec::new();
    }
    // What a request quotes is not what it asks for.
    let own = QUOTED.replace_all(request, " it ");
    let sentences: Vec<&str> =
        SENTENCE_END.split(&own).map(str::trim).filter(|sentence| !sentence.is_empty()).collect();
    let mut checks = Vec::new();
    // Counts stand at the end. Before one that is about the whole answer anything may be asked.
    for (at, sentence) in sentences.iter().enumerate().rev() {
        let found = (!PARTS.is_match(sentence))
            .then(|| PATTERNS.iter().find_map(|words| words.check(sentence, at == 0)))
            .flatten();
        match found {
            Some(kind) => {
                let name = format!("the request: {sentence}{BY_RULE_SUFFIX}");
                checks.push(Check { name: Some(name), ..Check::new(kind) });
            }
            None if AFTER.is_match(sentence) => {}
            None => break,
        }
    }
    checks.reverse();
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckObservation, CheckOutcome, decide};

    fn stated(request: &str) -> Vec<(String, String)> {
        let checks = stated_checks(request).into_iter();
        checks.map(|check| (check.kind.name().to_owned(), check.kind.value().to_string())).collect()
    }

    #[test]
    fn a_plain_count_is_a_check() {
        for (request, kind, bounds) in [
            ("Summarise the change in exactly three lines.", "lines", "3"),
            ("What is the port? Answer in exactly one word.", "words", "1"),
            ("What is the port?\nAnswer with one word. No explanation.", "words", "1"),
            ("Name the ports. Reply with exactly 2 bullets, please.", "items", "2"),
            ("Explain `run in 5 lines` in at most 40 words", "words", r#"{"max":40}"#),
            ("Explain the cache. At most 50 words.", "words", r#"{"max":50}"#),
            ("Give me the reasons in three bullet points.", "items", "3"),
            ("Your answer must be exactly 2 lines long.", "lines", "2"),
            ("Welcher Port? Antworte in genau drei Zeilen.", "lines", "3"),
            ("Fasse es in höchstens 20 Wörtern zusammen? Antworte mit einem Wort.", "words", "1"),
            ("Résume le fichier en exactement deux lignes.", "lines", "2"),
            ("Responde en como máximo 30 palabras.", "words", r#"{"max":30}"#),
        ] {
            assert_eq!(stated(request), [(kind.to_owned(), bounds.to_owned())], "{request}");
        }
    }

    #[test]
    fn what_can_mean_something_else_is_none() {
        for request in [
            "Describe each module in at most 20 words.",
            "Delete exactly three lines from config.yaml.",
            "Write exactly three lines to out.txt.",
            "Add a function in at most 20 lines.",
            "Summarise it in exactly three lines of YAML.",
            "Summarise A in exactly three lines and list the ports in a table.",
            "List the ports. Summarise the file in exactly three lines.",
            "Summarise the file in exactly three lines. Then tell me the port.",
            "Summarise it in about 50 words.",
            "Summarise it in 50 words.",
            "Why does it say \"answer in exactly one word\"?",
            "How many lines are in exactly three files?",
            "What does this mean?\n> Answer in exactly two lines.",
            "Use exactly two words to name the function, then write it.",
        ] {
            assert_eq!(stated(request), [], "{request}");
        }
    }

    #[test]
    fn six_lines_are_not_three() {
        let [check] = &stated_checks("Tell me about it in exactly three lines.")[..] else {
            panic!("one check")
        };
        let outcome = |output| {
            let seen = CheckObservation { output, ..CheckObservation::default() };
            decide(check, &seen).outcome
        };
        assert_eq!(outcome("a\nb\nc"), CheckOutcome::Held);
        assert_eq!(outcome("a\nb\nc\nd\ne\nf"), CheckOutcome::Failed);
    }
}
