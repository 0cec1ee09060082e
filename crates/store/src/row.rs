//! Reading rows that any program may have written: each value checked, none trusted.

use futures_util::StreamExt as _;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use sqlx::any::{AnyArguments, AnyRow, AnyTypeInfo};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::query::Query;
use sqlx::{Any, Database, Decode, Encode, Row as _, Type};

use super::{Store, StoreError};

/// What a query found.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows<T> {
    /// The rows that could be read.
    pub items: Vec<T>,
    /// How many were skipped, because they hold values that selftest does not write.
    pub unreadable: u64,
}

/// The form of times in the database: RFC 3339 in UTC and of one width, so that texts sort as
/// times do.
pub(super) fn time(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// A count as the database holds it.
pub(super) fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A time in our form or in Python's without zone, which is taken for UTC.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let without_zone = || {
        let time = text.parse::<DateTime>().ok()?;
        Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    text.parse().ok().or_else(without_zone)
}

/// A number with a fraction, or null, to be bound to a statement. Never bind an `Option<f64>`:
/// where the first value of a statement is null, sqlx 0.9.0 announces 32 bits to PostgreSQL (it
/// mixes up the two types in `AnyArguments::convert_into`), keeps the statement so, and the next
/// value, of 64 bits, is refused. The null of the other type is announced right.
pub(super) struct Double(pub(super) Option<f64>);

impl Type<Any> for Double {
    fn type_info() -> AnyTypeInfo {
        <f64 as Type<Any>>::type_info()
    }
}

impl Encode<'_, Any> for Double {
    fn encode_by_ref(
        &self,
        buffer: &mut <Any as Database>::ArgumentBuffer,
    ) -> Result<IsNull, BoxDynError> {
        match self.0 {
            Some(number) => <f64 as Encode<Any>>::encode_by_ref(&number, buffer),
            None => <Option<f32> as Encode<Any>>::encode_by_ref(&None, buffer),
        }
    }
}

/// The values of one row. Errors name the column.
pub(super) struct Columns<'r>(pub(super) &'r AnyRow);

impl<'r> Columns<'r> {
    fn get<T: Decode<'r, Any> + Type<Any>>(&self, name: &str) -> Result<T, String> {
        self.0.try_get(name).map_err(|error| format!("{name}: {error}"))
    }

    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        self.get(name)
    }

    /// Nothing also where the value is no text.
    pub(super) fn optional_text(&self, name: &str) -> Option<String> {
        self.get::<Option<String>>(name).ok().flatten()
    }

    pub(super) fn integer(&self, name: &str) -> Result<i64, String> {
        self.get(name)
    }

    /// A whole number in the range of its type.
    pub(super) fn number<T: TryFrom<i64>>(&self, name: &str) -> Result<T, String> {
        let number = self.integer(name)?;
        T::try_from(number).map_err(|_| format!("{name} is {number}"))
    }

    /// As SQLite and Python have it: everything but 0 is true.
    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.integer(name)? != 0)
    }

    /// The same, where there is one. Nothing also where the value is no number.
    pub(super) fn optional_flag(&self, name: &str) -> Option<bool> {
        self.optional_number::<i64>(name).map(|number| number != 0)
    }

    /// A whole number in the range of its type; nothing also where the value is no such number.
    pub(super) fn optional_number<T: TryFrom<i64>>(&self, name: &str) -> Option<T> {
        self.get::<Option<i64>>(name).ok().flatten().and_then(|number| T::try_from(number).ok())
    }

    /// Nothing also where the value is no number.
    pub(super) fn optional_float(&self, name: &str) -> Option<f64> {
        self.get::<Option<f64>>(name).ok().flatten().filter(|number| number.is_finite())
    }

    pub(super) fn time(&self, name: &str) -> Result<Timestamp, String> {
        let text = self.text(name)?;
        parse_time(&text).ok_or_else(|| format!("{name} is no time: {text:?}"))
    }

    /// Nothing also where the value is no time.
    pub(super) fn optional_time(&self, name: &str) -> Option<Timestamp> {
        parse_time(&self.optional_text(name)?)
    }

    pub(super) fn date(&self, name: &str) -> Result<Date, String> {
        let text = self.text(name)?;
        text.trim().parse().map_err(|_| format!("{name} is no date: {text:?}"))
    }
}

impl Store {
    /// Every row of a query, read one after the other.
    pub(super) async fn fetch<T>(
        &self,
        query: Query<'_, Any, AnyArguments>,
        read: impl Fn(&Columns<'_>) -> Result<T, String>,
    ) -> Result<Rows<T>, StoreError> {
        let mut rows = Rows { items: Vec::new(), unreadable: 0 };
        // From a connection and not from the pool: the pool's stream ends at the first row that
        // cannot be decoded.
        let mut connection = self.pool.acquire().await.map_err(|error| self.failed(error))?;
        let mut stream = query.fetch(&mut *connection);
        while let Some(row) = stream.next().await {
            let read = match row {
                Ok(row) => read(&Columns(&row)),
                Err(error @ (sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. })) => {
                    Err(error.to_string())
                }
                Err(error) => return Err(self.failed(error)),
            };
            match read {
                Ok(item) => rows.items.push(item),
                Err(why) => {
                    tracing::debug!("skipped a row of {}: {why}", self.place);
                    rows.unreadable += 1;
                }
            }
        }
        Ok(rows)
    }

    /// The row of a query that finds at most one. `what` it is, for the error where it cannot be
    /// read.
    pub(super) async fn fetch_one<T>(
        &self,
        query: Query<'_, Any, AnyArguments>,
        what: impl FnOnce() -> String,
        read: impl Fn(&Columns<'_>) -> Result<T, String>,
    ) -> Result<Option<T>, StoreError> {
        let row = query.fetch_optional(&self.pool).await.map_err(|error| self.failed(error))?;
        let read = row.map(|row| read(&Columns(&row))).transpose();
        read.map_err(|why| StoreError::Row { place: self.place.clone(), what: what(), why })
    }
}
