//! Reads the older gateway's transcript, `~/.hermes/sessions/<id>.jsonl`: a line of metadata, then
//! one message per line. The session's id is the file name.

use serde::Deserialize;

use crate::ReadError;
use crate::feed::{Feed, Notes};
use crate::source::Source;
use crate::text::Text;
use crate::wire::Object;

use super::message::{AGENT, Message};

/// Session metadata of a line. The tools' schemas are skipped.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct About<'a> {
    model: Text<'a>,
    platform: Text<'a>,
    cwd: Text<'a>,
    session_id: Text<'a>,
}

/// Reads a transcript.
pub(crate) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    let mut lines = source.lines()?;
    let (mut scratch, mut again) = (String::new(), String::new());
    AGENT.clone_into(&mut feed.head.agent);
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(record) = line.parse::<Object<Message<'_>>>(&mut scratch, &mut feed.notes) else {
            continue;
        };
        let Some(message) = record.0 else {
            feed.notes.ignored_records += 1;
            continue;
        };
        if message.role.as_str() == "session_meta"
            && let Some(about) = line.parse::<About<'_>>(&mut again, &mut Notes::default())
        {
            // The same line holds both a message and the metadata, so it is parsed a second time.
            about.note(feed);
            feed.saw(message.timestamp);
        }
        message.send(feed);
    }
    Ok(())
}

impl About<'_> {
    fn note(&self, feed: &mut Feed<'_>) {
        let head = &mut feed.head;
        head.model(&self.model);
        head.platform = self.platform.line(400).or(head.platform.take());
        head.cwd = self.cwd.line(400).or(head.cwd.take());
        if let Some(id) = self.session_id.line(400) {
            head.id = id;
        }
    }
}
