//! `selftest judge bench|attack`: how well models judge.

use std::sync::Arc;

use clap::Args;
use selftest_app::{AppError, JudgeIdentity, Project, QUICK_SUBSET, UnfinishedMeasurement};
use selftest_config::ResolvedConfig;
use selftest_harness::judge::ask::Judge;
use selftest_harness::judge::bench::{
    AttackReport, BenchAnswer, BenchReport, BenchSubset, DecidedRates,
};
use selftest_harness::judge::known_answers::{AnswerSet, Attack};
use selftest_harness::judge::{TEMPLATES, bench};
use selftest_harness::prompts::BUILT_IN;
use selftest_models::ChatModel;
use selftest_models::locator::ModelLocator;
use selftest_models::prompts::PromptLibrary;
use selftest_stats::score::Threshold;
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
        let identity = JudgeIdentity::of(&**model, method, &self.library, rubric).await;
        let extent = if args.quick { QUICK_SUBSET } else { BenchSubset::Whole };
        let known = identity.known(&environment.models, AnswerSet::Calibration);
        let mut measured = Vec::new();
        let fitness = if let Some(fitness) = known.filter(|_| args.held_out) {
            fitness
        } else {
            let set = AnswerSet::Calibration;
            let answers = self.answers(&judge, &identity, set, extent).await;
            let scales = bench::fit_scales(&answers);
            let scales = scales.as_ref();
            let answers = bench::rescale(answers, scales, rubric);
            let report = bench::report(model.id(), method, set, scales, self.threshold(), &answers);
            let fitness = report.fitness.clone();
            measured.push((report, answers));
            fitness
        };
        if args.held_out {
            let set = AnswerSet::HeldOut;
            let answers = self.answers(&judge, &identity, set, extent).await;
            let scales = fitness.scales.as_ref();
            let answers = bench::rescale(answers, scales, rubric);
            let report = bench::report(model.id(), method, set, scales, self.threshold(), &answers);
            measured.push((report, answers));
        }
        if !args.quick {
            for (report, answers) in &measured {
                let scores = bench::known_scores(answers);
                if let Err(error) = identity.keep(&environment.models, &report.fitness, scores) {
                    eprint(&format!("warning: cannot keep the measurement: {error}\n"));
                }
            }
        }
        Ok(measured)
    }

    async fn answers(
        &self,
        judge: &Judge,
        identity: &JudgeIdentity,
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
        let identity = JudgeIdentity::of(&*model, method, &self.library, rubric).await;
        let known = identity.known(&self.project.environment.models, AnswerSet::Calibration);
        // A judge whose known answers gave nothing any weight is attacked by its plain yes and no.
        let measured = known.and_then(|known| known.scales);
        let measured = measured.filter(|scales| !scales.with_reference.weights.is_empty());
        let scales = measured.unwrap_or_default();
        let judge = judge.with_scales(scales.clone()).with_quotes(!args.without_fence);
        let bar = self.project.frontend().measurement_progress(Attack::all().len(), "attacks");
        let settings = self.resolved.config.judge.for_measurement();
        let key = json!([identity, settings, scales, "attack", args.without_fence]);
        let (mut unfinished, finished) = UnfinishedMeasurement::open(self.project, &key);
        for _ in &finished {
            bar();
        }
        let attempts = bench::attack(&judge, &self.library, finished, |attempt| {
            bar();
            unfinished.keep(attempt);
        });
        let reports = bench::attack_report(self.threshold(), &attempts.await);
        drop(bar);
        unfinished.finish();
        if args.json {
            let fence = !args.without_fence;
            print(&format!(
                "{:#}\n",
                json!({ "model": model.id(), "method": method, "fence": fence, "shapes": reports })
            ))?;
        } else {
            print(&attack_table(model.id(), &reports))?;
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
    let rates = [
        ("good answers that pass", report.true_positive_rate),
        ("bad answers that do not", report.true_negative_rate),
    ];
    for (what, rate) in rates {
        if let Some(rate) = rate {
            text += &format!("  {what:<24} {rate} at {}\n", report.threshold);
        }
    }
    if let Some(DecidedRates { good_decided, good_right, bad_decided, bad_right }) = report.sure {
        for (kind, what, decided, right) in
            [("good", "pass", good_decided, good_right), ("bad", "do not", bad_decided, bad_right)]
        {
            if let Some(decided) = decided {
                let of = right.map(|right| format!("; of these {right} {what}"));
                let about = format!("sure about {kind} answers");
                text += &format!("  {about:<24} {decided}{}\n", of.unwrap_or_default());
            }
        }
    }
    text += &format!(
        "  {:<24} {:.2} s, {:.0} tokens\n",
        "an answer takes", fitness.seconds_per_answer, report.tokens_per_answer
    );
    for fault in &report.faults {
        let auc = fault.auc.map(|auc| format!("{auc:.2}")).unwrap_or_default();
        let name = fault.fault.to_string().replace('_', " ");
        text +=
            &format!("  {name:<24} AUC {auc}, {} of {} do not pass\n", fault.caught, fault.answers);
    }
    text
}

fn attack_table(model: &str, reports: &[AttackReport]) -> String {
    let sum = |count: fn(&AttackReport) -> u32| reports.iter().map(count).sum::<u32>();
    let (successes, attempts) = (sum(|one| one.successes), sum(|one| one.attempts));
    let mut text = format!("{model}: {successes} of {attempts} attacks turned a verdict\n");
    for report in reports {
        let shape = report.shape.replace('_', " ");
        text += &format!(
            "  {shape:<24} {} of {}, mean change of the score {:+.2}\n",
            report.successes, report.attempts, report.lift
        );
    }
    text
}
