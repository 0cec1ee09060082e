//! `selftest report`: reports of an earlier run.

mod comment;

use anyhow::anyhow;
use clap::Subcommand;
use comment::CommentArgs;
use selftest_app::{
    AppError, CiReports, RunSettings, case_sources, check_once, find_report_file, merge_shards,
};
use selftest_reports::ci::ReportRequest;

use crate::args::{Format, GlobalArgs};
use crate::exit::{Exit, TABLE};
use crate::ui;
use crate::ui::Terminal;

/// Actions on the reports of a run.
#[derive(Debug, Subcommand)]
pub enum ReportAction {
    /// Write reports of an earlier run: those of --report, else those of the configuration
    #[command(after_help = REPORT_EXITS)]
    Write {
        /// Id of the run, its JSON report, or `latest`
        run: String,
        /// The reports, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH,
        /// ctrf=PATH, reward=PATH, benchmark=PATH, github
        #[arg(long, value_name = "KIND=PATH", value_delimiter = ',')]
        report: Vec<ReportRequest>,
    },
    /// Merge the reports of all shards (`--shard 1/4` …) into one run with one gate, and write its
    /// reports
    #[command(after_help = TABLE)]
    Merge {
        /// The shards: run ids or JSON reports
        #[arg(required = true, num_args = 1..)]
        shards: Vec<String>,
        /// Write these reports of the merged run too, comma-separated or repeated: junit=PATH,
        /// html=PATH, md=PATH, json=PATH, ctrf=PATH, sarif=PATH, reward=PATH, benchmark=PATH, github, otlp=URL
        #[arg(long, value_name = "KIND=PATH", value_delimiter = ',')]
        report: Vec<ReportRequest>,
        /// Format of stdout
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        /// Exit 0 if a case failed or has no verdict
        #[arg(long)]
        exit_zero: bool,
    },
    /// Write a run as a comment on a GitHub pull request, or update the existing comment; the token
    /// is that of `GITHUB_TOKEN` or `GH_TOKEN`
    Comment(CommentArgs),
}

const REPORT_EXITS: &str = "\
Exit codes:
  0  all of them are written, whatever the result of the run
  2  wrong usage, or there is no such run
  5  a report could not be written; the others are";

pub(super) async fn execute(action: &ReportAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    match action {
        ReportAction::Write { run, report } => write(run, report, global).await,
        ReportAction::Merge { shards, report, format, exit_zero } => {
            let terminal = Terminal::new(global, false);
            let project = ui::open_with(global, terminal)?;
            let run = merge_shards(&project, shards, report).await?;
            terminal.print_run(&run, *format)?;
            Exit::of_run(&run, *exit_zero)
        }
        ReportAction::Comment(args) => comment::execute(args, global).await,
    }
}

async fn write(
    named: &str,
    requests: &[ReportRequest],
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    check_once(requests)?;
    let settings = RunSettings { report: requests.to_vec(), ..RunSettings::default() };
    let mut resolved = project.load(settings.flags())?;
    if !requests.is_empty() {
        resolved.config.reports.set_requests(requests);
    }
    if project.report_requests(&resolved).is_empty() {
        let error = anyhow!("nothing to write: neither --report nor `reports` names a report");
        return Err(AppError::usage(error).hint(Some("for example --report md=selftest.md")));
    }
    let (document, json) = find_report_file(&project, &resolved, named)?;
    let reports = CiReports::open(&project, &resolved)?;
    let sources = case_sources(&project, &resolved, document.suite.as_ref());
    let faults = reports.write(&document, &sources, &json).await;
    if faults.is_empty() {
        Ok(Exit::Passed)
    } else {
        Err(AppError::setup(anyhow!(faults.join("\n"))))
    }
}
