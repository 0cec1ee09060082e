//! Quoted values, including those in JSON nested in JSON, whose quotes are preceded by backslashes.

use std::ops::Range;

/// Minimum number of characters of a value.
const MIN_VALUE: usize = 4;

/// Returns true if a value may be a secret: long enough, and neither a reference such as `${NAME}`
/// nor a placeholder.
pub(super) fn may_be_secret(value: &str) -> bool {
    !value.starts_with(|c: char| c.is_whitespace() || "$<{[".contains(c))
        && value.chars().nth(MIN_VALUE - 1).is_some()
}

/// Returns the range of the value that starts at `from`, after an opening quote with its
/// backslashes.
///
/// A double-quoted value without a closing quote extends to the end of the line, since the text was
/// truncated. A single quote without another one is an apostrophe.
pub(super) fn find_value(text: &str, from: usize, opening: &str) -> Option<Range<usize>> {
    let quote = opening.bytes().last()?;
    // Each level of JSON nesting doubles the backslashes and adds one: 0, 1, 3, 7. Single quotes
    // are not escaped.
    let escapes = opening.len() - 1;
    let (mut backslashes, mut escaped) = (0, None);
    for (at, byte) in text.bytes().enumerate().skip(from) {
        if byte == b'\\' {
            backslashes += 1;
            continue;
        }
        if byte == b'\n' {
            return unclosed_value(quote, from, at, escaped);
        }
        if byte == quote {
            let closes = match quote {
                b'\'' => backslashes == escapes,
                _ => backslashes % (2 * (escapes + 1)) == escapes,
            };
            if closes || backslashes < escapes {
                // Fewer backslashes close an enclosing string.
                return Some(from..at - backslashes.min(escapes));
            }
            escaped.get_or_insert(at);
        }
        backslashes = 0;
    }
    unclosed_value(quote, from, text.len(), escaped)
}

fn unclosed_value(
    quote: u8,
    from: usize,
    end: usize,
    escaped: Option<usize>,
) -> Option<Range<usize>> {
    if quote == b'"' { Some(from..end) } else { escaped.map(|at| from..at) }
}
