//! Options of `selftest init`.

use clap::Args;

/// Options of `selftest init`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct InitArgs {
    /// Take the likeliest answers without asking, as without a terminal
    #[arg(short, long)]
    pub yes: bool,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// Also write all prompt templates to prompts/, to edit them there
    #[arg(long)]
    pub prompts: bool,
}
