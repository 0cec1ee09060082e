//! Quotes evidence line by line: every untrusted line starts with `> `, so that nothing in it can
//! look like a line of the prompt. Pure.
//!
//! Unlike a fence with a random nonce, the same evidence always gives the same tokens. A nonce
//! would shift the probabilities of a small model.

use selftest_models::fence::neutralise;

/// Returns the text with `> ` before each of its lines.
pub(super) fn quote(text: &str) -> String {
    // Includes the Unicode separators that a model may read as line breaks.
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
