//! `selftest improve proposals`: drafted skills, and what people decide about them.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Subcommand;
use selftest_app::{AppError, Project};
use selftest_config::Config;
use selftest_grading::improve::proposal::ProposalStatus;
use selftest_grading::report::improvement;
use selftest_service::grader::proposals::{DecisionError, SkillDestination, accept, reject};
use selftest_store::Store;
use selftest_text::one_line;
use serde_json::json;

use crate::args::sessions::database;
use crate::args::{GlobalArgs, StoreArgs};
use crate::commands::improve::MAX_LISTED;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Actions on proposals.
#[derive(Debug, Subcommand)]
pub enum ProposalsAction {
    /// List proposals that wait for a decision, newest first
    List {
        /// Include accepted and rejected ones
        #[arg(long)]
        all: bool,
    },
    /// Print a proposed skill, its purpose and its test result
    Show {
        /// Its id
        proposal: String,
    },
    /// Write the skill to a file and close its gap; does not activate it
    Accept {
        /// Its id
        proposal: String,
        /// The file; default: <name>/SKILL.md in the skills folder of the configuration
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Reason, for later readers
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Reject the skill and dismiss its gap
    Reject {
        /// Its id
        proposal: String,
        /// Reason, for later readers
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Open the gap again, so that another skill is drafted for it
        #[arg(long)]
        again: bool,
    },
}

pub(crate) async fn execute(
    action: &ProposalsAction,
    args: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let config = project.load(Vec::new())?.config;
    let store = Store::open(&database(&project, &args.database)).await?;
    let done = act(action, &project, &config, &store, args.json).await;
    store.close().await;
    done
}

async fn act(
    action: &ProposalsAction,
    project: &Project,
    config: &Config,
    store: &Store,
    as_json: bool,
) -> Result<Exit, AppError> {
    let proposal = match action {
        ProposalsAction::List { all } => {
            let status = (!*all).then_some(ProposalStatus::Proposed);
            let proposals = store.proposals(status, MAX_LISTED).await?.items;
            if as_json {
                print(&format!("{:#}\n", json!(proposals)))?;
            } else if proposals.is_empty() {
                eprint("no proposals; `selftest improve gaps propose` makes them\n");
            } else {
                print(&improvement::proposals(&proposals))?;
            }
            return Ok(Exit::Passed);
        }
        ProposalsAction::Show { proposal } => {
            let found = store.proposal(proposal).await?;
            let found = found.ok_or_else(|| DecisionError::Unknown(one_line(proposal, 80)))?;
            let gap = store.gap(&found.gap_id).await?;
            if as_json {
                print(&format!("{:#}\n", json!({ "proposal": found, "gap": gap })))?;
            } else {
                print(&improvement::proposal(&found, gap.as_ref()))?;
            }
            return Ok(Exit::Passed);
        }
        ProposalsAction::Accept { proposal, output, reason } => {
            let folder = project.folder.join(&config.gaps.skills_folder);
            let output = output.as_ref().map(|output| project.path(output));
            let place =
                output.as_deref().map_or(SkillDestination::Folder(&folder), SkillDestination::File);
            accept(store, proposal, place, reason.as_deref()).await?
        }
        ProposalsAction::Reject { proposal, reason, again } => {
            let reason = reason.trim();
            if reason.is_empty() {
                return Err(AppError::usage(anyhow!("--reason is empty, expected words")));
            }
            reject(store, proposal, reason, *again).await?
        }
    };
    if as_json {
        print(&format!("{:#}\n", json!(proposal)))?;
    } else {
        let written = proposal.file.as_deref().map(|file| format!("; written to {file}"));
        let written = one_line(&written.unwrap_or_default(), 4096);
        print(&format!("{} is {}{written}\n", proposal.id, proposal.status))?;
    }
    Ok(Exit::Passed)
}
