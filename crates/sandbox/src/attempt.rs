//! Denied actions of a confined program: evidence for the report, bounded when recorded and again
//! when read. Cases are not judged here.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of distinct attempts kept per case.
const MAX_ATTEMPTS: usize = 50;

/// Maximum length of an attempt's description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 300;

/// Maximum number of bytes read from the notes of one case: more than the supervisor writes of a
/// program, which is 200 of each kind.
const MAX_NOTES: u64 = 4 << 20;

/// The kind of action that was denied.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AttemptKind {
    /// Opening a file that holds answers: suites, configuration, rubrics, verdicts, recordings.
    AnswerKey,
    /// Opening a file that holds keys or passwords.
    Secret,
    /// Opening a file that was not granted.
    Read,
    /// Opening a file for writing that is read-only or not granted at all.
    Write,
    /// Running a program that was not granted.
    Execute,
    /// Connecting to an address or a socket that was not granted.
    Connect,
    /// Opening a socket of a kind that no program needs in the sandbox.
    Socket,
    /// Sending a signal to a process outside the sandbox.
    Signal,
    /// Making a forbidden system call.
    SystemCall,
    /// Using more memory, processes or CPU time than the limit for the whole case.
    Limit,
}

impl AttemptKind {
    /// Returns the configuration key that grants this kind of access, if one does.
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

    /// Returns the start of a phrase that describes the attempt.
    pub const fn phrase(self) -> &'static str {
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

/// A denied action.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct SandboxAttempt {
    /// Kind of the attempt.
    pub kind: AttemptKind,
    /// The file, address, process or system call.
    pub what: String,
}

impl SandboxAttempt {
    /// Creates an attempt, truncating its description.
    pub(super) fn new(kind: AttemptKind, what: impl Into<String>) -> Self {
        let what = selftest_text::one_line(&what.into(), MAX_DESCRIPTION_BYTES);
        Self { kind, what }
    }

    /// Appends the attempt to the notes that [`read_notes`] reads.
    #[cfg(unix)]
    pub(super) fn append_to(&self, mut notes: &std::fs::File) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            // A full disk must not end the supervisor.
            let _ = std::io::Write::write_all(&mut notes, &line);
        }
    }
}

impl fmt::Display for SandboxAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.phrase(), self.what)
    }
}

/// An attempt and how often it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptCount {
    /// The denied attempt.
    #[serde(flatten)]
    pub attempt: SandboxAttempt,
    /// Number of times it was made.
    pub times: u64,
}

/// Reads a supervisor's notes, one JSON object per line, and returns each distinct attempt once,
/// gravest first. The second value is the number of distinct attempts left out.
pub fn read_notes(file: &Path) -> (Vec<AttemptCount>, usize) {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(file) {
        // The size limit can cut the last line short. It is then invalid JSON and skipped below.
        let _ = file.take(MAX_NOTES).read_to_end(&mut bytes);
    }
    // One line that is cut within a character must not take the others with it.
    let text = String::from_utf8_lossy(&bytes);
    let mut counts: BTreeMap<SandboxAttempt, u64> = BTreeMap::new();
    for line in text.lines() {
        // The notes file is not trusted to respect the bounds, so `SandboxAttempt::new` applies them
        // again.
        if let Ok(SandboxAttempt { kind, what }) = serde_json::from_str(line) {
            *counts.entry(SandboxAttempt::new(kind, what)).or_default() += 1;
        }
    }
    // `AttemptKind` is declared from gravest to least grave, so taking the first keeps the worst.
    let left_out = counts.len().saturating_sub(MAX_ATTEMPTS);
    let kept = counts.into_iter().take(MAX_ATTEMPTS);
    (kept.map(|(attempt, times)| AttemptCount { attempt, times }).collect(), left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_counted_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        assert_eq!(read_notes(&file), (Vec::new(), 0));
        let line = |kind, what: &str| {
            serde_json::to_string(&SandboxAttempt::new(kind, what)).unwrap() + "\n"
        };
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
            AttemptCount { attempt: SandboxAttempt::new(AttemptKind::Read, "/a"), times: 2 }
        );
    }

    #[test]
    fn a_flood_of_any_length_hides_no_attempt_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        let line = |kind, what: &str| {
            serde_json::to_string(&SandboxAttempt::new(kind, what)).unwrap() + "\n"
        };
        let first = line(AttemptKind::AnswerKey, "suite.yaml");
        let flood = line(AttemptKind::Read, &"😀".repeat(70));
        let count = MAX_NOTES.div_ceil(flood.len() as u64) + 1;
        let notes = first + &flood.repeat(usize::try_from(count).unwrap());
        // Wherever the bound is within a character.
        for padding in ["", " ", "  ", "   "] {
            std::fs::write(&file, format!("{padding}{notes}")).unwrap();
            let (attempts, _) = read_notes(&file);
            assert_eq!(attempts.len(), 2, "{padding:?}");
            assert_eq!(attempts[0].attempt.kind, AttemptKind::AnswerKey);
        }
    }
}
