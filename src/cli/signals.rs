//! Options of `selftest improve signals`.

use clap::Subcommand;

use super::SessionArgs;

/// Actions on signals.
#[derive(Debug, Subcommand)]
pub enum SignalsAction {
    /// Classify one message of a user
    Classify {
        /// The message; `-` or none for standard input
        message: Option<String>,
        /// The same user's previous message, which it may repeat
        #[arg(long, value_name = "MESSAGE")]
        previous: Option<String>,
        /// Id of the skill that was used for the answer; copied to the output
        #[arg(long, value_name = "ID")]
        skill: Option<String>,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Scan recorded sessions, newest files first
    Scan {
        /// Maximum number of messages to print; 0 for all. Counts cover all
        #[arg(long, value_name = "N", default_value_t = 30)]
        limit: usize,
        /// Options that select sessions.
        #[command(flatten)]
        sessions: SessionArgs,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}
