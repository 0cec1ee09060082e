//! Whether a session is a person's task: the unit of all rates. Subagents, warm-ups and automatic
//! runs are linked and shown, and no rate counts them.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use selftest_sessions::Head;

/// Why a session was held.
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
    /// Another agent's order: part of a task.
    Subagent,
    /// The agent's program started it to fill a cache.
    WarmUp,
    /// A schedule started it.
    Automatic,
}

selftest_text::named!(SessionKind);

/// All that Claude Code says to a subagent that it warms up.
const WARM_UP: &str = "warmup";

/// How ids of sessions begin that a schedule of Hermes started.
const SCHEDULED: &str = "cron_";

impl SessionKind {
    /// The kind of a session: by its head, whether a subagent speaks in it, and its first request.
    pub(super) fn of(head: &Head, is_subagent: bool, request: &str) -> Self {
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
        let head = Head { id: id.to_owned(), ..Head::default() };
        SessionKind::of(&head, is_subagent, request)
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
