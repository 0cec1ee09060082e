//! `selftest worker`: the weekly schedule and the queued gradings.

mod jobs;

use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use jiff::Timestamp;
use jobs::{context, job, said};
use selftest_app::{AppError, GradersOnRequest, grader_finder, rubric_in_use};
use selftest_service::grader::SelfGrader;
use selftest_service::jobs::{
    DrainOutcome, GradingQueue, GradingWorker, JobKind, JobStatus, Scheduler,
};
use serde_json::json;

use crate::args::sessions::{database, options};
use crate::args::{GlobalArgs, SessionArgs, StoreArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, interruption, print};
pub(crate) use jobs::JobsAction;

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
        Some(action) => jobs::execute(action, sessions, store, global).await,
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
    if end == DrainOutcome::ModelGone {
        let error = anyhow!("the model does not answer; what is queued still waits");
        return Err(AppError::setup(error).hint(Some("`selftest doctor` looks at the models")));
    }
    let failed = ran.iter().any(|(_, summary)| summary.status == JobStatus::Failed);
    Ok(if failed { Exit::Failed } else { Exit::Passed })
}
