//! The flags of `selftest improve signals`.

use clap::Subcommand;

use super::SessionArgs;

/// Actions on signals.
#[derive(Debug, Subcommand)]
pub enum SignalsAction {
    /// Say what one message of a user signals
    Classify {
        /// The message; `-` or none: standard input
        message: Option<String>,
        /// The same user's message before it, which it may repeat
        #[arg(long, value_name = "MESSAGE")]
        previous: Option<String>,
        /// Id of the skill that was used for the answer; handed through
        #[arg(long, value_name = "ID")]
        skill: Option<String>,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Look through recorded sessions, newest files first
    Scan {
        /// Most messages to print; 0 for all. The counts are over all
        #[arg(long, value_name = "N", default_value_t = 30)]
        limit: usize,
        /// Which sessions.
        #[command(flatten)]
        sessions: SessionArgs,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}
