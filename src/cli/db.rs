//! The flags of `selftest db`.

use std::path::PathBuf;

use clap::Subcommand;

/// Actions on the database.
#[derive(Debug, Subcommand)]
pub enum DbAction {
    /// Copy the database into a new file while it is in use; of PostgreSQL say how
    Backup {
        /// The copy; an existing file is not overwritten
        file: PathBuf,
    },
    /// Print everything in the database as JSON Lines: a table's name and a row in each
    Export {
        /// Write to this new file instead of printing
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Delete what is old, and say how much of what. Sessions that people have corrected or labelled
    /// are kept, and so are decisions on skills and gaps
    Prune {
        /// How old: 90d, 26w, or a date such as 2026-08-01
        #[arg(long, value_name = "TIME", required = true)]
        older_than: String,
        /// Only say what would be deleted
        #[arg(long)]
        dry_run: bool,
        /// Delete old sessions that people have corrected or labelled too, with their words
        #[arg(long)]
        people: bool,
    },
}
