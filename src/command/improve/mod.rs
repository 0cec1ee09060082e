//! `selftest gaps`, `selftest proposals` and `selftest route`: what could make the agent better.

mod proposals;
mod propose;

use serde_json::json;

use super::context::Project;
use super::failure::Failure;
use super::grade::database;
use super::sessions::{nothing_found, roots};
use super::{eprint, print, since};
use crate::cli::{GapsAction, GlobalArgs, SessionArgs};
use crate::config::Config;
use crate::exit::Exit;
use crate::grade::TaskType;
use crate::grader::{Options, SelfGrader, routing};
use crate::improve::gap::{Gap, GapStatus};
use crate::improve::gap_settings::GapSettings;
use crate::redact::Redactor;
use crate::report::{improvement, plural};
use crate::store::Store;
use crate::text::one_line;
pub(super) use proposals::execute as proposals;
pub(super) use propose::generator_on_request;

/// Most gaps and proposals of a list.
const LISTED: u64 = 10_000;

pub(super) async fn gaps(
    action: &GapsAction,
    args: &SessionArgs,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let resolved = project.load(Vec::new())?;
    match action {
        GapsAction::List { all } => {
            let store = Store::open(&database(&project, &args.db)).await?;
            let listed = store.gaps(None, LISTED).await;
            store.close().await;
            let mut gaps = listed?.items;
            gaps.retain(|gap| *all || matches!(gap.status, GapStatus::Open | GapStatus::Proposed));
            show_gaps(&gaps, args.json)
        }
        GapsAction::Detect { days, no_scan } => {
            let mut settings = resolved.config.gaps.clone();
            settings.lookback_days = days.unwrap_or(settings.lookback_days);
            detect(&project, resolved.config, args, &settings, *no_scan).await
        }
        GapsAction::Propose(told) => propose::execute(told, project, resolved, args).await,
    }
}

fn show_gaps(gaps: &[Gap], as_json: bool) -> Result<Exit, Failure> {
    if as_json {
        print(&format!("{:#}\n", json!(gaps)))?;
    } else if gaps.is_empty() {
        eprint("no gaps; `selftest gaps detect` looks for them\n");
    } else {
        print(&improvement::gaps(gaps))?;
    }
    Ok(Exit::Passed)
}

async fn detect(
    project: &Project,
    config: Config,
    args: &SessionArgs,
    settings: &GapSettings,
    no_scan: bool,
) -> Result<Exit, Failure> {
    let roots = roots(project, args)?;
    let now = crate::clock::now();
    let options = Options {
        sources: roots.clone(),
        since: args.since.as_ref().map(|text| since::moment(text, now)).transpose()?,
        agent: args.agent.clone(),
        settings: config.grade,
        redactor: Redactor::new(project.environment.secret_values.iter().cloned()),
    };
    let grader = SelfGrader::open(&database(project, &args.db), options).await?;
    let detected = async {
        if !no_scan {
            grader.grade_new_sessions(&mut ()).await?;
        }
        grader.detect_gaps(settings, now).await
    };
    let detected = detected.await;
    grader.store().clone().close().await;
    let detected = detected?;
    for problem in &detected.problems {
        eprint(&format!("warning: {}\n", one_line(problem, 400)));
    }
    if args.json {
        print(&format!("{:#}\n", json!(detected)))?;
    } else {
        print(&improvement::gaps(&detected.gaps))?;
    }
    if detected.sessions == 0 && detected.repeated_requests == 0 {
        nothing_found(&roots);
        return Ok(Exit::NothingRan);
    }
    eprint(&format!(
        "{} looked at: {}, {} of them new, {} open again\n",
        plural(detected.sessions, "session"),
        plural(detected.gaps.len() as u64, "gap"),
        detected.new,
        detected.reopened
    ));
    Ok(Exit::Passed)
}

pub(super) async fn route(
    task_type: Option<TaskType>,
    args: &SessionArgs,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let settings = project.load(Vec::new())?.config.routing;
    let store = Store::open(&database(&project, &args.db)).await?;
    let agent = args.agent.as_deref();
    let found = routing(&store, &settings, task_type, agent, crate::clock::now()).await;
    store.close().await;
    let found = found?;
    if args.json {
        print(&format!("{:#}\n", json!(found)))?;
    } else if found.items.is_empty() {
        eprint("no grades of these days; `selftest grade latest` makes some\n");
    } else {
        print(&improvement::routing(&found))?;
    }
    let nothing = found.items.iter().all(|advice| advice.sessions == 0);
    Ok(if nothing { Exit::NothingRan } else { Exit::Passed })
}
