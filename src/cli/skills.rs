//! Options of `selftest improve skills`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::{ExperimentArgs, SessionArgs};

/// Actions on skills.
#[derive(Debug, Subcommand)]
pub enum SkillsAction {
    /// Actions on the records of skills.
    #[command(flatten)]
    Kept(KeptAction),
    /// Test whether a skill helps: the same cases with and without it, in random order, judged blind
    #[command(after_help = EXITS)]
    Experiment(Box<ExperimentArgs>),
}

/// Actions on the records of skills in the database.
#[derive(Debug, Subcommand)]
pub enum KeptAction {
    /// List all versions of all skills, with their latest score
    List,
    /// Record that a skill was used, or what the user said next
    Record(Box<RecordArgs>),
    /// Score all active skills by their executions
    Score {
        /// Then disable skills by the skills.disable section of the configuration
        #[arg(long)]
        auto_disable: bool,
    },
    /// Disable a skill
    Disable {
        /// The skill
        name: String,
        /// The version; default: the active one
        #[arg(long = "version", value_name = "V")]
        version: Option<String>,
        /// Reason, for later readers
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Activate a new or a known version of a skill
    #[command(group(ArgGroup::new("what").required(true).multiple(true)))]
    Promote {
        /// The skill
        name: String,
        /// The text of the new version; - for stdin
        #[arg(long, value_name = "SKILL.md", group = "what")]
        file: Option<PathBuf>,
        /// With --file, the name of the new version, by default the next number; otherwise the version to
        /// activate again
        #[arg(long = "version", value_name = "V", group = "what")]
        version: Option<String>,
    },
    /// Disable the active version and activate the previous one
    Rollback {
        /// The skill
        name: String,
    },
    /// Print the versions of a skill and their changes, with author and reason
    History {
        /// The skill
        name: String,
    },
}

const EXITS: &str = "\
Exit codes of an experiment:
  0    tried, whatever the result
  1    with --fail-if-worse: worse with the skill, beyond chance
  2    wrong usage, configuration or suite
  4    nothing ran
  5    a model, the system under test or a report folder could not be used
  130  interrupted";

/// An event to record.
#[derive(Debug, Args)]
// Not the group of the struct itself, to which all flags would belong.
#[group(skip)]
#[command(group(ArgGroup::new("what").required(true).multiple(false)))]
pub struct RecordArgs {
    /// This skill was used
    #[arg(long, value_name = "NAME", group = "what", requires = "status")]
    pub skill: Option<String>,
    /// The user wrote this after a skill was used in the session
    #[arg(long, value_name = "TEXT", group = "what", requires = "session")]
    pub message: Option<String>,
    /// Record everything from sessions of Claude Code and Hermes; see --source and --since
    #[arg(long, group = "what")]
    pub from_sessions: bool,

    /// Its version; default: the active one
    #[arg(long = "version", value_name = "V", requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub version: Option<String>,
    /// Its outcome
    #[arg(long, value_enum, requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub status: Option<StatusName>,
    /// The session of the execution or the message
    #[arg(long, value_name = "ID", help_heading = "With --skill or --message")]
    pub session: Option<String>,
    /// Duration in milliseconds
    #[arg(long, value_name = "N", requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub time_ms: Option<u32>,
    /// Number of turns of the task
    #[arg(long, value_name = "N", requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub turns: Option<u32>,
    /// The error
    #[arg(long, value_name = "TEXT", requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub error: Option<String>,
    /// The user significantly changed the result
    #[arg(long, conflicts_with = "from_sessions", help_heading = "With --skill or --message")]
    pub edited: bool,
    /// The user's previous message
    #[arg(long, value_name = "TEXT", requires = "message", help_heading = "With --message")]
    pub previous: Option<String>,

    /// Options that select sessions, with --from-sessions.
    #[command(flatten)]
    pub sessions: SessionArgs,
}

/// Outcome of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusName {
    /// It worked
    Success,
    /// It failed
    Error,
    /// It timed out
    Timeout,
}
