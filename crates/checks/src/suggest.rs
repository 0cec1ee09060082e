//! Checks proposed for sentences that state none plainly. A proposal may demand less or other than
//! the sentence, so a person accepts it; nothing here decides a case by itself.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use crate::check::{self, Check};

/// Longer sentences say more than a check could.
const MAX_SENTENCE: usize = 400;
/// Maximum number of words of a phrase that a pattern holds.
const MAX_WORDS: usize = 3;

/// Returns the check that is proposed for a sentence, named by it.
pub fn suggestion(sentence: &str) -> Option<Check> {
    let sentence = sentence.trim();
    if sentence.len() > MAX_SENTENCE || sentence.contains('\n') {
        return None;
    }
    let value = RULES.iter().find_map(|rule| rule(sentence))?;
    let check = check::read(&value).ok()?;
    Some(Check { name: Some(selftest_text::one_line(sentence, 200)), ..check })
}

/// Proposes the value of a check.
type SuggestionRule = fn(&str) -> Option<Value>;

/// From what a sentence names to what it is about.
const RULES: [SuggestionRule; 8] =
    [no_changes, written_file, command, counts, question, format, literals, phrase];

fn regex(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .case_insensitive(true)
        .build()
        .expect("the pattern is a constant, and a test compiles it")
}

/// Words that turn a sentence around.
static NEGATION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(?:not|no|never|none|without|avoids?|doesn't|don't|isn't|neither|nor|refuses?|instead of)\b",
    )
});
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:[\w@.-]+/)*[\w@-][\w@.-]*\.(?:md|txt|json|ya?ml|toml|csv|html|css|jsx?|tsx?|py|rs|go|java|rb|sh|sql|svg|png|pdf|docx|xlsx|pptx|xml|sv|ipynb)\b",
    )
});

/// Returns true if a sentence itself denies something. What it quotes may do so too.
fn is_negative(sentence: &str) -> bool {
    NEGATION.is_match(&QUOTED.replace_all(sentence, " "))
}

/// "Does not make code edits", "No files changed".
fn no_changes(sentence: &str) -> Option<Value> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^(?:the agent )?(?:no|does not|doesn't|did not|never|without) (?:make |write |perform |apply )?(?:any )?(?:(?:code|file|source|unrequested|implementation) ?)+(?:edits?|changes?|modifications?|written|modified|code)?\.?$",
        )
    });
    FORM.is_match(sentence).then(|| json!({"only_changes": []}))
}

/// "Creates a.md with …", "a.md contains `x`".
fn written_file(sentence: &str) -> Option<Value> {
    static VERB: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"\b(?:creates?|writes?|generates?|produces?|saves?|adds?|outputs?|updates?|edits?|modif(?:y|ies)|exists?|created|written|generated|saved|updated)\b",
        )
    });
    let mut paths = PATH.find_iter(sentence);
    let path = paths.next()?.as_str();
    // With two files it is open which of them the verb and the quotes are about.
    if paths.next().is_some() || is_negative(sentence) || !VERB.is_match(sentence) {
        return None;
    }
    let texts = quoted(sentence);
    let texts: Vec<Value> = texts
        .iter()
        .filter(|text| **text != path)
        .map(|text| json!({"file_contains": {"path": path, "text": text}}))
        .collect();
    if texts.is_empty() {
        return Some(json!({"any": [{ "file_created": path }, { "file_changed": path }]}));
    }
    Some(json!({ "all": texts }))
}

/// "Runs `npm test`".
fn command(sentence: &str) -> Option<Value> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^(?:the agent |agent )?(?:runs?|executes?|invokes?|calls?|uses?|ran|executed) (?:the )?(?:command )?`(?P<line>[^`]+)`",
        )
    });
    if is_negative(sentence) {
        return None;
    }
    let line = &FORM.captures(sentence)?["line"];
    Some(json!({"transcript_regex": escape(line)}))
}

/// "At least three recommendations", "roughly 110-210 words".
fn counts(sentence: &str) -> Option<Value> {
    static RANGE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"\b(?P<low>\d{1,5})\s*(?:-|–|to|and)\s*(?P<high>\d{1,5})\s+(?P<unit>words?|lines?|characters?|bullets?|items?|bullet points?|options?|alternatives?|recommendations?|examples?|steps?|questions?)\b",
        )
    });
    static BOUND: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"\b(?P<bound>at least|at most|no more than|fewer than|less than|under|exactly|up to|minimum of|maximum of|more than|>=|<=|≥|≤)\s*(?P<n>\d{1,5}|one|two|three|four|five|six|seven|eight|nine|ten)\s+(?:\w+\s+)?(?P<unit>words?|lines?|characters?|bullets?|items?|bullet points?|options?|alternatives?|recommendations?|examples?|steps?|questions?)\b",
        )
    });
    // This negation belongs to a bound.
    if is_negative(&sentence.to_lowercase().replace("no more than", "")) {
        return None;
    }
    if let Some(found) = RANGE.captures(sentence) {
        let number = |group: &str| found[group].parse::<u64>().ok();
        let (low, high) = (number("low")?, number("high")?);
        return (low <= high).then(|| json!({ unit(&found["unit"]): {"min": low, "max": high} }));
    }
    let found = BOUND.captures(sentence)?;
    let number = number(&found["n"])?;
    let unit = unit(&found["unit"]);
    Some(match found["bound"].to_lowercase().as_str() {
        "exactly" => json!({ unit: number }),
        "at least" | "minimum of" | ">=" | "≥" => json!({ unit: {"min": number} }),
        "more than" => json!({ unit: {"min": number + 1} }),
        "fewer than" | "less than" | "under" => json!({ unit: {"max": number.checked_sub(1)?} }),
        _ => json!({ unit: {"max": number} }),
    })
}

fn unit(word: &str) -> &'static str {
    match word.to_lowercase().trim_end_matches('s') {
        "word" => "words",
        "line" => "lines",
        "character" => "characters",
        "question" => "questions",
        _ => "items",
    }
}

fn number(word: &str) -> Option<u64> {
    const WORDS: [&str; 10] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let named = WORDS.iter().position(|known| *known == word.to_lowercase());
    named.map(|at| at as u64 + 1).or_else(|| word.parse().ok())
}

/// "Asks a clarifying question".
fn question(sentence: &str) -> Option<Value> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^(?:the agent |agent |the response |the answer )?(?:asks?|requests?|solicits?|prompts? (?:the )?user)\b|\b(?:clarifying|follow-up) questions?\b|\bwaits? for (?:approval|confirmation|the user)",
        )
    });
    if !FORM.is_match(sentence) {
        return None;
    }
    if is_negative(sentence) {
        return Some(json!({"questions": 0}));
    }
    Some(json!({"questions": {"min": 1}}))
}

/// "Includes a comparison table", "Shows a code block".
fn format(sentence: &str) -> Option<Value> {
    static FORMS: LazyLock<[(Regex, Value); 5]> = LazyLock::new(|| {
        [
            (regex(r"\btable\b"), json!({"regex": r"(?m)^\s*\|.*\|"})),
            (
                regex(r"\b(?:code block|code snippet|code example|fenced)\b"),
                json!({"regex": "```"}),
            ),
            (
                regex(r"\b(?:bullet(?:ed)?|numbered) (?:list|points?)\b"),
                json!({"items": {"min": 1}}),
            ),
            (regex(r"\bvalid json\b"), json!({"json": {}})),
            (regex(r"\b(?:mermaid|diagram)\b"), json!({"regex": r"(?i)```mermaid|-->|→|\+--"})),
        ]
    });
    if is_negative(sentence) {
        return None;
    }
    FORMS.iter().find(|(form, _)| form.is_match(sentence)).map(|(_, check)| check.clone())
}

static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"`([^`]{1,120})`|"([^"]{1,120})"|“([^”]{1,120})”|(?:^|[\s(])'([^']{1,120})'"#)
});

/// Returns the quoted texts of a sentence.
fn quoted(sentence: &str) -> Vec<&str> {
    QUOTED
        .captures_iter(sentence)
        .filter_map(|found| (1..5).find_map(|group| found.get(group)).map(|text| text.as_str()))
        .collect()
}

/// Text with blanks to be filled in, or too short to say anything where it is found.
fn is_vague(text: &str) -> bool {
    // `<name>`, `{name}` and `[your name]` stand for something else.
    static BLANK: LazyLock<Regex> =
        LazyLock::new(|| regex(r"<[a-z][^>]*>|\{[a-z_ ]*\}|\[[a-z_ ]+\]|\.\.\.|…"));
    text.chars().count() < 3 || BLANK.is_match(text)
}

/// What a sentence quotes, and what only code spells so.
fn literals(sentence: &str) -> Option<Value> {
    static CODE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"--[a-z][a-z-]+|\b[a-z]+[A-Z]\w*(?:\(\))?|\b\w+_\w+\b|@[\w/-]+|\b\w+(?:\.\w+)+\(\)|\b[\w-]+(?:\.[\w-]+)*\.[a-z]{2,4}\b")
            .expect("the pattern is a constant, and a test compiles it")
    });
    // "Does not suggest raising `rank` as the fix" says nothing against the word.
    static FORBIDDEN: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^(?:the (?:answer|response|output|agent) )?(?:does not|doesn't|did not|must not|should not|never|no|avoids?|without) (?:contain|include|mention|use|reference|show|output|print|display|suggest|recommend|say|state|call|run|execute)?(?:s|ing)? ?(?:the |a |an |any )?(?:word |phrase |text |term |command )?\x00\.?$",
        )
    });
    let mut texts = quoted(sentence);
    if texts.is_empty() {
        texts = CODE.find_iter(sentence).map(|found| found.as_str()).collect();
        // "e.g" and its like are no names.
        texts.retain(|text| text.len() > 3);
    }
    if texts.iter().any(|text| is_vague(text)) {
        return None;
    }
    texts.dedup();
    texts.truncate(5);
    if texts.is_empty() {
        return None;
    }
    if is_negative(sentence) {
        // Of several texts it is open whether each or only all together are forbidden.
        let [only] = texts.as_slice() else { return None };
        // The text becomes a NUL, which no sentence has, so that the form matches around it.
        let bare = QUOTED.replace_all(sentence, " \0").replace(only, "\0");
        let bare = bare.split_whitespace().collect::<Vec<_>>().join(" ");
        return FORBIDDEN.is_match(&bare).then(|| json!({"not_regex": escape(only)}));
    }
    let is_choice = Regex::new(r"\b(?:or|either|any of|one of)\b").ok()?.is_match(sentence);
    let mut checks: Vec<Value> = texts.iter().map(|text| json!({"regex": escape(text)})).collect();
    Some(match checks.len() {
        1 => checks.remove(0),
        _ if is_choice => json!({ "any": checks }),
        _ => json!({ "all": checks }),
    })
}

/// What a sentence says that the answer mentions: its first words of weight, near each other.
fn phrase(sentence: &str) -> Option<Value> {
    static VERB: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"^(?:(?:the )?(?:answer|response|output|report|plan|review|summary|agent|assistant|skill|model) )?(?:(?:also|explicitly|clearly|correctly) )?(?P<verb>mentions?|includes?|references?|identif(?:y|ies)|flags?|recommends?|suggests?|covers?|notes?|names?|lists?|explains?|warns?|states?|describes?|discusses|addresses|cites?|contains?|provides?|proposes?|highlights?|reports?|shows?|specif(?:y|ies)|points out|uses?|checks?|calls out|has|defines?|documents?|verif(?:y|ies))\s+(?:that |about |for |the |an? |any |its |their |of |to |how |why |specific |clear |explicit |concrete )*(?P<rest>.+)$",
        )
    });
    let found = VERB.captures(sentence)?;
    if is_negative(sentence) {
        return None;
    }
    let rest = &found["rest"];
    // What follows the first break explains or adds.
    let first = rest.split([',', ';', '(', ':', '.', '—']).next().unwrap_or(rest);
    let words: Vec<&str> = first
        .split(|c: char| !c.is_alphanumeric() && c != '-')
        .filter(|word| word.chars().count() > 2 && !is_filler(word))
        .take(MAX_WORDS)
        .collect();
    if words.is_empty() {
        return None;
    }
    // The stem stands for the forms of a word.
    let stems: Vec<String> = words.iter().map(|word| regex::escape(stem(word))).collect();
    Some(json!({"regex": format!("(?is){}", stems.join(".{0,60}"))}))
}

fn is_filler(word: &str) -> bool {
    const FILLERS: [&str; 33] = [
        "the",
        "and",
        "for",
        "with",
        "from",
        "into",
        "than",
        "that",
        "this",
        "each",
        "all",
        "any",
        "not",
        "are",
        "is",
        "was",
        "when",
        "which",
        "what",
        "where",
        "between",
        "before",
        "after",
        "per",
        "via",
        "least",
        "one",
        "two",
        "three",
        "relevant",
        "appropriate",
        "correct",
        "its",
    ];
    FILLERS.contains(&word.to_lowercase().as_str())
}

fn stem(word: &str) -> &str {
    ["ing", "ies", "ed", "es", "s"]
        .iter()
        // A shorter stem would be the beginning of too many other words.
        .find_map(|end| word.strip_suffix(end).filter(|rest| rest.chars().count() > 3))
        .unwrap_or(word)
}

/// Escapes a text for a pattern that ignores case.
fn escape(text: &str) -> String {
    format!("(?i){}", regex::escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_sentence_names_is_proposed() {
        for (sentence, wanted) in [
            ("Does not make code edits", json!({"only_changes": []})),
            ("Runs `cargo test` before it reports", json!({"transcript_regex": "(?i)cargo test"})),
            (
                "Body is in the short register (roughly 35-95 words)",
                json!({"words": {"min": 35, "max": 95}}),
            ),
            (
                "Names at least three specific problems",
                json!({"regex": "(?is)specific.{0,60}problem"}),
            ),
            ("Lists at least 3 options", json!({"items": {"min": 3}})),
            ("Asks a clarifying question first", json!({"questions": {"min": 1}})),
            ("Includes a comparison table", json!({"regex": r"(?m)^\s*\|.*\|"})),
            ("Mentions pgTAP and the test matrix", json!({"regex": "(?i)pgTAP"})),
            (
                "Mentions activation event definition",
                json!({"regex": "(?is)activation.{0,60}event.{0,60}definition"}),
            ),
            ("Never suggests `rm -rf`", json!({"not_regex": r"(?i)rm \-rf"})),
        ] {
            let found = suggestion(sentence).unwrap_or_else(|| panic!("{sentence}"));
            assert_eq!(json!({ found.kind.name(): found.kind.value() }), wanted, "{sentence}");
            assert_eq!(found.name.as_deref(), Some(sentence));
        }
        for (sentence, wanted) in [
            (
                "Creates e2e/us-001.spec.ts with test titles",
                json!({"any": [{"file_created": "e2e/us-001.spec.ts"}, {"file_changed": "e2e/us-001.spec.ts"}]}),
            ),
            (
                "The rule ('No comparisons to brands') appears in the plan",
                json!({"regex": "(?i)No comparisons to brands"}),
            ),
        ] {
            let found = suggestion(sentence).unwrap_or_else(|| panic!("{sentence}"));
            assert_eq!(json!({ found.kind.name(): found.kind.value() }), wanted, "{sentence}");
        }
        for sentence in [
            "It is good",
            "The tone is friendly",
            "No empty praise padding",
            // What is denied is more than that the word is there.
            "Does not suggest increasing lora_rank as the primary fix",
            "The content appears in copy-brief.md, not as an item of its own",
            "Does NOT display the names (only 1 change, below minSignalCount of 3)",
            "Does not read the policy or run.sh flags",
            // Too short, or with blanks.
            "The user is prompted to say 'go' to proceed",
            "One is written as 'If [change], then [behavior]'",
        ] {
            assert_eq!(suggestion(sentence), None, "{sentence}");
        }
    }

    proptest! {
        #[test]
        fn any_sentence_is_read_or_left(sentence in "\\PC{0,80}") {
            let _ = suggestion(&sentence);
        }
    }
}
