//! Reads aider's `.aider.chat.history.md`, a Markdown file in the project that every run appends
//! to. User input follows `####`, aider's own messages follow `>`, and the rest is the model's. The
//! file has no ids, and the only times are the starts of the runs.
//!
//! Each edit that aider applied or failed to match becomes a tool call.

use std::io::{BufRead as _, BufReader, Read as _};

use super::SessionReadError;
use super::event::{
    Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult,
};
use super::feed::SessionFeed;
use super::source::SessionSource;
use super::text::Text;
use super::time::Moment;
use crate::format::{FormatEntry, VerificationBasis, VerifiedVersion};
use crate::lines::without_mark;

/// Prefix of the first line of each run.
const RUN_PREFIX: &str = "# aider chat started at ";

/// Maximum bytes of a line; the rest is cut.
const MAX_LINE: u64 = 1024 * 1024;

/// Maximum bytes kept of one turn.
const MAX_TURN: usize = 8 * 1024 * 1024;

/// Tool name used for every edit.
const EDIT: &str = "edit";

/// Aider commands whose text is sent to the model.
const CHAT_COMMANDS: [&str; 4] = ["/ask ", "/code ", "/architect ", "/context "];

/// What aider writes for an empty input.
const BLANK: &str = "<blank>";

/// Start of the second line of the token counts, which has no prefix.
const COST_START: &str = "Cost: $";

/// Prefixes of the messages that aider prints when it cannot parse an edit.
const MISMATCHES: [&str; 2] = ["The LLM did not conform to the edit format", "Malformed response"];

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    bytes: |start, _| is_history(&String::from_utf8_lossy(without_mark(start))),
    verified: Some(VerifiedVersion {
        agent: "aider",
        version: "0.86.1",
        basis: VerificationBasis::OwnFixture,
    }),
    ..FormatEntry::new(read)
};

/// Returns true if the text is a history, or one whose beginning is cut off. Inside of a fence the
/// first line of a run is a quotation.
fn is_history(start: &str) -> bool {
    let begins = |line: &str| {
        line.strip_prefix(RUN_PREFIX).is_some_and(|time| Moment::parse(time).0.is_some())
    };
    let mut lines = start.lines().map(str::trim_end);
    if start.trim_start().starts_with(RUN_PREFIX) {
        return true;
    }
    let mut is_fenced = false;
    lines.any(|line| {
        is_fenced ^= line.starts_with("```");
        !is_fenced && begins(line)
    })
}

/// Reads every run of a history.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    let mut input = BufReader::with_capacity(256 * 1024, source.open_unmarked()?);
    let (mut bytes, mut run) = (Vec::new(), AiderRun::default());
    loop {
        bytes.clear();
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        // The limit cut this line, so the rest of it must not be read as a line of its own.
        if bytes.last() != Some(&b'\n') && bytes.len() as u64 == MAX_LINE {
            input.skip_until(b'\n')?;
            feed.notes.cut_fields += 1;
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        if let Some(time) = line.strip_prefix(RUN_PREFIX) {
            run.end(feed);
            feed.end_session();
            start_run(source, time, feed);
            run.has_started = true;
        } else if run.has_started {
            run.line(line, feed);
        } else if !line.trim().is_empty() {
            // Without a start line there is no run that the text could belong to.
            feed.notes.ignored_records += 1;
        }
    }
    run.end(feed);
    Ok(())
}

fn start_run(source: &SessionSource, time: &str, feed: &mut SessionFeed<'_>) {
    let folder = match source {
        SessionSource::File(path) | SessionSource::DigestedFile(path, _) => path.parent(),
        SessionSource::Folder { .. } | SessionSource::Bytes { .. } => None,
    };
    // Every project has a file of this name, so that the folder's name tells sessions apart.
    let name = folder.and_then(std::path::Path::file_name).map(|name| name.to_string_lossy());
    feed.naming.set_name(name.as_deref().unwrap_or("aider"));
    "aider".clone_into(&mut feed.head.agent);
    feed.head.cwd = folder.map(|folder| folder.to_string_lossy().into_owned());
    feed.record_time(Moment::parse(time));
}

/// Speaker of the line being read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LineSpeaker {
    #[default]
    None,
    User,
    Model,
    Program,
}

/// One run of aider, up to the start of the next one.
#[derive(Default)]
struct AiderRun {
    has_started: bool,
    voice: LineSpeaker,
    text: String,
    /// Set inside a fenced block of an answer. There, a line may start with `>` or `####` and still
    /// belong to the model.
    is_fenced: bool,
    /// The last complete answer. It is held back because its token counts and edits follow it.
    answer: Option<PendingAnswer>,
    /// Set if the last line is the first one of token counts.
    is_counting: bool,
    /// What the last chat command asked. Some versions write it again on its own.
    asked: String,
}

#[derive(Default)]
struct PendingAnswer {
    text: String,
    thought: String,
    usage: Option<TokenCounts>,
    calls: Vec<ToolCall<'static>>,
    results: Vec<ToolResult<'static>>,
}

impl AiderRun {
    fn line(&mut self, line: &str, feed: &mut SessionFeed<'_>) {
        // These lines always come from aider, so they also end a fence that an answer left open.
        let said = line.strip_prefix("> ").or((line == ">").then_some(""));
        if said.is_some_and(|said| said.starts_with("Tokens: ") || said.starts_with("^C")) {
            self.is_fenced = false;
        }
        let typed = line.strip_prefix("#### ").or((line == "####").then_some(""));
        let was_counting = std::mem::take(&mut self.is_counting);
        let (voice, words) = match (typed, said) {
            // A fenced file may contain any prefix.
            _ if self.is_fenced => (LineSpeaker::Model, line),
            _ if was_counting && line.starts_with(COST_START) => {
                feed.head.add_stated_cost(parse_cost(&format!(" {line}")));
                return;
            }
            (Some(words), _) => (LineSpeaker::User, words.trim_end()),
            (_, Some(words)) => (LineSpeaker::Program, words.trim_end()),
            // Blank lines carry no prefix and belong to the current speaker.
            _ if line.trim().is_empty() => (self.voice, ""),
            _ => (LineSpeaker::Model, line),
        };
        // Every line of an input has the prefix, so that a blank line without it ends the input.
        let is_past_input = self.voice == LineSpeaker::User && typed.is_none();
        if voice != self.voice || is_past_input {
            self.end_turn(feed);
            self.voice = voice;
        }
        if voice == LineSpeaker::Model && line.starts_with("```") {
            self.is_fenced = !self.is_fenced;
        }
        if voice == LineSpeaker::Program && self.take_message(words, feed) {
            return;
        }
        // An answer has no length of its own; the limit is for files that are no chats.
        if self.text.len() + words.len() < MAX_TURN {
            self.text.push_str(words);
            self.text.push('\n');
        }
    }

    /// Applies a message of aider to the answer before it. Returns true if the message is used up.
    fn take_message(&mut self, words: &str, feed: &mut SessionFeed<'_>) -> bool {
        if let Some(version) = words.strip_prefix("Aider v") {
            feed.head.agent_version = Some(selftest_text::one_line(version, 60));
        }
        let model = words.strip_prefix("Model: ").or_else(|| words.strip_prefix("Main model: "));
        if let Some(model) = model {
            feed.head.add_model(model.split_once(" with ").map_or(model, |(name, _)| name));
        }
        if words.starts_with("^C") {
            // Otherwise the user interrupted aider itself, not an answer.
            let is_cut = self.answer.as_ref().is_some_and(|answer| {
                !answer.text.is_empty() && answer.usage.is_none() && answer.calls.is_empty()
            });
            if !is_cut {
                return false;
            }
            // The interruption ends the answer, but not the run.
            self.end(feed);
            self.has_started = true;
            let mark = Some(EventMark::Interrupted);
            feed.send(Event { mark, ..Event::default() });
            return true;
        }
        let answer = self.answer.get_or_insert_default();
        if let Some(counts) = words.strip_prefix("Tokens: ") {
            self.is_counting = true;
            answer.usage = parse_usage(counts);
            feed.head.add_stated_cost(parse_cost(counts));
            return true;
        }
        let edited = words
            .strip_prefix("Applied edit to ")
            .or_else(|| words.strip_prefix("Creating empty file "))
            .map(|file| (file, ToolOutcome::Ok));
        let skipped = words
            .strip_prefix("Skipping edits to ")
            .or_else(|| words.strip_prefix("Did not apply edit to "))
            .map(|file| (file, ToolOutcome::Rejected));
        let mismatch = MISMATCHES.iter().any(|start| words.starts_with(start));
        // These messages name no file.
        let mismatch = mismatch.then_some(("", ToolOutcome::Failed));
        if let Some((file, outcome)) = edited.or(skipped).or(mismatch) {
            answer.edit(file, words, outcome);
            return true;
        }
        false
    }

    /// Sends the finished turn. An answer is held back until the messages about it are read.
    fn end_turn(&mut self, feed: &mut SessionFeed<'_>) {
        self.is_fenced = false;
        let words = std::mem::take(&mut self.text);
        let words = words.trim();
        match self.voice {
            LineSpeaker::None => {}
            LineSpeaker::Model => {
                self.send_answer(feed);
                // Wait for the token counts and edits that follow.
                let (thought, text) = split_thought(words);
                let (thought, text) = (thought.to_owned(), text.to_owned());
                self.answer = Some(PendingAnswer { text, thought, ..PendingAnswer::default() });
            }
            LineSpeaker::Program => {
                self.send_answer(feed);
                send_text(EventRole::System, EventOrigin::Harness, words, feed);
            }
            LineSpeaker::User => {
                self.send_answer(feed);
                if words.is_empty() || words == BLANK {
                    return;
                }
                let last_asked = std::mem::take(&mut self.asked);
                if words == last_asked {
                    return;
                }
                // These only choose the mode in which the text after them is sent to the model.
                let asked = CHAT_COMMANDS.iter().find_map(|command| words.strip_prefix(command));
                let is_command = is_command(words);
                let origin = match asked {
                    // Other commands control aider and are not sent to the model.
                    None if is_command => EventOrigin::Harness,
                    _ => EventOrigin::Human,
                };
                asked.unwrap_or_default().trim().clone_into(&mut self.asked);
                send_text(EventRole::User, origin, asked.unwrap_or(words), feed);
            }
        }
    }

    fn send_answer(&mut self, feed: &mut SessionFeed<'_>) {
        let Some(answer) = self.answer.take() else { return };
        let PendingAnswer { text, thought, usage, calls, results } = answer;
        if text.is_empty() && thought.is_empty() && calls.is_empty() && usage.is_none() {
            return;
        }
        feed.send(Event {
            role: EventRole::Assistant,
            origin: EventOrigin::Agent,
            text: Text::new(text),
            reasoning: Text::new(thought),
            calls,
            usage,
            ..Event::default()
        });
        feed.send_results(EventOrigin::Agent, results, None);
    }

    fn end(&mut self, feed: &mut SessionFeed<'_>) {
        self.end_turn(feed);
        self.send_answer(feed);
        // Only the header line starts a run, so this flag survives the reset.
        let is_whole = self.has_started;
        *self = Self::default();
        self.has_started = is_whole;
    }
}

impl PendingAnswer {
    fn edit(&mut self, file: &str, words: &str, outcome: ToolOutcome) {
        let id = Text::from(format!("edit {}", self.calls.len() + 1));
        self.calls.push(ToolCall {
            id: id.clone(),
            name: EDIT.into(),
            arguments: Text::from(file.to_owned()),
        });
        self.results.push(ToolResult {
            call_id: id,
            tool: EDIT.into(),
            text: Text::from(words.to_owned()),
            outcome,
            ..ToolResult::default()
        });
    }
}

/// Splits an answer into the thought in front and the rest. Older versions write a tag of their own
/// around the thought, newer ones headings.
fn split_thought(words: &str) -> (&str, &str) {
    if let Some((tag, rest)) =
        words.strip_prefix("<thinking-content-").and_then(|rest| rest.split_once('>'))
        && let Some((thought, text)) = rest.split_once(&format!("</thinking-content-{tag}>"))
    {
        return (thought.trim(), text.trim());
    }
    let without_rule = words.trim_start_matches('-').trim_start();
    if let Some(rest) = without_rule.strip_prefix("► **THINKING**")
        && let Some((thought, text)) = rest.split_once("► **ANSWER**")
    {
        return (thought.trim_end().trim_end_matches('-').trim(), text.trim());
    }
    ("", words)
}

/// Returns true if the text is an aider command or, after `!`, a shell command. Paths also start
/// with a slash and are excluded.
fn is_command(words: &str) -> bool {
    let first = words.split_whitespace().next().unwrap_or_default();
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    first.starts_with('!') || first.strip_prefix('/').is_some_and(is_name)
}

fn send_text(role: EventRole, origin: EventOrigin, words: &str, feed: &mut SessionFeed<'_>) {
    feed.send_text(role, origin, Text::from(words.to_owned()), None);
}

/// Parses `12k sent, 2.3k cache write, 10k cache hit, 345 received. Cost: …`.
fn parse_usage(counts: &str) -> Option<TokenCounts> {
    let mut usage = TokenCounts::default();
    let counts = counts.split(" Cost:").next()?.trim_end_matches('.');
    for part in counts.split(", ") {
        let (number, what) = part.split_once(' ')?;
        let number = parse_count(number)?;
        match what {
            "sent" | "cache write" => usage.input = usage.input.saturating_add(number),
            "cache hit" => usage.cached = number,
            "received" => usage.output = number,
            _ => {}
        }
    }
    Some(usage)
}

/// Parses the cost of the message in `… Cost: $0.0011 message, $0.05 session.`
fn parse_cost(counts: &str) -> Option<f64> {
    let (_, cost) = counts.split_once(" Cost: $")?;
    // Not the cost of the session after it: costs are added up, and it repeats earlier ones.
    // Older versions say `request`.
    let (cost, _) = cost.split_once(" message").or_else(|| cost.split_once(" request"))?;
    cost.replace(',', "").parse().ok()
}

/// Parses `345`, `1,234`, `2.3k` or `1.2M`.
fn parse_count(number: &str) -> Option<u64> {
    let number = number.replace(',', "");
    let (digits, factor) = match number.as_bytes().last()? {
        b'k' => (&number[..number.len() - 1], 1e3),
        b'M' => (&number[..number.len() - 1], 1e6),
        _ => (number.as_str(), 1.0),
    };
    let value = digits.parse::<f64>().ok().filter(|value| (0.0..1e9).contains(value))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small, not negative"
    )]
    Some((value * factor).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::test_support::survives_damage;
    use super::super::{SessionCollector, SessionFormat, read};
    use super::*;

    /// 2 runs. The first: 2 human turns, 1 command, 2 answers, 3 edits of which 1 did not match;
    /// 3,000 + 300 tokens in, 2,000 from a cache, 145 out. The second: a person stopped the answer.
    const FIXTURE: &str = "
# aider chat started at 2026-01-01 10:00:00

> Aider v0.86.1
> Main model: m-1 with diff edit format
> Git repo: .git with 3 files

#### /add /w/shop.py  
####   /w/other.py  
>  
> ^C again to exit  
> Added shop.py to the chat

#### round the price
#### to cents

I do:

shop.py
```python
<<<<<<< SEARCH
> not a quote
#### not a prompt
=======
>>>>>>> REPLACE
```

> Tokens: 3k sent, 2.0k cache hit, 100 received. Cost: $0.01 message, $0.01 session.
> Applied edit to shop.py
> Applied edit to test_shop.py
> Commit 1a2b3c4 Round it

#### /ask is it done?

No, one more:
> Tokens: 300 sent, 45 received.
> The LLM did not conform to the edit format.
> # 1 SEARCH/REPLACE block failed to match!

# aider chat started at 2026-01-02 10:00:00

#### stop here

Well, ```
> ^C KeyboardInterrupt
";

    #[test]
    fn the_fixture_has_its_counted_totals() {
        let mut collector = SessionCollector::default();
        let source = SessionSource::bytes(".aider.chat.history.md", FIXTURE);
        let reading = read(&source, &mut collector).unwrap();
        assert_eq!((reading.format, reading.sessions), (SessionFormat::Aider, 2));
        let sessions = collector.into_sessions();
        let head = &sessions[0].head;
        assert!(head.id.starts_with("aider-"), "{}", head.id);
        assert_eq!(
            (head.models[0].as_str(), head.agent_version.as_deref()),
            ("m-1", Some("0.86.1"))
        );
        assert_eq!(head.start.unwrap().to_string(), "2026-01-01T10:00:00Z");
        let said: Vec<_> = sessions[0]
            .events
            .iter()
            .map(|event| (event.role, event.origin, event.calls.len(), event.results.len()))
            .collect();
        assert_eq!(
            said,
            [
                (EventRole::System, EventOrigin::Harness, 0, 0),
                (EventRole::User, EventOrigin::Harness, 0, 0),
                (EventRole::System, EventOrigin::Harness, 0, 0),
                (EventRole::User, EventOrigin::Human, 0, 0),
                (EventRole::Assistant, EventOrigin::Agent, 2, 0),
                (EventRole::Tool, EventOrigin::Agent, 0, 2),
                (EventRole::System, EventOrigin::Harness, 0, 0),
                (EventRole::User, EventOrigin::Human, 0, 0),
                (EventRole::Assistant, EventOrigin::Agent, 1, 0),
                (EventRole::Tool, EventOrigin::Agent, 0, 1),
                (EventRole::System, EventOrigin::Harness, 0, 0),
            ]
        );
        let text = |number: usize| sessions[0].events[number].text.as_str();
        assert_eq!((text(3), text(7)), ("round the price\nto cents", "is it done?"));
        assert!(text(4).contains("#### not a prompt"), "{}", text(4));
        let usage = sessions[0].events[4].usage;
        assert_eq!(usage, Some(TokenCounts { input: 3000, output: 100, cached: 2000 }));
        assert_eq!(sessions[0].events[8].usage.unwrap().output, 45);
        assert_eq!(sessions[0].events[9].results[0].outcome, ToolOutcome::Failed);
        let marks: Vec<_> = sessions[1].events.iter().map(|event| event.mark).collect();
        assert_eq!(marks, [None, None, Some(EventMark::Interrupted)]);
        assert_ne!(sessions[1].head.id, head.id);
    }

    #[test]
    fn an_input_ends_at_a_blank_line() {
        let words = "# aider chat started at 2024-08-21 21:41:00\n\n#### /clear  \n\n\
            #### /ask is it done?  \n\n####  is it done?  \n\nYes.\n\n\
            > Tokens: 10.0k sent, 265 received.\nCost: $0.03 message, $0.06 session.  \n\
            >  \n> ^C again to exit  \n\n#### <blank>  \n\n#### Round it.  \n####   \n\
            #### To cents.  \n";
        let mut collector = SessionCollector::default();
        read(&SessionSource::bytes(".aider.chat.history.md", words), &mut collector).unwrap();
        let session = collector.into_sessions().remove(0);
        let said: Vec<_> =
            session.events.iter().map(|event| (event.origin, event.text.as_str())).collect();
        assert_eq!(
            said,
            [
                (EventOrigin::Harness, "/clear"),
                (EventOrigin::Human, "is it done?"),
                (EventOrigin::Agent, "Yes."),
                // The answer was done, so that nothing was interrupted.
                (EventOrigin::Harness, "^C again to exit"),
                (EventOrigin::Human, "Round it.\n\nTo cents."),
            ]
        );
        assert_eq!(session.events[2].usage.unwrap().output, 265);
        assert_eq!(session.head.stated_cost, Some(0.03));
        assert_eq!(parse_cost("1 sent. Cost: $1,000.05 request, $2.00 session."), Some(1000.05));
    }

    #[test]
    fn a_history_may_lack_its_beginning() {
        let rest = "> Applied edit to a.py\n\n# aider chat started at 2024-08-05 19:33:02\n";
        assert!(is_history(rest));
        assert!(!is_history(&format!("# Format\n```\n{rest}```\n")));
        assert!(!is_history("# aider chat\n\n# aider chat started at noon\n"));
    }

    #[test]
    fn a_thought_is_not_said() {
        for words in [
            "<thinking-content-7b>\n\nhm\n\n</thinking-content-7b>\n\nI see.",
            "--------------\n► **THINKING**\n\nhm\n\n------------\n► **ANSWER**\n\nI see.",
        ] {
            assert_eq!(split_thought(words), ("hm", "I see."));
        }
        for words in ["I see.", "<thinking-content-7b>\nhm", "► **THINKING**\nhm"] {
            assert_eq!(split_thought(words), ("", words));
        }
    }

    #[test]
    fn damage_does_no_harm() {
        survives_damage(SessionFormat::Aider, FIXTURE.as_bytes());
    }
}
