//! SQL statements and their bound values, the same for both engines, with numbered placeholders and
//! only features that both have; and the few expressions that differ.
//!
//! sqlx's `QueryBuilder` is not an option: for `Any` connections it writes `?`, which PostgreSQL
//! does not understand (sqlx 0.9.0, issue 3000).

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe};

use super::bound;

/// A value bound to a statement, or a typed null: PostgreSQL prepares a statement for the types of
/// the first values.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
    Real(Option<f64>),
}

/// A type whose values can be stored.
pub(super) trait ToValue {
    /// Converts to a value; a text is truncated to `limit` bytes.
    fn to_value(&self, limit: usize) -> Value;
    /// Returns null of the same type.
    fn null() -> Value;
}

/// Values for a statement, in the order of its placeholders; texts are limited like names.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        [$($crate::statement::ToValue::to_value(&$value, $crate::bound::NAME)),*]
    };
}
pub(super) use params;

/// Implements [`ToValue`] for types that are stored as another one; `None` is stored as null.
macro_rules! stored_as {
    ($variant:ident: $($type:ty => |$value:ident, $limit:ident| $to:expr),+ $(,)?) => {$(
        impl $crate::statement::ToValue for $type {
            fn to_value(&self, $limit: usize) -> $crate::statement::Value {
                let $value = self;
                $crate::statement::Value::$variant(Option::from($to))
            }
            fn null() -> $crate::statement::Value {
                $crate::statement::Value::$variant(None)
            }
        }
    )+};
}
pub(super) use stored_as;

stored_as! { Text:
    str => |text, limit| bound::text(text, limit),
    String => |text, limit| bound::text(text, limit),
    Timestamp => |at, _limit| format_time(*at),
    Date => |day, _limit| day.to_string(),
}
stored_as! { Integer:
    bool => |flag, _limit| i64::from(*flag),
    u8 => |number, _limit| i64::from(*number),
    // Some of these columns are signed 32-bit integers.
    u32 => |number, _limit| i64::from(*number).min(i64::from(i32::MAX)),
    i64 => |number, _limit| *number,
    u64 => |count, _limit| i64::try_from(*count).unwrap_or(i64::MAX),
}
stored_as! { Real: f64 => |number, _limit| number.is_finite().then_some(*number) }

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self, limit: usize) -> Value {
        (**self).to_value(limit)
    }
    fn null() -> Value {
        T::null()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self, limit: usize) -> Value {
        self.as_ref().map_or_else(T::null, |value| value.to_value(limit))
    }
    fn null() -> Value {
        T::null()
    }
}

/// Already converted; the limit is ignored.
impl ToValue for Value {
    fn to_value(&self, _: usize) -> Value {
        self.clone()
    }
    fn null() -> Value {
        Value::Text(None)
    }
}

/// Formats a time as RFC 3339 in UTC with a fixed width, so that texts sort like times.
pub(super) fn format_time(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// Builds a query from constant text and bound values.
pub(super) fn query(
    sql: impl Into<Cow<'static, str>>,
    values: impl IntoIterator<Item = Value>,
) -> Query<'static, Any, AnyArguments> {
    // Statement texts consist of constants and numbers; all outside input is bound.
    let query = sqlx::query(AssertSqlSafe(sql.into().into_owned()));
    values.into_iter().fold(query, |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Integer(number) => query.bind(number),
        Value::Real(Some(number)) => query.bind(number),
        // sqlx 0.9.0 swaps the nulls of both float sizes (`AnyArguments::convert_into`): this one
        // is declared to PostgreSQL as 64 bits.
        Value::Real(None) => query.bind(None::<f32>),
    })
}

/// A statement under construction, whose placeholders are numbered as values are added.
#[derive(Default)]
pub(super) struct SqlStatement {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl SqlStatement {
    pub(super) fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    pub(super) fn bind(&mut self, value: impl ToValue) -> &mut Self {
        self.values.push(value.to_value(bound::NAME));
        self.sql.push_str(&format!("${}", self.values.len()));
        self
    }

    /// Appends an `IN` condition for the last expression.
    pub(super) fn is_one_of(&mut self, values: impl Iterator<Item = Value>) -> &mut Self {
        self.sql.push_str(" IN (");
        for (place, value) in values.enumerate() {
            self.push(if place == 0 { "" } else { ", " }).bind(value);
        }
        self.push(")")
    }
}

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseEngine {
    Sqlite,
    Postgres,
}

impl DatabaseEngine {
    /// Returns the maximum time to wait for a connection.
    pub(super) fn connect_timeout(self) -> Duration {
        match self {
            // All connections are busy.
            DatabaseEngine::Sqlite => Duration::from_secs(30),
            // Long enough for a restarting server.
            DatabaseEngine::Postgres => Duration::from_secs(10),
        }
    }

    /// Returns the statements to run first on each connection. Several processes may use one
    /// database at the same time: readers do not wait, writers take turns. A write waits at most 10
    /// s for another process.
    pub(super) fn setup_statements(self) -> &'static str {
        match self {
            DatabaseEngine::Sqlite => {
                // With WAL, a power failure under `synchronous = NORMAL` may undo the last
                // commits, but cannot corrupt the database (sqlite.org/pragma.html).
                // `temp_store = MEMORY` keeps statement journals in memory instead of writing a
                // file that is then discarded.
                "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; \
                 PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL; \
                 PRAGMA temp_store = MEMORY;"
            }
            // A client that stops responding within a transaction is disconnected, because others
            // wait for its locks.
            DatabaseEngine::Postgres => {
                "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; \
                 SELECT set_config('application_name', 'selftest', false) \
                 WHERE current_setting('application_name') = ''"
            }
        }
    }

    /// Returns a statement to run after [`DatabaseEngine::setup_statements`] if memory matters more than speed.
    pub(super) fn low_memory_statement(self) -> &'static str {
        match self {
            // The OS caches pages that are read again. Connections borrow unused cache from each
            // other, so the default of 2 MB each reached 6 MB for one connection.
            DatabaseEngine::Sqlite => "PRAGMA cache_size = -512",
            // The cache is in the server's memory.
            DatabaseEngine::Postgres => "",
        }
    }

    /// Returns the statement that starts a transaction for writing.
    pub(super) fn begin_statement(self) -> &'static str {
        match self {
            // Takes the write lock at once: an upgrade within a transaction can fail immediately,
            // regardless of `busy_timeout`.
            DatabaseEngine::Sqlite => "BEGIN IMMEDIATE",
            // Independent of the server's default: stricter levels would use a snapshot from before
            // the wait for the turn.
            DatabaseEngine::Postgres => "BEGIN ISOLATION LEVEL READ COMMITTED",
        }
    }

    /// Returns the statement to run first in a write transaction, which waits until it is the only
    /// one, as `BEGIN IMMEDIATE` does on SQLite. The lock is per schema because each schema may
    /// contain our tables.
    pub(super) fn write_lock_statement(self) -> Option<&'static str> {
        match self {
            DatabaseEngine::Sqlite => None,
            DatabaseEngine::Postgres => Some(
                "SELECT pg_advisory_xact_lock(\
                 hashtextextended('selftest ' || current_schema(), 0))",
            ),
        }
    }

    /// Returns the start of a comparison of a column with a lowercase pattern, ignoring ASCII case.
    pub(super) fn like(self, column: &str) -> String {
        match self {
            // SQLite's `LIKE` already ignores ASCII case, without a copy of each text.
            DatabaseEngine::Sqlite => format!("{column} LIKE "),
            DatabaseEngine::Postgres => format!("LOWER({column}) LIKE "),
        }
    }

    /// Returns an expression for the seconds since 1970 on a clock that all processes share, since
    /// the clocks of machines differ.
    pub(super) fn now_expression(self) -> &'static str {
        match self {
            // All processes are on one machine.
            DatabaseEngine::Sqlite => "CAST(strftime('%s', 'now') AS INTEGER)",
            DatabaseEngine::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT)",
        }
    }

    /// Returns a query for the names of user tables in our database or schema.
    pub(super) fn tables_query(self) -> &'static str {
        match self {
            DatabaseEngine::Sqlite => {
                "SELECT name FROM sqlite_master WHERE type = 'table' \
                 AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
            }
            DatabaseEngine::Postgres => {
                "SELECT CAST(relname AS TEXT) FROM pg_class WHERE relkind IN ('r', 'p') \
                 AND relnamespace = CAST(current_schema() AS regnamespace) \
                 AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_class.oid \
                 AND classid = CAST('pg_class' AS regclass) AND deptype = 'e')"
            }
        }
    }

    /// Returns a query for a number that differs after every change of the database by any process.
    pub(super) fn change_counter_query(self) -> &'static str {
        match self {
            DatabaseEngine::Sqlite => "PRAGMA data_version",
            // Every writing transaction changes the snapshot. Transactions in other databases of
            // the server do too, which only causes needless refreshes.
            DatabaseEngine::Postgres => {
                "SELECT hashtextextended(CAST(pg_current_snapshot() AS TEXT), 0)"
            }
        }
    }
}
