//! Options of `selftest improve reflect`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Actions on reflections.
#[derive(Debug, Subcommand)]
pub enum ReflectAction {
    /// Grade reflections and store them with their scores
    #[command(after_help = "Exits 1 when a reflection is weak, as a gate, unless --exit-zero; 4 \
                            when there is none.")]
    Grade(GradeReflectionArgs),
    /// List the scores of a project, or all projects with scores
    Scores {
        /// The project; default: one line for each
        project: Option<String>,
        /// Maximum number of lines to print
        #[arg(long, value_name = "N", default_value_t = 50,
            value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// List the weak reflections of a project or of all, with their issues
    Weak {
        /// The project; default: all
        project: Option<String>,
        /// Maximum number of reflections to print
        #[arg(long, value_name = "N", default_value_t = 50,
            value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Print the mean score of each week with its interval, and the threshold that it suggests
    Trend {
        /// The project; default: all
        project: Option<String>,
    },
}

/// Reflections to grade.
#[derive(Debug, Args)]
pub struct GradeReflectionArgs {
    /// A JSON file with a reflection or a list of them, or JSON Lines; `-` for stdin
    #[arg(value_name = "FILE|-")]
    pub file: PathBuf,
    /// Their project; default: their `project_id`, else `default`
    #[arg(long, value_name = "ID")]
    pub project: Option<String>,
    /// Store nothing and call no hook
    #[arg(long)]
    pub dry_run: bool,
    /// Exit 0 even if a reflection is weak; errors still count
    #[arg(long)]
    pub exit_zero: bool,
}
