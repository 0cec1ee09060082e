//! The form that is one JSON value: a chat with `messages`, or a checkpoint.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::checkpoint::Turn;
use super::message::Message;
use crate::ReadError;
use crate::feed::Feed;
use crate::source::{Document, Source};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{Object, each, otherwise_default};

/// Reads a chat or a checkpoint.
pub(super) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    source.document::<Chat>(feed)
}

/// What a whole line of JSON is, by its keys.
#[derive(Default)]
pub(super) struct Keys {
    /// It holds the messages itself.
    pub(super) is_document: bool,
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyKeys;

        impl<'de> Visitor<'de> for AnyKeys {
            type Value = Keys;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut is_document = false;
                while let Some((key, _)) = map.next_entry::<Text<'de>, IgnoredAny>()? {
                    is_document |= ["messages", "history"].contains(&key.as_str());
                }
                Ok(Keys { is_document })
            }
        }

        deserializer.deserialize_map(AnyKeys)
    }
}

struct Chat;

impl Document for Chat {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        feed: &mut Feed<'_>,
    ) -> Result<(), D::Error> {
        // A second reading begins with an empty head.
        feed.head.agent = "gemini-cli".into();
        deserializer.deserialize_any(Root { feed })
    }
}

struct Root<'f, 's> {
    feed: &'f mut Feed<'s>,
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a chat")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(Object(turn)) = list.next_element::<Object<Turn<'de>>>()? {
            if let Some(turn) = turn {
                turn.send(self.feed);
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let feed = self.feed;
        let mut is_subagent = false;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "sessionId" => feed.head.id = map.next_value::<Text<'de>>()?.as_str().to_owned(),
                "kind" => is_subagent = map.next_value::<Text<'de>>()?.as_str() == "subagent",
                "startTime" | "lastUpdated" => {
                    if let Moment(Some(time)) = map.next_value()? {
                        feed.head.saw(time);
                    }
                }
                "messages" => map.next_value_seed(each(|Object(message)| {
                    let message: Option<Message<'de>> = message;
                    if let Some(message) = message {
                        message.send(is_subagent, feed);
                    }
                }))?,
                "history" => map.next_value_seed(each(|Object(turn)| {
                    let turn: Option<Turn<'de>> = turn;
                    if let Some(turn) = turn {
                        turn.send(feed);
                    }
                }))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    otherwise_default!(string number boolean null);
}
