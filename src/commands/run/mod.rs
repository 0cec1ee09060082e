//! `selftest run`: runs the scenarios or a suite, or resumes a run.

mod ci;
mod watch;

use std::path::PathBuf;

use clap::Args;
use selftest_app::{
    AppError, CasesOf, ContinuedRun, FinishedRun, Project, RunPurpose, SelfTest, continue_run,
    find_report,
};

use crate::args::{Format, GlobalArgs, RunArgs};
use crate::exit::Exit;
use crate::runtime::block_on;
use crate::show::{conclude_replay, conclude_self_comparison, show_experiment, show_run};
use crate::ui;
use crate::ui::Terminal;

/// Options of `selftest run`.
#[derive(Debug, Clone, Default, Args)]
pub struct RunCommand {
    /// Options that decide results.
    #[command(flatten)]
    pub run: RunArgs,
    /// Run again whenever the configuration, the prompts, the suite or the files of the program
    /// under test change, until Ctrl-C
    #[arg(
        long,
        conflicts_with_all = ["rerun_failed", "resume", "ci"],
        help_heading = "What to run"
    )]
    pub watch: bool,
    /// Use the defaults of CI: no colour, reports under fixed names, and the gate of the baseline if
    /// there is one
    #[arg(long, help_heading = "CI")]
    pub ci: bool,
    /// Also put report.json, report.md and comment.md here, under fixed names
    /// [default: ci in the folder of the JSON reports]
    #[arg(long, value_name = "DIR", requires = "ci", help_heading = "CI")]
    pub output: Option<PathBuf>,
    /// Key of the comment that comment.md updates if a pull request has several [default: main]
    #[arg(long, value_name = "KEY", requires = "ci", help_heading = "CI")]
    pub key: Option<String>,
}

pub(super) fn execute(args: &RunCommand, global: &GlobalArgs) -> Result<Exit, AppError> {
    if args.watch {
        return block_on(watch::execute(&args.run, global));
    }
    if args.ci {
        return block_on(ci::execute(args, global));
    }
    block_on(once(&args.run, global))
}

async fn once(args: &RunArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let terminal = Terminal::new(global, args.quiet);
    let project = ui::open_with(global, terminal)?;
    if let Some(named) = &args.resume {
        return Box::pin(resume(args, named, &project, terminal)).await.map(|(exit, _)| exit);
    }
    let builder = SelfTest::builder(&project).settings(args.settings());
    let Some(run) = Box::pin(builder.run()).await? else { return Ok(Exit::NothingRan) };
    show_run(&run, args, terminal, false)
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
    let continued = continue_run(project, &resolved, &settings, named, json);
    let continued = Box::pin(continued).await?;
    let (run, request) = match continued {
        ContinuedRun::Nothing => return Ok((Exit::NothingRan, None)),
        ContinuedRun::Experiment(finished, options, json) => {
            let exit = show_experiment(project, &finished, &options, json)?;
            return Ok((exit, None));
        }
        ContinuedRun::Run(run, request) => (*run, *request),
    };
    let exit_zero = request.settings.gate.exit_zero;
    let exit = match (&request.purpose, &request.cases_of) {
        (RunPurpose::SelfComparison { json }, _) => conclude_self_comparison(project, &run, *json)?,
        (RunPurpose::Replay { format, fail_if_worse }, Some(CasesOf::Replayed(earlier))) => {
            let resolved = project.load(request.flags.clone())?;
            let earlier = find_report(project, &resolved, earlier)?;
            conclude_replay(project, terminal, &earlier, &run, *format, *fail_if_worse)?
        }
        _ => {
            let is_rejudged = matches!(request.cases_of, Some(CasesOf::Rejudged(_)));
            let mut args = args.clone();
            args.gate.exit_zero = exit_zero;
            show_run(&run, &args, terminal, is_rejudged)?
        }
    };
    Ok((exit, Some(run)))
}
