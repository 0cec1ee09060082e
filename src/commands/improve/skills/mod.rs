//! `selftest improve skills`: what is recorded of their use, how well they work, which are in use.

pub(super) mod experiment;
mod record;
mod test;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{ArgGroup, Subcommand, ValueEnum};
use selftest_app::{AppError, Project};
use selftest_grading::improve::skill::{SkillChange, SkillVersion};
use selftest_grading::report::improvement;
use selftest_service::grader::skills::SkillTracker;
use selftest_store::Store;
use selftest_text::redact::Redactor;
use serde_json::json;

use crate::args::sessions::database;
use crate::args::{GlobalArgs, StoreArgs};
use crate::commands::improve::skills::experiment::ExperimentArgs;
use crate::commands::improve::skills::record::RecordArgs;
use crate::commands::improve::skills::test::SkillTestArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Actions on skills.
#[derive(Debug, Subcommand)]
pub enum SkillsAction {
    /// Actions on the records of skills.
    #[command(flatten)]
    Kept(KeptAction),
    /// Test whether a skill helps: the same cases with and without it, in random order, judged blind
    #[command(after_help = EXITS)]
    Experiment(Box<ExperimentArgs>),
    /// Test the skills of a repository: without each, as on the other branch, and as it is here, with
    /// its siblings loaded
    #[command(after_help = test::EXITS)]
    Test(Box<SkillTestArgs>),
}

/// Actions on the records of skills in the database.
#[derive(Debug, Subcommand)]
pub enum KeptAction {
    /// List all versions of all skills, with their latest score
    List,
    /// Record that a skill was used, or what the user said next
    Record(Box<RecordArgs>),
    /// Score all active skills by their executions
    Score {
        /// Then disable skills by the skills.disable section of the configuration
        #[arg(long)]
        auto_disable: bool,
    },
    /// Disable a skill
    Disable {
        /// The skill
        name: String,
        /// The version; default: the active one
        #[arg(long = "version", value_name = "V")]
        version: Option<String>,
        /// Reason, for later readers
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Activate a new or a known version of a skill
    #[command(group(ArgGroup::new("what").required(true).multiple(true)))]
    Promote {
        /// The skill
        name: String,
        /// The text of the new version; - for stdin
        #[arg(long, value_name = "SKILL.md", group = "what")]
        file: Option<PathBuf>,
        /// With --file, the name of the new version, by default the next number; otherwise the version to
        /// activate again
        #[arg(long = "version", value_name = "V", group = "what")]
        version: Option<String>,
    },
    /// Disable the active version and activate the previous one
    Rollback {
        /// The skill
        name: String,
    },
    /// Print the versions of a skill and their changes, with author and reason
    History {
        /// The skill
        name: String,
    },
}

const EXITS: &str = "\
Exit codes of an experiment:
  0    tried, whatever the result
  1    with --fail-if-worse: worse with the skill, beyond chance
  2    wrong usage, configuration or suite
  4    nothing ran
  5    a model, the system under test or a report folder could not be used
  130  interrupted";

/// Outcome of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusName {
    /// It worked
    Success,
    /// It failed
    Error,
    /// It timed out
    Timeout,
}

/// Actor recorded in the audit entries.
const ACTOR: &str = "cli";

/// Rows that are asked for at once.
const PAGE: u32 = 500;

/// Bytes of the longest text of a skill that is read.
const MAX_SKILL_BYTES: u64 = 1 << 18;

/// State of one action.
struct Setup {
    tracker: SkillTracker,
    json: bool,
    project: Project,
}

pub(super) async fn execute(
    action: &SkillsAction,
    args: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let action = match action {
        SkillsAction::Kept(action) => action,
        SkillsAction::Test(told) => return Box::pin(test::execute(told, args.json, global)).await,
        SkillsAction::Experiment(told) => {
            return experiment::execute(told, args.json, global).await;
        }
    };
    let project = ui::open(global)?;
    let settings = project.load(Vec::new())?.config.skills;
    let store = Store::open(&database(&project, &args.database)).await?;
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    let setup = Setup {
        tracker: SkillTracker::new(store.clone(), settings, redactor),
        json: args.json,
        project,
    };
    let result = act(action, &setup).await;
    // So that the file alone is the whole database: people copy it.
    store.close().await;
    result
}

async fn act(action: &KeptAction, setup: &Setup) -> Result<Exit, AppError> {
    let tracker = &setup.tracker;
    match action {
        KeptAction::List => list(setup).await,
        KeptAction::Record(told) => record::record(setup, told).await,
        KeptAction::Score { auto_disable } => score(setup, *auto_disable).await,
        KeptAction::Disable { name, version, reason } => {
            let skill = tracker.find_by_name(name, version.as_deref()).await?;
            show(setup, &tracker.disable(&skill, reason.as_deref(), ACTOR).await?)
        }
        KeptAction::Promote { name, file: Some(file), version } => {
            let content = text_of(&setup.project, file)?;
            show(setup, &tracker.promote_new(name, version.as_deref(), &content, ACTOR).await?)
        }
        KeptAction::Promote { name, file: None, version } => {
            let skill = tracker.find_by_name(name, version.as_deref()).await?;
            show(setup, &tracker.promote(&skill, ACTOR).await?)
        }
        KeptAction::Rollback { name } => {
            let skill = tracker.find_by_name(name, None).await?;
            show(setup, &tracker.rollback(&skill, ACTOR).await?)
        }
        KeptAction::History { name } => history(setup, name).await,
    }
}

/// The text of a skill, from a file or from stdin.
fn text_of(project: &Project, file: &Path) -> Result<String, AppError> {
    let shown = file.display();
    let unreadable =
        |error| AppError::usage(anyhow!("cannot read the skill from {shown}: {error}"));
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().take(MAX_SKILL_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        let opened = std::fs::File::open(project.path(file)).map_err(unreadable)?;
        opened.take(MAX_SKILL_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    if bytes.len() as u64 > MAX_SKILL_BYTES {
        let error = anyhow!("the skill in {shown} is longer than {MAX_SKILL_BYTES} bytes");
        return Err(AppError::usage(error));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| AppError::usage(anyhow!("the skill in {shown} is not UTF-8")))?;
    if text.trim().is_empty() {
        return Err(AppError::usage(anyhow!("the skill in {shown} is empty")));
    }
    Ok(text)
}

async fn list(setup: &Setup) -> Result<Exit, AppError> {
    let tracker = &setup.tracker;
    let mut rows: Vec<SkillVersion> = Vec::new();
    let mut after = None;
    loop {
        let page = tracker.store().skills(tracker.user_id(), PAGE, after.as_ref()).await?;
        rows.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if setup.json {
        print(&format!("{:#}\n", json!(rows)))?;
    } else if rows.is_empty() {
        eprint(
            "no skill is known yet\n\
             hint: `selftest improve skills promote NAME --file SKILL.md` makes one known, and \
             `selftest improve skills record --from-sessions` those that recorded sessions used\n",
        );
    } else {
        print(&improvement::table(&rows))?;
    }
    Ok(if rows.is_empty() { Exit::NothingRan } else { Exit::Passed })
}

async fn score(setup: &Setup, auto_disable: bool) -> Result<Exit, AppError> {
    let now = selftest_clock::now();
    let scores = setup.tracker.score_all_skills(now).await?;
    let mut disabled = Vec::new();
    if auto_disable {
        disabled = setup.tracker.auto_disable_underperformers(ACTOR, now).await?;
    }
    if setup.json {
        print(&format!("{:#}\n", json!({ "scores": scores, "disabled": disabled })))?;
    } else {
        print(&improvement::scores(&scores, &disabled))?;
    }
    for fault in disabled.iter().flat_map(|one| &one.refresh_faults) {
        eprint(&format!("warning: {fault}\n"));
    }
    if scores.is_empty() {
        eprint("no skill is in use\n");
        return Ok(Exit::NothingRan);
    }
    Ok(Exit::Passed)
}

async fn history(setup: &Setup, name: &str) -> Result<Exit, AppError> {
    let tracker = &setup.tracker;
    // Fails with a hint if the project has none.
    tracker.find_by_name(name, None).await?;
    let versions = tracker.store().skill_versions(tracker.user_id(), name).await?;
    let audit = tracker.store().skill_audit(tracker.user_id(), name).await?.items;
    if setup.json {
        print(&format!("{:#}\n", json!({ "versions": versions, "audit": audit })))?;
    } else {
        print(&improvement::history(&versions, &audit))?;
    }
    Ok(Exit::Passed)
}

/// Shows a change that was made.
fn show(setup: &Setup, change: &SkillChange) -> Result<Exit, AppError> {
    if setup.json {
        print(&format!("{:#}\n", json!(change)))?;
    } else {
        print(&improvement::change(change))?;
    }
    for fault in &change.refresh_faults {
        eprint(&format!("warning: {fault}\n"));
    }
    Ok(Exit::Passed)
}
