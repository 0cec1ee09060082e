//! `selftest improve`: what could make the agent better.

mod gaps;
mod reflect;
mod signals;
mod skills;

use clap::Subcommand;
use serde_json::json;

use crate::args::sessions::database;
use crate::args::{GlobalArgs, StoreArgs};
use crate::exit::Exit;
use crate::runtime::block_on;
use crate::ui::{self, eprint, print};
use gaps::{GapsAction, ProposalsAction};
use reflect::ReflectAction;
use selftest_app::AppError;
use selftest_grading::grade::TaskType;
use selftest_grading::report::improvement;
use selftest_service::grader::{routing, type_evidence};
use selftest_store::Store;
use signals::SignalsAction;

pub(crate) use skills::SkillsAction;

/// Most gaps and proposals of a list.
const MAX_LISTED: u64 = 10_000;

/// Ways to make an agent better.
#[derive(Debug, Subcommand)]
pub enum ImproveAction {
    /// Find skill gaps, and let a model draft skills that could close them
    Gaps {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: GapsAction,
    },
    /// Show proposed skills, and accept or reject them
    Proposals {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: ProposalsAction,
    },
    /// Track how well skills work, and disable those that do not
    Skills {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: SkillsAction,
    },
    /// Summarise results by task type, with the tier of models that each needs
    Route {
        /// Only this type, such as debugging
        #[arg(value_name = "TASK TYPE", value_parser = task_type)]
        task_type: Option<TaskType>,
        /// Only sessions of this agent, such as claude-code
        #[arg(long, value_name = "NAME", help_heading = "Which sessions")]
        agent: Option<String>,
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Find thanks, repeated requests and frustration in users' messages
    Signals {
        /// The action.
        #[command(subcommand)]
        action: SignalsAction,
    },
    /// Grade what agents say about their own work, and report on it
    Reflect {
        /// Output format and database.
        #[command(flatten)]
        store: StoreArgs,
        /// The action.
        #[command(subcommand)]
        action: ReflectAction,
    },
}

/// A name is not that of a task type.
#[derive(Debug, thiserror::Error)]
#[error("expected one of {}", TaskType::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(", "))]
struct TaskTypeError;

/// Parses the name of a task type.
fn task_type(name: &str) -> Result<TaskType, TaskTypeError> {
    TaskType::from_name(name).ok_or(TaskTypeError)
}

pub(super) fn execute(action: ImproveAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    match action {
        ImproveAction::Gaps { store, action } => block_on(gaps::execute(&action, &store, global)),
        ImproveAction::Proposals { store, action } => {
            block_on(gaps::proposals(&action, &store, global))
        }
        ImproveAction::Skills { store, action } => {
            block_on(skills::execute(&action, &store, global))
        }
        ImproveAction::Route { task_type, agent, store } => {
            block_on(route(task_type, agent.as_deref(), &store, global))
        }
        ImproveAction::Signals { action } => signals::execute(&action, global),
        ImproveAction::Reflect { store, action } => {
            block_on(reflect::execute(&action, &store, global))
        }
    }
}

async fn route(
    task_type: Option<TaskType>,
    agent: Option<&str>,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let settings = project.load(Vec::new())?.config.routing;
    let opened = Store::open(&database(&project, &store.database)).await?;
    let now = selftest_clock::now();
    // Errors wait until the database is closed.
    let found = routing(&opened, &settings, task_type, agent, now).await;
    let seen = type_evidence(&opened, &settings, task_type, agent, now).await;
    opened.close().await;
    let (found, seen) = (found?, seen?);
    if store.json {
        let mut all = json!(found);
        all["evidence"] = json!(seen);
        print(&format!("{all:#}\n"))?;
    } else if found.items.is_empty() {
        eprint("no grades of these days; `selftest grade latest` makes some\n");
    } else {
        print(&improvement::evidence(&seen))?;
        print(&improvement::routing(&found))?;
    }
    let nothing = found.items.iter().all(|advice| advice.sessions == 0);
    Ok(if nothing { Exit::NothingRan } else { Exit::Passed })
}
