//! `--resume`: finds the run that was broken off and the command that began it, and goes on as that
//! command would have done. Whether it is still the same run is `resume`'s to say.

use anyhow::anyhow;

use super::conducted::Ended;
use super::context::{Project, flags};
use super::failure::Failure;
use super::resume::{ExperimentRequest, Purpose, Request, Resumed, Start};
use super::run::run_request;
use super::{aa, ci_reports, eprint, replay, skills};
use crate::cli::{Format, GlobalArgs, RunArgs};
use crate::exit::Exit;
use selftest_config::ResolvedConfig;
use selftest_harness::experiment::{Arm, Arms};
use selftest_reports::terminal::DetailLevel;

pub(super) async fn execute(
    args: &RunArgs,
    named: &str,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let mut project = Project::open(global)?;
    if args.quiet {
        project.detail = DetailLevel::Brief;
    }
    let resolved = project.load(flags(args))?;
    go_on(args, named, &project, &resolved).await.map(|ended| ended.exit)
}

/// Goes on with a run: its id, its journal, or `latest`.
pub(super) async fn go_on(
    args: &RunArgs,
    named: &str,
    project: &Project,
    resolved: &ResolvedConfig,
) -> Result<Ended, Failure> {
    ci_reports::check_once(&args.report)?;
    let resumed = Resumed::open(project, resolved, named)?;
    let request = resumed.request(args, &resolved.flags)?;
    if let Purpose::Experiment(experiment) = &request.purpose {
        let ended = experiment_goes_on(args, project, resolved, resumed, &request, experiment);
        return ended.await.map(|exit| Ended { exit, conducted: None });
    }
    let (json_folder, markdown_folder) = project.report_folders(resolved);
    if resumed.is_over(&json_folder, &markdown_folder) {
        eprint(&format!("nothing to resume: {} came to its end\n", resumed.run_id()));
        return Ok(Ended::NOTHING);
    }
    let resolved = project.load(request.flags.clone())?;
    let start = Start::Resumed(Box::new(resumed));
    let (purpose, cases_of) = (request.purpose.clone(), request.cases_of.clone());
    let ended = run_request(request, start, project, &resolved).await?;
    match purpose {
        Purpose::Aa { json } => aa::conclude(project, ended, json),
        Purpose::Replay { format, fail_if_worse } => {
            replay::conclude(project, &resolved, ended, cases_of.as_ref(), format, fail_if_worse)
        }
        Purpose::Results | Purpose::Experiment(_) => Ok(ended),
    }
}

/// Goes on with both arms of an experiment, of which one was named.
async fn experiment_goes_on(
    args: &RunArgs,
    project: &Project,
    resolved: &ResolvedConfig,
    resumed: Resumed,
    request: &Request,
    experiment: &ExperimentRequest,
) -> Result<Exit, Failure> {
    refuse_flags_of_runs(args, resumed.run_id().as_str())?;
    let Arms { control, treatment } = &experiment.arms;
    let (arm, other) = if resumed.run_id() == control {
        (Arm::Control, treatment)
    } else {
        (Arm::Treatment, control)
    };
    // The journals of both are begun before the first case: without one nothing of its arm is lost.
    let other = Resumed::find(project, resolved, other)?;
    let (json_folder, markdown_folder) = project.report_folders(resolved);
    let is_over = |arm: &Resumed| arm.is_over(&json_folder, &markdown_folder);
    if is_over(&resumed) && other.as_ref().is_some_and(is_over) {
        eprint(&format!(
            "nothing to resume: the experiment of {control} and {treatment} came to its end\nhint: \
             `selftest compare {control} {treatment}` says what it found\n"
        ));
        return Ok(Exit::NothingRan);
    }
    let other = match other {
        Some(other) => Start::Resumed(Box::new(other)),
        None => Start::New(Box::new(request.clone())),
    };
    let resumed = Start::Resumed(Box::new(resumed));
    let starts = match arm {
        Arm::Control => Arms { control: resumed, treatment: other },
        Arm::Treatment => Arms { control: other, treatment: resumed },
    };
    let resolved = project.load(request.flags.clone())?;
    let mut experiment = experiment.clone();
    experiment.json |= args.format == Format::Json;
    experiment.told.trials.concurrency =
        args.trials.concurrency.or(experiment.told.trials.concurrency);
    skills::experiment::go_on(project, &resolved, &experiment, starts).await
}

/// Says which flags mean nothing to an experiment, instead of doing without them.
fn refuse_flags_of_runs(args: &RunArgs, run: &str) -> Result<(), Failure> {
    let (limits, gate) = (&args.limits, &args.gate);
    let given = [
        ("--max-duration", limits.max_duration.is_some()),
        ("--max-tokens", limits.max_tokens.is_some()),
        ("--max-cost", limits.max_cost.is_some()),
        ("--fail-fast", gate.fail_fast),
        ("--gate", gate.mode.is_some()),
        ("--baseline", gate.baseline.is_some()),
        ("--confirm", gate.confirm.is_some()),
        ("--report", !args.report.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            let error = anyhow!("{run} is an arm of an experiment, and {flag} is for runs");
            Err(Failure::usage(error).hint(Some(format!("resume it without {flag}"))))
        }
    }
}
