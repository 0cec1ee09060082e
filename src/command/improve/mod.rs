//! `selftest improve gaps`, `selftest improve proposals` and `selftest improve route`: what could make the agent better.

mod proposals;
mod propose;

use std::path::PathBuf;

use serde_json::json;

use super::grade::{database, options};
use super::sources::nothing_found;
use crate::cli::{GapsAction, GlobalArgs, StoreArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};
pub(super) use proposals::execute as proposals;
use selftest_app::AppError;
use selftest_grading::grade::TaskType;
use selftest_grading::improve::gap::{GapStatus, SkillGap};
use selftest_grading::report::improvement;
use selftest_service::grader::GapDetection;
use selftest_service::grader::{SelfGrader, routing};
use selftest_store::Store;
use selftest_text::one_line;
use selftest_text::wording::plural;

/// Most gaps and proposals of a list.
const MAX_LISTED: u64 = 10_000;

pub(super) async fn gaps(
    action: &GapsAction,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    match action {
        GapsAction::List { all } => {
            let opened = Store::open(&database(&project, &store.database)).await?;
            let listed = opened.gaps(None, MAX_LISTED).await;
            opened.close().await;
            let mut gaps = listed?.items;
            gaps.retain(|gap| *all || matches!(gap.status, GapStatus::Open | GapStatus::Proposed));
            show_gaps(&gaps, store.json)
        }
        GapsAction::Detect { days, no_scan, sessions } => {
            let mut settings = resolved.config.gaps.clone();
            settings.lookback_days = days.unwrap_or(settings.lookback_days);
            let options = options(&project, sessions)?;
            let roots = options.sources.clone();
            let now = selftest_clock::now();
            let grader = SelfGrader::open(&database(&project, &store.database), options).await?;
            let detected = async {
                if !no_scan {
                    grader.grade_new_sessions(&mut ()).await?;
                }
                grader.detect_gaps(&settings, now).await
            };
            let detected = detected.await;
            grader.store().clone().close().await;
            show_detected(&detected?, &roots, store.json)
        }
        GapsAction::Propose(told) => propose::execute(told, project, resolved, store).await,
    }
}

fn show_gaps(gaps: &[SkillGap], as_json: bool) -> Result<Exit, AppError> {
    if as_json {
        print(&format!("{:#}\n", json!(gaps)))?;
    } else if gaps.is_empty() {
        eprint("no gaps; `selftest improve gaps detect` looks for them\n");
    } else {
        print(&improvement::gaps(gaps))?;
    }
    Ok(Exit::Passed)
}

fn show_detected(
    detected: &GapDetection,
    roots: &[PathBuf],
    as_json: bool,
) -> Result<Exit, AppError> {
    for problem in &detected.problems {
        eprint(&format!("warning: {}\n", one_line(problem, 400)));
    }
    if as_json {
        print(&format!("{:#}\n", json!(detected)))?;
    } else {
        print(&improvement::gaps(&detected.gaps))?;
    }
    if detected.sessions == 0 && detected.repeated_requests == 0 {
        nothing_found(roots);
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
    agent: Option<&str>,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let settings = project.load(Vec::new())?.config.routing;
    let opened = Store::open(&database(&project, &store.database)).await?;
    let found = routing(&opened, &settings, task_type, agent, selftest_clock::now()).await;
    opened.close().await;
    let found = found?;
    if store.json {
        print(&format!("{:#}\n", json!(found)))?;
    } else if found.items.is_empty() {
        eprint("no grades of these days; `selftest grade latest` makes some\n");
    } else {
        print(&improvement::routing(&found))?;
    }
    let nothing = found.items.iter().all(|advice| advice.sessions == 0);
    Ok(if nothing { Exit::NothingRan } else { Exit::Passed })
}
