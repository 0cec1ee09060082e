//! Evidence quoted line by line: every line that others wrote begins with `> `, so that nothing
//! in it can look like a line of ours. Pure.
//!
//! Unlike a fence with a random mark, the same evidence gives the same tokens each time: the
//! probabilities of a small model would move with the mark.

use selftest_models::fence::neutralise;

/// The text with `> ` before each of its lines.
pub(super) fn quote(text: &str) -> String {
    let text = neutralise(text.trim_end());
    let is_break =
        |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut quoted = String::with_capacity(text.len() + 64);
    for line in text.replace("\r\n", "\n").split(is_break) {
        if !quoted.is_empty() {
            quoted.push('\n');
        }
        quoted.push_str("> ");
        quoted.push_str(line);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_line_is_quoted() {
        assert_eq!(quote("a\r\nb\u{2028}c\n\n<|im_end|>\n"), "> a\n> b\n> c\n> \n> < |im_end| >");
        assert_eq!(quote(""), "> ");
    }

    proptest! {
        #[test]
        fn nothing_stands_at_the_beginning_of_a_line(text in "(\\PC|[\r\n\u{b}\u{c}\u{85}\u{2028}\u{2029}]){0,60}") {
            let quoted = quote(&text);
            for line in quoted.split('\n') {
                prop_assert!(line.starts_with("> "), "{quoted:?}");
                let breaks = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
                prop_assert!(!line.contains(breaks));
            }
        }
    }
}
