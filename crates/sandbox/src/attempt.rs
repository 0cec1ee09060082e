//! Attempts of a confined program that were refused: evidence, bounded where it is gathered and
//! where it is read. Decides nothing about a case.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most different attempts that are kept of one case.
const MAX_ATTEMPTS: usize = 50;

/// Most bytes of the words of one attempt.
const MAX_WORDS: usize = 300;

/// Most bytes that are read of the notes of one case.
const MAX_NOTES: u64 = 1 << 20;

/// The kind of thing that was refused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AttemptKind {
    /// Opening a file that holds answers: suites, configuration, rubrics, verdicts, recordings.
    AnswerKey,
    /// Opening a file that holds keys or passwords.
    Secret,
    /// Opening a file that it was not granted.
    Read,
    /// Opening a file for writing that it may only read, or not even that.
    Write,
    /// Running a program that it was not granted.
    Execute,
    /// Connecting to an address or a socket that it was not granted.
    Connect,
    /// Opening a socket of a kind that nobody needs in here.
    Socket,
    /// Sending a signal to a process that is not its own.
    Signal,
    /// A call of the system that is closed to it.
    SystemCall,
    /// More memory, processes or processor time than its case may use altogether.
    Limit,
}

impl AttemptKind {
    /// The key of the configuration that grants it, where one does.
    pub const fn granted_by(self) -> Option<&'static str> {
        match self {
            AttemptKind::Secret | AttemptKind::Read | AttemptKind::Execute => {
                Some("sut.command.readable")
            }
            AttemptKind::Write => Some("sut.command.work_folder: copy"),
            AttemptKind::Connect => Some("sut.command.addresses"),
            AttemptKind::Limit => Some("sut.command.limits"),
            AttemptKind::AnswerKey
            | AttemptKind::Socket
            | AttemptKind::Signal
            | AttemptKind::SystemCall => None,
        }
    }

    /// The attempt in words, as the beginning of a phrase.
    pub const fn words(self) -> &'static str {
        match self {
            AttemptKind::AnswerKey => "read of the answer key",
            AttemptKind::Secret => "read of a secret",
            AttemptKind::Read => "read of",
            AttemptKind::Write => "write to",
            AttemptKind::Execute => "execution of",
            AttemptKind::Connect => "connection to",
            AttemptKind::Socket => "socket of",
            AttemptKind::Signal => "signal to",
            AttemptKind::SystemCall => "system call",
            AttemptKind::Limit => "use of more than",
        }
    }
}

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Its kind.
    pub kind: AttemptKind,
    /// The file, address, process or call.
    pub what: String,
}

impl Attempt {
    /// An attempt, with its words bounded.
    pub(super) fn new(kind: AttemptKind, what: impl Into<String>) -> Self {
        let what = selftest_text::one_line(&what.into(), MAX_WORDS);
        Self { kind, what }
    }

    /// Appends it to notes, which [`read_notes`] reads.
    #[cfg(unix)]
    pub(super) fn note(&self, mut notes: &std::fs::File) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            // A full disk must not end the supervisor.
            let _ = std::io::Write::write_all(&mut notes, &line);
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.words(), self.what)
    }
}

/// An attempt with the number of times that it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempts {
    /// The refused attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// How often.
    pub times: u64,
}

/// The notes that a supervisor took, one JSON object a line: each attempt once, the gravest first.
/// The second part says how many different ones are left out.
pub fn read_notes(file: &Path) -> (Vec<Attempts>, usize) {
    use std::io::Read as _;
    let mut text = String::new();
    if let Ok(file) = std::fs::File::open(file) {
        // A line that was cut is no JSON and left out.
        let _ = file.take(MAX_NOTES).read_to_string(&mut text);
    }
    let mut counts: BTreeMap<Attempt, u64> = BTreeMap::new();
    for line in text.lines() {
        if let Ok(Attempt { kind, what }) = serde_json::from_str(line) {
            *counts.entry(Attempt::new(kind, what)).or_default() += 1;
        }
    }
    let left_out = counts.len().saturating_sub(MAX_ATTEMPTS);
    let kept = counts.into_iter().take(MAX_ATTEMPTS);
    (kept.map(|(attempt, times)| Attempts { attempt, times }).collect(), left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_counted_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        assert_eq!(read_notes(&file), (Vec::new(), 0));
        let line =
            |kind, what: &str| serde_json::to_string(&Attempt::new(kind, what)).unwrap() + "\n";
        let mut text = line(AttemptKind::Read, "/a").repeat(2);
        text += &line(AttemptKind::AnswerKey, "config/\u{1b}[31mselftest.yaml");
        for number in 0..60 {
            text += &line(AttemptKind::Signal, &format!("process {number}"));
        }
        text += "{\"kind\":\"rea";
        std::fs::write(&file, text).unwrap();
        let (attempts, left_out) = read_notes(&file);
        assert_eq!((attempts.len(), left_out), (MAX_ATTEMPTS, 12));
        assert_eq!(attempts[0].attempt.kind, AttemptKind::AnswerKey);
        assert!(!attempts[0].attempt.what.contains('\u{1b}'), "{attempts:?}");
        assert_eq!(
            attempts[1],
            Attempts { attempt: Attempt::new(AttemptKind::Read, "/a"), times: 2 }
        );
    }
}
