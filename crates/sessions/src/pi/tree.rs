//! Builds the tree of entries and finds the branch of the last one.

use std::collections::HashMap;

use super::record::Entry;
use crate::id::Id;

/// Parent of an entry.
#[derive(Clone, Copy)]
enum Parent {
    /// None: the entry starts a conversation.
    Root,
    /// The preceding entry in the file: in version 1, or if the parent is lost.
    Previous,
    /// The entry with this number.
    Entry(usize),
}

/// All entries in file order.
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
            // A second root starts another conversation.
            Parent::Root => number > 0,
            Parent::Previous => false,
            // Not the preceding entry, so something was left behind in between.
            Parent::Entry(parent) => parent + 1 != number,
        };
        self.parents.push(parent);
        if !entry.id.is_empty() {
            self.numbers.insert(Id::from(&*entry.id), number);
        }
    }

    /// Returns a flag per entry that is true on the branch of the last one; `None` if there is no
    /// fork.
    pub(super) fn branch(&self) -> Option<Vec<bool>> {
        if !self.forks {
            return None;
        }
        let mut kept = vec![false; self.parents.len()];
        let mut at = self.parents.len().checked_sub(1);
        while let Some(number) = at {
            kept[number] = true;
            // The parent is always an earlier entry, so the loop ends.
            at = match self.parents[number] {
                Parent::Root => None,
                Parent::Previous => number.checked_sub(1),
                Parent::Entry(parent) => Some(parent),
            };
        }
        Some(kept)
    }
}
