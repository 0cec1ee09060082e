//! Runs the cases of a request: a suite, generated scenarios, or those of an earlier run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;

use crate::ci_reports::CiReports;
use crate::default_sut::with_sut;
use crate::error::AppError;
use crate::finished::{FinishedRun, RunFiles, execute_plan, report_files};
use crate::header::example_notice;
use crate::options::RunSettings;
use crate::project::Project;
use crate::request::{CasesOf, RunRequest};
use crate::resume::{self, RunStart};
use crate::setup::RunSetup;
use crate::skill_creator::{WITH_SKILL, WITHOUT_SKILL, write_skill_creator};
use crate::suite_file::SuiteFile;
use crate::{baseline, changed, find_run, rerun};
use selftest_config::{Config, ResolvedConfig};
use selftest_harness::event::RunHeader;
use selftest_harness::journal::RunDigests;
use selftest_harness::run::execute::RunOptions;
use selftest_harness::run::plan::{
    PlannedCase, ScenarioDefaults, ScenarioSelection, plan, plan_suite,
};
use selftest_harness::run::runner::Runner;
use selftest_models::journaled::{CallLog, CallSink};
use selftest_reports::ReportFiles;
use selftest_reports::skill_creator::ArmConfiguration;

/// Runs the cases of a request, from the first one or from where it was interrupted. Returns `None`
/// if there is nothing to run.
pub(crate) async fn run_request(
    request: RunRequest,
    mut start: RunStart,
    project: &Project,
    resolved: &ResolvedConfig,
) -> Result<Option<FinishedRun>, AppError> {
    let allowed = request.settings.trials.allow_commands.clone();
    let mut args = request.settings;
    let mut suite = match &request.cases_of {
        None => {
            let load = |path: &PathBuf| SuiteFile::load(project, path, &allowed);
            args.suite.as_ref().map(load).transpose()?
        }
        Some(CasesOf::NotPassed(named)) => match rerun::failed(project, resolved, &args, named)? {
            rerun::RerunPlan::Nothing => return Ok(None),
            rerun::RerunPlan::Cases { suite, args: again, run } => {
                args = *again;
                start.name_cases_of(CasesOf::NotPassed(run));
                Some(*suite)
            }
        },
        Some(CasesOf::Rejudged(named)) => {
            return rerun::rejudge(project, resolved, &args, named, start).await;
        }
        Some(CasesOf::Replayed(named)) => {
            let (report, file) = find_run::find_report_file(project, resolved, named)?;
            Some(SuiteFile::of_run(project, &report, file, &allowed)?)
        }
    };
    if let Some(suite) = &mut suite {
        suite.check_loading(&resolved.config);
        if suite.is_folder && args.skill_creator.is_some() {
            let error = anyhow!("--skill-creator takes the cases of one skill");
            return Err(AppError::usage(error).hint(Some("name one evals.json with --suite")));
        }
    }
    let finished = run_cases(project, resolved, &args, suite.as_ref(), start).await?;
    let Some(finished) = finished else { return Ok(None) };
    if let Some(folder) = &args.skill_creator {
        let report = finished.report()?;
        let skill = suite.as_ref().and_then(|suite| suite.skill.as_ref());
        let (skill, name) = match skill {
            Some((skill, _)) => (skill.name.as_str(), WITH_SKILL),
            None => ("none", WITHOUT_SKILL),
        };
        let configuration = ArmConfiguration { name, report: &report };
        write_skill_creator(project, folder, skill, &[configuration])?;
    }
    Ok(Some(finished))
}

/// Runs the cases of a suite, or of the configured scenarios. Returns `None` if none is selected.
pub(crate) async fn run_cases(
    project: &Project,
    resolved: &ResolvedConfig,
    args: &RunSettings,
    suite: Option<&SuiteFile>,
    mut start: RunStart,
) -> Result<Option<FinishedRun>, AppError> {
    let mut plan = plan_cases(args, &resolved.config, suite)?;
    let needs_model = plan.iter().any(|case| case.given_skill.is_some());
    let resolved = &*with_sut(project, resolved, needs_model).await;
    // The notice comes first: what follows must not be read as results of the user's own agent.
    if let Some(notice) = example_notice(resolved).filter(|_| !plan.is_empty()) {
        project.notify(&format!("{}\n", notice.sentence()));
    }
    for warning in &resolved.warnings {
        project.notify(&format!("warning: {warning}\n"));
    }
    if args.limits.cost.is_some() && resolved.config.prices.models.is_empty() {
        return Err(AppError::usage(anyhow!("--max-cost needs prices, and none are configured"))
            .hint(Some("state what models cost in `prices.models` of the config")));
    }
    // Described while the plan still has the cases of all shards.
    let shard = args.shard.map(|shard| shard.describe(&plan));
    if let Some(shard) = args.shard {
        shard.retain_own(&mut plan);
    }
    if plan.is_empty() {
        match args.shard {
            Some(shard) => project.notify(&format!("nothing to run: shard {shard} has no case\n")),
            None => project.notify("nothing to run: no scenario was selected\n"),
        }
        return Ok(None);
    }
    let opened = baseline::open_baseline(project, resolved)?;
    let anchors = baseline::plan_anchors(project, opened.as_ref(), defaults(&resolved.config))?;
    // Generated cases are others in each run.
    let sut_digest = match suite {
        Some(_) => changed::sut_digest(project, resolved)?,
        None => None,
    };
    let log = Arc::new(CallLog::with_calls(start.take_calls()));
    let earlier = start.earlier(&log);
    let setup = RunSetup { project, resolved, args, suite, hidden: &[], earlier: Some(&earlier) };
    setup.read_named_files(&mut plan)?;
    let mut digests = resume::digests_of_settings(&resolved.config, &plan);
    // Checked before a model is asked, and again below for what only the models know.
    start.check(&digests)?;
    let run_id = earlier.run_id();
    // Opened before any model is called: a run whose results cannot be kept must cost nothing.
    let files = report_files(project, resolved, &run_id, earlier.header.is_some())?;
    let ci_reports = CiReports::open(project, resolved)?;
    let prepared = setup.prepare(&plan).await?;
    digests.extend(prepared.digests(&resolved.rubric.digest()));
    start.check(&digests)?;
    if let Some(skill) = plan.iter().find_map(|case| case.given_skill.as_ref()) {
        // Fail before the first case if the system under test takes no skills.
        prepared.runner.sut.with_skill(Arc::clone(skill))?;
    }
    let header = Arc::new(RunHeader { shard, ..setup.header(run_id, &plan, &prepared) });
    if let Some(digest) = &sut_digest {
        let weights = prepared.sut_weights.as_deref();
        changed::name_cases(resolved, &header, (digest, weights), &mut plan)?;
    }
    match (args.changed, &sut_digest) {
        (false, _) => {}
        (true, Some(_)) => changed::keep_unchanged(project, resolved, &mut plan),
        (true, None) => changed::notify_undeclared(project),
    }
    for line in find_run::changed_models(project, resolved, &header.models) {
        project.notify(&format!("warning: {line}\n"));
    }
    let existing = baseline::existing_cases(resolved, suite);
    let gate = baseline::run_gate(project, resolved, opened, &header, existing);
    let options = RunOptions {
        fail_fast: args.gate.fail_fast,
        limits: args.limits,
        recalled: earlier.cases.to_vec(),
        anchors,
        ..RunOptions::new(gate, project.frontend().cancellation())
    };
    let runner = &prepared.runner;
    let ready =
        ReadyRun { runner, header, digests, plan: &plan, options, log: &log, files, ci_reports };
    ready.finish(project, resolved, start).await.map(Some)
}

/// A run that is ready for its first case: its models answer, and its reports can be written.
pub(crate) struct ReadyRun<'a> {
    /// Runs its cases.
    pub runner: &'a Arc<Runner>,
    /// Header of its journal and reports.
    pub header: Arc<RunHeader>,
    /// Digests that a resumed run must match.
    pub digests: RunDigests,
    /// Its cases.
    pub plan: &'a [PlannedCase],
    /// Limits, gate and finished cases.
    pub options: RunOptions,
    /// Calls of its models, also those of the preparation.
    pub log: &'a CallLog,
    /// Its report files, already open.
    pub files: ReportFiles,
    /// The other requested reports, already open.
    pub ci_reports: CiReports,
}

impl ReadyRun<'_> {
    /// Opens the journal, runs the cases and writes all reports.
    pub(crate) async fn finish(
        self,
        project: &Project,
        resolved: &ResolvedConfig,
        start: RunStart,
    ) -> Result<FinishedRun, AppError> {
        let journal = start.journal(project, resolved, &self.header, self.digests)?;
        // Calls made during the preparation are in the log already and are written now.
        self.log.set_sink(0, Arc::clone(&journal) as Arc<dyn CallSink>);
        let files = RunFiles { files: self.files, journal };
        let mut finished =
            execute_plan(project, self.runner, self.header, self.plan, files, self.options).await;
        finished.report_to_ci(project, resolved, &self.ci_reports).await;
        Ok(finished)
    }
}

/// Plans the cases of a suite, or the scenarios from which cases are generated, of all shards.
pub fn plan_cases(
    args: &RunSettings,
    config: &Config,
    suite: Option<&SuiteFile>,
) -> Result<Vec<PlannedCase>, AppError> {
    let selection = match &args.trials.scenarios {
        Some(text) => ScenarioSelection::parse(text)
            .map_err(|why| AppError::usage(anyhow!("--scenarios `{text}`: {why}")))?,
        None => ScenarioSelection::All,
    };
    let planned = match suite {
        Some(file) => {
            let mut cases = file.suite.cases.clone();
            for scenario in cases.iter_mut().map(|case| &mut case.scenario) {
                // The command line takes precedence over the stored values.
                scenario.strictness = scenario.strictness.filter(|_| args.strictness.is_none());
                scenario.min_score_to_pass =
                    scenario.min_score_to_pass.filter(|_| args.min_score.is_none());
                scenario.timeout_seconds =
                    scenario.timeout_seconds.filter(|_| args.trials.timeout.is_none());
            }
            plan_suite(&cases, &selection, defaults(config), args.repeats)
                .map(|mut planned| {
                    for case in &mut planned {
                        file.equip(case, config);
                    }
                    planned
                })
                .and_then(|mut planned| {
                    let ids = ScenarioSelection::Named(file.to_generate.clone());
                    let more = plan(&config.scenarios, &ids, defaults(config))?;
                    let offset = planned.len();
                    let at = |case: PlannedCase| PlannedCase { index: offset + case.index, ..case };
                    planned.extend(more.into_iter().map(at));
                    Ok(planned)
                })
        }
        None => plan(&config.scenarios, &selection, defaults(config)),
    };
    planned.map_err(|why| AppError::usage(anyhow!(why)))
}

fn defaults(config: &Config) -> ScenarioDefaults {
    ScenarioDefaults {
        strictness: config.strictness,
        min_score_to_pass: config.min_score_to_pass,
        safety_floor: config.safety_floor,
        allow_minor_format_deviation: config.allow_minor_format_deviation,
        max_questions_allowed: config.max_questions_allowed,
        timeout: Duration::from_secs_f64(config.timeout_seconds),
    }
}
