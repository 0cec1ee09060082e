//! Translates sentences with an unambiguous meaning into checks.
//!
//! A sentence becomes a check only if all of it is understood. Quoted literals and paths are taken
//! out, and the rest must match one of the known forms from the first word to the last. One
//! additional word ("… in the first line", "… or similar") leaves it to the judge. Nothing is
//! guessed from keywords.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};

use crate::check::{self, Check};
use crate::sentence_data::{SentenceContext, data_check};

/// Longer sentences usually say more than one thing.
const MAX_SENTENCE: usize = 300;
/// Longer literals are usually not meant verbatim.
const MAX_LITERAL: usize = 200;

/// Suffix of the name of a check that a rule made of a sentence.
pub const BY_RULE_SUFFIX: &str = " (by rule)";

/// Returns the check that a sentence means, if that is unambiguous.
pub fn check_of(sentence: &str) -> Option<Check> {
    check_in(sentence, &SentenceContext::default())
}

/// Returns the check that a sentence means in its case, if that is unambiguous.
pub fn check_in(sentence: &str, context: &SentenceContext) -> Option<Check> {
    if sentence.len() > MAX_SENTENCE || sentence.contains('\n') {
        return None;
    }
    if let Some(skill) = skill_check(sentence, context) {
        return check::read(&skill).ok();
    }
    if let Some(data) = data_check(sentence, context) {
        return check::read(&data).ok();
    }
    let skeleton = SentenceSkeleton::of(sentence)?;
    FORMS.iter().find_map(|form| {
        let found = form.pattern.captures(&skeleton.text)?;
        // If the form matches but its literals do not fit, try later forms.
        check::read(&(form.check)(&skeleton, &found)?).ok()
    })
}

/// A sentence about loading a skill, with its name or of the skill under test.
static SKILL: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?ix)^(?:the\s)?(?:
        (?:[`"']?(?P<a>[a-z0-9][a-z0-9_:-]*)[`"']?\s)?skill\s(?P<passive>is|was|gets|got|should\sbe|must\sbe|is\snot|was\snot|isn't|wasn't|should\snot\sbe|must\snot\sbe)\s(?:triggered|loaded|activated|invoked)
        |(?:(?:agent|assistant|model)\s)?(?P<active>loads|triggers|activates|invokes|does\snot\s(?:load|trigger|activate|invoke))\sthe\s(?:[`"']?(?P<b>[a-z0-9][a-z0-9_:-]*)[`"']?\s)?skill
        )\.?$"#,
    )
});

/// Words before "skill" that are no name.
const NOT_NAMES: [&str; 12] =
    ["the", "a", "this", "that", "right", "correct", "wrong", "other", "same", "any", "new", "no"];

fn skill_check(sentence: &str, context: &SentenceContext) -> Option<Value> {
    let found = SKILL.captures(sentence.trim())?;
    let named = found.name("a").or(found.name("b")).map(|name| name.as_str());
    let name = match named {
        Some(name) if NOT_NAMES.contains(&name.to_lowercase().as_str()) => return None,
        Some(name) => name.to_owned(),
        None => context.skill.clone()?,
    };
    let verb = found.name("passive").or(found.name("active"))?.as_str().to_lowercase();
    let loaded = json!({ "skill_loaded": name });
    let is_negative = verb.contains("not") || verb.contains("n't");
    Some(if is_negative { json!({ "not": loaded }) } else { loaded })
}

/// A literal in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SentenceLiteral {
    text: String,
    /// True if it was in quotes or backticks; false for a bare path or tool name.
    quoted: bool,
}

/// A sentence in lower case, with literals replaced by `⟦0⟧`, `⟦1⟧` and so on.
#[derive(Debug)]
struct SentenceSkeleton {
    text: String,
    literals: Vec<SentenceLiteral>,
}

impl SentenceSkeleton {
    /// Returns `None` if a quote is unclosed or a literal is a placeholder.
    fn of(sentence: &str) -> Option<Self> {
        // The brackets mark literals in the skeleton, so a sentence must not bring its own.
        if sentence.contains(['⟦', '⟧', '\n']) {
            return None;
        }
        let mut skeleton = Self { text: String::new(), literals: Vec::new() };
        let mut rest = sentence.trim();
        let mut plain = String::new();
        while let Some(c) = rest.chars().next() {
            // A single quote only opens a literal at the start of a word; elsewhere it is an
            // apostrophe.
            let opens = plain.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
            let close = match c {
                '"' => '"',
                '`' => '`',
                '“' => '”',
                '‘' if opens => '’',
                '\'' if opens => '\'',
                _ => {
                    plain.push(c);
                    rest = &rest[c.len_utf8()..];
                    continue;
                }
            };
            let inside = &rest[c.len_utf8()..];
            let end = closing(inside, close)?;
            skeleton.add_plain(&std::mem::take(&mut plain));
            skeleton.add_literal(&inside[..end], true)?;
            rest = &inside[end + close.len_utf8()..];
            // A word attached to the closing quote is part of what the literal means.
            if rest.starts_with(|c: char| c.is_alphanumeric() || c == '/') {
                return None;
            }
            plain.clear();
        }
        skeleton.add_plain(&plain);
        let text = skeleton.text.trim().trim_end_matches('.').to_owned();
        skeleton.text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(skeleton)
    }

    /// Adds unquoted text, in which paths and tool names are literals too.
    fn add_plain(&mut self, plain: &str) {
        for word in plain.split_inclusive(char::is_whitespace) {
            let bare = word.trim_end();
            // Punctuation after a path belongs to the sentence.
            let end = bare.trim_end_matches(['.', ',', ';', ':']);
            if is_path(end) || is_known_tool(end) {
                self.text.push_str(&format!("⟦{}⟧", self.literals.len()));
                self.literals.push(SentenceLiteral { text: end.to_owned(), quoted: false });
                self.text.push_str(&word[end.len()..]);
            } else {
                self.text.push_str(&word.to_lowercase());
            }
        }
    }

    fn add_literal(&mut self, text: &str, quoted: bool) -> Option<()> {
        // An ellipsis or a placeholder means that the author has something less literal in mind.
        let is_vague = text.trim().is_empty()
            || text.len() > MAX_LITERAL
            || text.contains("...")
            || text.contains('…')
            || VAGUE.is_match(text);
        if is_vague {
            return None;
        }
        self.text.push_str(&format!("⟦{}⟧", self.literals.len()));
        self.literals.push(SentenceLiteral { text: text.to_owned(), quoted });
        Some(())
    }

    /// Returns the literals of a captured list, in order.
    fn captured(&self, found: &Captures<'_>, group: &str) -> Vec<&SentenceLiteral> {
        let list = found.name(group).map_or("", |list| list.as_str());
        let number = |found: Captures<'_>| found[1].parse::<usize>().ok();
        LITERAL
            .captures_iter(list)
            .filter_map(number)
            .filter_map(|at| self.literals.get(at))
            .collect()
    }

    /// Returns the group's single quoted literal.
    fn quoted(&self, found: &Captures<'_>, group: &str) -> Option<&str> {
        match self.captured(found, group).as_slice() {
            [one] if one.quoted => Some(&one.text),
            _ => None,
        }
    }

    /// Returns the group's single literal if it is a file path.
    fn path(&self, found: &Captures<'_>, group: &str) -> Option<&str> {
        match self.captured(found, group).as_slice() {
            [one] if is_path(&one.text) => Some(&one.text),
            _ => None,
        }
    }

    /// Returns the group's single literal if it can be a tool name.
    fn tool(&self, found: &Captures<'_>, group: &str) -> Option<&str> {
        match self.captured(found, group).as_slice() {
            [one] if TOOL.is_match(&one.text) => Some(&one.text),
            _ => None,
        }
    }
}

/// Returns the end of a literal. A single quote inside a word is an apostrophe.
fn closing(text: &str, close: char) -> Option<usize> {
    text.char_indices().find_map(|(at, c)| {
        let after = text[at + c.len_utf8()..].chars().next();
        let in_word = matches!(close, '\'' | '’') && after.is_some_and(char::is_alphanumeric);
        (c == close && !in_word).then_some(at)
    })
}

static LITERAL: LazyLock<Regex> = LazyLock::new(|| regex("⟦([0-9]+)⟧"));
/// Matches blanks to be filled in, such as `<name>`, rather than literal text.
static VAGUE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"<[A-Za-z_][^>]*>|\{[A-Za-z_ ]*\}|\b(?:YYYY|XXX?|N\.N)\b"));
static TOOL: LazyLock<Regex> = LazyLock::new(|| regex(r"^[A-Za-z][A-Za-z0-9_.:-]{0,63}$"));
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)^(?:\./)?(?:[A-Za-z0-9_@.-]+/)*(?:Dockerfile|Makefile|Justfile|LICENSE|
        \.?[A-Za-z0-9_@-][A-Za-z0-9_@.-]*\.(?:md|mdx|txt|rst|adoc|json|jsonl|json5|yaml|yml|toml|ini|cfg|conf|
        env|example|lock|mod|sum|csv|tsv|xml|html|css|scss|js|mjs|cjs|jsx|ts|tsx|vue|svelte|py|pyi|ipynb|rs|go|rb|
        java|kt|kts|scala|c|h|cc|cpp|hpp|cs|swift|php|pl|lua|r|jl|ex|exs|erl|hs|clj|sh|bash|zsh|fish|ps1|bat|
        sql|graphql|proto|tf|tfvars|hcl|gradle|cmake|pdf|docx|xlsx|pptx|png|jpg|jpeg|gif|svg|webp|ico|
        zip|tar|gz|tgz|log|db|sqlite|parquet|tex|bib|diff|patch|pem|key))$",
    )
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

fn is_path(text: &str) -> bool {
    PATH.is_match(text) && !text.split('/').any(|part| part == "..")
}

/// Returns true for well-known agent tools whose name cannot mean anything else.
fn is_known_tool(word: &str) -> bool {
    matches!(
        word,
        "Read"
            | "Write"
            | "Edit"
            | "MultiEdit"
            | "Bash"
            | "Grep"
            | "Glob"
            | "WebFetch"
            | "WebSearch"
            | "TodoWrite"
            | "NotebookEdit"
            | "AskUserQuestion"
    )
}

/// A sentence form, which matches a whole sentence or not at all.
struct SentenceForm {
    pattern: Regex,
    check: fn(&SentenceSkeleton, &Captures<'_>) -> Option<Value>,
}

/// Building blocks of the forms, by their name in angle brackets.
const PIECES: [(&str, &str); 12] = [
    (
        "<answer>",
        "(?:the )?(?:agent's |assistant's |model's |final )?(?:answer|response|output|reply)",
    ),
    ("<agent>", "(?:(?:the )?(?:agent|assistant|model|skill) )?"),
    ("<not>", "(?:does not|doesn't|do not|must not|mustn't|should not|shouldn't|will not|never)"),
    ("<was>", "(?:is|was|has been|gets|got|should be|must be)"),
    (
        "<was not>",
        "(?:is not|was not|isn't|wasn't|has not been|is never|was never|should not be|must not be)",
    ),
    (
        "<noun>",
        "(?:(?:the |a )?(?:exact |literal )?(?:text|string|substring|word|phrase|term|keyword|heading|marker|flag|option|command|line|url) )?",
    ),
    ("<kind>", "(?: (?:flag|option|keyword|command|heading|marker))?"),
    ("<has>", "(?:contains|includes|mentions|(?:must|should) (?:contain|include|mention))"),
    ("<have>", "(?:contain|include|mention)s?"),
    ("<file>", "(?:(?:a |the )?(?:new )?file (?:named |called |at )?)?"),
    (
        "<n>",
        "(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,6}|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty)",
    ),
    ("<unit>", "(?:lines?|words?|characters?|questions?|bullet points?|bullets?|list items?)"),
];

fn form(
    pattern: &str,
    check: fn(&SentenceSkeleton, &Captures<'_>) -> Option<Value>,
) -> SentenceForm {
    let pattern = PIECES
        .iter()
        .fold(pattern.to_owned(), |pattern, (name, piece)| pattern.replace(name, piece))
        .replace("<L>", "⟦[0-9]+⟧");
    SentenceForm { pattern: regex(&format!("^(?:{pattern})$")), check }
}

static FORMS: LazyLock<Vec<SentenceForm>> = LazyLock::new(|| {
    vec![
        // Text in the answer.
        form("(?:<answer> )?<has> (?:the )?<noun>(?P<l><L>)<kind>", |s, f| {
            Some(json!({"contains": s.quoted(f, "l")?}))
        }),
        form("(?:<answer> )?<has> (?:both )?<noun>(?P<l><L>(?:, <L>)*,? and <L>)", |s, f| {
            Some(json!({"all": each(s, f, "contains")?}))
        }),
        form("(?:<answer> )?<has> (?:either )?<noun>(?P<l><L>(?:, <L>)*,? or <L>)", |s, f| {
            Some(json!({"any": each(s, f, "contains")?}))
        }),
        form(
            "(?:<answer> )?(?:<not> <have>|avoids(?: using)?) (?:the )?<noun>(?P<l><L>)<kind>",
            |s, f| Some(json!({"not_contains": s.quoted(f, "l")?})),
        ),
        form(
            "(?:<answer> )?(?:(?:contains|includes|mentions) neither <noun>(?P<l><L> nor <L>)|<not> <have> (?:either )?<noun>(?P<m><L>(?:, <L>)*,? or <L>))",
            |s, f| {
                let group = if f.name("l").is_some() { "l" } else { "m" };
                Some(json!({"all": each_of(s, f, group, "not_contains")?}))
            },
        ),
        // Counts.
        form(
            "<answer> (?:is|has|contains|stays|(?:must|should) (?:be|have|contain)) (?P<bound>.+?) (?P<what><unit>)(?: long| in length)?",
            count,
        ),
        form("<answer> <not> (?P<bound>exceeds? <n>) (?P<what><unit>)", count),
        form("(?:<answer> |<agent>)asks (?P<bound>.+?) (?P<what>questions?)", count),
        // Format.
        form(
            "<answer> (?:(?:is|must be|should be) (?:a )?valid json(?: object| array)?|(?:parses|can be parsed) as (?:valid )?json)|(?:<answer> |<agent>)(?:returns|outputs) valid json",
            |_, _| Some(json!({"json": {}})),
        ),
        // Headings, beginnings and ends.
        form(
            "(?:<answer> )?(?:has|<has>) (?:the |a )?(?:section (?P<m><L>)|(?P<l><L>) (?:section|heading))",
            |s, f| {
                let text = s.quoted(f, "l").or_else(|| s.quoted(f, "m"))?;
                let text = regex::escape(text.trim_start_matches(['#', ' ']));
                // A heading of Markdown, bold, numbered or plain.
                let pattern = format!(
                    "(?im)^\\s*(?:#{{1,6}}\\s+|[-*]\\s+|\\d+[.)]\\s+)*[*_]*(?:\\d+[.)]\\s+)?{text}"
                );
                Some(json!({ "regex": pattern }))
            },
        ),
        form("<answer> (?:starts|begins) with <noun>(?P<l><L>)", |s, f| {
            Some(json!({"regex": format!("\\A\\s*{}", regex::escape(s.quoted(f, "l")?))}))
        }),
        form("<answer> ends with <noun>(?P<l><L>)", |s, f| {
            Some(json!({"regex": format!("{}\\s*\\z", regex::escape(s.quoted(f, "l")?))}))
        }),
        form(
            "(?:<answer> )?(?:says|states|reports|shows|prints|quotes|cites|references|names) <noun>(?P<l><L>)",
            |s, f| Some(json!({"contains": s.quoted(f, "l")?})),
        ),
        form(
            "<noun>(?P<l><L>) (?:is|was) (?:mentioned|included|present|shown|stated|in the (?:answer|response|output|reply))|<noun>(?P<m><L>) appears(?: in the (?:answer|response|output|reply))?",
            |s, f| {
                let text = s.quoted(f, "l").or_else(|| s.quoted(f, "m"))?;
                Some(json!({ "contains": text }))
            },
        ),
        form(
            "(?:no|<noun>)(?P<l><L>) (?:is not|was not|isn't) (?:mentioned|included|present|shown)|<noun>(?P<m><L>) <not> appear(?: in the (?:answer|response|output|reply))?",
            |s, f| {
                let text = s.quoted(f, "l").or_else(|| s.quoted(f, "m"))?;
                Some(json!({ "not_contains": text }))
            },
        ),
        form(
            "(?:<answer> )?(?:contains|includes|uses|mentions) none of(?: these)?(?: the)?(?: banned| forbidden)?(?: words| phrases| terms)?:? (?P<l><L>(?:, <L>)*(?:,? (?:and|or) <L>)?)",
            |s, f| Some(json!({"all": each(s, f, "not_contains")?})),
        ),
        form(
            "(?:<answer> )?(?:contains no|has no|uses no|no|<not> (?:contain|use|have)(?: any)?) em[- ]?dash(?:es)?(?P<en>(?: or|,| and) en[- ]?dash(?:es)?)?",
            |_, f| {
                let pattern =
                    if f.name("en").is_some() { "[\u{2014}\u{2013}]" } else { "\u{2014}" };
                Some(json!({ "not_regex": pattern }))
            },
        ),
        // Files.
        form(
            "<agent>(?:produces|generates|outputs|writes|saves) (?:a |an |the )?(?:new )?(?:file )?(?:named |called )?(?P<p><L>)(?: file)?|<agent>creates (?:a |an |the )(?:new )?(?P<q><L>) file|(?:a |the )?(?:new )?(?:file )?(?P<r><L>)(?: file)? (?:is|was|has been|gets) (?:produced|generated|written|saved)",
            |s, f| {
                let path = ["p", "q", "r"].iter().find_map(|group| s.path(f, group))?;
                Some(json!({"any": [{ "file_created": path }, { "file_changed": path }]}))
            },
        ),
        form(
            "(?:<agent><not> (?:modify|change|edit|touch|alter)(?: any| the)? (?:project |source |existing )?files?|no (?:project |source |existing )?files? (?:is|are|was|were) (?:modified|changed|edited|touched))",
            |_, _| {
                Some(
                    json!({"all": [{"not": {"file_changed": "**"}}, {"not": {"file_deleted": "**"}}]}),
                )
            },
        ),
        form(
            "(?:<agent><not> (?:create|write) any (?:new )?files?|no (?:new )?files? (?:is|are|was|were) (?:created|written))",
            |_, _| Some(json!({"not": {"file_created": "**"}})),
        ),
        form("<file>(?P<p><L>) <was> created|<agent>creates <file>(?P<q><L>)", |s, f| {
            file(s, f, "file_created", true)
        }),
        form(
            "<file>(?P<p><L>) <was not> created|<agent><not> creates? <file>(?P<q><L>)",
            |s, f| file(s, f, "file_created", false),
        ),
        form("<file>(?P<p><L>) (?:exists|should exist|must exist)(?: after the run)?", |s, f| {
            file(s, f, "file_exists", true)
        }),
        form("<file>(?P<p><L>) <not> exist(?: after the run)?", |s, f| {
            file(s, f, "file_exists", false)
        }),
        form(
            "<file>(?P<p><L>) (?:(?:is|was|remains|stays|is left|was left) (?:unchanged|unmodified|untouched)|<was not> (?:modified|changed|edited|touched))|<agent><not> (?:modify|modifies|changes?|edits?|touch|touches|alters?) <file>(?P<q><L>)",
            |s, f| file(s, f, "file_unchanged", true),
        ),
        form(
            "<file>(?P<p><L>) <was> (?:modified|changed|edited|updated)|<agent>(?:modifies|changes|edits|updates) <file>(?P<q><L>)",
            |s, f| file(s, f, "file_changed", true),
        ),
        form("<file>(?P<p><L>) <was> deleted|<agent>deletes <file>(?P<q><L>)", |s, f| {
            file(s, f, "file_deleted", true)
        }),
        form(
            "<file>(?P<p><L>) <was not> deleted|<agent><not> deletes? <file>(?P<q><L>)",
            |s, f| file(s, f, "file_deleted", false),
        ),
        form("(?:the )?(?:file )?(?P<p><L>) (?:contains|includes) <noun>(?P<l><L>)", |s, f| {
            Some(json!({"file_contains": {"path": s.path(f, "p")?, "text": s.quoted(f, "l")?}}))
        }),
        form(
            "(?:the )?(?:file )?(?P<p><L>) <not> (?:contain|include)s? <noun>(?P<l><L>)",
            |s, f| {
                Some(
                    json!({"not": {"file_contains": {"path": s.path(f, "p")?, "text": s.quoted(f, "l")?}}}),
                )
            },
        ),
        // Tools.
        form(
            "<agent>(?:calls|uses|invokes) (?:the )?(?:(?P<t><L>) tool|tool (?P<u><L>))",
            |s, f| tool(s, f, "tool_called"),
        ),
        form(
            "(?:the )?(?:(?P<t><L>) tool|tool (?P<u><L>)) <was> (?:called|used|invoked)",
            |s, f| tool(s, f, "tool_called"),
        ),
        form(
            "<agent><not> (?:calls?|uses?|invokes?) (?:the )?(?:(?P<t><L>) tool|tool (?P<u><L>))",
            |s, f| tool(s, f, "tool_not_called"),
        ),
        form(
            "(?:the )?(?:(?P<t><L>) tool|tool (?P<u><L>)) <was not> (?:called|used|invoked)",
            |s, f| tool(s, f, "tool_not_called"),
        ),
    ]
});

/// Returns one check per literal in the list.
fn each(skeleton: &SentenceSkeleton, found: &Captures<'_>, kind: &str) -> Option<Vec<Value>> {
    each_of(skeleton, found, "l", kind)
}

fn each_of(
    skeleton: &SentenceSkeleton,
    found: &Captures<'_>,
    group: &str,
    kind: &str,
) -> Option<Vec<Value>> {
    let literals = skeleton.captured(found, group);
    let check = |literal: &&SentenceLiteral| literal.quoted.then(|| json!({ kind: literal.text }));
    literals.iter().map(check).collect()
}

fn file(
    skeleton: &SentenceSkeleton,
    found: &Captures<'_>,
    kind: &str,
    wanted: bool,
) -> Option<Value> {
    let path = skeleton.path(found, "p").or_else(|| skeleton.path(found, "q"))?;
    let check = json!({ kind: path });
    Some(if wanted { check } else { json!({ "not": check }) })
}

fn tool(skeleton: &SentenceSkeleton, found: &Captures<'_>, kind: &str) -> Option<Value> {
    let name = skeleton.tool(found, "t").or_else(|| skeleton.tool(found, "u"))?;
    // "Uses the `jq` tool" may well mean a program that another tool runs.
    let says_use = found[0].split(' ').any(|word| matches!(word, "use" | "uses" | "used"));
    if says_use && !is_known_tool(name) && !name.contains('_') {
        return None;
    }
    Some(json!({ kind: name }))
}

static BOUND: LazyLock<Regex> = LazyLock::new(|| {
    form(
        "(?P<exact>exactly <n>)|(?P<max>(?:at most|no more than|not more than|no longer than|up to|a maximum of|exceeds?) <n>)|(?P<or_fewer><n> or (?:fewer|less))|(?P<min>(?:at least|no fewer than|no less than|a minimum of) <n>)|(?P<or_more><n> or more)|(?P<below>(?:fewer than|less than|under|below) <n>)|(?P<above>(?:more than|over) <n>)|between (?P<low><n>) and (?P<high><n>)|(?P<none>no)",
        |_, _| None,
    )
    .pattern
});

fn count(_: &SentenceSkeleton, found: &Captures<'_>) -> Option<Value> {
    let unit = match found["what"].trim_end_matches('s') {
        "bullet" | "bullet point" | "list item" => "item",
        unit => unit,
    };
    let text = &found["bound"];
    let bound = BOUND.captures(text)?;
    let number = |group: &str| bound.name(group).and_then(|found| number(found.as_str()));
    let value = if let Some(exact) = number("exact") {
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
    } else if bound.name("none").is_some() && unit == "question" {
        json!(0)
    } else {
        return None;
    };
    Some(json!({ format!("{unit}s"): value }))
}

/// Returns the number in a phrase that contains one.
fn number(phrase: &str) -> Option<u64> {
    const WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    phrase.split(' ').find_map(|word| match word {
        "fifteen" => Some(15),
        "twenty" => Some(20),
        _ => {
            let named = WORDS.iter().position(|known| *known == word).map(|at| at as u64);
            named.or_else(|| word.replace(',', "").parse().ok())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Labelled by hand before the rules were written: the check, or `judge`.
    const SENTENCES: &str = include_str!("sentences.tsv");

    /// Labelled after the rules were written, to catch what they should leave alone.
    const LATER: &str = include_str!("sentences_later.tsv");

    /// The number of sentences, and of those that are decided correctly, wrongly, and not at all.
    fn tally(sentences: &'static str) -> (usize, usize, Vec<String>, Vec<&'static str>) {
        let (mut right, mut wrong, mut missed) = (0, Vec::new(), Vec::new());
        for line in sentences.lines() {
            let (label, sentence) = line.split_once('\t').unwrap();
            let label = (label != "judge").then(|| {
                let value: Value = serde_json::from_str(label).unwrap();
                check::read(&value).unwrap_or_else(|faults| panic!("{label}: {faults:?}"))
            });
            match (check_of(sentence), label) {
                (Some(found), Some(label)) if found == label => right += 1,
                (Some(found), _) => wrong.push(format!("{sentence}: {found:?}")),
                (None, Some(_)) => missed.push(sentence),
                (None, None) => {}
            }
        }
        (sentences.lines().count(), right, wrong, missed)
    }

    #[test]
    fn what_is_decided_by_rule_is_right() {
        for (sentences, least) in [(SENTENCES, 300), (LATER, 80)] {
            let (all, right, wrong, missed) = tally(sentences);
            let decided = right + wrong.len();
            assert!(all >= least, "{all}");
            assert!(decided * 5 >= all, "{decided} of {all} are decided, not: {missed:#?}");
            assert!(right * 100 >= decided * 98, "{right} of {decided} are right, not: {wrong:#?}");
        }
    }

    #[test]
    fn one_word_more_and_it_is_left_to_the_judge() {
        for sentence in [
            "The answer contains \"a\"",
            "The response is at most 50 words",
            "The file `a.md` was created",
            "The `Bash` tool is not called",
        ] {
            assert!(check_of(sentence).is_some(), "{sentence}");
            for more in ["if asked", "or similar", "(unless told otherwise)", "and explains why"] {
                assert_eq!(check_of(&format!("{sentence} {more}")), None, "{sentence} {more}");
            }
            assert_eq!(check_of(&format!("Ideally, {sentence}")), None, "{sentence}");
        }
    }

    #[test]
    fn blanks_and_broken_quotes_are_not_literals() {
        for sentence in [
            "The answer contains \"feat(<scope>)\"",
            "The answer contains \"...\"",
            "The answer contains \"Dear {name}\"",
            "The answer contains \"open",
            "The answer contains \"\"",
            "The answer contains `a`b",
            "Creates `../outside.md`",
            "Creates `the thing`",
            "The response exceeds 50 words",
            "Uses the `jq` tool",
            "The `docker` tool is not used",
        ] {
            assert_eq!(check_of(sentence), None, "{sentence}");
        }
    }

    proptest! {
        #[test]
        fn any_sentence_is_read_or_left(sentence in "\\PC{0,80}", literal in "\\PC{0,20}") {
            let _ = check_of(&sentence);
            let _ = check_of(&format!("The answer contains \"{literal}\""));
            let _ = check_of(&format!("The answer is at most {literal} words"));
        }
    }
}
