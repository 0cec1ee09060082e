//! Classes of characters: those that hide or reorder text, and those that XML 1.0 allows.

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
    use super::*;

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
