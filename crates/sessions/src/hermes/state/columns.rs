//! Which columns a table has: they vary by version of Hermes, and by program.

use std::borrow::Cow;

use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

/// A longer field loses its middle before it leaves the database.
const MAX_FIELD: usize = 2 * 1024 * 1024;

/// Bytes that are kept of each end of it.
const KEPT_END: usize = 128 * 1024;

/// The columns of a table; none where there is no such table.
pub(super) struct Columns {
    names: Vec<String>,
}

impl Columns {
    /// Looks them up. Views and virtual tables count as none: a query on them could run for ever.
    pub(super) async fn of(
        database: &mut SqliteConnection,
        table: &str,
    ) -> Result<Self, sqlx::Error> {
        let query = "SELECT info.name FROM sqlite_master AS master \
                     JOIN pragma_table_info(master.name) AS info \
                     WHERE master.type = 'table' AND master.rootpage > 0 AND master.name = ?";
        let rows = sqlx::query(query).bind(table).fetch_all(database).await?;
        let names = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
        Ok(Self { names })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    fn is_none(&self) -> bool {
        self.names.is_empty()
    }

    /// The list of a `SELECT`: each column as text of bounded length, NULL for those that the
    /// table lacks.
    pub(super) fn list(&self, wanted: &[&str]) -> String {
        let column = |name: &&str| {
            if !self.has(name) {
                return "NULL".to_owned();
            }
            // The length in bytes: that in characters ends at the first NUL.
            format!(
                "CASE WHEN length(CAST(\"{name}\" AS BLOB)) <= {MAX_FIELD} THEN CAST(\"{name}\" AS \
                 TEXT) ELSE substr(CAST(\"{name}\" AS BLOB), 1, {KEPT_END}) || \
                 substr(CAST(\"{name}\" AS BLOB), -{KEPT_END}) END"
            )
        };
        wanted.iter().map(column).collect::<Vec<_>>().join(", ")
    }
}

/// Whose database it is, if it is not Hermes'.
pub(super) fn foreign(sessions: &Columns, messages: &Columns) -> Option<String> {
    let needed = ["session_id", "role", "content", "tool_calls"];
    if sessions.has("id") && needed.iter().all(|name| messages.has(name)) {
        return None;
    }
    let whose = if messages.has("content_json") {
        "of goose, which has messages.content_json"
    } else if messages.is_none() && sessions.is_none() {
        "without the tables sessions and messages"
    } else if messages.is_none() {
        "without a table messages"
    } else {
        "whose tables sessions and messages are not those of Hermes"
    };
    Some(format!("a SQLite database {whose}; expected a state.db of Hermes"))
}

/// A field as text, empty for NULL. Every field is selected as text or bytes.
pub(super) fn text(row: &SqliteRow, at: usize) -> Cow<'_, str> {
    let bytes = row.try_get_unchecked::<Option<&[u8]>, _>(at).ok().flatten();
    String::from_utf8_lossy(bytes.unwrap_or_default())
}
