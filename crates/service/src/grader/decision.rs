//! Accepts and rejects proposed skills. An accepted skill is written to a file but not activated.
//! Existing files are never overwritten.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use selftest_grading::improve::draft::is_skill_name;
use selftest_grading::improve::gap::GapStatus;
use selftest_grading::improve::proposal::{ProposalStatus, SkillProposal};
use selftest_store::{ProposalDecision, Store, StoreError};
use selftest_text::one_line;

/// Error while deciding on a proposal.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// The proposal does not exist.
    #[error("there is no proposal {0:?}")]
    Unknown(String),
    /// The proposal was already decided.
    #[error("{id} is {status} already")]
    Decided {
        /// Proposal id.
        id: String,
        /// Its current status.
        status: ProposalStatus,
    },
    /// The skill name is invalid, for example because another program changed the row.
    #[error("{0:?} is no name of a skill")]
    Name(String),
    /// The file contains another skill.
    #[error("{0} is there already and says something else")]
    Exists(String),
    /// The file cannot be written.
    #[error("cannot write {file}: {why}")]
    Write {
        /// File path.
        file: String,
        /// Error message of the OS.
        why: String,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Destination of an accepted skill.
#[derive(Debug, Clone, Copy)]
pub enum SkillDestination<'a> {
    /// Exactly this file.
    File(&'a Path),
    /// `<name>/SKILL.md` in this folder.
    Folder(&'a Path),
}

/// Accepts a proposal: writes its SKILL.md and closes the gap. Activates nothing, and never
/// overwrites another file.
pub async fn accept(
    store: &Store,
    id: &str,
    place: SkillDestination<'_>,
    reason: Option<&str>,
) -> Result<SkillProposal, DecisionError> {
    let proposal = pending_proposal(store, id).await?;
    let file = match place {
        SkillDestination::File(file) => file.to_owned(),
        SkillDestination::Folder(folder) => {
            // The name becomes part of a path, and another program may have changed the row.
            if !is_skill_name(&proposal.skill_name) {
                return Err(DecisionError::Name(one_line(&proposal.skill_name, 80)));
            }
            folder.join(&proposal.skill_name).join("SKILL.md")
        }
    };
    let text = proposal.skill_md.clone();
    let written = tokio::task::spawn_blocking({
        let file = file.clone();
        move || write_new(&file, &text)
    });
    let shown = file.to_string_lossy().into_owned();
    let failed = |why: String| DecisionError::Write { file: shown.clone(), why };
    let is_there = written.await.map_err(|panic| failed(panic.to_string()))?;
    if !is_there.map_err(|error| failed(error.to_string()))? {
        return Err(DecisionError::Exists(shown));
    }
    let decision = ProposalDecision {
        status: ProposalStatus::Accepted,
        gap: GapStatus::Closed,
        reason: reason.map(str::to_owned),
        file: Some(shown),
        at: selftest_clock::now(),
    };
    decide(store, id, &decision).await
}

/// Rejects a proposal. The gap is dismissed, or opened again if another draft is wanted.
pub async fn reject(
    store: &Store,
    id: &str,
    reason: &str,
    again: bool,
) -> Result<SkillProposal, DecisionError> {
    pending_proposal(store, id).await?;
    let decision = ProposalDecision {
        status: ProposalStatus::Rejected,
        gap: if again { GapStatus::Open } else { GapStatus::Dismissed },
        reason: Some(reason.to_owned()),
        file: None,
        at: selftest_clock::now(),
    };
    decide(store, id, &decision).await
}

async fn find_proposal(store: &Store, id: &str) -> Result<SkillProposal, DecisionError> {
    let proposal = store.proposal(id).await?;
    proposal.ok_or_else(|| DecisionError::Unknown(one_line(id, 80)))
}

async fn pending_proposal(store: &Store, id: &str) -> Result<SkillProposal, DecisionError> {
    let proposal = find_proposal(store, id).await?;
    match proposal.status {
        ProposalStatus::Proposed => Ok(proposal),
        status => Err(DecisionError::Decided { id: proposal.id, status }),
    }
}

async fn decide(
    store: &Store,
    id: &str,
    made: &ProposalDecision,
) -> Result<SkillProposal, DecisionError> {
    let decided = store.decide_proposal(id, made).await?;
    let proposal = find_proposal(store, id).await?;
    if decided {
        Ok(proposal)
    } else {
        Err(DecisionError::Decided { id: proposal.id, status: proposal.status })
    }
}

/// Writes a new file; returns false if it exists with other content.
fn write_new(file: &Path, text: &str) -> io::Result<bool> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // `create_new` never overwrites a file, even one created at the same moment.
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(mut new) => {
            let written = new.write_all(text.as_bytes());
            if written.is_err() {
                // An incomplete file would block the next attempt.
                let _ = fs::remove_file(file);
            }
            written.map(|()| true)
        }
        // The same text may be left from an earlier attempt.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Ok(fs::read(file)? == text.as_bytes())
        }
        Err(error) => Err(error),
    }
}
