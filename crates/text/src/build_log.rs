//! The log of a build: GitHub Actions, Azure Pipelines and `TeamCity` obey commands that they find in
//! what a step prints. Text that passes through here is only text to them, however it was wrapped
//! and in however many pieces it is written.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Write as _;

use serde::de::IgnoredAny;

use crate::escape::{is_hidden, is_ignorable};

/// Starts of commands that are obeyed anywhere in a line. The next character is `[`.
const COMMANDS: [&str; 3] = ["##", "##vso", "##teamcity"];
/// Number of characters of the longest of [`COMMANDS`].
const MAX_COMMAND: usize = 10;

/// The start of the current line, as far as it decides whether `::` is a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LineStart {
    /// Nothing but white space so far.
    #[default]
    Blank,
    /// White space and a colon.
    Colon,
    /// Text, behind which `::` means nothing.
    Text,
}

/// Notation in which a character of a command can be written differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    Plain,
    /// Brackets in strings have an escape of the same meaning.
    Json,
}

/// Takes the commands out of one stream: puts a space into what would be obeyed, and shows control
/// characters, except those of colours, as their code point. Remembers the line that is not ended.
#[derive(Debug, Default)]
pub struct CommandFilter {
    line: LineStart,
    /// The last characters of the line in lower case, without those that a comparison may skip.
    recent: VecDeque<char>,
    /// True after a carriage return, which ends a line as well.
    is_after_return: bool,
}

impl CommandFilter {
    /// Creates a filter for a stream to which nothing was written.
    pub const fn new() -> Self {
        Self { line: LineStart::Blank, recent: VecDeque::new(), is_after_return: false }
    }

    /// Returns the text as it can be written. JSON documents keep their meaning.
    pub fn apply(&mut self, text: &str) -> String {
        // In JSON an escape keeps the value as it is, where a space would change it.
        let notation = if is_json(text) { Notation::Json } else { Notation::Plain };
        let mut safe = String::with_capacity(text.len() + 8);
        let mut rest = text.char_indices();
        while let Some((at, c)) = rest.next() {
            let is_after_return = std::mem::take(&mut self.is_after_return);
            match c {
                // CRLF is one line end, also if it is split between two writes.
                '\n' if is_after_return => {}
                '\r' | '\n' => {
                    self.is_after_return = c == '\r';
                    self.start_line();
                    safe.push('\n');
                }
                '\u{1b}' => match colour_sequence(&text[at..]) {
                    Some(sequence) => {
                        // Its bracket would complete a command for a reader that skips escapes.
                        if self.is_command_started() {
                            safe.push(' ');
                        }
                        safe.push_str(sequence);
                        // Sequences are ASCII; the escape itself was taken already.
                        rest.nth(sequence.len() - 2);
                    }
                    None => self.show(c, &mut safe),
                },
                c if is_hidden(c) => self.show(c, &mut safe),
                c => self.push(c, notation, &mut safe),
            }
        }
        safe
    }

    fn start_line(&mut self) {
        self.line = LineStart::Blank;
        self.recent.clear();
    }

    /// Writes the code point of a character.
    fn show(&mut self, c: char, safe: &mut String) {
        // Writing to a String cannot fail.
        let _ = write!(safe, "⟨U+{:04X}⟩", u32::from(c));
        self.line = LineStart::Text;
        self.recent.clear();
    }

    fn push(&mut self, c: char, notation: Notation, safe: &mut String) {
        if is_ignorable(c) {
            safe.push(c);
            return;
        }
        if c == '[' && self.is_command_started() {
            safe.push_str(if notation == Notation::Json { "\\u005b" } else { " [" });
        } else if c == ':' && self.line == LineStart::Colon {
            safe.push_str(" :");
        } else {
            safe.push(c);
        }
        self.line = match (self.line, c) {
            (LineStart::Blank, c) if c.is_whitespace() => LineStart::Blank,
            (LineStart::Blank, ':') => LineStart::Colon,
            _ => LineStart::Text,
        };
        if self.recent.len() == MAX_COMMAND {
            self.recent.pop_front();
        }
        self.recent.push_back(c.to_ascii_lowercase());
    }

    /// Returns true if a bracket would be a command now.
    fn is_command_started(&self) -> bool {
        COMMANDS.iter().any(|command| {
            let mut recent = self.recent.iter().rev();
            command.chars().rev().all(|c| recent.next() == Some(&c))
        })
    }
}

/// Returns true for JSON, a document or one on each line. Text without a command is not looked at.
fn is_json(text: &str) -> bool {
    text.contains('#')
        && text.starts_with(['{', '['])
        && serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>().all(|one| one.is_ok())
}

/// Returns the sequence at the start of a text if it sets colours.
fn colour_sequence(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    parameters[end..].starts_with('m').then(|| &text[..=(2 + end)])
}

/// Escapes a text as the message of a workflow command.
pub fn message(text: &str) -> String {
    // `%` first, since it introduces the other escapes.
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    CommandFilter { line: LineStart::Text, ..CommandFilter::new() }.apply(&text)
}

/// Escapes a text as a property of a workflow command.
pub fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

/// Returns the text as [`CommandFilter::apply`] does, as a stream of its own.
pub fn without_commands(text: &str) -> Cow<'_, str> {
    let safe = CommandFilter::new().apply(text);
    if safe == text { Cow::Borrowed(text) } else { Cow::Owned(safe) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns true if the runner of GitHub Actions or the agent of Azure Pipelines would obey the
    /// line, with the comparisons of .NET, which skip characters without weight.
    fn is_obeyed(line: &str) -> bool {
        let seen: String = line.chars().filter(|c| !is_ignorable(*c)).collect();
        let seen = seen.to_ascii_lowercase();
        seen.trim_start().starts_with("::")
            || ["##[", "##vso[", "##teamcity["].iter().any(|command| seen.contains(command))
    }

    fn hostile() -> impl Strategy<Value = String> {
        let pieces = vec![
            ":",
            "::",
            "::stop-commands::x",
            "#",
            "##",
            "##[",
            "[",
            "##[group]",
            "##vso[",
            "##VSO[",
            "##teamcity[",
            " ",
            "\t",
            "\n",
            "\r",
            "\r\n",
            "\u{85}",
            "\u{2028}",
            "\u{b}",
            "\u{c}",
            "\u{200b}",
            "\u{200c}",
            "\u{200d}",
            "\u{2060}",
            "\u{feff}",
            "\u{fe0f}",
            "\u{a0}",
            "\u{3000}",
            "\u{1b}[31m",
            "\u{1b}[0m",
            "\u{1b}[2K",
            "\u{1b}]8;;x\u{7}",
            "\u{1b}",
            "\u{ffff}",
            "\u{e0041}",
            "a",
            "error",
            "{",
            "\"",
            "\\",
        ];
        let piece = prop_oneof![
            4 => prop::sample::select(pieces).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn commands_become_text_and_text_stays() {
        for (text, safe) in [
            ("a :: b\nstd::mem\n## x [1]\n", "a :: b\nstd::mem\n## x [1]\n"),
            ("::error::x\n  ::set-env\n", ": :error::x\n  : :set-env\n"),
            ("x ##[stop-commands]y", "x ## [stop-commands]y"),
            ("##vso[task.x]", "##vso [task.x]"),
            ("\u{1b}[1;31m##[x]\u{1b}[m", "\u{1b}[1;31m## [x]\u{1b}[m"),
            // It only begins as JSON does.
            ("[1] ##[x]", "[1] ## [x]"),
            // No document, though a value of JSON.
            ("\"##[x]\"", "\"## [x]\""),
            ("\u{200b}::a", "⟨U+200B⟩::a"),
            (":\u{200d}:a", ":\u{200d} :a"),
            ("a\r::b", "a\n: :b"),
            ("a\r\n::b", "a\n: :b"),
            ("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2J", "\u{1b}[1;31mred\u{1b}[0m ⟨U+001B⟩[2J"),
        ] {
            assert_eq!(without_commands(text), safe, "{text:?}");
        }
    }

    #[test]
    fn messages_and_properties_of_annotations() {
        assert_eq!(message("::50 %\r\n::x, ##[y"), "::50 %25%0D%0A::x, ## [y");
        assert_eq!(property("a::b, c\n%"), "a%3A%3Ab%2C c%0A%25");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({ "a": "##[x]", "b": ["::y", "#"] });
        for text in [format!("{value:#}\n"), format!("{value}\n{value}\n")] {
            let safe = without_commands(&text);
            assert!(!safe.contains("##["), "{safe}");
            for one in serde_json::Deserializer::from_str(&safe).into_iter::<serde_json::Value>() {
                assert_eq!(one.unwrap(), value);
            }
        }
    }

    #[test]
    fn each_character_of_each_plane_is_harmless_between_the_parts_of_a_command() {
        for c in '\0'..=char::MAX {
            for text in
                [format!(":{c}:a"), format!("{c}::a"), format!("#{c}#[a"), format!("##{c}[a")]
            {
                let safe = without_commands(&text);
                assert!(!safe.split('\n').any(is_obeyed), "{text:?}: {safe:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_is_obeyed_in_however_many_pieces(pieces in prop::collection::vec(hostile(), 1..4)) {
            let mut filter = CommandFilter::new();
            let log: String = pieces.iter().map(|piece| filter.apply(piece)).collect();
            for line in log.split(['\n', '\r']) {
                prop_assert!(!is_obeyed(line), "{log:?}");
            }
            let colourless = log.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
            prop_assert!(!colourless.contains('\u{1b}'), "{log:?}");
        }

        #[test]
        fn an_annotation_is_one_command(text in hostile()) {
            let line = format!("::error title={}::{}", property(&text), message(&text));
            prop_assert!(!line.contains(['\n', '\r']));
            let (head, _) = line[2..].split_once("::").unwrap();
            prop_assert!(!head.contains(',') && !head.contains(':'), "{line:?}");
            prop_assert!(!line.to_ascii_lowercase().contains("##["), "{line:?}");
        }
    }
}
