//! Makes up ids for sessions without one.
//!
//! If the agent names files after sessions, the file name is the id. Otherwise, names may repeat
//! and a file may have many sessions, so a digest of the session's start is appended. This id stays
//! the same if the file is moved or grows.

use std::collections::HashMap;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use twox_hash::XxHash3_64;

use super::SessionSource;
use super::event::{Event, EventOrigin, EventRole};

/// Maximum bytes of a text that are hashed.
const MAX_HASHED: usize = 4096;

/// Maximum number of events hashed if the agent never answers.
const MAX_EVENTS: u32 = 64;

/// Maximum bytes of a name, without the digest.
const MAX_NAME: usize = 180;

/// Maximum number of made-up ids remembered per source.
const MAX_IDS: usize = 100_000;

/// Where the id of a session without one comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdSource {
    /// The agent names files after sessions.
    FileName,
    /// The agent names folders after sessions; names of single files may repeat.
    FolderName,
    /// Names may repeat, so a digest of the session's start is appended.
    Content,
}

/// Names the sessions of one source.
pub(super) struct SessionNaming {
    path: PathBuf,
    /// File name without extensions.
    stem: String,
    /// Set if the agent names each file after its session.
    stem_is_id: bool,
    /// Replaces the file name for the current session.
    name: Option<String>,
    start: SessionStart,
    /// Number of times each made-up id was used in this pass, by its digest.
    use_counts: HashMap<u64, u32>,
}

impl SessionNaming {
    pub(super) fn new(source: &SessionSource, ids: IdSource) -> Self {
        let stem_is_id = match ids {
            IdSource::FileName => true,
            IdSource::FolderName => matches!(source, SessionSource::Folder { .. }),
            IdSource::Content => false,
        };
        Self {
            path: source.path().to_owned(),
            stem: source.stem(),
            stem_is_id,
            name: None,
            start: SessionStart::default(),
            use_counts: HashMap::new(),
        }
    }

    /// Returns the path of the source.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file name without folders and extensions.
    pub(super) fn stem(&self) -> &str {
        &self.stem
    }

    /// Sets the name of the current session. A digest is appended to tell it from others of that
    /// name.
    pub(super) fn set_name(&mut self, name: &str) {
        self.name = Some(name.to_owned());
    }

    /// Names the current session after a benchmark instance. An instance is run many times, and its
    /// runs differ by their folder, or by the parent folder if each instance has its own.
    pub(super) fn name_run_of(&mut self, instance: &str) {
        if instance.is_empty() {
            return;
        }
        let path =
            if self.path.is_relative() { std::path::absolute(&self.path).ok() } else { None };
        // Made absolute so that the folder's name is known even for a path like `a.traj`.
        let path = path.as_deref().filter(|path| path.is_file()).unwrap_or(&self.path);
        let names = path.ancestors().skip(1).filter_map(Path::file_name);
        let mut names = names.map(|name| selftest_text::one_line(&name.to_string_lossy(), 80));
        self.name = Some(match names.find(|name| !name.starts_with(instance)) {
            // A folder that starts with the instance's name belongs to it alone and tells no runs
            // apart.
            Some(folder) => format!("{folder}/{instance}"),
            None => instance.to_owned(),
        });
    }

    /// Does the same with the file name as the instance.
    pub(super) fn name_run_by_stem(&mut self) {
        let stem = self.stem.clone();
        self.name_run_of(&stem);
    }

    /// Adds an event of the current session.
    pub(super) fn observe(&mut self, event: &Event<'_>) {
        if !self.stem_is_id && !self.start.is_complete {
            self.start.observe(event);
        }
    }

    /// Returns the id of the current session as known so far, for files without an id.
    pub(super) fn provisional_id(&self, start: Option<Timestamp>) -> String {
        let name = match &self.name {
            None if self.stem_is_id => return self.stem.clone(),
            None => &self.stem,
            Some(name) => name,
        };
        let name = selftest_text::one_line(name, MAX_NAME);
        // 32 bits are enough: they tell apart sessions of one file name, of which there are few.
        format!("{name}-{:08x}", self.start.digest(start) & 0xffff_ffff)
    }

    /// Returns the final id of the session, with a suffix if it was used before.
    pub(super) fn final_id(&mut self, start: Option<Timestamp>) -> String {
        let id = self.provisional_id(start);
        // Hashes take less memory than the ids, of which a file may have many.
        let key = XxHash3_64::oneshot(id.as_bytes());
        // Bounds memory; an id beyond the limit may repeat.
        if self.use_counts.len() >= MAX_IDS && !self.use_counts.contains_key(&key) {
            return id;
        }
        let given = self.use_counts.entry(key).or_default();
        *given += 1;
        // Equal sessions in one file, such as repeated runs of a benchmark, have equal digests.
        if *given == 1 { id } else { format!("{id}#{given}") }
    }

    /// Forgets the current session.
    pub(super) fn end_session(&mut self) {
        self.name = None;
        self.start = SessionStart::default();
    }

    /// Forgets all sessions, because the source is read again.
    pub(super) fn restart(&mut self) {
        self.end_session();
        self.use_counts.clear();
    }
}

/// The session up to the agent's first answer. It does not depend on what a sink wants, and a
/// session without an answer has no grade that a changed id could lose.
#[derive(Default)]
struct SessionStart {
    /// Created on demand, because most sessions have ids.
    hasher: Option<XxHash3_64>,
    events: u32,
    is_complete: bool,
}

impl SessionStart {
    fn observe(&mut self, event: &Event<'_>) {
        let (who, is_answer) = match event.role {
            EventRole::System => (b's', false),
            EventRole::User => (b'u', false),
            EventRole::Assistant => (b'a', event.origin != EventOrigin::Harness),
            // The sink decides if tool output is present, so it must not affect the id.
            EventRole::Tool => return,
        };
        let hasher = self.hasher.get_or_insert_default();
        hasher.write(&[who]);
        let texts = event.calls.iter().flat_map(|call| [&call.name, &call.arguments]);
        for text in [&event.text].into_iter().chain(texts) {
            hasher.write(&text.as_bytes()[..text.len().min(MAX_HASHED)]);
            // A separator that never occurs in UTF-8, so that the texts cannot run together.
            hasher.write(&[0xff]);
        }
        self.events += 1;
        let says_something = !event.text.is_empty() || !event.calls.is_empty();
        self.is_complete = (is_answer && says_something) || self.events >= MAX_EVENTS;
    }

    fn digest(&self, start: Option<Timestamp>) -> u64 {
        let mut hasher = self.hasher.clone().unwrap_or_default();
        if let Some(start) = start {
            hasher.write(&start.as_nanosecond().to_le_bytes());
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{SessionCollector, read};
    use super::*;

    fn ids(source: &SessionSource) -> Vec<String> {
        let mut collector = SessionCollector::default();
        read(source, &mut collector).unwrap();
        collector.into_sessions().into_iter().map(|session| session.head.id).collect()
    }

    fn messages(answers: &[&str]) -> String {
        let message = |role: &str, text: &str| format!(r#"{{"role":"{role}","content":"{text}"}}"#);
        let mut all = vec![message("user", "hello")];
        for answer in answers {
            all.extend([message("assistant", answer), message("user", "more")]);
        }
        format!("[{}]", all.join(","))
    }

    #[test]
    fn an_id_stays_when_a_chat_grows_and_differs_between_chats_of_one_name() {
        let id = |name: &str, answers: &[&str]| ids(&SessionSource::bytes(name, messages(answers)));
        let first = id("chat.json", &["hi"]);
        // Written down: an id must not change with a version of this program.
        assert_eq!(first, ["chat-7cf8f3b7"]);
        for name in ["chat.json", "A/chat.json", "/elsewhere/chat.jsonl"] {
            assert_eq!(id(name, &["hi", "on and on", "end"]), first, "{name}");
        }
        assert_ne!(id("chat.json", &["ho"]), first);
        assert_ne!(id("other.json", &["hi"]), first);
    }

    #[test]
    fn every_session_of_a_file_has_an_id_of_its_own() {
        let chat = |answer: &str| format!(r#"{{"messages":{}}}"#, messages(&[answer]));
        let lines = [chat("a"), chat("b"), chat("a")].join("\n");
        let found = ids(&SessionSource::bytes("chats.jsonl", lines));
        assert_eq!(found.len(), 3);
        assert_ne!(found[0], found[1]);
        assert_eq!(found[2], format!("{}#2", found[0]));
        let batch = r#"{"conversations":[{"from":"human","value":"go"},{"from":"gpt","value":"ok"}],"timestamp":"T"}"#;
        let batch =
            ["2026-01-01T00:00:00", "2026-01-02T00:00:00"].map(|time| batch.replace('T', time));
        let found = ids(&SessionSource::bytes("trajectory_samples.jsonl", batch.join("\n")));
        assert_ne!(found[0], found[1]);
        assert!(found.iter().all(|id| id.starts_with("trajectory_samples-")), "{found:?}");
        let rows = r#"[{"id":7,"messages":M},{"id":"its-own","messages":M}]"#;
        let found = ids(&SessionSource::bytes("rows.json", rows.replace('M', &messages(&["a"]))));
        assert!(found[0].starts_with("rows#7-"), "{found:?}");
        assert_eq!(found[1], "its-own");
    }

    #[test]
    fn runs_of_an_instance_are_told_apart_by_the_folder_of_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let run = r#"{"trajectory":[{"action":"ls","observation":"","response":"I look."}],"history":[]}"#;
        for (place, beginning) in [
            ("one/i-1/i-1.traj", "one/i-1-"),
            ("two/i-1/i-1.traj", "two/i-1-"),
            ("three/i-1.traj", "three/i-1-"),
        ] {
            let path = folder.path().join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, run).unwrap();
            let found = ids(&SessionSource::file(path));
            assert!(found[0].starts_with(beginning), "{found:?}");
        }
    }

    #[test]
    fn a_file_that_the_agent_names_by_its_session_keeps_its_name() {
        let meta = r#"{"role":"session_meta","model":"m"}"#;
        let text = format!("{meta}\n{}", r#"{"role":"user","content":"hello"}"#);
        assert_eq!(ids(&SessionSource::bytes("20260101_x.jsonl", text)), ["20260101_x"]);
    }
}
