//! The tree of entries, and which of them lie on the branch of the last one.

use std::collections::HashMap;

use super::record::Entry;
use crate::id::Id;

/// To what an entry is attached.
#[derive(Clone, Copy)]
enum Parent {
    /// Nothing: it begins a conversation.
    Root,
    /// The entry before it in the file: version 1, or a parent that was lost.
    Previous,
    /// That entry.
    Entry(usize),
}

/// All entries in the order of the file.
#[derive(Default)]
pub(super) struct Tree {
    parents: Vec<Parent>,
    numbers: HashMap<Id, usize>,
    forks: bool,
}

impl Tree {
    /// Adds the next entry.
    pub(super) fn add(&mut self, entry: &Entry<'_>) {
        let number = self.parents.len();
        let parent = match &entry.parent_id {
            parent if !parent.is_there => Parent::Previous,
            parent if parent.id.is_empty() => Parent::Root,
            parent => self
                .numbers
                .get(&Id::from(&*parent.id))
                .map_or(Parent::Previous, |at| Parent::Entry(*at)),
        };
        self.forks |= match parent {
            Parent::Root => number > 0,
            Parent::Previous => false,
            Parent::Entry(parent) => parent + 1 != number,
        };
        self.parents.push(parent);
        if !entry.id.is_empty() {
            self.numbers.insert(Id::from(&*entry.id), number);
        }
    }

    /// For each entry whether it lies on the branch of the last one; `None` when all do.
    pub(super) fn branch(&self) -> Option<Vec<bool>> {
        if !self.forks {
            return None;
        }
        let mut kept = vec![false; self.parents.len()];
        let mut at = self.parents.len().checked_sub(1);
        while let Some(number) = at {
            kept[number] = true;
            // Always an earlier entry, so that this ends.
            at = match self.parents[number] {
                Parent::Root => None,
                Parent::Previous => number.checked_sub(1),
                Parent::Entry(parent) => Some(parent),
            };
        }
        Some(kept)
    }
}
