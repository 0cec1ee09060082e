//! Ids of records as numbers.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Number;
use twox_hash::XxHash3_64;

use super::any_json::{AnyJson, deserialize_any_json};

/// An id as a number: ids are only compared, and a large file has many. 0 stands for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Id(u64);

impl Id {
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// This one, or where there is none, the other.
    pub(super) fn or(self, other: Id) -> Id {
        if self.is_none() { other } else { self }
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Id::default();
        }
        Id(XxHash3_64::oneshot(text.as_bytes()).max(1))
    }
}

/// Something about each record. An id is a hash already, so that a quick hasher does.
pub(super) type ById<T> = HashMap<Id, T, foldhash::fast::RandomState>;

/// A set of ids.
pub(super) type Ids = HashSet<Id, foldhash::fast::RandomState>;

deserialize_any_json!(Id);

impl AnyJson<'_> for Id {
    fn string(&mut self, text: Cow<'_, str>) {
        *self = Id::from(&*text);
    }

    fn number(&mut self, number: &Number) {
        *self = Id::from(&*number.to_string());
    }
}
