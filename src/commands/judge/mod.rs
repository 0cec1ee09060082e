//! `selftest judge`: measures, labels and calibrates judges, and manages model files.

mod bench;
mod calibrate;
mod label;
mod model;
mod rejudge;

use bench::{AttackArgs, BenchArgs};
use calibrate::CalibrateArgs;
use clap::Subcommand;
use label::LabelArgs;
use model::ModelAction;
use rejudge::RejudgeArgs;
use selftest_app::AppError;

use crate::args::GlobalArgs;
use crate::exit;
use crate::exit::Exit;
use crate::runtime::block_on;

/// Actions on judges.
#[derive(Debug, Subcommand)]
pub enum JudgeAction {
    /// Measure how well models separate good answers from bad ones, on answers that ship with
    /// selftest
    Bench(BenchArgs),
    /// Measure how often an answer that addresses the judge changes the verdict
    Attack(AttackArgs),
    /// Judge the answers of a run again, with the current judge or another one. The result is a run of
    /// its own; neither the generator nor the system under test is called
    #[command(after_help = exit::TABLE)]
    Rejudge(RejudgeArgs),
    /// Label answers of a run as good or bad, without seeing the judge's verdicts
    #[command(after_help = label::KEYS)]
    Label(LabelArgs),
    /// Compare the judge with your labels: how accurate its probabilities are, and which threshold
    /// fits. Later runs report a pass rate corrected by it
    Calibrate(CalibrateArgs),
    /// List, fetch or locate model weights for the embedded engine
    Model {
        /// The action.
        #[command(subcommand)]
        action: ModelAction,
    },
}

pub(super) fn execute(action: JudgeAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    match action {
        JudgeAction::Bench(args) => block_on(bench::bench(&args, global)),
        JudgeAction::Attack(args) => block_on(bench::attack(&args, global)),
        JudgeAction::Rejudge(args) => block_on(rejudge::execute(&args, global)),
        JudgeAction::Label(args) => label::execute(&args, global),
        JudgeAction::Calibrate(args) => calibrate::execute(&args, global),
        JudgeAction::Model { action } => block_on(model::execute(action, global)),
    }
}
