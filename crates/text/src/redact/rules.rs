//! The table of rules: what the tokens of providers look like, and under which names random values
//! stand. One pass over a text looks for runs of characters that might be a key; only around one are the
//! keywords of all rules looked for, and only where one stands is anything else looked at.
//!
//! `published_rules.tsv` restates the facts of gitleaks' rules (MIT, see `LICENSE-gitleaks`) and is
//! made by `scripts/redaction_rules.py`; `own_rules.tsv` is ours.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};
use regex::Regex;

use super::random::{entropy, is_random};

const PUBLISHED: &str = include_str!("published_rules.tsv");
const OWN: &str = include_str!("own_rules.tsv");

/// Bytes of the shortest run of letters and digits in a key.
const MIN_RUN: usize = 14;
/// Bytes of a run that is no word even where it has no digit.
const LONG_RUN: usize = 30;
/// Bytes before and behind a run in which a keyword is looked for.
const BEFORE: usize = 80;
const BEHIND: usize = 24;
/// Bytes around a keyword that are looked at for what stands near it.
const NEAR: usize = 200;
/// Most bytes of one secret.
const MAX_SECRET: usize = 4096;
/// Least entropy of a value whose rule states none: a word is no key.
const MIN_ENTROPY: f64 = 2.5;

/// Where a secret stands, seen from the keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has the keyword so many bytes behind its beginning.
    Token { back: usize },
    /// It is the value of a name that has the keyword in it.
    Named,
    /// It stands somewhere around the keyword.
    Near,
    /// It is any random-looking value of such a name.
    Generic,
}

#[derive(Debug)]
struct Rule {
    pattern: &'static str,
    entropy: f64,
    /// Compiled when a keyword is met for the first time: most never are.
    compiled: OnceLock<Regex>,
}

impl Rule {
    fn regex(&self, anchored: bool) -> &Regex {
        self.compiled.get_or_init(|| {
            let pattern = self.pattern;
            let pattern = if anchored { format!(r"\A(?:{pattern})") } else { pattern.to_owned() };
            Regex::new(&pattern).expect("the table is a constant, and a test compiles all of it")
        })
    }
}

/// One keyword of one rule.
#[derive(Debug, Clone, Copy)]
struct Use {
    rule: usize,
    kind: Kind,
    /// Whether upper and lower case count.
    exact: bool,
}

struct Table {
    rules: Vec<Rule>,
    keywords: Vec<&'static str>,
    /// By keyword.
    uses: Vec<Vec<Use>>,
    automaton: AhoCorasick,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut rules = Vec::new();
    // In lower case: one keyword may be that of several rules, in any case.
    let mut by_keyword: BTreeMap<String, (&'static str, Vec<Use>)> = BTreeMap::new();
    for line in PUBLISHED.lines().chain(OWN.lines()).filter(|line| !line.starts_with('#')) {
        let [_, kind, keywords, pattern, entropy] = columns(line);
        let exact = kind == "token" && !pattern.starts_with("(?i)");
        for keyword in keywords.split(',') {
            let (keyword, back) = keyword.split_once('@').unwrap_or((keyword, "0"));
            let kind = match kind {
                "token" => Kind::Token { back: back.parse().expect("a number of bytes") },
                "named" => Kind::Named,
                "near" => Kind::Near,
                _ => Kind::Generic,
            };
            let (_, uses) = by_keyword
                .entry(if exact { keyword.to_owned() } else { keyword.to_ascii_lowercase() })
                .or_insert((keyword, Vec::new()));
            uses.push(Use { rule: rules.len(), kind, exact });
        }
        let entropy = entropy.parse().expect("a number of bits");
        rules.push(Rule { pattern, entropy, compiled: OnceLock::new() });
    }
    let (keywords, uses): (Vec<&'static str>, Vec<Vec<Use>>) = by_keyword.into_values().unzip();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(&keywords)
        .expect("the keywords are constants, and a test builds the automaton");
    Table { rules, keywords, uses, automaton }
});

fn columns(line: &'static str) -> [&'static str; 5] {
    let columns: Vec<&str> = line.split('\t').collect();
    columns.try_into().expect("the table is a constant, and a test reads all of it")
}

/// The secrets of a text by the table, in order and apart from each other.
pub(super) fn secrets(text: &str) -> Vec<Range<usize>> {
    let windows = windows(text);
    if windows.is_empty() {
        return Vec::new();
    }
    let table = &*TABLE;
    let mut found: Vec<Range<usize>> = Vec::new();
    let hits = windows
        .into_iter()
        .flat_map(|window| table.automaton.find_overlapping_iter(Input::new(text).span(window)));
    for hit in hits {
        let id = hit.pattern().as_usize();
        let here = hit.start()..hit.end();
        let is_exact = text.as_bytes()[here.clone()] == *table.keywords[id].as_bytes();
        for one in &table.uses[id] {
            if !one.exact || is_exact {
                let rule = &table.rules[one.rule];
                match one.kind {
                    Kind::Token { back } => found.extend(token(text, &here, back, rule)),
                    Kind::Named => found.extend(named(text, &here, rule)),
                    Kind::Near => near(text, &here, rule, &mut found),
                    Kind::Generic => found.extend(generic(text, &here, rule)),
                }
            }
        }
    }
    merged(found)
}

/// The parts of a text in which a keyword may stand: around runs of letters and digits that are long
/// enough for a key.
fn windows(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut windows = Vec::new();
    let mut start = 0;
    // Only every so many bytes is looked at, unless it may belong to a run: then those before it.
    while let Some(part) = bytes.get(start..start + MIN_RUN) {
        if let Some(other) = part.iter().rposition(|byte| !is_of_run(*byte)) {
            start += other + 1;
            continue;
        }
        let run = bytes[start..].iter().take_while(|byte| is_of_run(**byte)).count();
        let end = start + run;
        if run >= LONG_RUN || bytes[start..end].iter().any(u8::is_ascii_digit) {
            // In megabytes of an image nothing has a name.
            let looked_at = end.min(start + MAX_SECRET);
            windows.push(start.saturating_sub(BEFORE)..(looked_at + BEHIND).min(bytes.len()));
        }
        start = end + 1;
    }
    merged(windows)
}

/// Ranges in order, of which none touches another.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// A token that has the keyword so many bytes behind its beginning.
fn token(text: &str, keyword: &Range<usize>, back: usize, rule: &Rule) -> Option<Range<usize>> {
    let start = keyword.start.checked_sub(back)?;
    if !text.is_char_boundary(start) || is_word_before(text, start) {
        return None;
    }
    let part = &text[start..text.floor_char_boundary(start + MAX_SECRET)];
    let end = start + rule.regex(true).find(part)?.end();
    let secret = &text[start..end];
    if entropy(secret) < rule.entropy {
        return None;
    }
    // What is longer than any token should be goes whole, and no part of it stays.
    let more = text[end..].bytes().take_while(|byte| is_of_token(*byte)).count();
    Some(start..end + more)
}

/// The value of a name in which the keyword stands.
fn named(text: &str, keyword: &Range<usize>, rule: &Rule) -> Option<Range<usize>> {
    if is_inside_word(text, keyword) {
        return None;
    }
    let start = value_behind(text, keyword.end, &ASSIGNED)?;
    let part = &text[start..text.floor_char_boundary(start + MAX_SECRET)];
    let end = start + rule.regex(true).find(part)?.end();
    let secret = &text[start..end];
    let goes_on = text[end..].bytes().next().is_some_and(is_of_token);
    let is_secret = !goes_on
        && secret.bytes().any(|byte| byte.is_ascii_digit())
        && entropy(secret) >= rule.entropy.max(MIN_ENTROPY);
    is_secret.then_some(start..end)
}

/// Any random-looking value of a name in which the keyword stands.
fn generic(text: &str, keyword: &Range<usize>, rule: &Rule) -> Option<Range<usize>> {
    let start = value_behind(text, keyword.end, &ASSIGNED_TO_ANY)?;
    let length =
        text[start..].bytes().take(MAX_SECRET).take_while(|byte| is_of_value(*byte)).count();
    let is_bare = matches!(rule.entropy, bits if bits > 3.5);
    is_random(&text[start..start + length], rule.entropy, is_bare).then_some(start..start + length)
}

fn near(text: &str, keyword: &Range<usize>, rule: &Rule, found: &mut Vec<Range<usize>>) {
    let from = text.floor_char_boundary(keyword.start.saturating_sub(NEAR));
    let to = text.floor_char_boundary(keyword.end + NEAR);
    for one in rule.regex(false).find_iter(&text[from..to]) {
        let range = from + one.start()..from + one.end();
        let before = text[..range.start].bytes().next_back();
        let after = text[range.end..].bytes().next();
        let joined =
            |byte: Option<u8>| byte.is_some_and(|byte| is_of_token(byte) || b"/+=".contains(&byte));
        let secret = one.as_str();
        let mixed = |is: fn(&u8) -> bool| secret.as_bytes().iter().any(is);
        // A key in an assignment stands behind an equals sign.
        let is_apart = !joined(before.filter(|byte| *byte != b'=')) && !joined(after);
        if is_apart
            && mixed(u8::is_ascii_digit)
            && mixed(u8::is_ascii_uppercase)
            && mixed(u8::is_ascii_lowercase)
            && entropy(secret) >= rule.entropy
        {
            found.push(range);
        }
    }
}

/// Where the value begins of a name that ends somewhere behind `from`.
fn value_behind(text: &str, from: usize, assigned: &Regex) -> Option<usize> {
    // Far enough for the rest of a name, quotes of JSON inside of JSON, and what assigns.
    let part = &text[from..text.floor_char_boundary(from + 80)];
    Some(from + assigned.find(part)?.end())
}

/// The rest of a name, what assigns, and the opening quote, as gitleaks has them.
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"\A[ \tA-Za-z0-9_.-]{0,20}[\s'"\\)\]]{0,6}(?:=>|:{1,3}=|={1,3}|\|\||:|\?=|>|,)[\s'"`=\\(]{0,8}"#,
    )
});

/// The same for any name: no comma, which stands between words as well.
static ASSIGNED_TO_ANY: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"\A[ A-Za-z0-9_.-]{0,20}[ '"\\)\]]{0,6}(?:=>|:{1,3}=|={1,3}|:|\?=|>|\()[ '"`=\\(@]{0,8}(?:(?i:bearer|basic|token|bot) +)?"#,
    )
});

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are constants, and a test uses them")
}

/// Whether a word goes on across this place, but for `\n` in JSON.
fn is_word_before(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[..at];
    match before {
        [.., b'\\', b'n' | b'r' | b't'] | [] => false,
        [.., byte] => byte.is_ascii_alphanumeric() || *byte == b'_',
    }
}

/// Whether the keyword is but the end of a word: `lob` of `blob`, not of `my_lob` or `myLob`.
fn is_inside_word(text: &str, keyword: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let Some(before) = bytes[..keyword.start].last().filter(|byte| byte.is_ascii_alphabetic())
    else {
        return false;
    };
    !(before.is_ascii_lowercase() && bytes[keyword.start].is_ascii_uppercase())
        && is_word_before(text, keyword.start)
}

/// The characters of a run.
const RUN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "there are 256 bytes")]
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'+' | b'=' | b'%');
        byte += 1;
    }
    table
};

const fn is_of_run(byte: u8) -> bool {
    RUN[byte as usize]
}

const fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

const fn is_of_value(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~' | b'%' | b'!' | b'@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles_and_can_be_met() {
        let table = &*TABLE;
        assert!(table.rules.len() > 250, "{}", table.rules.len());
        for (id, uses) in table.uses.iter().enumerate() {
            assert!(table.keywords[id].len() >= 2 && !uses.is_empty());
            for one in uses {
                let rule = &table.rules[one.rule];
                if one.kind != Kind::Generic {
                    let _ = rule.regex(one.kind != Kind::Near);
                }
            }
        }
    }

    #[test]
    fn ranges_are_merged() {
        assert_eq!(merged(vec![5..9, 0..3, 2..4, 9..11]), [0..4, 5..11]);
    }

    #[test]
    fn boundaries() {
        let blob = "blob: x";
        assert!(is_inside_word(blob, &(1..4)));
        assert!(!is_inside_word("my_lob", &(3..6)));
        assert!(!is_inside_word("myLob", &(2..5)));
        assert!(is_word_before("xghp_", 1));
        assert!(!is_word_before(r"\nghp_", 2));
    }
}
