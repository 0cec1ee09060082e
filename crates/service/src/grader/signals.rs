//! Finds user reactions in recorded sessions (docs/spec/skills-and-signals.md#signals): messages
//! that thank, repeat a request or complain. Neither grades nor stores anything.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Serialize;

use super::GraderOptions;
use selftest_grading::signal::{MessageSignals, classify_signals};
use selftest_sessions::{
    Event, EventOrigin, EventRole, SessionHead, SessionReadError, SessionSink,
};
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Maximum bytes of a stored message.
const MAX_SHOWN: usize = 240;

/// Numbers of messages by signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SignalCounts {
    /// Messages typed by a user.
    pub messages: u64,
    /// Messages with an earlier one in the same session, which they may repeat.
    pub with_previous: u64,
    /// Thanks and praise.
    pub gratitude: u64,
    /// Repetitions of the previous request.
    pub repetition: u64,
    /// Clear dissatisfaction.
    pub frustration: u64,
}

/// A message with at least one signal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignalMessage {
    /// Session id.
    pub session_id: String,
    /// Agent that received the message.
    pub agent: String,
    /// File that the session was read from.
    pub file: String,
    /// Number of the event in the session.
    pub event: u64,
    /// Time of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// Date of the session.
    #[serde(skip)]
    pub session_date: Option<Timestamp>,
    /// Signals of the message.
    #[serde(flatten)]
    pub signals: MessageSignals,
    /// Start of the message, on one line, redacted.
    pub text: String,
}

/// Result of a scan for signals.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SignalScan {
    /// Number of sessions with at least one user message.
    pub sessions: u64,
    /// Counts over all their messages.
    #[serde(flatten)]
    pub counts: SignalCounts,
    /// Messages with a signal, newest files first. At most [`SignalScan::MAX_FOUND`]; the counts
    /// include all.
    pub found: Vec<SignalMessage>,
    /// Folders and files that could not be read, with the reason.
    pub problems: Vec<String>,
}

impl SignalScan {
    /// Maximum number of messages returned.
    pub const MAX_FOUND: usize = 10_000;
}

/// Searches every recorded session of the sources for signals. Reads files, so it may take long. A
/// session found in several files counts once, with the most messages.
pub fn scan_signals(options: &GraderOptions) -> SignalScan {
    let mut scan = SignalScan::default();
    let mut files = selftest_sessions::find_session_files(&options.sources, |problem| {
        scan.problems.push(problem.into());
    });
    files.retain(|file| file.may_contain_session_since(options.since));
    // Newest first, so that the newest messages are those within the limit.
    files.sort_by_key(|file| std::cmp::Reverse(file.modified_ns));

    let mut sessions: Vec<SessionSignals> = Vec::new();
    let mut positions: HashMap<(String, String), usize> = HashMap::new();
    for file in &files {
        let shown = file.source.path().to_string_lossy();
        let mut listener = SignalCollector::new(&shown, &options.redactor);
        // Files without a session have no signals; the readable part of a damaged one counts.
        if let Err(SessionReadError::Io(error)) =
            selftest_sessions::read(&file.source, &mut listener)
        {
            scan.problems.push(format!("{shown}: {error}"));
        }
        for heard in listener.heard {
            if options.agent.as_ref().is_some_and(|agent| *agent != heard.agent) {
                continue;
            }
            let is_since = |since| heard.start.is_some_and(|start| start >= since);
            if !options.since.is_none_or(is_since) {
                continue;
            }
            // A session that several files hold counts once, by the longest of its copies.
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

/// Signals of one session.
#[derive(Debug, Default)]
struct SessionSignals {
    session_id: String,
    agent: String,
    start: Option<Timestamp>,
    counts: SignalCounts,
    found: Vec<SignalMessage>,
}

/// Collects the user messages in the sessions of one source.
struct SignalCollector<'a> {
    file: &'a str,
    redactor: &'a Redactor,
    current: SessionSignals,
    /// The user's last message.
    previous: Option<String>,
    heard: Vec<SessionSignals>,
}

impl<'a> SignalCollector<'a> {
    fn new(file: &'a str, redactor: &'a Redactor) -> Self {
        let (current, heard) = (SessionSignals::default(), Vec::new());
        Self { file, redactor, current, previous: None, heard }
    }
}

impl SessionSink for SignalCollector<'_> {
    fn event(&mut self, event: Event<'_>) {
        let is_typed = event.role == EventRole::User
            && event.origin == EventOrigin::Human
            && event.mark.is_none()
            && !event.text.trim().is_empty();
        if !is_typed {
            return;
        }
        let mut signals = classify_signals(&event.text, self.previous.as_deref(), None);
        // A first message cannot be dissatisfied with an answer.
        signals.frustration &= self.previous.is_some();
        self.current.counts.count(&signals);
        if signals.has_any() && self.current.found.len() < SignalScan::MAX_FOUND {
            self.current.found.push(SignalMessage {
                // The head with the id comes at the end of the session.
                session_id: String::new(),
                agent: String::new(),
                file: self.file.to_owned(),
                event: event.number,
                time: event.time,
                session_date: None,
                signals,
                text: one_line(&self.redactor.apply(&event.text), MAX_SHOWN),
            });
        }
        self.previous = Some(event.text.as_str().to_owned());
    }

    fn end(&mut self, head: SessionHead) {
        self.previous = None;
        let mut heard = std::mem::take(&mut self.current);
        if heard.counts.messages == 0 {
            return;
        }
        for message in &mut heard.found {
            message.session_id.clone_from(&head.id);
            message.agent.clone_from(&head.agent);
            message.session_date = head.start;
        }
        (heard.session_id, heard.agent, heard.start) = (head.id, head.agent, head.start);
        self.heard.push(heard);
    }

    fn restart(&mut self) {
        self.current = SessionSignals::default();
        self.previous = None;
    }

    fn wants_outputs(&self) -> bool {
        false
    }
}

impl SignalCounts {
    fn count(&mut self, signals: &MessageSignals) {
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
