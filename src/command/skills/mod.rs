//! `selftest skills`.

mod experiment;

use super::failure::Failure;
use crate::cli::{GlobalArgs, SessionArgs, SkillsAction};
use crate::exit::Exit;

pub(super) async fn execute(
    action: &SkillsAction,
    args: &SessionArgs,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let SkillsAction::Experiment(told) = action;
    experiment::execute(told, args.json, global).await
}
