//! Reads lines such as `{"speaker": "human", "says": "hello"}`.

use serde::Deserialize;

use super::SessionReadError;
use super::event::{EventOrigin, EventRole};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use crate::format::{AgentFolders, FormatEntry, HomeRoot};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.has("speaker") && value.has("says"),
    folders: &[AgentFolders {
        agent: "example",
        variable: Some("EXAMPLE_HOME"),
        roots: &[HomeRoot::Home(".example")],
        parts: &["talks"],
    }],
    ..FormatEntry::new(read)
};

fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    "example".clone_into(&mut feed.head.agent);
    let mut lines = source.lines()?;
    let mut scratch = String::new();
    while let Some(line) = lines.next(&mut feed.notes)? {
        // A damaged line is counted in the notes and skipped.
        let Some(line) = line.parse::<TalkLine<'_>>(&mut scratch, &mut feed.notes) else {
            continue;
        };
        match line.speaker.as_str() {
            "human" => feed.send_text(EventRole::User, EventOrigin::Human, line.says, None),
            "bot" => feed.send_text(EventRole::Assistant, EventOrigin::Agent, line.says, None),
            other => feed.count_unknown(other),
        }
    }
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct TalkLine<'a> {
    speaker: Text<'a>,
    says: Text<'a>,
}

#[cfg(test)]
mod tests {
    use super::super::{SessionCollector, SessionFormat, read, test_support::survives_damage};
    use super::*;

    const FIXTURE: &str = concat!(
        r#"{"speaker": "human", "says": "hello"}"#,
        "\n",
        r#"{"speaker": "bot", "says": "hi"}"#,
    );

    #[test]
    fn a_talk_is_detected_and_read() {
        let mut collector = SessionCollector::default();
        let reading = read(&SessionSource::bytes("a.jsonl", FIXTURE), &mut collector).unwrap();
        assert_eq!(reading.format, SessionFormat::Example);
        let events = &collector.into_sessions()[0].events;
        let texts: Vec<&str> = events.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(texts, ["hello", "hi"]);
        survives_damage(SessionFormat::Example, FIXTURE.as_bytes());
    }
}
