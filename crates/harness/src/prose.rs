//! Reads prose: headings, lists, and the sentences of a text that can be quoted. Pure.
//!
//! Cases are made of these sentences, and the example agent answers with them.

use std::ops::Range;

/// Allowed length of a quote in characters.
const QUOTE_LENGTH: Range<usize> = 20..181;
/// Minimum number of words of a quote.
const MIN_QUOTE_WORDS: usize = 4;

/// Replaces all white space, including line breaks, with single spaces.
pub(crate) fn normalise_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if a quote is long enough to be distinctive.
pub(crate) fn is_telling(quote: &str) -> bool {
    quote.chars().filter(|c| c.is_alphanumeric()).count() >= 8
}

/// Returns true if a file of this name holds prose and not code.
pub(crate) fn is_prose(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    match name.rsplit_once('.') {
        Some((_, end)) => matches!(end, "md" | "markdown" | "txt" | "rst" | "adoc" | "org"),
        None => name.starts_with("readme"),
    }
}

/// Returns true for a line that opens or closes a block of code.
pub(crate) fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// Returns the plain text of a Markdown heading.
pub(crate) fn heading_of(line: &str, prose: bool) -> Option<String> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line[level..].strip_prefix(' ').filter(|_| prose && (1..=6).contains(&level))?;
    let plain: String = title.chars().filter(|c| !matches!(c, '`' | '*' | '“' | '”')).collect();
    let plain = selftest_text::one_line(&plain, 80);
    (!plain.is_empty()).then_some(plain)
}

/// Returns the index after the last line of the section whose heading is at `start`: the next
/// heading of the same or a higher level ends it.
pub(crate) fn section_end(lines: &[&str], start: usize, prose: bool) -> usize {
    let level = |line: &str| line.bytes().take_while(|byte| *byte == b'#').count();
    let own = lines.get(start).map_or(0, |line| level(line));
    let mut fenced = false;
    for (at, line) in lines.iter().enumerate().skip(start + 1) {
        fenced ^= is_fence(line);
        if !fenced && heading_of(line, prose).is_some() && level(line) <= own {
            return at;
        }
    }
    lines.len()
}

/// Returns the quotable parts of an excerpt: whole sentences of paragraphs and lists, or whole
/// lines.
pub(crate) fn quotes(text: &str, prose: bool) -> Vec<String> {
    let (mut paragraphs, mut fenced) = (vec![String::new()], false);
    for line in text.lines() {
        let trimmed = line.trim();
        let is_other = trimmed.is_empty()
            || trimmed.starts_with(['|', '<', '!'])
            || heading_of(trimmed, prose).is_some();
        if is_fence(trimmed) {
            fenced = !fenced;
        }
        if fenced || is_other || is_fence(trimmed) {
            paragraphs.push(String::new());
            continue;
        }
        let item = list_item(trimmed);
        // An item of a list is a statement of its own. In code and data, so is each line.
        if item.is_some() || !prose {
            paragraphs.push(String::new());
        }
        if let Some(paragraph) = paragraphs.last_mut() {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(&normalise_spaces(item.unwrap_or(trimmed)));
        }
    }
    let mut quotes: Vec<String> = Vec::new();
    for paragraph in &paragraphs {
        let pieces = if prose { sentences(paragraph) } else { vec![paragraph.as_str()] };
        for piece in pieces {
            let says = is_telling(piece) && is_quotable(piece, prose);
            if says && !quotes.iter().any(|quote| quote == piece) {
                quotes.push(piece.to_owned());
            }
        }
    }
    quotes
}

fn list_item(line: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(*mark));
    bullet.or_else(|| {
        let (number, rest) = line.split_once(". ")?;
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
    })
}

fn sentences(paragraph: &str) -> Vec<&str> {
    let (mut sentences, mut start) = (Vec::new(), 0);
    for (at, c) in paragraph.char_indices() {
        let wide = matches!(c, '。' | '！' | '？');
        let ends = wide
            || matches!(c, '.' | '!' | '?') && {
                let mut rest = paragraph[at + c.len_utf8()..].chars();
                match (rest.next(), rest.next()) {
                    (None, _) => true,
                    // A full stop before a lower-case letter usually ends an abbreviation.
                    (Some(' '), Some(next)) => !next.is_lowercase(),
                    _ => false,
                }
            };
        if ends {
            let end = at + c.len_utf8();
            sentences.push(paragraph[start..end].trim());
            start = end;
        }
    }
    sentences
}

fn is_quotable(text: &str, prose: bool) -> bool {
    let words = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
    // Languages without spaces have no such words.
    let wide = text.chars().filter(|c| *c >= '\u{3040}').count() >= 10;
    let fewest = if prose { MIN_QUOTE_WORDS } else { 2 };
    let telling = wide || words.count() >= fewest;
    let plain = !text.contains("](") && !text.contains("://") && !text.contains('“');
    // Unbalanced quotes or brackets mean that the sentence was cut.
    let whole = text.matches('`').count().is_multiple_of(2)
        && text.matches('"').count().is_multiple_of(2)
        && text.matches('(').count() == text.matches(')').count();
    // An open-ended sentence cannot be right or wrong.
    let whole = whole && !text.contains("...") && !text.contains('…');
    let starts = text.starts_with(|c: char| c.is_alphanumeric() || c == '`');
    telling && plain && whole && starts && QUOTE_LENGTH.contains(&text.chars().count())
}
