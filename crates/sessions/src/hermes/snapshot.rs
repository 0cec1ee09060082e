//! Reads session snapshots, `session_<id>.json`: one object, rewritten on each turn.
//!
//! Often, most of its bytes are the tools' schemas, which are skipped.

use serde::de::{IgnoredAny, MapAccess};

use crate::SessionReadError;
use crate::entry::{FormatEntry, IdSource};
use crate::feed::SessionFeed;
use crate::source::{DocumentReader, SessionSource, each_record};
use crate::text::Text;
use crate::wire::JsonValue;

use super::message::{AGENT, HermesMessage};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| ["session_id", "session_start", "messages"].iter().all(|key| value.has(key)),
    ids: IdSource::FileName,
    has_several_stores: true,
    ..FormatEntry::new(read)
};

/// Reads a snapshot.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    source.read_document(&mut HermesSnapshotDocument, feed)
}

struct HermesSnapshotDocument;

impl DocumentReader for HermesSnapshotDocument {
    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        AGENT.clone_into(&mut feed.head.agent);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "session_id" => feed.head.id = map.next_value::<Text<'de>>()?.as_str().to_owned(),
                "model" => feed.head.add_model(&map.next_value::<Text<'de>>()?),
                "platform" => feed.head.platform = map.next_value::<Text<'de>>()?.line(400),
                "parent_session_id" => feed.head.parent = map.next_value::<Text<'de>>()?.line(400),
                "cwd" => feed.head.cwd = map.next_value::<Text<'de>>()?.line(400),
                // Some builds store the working directory in the model settings.
                "model_config" => {
                    let cwd = map.next_value::<JsonValue>()?.text("/cwd").line(400);
                    feed.head.cwd = feed.head.cwd.take().or(cwd);
                }
                "session_start" | "last_updated" => feed.record_time(map.next_value()?),
                "messages" => {
                    map.next_value_seed(each_record(feed, |message: HermesMessage<'de>, feed| {
                        message.send(feed);
                    }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
