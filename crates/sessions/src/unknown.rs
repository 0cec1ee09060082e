//! Counts of what a reader met and did not understand, by type: nothing of a session is left out
//! without a word.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Types that are told apart; a foreign file may make up any number of them.
const MAX_TYPES: usize = 20;

/// Bytes of the name of a type.
const MAX_NAME: usize = 60;

/// Stands for all types beyond [`MAX_TYPES`].
const OTHERS: &str = "others";

/// Types that are named for a person.
const MAX_NAMED: usize = 5;

/// How often blocks of each type were met that no reader understands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unknown(BTreeMap<String, u64>);

impl Unknown {
    /// Counts a block. Its type comes from the file.
    pub fn note(&mut self, kind: &str) {
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
        let is_full = self.0.len() >= MAX_TYPES && !self.0.contains_key(kind);
        let counted = self.0.entry(if is_full { OTHERS } else { kind }.to_owned()).or_default();
        *counted = counted.saturating_add(count);
    }

    /// Whether all was understood.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All blocks.
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |total, count| total.saturating_add(*count))
    }

    /// Each type and how often it was met, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(kind, count)| (kind.as_str(), *count))
    }

    /// Describes them for a person; `None` where there are none.
    pub fn words(&self) -> Option<String> {
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
        let mut unknown = Unknown::default();
        assert_eq!(unknown.words(), None);
        for number in 0..100 {
            unknown.note(&format!("type {}", number % 50));
        }
        unknown.note("");
        assert_eq!((unknown.total(), unknown.counts().count()), (101, MAX_TYPES + 1));
        let mut two = Unknown::default();
        two.note("hologram\n");
        two.add(&two.clone());
        assert_eq!(two.words().unwrap(), "2 blocks not understood (2 hologram)");
    }
}
