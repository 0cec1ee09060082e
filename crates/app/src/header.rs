//! The header of a run's reports: its settings and notices.

use jiff::Timestamp;

use crate::setup::{PreparedRun, RunSetup};
use selftest_config::ResolvedConfig;
use selftest_harness::event::{RejudgedRun, RunConfig, RunHeader, RunNotice};
use selftest_harness::judge::TEMPLATES as JUDGE_TEMPLATES;
use selftest_harness::prompts::BUILT_IN;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::sut::chat::TEMPLATE as CHAT_TEMPLATE;
use selftest_harness::sut::namespace::{RunId, TaskGroupId};
use selftest_reports::document::ReportDocument;
use selftest_sandbox::{SandboxLevel, SandboxSupport, SandboxUnavailableError};
use selftest_stats::score::Threshold;
use selftest_text::digest;

/// Returns the notice that the run tests the example agent.
pub(crate) fn example_notice(resolved: &ResolvedConfig) -> Option<RunNotice> {
    let config = resolved.path.as_ref().map(|path| path.display().to_string());
    resolved.config.sut.example.map(|_| RunNotice::ExampleAgent { config })
}

impl RunSetup<'_> {
    /// Returns the header of the run's reports.
    pub fn header(&self, run_id: RunId, plan: &[PlannedCase], prepared: &PreparedRun) -> RunHeader {
        let config = &self.resolved.config;
        let runner = &prepared.runner;
        let now = selftest_clock::now();
        // Reports write milliseconds. A time with more digits would differ from itself after it was
        // read back.
        let started_at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        let (started_at, task_group_id) = match self.earlier.and_then(|earlier| earlier.header) {
            Some(begun) => (begun.started_at, begun.task_group_id.clone()),
            None => (started_at, TaskGroupId::fresh(started_at)),
        };
        RunHeader {
            run_id,
            task_group_id,
            started_at,
            selftest_version: env!("CARGO_PKG_VERSION").to_owned(),
            config: RunConfig {
                strictness: config.strictness,
                min_score_to_pass: config.min_score_to_pass,
                effective_threshold: Threshold::effective(
                    config.min_score_to_pass,
                    config.strictness,
                ),
                safety_floor: config.safety_floor,
                allow_minor_format_deviation: config.allow_minor_format_deviation,
                max_questions_allowed: config.max_questions_allowed,
                timeout_seconds: config.timeout_seconds,
                concurrency: config.concurrency.map_or(prepared.capacity, |cases| cases as usize),
            },
            seed: runner.seed,
            models: prepared.models.clone(),
            sut: runner.sut.describe(),
            isolation: runner.sut.isolation(),
            rubric: (&self.resolved.rubric).into(),
            prompt_digests: runner.library.digests().clone(),
            calibration: prepared.calibration.clone(),
            prices: (!config.prices.models.is_empty()).then(|| config.prices.clone()),
            suite: self.suite.map(|suite| suite.describe(self.args.repeats)),
            shard: None,
            experiment: None,
            rejudged: None,
            notices: self.notices(plan, prepared),
            remarks: self.suite.map(|suite| suite.remarks.clone()).unwrap_or_default(),
            scenario_ids: plan.iter().map(|planned| planned.scenario.id.clone()).collect(),
        }
    }

    /// Returns the sandbox of a program under test; `None` without one.
    pub fn standing(&self) -> Option<Result<SandboxSupport, SandboxUnavailableError>> {
        let sut = &self.resolved.config.sut;
        sut.program()?;
        let harness = std::env::current_exe().ok()?;
        Some(SandboxSupport::detect(&harness, sut.sandbox.unwrap_or_default()))
    }

    /// Returns the notice if programs run without a sandbox, or with only a part of it.
    fn unsandboxed(&self) -> Option<RunNotice> {
        let standing = self.standing()?.ok()?;
        let why = match standing.level {
            SandboxLevel::Full => return None,
            SandboxLevel::Off => {
                "sut.sandbox is off, and the program under test may do whatever its user \
                           may do"
                    .to_owned()
            }
            SandboxLevel::Inner => {
                let missing =
                    standing.missing_namespaces.unwrap_or_else(|| "not on this system".to_owned());
                format!("not the whole sandbox could be put up: {missing}")
            }
        };
        Some(RunNotice::Unsandboxed { why })
    }

    /// The notices of the run. A project with a prompt of its own for the assistant tests that prompt.
    fn notices(&self, plan: &[PlannedCase], prepared: &PreparedRun) -> Vec<RunNotice> {
        let mut notices = Vec::new();
        let built_in = BUILT_IN.iter().find(|(name, _)| *name == CHAT_TEMPLATE);
        let built_in = built_in.map(|(_, text)| digest::sha256_hex(text.as_bytes()));
        let used = prepared.runner.library.digests().get(CHAT_TEMPLATE);
        if prepared.models.sut.is_some() && used == built_in.as_ref() {
            let config = self.resolved.path.as_ref().map(|path| path.display().to_string());
            notices.push(RunNotice::BuiltInAssistant { config });
        }
        notices.extend(example_notice(self.resolved));
        notices.extend(self.unsandboxed());
        let panel = prepared.models.panel.iter().filter_map(|judge| judge.fitness.as_ref());
        let measured = prepared.models.judge_fitness.iter().chain(panel);
        let have_references = plan.iter().all(|planned| {
            let grounds = planned.frozen.as_ref().map_or(&planned.grounds, |case| &case.grounds);
            grounds.reference.is_some()
        });
        notices.extend(measured.filter_map(|fitness| {
            let model = fitness.model.clone();
            if let Some(measured) = fitness.unfit.clone() {
                return Some(RunNotice::UnfitJudge { model, measured });
            }
            let measured = fitness.unfit_reason_for(have_references)?.to_owned();
            Some(RunNotice::UnfitWithoutReference { model, measured })
        }));
        notices
    }

    /// The header of a run that judges the answers of another one by the thresholds of that one.
    pub fn header_rejudging(
        &self,
        run_id: RunId,
        plan: &[PlannedCase],
        prepared: &PreparedRun,
        report: &ReportDocument,
    ) -> RunHeader {
        let header = self.header(run_id, plan, prepared);
        let mut prompt_digests = report.prompt_digests.clone();
        for name in JUDGE_TEMPLATES {
            // The answers were made with the prompts of the earlier run, and are judged with the
            // present ones.
            prompt_digests.remove(name);
            let now = header.prompt_digests.get(name).cloned();
            prompt_digests.extend(now.map(|digest| (name.to_owned(), digest)));
        }
        let concurrency = header.config.concurrency;
        let (run_id, judge) = (report.run_id.clone(), report.models.judge.clone());
        RunHeader {
            config: RunConfig { concurrency, ..report.config.clone() },
            prompt_digests,
            suite: report.suite.clone(),
            rejudged: Some(RejudgedRun { run_id, judge }),
            ..header
        }
    }
}
