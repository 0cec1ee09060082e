//! `selftest worker`: the weekly schedule and the queued gradings; and `jobs`: what the jobs did, and
//! running or trying them again by hand.

use std::sync::Arc;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use selftest_app::{
    AppError, GradersOnRequest, Project, generator_on_request, grader_finder, rubric_in_use,
    skill_tracker,
};
use selftest_config::ResolvedConfig;
use selftest_service::grader::SelfGrader;
use selftest_service::jobs::{
    DrainOutcome, GradingQueue, GradingWorker, JobContext, JobKind, JobListing, JobStatus,
    JobSummary, Scheduler,
};
use selftest_store::Store;
use selftest_text::escape::terminal;
use selftest_text::one_line;
use selftest_text::wording::plural;
use serde_json::json;

use crate::args::sessions::{database, options};
use crate::args::{GlobalArgs, SessionArgs, StoreArgs};
use crate::exit::Exit;
use crate::ui::{self, eprint, interruption, print};

/// Options of a worker.
#[derive(Debug, Clone, Args)]
pub struct WorkerArgs {
    /// Run due jobs, grade queued sessions, and exit
    #[arg(long)]
    pub once: bool,
    /// Use this as the current time, such as 2026-11-22T04:00:00Z
    #[arg(long, value_name = "TIME", requires = "once")]
    pub now: Option<Timestamp>,
    /// Number of sessions graded at once; default: grade.quality.concurrency of the configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub concurrency: Option<u32>,
    /// Only these, separated by commas: names of scheduled jobs, and gradings
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub jobs: Vec<String>,
    /// Grade queued sessions, and leave scheduled jobs to other workers
    #[arg(long)]
    pub no_schedule: bool,
}

/// The name of the queue in `--jobs`.
const GRADINGS: &str = "gradings";

pub(super) async fn execute(
    args: &WorkerArgs,
    action: Option<&JobsAction>,
    sessions: &SessionArgs,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    match action {
        Some(action) => execute_jobs(action, sessions, store, global).await,
        None => Box::pin(work(args, sessions, store, global)).await,
    }
}

async fn work(
    args: &WorkerArgs,
    sessions: &SessionArgs,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let (jobs, gradings) = wanted(args)?;
    let as_json = store.json;
    // Before any work starts: started work is released.
    let interrupted = interruption()?;
    let project = ui::open(global)?;
    let mut resolved = project.load(Vec::new())?;
    let settings = resolved.config.jobs.clone();
    let quality = &mut resolved.config.grade.quality;
    quality.concurrency = args.concurrency.unwrap_or(quality.concurrency);
    let concurrency = quality.concurrency;
    let address = database(&project, &store.database);
    let grader = SelfGrader::open(&address, options(&project, sessions)?).await?;
    let grader = grader.with_rubric(rubric_in_use(&project)).await?;
    let store = grader.store().clone();
    let queue = GradingQueue::open(&address, &settings).await?;
    let (project, resolved) = (Arc::new(project), Arc::new(resolved));
    let scheduler = Scheduler::new(context(&project, &resolved, grader), settings, jobs);
    let find = grader_finder(GradersOnRequest::new(project, resolved, store.clone(), None));
    let worker = GradingWorker::new(store.clone(), queue.clone(), find, concurrency as usize);

    let work = async {
        if args.once {
            let now = args.now.unwrap_or_else(selftest_clock::now);
            return once(&scheduler, gradings.then_some(&worker), now, as_json).await;
        }
        // Both run forever; each deals with its own errors.
        tokio::join!(scheduler.run(), async {
            if gradings {
                worker.run().await;
            }
        });
        Ok(Exit::Passed)
    };
    let done = tokio::select! {
        done = work => done,
        // A worker has no other end.
        () = interrupted => Ok(if args.once { Exit::Interrupted } else { Exit::Passed }),
    };
    scheduler.release().await;
    worker.release().await;
    queue.close().await;
    store.close().await;
    done
}

/// The scheduled jobs that the flags leave, and whether gradings are among the work.
fn wanted(args: &WorkerArgs) -> Result<(Vec<JobKind>, bool), AppError> {
    let mut jobs = Vec::new();
    for name in args.jobs.iter().filter(|name| *name != GRADINGS) {
        jobs.push(job(name, &[GRADINGS])?);
    }
    let gradings = args.jobs.is_empty() || args.jobs.iter().any(|name| name == GRADINGS);
    if args.jobs.is_empty() {
        jobs = JobKind::ALL.to_vec();
    }
    if args.no_schedule {
        jobs.clear();
    }
    if jobs.is_empty() && !gradings {
        return Err(AppError::usage(anyhow!("--jobs and --no-schedule leave nothing to do")));
    }
    Ok((jobs, gradings))
}

async fn once(
    scheduler: &Scheduler,
    worker: Option<&GradingWorker>,
    now: Timestamp,
    as_json: bool,
) -> Result<Exit, AppError> {
    let ran = scheduler.run_due(now).await?;
    let end = match worker {
        Some(worker) => worker.drain().await?,
        None => DrainOutcome::Drained,
    };
    if as_json {
        let ran: Vec<_> =
            ran.iter().map(|(job, summary)| json!({ "job": job, "summary": summary })).collect();
        print(&format!("{:#}\n", json!({ "now": now, "ran": ran })))?;
    } else {
        for (job, summary) in &ran {
            print(&said(*job, summary))?;
        }
        if ran.is_empty() {
            eprint("nothing is due\n");
        }
    }
    // Printed after the results of the jobs, which are done all the same.
    if end == DrainOutcome::ModelGone {
        let error = anyhow!("the model does not answer; what is queued still waits");
        return Err(AppError::setup(error).hint(Some("`selftest doctor` looks at the models")));
    }
    let failed = ran.iter().any(|(_, summary)| summary.status == JobStatus::Failed);
    Ok(if failed { Exit::Failed } else { Exit::Passed })
}

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

async fn execute_jobs(
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
    // The lease was lost while the job ran, for instance because the machine slept.
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
fn context(
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
fn job(name: &str, others: &[&str]) -> Result<JobKind, AppError> {
    JobKind::from_name(name).ok_or_else(|| {
        let known: Vec<&str> =
            JobKind::ALL.iter().map(|job| job.name()).chain(others.iter().copied()).collect();
        let error = anyhow!("there is no job {:?}", one_line(name, 80));
        AppError::usage(error).hint(Some(format!("write {}", known.join(" or "))))
    })
}

/// A summary on a few lines.
fn said(job: JobKind, summary: &JobSummary) -> String {
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
