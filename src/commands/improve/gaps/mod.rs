//! `selftest improve gaps`: kinds of tasks that fail for want of a skill.

mod propose;

use std::path::PathBuf;

use clap::Subcommand;
use selftest_app::AppError;
use selftest_grading::improve::gap::{GapStatus, SkillGap};
use selftest_grading::report::improvement;
use selftest_service::grader::{GapDetection, SelfGrader};
use selftest_store::Store;
use selftest_text::one_line;
use selftest_text::wording::plural;
use serde_json::json;

use crate::args::sessions::{database, nothing_found, options};
use crate::args::{GlobalArgs, SessionArgs, StoreArgs};
use crate::commands::improve::MAX_LISTED;
use crate::commands::improve::gaps::propose::ProposeArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Actions on gaps.
#[derive(Debug, Subcommand)]
pub enum GapsAction {
    /// List gaps that are open or have a proposal, most sessions first
    List {
        /// Include closed and dismissed ones
        #[arg(long)]
        all: bool,
    },
    /// Grade new sessions and detect gaps in the last days
    Detect {
        /// Number of days; default: that of the configuration, 28
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
        /// Do not scan; use existing grades
        #[arg(long)]
        no_scan: bool,
        /// Options that select sessions.
        #[command(flatten)]
        sessions: SessionArgs,
    },
    /// Let a model draft skills for open gaps, by default for three of them
    Propose(ProposeArgs),
}

pub(super) async fn execute(
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
