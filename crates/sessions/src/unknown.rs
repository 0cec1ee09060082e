//! Counts unknown blocks by type, so that no part of a session is dropped silently.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of distinct types, because an untrusted file may make up any number of them.
const MAX_TYPES: usize = 20;

/// Maximum bytes of a type's name.
const MAX_NAME: usize = 60;

/// Name for all types beyond [`MAX_TYPES`].
const OTHERS: &str = "others";

/// Maximum number of types listed for display.
const MAX_NAMED: usize = 5;

/// Number of unknown blocks by type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnknownBlocks(BTreeMap<String, u64>);

impl UnknownBlocks {
    /// Counts a block. The type comes from the file and is shortened.
    pub fn count_block(&mut self, kind: &str) {
        self.add_count(&selftest_text::one_line(kind, MAX_NAME), 1);
    }

    /// Adds the counts of another session.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.0 {
            self.add_count(kind, *count);
        }
    }

    fn add_count(&mut self, kind: &str, count: u64) {
        let kind = if kind.is_empty() { "without a type" } else { kind };
        // Types that are already counted stay distinct when the map is full.
        let is_full = self.0.len() >= MAX_TYPES && !self.0.contains_key(kind);
        let counted = self.0.entry(if is_full { OTHERS } else { kind }.to_owned()).or_default();
        *counted = counted.saturating_add(count);
    }

    /// Returns true if there are no unknown blocks.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the total number of blocks.
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |total, count| total.saturating_add(*count))
    }

    /// Iterates over types and counts, sorted by type.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(kind, count)| (kind.as_str(), *count))
    }

    /// Describes the counts for display; `None` if all are zero.
    pub fn describe(&self) -> Option<String> {
        let mut counts: Vec<_> = self.counts().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut named: Vec<String> =
            counts.iter().take(MAX_NAMED).map(|(kind, count)| format!("{count} {kind}")).collect();
        if counts.len() > MAX_NAMED {
            named.push("…".to_owned());
        }
        let blocks =
            if self.total() == 1 { "1 block" } else { &format!("{} blocks", self.total()) };
        (!named.is_empty()).then(|| format!("{blocks} not understood ({})", named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_cannot_make_up_more_types_than_are_told_apart() {
        let mut unknown = UnknownBlocks::default();
        assert_eq!(unknown.describe(), None);
        for number in 0..100 {
            unknown.count_block(&format!("type {}", number % 50));
        }
        unknown.count_block("");
        assert_eq!((unknown.total(), unknown.counts().count()), (101, MAX_TYPES + 1));
        let mut two = UnknownBlocks::default();
        two.count_block("hologram\n");
        two.add(&two.clone());
        assert_eq!(two.describe().unwrap(), "2 blocks not understood (2 hologram)");
    }
}
