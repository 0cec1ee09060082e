//! The flags of `selftest improve gaps`, `selftest improve proposals` and `selftest improve route`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SessionArgs;
use selftest_grading::grade::TaskType;

/// Actions on gaps.
#[derive(Debug, Subcommand)]
pub enum GapsAction {
    /// List gaps that are open or have a proposal, those of most sessions first
    List {
        /// Closed and dismissed ones too
        #[arg(long)]
        all: bool,
    },
    /// Grade what is new, and look for gaps in the last days
    Detect {
        /// How many days; default: those of the configuration, 28
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
        /// Grade nothing: look at the grades that are there
        #[arg(long)]
        no_scan: bool,
        /// Which sessions.
        #[command(flatten)]
        sessions: SessionArgs,
    },
    /// Let a model draft skills for open gaps, by default for three of them
    Propose(ProposeArgs),
}

/// For which gaps skills are drafted, by which model, and what they are tried on.
#[derive(Debug, Args)]
pub struct ProposeArgs {
    /// These gaps and not the open ones, whatever became of them before
    #[arg(value_name = "GAP")]
    pub gaps: Vec<String>,
    /// The model; default: generator.model of the configuration
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Try each drafted skill on the cases of this suite, as `selftest suite freeze` writes it; default:
    /// gaps.suite of the configuration
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// Run each case so many times with the skill, and as often without; default: gaps.repeats of
    /// the configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: Option<u32>,
}

/// Actions on proposals.
#[derive(Debug, Subcommand)]
pub enum ProposalsAction {
    /// List proposals that wait for a decision, newest first
    List {
        /// Accepted and rejected ones too
        #[arg(long)]
        all: bool,
    },
    /// Print a proposed skill, what it is for and what its test came to
    Show {
        /// Its id
        proposal: String,
    },
    /// Write the skill to a file and close its gap; nothing is put to use
    Accept {
        /// Its id
        proposal: String,
        /// The file; default: <name>/SKILL.md in the skills folder of the configuration
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Why, for those who read it later
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Reject the skill and dismiss its gap
    Reject {
        /// Its id
        proposal: String,
        /// Why, for those who read it later
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Open the gap again, so that another skill is drafted for it
        #[arg(long)]
        again: bool,
    },
}

/// A type of task by its name.
pub(super) fn task_type(name: &str) -> Result<TaskType, String> {
    TaskType::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = TaskType::ALL.iter().map(|one| one.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}
