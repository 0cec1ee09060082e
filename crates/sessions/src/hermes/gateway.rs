//! Reads the older gateway's transcript, `~/.hermes/sessions/<id>.jsonl`: a line of metadata, then
//! one message per line. The session's id is the file name.

use serde::Deserialize;

use crate::SessionReadError;
use crate::entry::{FormatEntry, IdSource};
use crate::feed::{ReadNotes, SessionFeed};
use crate::source::SessionSource;
use crate::text::Text;
use crate::wire::LenientObject;

use super::message::{AGENT, HermesMessage};

/// Session metadata of a line. The tools' schemas are skipped.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct GatewayMetadata<'a> {
    model: Text<'a>,
    platform: Text<'a>,
    cwd: Text<'a>,
    session_id: Text<'a>,
}

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.mark("role") == "session_meta",
    ids: IdSource::FileName,
    has_several_stores: true,
    ..FormatEntry::new(read)
};

/// Reads a transcript.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut lines = source.lines()?;
    let (mut scratch, mut again) = (String::new(), String::new());
    AGENT.clone_into(&mut feed.head.agent);
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(record) =
            line.parse::<LenientObject<HermesMessage<'_>>>(&mut scratch, &mut feed.notes)
        else {
            continue;
        };
        let Some(message) = record.0 else {
            feed.notes.ignored_records += 1;
            continue;
        };
        if message.role.as_str() == "session_meta"
            && let Some(about) =
                line.parse::<GatewayMetadata<'_>>(&mut again, &mut ReadNotes::default())
        {
            // The same line holds both a message and the metadata, so it is parsed a second time.
            about.note(feed);
            feed.record_time(message.timestamp);
        }
        message.send(feed);
    }
    Ok(())
}

impl GatewayMetadata<'_> {
    fn note(&self, feed: &mut SessionFeed<'_>) {
        let head = &mut feed.head;
        head.add_model(&self.model);
        head.platform = self.platform.line(400).or(head.platform.take());
        head.cwd = self.cwd.line(400).or(head.cwd.take());
        if let Some(id) = self.session_id.line(400) {
            head.id = id;
        }
    }
}
