//! `selftest improve`: what could make the agent better.

mod gaps;
mod proposals;
mod reflect;
mod route;
mod signals;
mod skills;

use clap::Subcommand;
use gaps::GapsAction;
use proposals::ProposalsAction;
use reflect::ReflectAction;
use selftest_app::AppError;
use selftest_grading::grade::TaskType;
use signals::SignalsAction;
pub(crate) use skills::SkillsAction;

use crate::args::{GlobalArgs, StoreArgs};
use crate::exit::Exit;
use crate::runtime::block_on;

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
            block_on(proposals::execute(&action, &store, global))
        }
        ImproveAction::Skills { store, action } => {
            block_on(skills::execute(&action, &store, global))
        }
        ImproveAction::Route { task_type, agent, store } => {
            block_on(route::execute(task_type, agent.as_deref(), &store, global))
        }
        ImproveAction::Signals { action } => signals::execute(&action, global),
        ImproveAction::Reflect { store, action } => {
            block_on(reflect::execute(&action, &store, global))
        }
    }
}
