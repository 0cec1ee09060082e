//! Reads the output of `gemini -p --output-format stream-json`, JSON lines, and of `--output-format
//! json`, one object without the request. This is not the chat that Gemini CLI stores.

use serde::Deserialize;
use serde::de::MapAccess;

use super::chat::is_lines;
use super::event::{Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome};
use super::feed::SessionFeed;
use super::printed_answer::PrintedAnswer;
use super::source::{DocumentReader, SessionSource};
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonText, JsonValue, LenientFlag, LenientInt, LenientObject};
use super::{SessionReadError, failure};
use crate::format::FormatEntry;
use crate::outline::JsonOutline;
use crate::wire::AnyJson;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry { json: is_output, ..FormatEntry::new(read) };

/// Keys of the object that `--output-format json` prints.
const RESULT_KEYS: [&str; 5] = ["session_id", "response", "stats", "error", "warnings"];

fn is_output(value: &JsonOutline) -> bool {
    let has = |key: &str| value.has(key);
    match value.mark("type") {
        "init" => has("session_id") && has("model") && has("timestamp"),
        "message" => has("delta") && has("content") && !value.mark("role").is_empty(),
        "tool_use" => has("tool_id") && has("tool_name"),
        "tool_result" => has("tool_id") && has("status"),
        "result" => has("stats") && has("status"),
        "" => {
            has("response")
                && has("stats")
                && value.keys.iter().all(|key| RESULT_KEYS.contains(&key.as_str()))
        }
        _ => false,
    }
}

/// Reads one session.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut run = GeminiRun::default();
    if !is_lines(source)? {
        return source.read_document(&mut run, feed);
    }
    run.begin(feed);
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        if let Some(event) = line.parse::<GeminiEvent<'_>>(&mut scratch, &mut feed.notes) {
            run.event(event, feed);
        }
    }
    run.end(feed);
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GeminiEvent<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    timestamp: Moment,
    session_id: Text<'a>,
    model: Text<'a>,
    role: Text<'a>,
    content: Text<'a>,
    delta: LenientFlag,
    tool_name: Text<'a>,
    tool_id: Text<'a>,
    parameters: JsonText,
    status: Text<'a>,
    output: Text<'a>,
    error: JsonValue,
    severity: Text<'a>,
    message: Text<'a>,
    response: Text<'a>,
    stats: LenientObject<GeminiStats>,
}

/// Counts of the run; the input includes cached tokens.
#[derive(Deserialize, Default)]
#[serde(default)]
struct GeminiStats {
    total_tokens: LenientInt,
    input_tokens: LenientInt,
    output_tokens: LenientInt,
    cached: LenientInt,
    models: JsonValue,
}

impl GeminiStats {
    fn usage(&self) -> Option<TokenCounts> {
        let (whole, cached) = (self.input_tokens.count(), self.cached.count());
        // Thoughts are in the total alone.
        let rest = self.total_tokens.count().saturating_sub(whole);
        let usage = TokenCounts {
            input: whole.saturating_sub(cached),
            output: self.output_tokens.count().max(rest),
            cached,
        };
        if usage != TokenCounts::default() {
            return Some(usage);
        }
        // `--output-format json` has counts per model.
        let models = self.models.keys("");
        let of = |model: &str, name: &str| {
            let model = model.replace('~', "~0").replace('/', "~1");
            self.models.part::<LenientInt>(&format!("/{model}/tokens/{name}")).count()
        };
        let sum = |name: &str| models.iter().map(|model| of(model, name)).sum::<u64>();
        let cached = sum("cached");
        let usage = TokenCounts {
            input: sum("prompt").saturating_sub(cached),
            output: sum("candidates").saturating_add(sum("thoughts")),
            cached,
        };
        (usage != TokenCounts::default()).then_some(usage)
    }
}

/// State between lines.
#[derive(Default)]
struct GeminiRun {
    answer: PrintedAnswer,
    /// What `--model` named, which may be `auto`. Counts name the models that answered.
    chosen: String,
}

impl DocumentReader for GeminiRun {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        // Called again if a damaged document is read a second time.
        *self = Self::default();
        "gemini-cli".clone_into(&mut feed.head.agent);
        feed.head.platform = Some("print".to_owned());
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut event = LenientObject::<GeminiEvent<'de>>::default();
        event.object(map)?;
        self.event(event.0.unwrap_or_default(), feed);
        self.end(feed);
        Ok(())
    }
}

impl GeminiRun {
    fn event(&mut self, event: GeminiEvent<'_>, feed: &mut SessionFeed<'_>) {
        if feed.head.id.is_empty() {
            event.session_id.as_str().clone_into(&mut feed.head.id);
        }
        feed.record_time(event.timestamp);
        let time = event.timestamp.0;
        match event.kind.as_str() {
            "init" => event.model.as_str().clone_into(&mut self.chosen),
            "message" if event.role.as_str() == "user" => {
                self.answer.flush(feed);
                feed.send_text(EventRole::User, EventOrigin::Human, event.content, time);
            }
            "message" if event.delta.is_set() => self.answer.say_piece(&event.content, time, feed),
            "message" => self.answer.say(&event.content, time, feed),
            "tool_use" => {
                let GeminiEvent { tool_id: id, tool_name: name, parameters, .. } = event;
                self.answer.call(ToolCall { id, name, arguments: parameters.0 }, time, feed);
            }
            "tool_result" => {
                let mut result = failure::result_of(event.output);
                result.outcome = match event.status.as_str() {
                    "error" => ToolOutcome::Failed,
                    // The status says that the tool ran; the text may still report an exit code.
                    _ if result.exit_code.is_some_and(|code| code != 0) => ToolOutcome::Failed,
                    "success" => ToolOutcome::Ok,
                    _ => result.outcome,
                };
                if result.error.is_empty() {
                    result.error = event.error.text("/message");
                }
                result.call_id = event.tool_id;
                self.answer.result(result);
            }
            "error" => {
                self.answer.flush(feed);
                if event.severity.as_str() == "warning" {
                    let (role, origin) = (EventRole::System, EventOrigin::Harness);
                    feed.send_text(role, origin, event.message, time);
                } else {
                    send_failure(event.message, time, feed);
                }
            }
            "result" | "" => self.result(event, feed),
            kind => {
                feed.count_unknown(kind);
                feed.notes.ignored_records += 1;
            }
        }
    }

    /// Reads the last line, or the only object.
    fn result(&mut self, event: GeminiEvent<'_>, feed: &mut SessionFeed<'_>) {
        let time = event.timestamp.0;
        self.answer.say(&event.response, time, feed);
        self.answer.flush(feed);
        if let Some(stats) = event.stats.0 {
            for model in stats.models.keys("") {
                feed.head.add_model(&model);
            }
            feed.head.usage = stats.usage();
        }
        let message = event.error.text("/message");
        if event.status.as_str() == "error" || !message.is_empty() {
            send_failure(message, time, feed);
        }
    }

    fn end(&mut self, feed: &mut SessionFeed<'_>) {
        self.answer.flush(feed);
        if feed.head.models.is_empty() {
            feed.head.add_model(&self.chosen);
        }
    }
}

fn send_failure(text: Text<'_>, time: Option<jiff::Timestamp>, feed: &mut SessionFeed<'_>) {
    let mark = Some(EventMark::ApiError);
    feed.send(Event { text, time, mark, ..Event::default() });
}

#[cfg(test)]
mod tests {
    use super::super::SessionFormat;
    use super::super::test_support::survives_damage;
    use super::*;
    use crate::test_support::only_session;

    /// 1 human turn, 3 model calls, 2 calls of which 1 failed, behind two warnings.
    const FIXTURE: &str = r#"Warning: Basic terminal detected (TERM=dumb).
Skill "x" is overriding the built-in skill.
{"type":"init","timestamp":"2026-04-29T20:05:00Z","session_id":"g-1","model":"auto"}
{"type":"message","timestamp":"2026-04-29T20:05:00Z","role":"user","content":"list it"}
{"type":"message","timestamp":"2026-04-29T20:05:01Z","role":"assistant","content":"I lo","delta":true}
{"type":"message","timestamp":"2026-04-29T20:05:01Z","role":"assistant","content":"ok.","delta":true}
{"type":"tool_use","timestamp":"2026-04-29T20:05:02Z","tool_name":"list_directory","tool_id":"c1","parameters":{"dir_path":"."}}
{"type":"tool_result","timestamp":"2026-04-29T20:05:03Z","tool_id":"c1","status":"success"}
{"type":"tool_use","timestamp":"2026-04-29T20:05:04Z","tool_name":"read_file","tool_id":"c2","parameters":{"file_path":"/x"}}
{"type":"tool_result","timestamp":"2026-04-29T20:05:05Z","tool_id":"c2","status":"error","output":"Path not in workspace: /x","error":{"type":"invalid_tool_params","message":"Path not in workspace"}}
{"type":"message","timestamp":"2026-04-29T20:05:06Z","role":"assistant","content":"One file.","delta":true}
{"type":"result","timestamp":"2026-04-29T20:05:07Z","status":"success","stats":{"total_tokens":130,"input_tokens":100,"output_tokens":20,"cached":40,"tool_calls":2,"models":{"gemini-x":{"total_tokens":130}}}}
"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let session =
            only_session(SessionFormat::GeminiPrint, &SessionSource::bytes("run.jsonl", FIXTURE));
        let head = &session.head;
        assert_eq!((head.id.as_str(), head.agent.as_str()), ("g-1", "gemini-cli"));
        assert_eq!(head.models, ["gemini-x"]);
        assert_eq!(head.usage, Some(TokenCounts { input: 60, output: 30, cached: 40 }));
        let said: Vec<_> = session
            .events
            .iter()
            .map(|event| (event.role, event.text.as_str(), event.calls.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::User, "list it", 0),
                (EventRole::Assistant, "I look.", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "", 1),
                (EventRole::Tool, "", 0),
                (EventRole::Assistant, "One file.", 0),
            ]
        );
        let results: Vec<_> = session
            .events
            .iter()
            .flat_map(|event| &event.results)
            .map(|result| (result.tool.as_str(), result.outcome))
            .collect();
        assert_eq!(
            results,
            [("list_directory", ToolOutcome::Ok), ("read_file", ToolOutcome::Failed)]
        );
    }

    #[test]
    fn one_object_is_the_answer() {
        let text = r#"{
  "session_id": "g-2",
  "response": "hello",
  "stats": {"models": {"gemini-x": {"tokens": {"prompt": 10, "candidates": 2, "thoughts": 3, "cached": 4}}}}
}"#;
        let session =
            only_session(SessionFormat::GeminiPrint, &SessionSource::bytes("run.json", text));
        assert_eq!((session.head.id.as_str(), session.events[0].text.as_str()), ("g-2", "hello"));
        assert_eq!(session.head.usage, Some(TokenCounts { input: 6, output: 5, cached: 4 }));
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::GeminiPrint, FIXTURE.as_bytes());
    }
}
