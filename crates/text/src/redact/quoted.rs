//! Values in quotes, also where the text around them is JSON inside of JSON, so that quotes stand
//! behind backslashes.

use std::ops::Range;

/// Characters of the shortest value.
const MIN_VALUE: usize = 4;

/// Whether it may be a secret: no reference such as `${NAME}`, no placeholder, and long enough.
pub(super) fn may_be_secret(value: &str) -> bool {
    !value.starts_with(|c: char| c.is_whitespace() || "$<{[".contains(c))
        && value.chars().nth(MIN_VALUE - 1).is_some()
}

/// The value that begins at `from`, behind an opening quote with its backslashes.
///
/// A value in double quotes that were never closed goes to the end of the line: its end was cut
/// off. A single quote without another one is an apostrophe.
pub(super) fn value(text: &str, from: usize, opening: &str) -> Option<Range<usize>> {
    let quote = opening.bytes().last()?;
    // JSON inside of JSON doubles them and adds one: 0, 1, 3, 7. It leaves single quotes alone.
    let escapes = opening.len() - 1;
    let (mut backslashes, mut escaped) = (0, None);
    for (at, byte) in text.bytes().enumerate().skip(from) {
        if byte == b'\\' {
            backslashes += 1;
            continue;
        }
        if byte == b'\n' {
            return unclosed(quote, from, at, escaped);
        }
        if byte == quote {
            let closes = match quote {
                b'\'' => backslashes == escapes,
                _ => backslashes % (2 * (escapes + 1)) == escapes,
            };
            if closes || backslashes < escapes {
                // With fewer of them it is the end of a text around it.
                return Some(from..at - backslashes.min(escapes));
            }
            escaped.get_or_insert(at);
        }
        backslashes = 0;
    }
    unclosed(quote, from, text.len(), escaped)
}

fn unclosed(quote: u8, from: usize, end: usize, escaped: Option<usize>) -> Option<Range<usize>> {
    if quote == b'"' { Some(from..end) } else { escaped.map(|at| from..at) }
}
