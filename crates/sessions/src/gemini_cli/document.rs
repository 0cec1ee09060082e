//! Reads the form with one JSON value: a chat with `messages`, or a checkpoint.

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::checkpoint::CheckpointTurn;
use super::message::GeminiMessage;
use crate::SessionReadError;
use crate::feed::SessionFeed;
use crate::source::{DocumentReader, SessionSource};
use crate::text::Text;
use crate::wire::{LenientObject, each};

/// Reads a chat or a checkpoint.
pub(super) fn read(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    source.read_document(&mut GeminiDocument, feed)
}

struct GeminiDocument;

/// An answer of the API.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ApiCandidate<'a> {
    content: LenientObject<CheckpointTurn<'a>>,
}

impl DocumentReader for GeminiDocument {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        feed.head.agent = "gemini-cli".into();
    }

    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        while let Some(LenientObject(turn)) =
            list.next_element::<LenientObject<CheckpointTurn<'de>>>()?
        {
            if let Some(turn) = turn {
                turn.send(feed);
            }
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut is_subagent = false;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "sessionId" => feed.head.id = map.next_value::<Text<'de>>()?.as_str().to_owned(),
                "kind" => is_subagent = map.next_value::<Text<'de>>()?.as_str() == "subagent",
                "startTime" | "lastUpdated" => feed.record_time(map.next_value()?),
                "messages" => {
                    map.next_value_seed(each(|message: LenientObject<GeminiMessage<'de>>| {
                        if let Some(message) = message.0 {
                            message.send(is_subagent, feed);
                        }
                    }))?;
                }
                // A request to the API, perhaps beside its response.
                "systemInstruction" | "system_instruction" => {
                    let rules = map.next_value::<LenientObject<CheckpointTurn<'de>>>()?;
                    rules.0.unwrap_or_default().send_rules(feed);
                }
                "model" => feed.head.add_model(&map.next_value::<Text<'de>>()?),
                "candidates" => {
                    map.next_value_seed(each(|answer: LenientObject<ApiCandidate<'de>>| {
                        if let Some(turn) = answer.0.and_then(|answer| answer.content.0) {
                            turn.send(feed);
                        }
                    }))?;
                }
                "history" | "contents" => {
                    map.next_value_seed(each(|turn: LenientObject<CheckpointTurn<'de>>| {
                        if let Some(turn) = turn.0 {
                            turn.send(feed);
                        }
                    }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
