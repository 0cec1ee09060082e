//! The flags of `selftest comment` and `selftest ci`.

use std::path::PathBuf;

use clap::Args;

use super::RunArgs;

/// Which run is told, and where.
#[derive(Debug, Args)]
pub struct CommentArgs {
    /// The run: its id, its JSON report, or `latest`
    #[arg(default_value = "latest")]
    pub run: String,
    /// The repository [default: `GITHUB_REPOSITORY`]
    #[arg(long, value_name = "OWNER/NAME")]
    pub repo: Option<String>,
    /// The pull request [default: that of the event in GitHub Actions]
    #[arg(long, value_name = "N")]
    pub number: Option<u64>,
    /// Which comment of several on one pull request is updated, such as the name of a job
    #[arg(long, value_name = "KEY", default_value = "main")]
    pub key: String,
    /// Print the comment and send nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// A run in CI.
#[derive(Debug, Args)]
pub struct CiArgs {
    /// Those of a run
    #[command(flatten)]
    pub run: RunArgs,
    /// Put report.json, report.md and comment.md here too, under the same names each time
    /// [default: ci in the folder of the JSON reports]
    #[arg(long, value_name = "DIR", help_heading = "What to write")]
    pub output: Option<PathBuf>,
    /// Which comment of several on one pull request comment.md updates
    #[arg(long, value_name = "KEY", default_value = "main", help_heading = "What to write")]
    pub key: String,
}
