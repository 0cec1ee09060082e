//! Which format a source is in, by its content alone: names lie, and one `.json` holds JSON lines.

use serde::Deserialize;
use serde::de::{self, Deserializer as _, MapAccess, SeqAccess, Visitor};

use super::ReadError;
use super::format::Format;
use super::lines::without_mark;
use super::source::Source;
use super::wire::otherwise_default;

/// Bytes that are looked at first: enough for the first lines of nearly every file of JSON lines.
const FIRST_LOOK: u64 = 32 * 1024;

/// Bytes that are looked at.
const LOOKED_AT: u64 = 256 * 1024;

/// Lines that are looked at.
const LINES: usize = 20;

const SQLITE: &[u8] = b"SQLite format 3\0";

/// The format of a source.
pub(super) fn detect(source: &Source) -> Result<Format, ReadError> {
    let start = source.beginning(FIRST_LOOK)?;
    if start.starts_with(SQLITE) {
        return Ok(Format::HermesState);
    }
    let has_more = start.len() as u64 == FIRST_LOOK;
    if let Some(format) = of_lines(without_mark(&start), &mut Vec::new())? {
        return Ok(format);
    }
    let start = if has_more { source.beginning(LOOKED_AT)? } else { start };
    let start = without_mark(&start);
    if start.iter().all(u8::is_ascii_whitespace) {
        return Err(ReadError::Empty);
    }
    let mut seen = Vec::new();
    if let Some(format) = of_lines(start, &mut seen)? {
        return Ok(format);
    }
    let document = Outline::of_beginning(start);
    if let Some(format) = document.format() {
        return Ok(format);
    }
    // Last, because other formats have messages inside their lists too.
    if seen.iter().any(Outline::is_message) {
        return Ok(Format::Chat);
    }
    let shown = seen.first().unwrap_or(&document).describe();
    Err(ReadError::Unrecognised(shown))
}

/// The format that one of the first lines shows; those that show none are put into `seen`.
fn of_lines(start: &[u8], seen: &mut Vec<Outline>) -> Result<Option<Format>, ReadError> {
    let lines = start.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    for line in lines.take(LINES) {
        // A line that stands for itself. The first line of a pretty-printed document does not.
        let Some(outline) = Outline::of_line(line) else { continue };
        if let Some(format) = outline.format() {
            return Ok(Some(format));
        }
        if outline.mark("type") == "thread.started" {
            let what = "the output of `codex exec --json`, not a stored rollout";
            return Err(ReadError::Unrecognised(what.to_owned()));
        }
        seen.push(outline);
    }
    Ok(None)
}

/// The shape of a JSON value: the keys of an object, and a few short values that tell formats
/// apart. Of a list, the shape of its first elements.
#[derive(Debug, Default, Clone)]
struct Outline {
    is_list: bool,
    keys: Vec<String>,
    /// See [`MARKS`].
    marks: Vec<(&'static str, String)>,
    /// First objects of a list.
    elements: Vec<Outline>,
    /// Outlines of the lists and objects named in [`INNER`].
    inner: Vec<(&'static str, Outline)>,
}

const MARKS: [&str; 7] =
    ["type", "kind", "role", "from", "source", "trajectory_format", "schema_version"];
const INNER: [&str; 6] = ["payload", "message", "messages", "traj", "history", "conversations"];

/// Record types of Claude Code that can stand at the beginning of a file.
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

/// Record types of a Codex rollout; its first lines may be torn away.
const CODEX_TYPES: [&str; 5] =
    ["session_meta", "turn_context", "response_item", "event_msg", "compacted"];

impl Outline {
    /// `None` when the line is no complete JSON value of its own.
    fn of_line(line: &[u8]) -> Option<Self> {
        let mut outline = Outline::default();
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        deserializer.deserialize_any(Fill { outline: &mut outline, depth: 0 }).ok()?;
        deserializer.end().ok()?;
        (outline.is_list || !outline.keys.is_empty()).then_some(outline)
    }

    /// What is known when the bytes break off, which they do in a large document.
    fn of_beginning(bytes: &[u8]) -> Self {
        let mut outline = Outline::default();
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let _ = deserializer.deserialize_any(Fill { outline: &mut outline, depth: 0 });
        outline
    }

    fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|own| own == key)
    }

    fn mark(&self, name: &str) -> &str {
        self.marks.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| value)
    }

    fn inner(&self, name: &str) -> Option<&Outline> {
        self.inner.iter().find(|(own, _)| *own == name).map(|(_, outline)| outline)
    }

    fn format(&self) -> Option<Format> {
        if self.is_list {
            return self.format_of_list();
        }
        let kind = self.mark("type");
        if self.mark("role") == "session_meta" {
            return Some(Format::HermesGateway);
        }
        if self.mark("schema_version").starts_with("ATIF") {
            return Some(Format::Atif);
        }
        if self.mark("trajectory_format").starts_with("mini-swe-agent") {
            return Some(Format::MiniSweAgent);
        }
        if self.has("payload") && self.has("timestamp") && CODEX_TYPES.contains(&kind) {
            return Some(Format::Codex);
        }
        if self.has("projectHash") && self.has("sessionId") || self.is_contents("history") {
            return Some(Format::GeminiCli);
        }
        if self.has("session_id") && self.has("session_start") && self.has("messages") {
            return Some(Format::HermesSnapshot);
        }
        if self.mark("kind").ends_with("Event") && self.has("source") {
            return Some(Format::OpenHandsSdk);
        }
        if kind == "session" && self.has("id") {
            return Some(Format::Pi);
        }
        if CLAUDE_TYPES.contains(&kind)
            && ["sessionId", "message", "leafUuid", "messageId"].iter().any(|key| self.has(key))
        {
            return Some(Format::ClaudeCode);
        }
        // Codex before it wrapped records: a bare meta line, then bare response items.
        if self.has("instructions") && self.has("timestamp") && self.has("id") && kind.is_empty() {
            return Some(Format::Codex);
        }
        if self.has("trajectory") || self.is_swe_history() {
            return Some(Format::SweAgent);
        }
        if self.inner("history").is_some_and(Outline::is_events) {
            return Some(Format::OpenHands);
        }
        if self.has("source") && (self.has("action") || self.has("observation")) {
            return Some(Format::OpenHands);
        }
        let is_chat = |name| {
            self.inner(name).is_some_and(|inner| {
                inner.elements.iter().any(|element| !element.mark("role").is_empty())
            })
        };
        if self.has("info") && is_chat("messages") {
            // The trajectory format is the last key, out of sight in a large file.
            return Some(Format::MiniSweAgent);
        }
        if ["messages", "traj", "history"].into_iter().any(is_chat) {
            return Some(Format::Chat);
        }
        let is_share_gpt =
            |inner: &Outline| inner.elements.iter().any(|element| !element.mark("from").is_empty());
        self.inner("conversations").is_some_and(is_share_gpt).then_some(Format::Chat)
    }

    /// A chat message by itself, as in JSON lines of them.
    fn is_message(&self) -> bool {
        !self.mark("role").is_empty() && (self.has("content") || self.has("tool_calls"))
    }

    /// A list of Gemini's `Content`.
    fn is_contents(&self, name: &str) -> bool {
        self.inner(name).is_some_and(|list| list.elements.iter().any(Outline::is_content))
    }

    fn is_content(&self) -> bool {
        self.has("parts") && ["user", "model"].contains(&self.mark("role"))
    }

    /// SWE-agent's history names the agent in each message and has no other list beside it.
    fn is_swe_history(&self) -> bool {
        self.inner("history").is_some_and(|history| {
            let of_swe_agent =
                |element: &Outline| element.has("agent") && !element.mark("role").is_empty();
            !history.elements.is_empty() && history.elements.iter().all(of_swe_agent)
        })
    }

    /// A list of `OpenHands` events. In older ones, nothing but action and observation tells, and
    /// the two may stand together in a list of their own.
    fn is_events(&self) -> bool {
        let is_event = |element: &Outline| {
            element.mark("role").is_empty() && (element.has("action") || element.has("observation"))
        };
        self.elements
            .iter()
            .any(|element| is_event(element) || (element.is_list && element.is_events()))
    }

    fn format_of_list(&self) -> Option<Format> {
        let from_elements = self.elements.iter().find_map(Outline::format);
        if matches!(from_elements, Some(Format::OpenHands | Format::OpenHandsSdk | Format::Chat)) {
            return from_elements;
        }
        if self.elements.iter().any(Outline::is_content) {
            return Some(Format::GeminiCli);
        }
        let messages = self.elements.iter().filter(|element| element.is_message()).count();
        // The last one may be torn.
        if messages == 0 || messages + 1 < self.elements.len() {
            return None;
        }
        // A fence alone is any chat about a shell.
        let says = |mark| self.elements.iter().any(|element| element.has(mark));
        let is_agent = says("is:bash fence") && says("is:shell protocol");
        Some(if is_agent { Format::MiniSweAgent } else { Format::Chat })
    }

    fn describe(&self) -> String {
        let mut keys: Vec<String> =
            self.keys.iter().take(8).map(|key| crate::text::one_line(key, 40)).collect();
        if self.keys.len() > keys.len() {
            keys.push("…".to_owned());
        }
        match (self.is_list, keys.is_empty()) {
            (true, _) => match self.elements.first() {
                Some(first) => format!("a list of {}", first.describe()),
                None => "a list without objects".to_owned(),
            },
            (false, false) => format!("objects with the keys {}", keys.join(", ")),
            (false, true) => "no JSON object was found in it".to_owned(),
        }
    }
}

/// Fills an outline while the value is read, so that a torn value leaves what came before.
struct Fill<'o> {
    outline: &'o mut Outline,
    depth: usize,
}

/// Elements of a list that are looked at.
const ELEMENTS: usize = 4;

impl<'de> de::DeserializeSeed<'de> for Fill<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fill<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let find = |names: &[&'static str]| names.iter().copied().find(|name| *name == key);
            self.outline.keys.push(key.clone());
            if let Some(name) = find(&MARKS) {
                if let Short(Some(value)) = map.next_value()? {
                    self.outline.marks.push((name, value));
                }
            } else if key == "content" {
                let Shell { fence, protocol } = map.next_value()?;
                if fence {
                    self.outline.keys.push("is:bash fence".to_owned());
                }
                if protocol {
                    self.outline.keys.push("is:shell protocol".to_owned());
                }
            } else if let Some(name) = find(&INNER).filter(|_| self.depth < 3) {
                self.outline.inner.push((name, Outline::default()));
                if let Some((_, outline)) = self.outline.inner.last_mut() {
                    map.next_value_seed(Fill { outline, depth: self.depth + 1 })?;
                }
            } else {
                map.next_value::<de::IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.outline.is_list = true;
        while self.outline.elements.len() < ELEMENTS {
            self.outline.elements.push(Outline::default());
            let outline = self.outline.elements.last_mut();
            let Some(outline) = outline else { break };
            let seed = Fill { outline, depth: self.depth + 1 };
            if list.next_element_seed(seed)?.is_none() {
                self.outline.elements.pop();
                return Ok(());
            }
        }
        while list.next_element::<de::IgnoredAny>()?.is_some() {}
        Ok(())
    }

    otherwise_default!(string number boolean null);
}

/// A short text; of anything else nothing.
struct Short(Option<String>);

impl<'de> Deserialize<'de> for Short {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = super::Text::deserialize(deserializer)?;
        Ok(Short((text.len() < 100).then(|| text.as_str().to_owned())))
    }
}

/// Whether a text holds a fenced bash block, and words of mini-swe-agent's protocol.
struct Shell {
    fence: bool,
    protocol: bool,
}

impl<'de> Deserialize<'de> for Shell {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const FENCES: [&str; 2] = ["```bash", "```mswea_bash_command"];
        const PROTOCOL: [&str; 3] = [
            "<returncode>",
            "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
            "MINI_SWE_AGENT_FINAL_OUTPUT",
        ];
        let text = super::Text::deserialize(deserializer)?;
        let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
        Ok(Shell { fence: holds(&FENCES), protocol: holds(&PROTOCOL) })
    }
}
