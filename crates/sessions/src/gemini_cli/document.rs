//! Reads the form with one JSON value: a chat with `messages`, or a checkpoint.

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::checkpoint::Turn;
use super::message::Message;
use crate::ReadError;
use crate::feed::Feed;
use crate::source::{Document, Source};
use crate::text::Text;
use crate::wire::{Object, each};

/// Reads a chat or a checkpoint.
pub(super) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    source.document(&mut Chat, feed)
}

struct Chat;

impl Document for Chat {
    fn begin(&mut self, feed: &mut Feed<'_>) {
        feed.head.agent = "gemini-cli".into();
    }

    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        while let Some(Object(turn)) = list.next_element::<Object<Turn<'de>>>()? {
            if let Some(turn) = turn {
                turn.send(feed);
            }
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        let mut is_subagent = false;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "sessionId" => feed.head.id = map.next_value::<Text<'de>>()?.as_str().to_owned(),
                "kind" => is_subagent = map.next_value::<Text<'de>>()?.as_str() == "subagent",
                "startTime" | "lastUpdated" => feed.saw(map.next_value()?),
                "messages" => map.next_value_seed(each(|message: Object<Message<'de>>| {
                    if let Some(message) = message.0 {
                        message.send(is_subagent, feed);
                    }
                }))?,
                "history" => map.next_value_seed(each(|turn: Object<Turn<'de>>| {
                    if let Some(turn) = turn.0 {
                        turn.send(feed);
                    }
                }))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
