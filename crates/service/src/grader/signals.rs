//! Reactions of people in recorded sessions to the answers that they got
//! (docs/spec/skills-and-signals.md#signals): messages that thank, repeat a request or complain.
//! Grades nothing, stores nothing.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;

use super::Options;
use selftest_grading::signal::{Signals, classify_signals};
use selftest_sessions::{Event, Head, Origin, ReadError, Role, Sink};
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Bytes of a message that are kept.
const MAX_SHOWN: usize = 240;

/// How often people said what. Each is a count of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SignalCounts {
    /// Messages that a person typed.
    pub messages: u64,
    /// Those with an earlier one in the same session, which they may repeat.
    pub with_previous: u64,
    /// Thanks and praise.
    pub gratitude: u64,
    /// The request before them, made again.
    pub repetition: u64,
    /// Clear dissatisfaction.
    pub frustration: u64,
}

/// A message with at least one signal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignalMessage {
    /// Of the session.
    pub session_id: String,
    /// The agent that was spoken to.
    pub agent: String,
    /// Where the session was read.
    pub file: String,
    /// Number of the event in the session.
    pub event: u64,
    /// When it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// Its signals.
    #[serde(flatten)]
    pub signals: Signals,
    /// Its beginning, on one line, without secrets.
    pub text: String,
}

/// The result of a scan for signals.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SignalScan {
    /// Sessions with at least one message of a person.
    pub sessions: u64,
    /// Over all their messages.
    #[serde(flatten)]
    pub counts: SignalCounts,
    /// Messages with a signal, those of the newest files first. At most
    /// [`SignalScan::MAX_FOUND`]; the counts are over all.
    pub found: Vec<SignalMessage>,
    /// Folders and files that could not be looked into, in words that name them.
    pub problems: Vec<String>,
}

impl SignalScan {
    /// Messages that are handed back.
    pub const MAX_FOUND: usize = 10_000;
}

/// Looks for signals in every recorded session of these sources. Reads files, so it may take
/// long. A session that several files hold counts once: where it is longest.
pub fn scan_signals(options: &Options) -> SignalScan {
    let mut scan = SignalScan::default();
    let mut files =
        selftest_sessions::find(&options.sources, |problem| scan.problems.push(problem.into()));
    files.retain(|file| file.may_hold_since(options.since));
    files.sort_by_key(|file| std::cmp::Reverse(file.modified_ns));

    let mut sessions: Vec<Heard> = Vec::new();
    let mut positions: HashMap<(String, String), usize> = HashMap::new();
    for file in &files {
        let shown = file.source.path().to_string_lossy();
        let mut listener = Listener::new(&shown, &options.redactor);
        // What is no session says nothing; what was read of a torn one does.
        if let Err(ReadError::Io(error)) = selftest_sessions::read(&file.source, &mut listener) {
            scan.problems.push(format!("{shown}: {error}"));
        }
        for heard in listener.heard {
            if options.agent.as_ref().is_some_and(|agent| *agent != heard.agent) {
                continue;
            }
            let start = heard.start.unwrap_or_else(|| file.modified());
            if options.since.is_some_and(|since| start < since) {
                continue;
            }
            match positions.get(&(heard.agent.clone(), heard.session_id.clone())) {
                Some(&at) if sessions[at].counts.messages >= heard.counts.messages => {}
                Some(&at) => sessions[at] = heard,
                None => {
                    let key = (heard.agent.clone(), heard.session_id.clone());
                    positions.insert(key, sessions.len());
                    sessions.push(heard);
                }
            }
        }
    }
    scan.sessions = sessions.len() as u64;
    for heard in sessions {
        scan.counts.add(heard.counts);
        let room = SignalScan::MAX_FOUND.saturating_sub(scan.found.len());
        scan.found.extend(heard.found.into_iter().take(room));
    }
    scan
}

/// The signals of one session.
#[derive(Debug, Default)]
struct Heard {
    session_id: String,
    agent: String,
    start: Option<Timestamp>,
    counts: SignalCounts,
    found: Vec<SignalMessage>,
}

/// Listens to the people in the sessions of one source.
struct Listener<'a> {
    file: &'a str,
    redactor: &'a Redactor,
    current: Heard,
    /// The last message of the person.
    previous: Option<String>,
    heard: Vec<Heard>,
}

impl<'a> Listener<'a> {
    fn new(file: &'a str, redactor: &'a Redactor) -> Self {
        let (current, heard) = (Heard::default(), Vec::new());
        Self { file, redactor, current, previous: None, heard }
    }
}

impl Sink for Listener<'_> {
    fn event(&mut self, event: Event<'_>) {
        let is_typed = event.role == Role::User
            && event.origin == Origin::Human
            && event.mark.is_none()
            && !event.text.trim().is_empty();
        if !is_typed {
            return;
        }
        let mut signals = classify_signals(&event.text, self.previous.as_deref(), None);
        // There is no answer yet that it could be dissatisfied with.
        signals.frustration &= self.previous.is_some();
        self.current.counts.count(&signals);
        if signals.any() && self.current.found.len() < SignalScan::MAX_FOUND {
            self.current.found.push(SignalMessage {
                session_id: String::new(),
                agent: String::new(),
                file: self.file.to_owned(),
                event: event.number,
                time: event.time,
                signals,
                text: one_line(&self.redactor.apply(&event.text), MAX_SHOWN),
            });
        }
        self.previous = Some(event.text.as_str().to_owned());
    }

    fn end(&mut self, head: Head) {
        self.previous = None;
        let mut heard = std::mem::take(&mut self.current);
        if heard.counts.messages == 0 {
            return;
        }
        for message in &mut heard.found {
            message.session_id.clone_from(&head.id);
            message.agent.clone_from(&head.agent);
        }
        (heard.session_id, heard.agent, heard.start) = (head.id, head.agent, head.start);
        self.heard.push(heard);
    }

    fn restart(&mut self) {
        self.current = Heard::default();
        self.previous = None;
    }

    fn wants_outputs(&self) -> bool {
        false
    }
}

impl SignalCounts {
    fn count(&mut self, signals: &Signals) {
        self.messages += 1;
        self.with_previous += u64::from(signals.repetition.is_some());
        self.gratitude += u64::from(signals.gratitude);
        self.repetition += u64::from(signals.repetition == Some(true));
        self.frustration += u64::from(signals.frustration);
    }

    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.with_previous += other.with_previous;
        self.gratitude += other.gratitude;
        self.repetition += other.repetition;
        self.frustration += other.frustration;
    }
}
