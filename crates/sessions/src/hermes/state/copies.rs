//! Finds rows that are only repeated by a compaction within a session.
//!
//! A compaction archives all rows and writes those that stay in the context again: the first few,
//! its summary, and the last few. The copies have new row ids and no marker, so they are recognised
//! by content and position.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use futures_util::TryStreamExt as _;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use super::super::prompt;
use crate::sqlite::{TableColumns, text};

/// Maximum number of rows compared.
const MAX_ROWS: usize = 1_000_000;

/// Indices of the copies among all rows of the session.
#[derive(Default)]
pub(super) struct CopiedRows {
    rows: HashSet<usize>,
}

/// Digest of a row, and a flag for summaries.
#[derive(Clone, Copy)]
struct RowDigest {
    digest: u64,
    is_summary: bool,
}

impl CopiedRows {
    /// Finds the copies. Sessions without compaction have none and skip the comparison.
    pub(super) async fn of(
        database: &mut SqliteConnection,
        columns: &TableColumns,
        session: &str,
    ) -> Result<Self, sqlx::Error> {
        if !columns.has("compacted") {
            return Ok(Self::default());
        }
        let query = "SELECT 1 FROM messages WHERE session_id = ? AND compacted = 1 LIMIT 1";
        if sqlx::query(query).bind(session).fetch_optional(&mut *database).await?.is_none() {
            return Ok(Self::default());
        }
        let list = columns.list(&["role", "content", "tool_calls", "tool_call_id"]);
        let summary = columns.list(&["_compressed_summary"]);
        let query =
            format!("SELECT {list}, {summary} FROM messages WHERE session_id = ? ORDER BY rowid");
        let mut rows = sqlx::query(AssertSqlSafe(query)).bind(session).fetch(database);
        let mut said = Vec::new();
        while let Some(row) = rows.try_next().await?
            && said.len() < MAX_ROWS
        {
            let call_id = text(&row, 3);
            let mut hasher = DefaultHasher::new();
            text(&row, 0).hash(&mut hasher);
            // The compaction may have removed the text of a copied result.
            if call_id.is_empty() {
                (text(&row, 1), text(&row, 2)).hash(&mut hasher);
            } else {
                call_id.hash(&mut hasher);
            }
            let is_summary = text(&row, 4) == "1" || prompt::is_summary(&text(&row, 1));
            said.push(RowDigest { digest: hasher.finish(), is_summary });
        }
        Ok(Self { rows: find_copies(&said) })
    }

    pub(super) fn contains(&self, row: usize) -> bool {
        self.rows.contains(&row)
    }
}

/// Returns the rows around summaries that repeat earlier ones.
fn find_copies(rows: &[RowDigest]) -> HashSet<usize> {
    let digests: Vec<u64> = rows.iter().map(|row| row.digest).collect();
    let summaries: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].is_summary).collect();
    let mut copies = HashSet::new();
    let mut begin = 0;
    for (number, &summary) in summaries.iter().enumerate() {
        let next = summaries.get(number + 1).copied().unwrap_or(rows.len());
        // First rows of the context so far, right before the summary.
        let context = &digests[begin..summary];
        let head = overlap(context, context, context.len().saturating_sub(1) / 2);
        let end = summary - head;
        // Last rows of the context, right after the summary.
        let tail = overlap(&digests[summary + 1..next], &digests[begin..end], usize::MAX);
        copies.extend(end..summary);
        copies.extend(summary + 1..=summary + tail);
        begin = end;
    }
    copies
}

/// Returns the length of the longest prefix of one list, up to `most`, that is a suffix of the
/// other.
fn overlap(beginning: &[u64], end: &[u64], most: usize) -> usize {
    let length = beginning.len().min(end.len()).min(most);
    let (pattern, text) = (&beginning[..length], &end[end.len() - length..]);
    // Knuth-Morris-Pratt failure function: the part of the pattern that still fits after a
    // mismatch.
    let mut fallback = vec![0; length];
    let mut fits = 0;
    let advance = |mut fits: usize, value: u64, fallback: &[usize]| {
        while fits > 0 && (fits == length || pattern[fits] != value) {
            fits = fallback[fits - 1];
        }
        if fits < length && pattern[fits] == value { fits + 1 } else { fits }
    };
    for at in 1..length {
        fits = advance(fits, pattern[at], &fallback);
        fallback[at] = fits;
    }
    text.iter().fold(0, |fits, value| advance(fits, *value, &fallback))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A letter for each row, `#` for a summary.
    fn without_copies(rows: &str) -> String {
        let said: Vec<_> = rows
            .bytes()
            .map(|byte| RowDigest { digest: u64::from(byte), is_summary: byte == b'#' })
            .collect();
        let copies = find_copies(&said);
        rows.char_indices().filter(|(at, _)| !copies.contains(at)).map(|(_, c)| c).collect()
    }

    #[test]
    fn only_the_copies_around_a_summary_go() {
        for (rows, rest) in [
            ("abcdef", "abcdef"),
            ("abcdefab#efgh", "abcdef#gh"),
            ("abcdef#ef", "abcdef#"),
            ("abcdef#efefg", "abcdef#efg"),
            ("abcdefab#efghab#gh", "abcdef#gh#"),
            ("abcd#aaaa", "abcd#aaaa"),
            ("#abc", "#abc"),
            ("", ""),
        ] {
            assert_eq!(without_copies(rows), rest, "{rows}");
        }
    }

    #[test]
    fn overlaps() {
        let overlap = |beginning: &[u64], end: &[u64]| overlap(beginning, end, usize::MAX);
        assert_eq!(overlap(&[3, 4, 5], &[1, 2, 3, 4]), 2);
        assert_eq!(overlap(&[1, 1, 1, 2], &[1, 1, 1, 1]), 3);
        assert_eq!(overlap(&[1, 2], &[2, 1, 2]), 2);
        assert_eq!(overlap(&[], &[1]), 0);
        assert_eq!(overlap(&[9], &[1]), 0);
    }
}
