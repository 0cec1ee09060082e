//! Reads the JSON Lines form: a header, messages, `{"$set": {…}}` and `{"$rewindTo": id}`.
//!
//! Nearly every message is written several times, first without its tokens and tool results, and
//! the last write of an id counts. A first pass therefore collects ids, and a second one sends each
//! message at its last write.

use std::collections::HashMap;

use serde::Deserialize;

use super::message::GeminiMessage;
use crate::SessionReadError;
use crate::feed::{ReadNotes, SessionFeed};
use crate::id::RecordId;
use crate::source::SessionSource;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{LenientList, LenientObject};

/// A line in the first pass, with only the fields that determine the last writes.
#[derive(Deserialize, Default)]
#[serde(default)]
struct LineSketch {
    id: RecordId,
    #[serde(rename = "$rewindTo")]
    rewind_to: RecordId,
    #[serde(rename = "$set")]
    set: LenientObject<SetSketch>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SetSketch {
    messages: LenientList<MessageId>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct MessageId {
    id: RecordId,
}

/// A line in the second pass, unless it is a message.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct LineHeader<'a> {
    id: Text<'a>,
    session_id: Text<'a>,
    kind: Text<'a>,
    start_time: Moment,
    last_updated: Moment,
    #[serde(rename = "$set")]
    set: LenientObject<SetChanges<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct SetChanges<'a> {
    kind: Text<'a>,
    last_updated: Moment,
    messages: LenientList<GeminiMessage<'a>>,
}

/// Reads a chat.
pub(super) fn read(
    source: &SessionSource,
    feed: &mut SessionFeed<'_>,
) -> Result<(), SessionReadError> {
    let standing = FinalWrites::find(source)?;
    feed.head.rewinds = standing.rewinds;
    let mut lines = source.lines()?;
    let (mut scratch, mut again) = (String::new(), String::new());
    let mut is_subagent = false;
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(header) = line.parse::<LineHeader<'_>>(&mut scratch, &mut feed.notes) else {
            continue;
        };
        // Only messages have an id.
        if !header.id.is_empty() {
            if standing.is_final(&header.id, line.number, feed)
                && let Some(message) = line.parse::<GeminiMessage<'_>>(&mut again, &mut feed.notes)
            {
                message.send(is_subagent, feed);
            }
            continue;
        }
        let changes = header.set.0.unwrap_or_default();
        is_subagent |= [&header.kind, &changes.kind].into_iter().any(|kind| **kind == *"subagent");
        if feed.head.id.is_empty() {
            feed.head.id = header.session_id.as_str().to_owned();
        }
        let moments = [header.start_time, header.last_updated, changes.last_updated];
        moments
            .into_iter()
            .filter_map(|moment| moment.0)
            .for_each(|time| feed.head.record_time(time));
        for message in changes.messages.0 {
            if standing.is_final(&message.id, line.number, feed) {
                message.send(is_subagent, feed);
            }
        }
    }
    Ok(())
}

/// The messages that remain at the end of the file.
#[derive(Default)]
struct FinalWrites {
    /// Line of the last write of each message.
    last: HashMap<RecordId, u64>,
    /// Messages in the order of their first write.
    order: Vec<RecordId>,
    /// Number of rewinds.
    rewinds: u64,
}

impl FinalWrites {
    fn find(source: &SessionSource) -> Result<Self, SessionReadError> {
        let mut standing = Self::default();
        // The second pass notes problems with lines.
        let mut notes = ReadNotes::default();
        let mut lines = source.lines()?;
        let mut scratch = String::new();
        while let Some(line) = lines.next(&mut notes)? {
            let Some(sketch) = line.parse::<LineSketch>(&mut scratch, &mut notes) else { continue };
            if !sketch.rewind_to.is_none() {
                standing.rewind(sketch.rewind_to);
            } else if !sketch.id.is_none() {
                standing.write(sketch.id, line.number);
            } else if let Some(set) = sketch.set.0
                && !set.messages.0.is_empty()
            {
                // `$set` replaces all messages, but past rewinds still count.
                standing = Self { rewinds: standing.rewinds, ..Self::default() };
                for message in set.messages.0 {
                    standing.write(message.id, line.number);
                }
            }
        }
        Ok(standing)
    }

    fn write(&mut self, message: RecordId, line: u64) {
        if self.last.insert(message, line).is_none() {
            self.order.push(message);
        }
    }

    /// Removes a message and all that follow it. If the message is unknown, all are removed, as
    /// Gemini CLI does.
    fn rewind(&mut self, message: RecordId) {
        self.rewinds += 1;
        let from = self.order.iter().position(|other| *other == message).unwrap_or(0);
        for gone in self.order.drain(from..) {
            self.last.remove(&gone);
        }
    }

    /// Returns true if this is the write that counts. Writes of removed messages are noted.
    fn is_final(&self, id: &str, line: u64, feed: &mut SessionFeed<'_>) -> bool {
        let last = self.last.get(&RecordId::from(id)).copied();
        feed.notes.dropped_records += u64::from(last.is_none());
        last == Some(line)
    }
}
