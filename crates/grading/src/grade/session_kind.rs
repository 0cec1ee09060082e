//! Classifies sessions. Rates count only a person's tasks; subagents, warm-ups and automatic runs
//! are linked and shown, but not counted.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use selftest_sessions::SessionHead;

/// Purpose of a session.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum SessionKind {
    /// A person's task.
    #[default]
    Task,
    /// Started by another agent, as part of a task.
    Subagent,
    /// Started by the agent's program to fill a cache.
    WarmUp,
    /// Started by a schedule.
    Automatic,
}

selftest_text::named!(SessionKind);

/// The entire request that Claude Code sends to warm up a subagent.
const WARM_UP: &str = "warmup";

/// ID prefix of sessions started by a Hermes schedule.
const SCHEDULED: &str = "cron_";

impl SessionKind {
    /// Determines the kind of a session from its head, its first request, and the presence of a
    /// subagent.
    pub(super) fn classify(head: &SessionHead, is_subagent: bool, request: &str) -> Self {
        let request = request.trim().trim_end_matches(['.', '!']);
        if request.eq_ignore_ascii_case(WARM_UP) {
            SessionKind::WarmUp
        } else if is_subagent || head.id.contains("/agent-") {
            SessionKind::Subagent
        } else if head.id.starts_with(SCHEDULED) || head.platform.as_deref() == Some("cron") {
            SessionKind::Automatic
        } else {
            SessionKind::Task
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(id: &str, is_subagent: bool, request: &str) -> SessionKind {
        let head = SessionHead { id: id.to_owned(), ..SessionHead::default() };
        SessionKind::classify(&head, is_subagent, request)
    }

    #[test]
    fn kinds_by_id_speaker_and_request() {
        assert_eq!(kind("s", false, "fix it"), SessionKind::Task);
        assert_eq!(kind("s", true, "look for it"), SessionKind::Subagent);
        assert_eq!(kind("s/agent-1", false, "look for it"), SessionKind::Subagent);
        assert_eq!(kind("s/agent-1", true, "Warmup"), SessionKind::WarmUp);
        assert_eq!(kind("s", false, "warmup the cache at start"), SessionKind::Task);
        assert_eq!(kind("cron_daily_20260101_000000", false, "news"), SessionKind::Automatic);
    }
}
