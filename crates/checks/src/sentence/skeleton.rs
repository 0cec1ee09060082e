//! A sentence without its literals: the words in one form, and the texts, paths and names that were
//! quoted or that only code spells so. Its beginning is brought into one form, too: "The agent should
//! have created", "Must create" and "Created" say the same as "creates".

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::SentenceContext;

/// Longer literals are usually not meant verbatim.
const MAX_LITERAL: usize = 200;

/// The marks around a literal in its sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralForm {
    /// In quotes.
    Quoted,
    /// In backticks.
    Code,
    /// Without either: a path, a folder or a name that only code spells so.
    Bare,
    /// Without either: a well-known tool.
    Tool,
}

/// A literal in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentenceLiteral {
    pub(super) text: String,
    pub(super) form: LiteralForm,
}

impl SentenceLiteral {
    /// Returns true for plain words in quotes, which may stand at the start of a sentence in an answer.
    pub(super) fn is_words(&self) -> bool {
        self.form == LiteralForm::Quoted && self.text.chars().all(|c| c == ' ' || c.is_lowercase())
    }
}

/// A sentence in lower case, with literals replaced by `⟦0⟧`, `⟦1⟧` and so on.
#[derive(Debug)]
pub(super) struct SentenceSkeleton<'c> {
    pub(super) text: String,
    pub(super) literals: Vec<SentenceLiteral>,
    pub(super) context: &'c SentenceContext,
}

impl<'c> SentenceSkeleton<'c> {
    /// Returns `None` if a quote is unclosed or a literal is a placeholder.
    pub(super) fn of(sentence: &str, context: &'c SentenceContext) -> Option<Self> {
        // The brackets mark literals in the skeleton, so a sentence must not bring its own.
        if sentence.contains(['⟦', '⟧', '\n']) {
            return None;
        }
        let mut skeleton = Self { text: String::new(), literals: Vec::new(), context };
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
                '「' => '」',
                '『' => '』',
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
            let form = if c == '`' { LiteralForm::Code } else { LiteralForm::Quoted };
            skeleton.add_literal(&inside[..end], form)?;
            rest = &inside[end + close.len_utf8()..];
            // A word attached to the closing quote is part of what the literal means.
            if rest.starts_with(|c: char| (c.is_alphanumeric() && !is_ideograph(c)) || c == '/') {
                return None;
            }
            plain.clear();
        }
        skeleton.add_plain(&plain);
        let text = skeleton.text.trim().trim_end_matches(['.', '。', '!']);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        skeleton.text = in_one_form(&text);
        Some(skeleton)
    }

    /// Adds unquoted text, in which paths and names that only code spells so are literals too.
    fn add_plain(&mut self, plain: &str) {
        let mut word = String::new();
        for c in plain.chars() {
            if c.is_whitespace() || is_ideograph(c) || matches!(c, '，' | '、' | '。' | '：' | '；')
            {
                self.add_word(&std::mem::take(&mut word));
                self.text.push(c);
            } else {
                word.push(c);
            }
        }
        self.add_word(&word);
    }

    fn add_word(&mut self, word: &str) {
        // Punctuation after a literal belongs to the sentence.
        let bare = word.trim_end_matches(['.', ',', ';', ':']);
        let form = if STANDS_FOR.is_match(bare) {
            // It names no folder, so the sentence is not understood.
            self.text.push('?');
            return;
        } else if is_known_tool(bare) {
            LiteralForm::Tool
        } else if is_path(bare) || is_folder(bare) || is_code(bare) {
            LiteralForm::Bare
        } else {
            self.text.push_str(&word.to_lowercase());
            return;
        };
        self.push(bare, form);
        self.text.push_str(&word[bare.len()..]);
    }

    fn add_literal(&mut self, text: &str, form: LiteralForm) -> Option<()> {
        // An ellipsis or a placeholder means that the author has something less literal in mind.
        let is_vague = text.trim().is_empty()
            || text.len() > MAX_LITERAL
            || text.contains("...")
            || text.contains('…')
            || VAGUE.is_match(text)
            || STANDS_FOR.is_match(text);
        if is_vague {
            return None;
        }
        self.push(text, form);
        Some(())
    }

    fn push(&mut self, text: &str, form: LiteralForm) {
        self.text.push_str(&format!("⟦{}⟧", self.literals.len()));
        self.literals.push(SentenceLiteral { text: text.to_owned(), form });
    }

    /// Returns the literals of a captured list, in order.
    pub(super) fn captured(&self, found: &Captures<'_>, group: &str) -> Vec<&SentenceLiteral> {
        let list = found.name(group).map_or("", |list| list.as_str());
        let number = |found: Captures<'_>| found[1].parse::<usize>().ok();
        LITERAL
            .captures_iter(list)
            .filter_map(number)
            .filter_map(|at| self.literals.get(at))
            .collect()
    }

    /// Returns the group's single literal.
    pub(super) fn one(&self, found: &Captures<'_>, group: &str) -> Option<&SentenceLiteral> {
        match self.captured(found, group).as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Returns the single literal of the first of these groups that has one.
    pub(super) fn first(&self, found: &Captures<'_>, groups: &[&str]) -> Option<&SentenceLiteral> {
        groups.iter().find_map(|group| self.one(found, group))
    }

    /// Returns the group's literals if all of them are file paths.
    pub(super) fn paths(&self, found: &Captures<'_>, group: &str) -> Option<Vec<String>> {
        let literals = self.captured(found, group);
        let paths: Option<Vec<String>> =
            literals.iter().map(|one| is_path(&one.text).then(|| one.text.clone())).collect();
        paths.filter(|paths| !paths.is_empty())
    }

    /// Returns the group's single file path.
    pub(super) fn path(&self, found: &Captures<'_>, group: &str) -> Option<&str> {
        self.one(found, group).map(|one| one.text.as_str()).filter(|text| is_path(text))
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

/// Returns true for characters of scripts that are written without spaces.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

static LITERAL: LazyLock<Regex> = LazyLock::new(|| regex("⟦([0-9]+)⟧"));
/// Matches blanks to be filled in, such as `<name>`, rather than literal text.
static VAGUE: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"<[A-Za-z_][^>]*>|\{[A-Za-z_ ]*\}|\[[a-z_ ]+\]|\b(?:YYYY|XXX?|N\.N)\b")
});
/// Matches names that stand for others, such as `output_dir/report.md`.
static STANDS_FOR: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)(?:^|/)(?:(?:output|out|work|working|project|repo|skill|target|base)[_-]dir(?:ectory)?|path/to|your[_-][a-z_-]+|(?:project|repo)[_-]root)(?:/|$)",
    )
});
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)^(?:\./)?(?:[A-Za-z0-9_@.-]+/)*(?:Dockerfile|Makefile|Justfile|LICENSE|
        \.(?:gitignore|dockerignore|npmrc|editorconfig|env)|
        \.?[A-Za-z0-9_@-][A-Za-z0-9_@.-]*\.(?:md|mdx|txt|rst|adoc|json|jsonl|json5|yaml|yml|toml|ini|cfg|conf|
        env|example|lock|mod|sum|csv|tsv|xml|html|css|scss|js|mjs|cjs|jsx|ts|tsx|vue|svelte|py|pyi|ipynb|rs|go|rb|
        java|kt|kts|scala|c|h|cc|cpp|hpp|cs|csproj|sln|slnx|razor|xaml|swift|php|pl|lua|r|jl|ex|exs|erl|hs|clj|sh|
        bash|zsh|fish|ps1|bat|sql|graphql|proto|tf|tfvars|hcl|gradle|cmake|pdf|docx|xlsx|pptx|png|jpg|jpeg|gif|
        svg|webp|ico|mp3|mp4|wav|srt|zip|tar|gz|tgz|log|db|sqlite|parquet|tex|bib|diff|patch|pem|key|
        bpmn|flow|sarif|sysml|drawio|excalidraw|mmd))$",
    )
});
static FOLDER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:\./)?(?:[A-Za-z0-9_@.-]*[A-Za-z0-9_-]/)+$"));
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)^(?:--[a-z][a-z0-9-]+(?:=[A-Za-z0-9_./-]+)?
        |[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?:\(\))?
        |[A-Za-z_][A-Za-z0-9_]*(?:(?:::|\.)[A-Za-z_][A-Za-z0-9_]*)*\(\)
        |[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)+
        |[a-z]+[0-9]*(?:[A-Z][a-z0-9]+)+
        |@[a-z0-9-]+/[a-z0-9.-]+
        |https?://[^\s]+)$",
    )
});

/// Compiles a pattern of this module.
pub(super) fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant, and a test compiles it")
}

/// Returns true for a path of a file inside the folder of a case.
pub(super) fn is_path(text: &str) -> bool {
    // Products are named like files of scripts.
    PATH.is_match(text)
        && !text.split('/').any(|part| part == "..")
        && !matches!(
            text.to_lowercase().as_str(),
            "node.js" | "next.js" | "vue.js" | "three.js" | "d3.js" | "nuxt.js" | "express.js"
        )
}

/// Returns true for a path of a folder that says so by its `/`.
pub(super) fn is_folder(text: &str) -> bool {
    FOLDER.is_match(text) && !text.split('/').any(|part| part == "..")
}

/// Returns true for a word that only code spells so.
fn is_code(word: &str) -> bool {
    CODE.is_match(word)
}

/// Returns true for well-known agent tools whose name cannot mean anything else.
pub(super) fn is_known_tool(word: &str) -> bool {
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

/// Verbs with their forms where these are irregular: base, third person, past, gerund.
const IRREGULAR: [[&str; 4]; 14] = [
    ["write", "writes", "wrote", "writing"],
    ["run", "runs", "ran", "running"],
    ["read", "reads", "read", "reading"],
    ["have", "has", "had", "having"],
    ["show", "shows", "showed", "showing"],
    ["say", "says", "said", "saying"],
    ["begin", "begins", "began", "beginning"],
    ["put", "puts", "put", "putting"],
    ["set", "sets", "set", "setting"],
    ["give", "gives", "gave", "giving"],
    ["leave", "leaves", "left", "leaving"],
    ["modify", "modifies", "modified", "modifying"],
    ["trigger", "triggers", "triggered", "triggering"],
    ["make", "makes", "made", "making"],
];
/// Verbs with regular forms.
const REGULAR: [&str; 46] = [
    "mention",
    "include",
    "contain",
    "reference",
    "cite",
    "name",
    "list",
    "state",
    "report",
    "print",
    "output",
    "display",
    "return",
    "quote",
    "create",
    "generate",
    "produce",
    "save",
    "change",
    "edit",
    "update",
    "touch",
    "alter",
    "delete",
    "remove",
    "open",
    "load",
    "activate",
    "invoke",
    "call",
    "use",
    "execute",
    "ask",
    "start",
    "end",
    "select",
    "consult",
    "append",
    "add",
    "exceed",
    "view",
    "export",
    "respond",
    "appear",
    "exist",
    "overwrite",
];

/// Each form of a verb with its base and its third person.
static VERBS: LazyLock<HashMap<String, (String, String)>> = LazyLock::new(|| {
    let mut verbs = HashMap::new();
    let mut add = |forms: [String; 4]| {
        let known = (forms[0].clone(), forms[1].clone());
        for form in forms {
            verbs.insert(form, known.clone());
        }
    };
    for forms in IRREGULAR {
        add(forms.map(ToOwned::to_owned));
    }
    for base in REGULAR {
        let stem = base.strip_suffix('e');
        let third = if base.ends_with("ch") { format!("{base}es") } else { format!("{base}s") };
        let past = stem.map_or_else(|| format!("{base}ed"), |stem| format!("{stem}ed"));
        let gerund = stem.map_or_else(|| format!("{base}ing"), |stem| format!("{stem}ing"));
        add([base.to_owned(), third, past, gerund]);
    }
    verbs.insert("overwrote".to_owned(), ("overwrite".to_owned(), "overwrites".to_owned()));
    verbs
});

/// What the answer is called, and what may also be a file.
static SUBJECT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)^(?:the\s)?(?:(?:agent|assistant|model|skill)(?:'s|’s)\s)?(?:
        (?P<answer>(?:final\s|generated\s|chat\s)?(?:answer|response|reply|response\stext)|(?:final|chat)\smessage)
        |(?:final\s|generated\s)?(?P<output>output(?:\stext)?))\s(?P<rest>.+)$",
    )
});
/// The agent as a subject, which may be left out.
static AGENT: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(?:the |an )?(?:(?:ai )?agent|assistant|model|claude|codex|llm) (?P<rest>[a-z].+)$")
});

/// Returns a sentence with its first verb in the present: "the answer mentions …", "creates …", "does
/// not create …". A sentence with another beginning is returned as it is.
pub(super) fn in_one_form(text: &str) -> String {
    let (subject, rest) = match SUBJECT.captures(text) {
        Some(found) => {
            let subject =
                if found.name("answer").is_some() { "the answer " } else { "the output " };
            (subject, found["rest"].to_owned())
        }
        None => {
            ("", AGENT.captures(text).map_or_else(|| text.to_owned(), |it| it["rest"].to_owned()))
        }
    };
    let rest = predicate(&rest).unwrap_or(rest);
    format!("{subject}{rest}")
}

/// Returns what is said of the subject, with its verb in the present.
fn predicate(text: &str) -> Option<String> {
    let mut words = text.split(' ').peekable();
    let (mut is_negative, mut is_gerund) = (false, false);
    loop {
        match *words.peek()? {
            "also" | "explicitly" | "actually" | "successfully" | "ever" => {}
            "should" | "must" | "will" | "shall" | "does" | "did" | "do" => {
                words.next();
                if words.peek() == Some(&"not") {
                    // What two negations mean together is not certain.
                    if is_negative {
                        return None;
                    }
                    is_negative = true;
                } else {
                    continue;
                }
            }
            "needs" | "has" if text.starts_with("needs to ") || text.starts_with("has to ") => {
                words.next();
            }
            "doesn't" | "didn't" | "don't" | "mustn't" | "shouldn't" | "won't" | "never"
            | "cannot" => {
                if is_negative {
                    return None;
                }
                is_negative = true;
            }
            "avoids" | "without" | "avoid" => {
                // "Should not avoid mentioning it"
                if is_negative {
                    return None;
                }
                is_negative = true;
                is_gerund = true;
            }
            _ => break,
        }
        words.next();
    }
    let verb = words.next()?;
    let rest = words.collect::<Vec<_>>().join(" ");
    if verb == "be" && !is_gerund {
        let verb = if is_negative { "is not" } else { "is" };
        return Some(format!("{verb} {rest}"));
    }
    let known = VERBS.get(verb);
    if is_gerund && (known.is_none() || !verb.ends_with("ing")) {
        // "Avoids the word": what is avoided is no deed.
        return None;
    }
    let (base, third) = known?;
    let said = if is_negative { format!("does not {base}") } else { third.clone() };
    Some(if rest.is_empty() { said } else { format!("{said} {rest}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_that_says_the_same_has_one_form() {
        for (text, wanted) in [
            ("the agent should create ⟦0⟧", "creates ⟦0⟧"),
            ("created ⟦0⟧", "creates ⟦0⟧"),
            ("the response must explicitly mention ⟦0⟧", "the answer mentions ⟦0⟧"),
            ("agent did not modify ⟦0⟧", "does not modify ⟦0⟧"),
            ("output shouldn't include ⟦0⟧", "the output does not include ⟦0⟧"),
            ("avoids mentioning ⟦0⟧", "does not mention ⟦0⟧"),
            ("the answer should be valid json", "the answer is valid json"),
            ("avoids the word ⟦0⟧", "avoids the word ⟦0⟧"),
            ("⟦0⟧ was created", "⟦0⟧ was created"),
            ("the reply has exactly 2 lines", "the answer has exactly 2 lines"),
            ("read ⟦0⟧", "reads ⟦0⟧"),
            ("the final message mentions ⟦0⟧", "the answer mentions ⟦0⟧"),
            ("the message starts with ⟦0⟧", "the message starts with ⟦0⟧"),
            ("should not avoid mentioning ⟦0⟧", "should not avoid mentioning ⟦0⟧"),
        ] {
            assert_eq!(in_one_form(text), wanted, "{text}");
        }
    }
}
