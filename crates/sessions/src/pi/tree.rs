//! Builds the tree of entries and finds the branch of the last one.

use std::collections::HashMap;

use super::record::PiEntry;
use crate::id::RecordId;

/// Parent of an entry.
#[derive(Clone, Copy)]
enum EntryParent {
    /// None: the entry starts a conversation.
    Root,
    /// The preceding entry in the file: in version 1, or if the parent is lost.
    Previous,
    /// The entry with this number.
    Entry(usize),
}

/// All entries in file order.
#[derive(Default)]
pub(super) struct EntryTree {
    parents: Vec<EntryParent>,
    numbers: HashMap<RecordId, usize>,
    has_fork: bool,
}

impl EntryTree {
    /// Adds the next entry.
    pub(super) fn add(&mut self, entry: &PiEntry<'_>) {
        let number = self.parents.len();
        let parent = match &entry.parent_id {
            parent if !parent.is_present => EntryParent::Previous,
            parent if parent.id.is_empty() => EntryParent::Root,
            parent => self
                .numbers
                .get(&RecordId::from(&*parent.id))
                .map_or(EntryParent::Previous, |at| EntryParent::Entry(*at)),
        };
        self.has_fork |= match parent {
            // A second root starts another conversation.
            EntryParent::Root => number > 0,
            EntryParent::Previous => false,
            // Not the preceding entry, so something was left behind in between.
            EntryParent::Entry(parent) => parent + 1 != number,
        };
        self.parents.push(parent);
        if !entry.id.is_empty() {
            self.numbers.insert(RecordId::from(&*entry.id), number);
        }
    }

    /// Returns a flag per entry that is true on the branch of the last one; `None` if there is no
    /// fork.
    pub(super) fn branch(&self) -> Option<Vec<bool>> {
        if !self.has_fork {
            return None;
        }
        let mut kept = vec![false; self.parents.len()];
        let mut at = self.parents.len().checked_sub(1);
        while let Some(number) = at {
            kept[number] = true;
            // The parent is always an earlier entry, so the loop ends.
            at = match self.parents[number] {
                EntryParent::Root => None,
                EntryParent::Previous => number.checked_sub(1),
                EntryParent::Entry(parent) => Some(parent),
            };
        }
        Some(kept)
    }
}
