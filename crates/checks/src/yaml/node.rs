//! A tree of YAML values with source locations, deserialized through serde without validation.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_yaml::Spanned;

/// A YAML value whose members have locations.
pub(super) enum YamlNode {
    Scalar(Value),
    List(Vec<Spanned<YamlNode>>),
    Mapping(Vec<(Spanned<String>, Spanned<YamlNode>)>),
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl NodeVisitor {
    /// Converts a number to JSON, with integral floats as integers.
    fn float<E: serde::de::Error>(value: f64) -> Result<YamlNode, E> {
        #[expect(clippy::cast_possible_truncation, reason = "integral and within 2^53")]
        let number = if value.fract() == 0.0 && value.abs() < 9e15 {
            Some(Number::from(value as i64))
        } else {
            Number::from_f64(value)
        };
        let number = number.ok_or_else(|| E::custom("expected a finite number"))?;
        Ok(YamlNode::Scalar(Value::Number(number)))
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    #[expect(clippy::cast_precision_loss, reason = "far outside every range, exactness is moot")]
    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<YamlNode, E> {
        Self::float(value as f64)
    }
    #[expect(clippy::cast_precision_loss, reason = "far outside every range, exactness is moot")]
    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<YamlNode, E> {
        Self::float(value as f64)
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<YamlNode, E> {
        Self::float(value)
    }
    fn visit_str<E>(self, value: &str) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    fn visit_string<E>(self, value: String) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(value.into()))
    }
    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<YamlNode, E> {
        Err(E::custom("expected text, found binary data"))
    }
    fn visit_unit<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Value::Null))
    }
    fn visit_none<E>(self) -> Result<YamlNode, E> {
        Ok(YamlNode::Scalar(Value::Null))
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        YamlNode::deserialize(deserializer)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<YamlNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(YamlNode::List(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<YamlNode, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = access.next_entry()? {
            members.push(member);
        }
        Ok(YamlNode::Mapping(members))
    }
}
