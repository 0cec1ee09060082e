//! `selftest judge bench|attack`: how well models judge.

use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use selftest_app::{
    AppError, MeasuredJudge, Project, QUICK_SUBSET, UnfinishedMeasurement, requirement,
};
use selftest_config::ResolvedConfig;
use selftest_harness::judge::ask::Judge;
use selftest_harness::judge::bench::{
    AttackReport, AttackSummary, BenchAnswer, BenchReport, BenchReportSettings, BenchSubset,
    FaultReport,
};
use selftest_harness::judge::fitness::FitnessRequirement;
use selftest_harness::judge::known_answers::{AnswerSet, Attack};
use selftest_harness::judge::{TEMPLATES, bench};
use selftest_harness::prompts::BUILT_IN;
use selftest_models::ChatModel;
use selftest_models::locator::ModelLocator;
use selftest_models::prompts::PromptLibrary;
use selftest_stats::score::{Score, Threshold};
use selftest_text::redact::Redactor;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Options of a measurement.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// The judge [default: every chat model of the Ollama server and every local model]
    #[arg(long, value_name = "MODEL")]
    pub judge_model: Option<String>,
    /// Also measure on held-out answers by another author
    #[arg(long)]
    pub held_out: bool,
    /// Use one good and one bad answer of every fifth request, for a quick check
    #[arg(long, conflicts_with = "held_out")]
    pub quick: bool,
    /// Print JSON with every answer instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Options of an attack.
#[derive(Debug, Clone, Args)]
pub struct AttackArgs {
    /// The judge [default: judge.model of the configuration]
    #[arg(long, value_name = "MODEL")]
    pub judge_model: Option<String>,
    /// Show the answers to the judge without fences, for comparison
    #[arg(long)]
    pub without_fence: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

pub(super) async fn bench(args: &BenchArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    JudgeBench::new(&project, &resolved)?.measure_all(args).await
}

pub(super) async fn attack(args: &AttackArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    JudgeBench::new(&project, &resolved)?.attack(args).await
}

/// Measures judges of one configuration.
struct JudgeBench<'a> {
    project: &'a Project,
    resolved: &'a ResolvedConfig,
    library: PromptLibrary,
}

impl<'a> JudgeBench<'a> {
    fn new(project: &'a Project, resolved: &'a ResolvedConfig) -> Result<Self, AppError> {
        let mut library = PromptLibrary::new(&project.folder, BUILT_IN);
        for template in TEMPLATES {
            library.load(template)?;
        }
        Ok(Self { project, resolved, library })
    }

    fn locator(&self) -> ModelLocator {
        let environment = &self.project.environment;
        let redactor = Arc::new(Redactor::new(environment.secret_values.iter().cloned()));
        let settings = self.resolved.config.models.clone();
        ModelLocator::new(
            environment.models.clone(),
            settings,
            &self.project.folder,
            None,
            redactor,
        )
    }

    fn judge(&self, model: &Arc<dyn ChatModel>) -> Judge {
        let config = &self.resolved.config;
        // What is measured here is whether it is fit: it is asked whatever it has shown before.
        let settings = config.judge.for_measurement();
        let rubric = self.resolved.rubric.clone();
        Judge::new(Arc::clone(model), settings, config.models.context_tokens, rubric)
    }

    fn threshold(&self) -> Threshold {
        let config = &self.resolved.config;
        Threshold::effective(config.min_score_to_pass, config.strictness)
    }

    async fn measure_all(&self, args: &BenchArgs) -> Result<Exit, AppError> {
        let mut locator = self.locator();
        let names = match &args.judge_model {
            Some(name) => vec![name.clone()],
            None => locator.installed().await,
        };
        if names.is_empty() {
            eprint("no model is installed; name one: `selftest judge bench --judge-model auto`\n");
            return Ok(Exit::NothingRan);
        }
        let fetch = self.project.frontend().fetch_observer();
        let mut documents = Vec::new();
        for name in names {
            let model = locator.model(&name, &*fetch).await?;
            // A model that cannot be used fails here, and not once for each answer.
            model.check().await?;
            for (report, answers) in self.measure(&model, args).await? {
                if args.json {
                    documents.push(json!({ "report": report, "answers": answers }));
                } else {
                    print(&table(&report))?;
                }
            }
        }
        if args.json {
            print(&format!("{:#}\n", json!(documents)))?;
        }
        Ok(Exit::Passed)
    }

    /// One model, on the calibration set and, where asked for, on the held-out one.
    async fn measure(
        &self,
        model: &Arc<dyn ChatModel>,
        args: &BenchArgs,
    ) -> Result<Vec<(BenchReport, Vec<BenchAnswer>)>, AppError> {
        let environment = &self.project.environment;
        let judge = self.judge(model).with_all_readings();
        let method = judge.method(&self.library).await;
        let rubric = &self.resolved.rubric;
        let identity = MeasuredJudge::of(&**model, method, &self.library, rubric).await;
        let extent = if args.quick { QUICK_SUBSET } else { BenchSubset::Whole };
        let FitnessRequirement { max_wrong, threshold, .. } = requirement(&self.resolved.config);
        let settings = |set, scales, bands| BenchReportSettings {
            model: model.id(),
            method,
            set,
            scales,
            bands,
            max_wrong,
            threshold,
        };
        let set = if args.quick { AnswerSet::Certificate } else { AnswerSet::Calibration };
        let answers = self.answers(&judge, &identity, set, extent).await;
        // A judge that writes scores has no readings to weigh.
        let is_read = method.takes_readings();
        let scales = is_read.then(|| bench::fit_scales(&answers)).flatten();
        let scales = scales.as_ref();
        let answers = bench::rescale(answers, scales, rubric);
        let (report, scores) = bench::report(&settings(set, scales, None), &answers);
        // The held-out answers are decided by these bounds. Bounds chosen on them would flatter the
        // judge.
        let bands = [report.with_reference.band, report.without_reference.band];
        let mut measured = vec![(report, scores, answers)];
        if args.held_out {
            let set = AnswerSet::HeldOut;
            let answers = self.answers(&judge, &identity, set, BenchSubset::Whole).await;
            let answers = bench::rescale(answers, scales, rubric);
            let (report, scores) = bench::report(&settings(set, scales, Some(bands)), &answers);
            measured.push((report, scores, answers));
        }
        let mut reports = Vec::new();
        for (report, scores, answers) in measured {
            // A quick look has too few answers for the register, which runs rely on.
            if !args.quick
                && let Err(error) = identity.keep(&environment.models, &report.fitness, scores)
            {
                eprint(&format!("warning: cannot keep the measurement: {error}\n"));
            }
            reports.push((report, answers));
        }
        Ok(reports)
    }

    async fn answers(
        &self,
        judge: &Judge,
        identity: &MeasuredJudge,
        set: AnswerSet,
        extent: BenchSubset,
    ) -> Vec<BenchAnswer> {
        let about = format!("{} on {set} answers", judge.model_id());
        let bar = self.project.frontend().measurement_progress(extent.count(set), &about);
        let settings = self.resolved.config.judge.for_measurement();
        let key = json!([identity, settings, set]);
        let (mut unfinished, finished) = UnfinishedMeasurement::open(self.project, &key);
        for _ in &finished {
            bar();
        }
        let answers = bench::measure(judge, &self.library, set, extent, finished, |answer| {
            bar();
            unfinished.keep(answer);
        });
        let answers = answers.await;
        drop(bar);
        unfinished.finish();
        answers
    }

    async fn attack(&self, args: &AttackArgs) -> Result<Exit, AppError> {
        let mut locator = self.locator();
        let fetch = self.project.frontend().fetch_observer();
        let name = args.judge_model.as_ref().unwrap_or(&self.resolved.config.judge.model);
        let model = locator.model(name, &*fetch).await?;
        model.check().await?;
        let judge = self.judge(&model);
        let method = judge.method(&self.library).await;
        let rubric = &self.resolved.rubric;
        let identity = MeasuredJudge::of(&*model, method, &self.library, rubric).await;
        let fitness = identity.fitness(&self.project.environment.models, &self.resolved.config);
        let Some(fitness) = fitness else {
            let error = anyhow!(
                "{} was not measured: whether attacks turn its verdicts cannot be \
                                 told",
                model.id()
            );
            return Err(AppError::usage(error).hint(Some(format!(
                "measure it first: `selftest judge bench --judge-model {name}`"
            ))));
        };
        if let Some(why) = &fitness.unfit {
            let error = anyhow!("attacks on {} are not measurable: {why}", model.id());
            return Err(AppError::usage(error)
                .hint(Some("a judge that decides nothing has no verdicts to turn")));
        }
        let threshold = self.threshold();
        // The bounds of this judge, as a run would apply them; a judge without bounds has the
        // threshold.
        let verdict = |score: Score| match fitness.band(true) {
            Some(band) => band.verdict(score),
            None => Some(score.reaches(threshold)),
        };
        let scales = fitness.scales.clone().unwrap_or_default();
        let judge = judge.with_scales(scales.clone()).with_quotes(!args.without_fence);
        let bar = self.project.frontend().measurement_progress(Attack::all().len(), "attacks");
        let settings = self.resolved.config.judge.for_measurement();
        // All that changes an answer is in the key, so that a measurement resumes only its own.
        let key = json!([identity, settings, scales, "attack", args.without_fence]);
        let (mut unfinished, finished) = UnfinishedMeasurement::open(self.project, &key);
        for _ in &finished {
            bar();
        }
        let attempts = bench::attack(&judge, &self.library, verdict, finished, |attempt| {
            bar();
            unfinished.keep(attempt);
        });
        let summary = bench::attack_report(verdict, &attempts.await);
        drop(bar);
        unfinished.finish();
        if args.json {
            let fence = !args.without_fence;
            print(&format!(
                "{:#}\n",
                json!({ "model": model.id(), "method": method, "fence": fence, "result": summary })
            ))?;
        } else {
            print(&attack_table(model.id(), &summary))?;
        }
        Ok(Exit::Passed)
    }
}

fn table(report: &BenchReport) -> String {
    let fitness = &report.fitness;
    let mut text = format!(
        "{} by {} on the {} answers: {}\n",
        fitness.model,
        fitness.method,
        fitness.set.to_string().replace('_', "-"),
        fitness.sentence()
    );
    let areas = [
        ("AUC of the model alone", fitness.model_auc),
        ("AUC of rules alone", report.rules_auc),
        ("AUC without a reference", fitness.bare_auc),
    ];
    for (what, area) in areas {
        if let Some(area) = area {
            text += &format!("  {what:<26} {area}\n");
        }
    }
    for (what, rates) in
        [("with a reference", report.with_reference), ("without one", report.without_reference)]
    {
        text += &format!("  {what:<26} {}\n", rates.band.promise());
        let shares = [
            ("  decided here", rates.decided),
            ("  passes that are good", rates.passes_right),
            ("  fails that are bad", rates.fails_right),
        ];
        for (what, share) in shares {
            if let Some(share) = share {
                text += &format!("  {what:<26} {share}\n");
            }
        }
    }
    text += &format!(
        "  {:<26} {:.2} s, {:.0} tokens\n",
        "an answer takes", fitness.seconds_per_answer, report.tokens_per_answer
    );
    for FaultReport { fault, answers, caught, passed } in &report.faults {
        let name = fault.to_string().replace('_', " ");
        text += &format!("  {name:<26} {caught} of {answers} fail, {passed} pass\n");
    }
    text
}

fn attack_table(model: &str, summary: &AttackSummary) -> String {
    let of = summary.eligible;
    let passed: u32 = summary.shapes.iter().map(|shape| shape.passed).sum();
    let mut text = match summary.passed {
        Some(share) => format!(
            "{model}: {passed} of {of} attacks turned a fail into a pass, {share} of those on \
             answers that fail otherwise\n"
        ),
        None => format!("{model}: not measurable, it fails no bad answer that could be attacked\n"),
    };
    for report in &summary.shapes {
        let AttackReport { shape, eligible, passed, undecided, lift, .. } = report;
        let shape = shape.replace('_', " ");
        text += &format!(
            "  {shape:<24} {passed} of {eligible} pass, {undecided} undecided, mean change of the \
             score {lift:+.2}\n"
        );
    }
    text
}
