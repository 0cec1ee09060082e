//! The register of measured judges: those that ship with the program, and those measured on this
//! machine, one small JSON file per judge in the cache folder. A judge that is in neither is
//! measured before its first verdict. Also says how judges that judge together are named.
//!
//! A broken file of the register is ignored: the judge is then measured again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::AppError;
use crate::project::Project;
use selftest_config::Config;
use selftest_harness::judge::ask::Judge;
use selftest_harness::judge::bench::{self, BenchAnswer, BenchReportSettings, BenchSubset};
use selftest_harness::judge::fitness::{FitnessRequirement, JudgeFitness, KnownScores};
use selftest_harness::judge::known_answers::AnswerSet;
use selftest_harness::judge::{JudgeMethod, likelihood, prompt, rule, template_of};
use selftest_harness::rubric::Rubric;
use selftest_models::ChatModel;
use selftest_models::model_settings::ModelEnvironment;
use selftest_models::prompts::PromptLibrary;
use selftest_stats::score::Threshold;
use selftest_text::digest;
use selftest_text::file::read_bounded;

/// Maximum size of a file of the register, in bytes.
const MAX_MEASUREMENT: u64 = 16 * 1024 * 1024;

/// Between the names of judges that judge together.
pub(crate) const TOGETHER: &str = " + ";

/// Measurements that ship with the program, for freely available models.
const SHIPPED: &str = include_str!("../../harness/calibration/measured.json");

/// Numbers of answers of a certificate, after which it may stop.
const CERTIFICATE_SIZES: [usize; 4] = [20, 40, 60, 80];

/// Answers of a quick measurement.
pub const QUICK_SUBSET: BenchSubset = BenchSubset::First(20);

/// Maximum duration of a certificate.
const CERTIFICATE_TIME: Duration = Duration::from_mins(1);

/// Maximum number of tokens of a certificate.
const CERTIFICATE_TOKENS: u64 = 100_000;

/// Folder of the measurements in the cache folder.
pub(crate) const FOLDER: &str = "judges";
/// Maximum mean time of an answer, in seconds, with which `auto` chooses a judge.
const MAX_SECONDS: f64 = 30.0;

/// Advice for users without a fit judge. The measurement decides which model is fit.
pub const FETCH_JUDGE: &str = "fetch a larger judge, `ollama pull qwen3:1.7b` \
    (1.4 GB) or, without a server, `selftest judge model pull qwen3-1.7b` (1.8 GB), and measure it: \
    `selftest judge bench`";

/// The identity of a judge: weights, method, prompt, rules and rubric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredJudge {
    /// Digest of the weights, or the model's name if the digest is unknown.
    weights: String,
    method: JudgeMethod,
    prompt_digest: String,
    /// Empty if no rules are used beside the model.
    #[serde(default)]
    rules_digest: String,
    rubric_digest: String,
    /// Digest of the likelihood template, if likelihoods are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    likelihood_digest: Option<String>,
}

/// A measurement and whose it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct JudgeMeasurement {
    judge: MeasuredJudge,
    fitness: JudgeFitness,
    /// Empty in measurements of earlier versions, which are repeated.
    #[serde(default)]
    scores: KnownScores,
}

impl MeasuredJudge {
    /// The identity of a model that judges by this method.
    pub async fn of(
        model: &dyn ChatModel,
        method: JudgeMethod,
        library: &PromptLibrary,
        rubric: &Rubric,
    ) -> Self {
        let digest_of = |template| library.digests().get(template).cloned();
        let reads_likelihoods = method == JudgeMethod::Probability && model.supports_scoring();
        let template = template_of(Some(method));
        Self {
            weights: model.fingerprint().await.unwrap_or_else(|| model.id().to_owned()),
            method,
            prompt_digest: prompt_digest(library, template),
            likelihood_digest: reads_likelihoods.then(|| digest_of(likelihood::TEMPLATE)).flatten(),
            rules_digest: rule::digest(),
            rubric_digest: rubric.digest(),
        }
    }

    /// Digest of the weights, or the model's name if the digest is unknown.
    pub fn weights(&self) -> &str {
        &self.weights
    }

    /// Returns the method of judging.
    pub const fn method(&self) -> JudgeMethod {
        self.method
    }

    fn file(&self, environment: &ModelEnvironment, set: AnswerSet) -> PathBuf {
        let key = digest::json_sha256_hex(json!([self, set]));
        environment.cache_folder.join(FOLDER).join(format!("{key}.json"))
    }

    /// Returns the measurement on the calibration set, else the certificate. Where held-out answers
    /// were judged too and ranked worse, it is their ranking that counts.
    fn measured(&self, environment: &ModelEnvironment) -> Option<JudgeMeasurement> {
        let mut known = self
            .read(environment, AnswerSet::Calibration)
            .or_else(|| self.read(environment, AnswerSet::Certificate))?;
        if let Some(held_out) = self.read(environment, AnswerSet::HeldOut) {
            known.fitness = known.fitness.or_worse(&held_out.fitness);
        }
        Some(known)
    }

    /// Returns the measurement, evaluated against the requirements.
    pub fn fitness(&self, environment: &ModelEnvironment, config: &Config) -> Option<JudgeFitness> {
        let JudgeMeasurement { fitness, scores, .. } = self.measured(environment)?;
        Some(fitness.evaluate(requirement(config), &scores))
    }

    /// Returns the measurement as the register stores it, for a recording.
    pub fn measurement(&self, environment: &ModelEnvironment) -> Option<Value> {
        serde_json::to_value(self.measured(environment)?).ok()
    }

    /// Evaluates the measurement of a recording against the requirements. Returns `None` if it is
    /// that of another judge.
    pub fn recorded_fitness(&self, measurement: Value, config: &Config) -> Option<JudgeFitness> {
        let known: JudgeMeasurement = serde_json::from_value(measurement).ok()?;
        (known.judge == *self).then(|| known.fitness.evaluate(requirement(config), &known.scores))
    }

    /// Measures a judge that was never measured: 20 to 80 known answers, within the limits of time
    /// and tokens. The result is kept.
    pub async fn certify(
        &self,
        project: &Project,
        config: &Config,
        judge: &Judge,
        library: &PromptLibrary,
    ) -> JudgeFitness {
        let most = CERTIFICATE_SIZES[CERTIFICATE_SIZES.len() - 1];
        // Tokens of a local model cost time alone.
        let is_remote = self.weights == judge.model_id();
        let tokens = if is_remote { " and 100,000 tokens" } else { "" };
        project.notify(&format!(
            "measuring {} before its first verdict: up to {most} known answers, at most {} \
             s{tokens}; later runs use the result\n",
            judge.model_id(),
            CERTIFICATE_TIME.as_secs(),
        ));
        let progress = project.frontend().measurement_progress(most, "known answers");
        let deadline = tokio::time::Instant::now() + CERTIFICATE_TIME;
        let requirement = requirement(config);
        let mut answers = Vec::new();
        let mut measured = None;
        for size in CERTIFICATE_SIZES {
            let mut seen = answers.clone();
            let set = AnswerSet::Certificate;
            let subset = BenchSubset::First(size);
            let asked = bench::measure(judge, library, set, subset, answers.clone(), |answer| {
                progress();
                seen.push(answer.clone());
            });
            // What was answered in time counts.
            let is_late = tokio::time::timeout_at(deadline, asked).await.is_err();
            answers = seen;
            let (fitness, scores) = self.evaluate_certificate(judge, config, &answers);
            let evaluated = fitness.clone().evaluate(requirement, &scores);
            let decides = evaluated
                .with_reference
                .is_some_and(|band| band.passes_from.is_some() && band.fails_below.is_some());
            measured = Some((fitness, scores, evaluated));
            let tokens = bench::prompt_tokens(&answers);
            // What the next answers would take, too.
            let next = tokens * (size as u64 + 20) / size as u64;
            let is_dear = is_remote && size < most && next > CERTIFICATE_TOKENS;
            // A model that cannot be reached scores nothing, and is not asked further.
            let scores_nothing =
                answers.iter().all(|answer| answer.judgement.verdict.card().is_none());
            if is_late || is_dear || decides || scores_nothing {
                break;
            }
        }
        drop(progress);
        let Some((fitness, scores, evaluated)) = measured else {
            return JudgeFitness::unmeasured(judge.model_id(), self.method);
        };
        if fitness.scored > 0
            && let Err(error) = self.keep(&project.environment.models, &fitness, scores)
        {
            project.notify(&format!("warning: cannot keep the measurement: {error}\n"));
        }
        evaluated
    }

    fn evaluate_certificate(
        &self,
        judge: &Judge,
        config: &Config,
        answers: &[BenchAnswer],
    ) -> (JudgeFitness, KnownScores) {
        let is_read = self.method.takes_readings();
        let scales = is_read.then(|| bench::fit_scales(answers)).flatten();
        let FitnessRequirement { max_wrong, threshold, .. } = requirement(config);
        let settings = BenchReportSettings {
            model: judge.model_id(),
            method: self.method,
            set: AnswerSet::Certificate,
            scales: scales.as_ref(),
            bands: None,
            max_wrong,
            threshold,
        };
        let (report, scores) = bench::report(&settings, answers);
        (report.fitness, scores)
    }

    /// Returns the measurement on a set, without evaluating it.
    pub fn known(&self, environment: &ModelEnvironment, set: AnswerSet) -> Option<JudgeFitness> {
        self.read(environment, set).map(|known| known.fitness)
    }

    fn read(&self, environment: &ModelEnvironment, set: AnswerSet) -> Option<JudgeMeasurement> {
        let own = read_bounded(&self.file(environment, set), MAX_MEASUREMENT).ok();
        let own = own.and_then(|bytes| serde_json::from_slice::<JudgeMeasurement>(&bytes).ok());
        let shipped = || {
            let all: Vec<JudgeMeasurement> = serde_json::from_str(SHIPPED).unwrap_or_default();
            all.into_iter().find(|known| known.judge == *self && known.fitness.set == set)
        };
        let is_whole = |known: &JudgeMeasurement| {
            // Measurements of earlier versions lack what a later one decides by, and are repeated.
            let has_scales = self.method == JudgeMethod::Verdict || known.fitness.scales.is_some();
            has_scales && !known.scores.is_empty()
        };
        own.filter(|known| known.judge == *self && is_whole(known)).or_else(shipped)
    }

    /// Stores a measurement.
    pub fn keep(
        &self,
        environment: &ModelEnvironment,
        fitness: &JudgeFitness,
        scores: KnownScores,
    ) -> std::io::Result<()> {
        let file = self.file(environment, fitness.set);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let known = JudgeMeasurement { judge: self.clone(), fitness: fitness.clone(), scores };
        std::fs::write(file, format!("{:#}\n", json!(known)))
    }
}

/// Returns the digest of a template and of the one for tool calls, which is rendered into it.
fn prompt_digest(library: &PromptLibrary, template: &str) -> String {
    let digests = library.digests();
    digest::json_sha256_hex(json!([
        digests.get(template),
        digests.get(prompt::TOOL_CALLS_TEMPLATE)
    ]))
}

/// Returns the requirements of a configuration.
pub fn requirement(config: &Config) -> FitnessRequirement {
    FitnessRequirement {
        min_auc: config.judge.min_auc,
        max_wrong: config.judge.max_wrong,
        threshold: Threshold::effective(config.min_score_to_pass, config.strictness),
    }
}

/// The lower end of the measured AUC by full name of the model, of all judges that were measured
/// on this machine and answer in time. A model that was fetched again under its name keeps its
/// place until it is measured again.
pub(crate) fn measured_models(environment: &ModelEnvironment) -> HashMap<String, f64> {
    let mut measured = HashMap::<String, f64>::new();
    let folder = environment.cache_folder.join(FOLDER);
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let known = read_bounded(&file.path(), MAX_MEASUREMENT).ok();
        let known = known.and_then(|bytes| serde_json::from_slice::<JudgeMeasurement>(&bytes).ok());
        let Some(JudgeMeasurement { fitness, .. }) = known else { continue };
        if fitness.set == AnswerSet::Calibration
            && fitness.seconds_per_answer <= MAX_SECONDS
            && let Some(auc) = fitness.auc
        {
            // A model has a measurement for each method, prompt and rubric by which it judged.
            let best = measured.entry(fitness.model).or_default();
            *best = best.max(auc.low);
        }
    }
    measured
}

/// A panel of one model under two names, or under one.
pub(crate) fn same_judge(names: &[String]) -> AppError {
    let names = names.join("` and `");
    AppError::usage(anyhow!("`judge.panel` has one and the same model twice: `{names}`"))
        .hint(Some("name unlike models: the same one agrees with itself, right or wrong"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_harness::judge::probability;
    use selftest_harness::prompts::BUILT_IN;

    #[test]
    fn the_shipped_measurements_are_readable() {
        let all: Vec<JudgeMeasurement> = serde_json::from_str(SHIPPED).unwrap();
        let mut library = PromptLibrary::new(std::path::Path::new("/"), BUILT_IN);
        for template in [probability::TEMPLATE, likelihood::TEMPLATE, prompt::TOOL_CALLS_TEMPLATE] {
            assert!(library.load(template).unwrap());
        }
        for known in &all {
            assert!(!known.scores.is_empty(), "{known:?}");
            // After a change of questions, rules or rubric, measure the default model again:
            // `selftest judge bench --held-out` leaves the new files in the cache folder.
            let prompt_digest = prompt_digest(&library, probability::TEMPLATE);
            assert_eq!(known.judge.prompt_digest, prompt_digest, "measured with other questions");
            let likelihood_digest = library.digests().get(likelihood::TEMPLATE);
            assert_eq!(known.judge.likelihood_digest.as_ref(), likelihood_digest);
            assert_eq!(known.judge.rules_digest, rule::digest(), "measured with other rules");
            assert_eq!(known.judge.rubric_digest, Rubric::default().digest());
        }
    }
}
