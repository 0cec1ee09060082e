//! Statements and the values that are bound to them, the same for both engines.
//!
//! Not sqlx's `QueryBuilder`: for connections of any kind it writes `?`, which PostgreSQL does not
//! understand (sqlx 0.9.0, issue 3000).

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe};

use super::bound;

/// A value that is bound to a statement, or null of that type: PostgreSQL prepares a statement for
/// the types of the first values.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
    Real(Option<f64>),
}

/// A type whose values can be stored.
pub(super) trait ToValue {
    /// The value; a text has at most `limit` bytes.
    fn to_value(&self, limit: usize) -> Value;
    /// Null of the same type.
    fn null() -> Value;
}

/// Values for a statement, in the order of its placeholders; texts are bounded as names are.
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
    Timestamp => |at, _limit| time(*at),
    Date => |day, _limit| day.to_string(),
}
stored_as! { Integer:
    bool => |flag, _limit| i64::from(*flag),
    u8 => |number, _limit| i64::from(*number),
    // Some of their columns have 32 bits and a sign.
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

/// A value with a limit of its own.
impl ToValue for Value {
    fn to_value(&self, _: usize) -> Value {
        self.clone()
    }
    fn null() -> Value {
        Value::Text(None)
    }
}

/// The form of times in the database: RFC 3339 in UTC and of one width, so that texts sort as
/// times do.
pub(super) fn time(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// A statement of constant text to which values are bound.
pub(super) fn query(
    sql: impl Into<Cow<'static, str>>,
    values: impl IntoIterator<Item = Value>,
) -> Query<'static, Any, AnyArguments> {
    // Statements are put together of constants and numbers; whatever comes from outside is bound.
    let query = sqlx::query(AssertSqlSafe(sql.into().into_owned()));
    values.into_iter().fold(query, |query, value| match value {
        Value::Text(text) => query.bind(text),
        Value::Integer(number) => query.bind(number),
        Value::Real(Some(number)) => query.bind(number),
        // sqlx 0.9.0 mixes up the nulls of both sizes (`AnyArguments::convert_into`): this one is
        // announced to PostgreSQL with 64 bits.
        Value::Real(None) => query.bind(None::<f32>),
    })
}

/// A statement with placeholders that are numbered as values are added.
#[derive(Default)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Statement {
    pub(super) fn push(&mut self, sql: &str) -> &mut Self {
        self.sql.push_str(sql);
        self
    }

    pub(super) fn bind(&mut self, value: impl ToValue) -> &mut Self {
        self.values.push(value.to_value(bound::NAME));
        self.sql.push_str(&format!("${}", self.values.len()));
        self
    }

    /// Asks that what was written last is one of these values.
    pub(super) fn is_one_of(&mut self, values: impl Iterator<Item = Value>) -> &mut Self {
        self.sql.push_str(" IN (");
        for (place, value) in values.enumerate() {
            self.push(if place == 0 { "" } else { ", " }).bind(value);
        }
        self.push(")")
    }
}
