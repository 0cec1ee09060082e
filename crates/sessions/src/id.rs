//! Stores record ids as numbers.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Number;
use twox_hash::XxHash3_64;

use super::any_json::{AnyJson, deserialize_any_json};

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
