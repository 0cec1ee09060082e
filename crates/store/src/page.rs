//! Pages of long lists. A cursor holds the last row instead of an offset, so rows added in between
//! cause no duplicates or gaps.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum length of a cursor's text form in bytes.
const MAX_LENGTH: usize = 4096;

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultPage<T> {
    /// Rows of the page.
    pub items: Vec<T>,
    /// Start of the next page; `None` on the last one.
    pub next: Option<Cursor>,
}

/// A position in a sorted list, after the row with this value and id. Its text form is opaque:
/// clients pass it back unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cursor {
    /// Sort value as text; `None` for null.
    pub value: Option<String>,
    /// Id that distinguishes rows with the same value.
    pub id: String,
    /// Sort order, if the list has several: a cursor of one order is invalid in another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        json.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected the `next` of the page before";
        // Cursors come from clients. The ASCII check makes the byte slicing below safe.
        if text.len() > MAX_LENGTH || !text.is_ascii() || !text.len().is_multiple_of(2) {
            return Err(EXPECTED);
        }
        let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).ok();
        let json: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
        json.and_then(|json| serde_json::from_slice(&json).ok()).ok_or(EXPECTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_form_and_nothing_else_is_one() {
        for cursor in [
            Cursor {
                value: Some("2026-11-20T10:00:00Z".into()),
                id: "é\"/?&".into(),
                order: Some("time.desc".into()),
            },
            Cursor { value: None, id: String::new(), order: None },
        ] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in ["", "x", "7b", "é0", "+1+1", &"00".repeat(MAX_LENGTH)] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
