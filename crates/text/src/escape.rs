//! Escaping of untrusted text for Markdown, XML and terminals, so that output from models, systems
//! under test and files is always displayed as plain text; and the classes of characters that hide
//! or reorder text, or that XML 1.0 allows.

use std::fmt::{self, Write as _};

/// Separates characters that a renderer would turn into a link.
const WORD_JOINER: char = '\u{2060}';

/// Text that is safe to embed in a Markdown document. Only this module constructs it, so a view
/// made only of `Markdown` values cannot leak unescaped text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markdown(String);

impl fmt::Display for Markdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Markdown {
    /// Returns the Markdown source.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Escapes a text of at most `limit` bytes onto one line, for a table cell, a list item or a
/// heading. It renders literally in all of these: no markup, HTML, link or image.
///
/// Addresses are broken with an invisible word joiner, because some renderers link bare addresses
/// even if their punctuation is escaped.
pub fn inline(text: &str, limit: usize) -> Markdown {
    // Clipped first, so that no escape sequence is cut in half.
    let line = visible(&crate::one_line(text, limit));
    let characters: Vec<char> = line.chars().collect();
    let marker = block_marker(&characters);
    let mut escaped = String::with_capacity(line.len() + 16);
    for (position, &c) in characters.iter().enumerate() {
        let before = position.checked_sub(1).and_then(|index| characters.get(index)).copied();
        let after = characters.get(position + 1).copied();
        match c {
            // Entities instead of backslashes: a renderer that passes HTML through reads them as
            // text too.
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Table parsers disagree on a backslash before a bar.
            '|' => escaped.push_str("&#124;"),
            '\\' | '`' | '*' | '[' | ']' | '~' | '$' => escaped.extend(['\\', c]),
            // Markdown ignores underscores inside words.
            '_' if !(is_word(before) && is_word(after)) => escaped.push_str("\\_"),
            _ if marker == Some(position) => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
        let starts_address = c == '@'
            || (c == ':' && after == Some('/'))
            || (c == '.' && follows_www(&characters[..position]));
        if starts_address {
            escaped.push(WORD_JOINER);
        }
    }
    Markdown(escaped)
}

/// Like [`inline`], for a comment on a pull request: `#12` mentions no issue, which would then show
/// a reference back.
pub fn inline_in_comment(text: &str, limit: usize) -> Markdown {
    let escaped = inline(text, limit).0;
    let mut safe = String::with_capacity(escaped.len());
    let mut before = ' ';
    for c in escaped.chars() {
        safe.push(c);
        // Not in an entity.
        if c == '#' && before != '&' {
            safe.push(WORD_JOINER);
        }
        before = c;
    }
    Markdown(safe)
}

/// Formats a text of at most `limit` bytes as a fenced block. The fence is longer than any run of
/// backticks inside.
pub fn fenced(text: &str, limit: usize) -> Markdown {
    fenced_as("text", text, limit)
}

/// Like [`fenced`], for a renderer that highlights this language.
pub fn fenced_as(language: &'static str, text: &str, limit: usize) -> Markdown {
    let body = block(text, limit);
    // CommonMark: a fence ends only at one that is at least as long.
    let fence = "`".repeat(longest_run(&body, '`').max(2) + 1);
    Markdown(format!("{fence}{language}\n{}\n{fence}", body.trim_end_matches('\n')))
}

/// Percent-encodes a path or file name for use as a link target, except for letters, digits and
/// `/._-`.
pub fn link_target(path: &str) -> Markdown {
    let mut target = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            target.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(target, "%{byte:02X}");
        }
    }
    Markdown(target)
}

/// Returns a text of at most `limit` bytes before escaping, on one line and without terminal
/// control sequences.
pub fn terminal(text: &str, limit: usize) -> String {
    visible(&crate::one_line(text, limit))
}

/// Returns a text of at most `limit` bytes before escaping, with its line breaks but without
/// characters that hide or reorder text. For callers that escape markup themselves.
pub fn block(text: &str, limit: usize) -> String {
    visible(&crate::clip(&text.replace("\r\n", "\n").replace('\r', "\n"), limit))
}

/// Replaces hidden characters ([`is_hidden`]) with their code point. Line feeds and tabs are kept,
/// and XML 1.0 allows each character of the result.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            // Writing to a String cannot fail.
            let _ = write!(shown, "⟨U+{:04X}⟩", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(char::is_alphanumeric)
}

fn follows_www(before: &[char]) -> bool {
    before.len() >= 3 && before[before.len() - 3..].iter().all(|c| c.eq_ignore_ascii_case(&'w'))
}

/// Returns the position of the character that would start a heading, list or rule at the start of a
/// block.
fn block_marker(characters: &[char]) -> Option<usize> {
    let digits = characters.iter().take_while(|c| c.is_ascii_digit()).count();
    match characters.get(digits)? {
        // `=` would turn the line before it into a heading.
        '#' | '-' | '+' | '=' if digits == 0 => Some(0),
        '.' | ')' if digits > 0 && characters.get(digits + 1).is_none_or(|c| *c == ' ') => {
            Some(digits)
        }
        _ => None,
    }
}

fn longest_run(text: &str, wanted: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Returns true for characters that a reader cannot see, that reorder what is displayed, or that
/// control a terminal: controls, bidirectional and tag characters, blanks without width, and code
/// points that Unicode never assigns. Line feeds, tabs, and the two joiners that emoji and some
/// scripts need are allowed.
pub fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || is_noncharacter(c)
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'
            | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Returns true for characters that a comparison of strings by the rules of a language may skip:
/// hidden ones, joiners and selectors of variants.
pub(crate) fn is_ignorable(c: char) -> bool {
    (is_hidden(c) && !is_line_end(c))
        || matches!(c, '\u{34f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns true for the last two code points of each plane and for U+FDD0 to U+FDEF.
fn is_noncharacter(c: char) -> bool {
    matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff) || matches!(c, '\u{fdd0}'..='\u{fdef}')
}

/// Returns true for characters that a document of XML 1.0 may contain, in whatever form:
/// <https://www.w3.org/TR/xml/#charsets>.
pub fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'
        | '\u{10000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;

    /// Returns the events of a `CommonMark` parser with GitHub's extensions.
    fn events(document: &str) -> Vec<Event<'_>> {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_HEADING_ATTRIBUTES
            | Options::ENABLE_MATH;
        Parser::new_ext(document, options).collect()
    }

    fn count(events: &[Event<'_>], wanted: impl Fn(&Tag<'_>) -> bool) -> usize {
        events.iter().filter(|event| matches!(event, Event::Start(tag) if wanted(tag))).count()
    }

    fn plain_text(events: &[Event<'_>]) -> String {
        events
            .iter()
            .filter_map(|event| match event {
                Event::Text(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect()
    }

    /// Pieces that break naive escaping, mixed with arbitrary characters.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            prop::sample::select(vec![
                "|",
                "\\|",
                "\\",
                "`",
                "```",
                "~~~",
                "<script>",
                "</td>",
                "<!--",
                "-->",
                "&lt;",
                "![x](http://e.x/i.png)",
                "[a](javascript:b)",
                "[a]: http://e.x",
                "[^1]",
                "# ",
                "\n# forged",
                "\n\n## forged\n",
                "\n---\n",
                "\n| a | b |\n|---|---|\n",
                "- [x] ",
                "1. ",
                "> ",
                "\r",
                "\t",
                "*",
                "**",
                "_",
                "__",
                "$x$",
                "$$",
                "http://e.x",
                "<a@b.c>",
                "<http://e.x>",
                "www.e.x",
                "a@b.co",
                "\u{202e}",
                "\u{1b}[31m",
                "\u{0}",
                "\u{2028}",
                "=",
                "===",
                "+ ",
                "    code",
                "~~x~~",
                ":::",
                "{#id}",
                "</pre>",
                "```\n# x\n",
            ])
            .prop_map(str::to_owned),
            any::<char>().prop_map(String::from),
            "[ -~]{0,12}",
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn ordinary_words_stay_readable() {
        let same = "ambiguous_request COMPLETE 0.94 (below threshold 0.74), at 12:30 - 3 lines";
        assert_eq!(inline(same, 200).as_str(), same);
        assert_eq!(
            inline("a|b <i> `c` http://x", 80).as_str(),
            "a&#124;b &lt;i&gt; \\`c\\` http:\u{2060}//x"
        );
        assert_eq!(inline("# no heading", 80).as_str(), "\\# no heading");
        assert_eq!(inline("1. no list", 80).as_str(), "1\\. no list");
        assert_eq!(inline("a\u{202e}b\u{1b}c", 80).as_str(), "a⟨U+202E⟩b c");
    }

    #[test]
    fn addresses_mentions_and_markers_are_text() {
        for (text, safe) in [
            ("a@b.c", "a@\u{2060}b.c"),
            ("www.e.x", "www.\u{2060}e.x"),
            ("seeWwW.e.x", "seeWwW.\u{2060}e.x"),
            ("ww.e.x w.w", "ww.e.x w.w"),
            ("a: b:c", "a: b:c"),
            ("12# x", "12# x"),
            ("12- x", "12- x"),
            ("1.5 x", "1.5 x"),
            (". x", ". x"),
            ("12)", "12\\)"),
            ("-1", "\\-1"),
        ] {
            assert_eq!(inline(text, 80).as_str(), safe);
        }
        let comment = inline_in_comment("see #12 | x", 80);
        assert_eq!(comment.as_str(), "see #\u{2060}12 &#124; x");
    }

    #[test]
    fn a_fence_outgrows_what_it_holds() {
        assert_eq!(fenced("a\n````\nb", 80).as_str(), "`````text\na\n````\nb\n`````");
        assert_eq!(fenced("", 80).as_str(), "```text\n\n```");
    }

    #[test]
    fn link_targets_are_inert() {
        assert_eq!(link_target("../a b/(c)|é.json").as_str(), "../a%20b/%28c%29%7C%C3%A9.json");
    }

    proptest! {
        #[test]
        fn inline_text_is_only_text(text in hostile()) {
            let safe = inline(&text, 400);
            let document = format!(
                "# Top {safe}\n\n| a | b |\n|---|---|\n| {safe} | {safe} |\n| x | y |\n\n- {safe}\n- Got: {safe}\n\nend {safe}\n"
            );
            let events = events(&document);
            let only_known = events.iter().all(|event| matches!(event,
                Event::Text(_) | Event::Start(Tag::Heading { .. } | Tag::Paragraph | Tag::Table(_)
                    | Tag::TableHead | Tag::TableRow | Tag::TableCell | Tag::List(None) | Tag::Item)
                | Event::End(_)));
            prop_assert!(only_known, "{document}\n{events:?}");
            prop_assert_eq!(count(&events, |tag| matches!(tag, Tag::Heading { .. })), 1);
            prop_assert_eq!(count(&events, |tag| matches!(tag, Tag::TableRow)), 2);
            prop_assert_eq!(count(&events, |tag| matches!(tag, Tag::TableCell)), 6);
            prop_assert_eq!(count(&events, |tag| matches!(tag, Tag::Item)), 2);
            prop_assert_eq!(count(&events, |tag| matches!(tag, Tag::List(_))), 1);
            prop_assert!(!safe.as_str().contains("://"));
        }

        #[test]
        fn inline_text_renders_as_itself(text in hostile()) {
            let document = format!("x {} y", inline(&text, 400));
            let rendered = plain_text(&events(&document)).replace(WORD_JOINER, "");
            prop_assert_eq!(rendered, format!("x {} y", terminal(&text, 400)));
        }

        #[test]
        fn a_fenced_block_is_one_code_block(text in hostile()) {
            let document = format!("{}\n\nend\n", fenced(&text, 400));
            let events = events(&document);
            prop_assert_eq!(count(&events, |tag| matches!(tag, Tag::CodeBlock(_))), 1);
            prop_assert_eq!(count(&events, |_| true), 2, "{}", document);
            prop_assert!(plain_text(&events).ends_with("end"));
        }

        #[test]
        fn a_comment_mentions_nothing(text in hostile(), number in 0..2_000_u32) {
            let safe = inline_in_comment(&format!("{text}#{number} {text}"), 4_000);
            let shown = plain_text(&events(safe.as_str()));
            let mut after = shown.split('#').skip(1);
            prop_assert!(after.all(|rest| rest.starts_with(WORD_JOINER)), "{}", safe);
        }

        #[test]
        fn xml_allows_what_is_visible(text in any::<String>()) {
            prop_assert!(visible(&text).chars().all(crate::escape::is_xml));
        }

        #[test]
        fn terminals_get_nothing_to_obey(text in any::<String>()) {
            prop_assert!(!terminal(&text, 200).chars().any(|c| c.is_control() || is_hidden(c)));
        }
    }

    #[test]
    fn xml_allows_every_character_that_is_shown() {
        for c in '\0'..=char::MAX {
            assert!(is_hidden(c) || is_xml(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn scripts_and_emoji_are_seen() {
        for c in "aé\n\tЖ漢字👩\u{200d}👩\u{200c}\u{fe0f}\u{e000}\u{fffd}".chars() {
            assert!(!is_hidden(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn what_cannot_be_seen_is_hidden() {
        let hidden = "\0\u{7}\r\u{1b}\u{7f}\u{85}\u{ad}\u{200b}\u{2028}\u{202e}\u{2066}\u{feff}\
                      \u{fdd0}\u{fdef}\u{fffe}\u{ffff}\u{1fffe}\u{10ffff}\u{e0041}";
        for c in hidden.chars() {
            assert!(is_hidden(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn xml_lacks_most_controls() {
        for c in "\0\u{8}\u{b}\u{c}\u{1f}\u{fffe}\u{ffff}".chars() {
            assert!(!is_xml(c), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn a_comparison_skips_what_has_no_weight_and_no_end_of_a_line() {
        for c in "\u{7}\u{ad}\u{200b}\u{34f}\u{17b4}\u{180b}\u{200d}\u{fe0f}".chars() {
            assert!(is_ignorable(c), "U+{:04X}", u32::from(c));
        }
        for c in "a :\n\t\r\u{b}\u{c}\u{85}\u{2028}\u{2029}".chars() {
            assert!(!is_ignorable(c), "U+{:04X}", u32::from(c));
        }
    }
}
