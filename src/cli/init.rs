//! The flags of `selftest init`.

use clap::Args;

/// Flags of `selftest init`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct InitArgs {
    /// Ask nothing: take what is likeliest. Without a terminal nothing is asked either
    #[arg(short, long)]
    pub yes: bool,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// Write all prompt templates into prompts/ too, to be changed there
    #[arg(long)]
    pub prompts: bool,
}
