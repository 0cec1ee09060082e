//! Resumes an interrupted run from its journal, as the kind of run that it was. Finished calls and
//! cases are not repeated.

use anyhow::anyhow;

use crate::ci_reports::check_once;
use crate::error::AppError;
use crate::experiment::{FinishedExperiment, InterruptedArms, find_parts, run_experiment};
use crate::options::{ExperimentRequest, ExperimentSettings, RunPurpose, RunRequest, RunSettings};
use crate::project::Project;
use crate::run::FinishedRun;
use crate::run_request::run_request;
use crate::run_start::{Resumption, RunStart};
use selftest_config::ResolvedConfig;
use selftest_harness::experiment::{Arm, Arms};

/// A resumed run that has finished.
pub enum ContinuedRun {
    /// Nothing was left to run.
    Nothing,
    /// A run, with the request that started it.
    Run(Box<FinishedRun>, Box<RunRequest>),
    /// Both arms of an experiment, with its options; the flag asks for JSON.
    Experiment(Box<FinishedExperiment>, Box<ExperimentSettings>, bool),
}

/// Resumes a run: its id, its journal, or `latest`. Finished calls and cases are not repeated.
///
/// Options that change results are those of the first start; `settings` gives limits, concurrency,
/// `fail_fast` and `exit_zero`. `json` asks for JSON if the run's purpose prints some.
pub async fn continue_run(
    project: &Project,
    resolved: &ResolvedConfig,
    settings: &RunSettings,
    named: &str,
    json: bool,
) -> Result<ContinuedRun, AppError> {
    check_once(&settings.report)?;
    let resumption = Resumption::open(project, resolved, named)?;
    let request = resumption.request(settings, &resolved.flags, json)?;
    if let Some(suite) =
        settings.suite.as_ref().filter(|_| settings.suite != request.settings.suite)
    {
        let of = match &request.settings.suite {
            Some(suite) => format!("the cases of {}", suite.display()),
            None => "generated cases".to_owned(),
        };
        let (run, named) = (resumption.run_id(), suite.display());
        return Err(AppError::usage(anyhow!("{run} has {of}, not those of {named}"))
            .hint(Some("leave --suite out: a resumed run has the options of its first start")));
    }
    // Its state file says which arms are done, and only the test itself keeps that up to date.
    if let RunPurpose::SkillTest { id } = &request.purpose {
        let error = anyhow!("{} is an arm of a test of skills", resumption.run_id());
        return Err(AppError::usage(error)
            .hint(Some(format!("`selftest skills test --resume {id}` resumes the test"))));
    }
    if let RunPurpose::Experiment(experiment) = &request.purpose {
        return continue_experiment(
            settings, project, resolved, resumption, &request, experiment, json,
        )
        .await;
    }
    let (json_folder, markdown_folder) = project.report_folders(resolved);
    if resumption.is_over(&json_folder, &markdown_folder) {
        project.notify(&format!("nothing to resume: {} is finished\n", resumption.run_id()));
        return Ok(ContinuedRun::Nothing);
    }
    // Loaded again, with the flags of the first start: `resolved` has only those of this one.
    let resolved = project.load(request.flags.clone())?;
    let start = RunStart::Resumption(Box::new(resumption));
    let run = run_request(request.clone(), start, project, &resolved).await?;
    Ok(match run {
        Some(run) => ContinuedRun::Run(Box::new(run), Box::new(request)),
        None => ContinuedRun::Nothing,
    })
}

/// Resumes both arms of an experiment, one of which was named.
async fn continue_experiment(
    settings: &RunSettings,
    project: &Project,
    resolved: &ResolvedConfig,
    resumption: Resumption,
    request: &RunRequest,
    experiment: &ExperimentRequest,
    json: bool,
) -> Result<ContinuedRun, AppError> {
    refuse_options_of_runs(settings, resumption.run_id().as_str())?;
    let Arms { control, treatment } = &experiment.arms;
    let (arm, other) = if resumption.run_id() == control {
        (Arm::Control, treatment)
    } else {
        (Arm::Treatment, control)
    };
    // Both journals exist before the first case starts, so an arm without one has lost nothing.
    let other = Resumption::find(project, resolved, other)?;
    let (json_folder, markdown_folder) = project.report_folders(resolved);
    let is_over = |arm: &Resumption| arm.is_over(&json_folder, &markdown_folder);
    if is_over(&resumption) && other.as_ref().is_some_and(is_over) {
        project.notify(&format!(
            "nothing to resume: the experiment of {control} and {treatment} is finished\nhint: \
             `selftest compare {control} {treatment}` prints its result\n"
        ));
        return Ok(ContinuedRun::Nothing);
    }
    let other = match other {
        Some(other) => RunStart::Resumption(Box::new(other)),
        None => RunStart::New(Box::new(request.clone())),
    };
    let resumption = RunStart::Resumption(Box::new(resumption));
    let starts = match arm {
        Arm::Control => Arms { control: resumption, treatment: other },
        Arm::Treatment => Arms { control: other, treatment: resumption },
    };
    let resolved = project.load(request.flags.clone())?;
    let mut experiment = experiment.clone();
    experiment.json |= json;
    // It changes no result, so that each start may say it anew.
    experiment.settings.trials.concurrency =
        settings.trials.concurrency.or(experiment.settings.trials.concurrency);
    let parts = find_parts(project, &experiment.settings, experiment.drafted.as_deref())?;
    let interrupted = InterruptedArms { arms: experiment.arms.clone(), starts };
    let (options, json) = (experiment.settings, experiment.json);
    let finished =
        run_experiment(project, &resolved, &options, parts, json, Some(interrupted)).await?;
    Ok(match finished {
        Some(finished) => ContinuedRun::Experiment(Box::new(finished), Box::new(options), json),
        None => ContinuedRun::Nothing,
    })
}

/// Refuses options that mean nothing to an experiment, instead of ignoring them.
fn refuse_options_of_runs(settings: &RunSettings, run: &str) -> Result<(), AppError> {
    let (limits, gate) = (&settings.limits, &settings.gate);
    let given = [
        ("--max-duration", limits.duration.is_some()),
        ("--max-tokens", limits.tokens.is_some()),
        ("--max-cost", limits.cost.is_some()),
        ("--fail-fast", gate.fail_fast),
        ("--gate", gate.mode.is_some()),
        ("--baseline", gate.baseline.is_some()),
        ("--confirm", gate.confirm.is_some()),
        ("--report", !settings.report.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            let error = anyhow!("{run} is an arm of an experiment, and {flag} is for runs");
            Err(AppError::usage(error).hint(Some(format!("resume it without {flag}"))))
        }
    }
}
