//! `selftest run`: runs the scenarios or a suite, or resumes a run.

use selftest_app::{
    AppError, CasesOf, ContinuedRun, FinishedRun, Project, RunPurpose, SelfTest, continue_run,
    find_report,
};
use selftest_harness::outcome::rejudged::VerdictChanges;

use super::{aa, compare, skills};
use crate::cli::{Format, GlobalArgs, RunArgs};
use crate::exit::Exit;
use crate::ui::{self, Terminal, eprint};

pub(super) async fn execute(args: &RunArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let terminal = Terminal::new(global, args.quiet);
    let project = ui::open_with(global, terminal)?;
    if let Some(named) = &args.resume {
        return Box::pin(resume(args, named, &project, terminal)).await.map(|(exit, _)| exit);
    }
    let Some(run) = SelfTest::builder(&project).settings(args.settings()).run().await? else {
        return Ok(Exit::NothingRan);
    };
    show(&run, args, terminal, false)
}

/// Prints the results of a run, and what changed if it judged answers again.
pub(super) fn show(
    run: &FinishedRun,
    args: &RunArgs,
    terminal: Terminal,
    is_rejudged: bool,
) -> Result<Exit, AppError> {
    if is_rejudged && args.format == Format::Json {
        // stdout holds the report and nothing else.
        let changes = VerdictChanges::of(run.cases().iter().map(|case| &**case));
        eprint(&format!("{}\n", changes.sentence()));
    }
    terminal.print_run(run, args.format)?;
    Exit::of_run(run, args.gate.exit_zero)
}

/// Resumes a run, and concludes as the command that started it. The run is absent if nothing was left,
/// or if it was an experiment.
pub(super) async fn resume(
    args: &RunArgs,
    named: &str,
    project: &Project,
    terminal: Terminal,
) -> Result<(Exit, Option<FinishedRun>), AppError> {
    let settings = args.settings();
    let resolved = project.load(settings.flags())?;
    let json = args.format == Format::Json;
    let continued = continue_run(project, &resolved, &settings, named, json).await?;
    let (run, request) = match continued {
        ContinuedRun::Nothing => return Ok((Exit::NothingRan, None)),
        ContinuedRun::Experiment(finished, options, json) => {
            let exit = skills::experiment::show(project, &finished, &options, json)?;
            return Ok((exit, None));
        }
        ContinuedRun::Run(run, request) => (*run, *request),
    };
    let exit_zero = request.settings.gate.exit_zero;
    let exit = match (&request.purpose, &request.cases_of) {
        (RunPurpose::SelfComparison { json }, _) => aa::conclude(project, &run, *json)?,
        (RunPurpose::Replay { format, fail_if_worse }, Some(CasesOf::Replayed(earlier))) => {
            let resolved = project.load(request.flags.clone())?;
            let earlier = find_report(project, &resolved, earlier)?;
            compare::conclude_replay(project, terminal, &earlier, &run, *format, *fail_if_worse)?
        }
        _ => {
            let is_rejudged = matches!(request.cases_of, Some(CasesOf::Rejudged(_)));
            let mut args = args.clone();
            args.gate.exit_zero = exit_zero;
            show(&run, &args, terminal, is_rejudged)?
        }
    };
    Ok((exit, Some(run)))
}
