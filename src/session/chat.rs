//! Plain `OpenAI` chat messages: a bare list, wrapped in `messages`, `history` or `traj`, or a
//! list of such wrappers (tau-bench: one per run).
//!
//! There is no error flag: a tool's failure is read from its text (`failure`).

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::ReadError;
use super::event::{Event, Origin, Role, ToolCall, ToolResult};
use super::failure;
use super::feed::Feed;
use super::source::{Document, Source};
use super::text::Text;
use super::time::Moment;
use super::wire::{Content, Json, List, Object, otherwise_default};

/// Reads chat messages.
pub(super) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    source.document::<Chat>(feed)
}

struct Chat;

impl Document for Chat {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        feed: &mut Feed<'_>,
    ) -> Result<(), D::Error> {
        deserializer.deserialize_any(Root { feed })
    }
}

/// A list of messages, an object around one, a list of such objects, or one message.
struct Root<'f, 's> {
    feed: &'f mut Feed<'s>,
}

impl<'de> DeserializeSeed<'de> for Root<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("chat messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Root { feed: &mut *self.feed })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut message = Message::default();
        let (mut is_wrapper, mut id, mut task, mut trial) = (false, None, None, None);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "messages" | "traj" | "history" => {
                    is_wrapper = true;
                    map.next_value_seed(Root { feed: &mut *self.feed })?;
                }
                "id" | "session_id" => id = Some(map.next_value::<Text<'de>>()?),
                "task_id" => task = Some(map.next_value::<Text<'de>>()?),
                "trial" => trial = Some(map.next_value::<Text<'de>>()?),
                "model" => {
                    let model = map.next_value::<Text<'de>>()?;
                    self.feed.head.model(&model);
                }
                "role" => message.role = map.next_value()?,
                "content" => message.content = map.next_value()?,
                "reasoning" | "reasoning_content" => message.reasoning = map.next_value()?,
                "name" => message.name = map.next_value()?,
                "tool_calls" => message.tool_calls = map.next_value()?,
                "function_call" => message.function_call = map.next_value()?,
                "tool_call_id" => message.tool_call_id = map.next_value()?,
                "timestamp" | "created_at" => message.time = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if !is_wrapper {
            message.send(self.feed);
            return Ok(());
        }
        let stem = self.feed.stem();
        self.feed.head.id = match (id, task, trial) {
            (Some(id), _, _) => id.as_str().to_owned(),
            (None, Some(task), Some(trial)) => format!("{stem}#{task}.{trial}"),
            (None, Some(task), None) => format!("{stem}#{task}"),
            (None, None, _) => String::new(),
        };
        self.feed.end();
        Ok(())
    }

    otherwise_default!(string number boolean null);
}

#[derive(Default)]
struct Message<'a> {
    role: Text<'a>,
    content: Content<'a>,
    reasoning: Text<'a>,
    name: Text<'a>,
    tool_calls: List<Call<'a>>,
    function_call: Object<Function<'a>>,
    tool_call_id: Text<'a>,
    time: Moment,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Call<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    function: Object<Function<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    arguments: Json,
}

impl<'a> Function<'a> {
    fn call(self, id: Text<'a>) -> ToolCall<'a> {
        ToolCall { id, name: self.name, arguments: self.arguments.0 }
    }
}

impl Message<'_> {
    fn send(self, feed: &mut Feed<'_>) {
        let Content(text) = self.content;
        let time = self.time.0;
        let (role, origin) = match self.role.as_str() {
            "assistant" => (Role::Assistant, Origin::Agent),
            "user" => (Role::User, Origin::Human),
            "tool" | "function" => {
                let result = ToolResult {
                    call_id: self.tool_call_id,
                    tool: self.name,
                    ..failure::result_of(text)
                };
                let results = vec![result];
                let (role, origin) = (Role::Tool, Origin::Agent);
                feed.event(Event { role, origin, results, time, ..Event::default() });
                return;
            }
            _ => (Role::System, Origin::Harness),
        };
        feed.head.agent = "chat".to_owned();
        let calls = self.tool_calls.0.into_iter();
        let calls = calls.filter_map(|call| Some(call.function.0?.call(call.id)));
        let old = self.function_call.0.map(|function| function.call(Text::default()));
        let calls = calls.chain(old).collect();
        let reasoning = self.reasoning;
        feed.event(Event { role, origin, text, reasoning, calls, time, ..Event::default() });
    }
}

#[cfg(test)]
mod tests {
    use crate::session::mutation::survives_damage;
    use crate::session::{Collector, Format, Outcome, Session, Source, read};

    fn sessions(json: &str) -> Vec<Session> {
        let mut collector = Collector::default();
        let reading = read(&Source::bytes("runs.json", json), &mut collector).unwrap();
        assert_eq!(reading.format, Format::Chat);
        collector.into_sessions()
    }

    #[test]
    fn a_list_of_runs_is_a_list_of_sessions() {
        let run = |task: u32| {
            format!(
                r#"{{"task_id":{task},"reward":1.0,"trial":0,"traj":[
                {{"role":"system","content":"rules"}},
                {{"role":"user","content":"hello"}},
                {{"role":"assistant","content":null,"tool_calls":[
                  {{"id":"c1","type":"function","function":{{"name":"find","arguments":"{{\"a\": 1}}"}}}}]}},
                {{"role":"tool","tool_call_id":"c1","name":"find","content":"Error: user not found"}},
                {{"role":"assistant","content":"sorry"}}]}}"#
            )
        };
        let found = sessions(&format!("[{},{}]", run(4), run(5)));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].head.id, "runs#5.0");
        assert_eq!(found[0].events.len(), 5);
        assert_eq!(found[0].events[2].calls[0].arguments.as_str(), r#"{"a": 1}"#);
        assert_eq!(found[0].events[3].results[0].outcome, Outcome::Failed);
    }

    #[test]
    fn damage_does_no_harm() {
        let fixture = r#"{"messages":[{"role":"user","content":"hello"},{"role":"assistant",
            "content":[{"type":"text","text":"hi"}],"tool_calls":[{"id":"c","function":
            {"name":"f","arguments":{}}}]},{"role":"tool","tool_call_id":"c","content":"{\"error\":1}"}]}"#;
        survives_damage(Format::Chat, fixture.as_bytes());
    }

    #[test]
    fn a_bare_list_and_a_torn_one() {
        let whole = r#"[{"role":"user","content":"hello"},{"role":"assistant","content":"hi"}]"#;
        assert_eq!(sessions(whole)[0].events.len(), 2);
        let mut collector = Collector::default();
        let torn = Source::bytes("torn.json", &whole[..whole.len() - 10]);
        let reading = read(&torn, &mut collector).unwrap();
        assert!(reading.notes.torn.unwrap().contains("EOF"));
        assert_eq!(collector.into_sessions()[0].events.len(), 1);
    }
}
