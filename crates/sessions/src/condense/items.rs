//! Splits a session into items for display, one for each text, call and result, and ranks them.
//! Events worth showing are recognised by their text: reverts, thanks, tests, edits. This only
//! ranks what is shown and does not affect grades.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

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
                // Collected first, as `add` still borrows the items.
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

/// Bytes searched at the start and at the end of a text. A command is at the start, thanks at
/// either end.
const MAX_SEARCHED: usize = 1500;

macro_rules! pattern {
    ($name:ident, $pattern:literal) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the pattern is a constant"));
    };
}

// ASCII word boundaries keep the regex engine on its fast path.
pattern!(
    GIT_REVERT,
    r"(?-u:\b)git(?-u:\b)[^\n;&|]{0,80}?\s(revert|restore|reset|stash|checkout)(?-u:\b)"
);
pattern!(NEW_BRANCH, r"(?-u:\b)checkout\s+(-b|-B|--orphan)(?-u:\b)");
pattern!(
    TESTS,
    r"(?-u:\b)(cargo (nextest|test)|pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|playwright test|(npm|pnpm|yarn|bun|deno)( run)? test|go test|make (test|check)|ctest|bats|mvn [^\n;&|]{0,60}(test|verify)|gradlew? [^\n;&|]{0,60}(test|check)|rspec|rake test|phpunit|pest|dotnet test|swift test|mix test|manage\.py test|runtests|run_tests|tests?\.sh)(?-u:\b)"
);
pattern!(
    SHELL_EDIT,
    r"(?-u:\b)(apply_patch|sed -i|perl -p?i|tee|patch -p|git apply)(?-u:\b)|\bcat\s*>|<<\s*['\x22]?EOF"
);
pattern!(EDITOR_COMMAND, r"(?-u:\b)(create|str_replace|insert)(?-u:\b)");
// Includes complaints, because praise alone would make every session look good.
pattern!(
    VERDICT,
    r"(?i)(?-u:\b)(thanks|thank you|thx|cheers|perfect|awesome|great (job|work)|well done|lgtm|works now|revert|undo|roll(ed)? ?back|put (it|that|them) back|still (fails?|failing|broken|wrong|not)|(does ?n[o'’]?t|not) work(ing)?|that['’ ]?i?s (wrong|not right|not what)|you broke)(?-u:\b)"
);

/// Returns the searched start and end of a text.
fn head_and_tail(text: &str) -> [&str; 2] {
    if text.len() <= 2 * MAX_SEARCHED {
        return [text, ""];
    }
    let head = &text[..text.floor_char_boundary(MAX_SEARCHED)];
    let tail = &text[text.ceil_char_boundary(text.len() - MAX_SEARCHED)..];
    [head, tail]
}

/// Returns true if the user thanks, complains, or wants something undone.
fn is_feedback(prompt: &str) -> bool {
    head_and_tail(prompt).iter().any(|end| VERDICT.is_match(end))
}

/// Kind of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Undoes changes.
    Revert,
    /// Runs tests.
    Test,
    /// Writes files.
    Edit,
    /// Anything else.
    Other,
}

/// Formats arguments the way people would write them: just the command if there is one, otherwise
/// `name: value` pairs. Anything but a JSON object stays unchanged.
pub(super) fn format_arguments(json: &str) -> Cow<'_, str> {
    if !json.trim_start().starts_with('{') {
        return Cow::Borrowed(json);
    }
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(json) else {
        return Cow::Borrowed(json);
    };
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(Value::is_string) => {
            parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    };
    // With a path, `command` is only the name of an editor's action.
    let is_path = |key: &str| key.contains("path") || key.contains("file");
    if let Some(command) = map.get("command").or_else(|| map.get("cmd"))
        && !map.keys().any(|key| is_path(key))
    {
        return Cow::Owned(plain(command));
    }
    let pairs: Vec<String> =
        map.iter().map(|(key, value)| format!("{key}: {}", plain(value))).collect();
    Cow::Owned(pairs.join(", "))
}

/// Classifies a call by the tool's name and its arguments as formatted by
/// [`format_arguments`].
fn call_kind(tool: &str, arguments: &str) -> CallKind {
    let tool = tool.to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| tool.contains(word));
    let head = head_and_tail(arguments)[0];
    if names(&["undo", "revert", "rollback"])
        || head.contains("undo_edit")
        || (GIT_REVERT.is_match(head) && !NEW_BRANCH.is_match(head))
    {
        CallKind::Revert
    } else if names(&["run_test", "runtest"]) || TESTS.is_match(head) {
        CallKind::Test
    } else if names(&["todo", "memory", "stdin"]) {
        // These tools write, but not to files of the project.
        CallKind::Other
    } else if names(&["editor", "str_replace"]) {
        // A single tool for viewing and editing; its command decides.
        if EDITOR_COMMAND.is_match(head) { CallKind::Edit } else { CallKind::Other }
    } else if names(&["write", "edit", "patch", "replace", "create", "insert", "append"])
        || SHELL_EDIT.is_match(head)
    {
        CallKind::Edit
    } else {
        CallKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_calls() {
        for (tool, arguments, expected) in [
            ("bash", "git -C repo checkout -- src/a.rs", CallKind::Revert),
            ("bash", "cd x && git reset --hard HEAD~1", CallKind::Revert),
            ("bash", "git checkout -b fix", CallKind::Other),
            ("bash", "git log; reset", CallKind::Other),
            ("undo_edit", "path: a.py", CallKind::Revert),
            ("str_replace_editor", "command: undo_edit, path: a.py", CallKind::Revert),
            ("str_replace_editor", "command: view, path: a.py", CallKind::Other),
            ("str_replace_editor", "command: create, path: a.py", CallKind::Edit),
            ("shell", "bash -lc cargo test --lib", CallKind::Test),
            ("Bash", "npm run test", CallKind::Test),
            ("bash", "python -m pytest -q", CallKind::Test),
            ("bash", "cat tests/a.py", CallKind::Other),
            ("bash", "cat > a.py <<EOF", CallKind::Edit),
            ("MultiEdit", "file_path: a.rs", CallKind::Edit),
            ("TodoWrite", "todos: []", CallKind::Other),
            ("Read", "file_path: a.rs", CallKind::Other),
        ] {
            assert_eq!(call_kind(tool, arguments), expected, "{tool} {arguments}");
        }
    }

    #[test]
    fn verdicts_of_users() {
        for said in
            ["Thanks!", "no, undo that", "it still fails", "That's wrong", "it doesn't work"]
        {
            assert!(is_feedback(said), "{said}");
        }
        for said in ["add a button", "what is a patch?", ""] {
            assert!(!is_feedback(said), "{said}");
        }
        let long = format!("{}thanks", "x ".repeat(10_000));
        assert!(is_feedback(&long));
    }
}
