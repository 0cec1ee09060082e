//! Pages of long lists: where the next one begins is said by the last row, not by a number of
//! rows, so that a list that grows in between neither repeats nor skips any.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bytes of the longest text form that is read.
const MAX_LENGTH: usize = 4096;

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// Its rows.
    pub items: Vec<T>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<Cursor>,
}

/// A place in a sorted list: behind the row with this value and this id. Its text form is for
/// programs to hand back, not to read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cursor {
    /// The value by which the list is sorted, as text; `None` for null.
    pub value: Option<String>,
    /// Tells rows with the same value apart.
    pub id: String,
    /// In which order, where the list has several: a place in one is none in another.
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
