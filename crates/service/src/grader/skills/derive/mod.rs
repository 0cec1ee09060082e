//! Derives skill executions from recorded sessions: each use, its result, and the user's next
//! message. Reading the same session again changes nothing.

#[cfg(test)]
mod tests;
mod uses;

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::mpsc;

use super::{SkillTracker, reaction};
use selftest_grading::improve::skill::SkillExecution;
use selftest_grading::signal::classify_signals;
use selftest_store::{SkillRecord, SkillRef, StoreError};
use selftest_text::digest::uuid_from_name;
use selftest_text::redact::Redactor;
use uses::{SkillUse, SkillUseCollector};

/// Maximum number of files whose executions wait to be written.
const MAX_WAITING: usize = 64;

/// Selects the sessions to search.
#[derive(Debug, Clone, Default)]
pub struct DeriveOptions {
    /// Folders and files with sessions.
    pub sources: Vec<PathBuf>,
    /// Skips files last changed before this time.
    pub since: Option<Timestamp>,
    /// Only sessions of this agent.
    pub agent: Option<String>,
}

/// Counts of the executions found in recorded sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DerivedCounts {
    /// Number of files that could contain sessions.
    pub files: u64,
    /// Number of sessions in which a skill was used.
    pub sessions: u64,
    /// Number of executions in them.
    pub executions: u64,
    /// Number of executions without a date, which are not recorded.
    pub undated: u64,
    /// Number of executions followed by a user message.
    pub answered: u64,
    /// Folders that could not be read, with the reason.
    pub problems: Vec<String>,
}

impl SkillTracker {
    /// Records the skill uses in recorded sessions. Unknown skills are added as version
    /// `unversioned`.
    pub async fn record_sessions(
        &self,
        options: DeriveOptions,
    ) -> Result<DerivedCounts, StoreError> {
        let (sender, mut receiver) = mpsc::channel(MAX_WAITING);
        let redactor = self.redactor.clone();
        let user_id = self.user_id().to_owned();
        // A separate thread, because the reader of database files has its own tokio runtime.
        let reading = std::thread::spawn(move || read(&options, &redactor, &user_id, &sender));
        let mut derived = DerivedCounts::default();
        while let Some(records) = receiver.recv().await {
            let recorded = self.record(&records).await?;
            derived.executions += recorded.executions;
        }
        // A panic has already been printed to stderr.
        let read = reading.join().unwrap_or_default();
        Ok(DerivedCounts { executions: derived.executions, ..read })
    }
}

/// Reads the files and sends the records of each; stops when the receiver is dropped.
fn read(
    options: &DeriveOptions,
    redactor: &Redactor,
    user_id: &str,
    sender: &mpsc::Sender<Vec<SkillRecord>>,
) -> DerivedCounts {
    let mut derived = DerivedCounts::default();
    let mut found = selftest_sessions::find_session_files(&options.sources, |problem| {
        derived.problems.push(problem.to_owned());
    });
    found.retain(|file| file.may_contain_session_since(options.since));
    derived.files = found.len() as u64;
    // Oldest first, because a skill is added at its first use.
    found.sort_by_key(|file| file.modified_ns);
    for file in found {
        let mut uses = SkillUseCollector::default();
        // Files without a session contain no skill uses; `grade` reports the reason.
        if selftest_sessions::read(&file.source, &mut uses).is_err() {
            continue;
        }
        let mut records = Vec::new();
        for (head, uses) in uses.into_sessions() {
            if options.agent.as_ref().is_some_and(|agent| *agent != head.agent) {
                continue;
            }
            let is_since = |since| head.start.is_some_and(|start| start >= since);
            if !options.since.is_none_or(is_since) {
                continue;
            }
            derived.sessions += 1;
            for one in uses {
                // Skills are compared week by week, and an undated use belongs to none.
                let Some(at) = one.at.or(head.start) else {
                    derived.undated += 1;
                    continue;
                };
                derived.answered += u64::from(one.next.is_some());
                let session = (head.agent.as_str(), head.id.as_str());
                records.push(execution_record(one, session, at, redactor, user_id));
            }
        }
        if !records.is_empty() && sender.blocking_send(records).is_err() {
            break;
        }
    }
    derived
}

fn execution_record(
    one: SkillUse,
    (agent, session_id): (&str, &str),
    at: Timestamp,
    redactor: &Redactor,
    user_id: &str,
) -> SkillRecord {
    let reaction = one
        .next
        .as_ref()
        .map(|(message, previous)| reaction(&classify_signals(message, previous.as_deref(), None)));
    let error = one.error.as_deref().map(|words| redactor.apply(words).into_owned());
    let execution = SkillExecution {
        id: uuid_from_name(&format!(
            "execution\0{agent}\0{session_id}\0{}\0{}",
            one.key, one.skill
        )),
        // Set by the store.
        skill_version_id: String::new(),
        user_id: user_id.to_owned(),
        session_id: Some(session_id.to_owned()),
        execution_status: one.status,
        user_edited_output: false,
        user_sent_thank_you: false,
        user_repeated_request: false,
        user_was_frustrated: None,
        conversation_turns: Some(one.turns),
        execution_time_ms: one.milliseconds,
        error_message: error,
        created_at: at,
    };
    SkillRecord::Execution {
        skill: SkillRef::Observed { skill_name: one.skill },
        execution,
        reaction,
    }
}
