//! Splits a session into items for display, one for each text, call and result, and ranks them.

use std::collections::HashMap;

use super::arguments::format_arguments;
use super::signals::{CallKind, call_kind, is_feedback};
use crate::{Event, EventMark, EventOrigin, EventRole, Session, ToolOutcome, ToolResult};

/// Number of first and last user prompts that are always shown, space permitting
/// (docs/spec/session-quality.md#transcript).
const OUTER_PROMPTS: usize = 5;
/// Number of last results that belong to the outcome.
const LAST_RESULTS: usize = 3;

/// Kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Prompt,
    Answer,
    Call,
    Result,
    /// An interruption, a compaction, or a provider failure.
    Notice,
}

/// Importance of an item, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ItemTier {
    /// The first and last prompts and the outcome.
    Outer,
    /// Reverts, thanks, complaints, interruptions.
    UserFeedback,
    /// Failed and refused calls.
    Error,
    /// Edits, tests, and calls that failed.
    Key,
    /// Other prompts.
    Prompt,
    /// Other answers.
    Answer,
    /// Everything else.
    Other,
}

/// One thing that can be shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct TranscriptItem {
    /// Index of the event in the session.
    pub(super) event: usize,
    /// Index among the calls or results of the event.
    pub(super) part: usize,
    pub(super) kind: ItemKind,
    pub(super) tier: ItemTier,
    /// Relative share of the room.
    pub(super) weight: usize,
}

/// Returns all items in the session's order.
pub(super) fn collect_items(session: &Session) -> Vec<TranscriptItem> {
    let mut items = Vec::new();
    let prompter = PromptSource::of(session);
    // Maps each call id to its item and a flag for test runs.
    let mut calls: HashMap<&str, (usize, bool)> = HashMap::new();
    for (event, what) in session.events.iter().enumerate() {
        // The model that reads the transcript has to judge for itself.
        if what.mark.is_some_and(EventMark::is_verdict) {
            continue;
        }
        let mut add = |part, kind, tier| {
            items.push(TranscriptItem { event, part, kind, tier, weight: weight(kind, tier) });
            items.len() - 1
        };
        if let Some((kind, tier)) = classify_text(what, prompter) {
            add(0, kind, tier);
        }
        for (part, call) in what.calls.iter().enumerate() {
            let kind = call_kind(&call.name, &format_arguments(&call.arguments));
            let tier = match kind {
                CallKind::Revert => ItemTier::UserFeedback,
                CallKind::Test | CallKind::Edit => ItemTier::Key,
                CallKind::Other => ItemTier::Other,
            };
            let item = add(part, ItemKind::Call, tier);
            if !call.id.is_empty() {
                calls.insert(&call.id, (item, kind == CallKind::Test));
            }
        }
        let mut failed = Vec::new();
        for (part, result) in what.results.iter().enumerate() {
            let call = calls.get(result.call_id.as_str()).copied();
            let tier = result_tier(result, call.is_some_and(|(_, tests)| tests));
            add(part, ItemKind::Result, tier);
            if tier == ItemTier::Error {
                failed.extend(call);
            }
        }
        for (call, _) in failed {
            let call: &mut TranscriptItem = &mut items[call];
            // A failed result is hard to understand without its call.
            call.tier = call.tier.min(ItemTier::Key);
        }
    }
    promote_ends(&mut items);
    items
}

/// Selects the events that count as the user's. A file may contain only a subagent's work.
#[derive(Clone, Copy, PartialEq)]
enum PromptSource {
    Origin(EventOrigin),
    AnyUser,
}

impl PromptSource {
    fn of(session: &Session) -> Self {
        let has = |origin| {
            let mut events = session.events.iter();
            events.any(|event| PromptSource::Origin(origin).matches(event))
        };
        let origins = [EventOrigin::Human, EventOrigin::Subagent].into_iter();
        origins
            .filter(|&origin| has(origin))
            .map(PromptSource::Origin)
            .next()
            .unwrap_or(Self::AnyUser)
    }

    fn matches(self, event: &Event<'_>) -> bool {
        let origin = match self {
            PromptSource::Origin(origin) => event.origin == origin,
            PromptSource::AnyUser => true,
        };
        origin && event.role == EventRole::User && !event.text.is_empty() && event.mark.is_none()
    }
}

/// Returns kind and tier of an event's text; `None` if it is not shown.
fn classify_text(event: &Event<'_>, prompter: PromptSource) -> Option<(ItemKind, ItemTier)> {
    if event.mark.is_some() {
        return Some((ItemKind::Notice, ItemTier::UserFeedback));
    }
    if prompter.matches(event) {
        let tier = if is_feedback(&event.text) { ItemTier::UserFeedback } else { ItemTier::Prompt };
        return Some((ItemKind::Prompt, tier));
    }
    if event.text.trim().is_empty() {
        return None;
    }
    match (event.role, event.origin) {
        // The main agent's answers matter more.
        (EventRole::Assistant, EventOrigin::Subagent) => Some((ItemKind::Answer, ItemTier::Other)),
        (EventRole::Assistant, _) => Some((ItemKind::Answer, ItemTier::Answer)),
        (EventRole::Tool, _) if event.results.is_empty() => {
            Some((ItemKind::Result, ItemTier::Other))
        }
        _ => None,
    }
}

fn result_tier(result: &ToolResult<'_>, tests: bool) -> ItemTier {
    match result.outcome {
        ToolOutcome::Failed | ToolOutcome::Rejected => ItemTier::Error,
        _ if tests => ItemTier::Key,
        _ => ItemTier::Other,
    }
}

/// Returns the weight: items that need more room to be understood get more.
fn weight(kind: ItemKind, tier: ItemTier) -> usize {
    match (kind, tier) {
        (ItemKind::Prompt, _) => 4,
        (ItemKind::Answer, _) | (ItemKind::Result, ItemTier::Error | ItemTier::Key) => 3,
        // The arguments of an edit contain the code.
        (ItemKind::Call, ItemTier::Key) => 5,
        (ItemKind::Call | ItemKind::Result | ItemKind::Notice, _) => 1,
    }
}

/// Promotes the first and last prompts, the last answer and the last results.
fn promote_ends(items: &mut [TranscriptItem]) {
    let of = |kind: ItemKind| -> Vec<usize> {
        (0..items.len()).filter(|&at| items[at].kind == kind).collect()
    };
    let (prompts, answers, results) =
        (of(ItemKind::Prompt), of(ItemKind::Answer), of(ItemKind::Result));
    let last = |list: &[usize], count| list[list.len().saturating_sub(count)..].to_vec();
    let outcome = last(&answers, 1);
    for &answer in &outcome {
        items[answer].weight = 6;
    }
    let first = prompts.iter().take(OUTER_PROMPTS).copied().collect();
    for at in [first, last(&prompts, OUTER_PROMPTS), outcome, last(&results, LAST_RESULTS)].concat()
    {
        items[at].tier = ItemTier::Outer;
    }
}
