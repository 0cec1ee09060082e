//! Splits a session into items for display, one for each text, call and result, and ranks them.

use std::collections::HashMap;

use super::arguments::arguments;
use super::signals::{CallKind, call_kind, is_feedback};
use crate::{Event, Mark, Origin, Outcome, Role, Session, ToolResult};

/// Number of first and last user prompts that are always shown, space permitting
/// (docs/spec/session-quality.md#transcript).
const ENDS: usize = 5;
/// Number of last results that belong to the outcome.
const LAST_RESULTS: usize = 3;

/// Kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Prompt,
    Answer,
    Call,
    Result,
    /// An interruption, a compaction, or a provider failure.
    Notice,
}

/// Importance of an item, most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// The first and last prompts and the outcome.
    Ends,
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
pub(super) struct Item {
    /// Index of the event in the session.
    pub(super) event: usize,
    /// Index among the calls or results of the event.
    pub(super) part: usize,
    pub(super) kind: Kind,
    pub(super) tier: Tier,
    /// Relative share of the room.
    pub(super) weight: usize,
}

/// Returns all items in the session's order.
pub(super) fn of(session: &Session) -> Vec<Item> {
    let mut items = Vec::new();
    let prompter = Prompter::of(session);
    // Maps each call id to its item and a flag for test runs.
    let mut calls: HashMap<&str, (usize, bool)> = HashMap::new();
    for (event, what) in session.events.iter().enumerate() {
        // The model that reads the transcript has to judge for itself.
        if what.mark.is_some_and(Mark::is_verdict) {
            continue;
        }
        let mut add = |part, kind, tier| {
            items.push(Item { event, part, kind, tier, weight: weight(kind, tier) });
            items.len() - 1
        };
        if let Some((kind, tier)) = said(what, prompter) {
            add(0, kind, tier);
        }
        for (part, call) in what.calls.iter().enumerate() {
            let kind = call_kind(&call.name, &arguments(&call.arguments));
            let tier = match kind {
                CallKind::Revert => Tier::UserFeedback,
                CallKind::Test | CallKind::Edit => Tier::Key,
                CallKind::Other => Tier::Other,
            };
            let item = add(part, Kind::Call, tier);
            if !call.id.is_empty() {
                calls.insert(&call.id, (item, kind == CallKind::Test));
            }
        }
        let mut failed = Vec::new();
        for (part, result) in what.results.iter().enumerate() {
            let call = calls.get(result.call_id.as_str()).copied();
            let tier = result_tier(result, call.is_some_and(|(_, tests)| tests));
            add(part, Kind::Result, tier);
            if tier == Tier::Error {
                failed.extend(call);
            }
        }
        for (call, _) in failed {
            let call: &mut Item = &mut items[call];
            // A failed result is hard to understand without its call.
            call.tier = call.tier.min(Tier::Key);
        }
    }
    mark_ends(&mut items);
    items
}

/// Selects the events that count as the user's. A file may contain only a subagent's work.
#[derive(Clone, Copy, PartialEq)]
enum Prompter {
    Origin(Origin),
    AnyUser,
}

impl Prompter {
    fn of(session: &Session) -> Self {
        let has = |origin| {
            let mut events = session.events.iter();
            events.any(|event| Prompter::Origin(origin).is(event))
        };
        let origins = [Origin::Human, Origin::Subagent].into_iter();
        origins.filter(|&origin| has(origin)).map(Prompter::Origin).next().unwrap_or(Self::AnyUser)
    }

    fn is(self, event: &Event<'_>) -> bool {
        let origin = match self {
            Prompter::Origin(origin) => event.origin == origin,
            Prompter::AnyUser => true,
        };
        origin && event.role == Role::User && !event.text.is_empty() && event.mark.is_none()
    }
}

/// Returns kind and tier of an event's text; `None` if it is not shown.
fn said(event: &Event<'_>, prompter: Prompter) -> Option<(Kind, Tier)> {
    if event.mark.is_some() {
        return Some((Kind::Notice, Tier::UserFeedback));
    }
    if prompter.is(event) {
        let tier = if is_feedback(&event.text) { Tier::UserFeedback } else { Tier::Prompt };
        return Some((Kind::Prompt, tier));
    }
    if event.text.trim().is_empty() {
        return None;
    }
    match (event.role, event.origin) {
        // The main agent's answers matter more.
        (Role::Assistant, Origin::Subagent) => Some((Kind::Answer, Tier::Other)),
        (Role::Assistant, _) => Some((Kind::Answer, Tier::Answer)),
        (Role::Tool, _) if event.results.is_empty() => Some((Kind::Result, Tier::Other)),
        _ => None,
    }
}

fn result_tier(result: &ToolResult<'_>, tests: bool) -> Tier {
    match result.outcome {
        Outcome::Failed | Outcome::Rejected => Tier::Error,
        _ if tests => Tier::Key,
        _ => Tier::Other,
    }
}

/// Returns the weight: items that need more room to be understood get more.
fn weight(kind: Kind, tier: Tier) -> usize {
    match (kind, tier) {
        (Kind::Prompt, _) => 4,
        (Kind::Answer, _) | (Kind::Result, Tier::Error | Tier::Key) => 3,
        // The arguments of an edit contain the code.
        (Kind::Call, Tier::Key) => 5,
        (Kind::Call | Kind::Result | Kind::Notice, _) => 1,
    }
}

/// Promotes the first and last prompts, the last answer and the last results.
fn mark_ends(items: &mut [Item]) {
    let of = |kind: Kind| -> Vec<usize> {
        (0..items.len()).filter(|&at| items[at].kind == kind).collect()
    };
    let (prompts, answers, results) = (of(Kind::Prompt), of(Kind::Answer), of(Kind::Result));
    let last = |list: &[usize], count| list[list.len().saturating_sub(count)..].to_vec();
    let outcome = last(&answers, 1);
    for &answer in &outcome {
        items[answer].weight = 6;
    }
    let first = prompts.iter().take(ENDS).copied().collect();
    for at in [first, last(&prompts, ENDS), outcome, last(&results, LAST_RESULTS)].concat() {
        items[at].tier = Tier::Ends;
    }
}
