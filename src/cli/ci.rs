//! Options of `selftest report comment`.

use clap::Args;

/// The run, and the pull request that it is written on.
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
    /// Key of the comment to update if a pull request has several, such as the name of a job
    #[arg(long, value_name = "KEY", default_value = "main")]
    pub key: String,
    /// Print the comment without sending it
    #[arg(long)]
    pub dry_run: bool,
}
