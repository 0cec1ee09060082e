//! Options of `selftest worker`.

use clap::{Args, Subcommand};
use jiff::Timestamp;

/// Options of a worker.
#[derive(Debug, Clone, Args)]
pub struct WorkerArgs {
    /// Run due jobs, grade queued sessions, and exit
    #[arg(long)]
    pub once: bool,
    /// Use this as the current time, such as 2026-11-22T04:00:00Z
    #[arg(long, value_name = "TIME", requires = "once")]
    pub now: Option<Timestamp>,
    /// Number of sessions graded at once; default: grade.quality.concurrency of the configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub concurrency: Option<u32>,
    /// Only these, separated by commas: names of scheduled jobs, and gradings
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub jobs: Vec<String>,
    /// Grade queued sessions, and leave scheduled jobs to other workers
    #[arg(long)]
    pub no_schedule: bool,
}

/// Actions on jobs.
#[derive(Debug, Subcommand)]
pub enum JobsAction {
    /// List the scheduled jobs with their last runs, the queue and its failures
    Jobs,
    /// Run a scheduled job now, and print its summary
    Run {
        /// Its name, as `selftest worker jobs` shows it
        name: String,
    },
    /// Retry failed gradings
    Retry {
        /// Id of a failed grading, as `selftest worker jobs` shows it
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// All of them
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}
