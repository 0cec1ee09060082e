//! Reads session snapshots, `session_<id>.json`: one object, rewritten on each turn.
//!
//! Often, most of its bytes are the tools' schemas, which are skipped.

use serde::de::{IgnoredAny, MapAccess};

use crate::ReadError;
use crate::feed::Feed;
use crate::source::{Document, Source, records};
use crate::text::Text;
use crate::wire::Loose;

use super::message::{AGENT, Message};

/// Reads a snapshot.
pub(crate) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    source.document(&mut Snapshot, feed)
}

struct Snapshot;

impl Document for Snapshot {
    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        AGENT.clone_into(&mut feed.head.agent);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "session_id" => feed.head.id = map.next_value::<Text<'de>>()?.as_str().to_owned(),
                "model" => feed.head.model(&map.next_value::<Text<'de>>()?),
                "platform" => feed.head.platform = map.next_value::<Text<'de>>()?.line(400),
                "parent_session_id" => feed.head.parent = map.next_value::<Text<'de>>()?.line(400),
                "cwd" => feed.head.cwd = map.next_value::<Text<'de>>()?.line(400),
                // Some builds store the working directory in the model settings.
                "model_config" => {
                    let cwd = map.next_value::<Loose>()?.text("/cwd").line(400);
                    feed.head.cwd = feed.head.cwd.take().or(cwd);
                }
                "session_start" | "last_updated" => feed.saw(map.next_value()?),
                "messages" => {
                    map.next_value_seed(records(feed, |message: Message<'de>, feed| {
                        message.send(feed);
                    }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
