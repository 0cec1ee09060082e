//! Strict parsing of a model's reply: one JSON object with unique keys that satisfies its schema.
//! Nothing is repaired, guessed or defaulted, but for a byte order mark and escapes that no string
//! can hold.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use selftest_schema::{Schema, SchemaError};
use selftest_text::normal::readable_json;

/// Maximum size in bytes of a reply.
const MAX_REPLY: usize = 64 * 1024;

/// A reply without a verdict; the variant determines if asking again may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyError {
    /// The reply is invalid, with error messages for the judge.
    Malformed(Vec<String>),
    /// The judge declined in prose.
    Refused(String),
}

impl ReplyError {
    /// Creates a malformed error with one message.
    pub fn malformed(fault: impl Into<String>) -> Self {
        ReplyError::Malformed(vec![fault.into()])
    }
}

/// Parses replies according to one schema, compiled once.
pub struct StrictReader(Schema);

impl StrictReader {
    /// Creates a reader for a schema built and tested by the caller.
    pub fn new(schema: &Value) -> Self {
        Self(Schema::compile(schema).expect("schemas of replies are built from constants"))
    }

    /// Parses a complete reply into an object.
    pub fn read(&self, reply: &str) -> Result<Value, ReplyError> {
        let readable = readable_json(reply.trim());
        let trimmed = readable.text.trim();
        if trimmed.is_empty() {
            return Err(ReplyError::malformed("the reply is empty"));
        }
        if trimmed.len() > MAX_REPLY {
            return Err(ReplyError::malformed(format!("the reply is over {MAX_REPLY} bytes")));
        }
        let UniqueObject(object) = serde_json::from_str(trimmed).map_err(|error| {
            // Only prose can be a refusal; anything that looks like JSON is malformed.
            if !trimmed.starts_with(['{', '[', '`', '<', '"']) && REFUSAL.is_match(trimmed) {
                return ReplyError::Refused(selftest_text::one_line(trimmed, 200));
            }
            ReplyError::malformed(format!("not one JSON object: {error}"))
        })?;
        let value = Value::Object(object);
        let faults: Vec<String> =
            self.0.errors(&value).map(|fault| describe_fault(&fault)).collect();
        if faults.is_empty() { Ok(value) } else { Err(ReplyError::Malformed(faults)) }
    }
}

static REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\W*(i['’]?m (really |very )?sorry|i am sorry|sorry,? (but )?i|i can(no|['’])t|i can ?not|i(['’]m| am) (unable|not able)|i (must|have to) (decline|refuse)|i won['’]t|as an ai\b|unfortunately,? i)",
    )
    .expect("the pattern is a constant that a test uses")
});

/// Formats an error message that a judge can act on.
fn describe_fault(fault: &SchemaError) -> String {
    // Clipped, because long enums and untrusted values make long messages.
    let words = selftest_text::one_line(&fault.message, 300);
    if fault.pointer.is_empty() { words } else { format!("{}: {words}", fault.pointer) }
}

/// A JSON object with unique keys at every depth: `serde_json` would keep the last of two scores.
struct UniqueObject(Map<String, Value>);

impl<'de> Deserialize<'de> for UniqueObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyObject;
        impl<'de> Visitor<'de> for AnyObject {
            type Value = UniqueObject;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<UniqueObject, A::Error> {
                let mut map = Map::new();
                while let Some((key, UniqueValue(value))) =
                    access.next_entry::<String, UniqueValue>()?
                {
                    if map.contains_key(&key) {
                        let key = selftest_text::one_line(&key, 60);
                        return Err(serde::de::Error::custom(format!(
                            "the key `{key}` stands twice"
                        )));
                    }
                    map.insert(key, value);
                }
                Ok(UniqueObject(map))
            }
        }
        deserializer.deserialize_map(AnyObject)
    }
}

/// Any JSON value whose objects are [`UniqueObject`]s.
struct UniqueValue(Value);

impl<'de> Deserialize<'de> for UniqueValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;
        impl<'de> Visitor<'de> for AnyValue {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
                let mut values = Vec::new();
                while let Some(UniqueValue(value)) = list.next_element()? {
                    values.push(value);
                }
                Ok(values.into())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                UniqueObject::deserialize(map).map(|UniqueObject(map)| Value::Object(map))
            }
        }
        deserializer.deserialize_any(AnyValue).map(UniqueValue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(reply: &str) -> Result<Value, ReplyError> {
        StrictReader::new(&json!({ "type": "object" })).read(reply)
    }

    #[test]
    fn keys_are_unique_at_every_depth() {
        for twice in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"x": {"a": 1, "a": 2}}"#,
            r#"{"x": [1, {"y": {"a": null, "b": 0, "a": null}}]}"#,
        ] {
            let Err(ReplyError::Malformed(faults)) = read(twice) else { panic!("{twice}") };
            assert!(faults[0].contains("the key `a` stands twice"), "{faults:?}");
        }
        assert!(read(r#"{"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]}"#).is_ok());
    }

    proptest! {
        #[test]
        fn values_are_read_as_serde_json_does(
            text in "[a-zé\\\\\"\n]{0,8}",
            number in any::<f64>(),
            whole in any::<i64>(),
            flag in any::<bool>(),
        ) {
            let value = json!({ "t": text, "n": [number, whole, flag, null], "o": { "p": {} } });
            prop_assert_eq!(read(&value.to_string()), Ok(value));
        }
    }
}
