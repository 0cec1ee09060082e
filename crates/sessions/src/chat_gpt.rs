//! Reads the `ChatGPT` export, `conversations.json`: a list of conversations, each a tree of
//! messages (`mapping`). The branch that ends at `current_node` is the one the user saw last.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};

use super::blocks::{ContentBlock, ContentBlocks, MessageContext};
use super::event::{EventOrigin, EventRole, ToolCall, ToolResult};
use super::feed::SessionFeed;
use super::source::{DocumentReader, SessionSource, each_record};
use super::text::Text;
use super::time::Moment;
use super::wire::{JsonValue, LenientList, LenientObject};
use super::{SessionReadError, failure};
use crate::format::FormatEntry;
use crate::wire::AnyJson as _;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.has("mapping") && value.has("current_node"),
    in_lists: true,
    ..FormatEntry::new(read)
};

/// Reads every conversation of an export.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    source.read_document(&mut ChatGptExport, feed)
}

struct ChatGptExport;

impl DocumentReader for ChatGptExport {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        each_record(feed, |conversation: ChatGptConversation<'de>, feed| conversation.send(feed))
            .list(list)
    }

    /// Reads a file that holds a single conversation.
    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut conversation = LenientObject::<ChatGptConversation<'de>>::default();
        conversation.object(map)?;
        conversation.0.into_iter().for_each(|conversation| conversation.send(feed));
        Ok(())
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ChatGptConversation<'a> {
    #[serde(rename = "conversation_id", alias = "id")]
    id: Text<'a>,
    create_time: Moment,
    update_time: Moment,
    current_node: String,
    mapping: BTreeMap<String, ChatGptNode<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ChatGptNode<'a> {
    parent: Option<String>,
    message: LenientObject<ChatGptMessage<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ChatGptMessage<'a> {
    author: LenientObject<ChatGptAuthor<'a>>,
    create_time: Moment,
    content: LenientObject<ChatGptContent<'a>>,
    recipient: Text<'a>,
    metadata: JsonValue,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ChatGptAuthor<'a> {
    role: Text<'a>,
    name: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ChatGptContent<'a> {
    #[serde(rename = "content_type")]
    kind: Text<'a>,
    parts: ContentBlocks<'a>,
    text: Text<'a>,
    thoughts: LenientList<ContentBlock<'a>>,
    result: Text<'a>,
}

impl ChatGptConversation<'_> {
    fn send(mut self, feed: &mut SessionFeed<'_>) {
        "chatgpt".clone_into(&mut feed.head.agent);
        self.id.as_str().clone_into(&mut feed.head.id);
        feed.record_time(self.create_time);
        feed.record_time(self.update_time);
        let (mut path, mut seen) = (Vec::new(), HashSet::new());
        let mut at = Some(self.current_node.clone());
        // A node seen before means a cycle.
        while let Some(id) = at.take().filter(|id| seen.insert(id.clone())) {
            let Some(node) = self.mapping.remove(&id) else { break };
            at = node.parent;
            path.extend(node.message.0);
        }
        // What remains are the abandoned branches.
        let left = self.mapping.values().filter(|node| node.message.0.is_some()).count();
        feed.notes.dropped_records += left as u64;
        // The path was collected from the last message back to the first.
        path.into_iter().rev().for_each(|message| message.send(feed));
        feed.end_session();
    }
}

impl ChatGptMessage<'_> {
    fn send(self, feed: &mut SessionFeed<'_>) {
        let ChatGptAuthor { role, name } = self.author.0.unwrap_or_default();
        let mut content = self.content.0.unwrap_or_default();
        let time = self.create_time.0;
        feed.head.add_model(&self.metadata.text("/model_slug"));
        let kind = content.kind.as_str().to_owned();
        let mut text = content.parts.take_text();
        text.add(content.text);
        text.add(content.result);
        match role.as_str() {
            "user" => feed.send_text(EventRole::User, EventOrigin::Human, text, time),
            "system" => feed.send_text(EventRole::System, EventOrigin::Harness, text, time),
            "tool" => {
                let result =
                    ToolResult { call_id: name.clone(), tool: name, ..failure::result_of(text) };
                feed.send_results(EventOrigin::Agent, vec![result], time);
            }
            "assistant" => {
                let mut blocks = ContentBlocks::default();
                let is_call = !matches!(self.recipient.as_str(), "" | "all");
                match kind.as_str() {
                    "thoughts" | "reasoning_recap" => {
                        for thought in content.thoughts.0 {
                            blocks.think(thought.text);
                        }
                        blocks.think(text);
                    }
                    // A message to a tool. Its only id is the tool's name.
                    _ if is_call => blocks.call(ToolCall {
                        id: self.recipient.clone(),
                        name: self.recipient,
                        arguments: text,
                    }),
                    "text" | "multimodal_text" | "code" | "model_editable_context" | "" => {
                        blocks.say(text);
                    }
                    kind => blocks.unknown(kind, &text),
                }
                blocks.send_answer(&MessageContext::new(EventOrigin::Agent, time), feed);
            }
            other => {
                feed.count_unknown(other);
                feed.notes.ignored_records += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::ToolOutcome;
    use super::super::test_support::survives_damage;
    use super::super::{SessionCollector, SessionFormat, read};
    use super::*;

    /// 1 human turn, 2 model messages, 1 call; 1 message on another branch.
    const FIXTURE: &str = r#"[{"title":"t","create_time":1767225600.5,"update_time":1767225609,"conversation_id":"c-1","current_node":"n4","mapping":{
      "n0":{"id":"n0","message":null,"parent":null,"children":["n1"]},
      "n1":{"id":"n1","parent":"n0","message":{"author":{"role":"user"},"create_time":1767225601,"content":{"content_type":"text","parts":["2 + 2?"]}}},
      "n2":{"id":"n2","parent":"n1","message":{"author":{"role":"assistant"},"recipient":"python","content":{"content_type":"code","text":"print(2 + 2)"},"metadata":{"model_slug":"gpt-x"}}},
      "n3":{"id":"n3","parent":"n2","message":{"author":{"role":"tool","name":"python"},"content":{"content_type":"execution_output","text":"4"}}},
      "n4":{"id":"n4","parent":"n3","message":{"author":{"role":"assistant"},"recipient":"all","content":{"content_type":"text","parts":["4"]}}},
      "n5":{"id":"n5","parent":"n1","message":{"author":{"role":"assistant"},"content":{"content_type":"text","parts":["5"]}}}}}]"#;

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let mut collector = SessionCollector::default();
        let reading =
            read(&SessionSource::bytes("conversations.json", FIXTURE), &mut collector).unwrap();
        assert_eq!((reading.format, reading.notes.dropped_records), (SessionFormat::ChatGpt, 1));
        let session = collector.into_sessions().remove(0);
        assert_eq!((session.head.id.as_str(), session.head.models[0].as_str()), ("c-1", "gpt-x"));
        assert_eq!(session.events.len(), 4);
        assert_eq!(session.events[1].calls[0].arguments.as_str(), "print(2 + 2)");
        let result = &session.events[2].results[0];
        assert_eq!((result.tool.as_str(), result.outcome), ("python", ToolOutcome::Unknown));
        assert_eq!(session.events[3].text.as_str(), "4");
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::ChatGpt, FIXTURE.as_bytes());
    }
}
