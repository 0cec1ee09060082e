//! The flags of `selftest judge`.

use clap::{Args, Subcommand};

/// Actions on judges.
#[derive(Debug, Subcommand)]
pub enum JudgeAction {
    /// Measure how well models tell good answers from bad ones, on the answers that ship with
    /// selftest
    Bench(BenchArgs),
    /// Measure how often an answer that speaks to the judge changes the verdict
    Attack(AttackArgs),
}

/// Flags of a measurement.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// The judge [default: every chat model of the Ollama server and every model that is here]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Also measure on answers of another author, on which nothing was tuned
    #[arg(long)]
    pub held_out: bool,
    /// One good and one bad answer of every fifth request, for a first impression
    #[arg(long, conflicts_with = "held_out")]
    pub quick: bool,
    /// Print JSON with every answer instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Flags of an attack.
#[derive(Debug, Clone, Args)]
pub struct AttackArgs {
    /// The judge [default: judge.model of the configuration]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Show the answers to the judge without quotes, for comparison
    #[arg(long)]
    pub without_fence: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}
