//! Options of `selftest db`.

use std::path::PathBuf;

use clap::Subcommand;

/// Actions on the database.
#[derive(Debug, Subcommand)]
pub enum DbAction {
    /// Copy the database to a new file while it is in use; for PostgreSQL, print how
    Backup {
        /// The copy; an existing file is not overwritten
        file: PathBuf,
    },
    /// Print the database as JSON Lines, each with a table name and a row
    Export {
        /// Write to this new file instead of printing
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Delete old rows and print the counts. Keeps sessions that people corrected or labelled, and
    /// decisions on skills and gaps
    Prune {
        /// Age limit: 90d, 26w, or a date such as 2026-08-01
        #[arg(long, value_name = "TIME", required = true)]
        older_than: String,
        /// Only print what would be deleted
        #[arg(long)]
        dry_run: bool,
        /// Also delete old sessions that people corrected or labelled, with their reasons
        #[arg(long)]
        people: bool,
    },
}
