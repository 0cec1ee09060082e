//! Lenient building blocks for parsing JSON of other programs, whose field types change between
//! versions. A field of an unexpected type counts as missing and never loses the record.
//!
//! Records with [`Text`] fields derive `Deserialize` with `bound(deserialize = "'de: 'a")`, because
//! their texts borrow from the line or document.
//!
//! [`AnyJson`] deserializes a value of any type, regardless of the type that was expected.
//! [`RecordId`] stores ids as numbers.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Number, Value};
use twox_hash::XxHash3_64;

use crate::repaired::repair;
use crate::text::Text;

/// Calls a function for each element of a JSON list, without collecting them. Other values are
/// skipped.
pub(super) struct Each<T, F> {
    function: F,
    element: PhantomData<fn() -> T>,
}

/// Creates an [`Each`], as in `map.next_value_seed(each(|item: Object<Item<'de>>| …))`.
pub(super) fn each<T, F: FnMut(T)>(function: F) -> Each<T, F> {
    Each { function, element: PhantomData }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<(), D::Error> {
        AnyJsonSeed(&mut self).deserialize(deserializer)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> AnyJson<'de> for Each<T, F> {
    fn list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            (self.function)(element);
        }
        Ok(())
    }
}

/// A struct if the value is a JSON object, otherwise nothing. The fields of `T` must be lenient
/// too, such as [`Text`], [`LenientInt`], [`LenientFlag`], [`LenientList`] and `Moment`, with `#[serde(default)]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LenientObject<T>(pub(super) Option<T>);

impl<T> Default for LenientObject<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LenientObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(deserializer)
    }
}

impl<'de, T: Deserialize<'de>> AnyJson<'de> for LenientObject<T> {
    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        self.0 = Some(T::deserialize(MapAccessDeserializer::new(map))?);
        Ok(())
    }
}

/// The objects of a list. Elements of other types are dropped, and other values count as empty.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LenientList<T>(pub(super) Vec<T>);

impl<T> Default for LenientList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LenientList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut elements = Vec::new();
        each(|LenientObject(element)| elements.extend(element)).deserialize(deserializer)?;
        Ok(Self(elements))
    }
}

/// An integer, also from a string of digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LenientInt(pub(super) Option<i64>);

impl LenientInt {
    /// Returns the number as a count; 0 if it is missing or negative.
    pub(super) fn count(self) -> u64 {
        self.0.and_then(|number| u64::try_from(number).ok()).unwrap_or_default()
    }
}

deserialize_any_json!(LenientInt);

impl AnyJson<'_> for LenientInt {
    fn number(&mut self, number: &Number) {
        // Below 2^53, every integer has an exact float.
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
        let whole =
            |number: f64| (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64);
        let float = || number.as_f64().filter(|_| number.is_f64()).and_then(whole);
        self.0 = number.as_i64().or_else(float);
    }

    fn string(&mut self, text: Cow<'_, str>) {
        self.0 = text.trim().parse().ok();
    }
}

/// A number, also from a string.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct LenientNumber(pub(super) Option<f64>);

deserialize_any_json!(LenientNumber);

impl AnyJson<'_> for LenientNumber {
    fn number(&mut self, number: &Number) {
        self.0 = number.as_f64();
    }

    fn string(&mut self, text: Cow<'_, str>) {
        self.0 = text.trim().parse().ok();
    }
}

/// `true`, `false`, or neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LenientFlag(pub(super) Option<bool>);

impl LenientFlag {
    /// Returns true if the value is `true`.
    pub(super) fn is_set(self) -> bool {
        self.0 == Some(true)
    }
}

deserialize_any_json!(LenientFlag);

impl AnyJson<'_> for LenientFlag {
    fn boolean(&mut self, value: bool) {
        self.0 = Some(value);
    }
}

/// Any JSON value as text: the content of a string, the JSON of anything else. Used for tool
/// arguments, which some agents write as JSON and others as JSON inside a string.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct JsonText(pub(super) Text<'static>);

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        // Raw, so that number formatting and key order of the arguments are preserved.
        Ok(Self(match raw.get() {
            "null" => Text::default(),
            text if text.starts_with('"') => string(text),
            json => Text::new(json).into_owned(),
        }))
    }
}

/// A JSON value from which a few small parts are read by JSON pointer. It may also be JSON inside a
/// string.
#[derive(Debug, Clone, Default)]
pub(super) struct JsonValue(Value);

impl<'de> Deserialize<'de> for JsonValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::parse(raw.get()))
    }
}

impl JsonValue {
    /// Parses JSON; the result is empty if the text is not JSON.
    pub(super) fn parse(json: &str) -> Self {
        Self(match serde_json::from_str(json).unwrap_or_default() {
            // JSON inside a string.
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(inner @ (Value::Object(_) | Value::Array(_))) => inner,
                _ => Value::String(text),
            },
            value => value,
        })
    }

    /// Returns the part at a JSON pointer.
    pub(super) fn part<T: Default + for<'v> Deserialize<'v>>(&self, pointer: &str) -> T {
        let part = self.0.pointer(pointer);
        part.and_then(|part| T::deserialize(part).ok()).unwrap_or_default()
    }

    /// Returns the keys of the object at a JSON pointer.
    pub(super) fn keys(&self, pointer: &str) -> Vec<String> {
        let object = self.0.pointer(pointer).and_then(Value::as_object);
        object.map(|object| object.keys().cloned().collect()).unwrap_or_default()
    }

    /// Returns the text at a JSON pointer; values of other types are formatted as JSON.
    pub(super) fn text(&self, pointer: &str) -> Text<'static> {
        match self.0.pointer(pointer) {
            Some(Value::String(text)) => Text::new(text.clone()),
            None | Some(Value::Null) => Text::default(),
            Some(other) => Text::new(other.to_string()),
        }
    }
}

/// Parses a JSON string. Raw values may still contain lone surrogates.
fn string(json: &str) -> Text<'static> {
    let read = |json: &str| serde_json::from_str::<Text<'_>>(json).map(Text::into_owned);
    read(json).unwrap_or_else(|_| {
        repair(json.as_bytes()).and_then(|json| read(&json).ok()).unwrap_or_default()
    })
}

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
                $crate::wire::AnyJson::from_json(json)
            }
        }
    };
    ($type:ident) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
                $crate::wire::AnyJson::from_json(json)
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

/// A hashed id. Ids are only compared, and a large file has many of them. 0 means no id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct RecordId(u64);

impl RecordId {
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns this id, or `other` if this one is missing.
    pub(super) fn or(self, other: RecordId) -> RecordId {
        if self.is_none() { other } else { self }
    }
}

impl From<&str> for RecordId {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return RecordId::default();
        }
        // At least 1, because 0 means no id.
        RecordId(XxHash3_64::oneshot(text.as_bytes()).max(1))
    }
}

/// Map keyed by record id. Ids are already hashes, so a fast hasher is enough.
pub(super) type ById<T> = HashMap<RecordId, T, foldhash::fast::RandomState>;

/// A set of ids.
pub(super) type Ids = HashSet<RecordId, foldhash::fast::RandomState>;

deserialize_any_json!(RecordId);

impl AnyJson<'_> for RecordId {
    fn string(&mut self, text: Cow<'_, str>) {
        *self = RecordId::from(&*text);
    }

    fn number(&mut self, number: &Number) {
        // Some formats write the same id as a number in one place and as text in another.
        *self = RecordId::from(&*number.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_with_half_a_character_are_not_lost() {
        let JsonText(arguments) = serde_json::from_str(r#""{\"a\": \"\ud83d\"}""#).unwrap();
        assert_eq!(arguments.as_str(), "{\"a\": \"\u{fffd}\"}");
    }

    #[test]
    fn fields_of_another_type_are_as_good_as_none() {
        #[derive(Deserialize, Default, Debug, PartialEq)]
        #[serde(default)]
        struct Record {
            count: LenientInt,
            flag: LenientFlag,
            arguments: JsonText,
            list: LenientList<Inner>,
            inner: LenientObject<Inner>,
        }
        #[derive(Deserialize, Default, Debug, PartialEq)]
        #[serde(default)]
        struct Inner {
            a: LenientInt,
        }
        let read = |json: &str| serde_json::from_str::<Record>(json).unwrap();
        let record = read(
            r#"{"count":"7","flag":true,"arguments":"{\"x\":1}","list":[1,{"a":2.0},"s"],"inner":{"a":3}}"#,
        );
        assert_eq!(record.count.count(), 7);
        assert!(record.flag.is_set());
        assert_eq!(record.arguments.0.as_str(), r#"{"x":1}"#);
        assert_eq!(record.list.0, [Inner { a: LenientInt(Some(2)) }]);
        assert_eq!(record.inner.0, Some(Inner { a: LenientInt(Some(3)) }));
        let odd =
            read(r#"{"count":[1],"flag":"yes","arguments":{"x":[2]},"list":"no","inner":null}"#);
        let expected =
            Record { arguments: JsonText(Text::new(r#"{"x":[2]}"#)), ..Record::default() };
        assert_eq!(odd, expected);
    }
}
