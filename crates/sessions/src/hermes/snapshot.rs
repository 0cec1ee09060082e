//! The snapshot of a session, `session_<id>.json`: one object, written whole on each turn.
//!
//! Most of its bytes are often the tools' schemas, which are skipped.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::ReadError;
use crate::feed::Feed;
use crate::source::{Document, Source};
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{Object, each, otherwise_default};

use super::message::{AGENT, Message};

/// Reads a snapshot.
pub(crate) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    source.document::<Snapshot>(feed)
}

struct Snapshot;

impl Document for Snapshot {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        feed: &mut Feed<'_>,
    ) -> Result<(), D::Error> {
        deserializer.deserialize_any(Root { feed })
    }
}

struct Root<'f, 's> {
    feed: &'f mut Feed<'s>,
}

/// The settings of the model; the working folder of some builds is among them.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Settings<'a> {
    cwd: Text<'a>,
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a Hermes session")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let feed = self.feed;
        AGENT.clone_into(&mut feed.head.agent);
        let known =
            |text: &Text<'_>| (!text.is_empty()).then(|| selftest_text::one_line(text, 400));
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "session_id" => feed.head.id = map.next_value::<Text<'de>>()?.as_str().to_owned(),
                "model" => feed.head.model(&map.next_value::<Text<'de>>()?),
                "platform" => feed.head.platform = known(&map.next_value::<Text<'de>>()?),
                "parent_session_id" => feed.head.parent = known(&map.next_value::<Text<'de>>()?),
                "cwd" => feed.head.cwd = known(&map.next_value::<Text<'de>>()?),
                "model_config" => {
                    let settings = map.next_value::<Object<Settings<'de>>>()?.0.unwrap_or_default();
                    feed.head.cwd = feed.head.cwd.take().or(known(&settings.cwd));
                }
                "session_start" | "last_updated" => {
                    if let Moment(Some(time)) = map.next_value()? {
                        feed.head.saw(time);
                    }
                }
                "messages" => {
                    map.next_value_seed(each(
                        |Object(message): Object<Message<'de>>| match message {
                            Some(message) => message.send(feed),
                            None => feed.notes.bad_records += 1,
                        },
                    ))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    otherwise_default!(string number boolean null list);
}
