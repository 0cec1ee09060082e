//! Lenient building blocks of the readers: JSON of foreign programs, where any field may have
//! another type than last month. A field of another type is as good as none; it loses no record.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::repaired::repair;
use super::text::Text;

/// The methods of a [`Visitor`] for JSON values of the kinds named: skip them, yield the default.
macro_rules! otherwise_default {
    ($($kind:ident)*) => { $(otherwise_default!(@ $kind);)* };
    (@ scalar) => { otherwise_default!(string number boolean null); };
    (@ string) => {
        fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@ number) => {
        fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@ boolean) => {
        fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@ null) => {
        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@ list) => {
        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut list: A,
        ) -> Result<Self::Value, A::Error> {
            while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (@ object) => {
        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}
pub(super) use otherwise_default;

/// Calls a function for each element of a JSON list, without collecting them. Anything but a
/// list is skipped.
pub(super) struct Each<T, F> {
    function: F,
    element: PhantomData<fn() -> T>,
}

/// See [`Each`]; for `map.next_value_seed(each(|item: Object<Item<'de>>| …))`.
pub(super) fn each<T, F: FnMut(T)>(function: F) -> Each<T, F> {
    Each { function, element: PhantomData }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            (self.function)(element);
        }
        Ok(())
    }

    otherwise_default!(string number boolean null object);
}

/// A struct where the value is a JSON object, else nothing. The fields of `T` must themselves be
/// tolerant: [`Text`], [`Int`], [`Flag`], [`List`], `Moment`, with `#[serde(default)]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object<T>(pub(super) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyObject<T>(PhantomData<fn() -> T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for AnyObject<T> {
            type Value = Object<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| Object(Some(value)))
            }

            otherwise_default!(string number boolean null list);
        }

        deserializer.deserialize_any(AnyObject(PhantomData))
    }
}

/// The objects of a list; elements of another type are dropped, and so is anything but a list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut elements = Vec::new();
        each(|Object(element)| elements.extend(element)).deserialize(deserializer)?;
        Ok(Self(elements))
    }
}

/// A whole number, also from a text of digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Int(pub(super) Option<i64>);

impl Int {
    /// As a count: negative numbers are none.
    pub(super) fn count(self) -> u64 {
        self.0.and_then(|number| u64::try_from(number).ok()).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyInt;

        impl<'de> Visitor<'de> for AnyInt {
            type Value = Int;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a whole number")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Int, E> {
                Ok(Int(Some(number)))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Int, E> {
                Ok(Int(i64::try_from(number).ok()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Int, E> {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "checked to be whole and small"
                )]
                let whole = (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64);
                Ok(Int(whole))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Int, E> {
                Ok(Int(text.trim().parse().ok()))
            }

            otherwise_default!(boolean null list object);
        }

        deserializer.deserialize_any(AnyInt)
    }
}

/// `true`, `false`, or neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flag(pub(super) Option<bool>);

impl Flag {
    /// Whether it says `true`.
    pub(super) fn is_set(self) -> bool {
        self.0 == Some(true)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyFlag;

        impl<'de> Visitor<'de> for AnyFlag {
            type Value = Flag;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("true or false")
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Flag, E> {
                Ok(Flag(Some(value)))
            }

            otherwise_default!(string number null list object);
        }

        deserializer.deserialize_any(AnyFlag)
    }
}

/// Any JSON value as text: of a string what it says, of anything else its JSON. For arguments of
/// calls, which some agents write as JSON and some as JSON in a string.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Json(pub(super) Text<'static>);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(match raw.get() {
            "null" => Text::default(),
            text if text.starts_with('"') => string(text),
            json => Text::new(json).into_owned(),
        }))
    }
}

/// What a JSON string says. A raw value was not checked for lone surrogates.
fn string(json: &str) -> Text<'static> {
    let read = |json: &str| serde_json::from_str::<Text<'_>>(json).map(Text::into_owned);
    read(json).unwrap_or_else(|_| {
        let repaired = repair(json.as_bytes()).and_then(|bytes| String::from_utf8(bytes).ok());
        repaired.and_then(|json| read(&json).ok()).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_with_half_a_character_are_not_lost() {
        let Json(arguments) = serde_json::from_str(r#""{\"a\": \"\ud83d\"}""#).unwrap();
        assert_eq!(arguments.as_str(), "{\"a\": \"\u{fffd}\"}");
    }

    #[test]
    fn fields_of_another_type_are_as_good_as_none() {
        #[derive(Deserialize, Default, Debug, PartialEq)]
        #[serde(default)]
        struct Record {
            count: Int,
            flag: Flag,
            arguments: Json,
            list: List<Inner>,
            inner: Object<Inner>,
        }
        #[derive(Deserialize, Default, Debug, PartialEq)]
        #[serde(default)]
        struct Inner {
            a: Int,
        }
        let read = |json: &str| serde_json::from_str::<Record>(json).unwrap();
        let record = read(
            r#"{"count":"7","flag":true,"arguments":"{\"x\":1}","list":[1,{"a":2.0},"s"],"inner":{"a":3}}"#,
        );
        assert_eq!(record.count.count(), 7);
        assert!(record.flag.is_set());
        assert_eq!(record.arguments.0.as_str(), r#"{"x":1}"#);
        assert_eq!(record.list.0, [Inner { a: Int(Some(2)) }]);
        assert_eq!(record.inner.0, Some(Inner { a: Int(Some(3)) }));
        let odd =
            read(r#"{"count":[1],"flag":"yes","arguments":{"x":[2]},"list":"no","inner":null}"#);
        let expected = Record { arguments: Json(Text::new(r#"{"x":[2]}"#)), ..Record::default() };
        assert_eq!(odd, expected);
    }
}
