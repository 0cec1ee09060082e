//! Determines which turns of a rollout count: those that the user rolled back later do not, nor
//! does the copied history at the start of forks and subagents, which includes their parent's meta
//! record.
//!
//! All copies have new timestamps, close to the moment of the fork. In newer files, records have
//! turn ids (UUID v7, which start with a time), and the first turn younger than the session is its
//! own. In older files, the first record after a pause is.

use jiff::{SignedDuration, Timestamp};

use super::{RolloutPayload, is_harness};
use crate::time::Moment;

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
        // Two messages without any work between them are one turn, as the item and the event are.
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

/// Minimum time between two records that marks the end of the copy.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// The copied history at the start of a rollout.
#[derive(Default)]
pub(super) struct CopiedHistory {
    has_started: bool,
    is_active: bool,
    parent: Option<String>,
    /// Creation time of this session.
    created: Option<Timestamp>,
    /// Time of the last record of the copy.
    last: Option<Timestamp>,
}

impl CopiedHistory {
    /// Reads the session's own meta record.
    pub(super) fn read_meta(&mut self, meta: &RolloutPayload<'_>, time: Moment) {
        self.has_started = true;
        // A subagent names its parent only in `source`, which is JSON in this case.
        let spawned_by = || {
            let (_, rest) = meta.source.0.split_once("\"parent_thread_id\"")?;
            rest.split('"').nth(1)
        };
        let named = [meta.forked_from_id.as_str(), meta.parent_thread_id.as_str()];
        let parent = named.into_iter().find(|id| !id.is_empty()).or_else(spawned_by);
        self.parent = parent.map(|id| selftest_text::one_line(id, 200));
        // Without this id, a copy is recognised later by its own meta record.
        self.is_active = !meta.forked_from_id.is_empty();
        self.created = uuid_time(&meta.id).or(meta.timestamp.0).or(time.0);
        self.last = time.0;
    }

    /// Returns true if the session's own meta record was read.
    pub(super) fn has_started(&self) -> bool {
        self.has_started
    }

    /// Reads a second meta record at the start, which means that a copy follows.
    pub(super) fn read_parent(&mut self, meta: &RolloutPayload<'_>) {
        self.is_active = true;
        if self.parent.is_none() && !meta.id.is_empty() {
            self.parent = Some(selftest_text::one_line(&meta.id, 200));
        }
    }

    /// Returns the id of the session that this one comes from.
    pub(super) fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// Returns true if a record belongs to the copy.
    pub(super) fn is_copy(
        &mut self,
        kind: &str,
        payload: &RolloutPayload<'_>,
        time: Moment,
    ) -> bool {
        if !self.is_active {
            return false;
        }
        let begins_turn = kind == "turn_context" || payload.kind.as_str() == "task_started";
        let turn = uuid_time(&payload.turn_id).filter(|_| begins_turn);
        let is_own = match (turn, time.0) {
            // Turns of the parent are older than this session.
            (Some(turn), _) => self.created.is_some_and(|made| turn >= made),
            (None, Some(now)) => {
                // Times may not be in order, so compare with the latest one.
                let last = self.last.replace(self.last.map_or(now, |last| last.max(now)));
                last.is_some_and(|last| now.duration_since(last) > PAUSE)
            }
            // Without any time, the record counts as copied like those before it.
            (None, None) => false,
        };
        self.is_active = !is_own;
        self.is_active
    }
}

/// Returns the creation time of a version 7 UUID.
fn uuid_time(id: &str) -> Option<Timestamp> {
    let bytes = id.as_bytes();
    if bytes.len() != 36 || bytes[8] != b'-' || bytes[13] != b'-' || bytes[14] != b'7' {
        return None;
    }
    let digits = format!("{}{}", id.get(..8)?, id.get(9..13)?);
    Timestamp::from_millisecond(i64::from_str_radix(&digits, 16).ok()?).ok()
}
