//! SQL statements and their bound values, the same for both engines, with numbered placeholders and
//! only features that both have; and the few expressions that differ.
//!
//! sqlx's `QueryBuilder` is not an option: for `Any` connections it writes `?`, which PostgreSQL
//! does not understand (sqlx 0.9.0, issue 3000).

use std::borrow::Cow;

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
