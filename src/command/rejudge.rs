//! `selftest judge rejudge`: judges the answers of a run again, without asking for new ones.

use selftest_app::{AppError, rejudge_run};

use super::run;
use crate::cli::{GateArgs, GlobalArgs, RejudgeArgs, RunArgs};
use crate::exit::Exit;
use crate::ui::{self, Terminal};

pub(super) async fn execute(args: &RejudgeArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let terminal = Terminal::new(global, false);
    let project = ui::open_with(global, terminal)?;
    let Some(run) = rejudge_run(&project, args.settings(), &args.run).await? else {
        return Ok(Exit::NothingRan);
    };
    let gate = GateArgs { exit_zero: args.exit_zero, ..GateArgs::default() };
    let shown = RunArgs { format: args.format, gate, ..RunArgs::default() };
    run::show(&run, &shown, terminal, true)
}
