//! Deserializes a JSON value of any type, regardless of the type that was expected.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A value that can be built from any type of JSON. Types without an implementation are skipped.
pub(super) trait AnyJson<'de>: Sized {
    fn string(&mut self, _text: Cow<'de, str>) {}

    fn number(&mut self, _number: &Number) {}

    fn boolean(&mut self, _value: bool) {}

    fn list<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error> {
        IgnoredAny.visit_seq(list).map(drop)
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        IgnoredAny.visit_map(map).map(drop)
    }

    /// Builds a new value from JSON. Implementations of `Deserialize` call this.
    fn from_json<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>
    where
        Self: Default,
    {
        let mut value = Self::default();
        AnyJsonSeed(&mut value).deserialize(deserializer)?;
        Ok(value)
    }
}

/// Implements `Deserialize` through [`AnyJson`].
macro_rules! deserialize_any_json {
    ($type:ident<'a>) => {
        impl<'de: 'a, 'a> serde::Deserialize<'de> for $type<'a> {
            fn deserialize<D: serde::Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
                $crate::any_json::AnyJson::from_json(json)
            }
        }
    };
    ($type:ident) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
                $crate::any_json::AnyJson::from_json(json)
            }
        }
    };
}
pub(super) use deserialize_any_json;

/// Deserializes one JSON value into an [`AnyJson`].
pub(super) struct AnyJsonSeed<'t, T>(pub(super) &'t mut T);

impl<'de, T: AnyJson<'de>> DeserializeSeed<'de> for AnyJsonSeed<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // Never a specific type, because a mismatch would be an error that loses the whole record.
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: AnyJson<'de>> Visitor<'de> for AnyJsonSeed<'_, T> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.0.string(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.string(Cow::Owned(text.to_owned()));
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.0.number(&number.into());
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.0.number(&number.into());
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        // `None` for NaN and infinities, which JSON cannot represent.
        if let Some(number) = Number::from_f64(number) {
            self.0.number(&number);
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.boolean(value);
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.object(map)
    }
}
