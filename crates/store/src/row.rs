//! Maps table rows to structs: one description per type yields both its statements and its reader.
//! Any program may have written a row, so every value is checked.

use std::borrow::Cow;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use sqlx::any::AnyRow;
use sqlx::{Any, Decode, Row as _, Type, ValueRef as _};

use super::statement::{Value, query};
use super::{ColumnError, Store, StoreError};

/// Result rows of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows<T> {
    /// Rows that could be read.
    pub items: Vec<T>,
    /// Number of rows skipped because they contain values that selftest does not write.
    pub unreadable: u64,
}

/// Parses a time in our format, or in Python's format without a zone, which is read as UTC.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let without_zone = || {
        let time = text.parse::<DateTime>().ok()?;
        Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    text.parse().ok().or_else(without_zone)
}

/// The values of one row. Errors name the column.
pub(super) struct Columns<'r>(pub(super) &'r AnyRow);

impl<'r> Columns<'r> {
    /// Returns the value of a column.
    pub(super) fn get<T: FromColumn>(&self, name: &str) -> Result<T, ColumnError> {
        T::from_column(self, name)
    }

    /// Returns the value of a column, or `None` if it is null or has another type.
    pub(super) fn optional<T: FromColumn>(&self, name: &str) -> Option<T> {
        self.get(name).ok()
    }

    /// Parses the text of a column with `from_name`.
    pub(super) fn named<T>(
        &self,
        name: &str,
        from_name: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ColumnError> {
        let text: String = self.get(name)?;
        from_name(&text).ok_or_else(|| ColumnError::value(name, format_args!("{text:?}")))
    }

    /// Parses the JSON text of a column.
    pub(super) fn json<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<T, ColumnError> {
        let json: String = self.get(name)?;
        serde_json::from_str(&json)
            .map_err(|source| ColumnError::Json { column: name.to_owned(), source })
    }

    pub(super) fn is_null(&self, name: &str) -> bool {
        self.0.try_get_raw(name).is_ok_and(|value| value.is_null())
    }

    fn decode<T: Decode<'r, Any> + Type<Any>>(&self, name: &str) -> Result<T, ColumnError> {
        self.0.try_get(name).map_err(|source| ColumnError::Type { column: name.to_owned(), source })
    }
}

/// A type that can be read from a column.
pub(super) trait FromColumn: Sized {
    fn from_column(row: &Columns<'_>, name: &str) -> Result<Self, ColumnError>;
}

/// Implements [`FromColumn`] for types.
macro_rules! read_from {
    (|$row:ident, $name:ident| $($type:ty => $read:expr),+ $(,)?) => {$(
        impl $crate::row::FromColumn for $type {
            fn from_column(
                $row: &$crate::row::Columns<'_>,
                $name: &str,
            ) -> Result<Self, $crate::ColumnError> {
                $read
            }
        }
    )+};
}
pub(super) use read_from;

/// Reads an integer and checks that it fits its type.
fn number<T: TryFrom<i64>>(row: &Columns<'_>, name: &str) -> Result<T, ColumnError> {
    let number = row.decode::<i64>(name)?;
    T::try_from(number).map_err(|_| ColumnError::value(name, number))
}

read_from! { |row, name|
    String => row.decode(name),
    u8 => number(row, name),
    u32 => number(row, name),
    u64 => number(row, name),
    i64 => row.decode(name),
    // As in SQLite and Python, everything but 0 is true.
    bool => Ok(row.decode::<i64>(name)? != 0),
    f64 => {
        let number = row.decode(name)?;
        if f64::is_finite(number) { Ok(number) } else { Err(ColumnError::value(name, number)) }
    },
    Timestamp => row.named(name, parse_time),
    Date => row.named(name, |text| text.trim().parse().ok()),
}

/// `None` if the column is null or has another type.
impl<T: FromColumn> FromColumn for Option<T> {
    fn from_column(row: &Columns<'_>, name: &str) -> Result<Self, ColumnError> {
        Ok(row.optional(name))
    }
}

/// Reads a number from 0 to 1.
pub(super) fn unit(row: &Columns<'_>, name: &str) -> Result<f64, ColumnError> {
    let value = row.get(name)?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(ColumnError::value(name, value)) }
}

/// Reads an optional number from 0 to 1.
pub(super) fn optional_unit(row: &Columns<'_>, name: &str) -> Result<Option<f64>, ColumnError> {
    row.optional::<f64>(name).map(|_| unit(row, name)).transpose()
}

/// A type stored in a table row or in some of its columns, or read from a query that joins that
/// table with others.
pub(super) trait Record: Sized {
    const TABLE: &'static str;

    /// Returns the columns, in the order of the values.
    fn columns() -> Vec<&'static str>;
    fn values(&self) -> Vec<Value>;
    fn read(row: &Columns<'_>) -> Result<Self, ColumnError>;

    /// Returns a query for complete rows. It lists the columns because in PostgreSQL a prepared
    /// `SELECT *` fails after a newer version of selftest has added one.
    fn select(rest: &str) -> String {
        format!("SELECT {} FROM {} {rest}", Self::columns().join(", "), Self::TABLE)
    }

    fn insert() -> String {
        Self::insert_rows(1)
    }

    /// Returns a statement that inserts several rows.
    fn insert_rows(rows: usize) -> String {
        let columns = Self::columns();
        let row = |row: usize| {
            let places = (1..=columns.len()).map(|at| format!("${}", row * columns.len() + at));
            format!("({})", places.collect::<Vec<_>>().join(", "))
        };
        let rows: Vec<String> = (0..rows).map(row).collect();
        let (columns, rows) = (columns.join(", "), rows.join(", "));
        format!("INSERT INTO {} ({columns}) VALUES {rows}", Self::TABLE)
    }

    /// Returns a statement that inserts a row or replaces the one with the same key.
    fn upsert(key: &str) -> String {
        Self::upsert_rows(key, 1)
    }

    /// Returns an upsert of several rows, which must have different keys.
    fn upsert_rows(key: &str, rows: usize) -> String {
        let keys: Vec<&str> = key.split(", ").collect();
        let others = Self::columns().into_iter().filter(|column| !keys.contains(column));
        let updates: Vec<String> =
            others.map(|column| format!("{column} = excluded.{column}")).collect();
        let insert = Self::insert_rows(rows);
        format!("{insert} ON CONFLICT ({key}) DO UPDATE SET {}", updates.join(", "))
    }
}

/// Implements [`Record`] for a struct: each field, its column if that has another name, the maximum
/// length of its text if it differs from that of names, and the function that reads it if the type
/// does not determine it. A part that takes several columns is itself a [`Record`].
macro_rules! record {
    ($type:ty, $table:literal, {
        $($field:ident $(as $column:literal)? $([$limit:expr])? $(by $read:path)?),+ $(,)?
    } $(+ $part:ident: $part_type:ty)?) => {
        impl $crate::row::Record for $type {
            const TABLE: &'static str = $table;

            fn columns() -> Vec<&'static str> {
                [
                    vec![$($crate::row::or!([$($column)?] stringify!($field))),+],
                    $(<$part_type as $crate::row::Record>::columns(),)?
                ]
                .concat()
            }

            fn values(&self) -> Vec<$crate::statement::Value> {
                [
                    vec![$($crate::statement::ToValue::to_value(
                        &self.$field,
                        $crate::row::or!([$($limit)?] $crate::bound::NAME),
                    )),+],
                    $($crate::row::Record::values(&self.$part),)?
                ]
                .concat()
            }

            fn read(row: &$crate::row::Columns<'_>) -> Result<Self, $crate::ColumnError> {
                Ok(Self {
                    $($field: $crate::row::or!(
                        [$($read)?] $crate::row::Columns::get
                    )(row, $crate::row::or!([$($column)?] stringify!($field)))?,)+
                    $($part: <$part_type as $crate::row::Record>::read(row)?,)?
                })
            }
        }
    };
}
pub(super) use record;

/// Expands to the given expression, or to the default without one.
macro_rules! or {
    ([] $default:expr) => {
        $default
    };
    ([$given:expr] $default:expr) => {
        $given
    };
}
pub(super) use or;

impl Store {
    /// Reads all rows of a query and counts the unreadable ones.
    pub(super) async fn fetch<T>(
        &self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
        mut read: impl FnMut(&Columns<'_>) -> Result<T, ColumnError>,
    ) -> Result<Rows<T>, StoreError> {
        let mut rows = Rows { items: Vec::new(), unreadable: 0 };
        // Fetches from a connection because the pool's stream ends at the first row that cannot be
        // decoded.
        let mut connection =
            self.pool.acquire().await.map_err(|error| self.to_store_error(error))?;
        let mut stream = query(sql, values).fetch(&mut *connection);
        while let Some(row) = stream.next().await {
            let read = match row {
                Ok(row) => read(&Columns(&row)),
                // Other programs write to this file too (the original one in Python still may). One
                // odd row must not hide the rest of a list.
                Err(error @ (sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. })) => {
                    Err(ColumnError::Row(error))
                }
                Err(error) => return Err(self.to_store_error(error)),
            };
            match read {
                Ok(item) => rows.items.push(item),
                Err(error) => {
                    tracing::debug!("skipped a row of {}: {error}", self.place);
                    rows.unreadable += 1;
                }
            }
        }
        Ok(rows)
    }

    /// Reads the row of a query that returns at most one. `what` names it in the error if it cannot
    /// be read.
    pub(super) async fn fetch_one<T>(
        &self,
        what: &str,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
        read: impl Fn(&Columns<'_>) -> Result<T, ColumnError>,
    ) -> Result<Option<T>, StoreError> {
        let row = query(sql, values).fetch_optional(&self.pool).await;
        let row = row.map_err(|error| self.to_store_error(error))?;
        let read = row.map(|row| read(&Columns(&row))).transpose();
        let (place, what) = (self.place.clone(), what.to_owned());
        read.map_err(|source| StoreError::Row { place, what, source })
    }

    /// Selects rows of a table by the conditions in `rest`.
    pub(super) async fn find<T: Record>(
        &self,
        rest: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Rows<T>, StoreError> {
        self.fetch(T::select(rest), values, T::read).await
    }

    /// Selects at most one row of a table by the conditions in `rest`.
    pub(super) async fn find_one<T: Record>(
        &self,
        what: &str,
        rest: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Option<T>, StoreError> {
        self.fetch_one(what, T::select(rest), values, T::read).await
    }

    /// Reads the column `count` of a query.
    pub(super) async fn count(
        &self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<u64, StoreError> {
        let counted = self.fetch_one("a count", sql, values, |row| row.get("count")).await?;
        Ok(counted.unwrap_or_default())
    }

    /// Runs one statement and returns the number of rows changed.
    pub(super) async fn execute(
        &self,
        sql: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<u64, StoreError> {
        let done = query(sql, values).execute(&self.pool).await;
        Ok(done.map_err(|error| self.to_store_error(error))?.rows_affected())
    }
}

#[cfg(test)]
mod tests {
    struct Pair {
        a: u64,
        b: String,
    }

    use super::Record as _;

    record!(Pair, "pairs", { a, b as "c" [7] });

    #[test]
    fn statements_are_made_of_a_description() {
        assert_eq!(Pair::select("WHERE a = $1"), "SELECT a, c FROM pairs WHERE a = $1");
        let insert = "INSERT INTO pairs (a, c) VALUES ($1, $2)";
        assert_eq!(Pair::insert(), insert);
        let upsert = format!("{insert} ON CONFLICT (a) DO UPDATE SET c = excluded.c");
        assert_eq!(Pair::upsert("a"), upsert);
        let two = upsert.replace("($1, $2)", "($1, $2), ($3, $4)");
        assert_eq!(Pair::upsert_rows("a", 2), two);
    }
}
