//! The parts of which the checks of forms are made: what a captured literal, place or amount means,
//! and counts of lines, words and the like: "at most three", "under 50", "between 50 and 80".

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::skeleton::{
    LiteralForm, SentenceLiteral, SentenceSkeleton, is_folder, is_known_tool, is_path, regex,
};
use super::{WrittenWork, data};

/// An address.
pub(super) const URL: &str = r"https?://\S";
/// An address, or a link of Markdown.
pub(super) const LINK: &str = r"https?://\S|\]\([^)\s]+\)";

/// A table in Markdown, HTML or of lines.
pub(super) const TABLE: &str = r"(?mi)^\s*\|?\s*:?-{3,}:?\s*\||<table|^\s*[│┃╎][^\n├└]*[│┃╎]\s*$";

/// Building blocks of the forms, by their name in angle brackets. A block may use those before it.
const PIECES: [(&str, &str); 18] = [
    ("<L>", "⟦[0-9]+⟧"),
    ("<and>", "<L>(?:, <L>)*,? (?:and|as well as|plus) <L>"),
    ("<or>", "<L>(?:, <L>)*,? or <L>"),
    ("<list>", "<L>(?:, <L>)*(?:,? (?:and|or) <L>)?"),
    // Sentences are in one form: "The final response should" is "the answer".
    ("<answer>", "(?P<subject>the (?:answer|output) )"),
    ("<says>", "(?:mentions|states|says|reports|quotes|cites)"),
    ("<has>", "(?:<says>|contains|includes|references|names|shows|prints|displays|lists)"),
    ("<have>", "(?:contain|include|mention|reference|say|state)"),
    ("<was>", "(?:is|was|has been|gets|got|should be|must be|are|were)"),
    (
        "<was not>",
        "(?:is not|was not|isn't|wasn't|has not been|is never|was never|should not be|must not be|are not|were not)",
    ),
    (
        "<word>",
        "text|string|substring|word|phrase|term|keyword|heading|marker|flag|option|command|line|url|link|function|method|parameter|argument|header|endpoint|field|key|value|class|error|error code|code|name|label|tag|token|variable|attribute|property|column|table|module|package|library|file|path|skill|tool|hook|setting|prefix|suffix",
    ),
    ("<noun>", "(?:(?:the |a |an |its )?(?:exact |literal )?(?:(?:<word>)s?:? )?)"),
    ("<kind>", "(?: (?:<word>)s?)?"),
    ("<file>", "(?:(?:a |an |the )?(?:new )?(?:file )?(?:named |called |at )?)"),
    (
        "<in folder>",
        "(?: (?:in|to|at|under|inside|within|into) (?:the )?(?P<folder><L>)(?: (?:directory|folder|dir))?)",
    ),
    (
        "<in folder2>",
        "(?: (?:in|to|at|under|inside|within|into) (?:the )?(?P<folder2><L>)(?: (?:directory|folder|dir))?)",
    ),
    (
        "<n>",
        "(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,6}|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty)",
    ),
    ("<unit>", "(?:lines?|words?|characters?|questions?|bullet points?|bullets?|list items?)"),
];

/// Replaces the building blocks of a pattern.
pub(super) fn with_pieces(pattern: &str) -> String {
    // A block may contain earlier ones.
    PIECES
        .iter()
        .rev()
        .fold(pattern.to_owned(), |pattern, (name, piece)| pattern.replace(name, piece))
}

/// The number of texts that an answer or a file must contain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    All,
    Any,
    None,
    AtLeast(u64),
}

/// Returns the literal of a group that is a text, not a path.
pub(super) fn quoted<'s>(
    skeleton: &'s SentenceSkeleton<'_>,
    found: &Captures<'_>,
    group: &str,
) -> Option<&'s SentenceLiteral> {
    let one = skeleton.one(found, group)?;
    (one.form != LiteralForm::Tool).then_some(one)
}

/// Returns the text of group `l` if the sentence is about the answer.
pub(super) fn spoken<'s>(
    skeleton: &'s SentenceSkeleton<'_>,
    found: &Captures<'_>,
) -> Option<&'s str> {
    is_spoken(skeleton, found)?;
    Some(&quoted(skeleton, found, "l")?.text)
}

/// Returns `None` if the sentence may be about a file rather than about the answer: only "the answer"
/// leaves no doubt where a case asks for more than an answer.
pub(super) fn is_spoken(skeleton: &SentenceSkeleton<'_>, found: &Captures<'_>) -> Option<()> {
    let subject = found.name("subject").map(|subject| subject.as_str().trim());
    let is_certain = subject == Some("the answer") || skeleton.context.work == WrittenWork::None;
    is_certain.then_some(())
}

/// Returns the check that texts are said, or are not.
pub(super) fn said(
    skeleton: &SentenceSkeleton<'_>,
    found: &Captures<'_>,
    group: &str,
    amount: Amount,
) -> Option<Value> {
    is_spoken(skeleton, found)?;
    // "States the "why"" says what is stated, not its words.
    let literals = skeleton.captured(found, group);
    if IS_MEANT.is_match(&found[0]) && literals.iter().any(|one| one.is_words()) {
        return None;
    }
    let is_exact = found[0].contains("exact ") || found[0].contains("literal ");
    texts(&literals, amount, is_exact)
}

/// Plain words may follow without a noun that says they are a text.
static IS_MEANT: LazyLock<Regex> =
    LazyLock::new(|| regex("(?:^| )(?:the|its|a|an) ⟦[0-9]+⟧(?:$|,| and | or )"));

pub(super) fn said_chinese(
    skeleton: &SentenceSkeleton<'_>,
    found: &Captures<'_>,
    amount: Amount,
) -> Option<Value> {
    if matches!(&found["zh"], "输出" | "结果") && skeleton.context.work != WrittenWork::None {
        return None;
    }
    texts(&skeleton.captured(found, "l"), amount, false)
}

/// A search for a literal.
enum LiteralSearch<'l> {
    Text(&'l str),
    Pattern(String),
}

static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9][0-9,]*(?:\.[0-9]+)?$"));

/// Returns how a literal is looked for, in the answer and in files alike.
fn search(literal: &SentenceLiteral, is_exact: bool) -> LiteralSearch<'_> {
    // `parse()` names the function, which may be called with arguments.
    let text = literal.text.strip_suffix("()").unwrap_or(&literal.text);
    // "5" is no part of "15".
    if NUMBER.is_match(text) {
        LiteralSearch::Pattern(number_pattern(text))
    } else if literal.is_words() && !is_exact {
        // Words in quotes may start a sentence, and are no parts of others.
        LiteralSearch::Pattern(format!("(?i)\\b{}\\b", regex::escape(text.trim())))
    } else {
        LiteralSearch::Text(text)
    }
}

/// Returns the check that a literal is in a file, or is not in it though the file is there.
pub(super) fn in_file_or_not(
    path: &str,
    literal: &SentenceLiteral,
    is_wanted: bool,
    is_exact: bool,
) -> Value {
    let found = match search(literal, is_exact) {
        LiteralSearch::Text(text) => json!({"file_contains": {"path": path, "text": text}}),
        LiteralSearch::Pattern(pattern) => {
            json!({"file_matches": {"path": path, "pattern": pattern}})
        }
    };
    if is_wanted { found } else { json!({"all": [{"file_exists": path}, {"not": found}]}) }
}

fn texts(literals: &[&SentenceLiteral], amount: Amount, is_exact: bool) -> Option<Value> {
    if literals.is_empty() || literals.iter().any(|one| one.form == LiteralForm::Tool) {
        return None;
    }
    let is_wanted = amount != Amount::None;
    let one = |literal: &&SentenceLiteral| match (search(literal, is_exact), is_wanted) {
        (LiteralSearch::Pattern(pattern), true) => json!({ "regex": pattern }),
        (LiteralSearch::Pattern(pattern), false) => json!({ "not_regex": pattern }),
        (LiteralSearch::Text(text), true) => json!({ "contains": text }),
        (LiteralSearch::Text(text), false) => json!({ "not_contains": text }),
    };
    let mut checks: Vec<Value> = literals.iter().map(one).collect();
    Some(match amount {
        _ if checks.len() == 1 => checks.remove(0),
        Amount::All | Amount::None => json!({ "all": checks }),
        Amount::Any | Amount::AtLeast(1) => json!({ "any": checks }),
        Amount::AtLeast(least) => at_least(&checks, usize::try_from(least).ok()?)?,
    })
}

/// Returns the check that at least `least` of these hold. Returns `None` if that takes too many
/// combinations.
fn at_least(checks: &[Value], least: usize) -> Option<Value> {
    match checks.len().checked_sub(least)? {
        0 => Some(json!({ "all": checks })),
        // Of each two one must hold.
        1 => {
            let pairs = (0..checks.len()).flat_map(|a| (a + 1..checks.len()).map(move |b| (a, b)));
            let pairs: Vec<Value> =
                pairs.map(|(a, b)| json!({"any": [checks[a], checks[b]]})).collect();
            Some(json!({ "all": pairs }))
        }
        _ => None,
    }
}

pub(super) fn occurrences(
    skeleton: &SentenceSkeleton<'_>,
    found: &Captures<'_>,
    phrase: &str,
) -> Option<Value> {
    let text = spoken(skeleton, found)?;
    let (min, max) = times(phrase)?;
    let mut check = json!({ "of": text });
    for (key, limit) in [("min", min), ("max", max)] {
        if let Some(limit) = limit {
            check[key] = json!(limit);
        }
    }
    Some(json!({ "occurrences": check }))
}

/// Returns the pattern of a number as it may be written.
pub(super) fn number_pattern(number: &str) -> String {
    let plain = number.replace(',', "");
    let (whole, rest) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut digits = String::new();
    for (at, digit) in whole.char_indices() {
        // `1234` may be written as `1,234`.
        if at > 0 && (whole.len() - at) % 3 == 0 {
            digits.push_str(",?");
        }
        digits.push(digit);
    }
    // `5` may be written as `5.0`, and `1.5` as `1.50`.
    let fraction = if rest.is_empty() { "(?:\\.0+)?".to_owned() } else { format!("\\.{rest}0*") };
    // A point behind the number may end a sentence, but begin no fraction.
    format!("(?:^|[^0-9.,]){digits}{fraction}(?:$|[^0-9.,]|[.,](?:$|[^0-9]))")
}

/// Returns the pattern of a heading: of Markdown, bold, numbered or plain.
pub(super) fn heading_pattern(text: &str) -> String {
    let text = text.trim_start_matches(['#', ' ']).trim_end();
    // Behind a sign there is no end of a word that a pattern could find.
    let end = if text.ends_with(char::is_alphanumeric) { "\\b" } else { "" };
    let text = regex::escape(text);
    let number = r"(?:\d+[.)]\s+)?";
    format!(
        r"(?im)^\s*(?:#{{1,6}}\s+[^\w\n]*{number}{text}{end}|(?:[-*]\s+|\d+[.)]\s+)*[*_]{{1,3}}{number}{text}{end}|{number}{text}\s*:?\s*$)"
    )
}

pub(super) fn json_keys(
    skeleton: &SentenceSkeleton<'_>,
    found: &Captures<'_>,
    group: &str,
) -> Option<Value> {
    is_spoken(skeleton, found)?;
    let keys: Vec<&str> =
        skeleton.captured(found, group).iter().map(|one| one.text.as_str()).collect();
    let is_key = |key: &&str| key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    keys.iter()
        .all(is_key)
        .then(|| json!({"json": {"schema": {"type": "object", "required": keys}}}))
}

/// Returns the check that the answer has nothing of a kind.
pub(super) fn absent_kind(what: &str) -> Value {
    let pattern = match what {
        what if what.starts_with("em") && what.contains("en") && what.contains(" en") => {
            "[\u{2014}\u{2013}]"
        }
        what if what.starts_with("em") && !what.starts_with("emo") => "\u{2014}",
        what if what.starts_with("emoji") => r"\p{Emoji_Presentation}|\x{FE0F}",
        what if what.starts_with("exclamation") => "!",
        what if what.starts_with("code") => "```|~~~",
        what if what.starts_with("bullet") => return json!({"items": 0}),
        what if what.starts_with("table") => TABLE,
        "headings" | "headers" => r"(?m)^#{1,6}\s",
        "links" => LINK,
        _ => URL,
    };
    json!({ "not_regex": pattern })
}

/// Returns the path of the first group that has one.
pub(super) fn path_of<'s>(
    skeleton: &'s SentenceSkeleton<'_>,
    found: &Captures<'_>,
) -> Option<&'s str> {
    let one = skeleton.first(found, &["p", "q", "r", "t"])?;
    is_path(&one.text).then_some(one.text.as_str())
}

/// Returns the path of a file that is read. The file of a skill may be loaded by a tool instead.
pub(super) fn read_path(path: &str) -> Option<&str> {
    (!path.to_lowercase().ends_with("skill.md")).then_some(path)
}

/// Returns a path in the folder that is named with it.
pub(super) fn placed(
    skeleton: &SentenceSkeleton<'_>,
    found: &Captures<'_>,
    group: &str,
) -> Option<String> {
    let path = skeleton.path(found, group)?;
    let folder = skeleton.first(found, &["folder", "folder2"]);
    let Some(folder) = folder else { return Some(path.to_owned()) };
    let name = folder.text.trim_end_matches('/');
    let is_named = is_folder(&folder.text) || is_folder(&format!("{name}/"));
    if !is_named || path.contains('/') && !path.starts_with(&format!("{name}/")) {
        return None;
    }
    Some(if path.starts_with(&format!("{name}/")) {
        path.to_owned()
    } else if found[0].contains(" under ") {
        // Anywhere below.
        format!("{name}/**/{path}")
    } else {
        format!("{name}/{path}")
    })
}

pub(super) fn placed_one(skeleton: &SentenceSkeleton<'_>, found: &Captures<'_>) -> Option<String> {
    placed(skeleton, found, "p").or_else(|| placed(skeleton, found, "q"))
}

pub(super) fn created(path: &str) -> Value {
    json!({ "file_created": path })
}

/// Returns the check that a file was written, whether or not it was there before.
pub(super) fn written(path: &str) -> Value {
    json!({"any": [{ "file_created": path }, { "file_changed": path }]})
}

/// Returns the check that a file of this ending was written.
pub(super) fn of_ending(ending: &str) -> Option<Value> {
    let ends: &[&str] = match ending.trim_start_matches('.') {
        "markdown" | "md" => &["md"],
        "html" => &["html", "htm"],
        "yaml" | "yml" => &["yaml", "yml"],
        "excel" | "xlsx" => &["xlsx"],
        "powerpoint" | "pptx" => &["pptx"],
        "docx" => &["docx"],
        "pdf" => &["pdf"],
        "csv" => &["csv"],
        "json" => &["json"],
        "svg" => &["svg"],
        "png" => &["png"],
        "toml" => &["toml"],
        "xml" => &["xml"],
        "ipynb" => &["ipynb"],
        "tex" => &["tex"],
        "zip" => &["zip"],
        "mp4" => &["mp4"],
        "wav" => &["wav"],
        "xaml" => &["xaml"],
        "bpmn" => &["bpmn"],
        _ => return None,
    };
    let checks: Vec<Value> = ends.iter().map(|end| written(&format!("**/*.{end}"))).collect();
    Some(json!({ "any": checks }))
}

pub(super) fn each_path(
    skeleton: &SentenceSkeleton<'_>,
    found: &Captures<'_>,
    group: &str,
    check: fn(&str) -> Value,
) -> Option<Value> {
    let paths = skeleton.paths(found, group)?;
    Some(json!({"all": paths.iter().map(|path| check(path)).collect::<Vec<_>>()}))
}

pub(super) fn only_changes(skeleton: &SentenceSkeleton<'_>, found: &Captures<'_>) -> Option<Value> {
    let group =
        ["p", "q", "r", "t", "u", "v"].into_iter().find(|group| found.name(group).is_some())?;
    let glob = |one: &&SentenceLiteral| {
        if is_path(&one.text) {
            Some(one.text.clone())
        } else {
            is_folder(&one.text).then(|| format!("{}**", one.text))
        }
    };
    let globs = skeleton.captured(found, group).iter().map(glob).collect::<Option<Vec<_>>>()?;
    let only = json!({ "only_changes": globs });
    if matches!(group, "p" | "u" | "v") {
        return Some(only);
    }
    // "Only a.md is changed" says that it is.
    let kinds = ["file_changed", "file_created", "file_deleted"];
    let change = |glob: &String| json!({"any": kinds.map(|kind| json!({ kind: glob }))});
    let mut checks = vec![only];
    checks.extend(globs.iter().map(change));
    Some(json!({ "all": checks }))
}

pub(super) fn in_file(
    skeleton: &SentenceSkeleton<'_>,
    found: &Captures<'_>,
    amount: Amount,
) -> Option<Value> {
    let path = skeleton.path(found, "p")?;
    let literals = skeleton.captured(found, "l");
    if literals.is_empty() || literals.iter().any(|one| one.form == LiteralForm::Tool) {
        return None;
    }
    let is_exact = found[0].contains("exact ") || found[0].contains("literal ");
    let one = |literal: &&SentenceLiteral| {
        in_file_or_not(path, literal, amount != Amount::None, is_exact)
    };
    let mut checks: Vec<Value> = literals.iter().map(one).collect();
    Some(match amount {
        _ if checks.len() == 1 => checks.remove(0),
        Amount::Any => json!({ "any": checks }),
        _ => json!({ "all": checks }),
    })
}

/// Returns the check that a key of a data file has a value.
pub(super) fn set_to(skeleton: &SentenceSkeleton<'_>, found: &Captures<'_>) -> Option<Value> {
    let file = data::path(path_of(skeleton, found)?)?;
    let key = skeleton.first(found, &["k", "k2"])?;
    let pointer = data::pointer(&key.text)?;
    let value = found.name("l").or(found.name("m"))?;
    let literal = skeleton.first(found, &["l", "m"]);
    Some(match literal {
        Some(one) => {
            data::equal_data(&file, &pointer, &json!(one.text), one.form != LiteralForm::Quoted)
        }
        None => {
            data::equal_data(&file, &pointer, &serde_json::from_str(value.as_str()).ok()?, false)
        }
    })
}

static TOOL: LazyLock<Regex> = LazyLock::new(|| regex(r"^[A-Za-z][A-Za-z0-9_.:-]{0,63}$"));

pub(super) fn tool(skeleton: &SentenceSkeleton<'_>, found: &Captures<'_>) -> Option<String> {
    tool_name(skeleton.first(found, &["t", "u"])?, found)
}

pub(super) fn tool_name(literal: &SentenceLiteral, found: &Captures<'_>) -> Option<String> {
    let name = literal.text.strip_suffix("()").unwrap_or(&literal.text);
    if !TOOL.is_match(name) {
        return None;
    }
    // "Uses the `jq` tool" may well mean a program that another tool runs.
    let says_use = found[0].split(' ').any(|word| matches!(word, "use" | "uses" | "used"));
    (!says_use || is_known_tool(name) || name.contains('_')).then(|| name.to_owned())
}

/// Programs that nothing else is called like.
const PROGRAMS: [&str; 44] = [
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "node",
    "deno",
    "bun",
    "cargo",
    "rustc",
    "git",
    "gh",
    "python",
    "python3",
    "pip",
    "pip3",
    "pytest",
    "ruff",
    "mypy",
    "uv",
    "go",
    "mvn",
    "gradle",
    "dotnet",
    "docker",
    "kubectl",
    "helm",
    "terraform",
    "bash",
    "sh",
    "curl",
    "wget",
    "grep",
    "sed",
    "awk",
    "jq",
    "ls",
    "rm",
    "cat",
    "tsc",
    "eslint",
    "jest",
    "vitest",
    "bundle",
    "aws",
];

/// Returns the pattern of a command that is run: its words, wherever they stand in a line.
pub(super) fn command(literal: &SentenceLiteral) -> Option<String> {
    let text = literal.text.trim();
    let is_known = text.split_whitespace().next().is_some_and(|word| PROGRAMS.contains(&word));
    let is_command = match literal.form {
        // "Runs `parse_date`" may mean a function.
        LiteralForm::Code => is_known || text.contains([' ', '/', '.']) && !text.ends_with("()"),
        // "Runs "the tests"" says what for.
        LiteralForm::Quoted => is_known,
        LiteralForm::Bare => is_path(text),
        LiteralForm::Tool => false,
    };
    if !is_command {
        return None;
    }
    let words: Vec<String> = text.split_whitespace().map(regex::escape).collect();
    Some(format!("(?:^|[^A-Za-z0-9_-]){}(?:$|[^A-Za-z0-9_-])", words.join("\\s+")))
}

static BOUND: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = with_pieces(
        "(?P<exact>exactly <n>)|(?P<max>(?:at most|no more than|not more than|no longer than|up to|a maximum of|exceed|<=|≤) ?<n>)|(?P<or_fewer><n> or (?:fewer|less))|(?P<min>(?:at least|no fewer than|no less than|a minimum of|>=|≥) ?<n>)|(?P<or_more><n> or more)|(?P<below>(?:fewer than|less than|under|below|<) ?<n>)|(?P<above>(?:more than|over|>) ?<n>)|(?:between )?(?P<low><n>)(?: ?[-–] ?| and | to )(?P<high><n>)|(?P<none>no)",
    );
    regex(&format!("^(?:{pattern})$"))
});

/// Returns the bounds that a phrase states, as in a suite.
pub(super) fn bounds(phrase: &str) -> Option<Value> {
    let bound = BOUND.captures(phrase)?;
    let number = |group: &str| bound.name(group).and_then(|found| number(found.as_str()));
    Some(if let Some(exact) = number("exact") {
        json!(exact)
    } else if let Some(max) = number("max").or_else(|| number("or_fewer")) {
        json!({ "max": max })
    } else if let Some(min) = number("min").or_else(|| number("or_more")) {
        json!({ "min": min })
    } else if let Some(below) = number("below") {
        json!({"max": below.checked_sub(1)?})
    } else if let Some(above) = number("above") {
        json!({"min": above + 1})
    } else if let (Some(low), Some(high)) = (number("low"), number("high")) {
        json!({"min": low, "max": high})
    } else if bound.name("none").is_some() {
        json!(0)
    } else {
        return None;
    })
}

/// Returns the check of a number of units.
pub(super) fn count(_: &SentenceSkeleton<'_>, found: &Captures<'_>) -> Option<Value> {
    let unit = match found["what"].trim_end_matches('s') {
        "bullet" | "bullet point" | "list item" => "item",
        unit => unit,
    };
    let phrase = match found.name("after") {
        Some(after) => format!("{} or {}", &found["bound"], after.as_str()),
        None => found["bound"].to_owned(),
    };
    let value = bounds(&phrase)?;
    // "No words" is no count.
    if phrase == "no" && !matches!(unit, "question" | "item") {
        return None;
    }
    Some(json!({ format!("{unit}s"): value }))
}

/// Returns how often something is called, from "once", "exactly twice" or "at least 3 times".
pub(super) fn times(phrase: &str) -> Option<(Option<u64>, Option<u64>)> {
    let exact = phrase.trim_start_matches("exactly ").trim_start_matches("only ");
    let limits = |value: &Value| {
        let limit = |key: &str| value.get(key).and_then(Value::as_u64);
        value.as_u64().map_or_else(|| (limit("min"), limit("max")), |one| (Some(one), Some(one)))
    };
    match exact {
        // Alone, the word may just as well mean at least once.
        "once" if exact != phrase => return Some((Some(1), Some(1))),
        "twice" if exact != phrase => return Some((Some(2), Some(2))),
        "at least once" | "once or more" => return Some((Some(1), None)),
        "at most once" | "no more than once" => return Some((None, Some(1))),
        "at least twice" | "more than once" => return Some((Some(2), None)),
        _ => {}
    }
    let phrase = phrase.strip_suffix(" times").or_else(|| phrase.strip_suffix(" time"))?;
    Some(limits(&bounds(phrase)?))
}

/// Returns the number in a phrase that contains one.
pub(super) fn number(phrase: &str) -> Option<u64> {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    phrase.split(' ').find_map(|word| match word.trim_start_matches(['<', '>', '=', '≤', '≥']) {
        "fifteen" => Some(15),
        "twenty" => Some(20),
        word => {
            let named = WORDS.iter().position(|known| *known == word).map(|at| at as u64);
            named.or_else(|| word.replace(',', "").parse().ok())
        }
    })
}
