//! Tracks the user's turns by line number, and which of them were rolled back later.

use super::is_harness;
use super::record::RolloutPayload;

/// Starts of turns, and the lines that rollbacks removed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct UserTurns {
    /// First lines of the turns that were not rolled back.
    starts: Vec<u64>,
    /// Half-open line ranges of rolled-back turns, in order and without overlap.
    dropped: Vec<(u64, u64)>,
    /// Line of a task that started and has no user message yet.
    task: Option<u64>,
    /// Set if the model has worked since the last user message.
    has_worked: bool,
}

impl UserTurns {
    /// Adds a record.
    pub(super) fn record(&mut self, line: u64, kind: &str, payload: &RolloutPayload<'_>) {
        match (kind, payload.kind.as_str()) {
            ("event_msg", "task_started") => self.task = Some(line),
            ("event_msg", "thread_rolled_back") => self.roll_back(line, payload.num_turns.count()),
            ("event_msg", "user_message") => self.user(line),
            // Developer messages belong neither to the user nor to the model's work.
            ("response_item", _) if payload.role.as_str() == "developer" => {}
            ("response_item", _) if payload.role.as_str() != "user" => self.has_worked = true,
            ("response_item", _) if !is_harness(&payload.content.0) => self.user(line),
            _ => {}
        }
    }

    /// Starts a turn. The item and the event of one message start only one.
    fn user(&mut self, line: u64) {
        // The turn starts with its task, before the user message.
        if let Some(task) = self.task.take() {
            self.starts.push(task);
        } else if self.has_worked || self.starts.is_empty() {
            self.starts.push(line);
        }
        self.has_worked = false;
    }

    fn roll_back(&mut self, line: u64, turns: u64) {
        let kept = self.starts.len().saturating_sub(usize::try_from(turns).unwrap_or(usize::MAX));
        let Some(from) = self.starts.get(kept).copied() else { return };
        self.starts.truncate(kept);
        // A rollback can include turns around an earlier rollback; the new range covers it.
        while self.dropped.pop_if(|range| range.0 >= from).is_some() {}
        self.dropped.push((from, line));
        self.has_worked = true;
    }

    /// Returns true if a line belongs to a turn that was rolled back.
    pub(super) fn is_dropped(&self, line: u64) -> bool {
        let next = self.dropped.partition_point(|range| range.0 <= line);
        next > 0 && line < self.dropped[next - 1].1
    }

    /// Returns true if both contain the same rollbacks.
    pub(super) fn same_rollbacks(&self, other: &Self) -> bool {
        self.dropped == other.dropped
    }
}
