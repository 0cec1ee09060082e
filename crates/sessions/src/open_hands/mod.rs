//! Reads `OpenHands` before its SDK: events (actions and observations) in one file or in one file
//! each, and the evaluation's `output.jsonl` with one run and its `history` per line.
//!
//! An observation names its action in `cause`; without event ids, it belongs to the last action.
//! Each event repeats the model's reply in `tool_call_metadata`, of which only id, model and token
//! counts are read, once per reply.

mod record;
mod run;
#[cfg(test)]
mod tests;

use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::SessionReadError;
use super::feed::SessionFeed;
use super::source::{DocumentReader, SessionSource};
use super::text::Text;
use super::wire::each;
use crate::entry::{AgentFolders, FormatEntry, HomeRoot, IdSource};
use crate::outline::JsonOutline;
use record::{HistoryEntries, OpenHandsRecord};
use run::OpenHandsRun;

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.inner("history").is_some_and(is_event_list),
    weak_json: |value| value.has("source") && (value.has("action") || value.has("observation")),
    in_lists: true,
    ids: IdSource::FolderName,
    folders: &[AgentFolders {
        agent: "open-hands",
        variable: None,
        roots: &[HomeRoot::Home(".openhands")],
        parts: &["sessions"],
    }],
    ..FormatEntry::new(read)
};

/// Reads events.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let is_folder = matches!(source, SessionSource::Folder { .. });
    if is_folder || is_lines(source)? {
        read_lines(source, feed)
    } else {
        source.read_document(&mut EventDocument, feed)
    }
}

/// Returns true if this is a list of events. Older ones are recognisable only by action and
/// observation, which may form a list of their own.
fn is_event_list(list: &JsonOutline) -> bool {
    let is_event = |event: &JsonOutline| {
        event.mark("role").is_empty() && (event.has("action") || event.has("observation"))
    };
    list.elements.iter().any(|event| is_event(event) || (event.is_list && is_event_list(event)))
}

/// Returns true if the first line is a complete object.
fn is_lines(source: &SessionSource) -> Result<bool, SessionReadError> {
    let mut lines = source.lines()?;
    let mut notes = super::ReadNotes::default();
    let Some(line) = lines.next(&mut notes)? else { return Ok(false) };
    Ok(line.bytes.trim_ascii_start().starts_with(b"{")
        && line.parse::<IgnoredAny>(&mut String::new(), &mut notes).is_some())
}

fn read_lines(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    let mut run = OpenHandsRun::default();
    while let Some(line) = lines.next(&mut feed.notes)? {
        let Some(mut record) = line.parse::<OpenHandsRecord<'_>>(&mut scratch, &mut feed.notes)
        else {
            continue;
        };
        // A line with a history is a whole run of the evaluation.
        let history = std::mem::take(&mut record.history.0);
        if history.is_empty() {
            run.send(record, feed);
            continue;
        }
        feed.end_session();
        let mut run = OpenHandsRun::of_evaluation();
        for event in history {
            run.send(event, feed);
        }
        record.note_run(feed);
        feed.end_session();
    }
    Ok(())
}

/// One JSON value: a list of events, or one evaluated run.
struct EventDocument;

impl DocumentReader for EventDocument {
    fn list<'de, A: SeqAccess<'de>>(
        &mut self,
        mut list: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut run = OpenHandsRun::default();
        while let Some(HistoryEntries(records)) = list.next_element()? {
            for record in records {
                run.send(record, feed);
            }
        }
        Ok(())
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let mut run = OpenHandsRun::of_evaluation();
        let mut about = OpenHandsRecord::default();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "history" => {
                    map.next_value_seed(each(|HistoryEntries(records): HistoryEntries<'de>| {
                        for record in records {
                            run.send(record, feed);
                        }
                    }))?;
                }
                "instance_id" => about.instance_id = map.next_value()?,
                "issue" => about.issue = map.next_value()?,
                "error" => about.error = map.next_value()?,
                "metadata" => about.metadata = map.next_value()?,
                "metrics" => about.metrics = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        about.note_run(feed);
        Ok(())
    }
}
