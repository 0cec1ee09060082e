//! Describes the shape of a JSON value and derives its format.

use crate::format::SessionFormat;

/// Shape of a JSON value: the keys of an object and a few short values that distinguish formats.
/// For a list, the shapes of its first elements.
#[derive(Debug, Default, Clone)]
pub(super) struct JsonOutline {
    pub(super) is_list: bool,
    pub(super) is_object: bool,
    pub(super) keys: Vec<String>,
    /// Values of the keys in [`MARKS`].
    pub(super) marks: Vec<(&'static str, String)>,
    /// First elements of a list.
    pub(super) elements: Vec<JsonOutline>,
    /// Outlines of the lists and objects in [`INNER`].
    pub(super) inner: Vec<(&'static str, JsonOutline)>,
}

pub(super) const MARKS: [&str; 8] =
    ["type", "kind", "role", "from", "source", "trajectory_format", "schema_version", "id"];
pub(super) const INNER: [&str; 15] = [
    "context",
    "data",
    "spans",
    "runs",
    "observations",
    "traces",
    "payload",
    "message",
    "messages",
    "traj",
    "history",
    "conversations",
    "parts",
    "input",
    "output",
];

/// Record types of GitHub Copilot CLI.
const COPILOT_TYPES: [&str; 5] = [
    "session.start",
    "session.resume",
    "user.message",
    "assistant.message",
    "tool.execution_complete",
];

/// Item types of the Responses API that are not messages.
const ITEM_TYPES: [&str; 5] = [
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
];

/// Record types that a Claude Code file may start with.
const CLAUDE_TYPES: [&str; 12] = [
    "user",
    "assistant",
    "system",
    "summary",
    "file-history-snapshot",
    "queue-operation",
    "attachment",
    "progress",
    "permission-mode",
    "last-prompt",
    "custom-title",
    "ai-title",
];

/// Record types of a Codex rollout, whose first lines may be missing.
const CODEX_TYPES: [&str; 5] =
    ["session_meta", "turn_context", "response_item", "event_msg", "compacted"];

impl JsonOutline {
    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|own| own == key)
    }

    pub(super) fn mark(&self, name: &str) -> &str {
        self.marks.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value)
    }

    fn inner(&self, name: &str) -> Option<&JsonOutline> {
        self.inner.iter().find(|(own, _)| *own == name).map(|(_, outline)| outline)
    }

    pub(super) fn format(&self) -> Option<SessionFormat> {
        if self.is_list {
            return self.format_of_list();
        }
        let kind = self.mark("type");
        // The order of the checks matters: specific signatures come before those that other formats
        // share.
        if kind == "thread.started" || (kind.starts_with("item.") && self.has("item")) {
            return Some(SessionFormat::CodexExec);
        }
        if COPILOT_TYPES.contains(&kind) && self.has("data") {
            return Some(SessionFormat::CopilotCli);
        }
        if self.has("mapping") && self.has("current_node") {
            return Some(SessionFormat::ChatGpt);
        }
        if self.has("chat_messages") && self.has("uuid") {
            return Some(SessionFormat::ClaudeAi);
        }
        if self.has("samples") && self.has("eval") {
            return Some(SessionFormat::Inspect);
        }
        if let Some(format) = self.format_of_trace() {
            return Some(format);
        }
        let has_inner_message = self
            .inner("message")
            .is_some_and(|message| message.has("role") || message.has("content"));
        if kind == "session_start" && self.has("id") && !self.has("payload") {
            return Some(SessionFormat::Factory);
        }
        if !self.mark("role").is_empty() && has_inner_message && !self.has("sessionId") {
            return Some(SessionFormat::CursorAgent);
        }
        let is_exported = |element: &JsonOutline| element.has("info") && element.has("parts");
        if self.has("info")
            && self.inner("messages").is_some_and(|list| list.elements.iter().any(is_exported))
        {
            return Some(SessionFormat::OpenCode);
        }
        if self.mark("role") == "session_meta" {
            return Some(SessionFormat::HermesGateway);
        }
        if self.mark("schema_version").starts_with("ATIF") {
            return Some(SessionFormat::Atif);
        }
        if self.mark("trajectory_format").starts_with("mini-swe-agent") {
            return Some(SessionFormat::MiniSweAgent);
        }
        if self.has("payload") && self.has("timestamp") && CODEX_TYPES.contains(&kind) {
            return Some(SessionFormat::Codex);
        }
        if self.has("projectHash") && self.has("sessionId") || self.is_contents("history") {
            return Some(SessionFormat::GeminiCli);
        }
        if self.has("session_id") && self.has("session_start") && self.has("messages") {
            return Some(SessionFormat::HermesSnapshot);
        }
        if self.mark("kind").ends_with("Event") && self.has("source") {
            return Some(SessionFormat::OpenHandsSdk);
        }
        if kind == "session" && self.has("id") {
            return Some(SessionFormat::Pi);
        }
        let has_parts = self.inner("message").is_some_and(|message| message.has("parts"));
        if self.has("sessionId") && (has_parts || self.has("systemPayload")) {
            return Some(SessionFormat::QwenCode);
        }
        // Amp's thread ids start with `T-`.
        if self.mark("id").starts_with("T-")
            && self.has("messages")
            && (self.has("created") || self.has("v"))
        {
            return Some(SessionFormat::Amp);
        }
        if CLAUDE_TYPES.contains(&kind)
            && ["sessionId", "message", "leafUuid", "messageId"].iter().any(|key| self.has(key))
        {
            return Some(SessionFormat::ClaudeCode);
        }
        // Codex before it wrapped records: a bare meta line, then bare response items.
        if self.has("instructions") && self.has("timestamp") && self.has("id") && kind.is_empty() {
            return Some(SessionFormat::Codex);
        }
        if self.has("trajectory") || self.is_swe_history() {
            return Some(SessionFormat::SweAgent);
        }
        if self.inner("history").is_some_and(JsonOutline::is_events) {
            return Some(SessionFormat::OpenHands);
        }
        if self.has("source") && (self.has("action") || self.has("observation")) {
            return Some(SessionFormat::OpenHands);
        }
        let is_chat = |name| {
            self.inner(name).is_some_and(|inner| {
                inner.elements.iter().any(|element| !element.mark("role").is_empty())
            })
        };
        if self.has("info") && is_chat("messages") {
            // The trajectory format is the last key, out of reach in a large file.
            return Some(SessionFormat::MiniSweAgent);
        }
        let any = |name: &str, is: fn(&JsonOutline) -> bool| {
            self.inner(name).is_some_and(|inner| inner.elements.iter().any(is))
        };
        let is_cline_file = self.has("updated_at") && self.has("sessionId");
        if any("messages", JsonOutline::is_cline) || (is_chat("messages") && is_cline_file) {
            return Some(SessionFormat::Cline);
        }
        if any("messages", JsonOutline::is_ui_message) {
            return Some(SessionFormat::VercelAi);
        }
        if ["messages", "traj", "history", "chat_messages"].into_iter().any(is_chat) {
            return Some(SessionFormat::Chat);
        }
        let is_items = |name| any(name, |item| item.is_message() || item.is_item());
        if self.has("model") && (is_items("input") || (self.has("object") && is_items("output"))) {
            return Some(SessionFormat::Responses);
        }
        let is_share_gpt = |inner: &JsonOutline| {
            inner.elements.iter().any(|element| !element.mark("from").is_empty())
        };
        self.inner("conversations").is_some_and(is_share_gpt).then_some(SessionFormat::Chat)
    }

    /// Detects spans, runs and observations, alone or in the lists of an export.
    fn format_of_trace(&self) -> Option<SessionFormat> {
        let has = |keys: &[&str]| keys.iter().any(|key| self.has(key));
        if has(&["resourceSpans", "resource_spans", "scopeSpans"]) {
            return Some(SessionFormat::OpenTelemetry);
        }
        let is_span = has(&["traceId", "trace_id", "context.trace_id"])
            || self.inner("context").is_some_and(|context| context.has("trace_id"));
        if self.has("run_type") && (self.has("inputs") || self.has("trace_id")) {
            return Some(SessionFormat::LangSmith);
        }
        if is_span && has(&["startTime", "parentObservationId"]) && self.has("type") {
            return Some(SessionFormat::Langfuse);
        }
        let is_trace = self.has("observations") && has(&["sessionId", "timestamp"]);
        if is_trace && self.has("id") {
            return Some(SessionFormat::Langfuse);
        }
        let has_attributes = self.keys.iter().any(|key| key.starts_with("attributes"));
        if is_span && (has_attributes || has(&["spanId", "span_id"])) {
            return Some(SessionFormat::OpenTelemetry);
        }
        ["data", "spans", "runs", "observations", "traces"].iter().find_map(|name| {
            self.inner(name)?.elements.iter().find_map(JsonOutline::format_of_trace)
        })
    }

    /// Returns true if this is a chat message, as in JSON lines of messages.
    pub(super) fn is_message(&self) -> bool {
        let has = |keys: &[&str]| keys.iter().any(|key| self.has(key));
        !self.mark("role").is_empty() && has(&["content", "tool_calls", "parts"])
    }

    /// Returns true if this is an item of the Responses API other than a message.
    fn is_item(&self) -> bool {
        ITEM_TYPES.contains(&self.mark("type"))
    }

    /// Returns true if this is a Vercel AI SDK message, whose parts have types. Gemini's have none.
    fn is_ui_message(&self) -> bool {
        let is_typed = |parts: &JsonOutline| parts.elements.iter().any(|part| part.has("type"));
        !self.mark("role").is_empty()
            && (self.inner("parts").is_some_and(is_typed) || self.has("toolInvocations"))
    }

    /// Returns true if this is a message with the typical tags of Cline, Roo and Kilo.
    fn is_cline(&self) -> bool {
        !self.mark("role").is_empty() && self.has("is:cline")
    }

    /// Returns true if this is a list of Gemini's `Content`.
    fn is_contents(&self, name: &str) -> bool {
        self.inner(name).is_some_and(|list| list.elements.iter().any(JsonOutline::is_content))
    }

    fn is_content(&self) -> bool {
        let is_untyped = |parts: &JsonOutline| {
            !parts.elements.is_empty() && parts.elements.iter().all(|part| !part.has("type"))
        };
        let parts = self.inner("parts");
        parts.is_some_and(|_| self.mark("role") == "model")
            || (parts.is_some_and(is_untyped) && self.mark("role") == "user")
    }

    /// Returns true if this is a SWE-agent history, which names the agent in each message and has
    /// no other list beside it.
    fn is_swe_history(&self) -> bool {
        self.inner("history").is_some_and(|history| {
            let of_swe_agent =
                |element: &JsonOutline| element.has("agent") && !element.mark("role").is_empty();
            !history.elements.is_empty() && history.elements.iter().all(of_swe_agent)
        })
    }

    /// Returns true if this is a list of `OpenHands` events. Older ones are recognisable only by
    /// action and observation, which may form a list of their own.
    fn is_events(&self) -> bool {
        let is_event = |element: &JsonOutline| {
            element.mark("role").is_empty() && (element.has("action") || element.has("observation"))
        };
        self.elements
            .iter()
            .any(|element| is_event(element) || (element.is_list && element.is_events()))
    }

    fn format_of_list(&self) -> Option<SessionFormat> {
        // Only some formats occur as a list of whole records.
        let from_elements = self.elements.iter().find_map(JsonOutline::format);
        if matches!(
            from_elements,
            Some(SessionFormat::OpenHands | SessionFormat::OpenHandsSdk | SessionFormat::Chat)
        ) {
            return from_elements;
        }
        if matches!(
            from_elements,
            Some(
                SessionFormat::Cline
                    | SessionFormat::VercelAi
                    | SessionFormat::Amp
                    | SessionFormat::ChatGpt
                    | SessionFormat::ClaudeAi
                    | SessionFormat::OpenTelemetry
                    | SessionFormat::LangSmith
                    | SessionFormat::Langfuse
            )
        ) {
            return from_elements;
        }
        if self.elements.iter().any(JsonOutline::is_ui_message) {
            return Some(SessionFormat::VercelAi);
        }
        if self.elements.iter().any(JsonOutline::is_content) {
            return Some(SessionFormat::GeminiCli);
        }
        if self.elements.iter().any(JsonOutline::is_cline) {
            return Some(SessionFormat::Cline);
        }
        let is_said = |element: &&JsonOutline| element.is_message() || element.is_item();
        let messages = self.elements.iter().filter(is_said).count();
        // The last one may be truncated.
        if messages == 0 || messages + 1 < self.elements.len() {
            return None;
        }
        // A shell fence alone may occur in any chat.
        let says = |mark| self.elements.iter().any(|element| element.has(mark));
        let is_agent = says("is:bash fence") && says("is:shell protocol");
        Some(if is_agent { SessionFormat::MiniSweAgent } else { SessionFormat::Chat })
    }

    /// Describes a value that is not a session, for an error message.
    pub(super) fn describe(&self) -> String {
        let mut keys: Vec<String> =
            self.keys.iter().take(8).map(|key| selftest_text::one_line(key, 40)).collect();
        if self.keys.len() > keys.len() {
            keys.push("…".to_owned());
        }
        match self.elements.first() {
            Some(first) if first.is_list => "lists inside of a list".to_owned(),
            Some(first) if first.is_object => format!("a list of {}", first.describe()),
            _ if self.is_list => "a list without objects".to_owned(),
            _ if !keys.is_empty() => format!("objects with the keys {}", keys.join(", ")),
            _ if self.is_object => "an empty object".to_owned(),
            _ => "no JSON object was found in it".to_owned(),
        }
    }
}
