//! Finds the end of the copied history in rollouts of forks and subagents, which start with a copy
//! of their parent, including its meta record.
//!
//! All copies have new timestamps, close to the moment of the fork. In newer files, records have
//! turn ids (UUID v7, which start with a time), and the first turn younger than the session is its
//! own. In older files, the first record after a pause is.

use jiff::{SignedDuration, Timestamp};

use super::record::RolloutPayload;
use crate::time::Moment;

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
