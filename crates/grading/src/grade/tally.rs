//! Collects the facts that grading needs from a session's events, among them the text of the last
//! model call, which may be recorded as several messages. Memory use stays small for sessions of any
//! length.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::error_cause::{ErrorCause, FailedCall};
use super::error_message::{ErrorClass, TemplateSet, informative_part, mask_message};
use super::grade_record::ToolUse;
use super::outcome::{OutcomeTracker, is_shell};
use super::spending::TokenSpending;
use super::task_type::TaskWork;
use selftest_sessions::{
    Event, EventOrigin, EventRole, Text, TokenCounts, ToolOutcome, ToolResult,
};

/// Maximum number of distinct tools. Further tools are counted together, since a hostile file may
/// use a new name for each call.
const MAX_TOOLS: usize = 500;
const OTHER_TOOLS: &str = "(other tools)";
/// Maximum length in bytes of a tool's name.
const MAX_NAME: usize = 80;
/// Tools that ask the user a question.
const ASKING_TOOLS: [&str; 6] = [
    "AskUserQuestion",
    "ask_followup_question",
    "ask_user",
    "ask_user_question",
    "clarify",
    "request_user_input",
];
/// Maximum length in bytes of a stored error message.
const MAX_EXAMPLE: usize = 4000;
/// Maximum length in bytes of a stored request.
const MAX_REQUEST: usize = 4000;

/// A text and the event that contains it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EventText {
    pub(super) event: u64,
    pub(super) text: String,
}

/// Maximum number of distinct error groups per session. Further errors are assigned to the first
/// template of their cause.
const MAX_GROUPS: usize = 300;

/// Key for grouping errors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ErrorKey {
    pub(super) class: ErrorClass,
    pub(super) cause: ErrorCause,
    pub(super) tool: String,
    /// Index among the templates of this cause and tool.
    pub(super) template: usize,
}

/// Errors with the same key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ErrorGroup {
    pub(super) count: u64,
    pub(super) first: EventText,
}

/// Counts and facts of a session.
#[derive(Debug, Default)]
pub(super) struct SessionTally {
    pub(super) messages: u64,
    pub(super) model_calls: u64,
    /// True if the agent said or did something; a model call alone may be empty.
    pub(super) has_acted: bool,
    pub(super) tool_calls: u64,
    pub(super) rejected: u64,
    pub(super) pending: u64,
    pub(super) errors: u64,
    pub(super) tools: BTreeMap<String, ToolUse>,
    /// Number of results per tool.
    pub(super) results: BTreeMap<String, u64>,
    pub(super) error_groups: BTreeMap<ErrorKey, ErrorGroup>,
    pub(super) error_templates: BTreeMap<(ErrorCause, String), TemplateSet>,
    pub(super) error_run: u64,
    /// Number of the event that began the present run of errors.
    pub(super) run_start: Option<u64>,
    pub(super) longest_error_run: u64,
    /// Number of the event that began the longest one.
    pub(super) longest_run_start: Option<u64>,
    /// Number of the event of the last failed result, and of the first success after it.
    pub(super) last_error: Option<u64>,
    pub(super) worked_after: Option<u64>,
    /// The first request, preferring one by a human.
    pub(super) request: Option<EventText>,
    pub(super) request_is_human: bool,
    /// Text of the last model call; empty if it only called tools.
    pub(super) response: FinalMessage,
    /// The agent's question that a person answered.
    pub(super) clarification: Option<EventText>,
    pub(super) open_question: Option<EventText>,
    pub(super) usage: TokenCounts,
    pub(super) spending: TokenSpending,
    pub(super) outcome: OutcomeTracker,
    pub(super) work: TaskWork,
}

impl SessionTally {
    /// Returns true if the agent answered at all.
    pub(super) fn has_answered(&self) -> bool {
        self.model_calls > 0 && self.has_acted
    }

    /// Adds an event.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        self.messages += u64::from(!event.text.is_empty());
        match event.role {
            EventRole::User => self.add_request(event),
            EventRole::Assistant => self.add_response(event),
            EventRole::System | EventRole::Tool => {}
        }
        self.has_acted |= !event.calls.is_empty() || !event.results.is_empty();
        for call in &event.calls {
            self.tool_calls += 1;
            self.update_tool(&call.name, |used| used.calls += 1);
            if ASKING_TOOLS.contains(&call.name.as_str()) && self.clarification.is_none() {
                // The call itself is the question: its answer comes as a tool result, not as a
                // message.
                let text = clip(&call.arguments, MAX_EXAMPLE);
                self.clarification = Some(EventText { event: event.number, text });
            }
        }
        for result in &event.results {
            self.add_result(event.number, result);
        }
        if let Some(usage) = event.usage {
            self.usage += usage;
        }
        self.spending.add(event);
        self.outcome.add(event);
        self.work.add(event);
    }

    fn add_request(&mut self, event: &Event<'_>) {
        if event.text.is_empty() {
            return;
        }
        let is_human = event.origin == EventOrigin::Human;
        // A harness may put its own text, such as the environment, in front of the person's
        // request.
        if self.request.is_none() || (is_human && !self.request_is_human) {
            let text = clip(&event.text, MAX_REQUEST);
            self.request = Some(EventText { event: event.number, text });
            self.request_is_human = is_human;
        }
        if is_human && self.clarification.is_none() {
            self.clarification = self.open_question.take();
        }
    }

    fn add_response(&mut self, event: &Event<'_>) {
        self.has_acted |= !event.text.trim().is_empty();
        // Some formats split one answer of the model over several records.
        if !event.continues {
            self.model_calls += 1;
            self.response.clear();
        }
        self.response.add(event.number, &event.text);
        // A question counts if the agent stops there and a person answers.
        let said = self.response.text().trim_end();
        let asks = event.calls.is_empty() && said.ends_with('?');
        self.open_question = asks.then(|| EventText {
            event: self.response.event_at(said.len()).unwrap_or(event.number),
            text: last_line(said, MAX_EXAMPLE).to_owned(),
        });
    }

    fn add_result(&mut self, event: u64, result: &ToolResult<'_>) {
        if result.outcome != ToolOutcome::Pending {
            self.add_use(&result.tool);
        }
        match result.outcome {
            // Rejected and pending calls neither extend nor end a run of errors.
            ToolOutcome::Rejected => self.rejected += 1,
            ToolOutcome::Pending => self.pending += 1,
            // A search without a match exits with 1, though nothing failed.
            ToolOutcome::Failed if !self.outcome.is_fruitless_search(result) => {
                self.add_error(event, result);
            }
            ToolOutcome::Failed | ToolOutcome::Ok | ToolOutcome::Unknown => {
                self.error_run = 0;
                if self.last_error.is_some() && self.worked_after.is_none() {
                    self.worked_after = Some(event);
                }
            }
        }
    }

    /// Counts a result as a use of its tool.
    ///
    /// Some formats record results without calls, and then more calls could fail than were made.
    /// The session's own number of calls remains that of the file.
    fn add_use(&mut self, tool: &str) {
        if let (Some(results), Some(used)) = (self.results.get_mut(tool), self.tools.get_mut(tool))
        {
            *results += 1;
            used.calls = used.calls.max(*results);
            return;
        }
        let name = self.tool_name(tool);
        let results = self.results.entry(name.clone()).or_default();
        *results += 1;
        let used = self.tools.entry(name).or_default();
        used.calls = used.calls.max(*results);
    }

    fn add_error(&mut self, event: u64, result: &ToolResult<'_>) {
        self.errors += 1;
        self.error_run += 1;
        if self.error_run == 1 {
            self.run_start = Some(event);
        }
        if self.error_run > self.longest_error_run {
            (self.longest_error_run, self.longest_run_start) = (self.error_run, self.run_start);
        }
        self.last_error = Some(event);
        self.worked_after = None;
        self.update_tool(&result.tool, |used| used.errors += 1);
        let words = if result.error.is_empty() { &result.text } else { &result.error };
        let is_shell = is_shell(&result.tool);
        let class = match ErrorClass::classify(words, result.exit_code) {
            // A command that failed without a more specific message.
            ErrorClass::Unknown if is_shell => ErrorClass::CommandFailed,
            class => class,
        };
        let check = self.outcome.failed_check(&result.call_id);
        let call = FailedCall { exit_code: result.exit_code, is_shell, check };
        let cause = ErrorCause::classify(words, class, call);
        let tool = self.tool_name(&result.tool);
        let key = self.error_key(class, cause, tool, words);
        self.error_groups
            .entry(key)
            .or_insert_with(|| ErrorGroup {
                count: 0,
                first: EventText { event, text: clip(informative_part(words), MAX_EXAMPLE) },
            })
            .count += 1;
    }

    fn error_key(
        &mut self,
        class: ErrorClass,
        cause: ErrorCause,
        tool: String,
        words: &str,
    ) -> ErrorKey {
        let template = if self.error_groups.len() < MAX_GROUPS {
            let known = self.error_templates.entry((cause, tool.clone())).or_default();
            known.add(&mask_message(informative_part(words)))
        } else {
            0
        };
        ErrorKey { class, cause, tool, template }
    }

    /// Returns the message pattern of an error group.
    pub(super) fn template(&self, key: &ErrorKey) -> String {
        let known = self.error_templates.get(&(key.cause, key.tool.clone()));
        known.map(|known| known.text(key.template)).unwrap_or_default()
    }

    /// Updates the counts of a tool.
    fn update_tool(&mut self, name: &str, count: impl FnOnce(&mut ToolUse)) {
        // Fast path: most tools are already known by an unmodified name.
        if name.len() <= MAX_NAME
            && let Some(used) = self.tools.get_mut(name)
        {
            return count(used);
        }
        let name = self.tool_name(name);
        count(self.tools.entry(name).or_default());
    }

    fn tool_name(&self, name: &str) -> String {
        let name = match selftest_text::one_line(name, MAX_NAME) {
            name if name.is_empty() => "(unnamed tool)".to_owned(),
            name => name,
        };
        if self.tools.len() >= MAX_TOOLS && !self.tools.contains_key(&name) {
            return OTHER_TOOLS.to_owned();
        }
        name
    }
}

fn clip(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].to_owned()
}

/// Returns the last non-empty line, limited to its last `limit` bytes.
fn last_line(text: &str, limit: usize) -> &str {
    let line = text.trim_end().lines().next_back().unwrap_or_default().trim();
    &line[line.ceil_char_boundary(line.len().saturating_sub(limit))..]
}

/// A text joined from the texts of several events.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FinalMessage {
    text: String,
    /// Byte offset and event number of each part, in order.
    parts: Vec<(usize, u64)>,
}

impl FinalMessage {
    /// Creates a message from a single event.
    #[cfg(test)]
    pub(super) fn new(event: u64, text: &str) -> Self {
        let mut message = Self::default();
        message.add(event, text);
        message
    }

    /// Removes all text.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.parts.clear();
    }

    /// Appends the text of an event as a paragraph. If the text grows too long, its middle is
    /// removed.
    pub(super) fn add(&mut self, event: u64, text: &str) {
        if text.is_empty() {
            return;
        }
        let is_first = self.text.is_empty();
        if !is_first {
            self.text.push('\n');
        }
        self.parts.push((self.text.len(), event));
        self.text.push_str(text);
        if is_first {
            // Session readers already limit the text of a single event.
            return;
        }
        let bounded = Text::new(self.text.as_str());
        if bounded.cut_bytes() > 0 {
            let bounded = bounded.to_string();
            self.shift_parts(&bounded);
            self.text = bounded;
        }
    }

    /// Adjusts the offsets after the middle was removed. Parts behind the cut move forward with
    /// their text; of the parts within the cut, only the last remains.
    fn shift_parts(&mut self, bounded: &str) {
        let same = self.text.bytes().zip(bounded.bytes()).take_while(|(old, new)| old == new);
        let (cut_at, shorter) = (same.count(), self.text.len().saturating_sub(bounded.len()));
        for (start, _) in self.parts.iter_mut().filter(|(start, _)| *start > cut_at) {
            *start = start.saturating_sub(shorter).max(cut_at);
        }
        // Of parts with the same start, only the last is kept.
        self.parts.reverse();
        self.parts.dedup_by_key(|(start, _)| *start);
        self.parts.reverse();
    }

    /// Returns the text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the event that contains the byte at this offset, or `None` if the text is empty.
    pub(super) fn event_at(&self, byte: usize) -> Option<u64> {
        let (_, event) = self.parts.iter().rev().find(|(start, _)| *start <= byte)?;
        Some(*event)
    }
}

/// The message as it may be displayed. It is redacted lazily and only once.
pub(super) struct RedactedMessage<'a> {
    message: &'a FinalMessage,
    redact: &'a dyn Fn(&str) -> String,
    text: OnceCell<String>,
}

impl<'a> RedactedMessage<'a> {
    pub(super) fn new(message: &'a FinalMessage, redact: &'a dyn Fn(&str) -> String) -> Self {
        Self { message, redact, text: OnceCell::new() }
    }

    pub(super) fn text(&self) -> &str {
        self.text.get_or_init(|| (self.redact)(self.message.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_knows_its_event() {
        let mut message = FinalMessage::default();
        assert_eq!(message.event_at(0), None);
        for (event, text) in [(3, "Looking at it."), (4, ""), (5, "All done.")] {
            message.add(event, text);
        }
        assert_eq!(message.text(), "Looking at it.\nAll done.");
        let at = |word| message.event_at(message.text().find(word).unwrap());
        assert_eq!(
            (at("Looking"), at("it."), at("All"), at("done")),
            (Some(3), Some(3), Some(5), Some(5))
        );
        assert_eq!(message.event_at(usize::MAX), Some(5));
    }

    #[test]
    fn a_cut_moves_the_events_with_their_words() {
        let mut message = FinalMessage::default();
        for event in 0..100 {
            message.add(event, &format!("word{event:02} {}", "é".repeat(500)));
        }
        assert!(message.text().len() < 40_000 && message.parts.len() < 50, "{message:?}");
        for (event, word) in [(0, "word00"), (5, "word05"), (95, "word95"), (99, "word99")] {
            assert_eq!(message.event_at(message.text().find(word).unwrap()), Some(event));
        }
    }
}
