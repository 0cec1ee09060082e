//! Determines which records belong to the session's current branch. Rewinds and retries leave
//! branches behind in the file, and resumed sessions start with copies. Only ids matter here, not
//! text.

use std::collections::HashSet;

use crate::wire::{ById, Ids, RecordId};

/// Role of a record in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkKind {
    /// A model's answer or a user's message. Two of these with the same parent are a fork.
    Turn,
    /// Results, notices, hooks and attachments, of which a record may have any number. Each
    /// parallel result has the line of its own call as parent.
    Attached,
    /// Record of a subagent inside the file, with a chain of its own.
    Subagent,
}

/// The fields of a record that the tree needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordLink {
    pub(super) uuid: RecordId,
    pub(super) parent: RecordId,
    /// API message of an assistant record, which may span several lines.
    pub(super) message: RecordId,
    pub(super) kind: LinkKind,
    /// Marked as a copy when a session was branched into its own file.
    pub(super) is_copy: bool,
    /// True if the record's session is not the one that the file is named after.
    pub(super) is_foreign: bool,
    /// Time in milliseconds since 1970.
    pub(super) time: Option<i64>,
}

struct RecordNode {
    parent: Option<u32>,
    message: RecordId,
    kind: LinkKind,
    is_copy: bool,
    is_foreign: bool,
    is_replay: bool,
    time: Option<i64>,
}

/// The records of a file that have an id, in order. Each takes about 60 bytes.
#[derive(Default)]
pub(super) struct RecordTree {
    nodes: Vec<RecordNode>,
    places: ById<u32>,
    last_main: Option<u32>,
    last_firm: Option<u32>,
}

impl RecordTree {
    /// Adds a record. Returns `false` if it repeats an earlier one.
    pub(super) fn add(&mut self, link: &RecordLink) -> bool {
        let Ok(place) = u32::try_from(self.nodes.len()) else { return true };
        let known = |id: &RecordId| self.places.get(id).copied();
        let earlier = known(&link.uuid).map(|earlier| &self.nodes[earlier as usize]);
        // A repeated id with another time is a different record, not a copy.
        let is_replay = earlier.is_some_and(|node| link.time.is_some() && node.time == link.time);
        // Roots (after a compaction or in a concatenated file) continue the record before them.
        let is_main = |place: &u32| self.nodes[*place as usize].kind != LinkKind::Subagent;
        let parent = known(&link.parent).filter(is_main).or(self.last_main);
        let RecordLink { message, kind, is_copy, is_foreign, time, .. } = *link;
        self.nodes.push(RecordNode { parent, message, kind, is_copy, is_foreign, is_replay, time });
        if is_replay {
            return false;
        }
        self.places.insert(link.uuid, place);
        if kind != LinkKind::Subagent {
            self.last_main = Some(place);
        }
        if kind == LinkKind::Turn {
            self.last_firm = Some(place);
        }
        true
    }

    /// Returns the records to leave out; `None` if the file contains nothing else.
    ///
    /// The chain from the last firm record to the first one is kept, with every line of its API
    /// messages and everything attached to kept records. Copies are left out as soon as the file
    /// has content of its own, because they are in their original file too.
    pub(super) fn into_filter(self) -> Option<RecordFilter> {
        let nodes = &self.nodes;
        let node = |place: u32| &nodes[place as usize];
        let mut kept = vec![false; nodes.len()];
        let mut messages = Ids::default();
        // Next record on the chain, by parent.
        let mut after = vec![None; nodes.len()];
        // Late notices must not move the end of the branch.
        let mut next = self.last_firm.or(self.last_main);
        // The check for kept records also ends cycles.
        while let Some(place) = next.filter(|place| !kept[*place as usize]) {
            kept[place as usize] = true;
            if let Some(parent) = node(place).parent {
                after[parent as usize] = Some(place);
            }
            // All lines of an API message belong to the chain, even if it passes through only one
            // of them.
            if !node(place).message.is_none() {
                messages.insert(node(place).message);
            }
            next = node(place).parent;
        }
        let has_new = nodes.iter().any(|node| node.kind == LinkKind::Turn && !node.is_copy);
        for (place, node) in nodes.iter().enumerate() {
            let hangs = node.kind == LinkKind::Attached
                && node.parent.is_none_or(|parent| kept[parent as usize]);
            // Subagent records form chains of their own and always stay.
            kept[place] |=
                hangs || node.kind == LinkKind::Subagent || messages.contains(&node.message);
        }
        for place in find_concurrent(nodes, &kept, &after) {
            kept[place] = true;
        }
        // Copies come before the session's own records.
        let own_begins =
            nodes.iter().position(|node| node.kind == LinkKind::Turn && !node.is_foreign);
        let is_elsewhere = |place: usize, node: &RecordNode| {
            let is_before = own_begins.is_some_and(|own| place < own);
            (node.is_copy && has_new) || (node.is_foreign && is_before)
        };
        // A user's message that was abandoned although its parent was kept.
        // A record that merely moved to another file, or that was written twice, is no rewind.
        let is_rewind = |(place, node): &(usize, &RecordNode)| {
            let is_person = node.kind == LinkKind::Turn && node.message.is_none();
            let is_gone = !kept[*place] && !node.is_replay && !is_elsewhere(*place, node);
            is_person && is_gone && node.parent.is_some_and(|parent| kept[parent as usize])
        };
        let rewinds = nodes.iter().enumerate().filter(is_rewind).count() as u64;
        for (place, node) in nodes.iter().enumerate() {
            kept[place] &= !node.is_replay && !is_elsewhere(place, node);
        }
        let found = kept.iter().zip(nodes).any(|(kept, node)| !kept && !node.is_replay);
        found.then_some(RecordFilter { kept, next: 0, rewinds })
    }
}

/// Finds branches that were still written to after the chain continued elsewhere. The user did not
/// go back there; another agent wrote them at the same time.
fn find_concurrent(nodes: &[RecordNode], kept: &[bool], after: &[Option<u32>]) -> Vec<usize> {
    // Start of the branch of each record that is not kept. Parents come before children.
    let mut begins: Vec<Option<u32>> = vec![None; nodes.len()];
    let mut written = HashSet::new();
    for (place, node) in (0_u32..).zip(nodes) {
        if kept[place as usize] || node.is_replay {
            continue;
        }
        let Some(parent) = node.parent else { continue };
        let begin =
            // The parent has a smaller index, so that its own branch is known by now.
            if kept[parent as usize] { place } else { begins[parent as usize].unwrap_or(place) };
        begins[place as usize] = Some(begin);
        let fork = nodes[begin as usize].parent.and_then(|fork| after[fork as usize]);
        // Written after the chain had already continued from the same fork.
        if node.kind == LinkKind::Turn && fork.is_some_and(|other| other < place) {
            written.insert(begin);
        }
    }
    let is_written = |begin: &Option<u32>| begin.is_some_and(|begin| written.contains(&begin));
    (0..nodes.len()).filter(|place| is_written(&begins[*place])).collect()
}

/// The records to skip when the file is read again.
pub(super) struct RecordFilter {
    kept: Vec<bool>,
    next: usize,
    rewinds: u64,
}

impl RecordFilter {
    /// Returns the number of times the user went back to an earlier message and continued from
    /// there.
    pub(super) fn rewinds(&self) -> u64 {
        self.rewinds
    }

    /// Returns true if the next record with an id belongs to the session. Records written since the
    /// first pass do.
    pub(super) fn should_keep_next(&mut self) -> bool {
        // The file may grow between the passes, while the agent is still running.
        let keep = self.kept.get(self.next).copied().unwrap_or(true);
        self.next += 1;
        keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree of records as `uuid parent kind[message]`, and which of them are new.
    fn tree(records: &[&str]) -> (RecordTree, Vec<bool>) {
        let mut tree = RecordTree::default();
        let mut first_time = Vec::new();
        for record in records {
            let words: Vec<&str> = record.split(' ').collect();
            let kind = match words[2].as_bytes()[0] {
                b'F' => LinkKind::Turn,
                b'H' => LinkKind::Attached,
                _ => LinkKind::Subagent,
            };
            first_time.push(tree.add(&RecordLink {
                uuid: RecordId::from(words[0]),
                parent: RecordId::from(words[1].trim_matches('-')),
                message: RecordId::from(&words[2][1..]),
                kind,
                is_copy: words.contains(&"copy"),
                is_foreign: words.contains(&"foreign"),
                time: words.contains(&"timed").then_some(7),
            }));
        }
        (tree, first_time)
    }

    /// Which records stay.
    fn kept(records: &[&str]) -> String {
        let (tree, first_time) = tree(records);
        let mut leftovers = tree.into_filter();
        let kept = records.iter().zip(first_time).filter(|(_, first_time)| {
            leftovers.as_mut().map_or(*first_time, RecordFilter::should_keep_next)
        });
        kept.map(|(record, _)| &record[..1]).collect()
    }

    #[test]
    fn a_rewind_leaves_its_branch_behind() {
        assert_eq!(
            kept(&["a - F", "b a F1", "c b F", "d c F2", "e d H", "f b F", "g f F3"]),
            "abfg"
        );
        assert_eq!(kept(&["a - F", "b a F1", "c a F2"]), "ac");
    }

    #[test]
    fn a_person_going_back_is_counted_and_a_retry_is_not() {
        let rewinds = |records: &[&str]| tree(records).0.into_filter().map(|left| left.rewinds());
        let twice = ["a - F", "b a F1", "c b F", "d c F2", "e d F", "f b F", "g b F", "h g F3"];
        assert_eq!(rewinds(&twice), Some(2), "what followed the first branch is part of it");
        assert_eq!(rewinds(&["a - F", "b a F1", "c a F2"]), Some(0));
        assert_eq!(rewinds(&["a - F copy", "b a F1 copy", "c b F", "d c F2"]), Some(0));
        assert_eq!(rewinds(&["a - F", "b a F1", "c b F"]), None);
    }

    #[test]
    fn parallel_calls_and_their_results_stay_together() {
        // The chain goes through the last result only, or through the first line only.
        let calls = ["u - F", "a u F1", "b a F1", "s b H", "r a H"];
        assert_eq!(kept(&[&calls[..], &["z s F2"]].concat()), "uabsrz");
        assert_eq!(kept(&[&calls[..], &["z r F2"]].concat()), "uabsrz");
        assert_eq!(kept(&calls), "uabsr");
    }

    #[test]
    fn roots_go_on_from_what_stands_before_them() {
        assert_eq!(kept(&["a - F", "b a F1", "c - H", "d c H", "e d F", "f e F2"]), "abcdef");
        assert_eq!(kept(&["a - F", "b - F1", "c gone F"]), "abc");
        assert_eq!(kept(&["a - F", "b a F1", "x - A", "y x A", "z a A", "c b F"]), "abxyzc");
    }

    #[test]
    fn a_late_notice_does_not_move_the_end() {
        assert_eq!(kept(&["a - F", "b a F1", "c b F", "d c F2", "n a H"]), "abcdn");
    }

    #[test]
    fn copies_and_repeats_are_left_out() {
        assert_eq!(kept(&["a - F copy", "b a F1 copy", "c b F", "d c F2"]), "cd");
        assert_eq!(kept(&["a - F copy", "b a F1 copy"]), "ab");
        assert_eq!(kept(&["a - F foreign", "b a F1 foreign", "c b F", "d c F2"]), "cd");
        assert_eq!(kept(&["a - F foreign", "b a F1 foreign"]), "ab");
        assert_eq!(kept(&["a - F timed", "b a F1", "a - F timed", "d b F2"]), "abd");
    }

    #[test]
    fn what_two_agents_write_at_the_same_time_stays() {
        // Two beginnings, line by line.
        assert_eq!(kept(&["a - F", "b - F", "c a F1", "d b F2", "e c H", "f d H"]), "abcdef");
        // Two that go on from one record.
        assert_eq!(kept(&["a - F", "b a F1", "c b F", "x b F", "d c F2", "y x F3"]), "abcxdy");
        // Another session's lines among those of the file's own.
        assert_eq!(kept(&["a - F", "b - F foreign", "c a F1", "d b F2 foreign"]), "abcd");
        // A result that comes late keeps no branch.
        assert_eq!(
            kept(&["a - F", "b a F1", "c b F", "d c F2", "f b F", "e d H", "g f F3"]),
            "abfg"
        );
    }

    #[test]
    fn circles_end() {
        assert_eq!(kept(&["a a F", "b b F", "a b F", "b a F"]), "abab");
    }
}
