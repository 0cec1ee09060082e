//! Options of `selftest improve gaps`, `selftest improve proposals` and `selftest improve route`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SessionArgs;
use selftest_grading::grade::TaskType;

/// Actions on gaps.
#[derive(Debug, Subcommand)]
pub enum GapsAction {
    /// List gaps that are open or have a proposal, most sessions first
    List {
        /// Include closed and dismissed ones
        #[arg(long)]
        all: bool,
    },
    /// Grade new sessions and detect gaps in the last days
    Detect {
        /// Number of days; default: that of the configuration, 28
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
        /// Do not scan; use existing grades
        #[arg(long)]
        no_scan: bool,
        /// Options that select sessions.
        #[command(flatten)]
        sessions: SessionArgs,
    },
    /// Let a model draft skills for open gaps, by default for three of them
    Propose(ProposeArgs),
}

/// Options of drafting skills.
#[derive(Debug, Args)]
pub struct ProposeArgs {
    /// Gaps to draft skills for, whatever their status; default: open ones
    #[arg(value_name = "GAP")]
    pub gaps: Vec<String>,
    /// The model; default: generator.model of the configuration
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Test each drafted skill on the cases of this suite of `selftest suite freeze`; default:
    /// gaps.suite of the configuration
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// Number of times to run each case with the skill, and without it; default: gaps.repeats of the
    /// configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: Option<u32>,
}

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

/// Parses the name of a task type.
pub(super) fn task_type(name: &str) -> Result<TaskType, String> {
    TaskType::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = TaskType::ALL.iter().map(|one| one.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}
