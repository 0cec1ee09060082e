//! `selftest worker jobs`: what the jobs did, and running or trying them again by hand.

use std::sync::Arc;

use anyhow::anyhow;
use clap::Subcommand;
use selftest_app::skill_tracker;
use selftest_app::{AppError, Project, generator_on_request, rubric_in_use};
use selftest_config::ResolvedConfig;
use selftest_service::grader::SelfGrader;
use selftest_service::jobs::{
    GradingQueue, JobContext, JobKind, JobListing, JobStatus, JobSummary, Scheduler,
};
use selftest_store::Store;
use selftest_text::escape::terminal;
use selftest_text::one_line;
use selftest_text::wording::plural;
use serde_json::json;

use crate::args::sessions::{database, options};
use crate::args::{GlobalArgs, SessionArgs, StoreArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{interruption, print};

/// Actions on jobs.
#[derive(Debug, Subcommand)]
pub enum JobsAction {
    /// List the scheduled jobs with their last runs, the queue and its failures
    Jobs,
    /// Run a scheduled job now, and print its summary
    Run {
        /// Its name, as `selftest worker jobs` shows it
        name: String,
    },
    /// Retry failed gradings
    Retry {
        /// Id of a failed grading, as `selftest worker jobs` shows it
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// All of them
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

pub(super) async fn execute(
    action: &JobsAction,
    sessions: &SessionArgs,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    match action {
        JobsAction::Jobs => list(store, global).await,
        JobsAction::Run { name } => Box::pin(run(job(name, &[])?, sessions, store, global)).await,
        JobsAction::Retry { id, .. } => retry(id.as_deref(), store, global).await,
    }
}

async fn list(args: &StoreArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let settings = project.load(Vec::new())?.config.jobs;
    let address = database(&project, &args.database);
    let store = Store::open(&address).await?;
    let queue = GradingQueue::open(&address, &settings).await?;
    let listing = JobListing::collect(&store, &queue, &settings, selftest_clock::now()).await?;
    queue.close().await;
    store.close().await;
    if args.json {
        print(&format!("{:#}\n", json!(listing)))?;
    } else {
        print(&listing.to_text())?;
    }
    Ok(Exit::Passed)
}

async fn run(
    job: JobKind,
    sessions: &SessionArgs,
    args: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let interrupted = interruption()?;
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    let address = database(&project, &args.database);
    let grader = SelfGrader::open(&address, options(&project, sessions)?).await?;
    let grader = grader.with_rubric(rubric_in_use(&project)).await?;
    let store = grader.store().clone();
    let (project, resolved) = (Arc::new(project), Arc::new(resolved));
    let settings = resolved.config.jobs.clone();
    let scheduler = Scheduler::new(context(&project, &resolved, grader), settings, vec![job]);
    let summary = tokio::select! {
        summary = scheduler.run_now(job) => Some(summary),
        () = interrupted => None,
    };
    scheduler.release().await;
    store.close().await;
    let Some(summary) = summary.transpose()? else { return Ok(Exit::Interrupted) };
    let Some(summary) = summary else {
        return Err(AppError::setup(anyhow!("another worker took {} over", job.name())));
    };
    if args.json {
        print(&format!("{:#}\n", json!(summary)))?;
    } else {
        print(&said(job, &summary))?;
    }
    Ok(if summary.status == JobStatus::Failed { Exit::Failed } else { Exit::Passed })
}

/// The context of scheduled jobs, as configured.
pub(super) fn context(
    project: &Arc<Project>,
    resolved: &Arc<ResolvedConfig>,
    grader: SelfGrader,
) -> JobContext {
    let (config, store) = (&resolved.config, grader.store());
    JobContext {
        weekly_folder: project.shown_path(&config.grade.weekly_folder),
        skills: skill_tracker(project, &config.skills, store),
        gaps: config.gaps.clone(),
        find_generator: generator_on_request(project, resolved, store),
        grader,
    }
}

async fn retry(id: Option<&str>, args: &StoreArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let settings = project.load(Vec::new())?.config.jobs;
    let queue = GradingQueue::open(&database(&project, &args.database), &settings).await?;
    let number = queue.retry_failed(id).await?;
    queue.close().await;
    if let Some(id) = id.filter(|_| number == 0) {
        let shown = one_line(id, 80);
        return Err(AppError::usage(anyhow!("no failed grading has the id {shown:?}"))
            .hint(Some("`selftest worker jobs` shows the ids of failed gradings")));
    }
    if args.json {
        print(&format!("{:#}\n", json!({ "retried": number })))?;
    } else {
        print(&format!("{} will be tried again\n", plural(number, "grading")))?;
    }
    Ok(Exit::Passed)
}

/// The scheduled job with that name; `others` are named in the error too.
pub(super) fn job(name: &str, others: &[&str]) -> Result<JobKind, AppError> {
    JobKind::from_name(name).ok_or_else(|| {
        let known: Vec<&str> =
            JobKind::ALL.iter().map(|job| job.name()).chain(others.iter().copied()).collect();
        let error = anyhow!("there is no job {:?}", one_line(name, 80));
        AppError::usage(error).hint(Some(format!("write {}", known.join(" or "))))
    })
}

/// A summary on a few lines.
pub(super) fn said(job: JobKind, summary: &JobSummary) -> String {
    let mut text = format!("{} {}", job.name(), summary.status.name());
    for (name, value) in &summary.counts {
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        text += &format!("\n  {}: {}", name.replace('_', " "), terminal(&value, 400));
    }
    for why in [&summary.reason, &summary.error].into_iter().flatten() {
        text += &format!("\n  {}", terminal(why, 400));
    }
    text + "\n"
}
