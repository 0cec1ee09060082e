//! The register of measured judges: measured on this machine or shipped. One small JSON file per judge
//! in the cache folder; a broken one is ignored.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::project::Project;
use selftest_config::Config;
use selftest_harness::judge::ask::Judge;
use selftest_harness::judge::bench::{self, BenchSubset};
use selftest_harness::judge::fitness::{FitnessRequirement, JudgeFitness, KnownScores, QuickCheck};
use selftest_harness::judge::judge_settings::JudgeMethod;
use selftest_harness::judge::known_answers::AnswerSet;
use selftest_harness::judge::{likelihood, probability, prompt, rule};
use selftest_harness::rubric::Rubric;
use selftest_models::ChatModel;
use selftest_models::model_settings::ModelEnvironment;
use selftest_models::prompts::PromptLibrary;
use selftest_stats::score::Threshold;
use selftest_text::digest;

/// Measurements that ship with the program, for freely available models.
const SHIPPED: &str = include_str!("../../harness/calibration/measured.json");

/// Two answers of every fifth request, for a quick check.
pub const QUICK_SUBSET: BenchSubset = BenchSubset::Every(5);

/// Folder of the measurements in the cache folder.
pub(crate) const FOLDER: &str = "judges";
/// Maximum mean time of an answer, in seconds, with which `auto` chooses a judge.
const MAX_SECONDS: f64 = 30.0;

/// Maximum duration of a quick check during a run.
const IMPRESSION_LIMIT: Duration = Duration::from_secs(20);

/// Advice for users without a fit judge. The measurement decides which model is fit.
pub const FETCH_JUDGE: &str = "fetch a larger judge, `ollama pull qwen3:1.7b` \
    (1.4 GB) or, without a server, `selftest judge model pull qwen3-1.7b` (1.8 GB), and measure it: \
    `selftest judge bench`";

/// The identity of a judge: weights, method, prompt, rules and rubric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeIdentity {
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
    judge: JudgeIdentity,
    fitness: JudgeFitness,
    /// Those of earlier versions have none, and are measured again.
    #[serde(default)]
    scores: KnownScores,
}

impl JudgeIdentity {
    /// The identity of a model that judges by this method.
    pub async fn of(
        model: &dyn ChatModel,
        method: JudgeMethod,
        library: &PromptLibrary,
        rubric: &Rubric,
    ) -> Self {
        let digest_of = |template| library.digests().get(template).cloned();
        let reads_likelihoods = method == JudgeMethod::Probability && model.supports_scoring();
        let (template, rules_digest) = match method {
            JudgeMethod::Verdict => (prompt::TEMPLATE, String::new()),
            JudgeMethod::Probability | JudgeMethod::Auto => (probability::TEMPLATE, rule::digest()),
        };
        Self {
            weights: model.fingerprint().await.unwrap_or_else(|| model.id().to_owned()),
            method,
            prompt_digest: digest_of(template).unwrap_or_default(),
            likelihood_digest: reads_likelihoods.then(|| digest_of(likelihood::TEMPLATE)).flatten(),
            rules_digest,
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

    /// Returns the measurement on the calibration set, evaluated against the requirements.
    pub fn fitness(&self, environment: &ModelEnvironment, config: &Config) -> Option<JudgeFitness> {
        let JudgeMeasurement { fitness, scores, .. } =
            self.read(environment, AnswerSet::Calibration)?;
        let threshold = Threshold::effective(config.min_score_to_pass, config.strictness);
        Some(
            fitness
                .evaluate(FitnessRequirement { min_auc: config.judge.min_auc, threshold }, &scores),
        )
    }

    /// Returns the measurement on a set, without evaluating it.
    pub fn known(&self, environment: &ModelEnvironment, set: AnswerSet) -> Option<JudgeFitness> {
        self.read(environment, set).map(|known| known.fitness)
    }

    fn read(&self, environment: &ModelEnvironment, set: AnswerSet) -> Option<JudgeMeasurement> {
        let own = std::fs::read(self.file(environment, set)).ok();
        let own = own.and_then(|bytes| serde_json::from_slice::<JudgeMeasurement>(&bytes).ok());
        let shipped = || {
            let all: Vec<JudgeMeasurement> = serde_json::from_str(SHIPPED).unwrap_or_default();
            all.into_iter().find(|known| known.judge == *self && known.fitness.set == set)
        };
        let is_whole = |known: &JudgeMeasurement| {
            let has_scales = self.method == JudgeMethod::Verdict || known.fitness.scales.is_some();
            has_scales && known.scores.count() == known.fitness.scored as usize
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

/// The quick check of an unmeasured judge, kept because it takes a while.
#[derive(Debug, Serialize, Deserialize)]
struct JudgeQuickCheck {
    judge: JudgeIdentity,
    impression: QuickCheck,
}

impl JudgeIdentity {
    /// Returns true if the weights are known. Those behind a mere name may change, and calling them
    /// may cost money.
    pub fn has_weights(&self, model: &dyn ChatModel) -> bool {
        self.weights != model.id()
    }

    /// The first impression of this judge: as it was, else asked now, for at most
    /// 20 seconds.
    pub async fn impression(
        &self,
        project: &Project,
        judge: &Judge,
        library: &PromptLibrary,
    ) -> QuickCheck {
        let key = digest::json_sha256_hex(json!([self, "impression"]));
        let folder = project.environment.models.cache_folder.join(FOLDER).join("impressions");
        let file = folder.join(format!("{key}.json"));
        let kept = std::fs::read(&file).ok();
        let kept = kept.and_then(|bytes| serde_json::from_slice::<JudgeQuickCheck>(&bytes).ok());
        if let Some(kept) = kept.filter(|kept| kept.judge == *self) {
            return kept.impression;
        }
        let set = AnswerSet::Calibration;
        let progress =
            project.frontend().measurement_progress(QUICK_SUBSET.count(set), "known answers");
        let mut answers = Vec::new();
        let measured = bench::measure(judge, library, set, QUICK_SUBSET, Vec::new(), |answer| {
            progress();
            answers.push(answer.clone());
        });
        // Answers in time count.
        let _ = tokio::time::timeout(IMPRESSION_LIMIT, measured).await;
        drop(progress);
        let impression = bench::count_pairs(&answers);
        let known = JudgeQuickCheck { judge: self.clone(), impression };
        if impression.pairs > 0 {
            // Without it the next run asks again.
            let _ = std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(&file, format!("{:#}\n", json!(known))));
        }
        impression
    }
}

/// The lower end of the measured AUC by full name of the model, of all judges that were measured
/// on this machine and answer in time. A model that was fetched again under its name keeps its
/// place until it is measured again.
pub(crate) fn measured_models(environment: &ModelEnvironment) -> HashMap<String, f64> {
    let mut measured = HashMap::<String, f64>::new();
    let folder = environment.cache_folder.join(FOLDER);
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let known = std::fs::read(file.path()).ok();
        let known = known.and_then(|bytes| serde_json::from_slice::<JudgeMeasurement>(&bytes).ok());
        let Some(JudgeMeasurement { fitness, .. }) = known else { continue };
        if fitness.set == AnswerSet::Calibration
            && fitness.seconds_per_answer <= MAX_SECONDS
            && let Some(auc) = fitness.model_only_auc()
        {
            let best = measured.entry(fitness.model).or_default();
            *best = best.max(auc.low);
        }
    }
    measured
}

#[cfg(test)]
mod tests {
    use selftest_harness::prompts::BUILT_IN;

    use super::*;

    #[test]
    fn the_shipped_measurements_are_readable() {
        let all: Vec<JudgeMeasurement> = serde_json::from_str(SHIPPED).unwrap();
        let mut library = PromptLibrary::new(std::path::Path::new("/"), BUILT_IN);
        for template in [probability::TEMPLATE, likelihood::TEMPLATE] {
            assert!(library.load(template).unwrap());
        }
        for known in &all {
            assert!(known.fitness.model_auc.is_some(), "{known:?}");
            assert_eq!(known.scores.count(), known.fitness.scored as usize, "{known:?}");
            // Whoever changes the questions or the rubric measures the default model again:
            // `selftest judge bench --held-out` leaves the new files in the cache folder.
            let prompt_digest = &library.digests()[probability::TEMPLATE];
            assert_eq!(&known.judge.prompt_digest, prompt_digest, "measured with other questions");
            let likelihood_digest = library.digests().get(likelihood::TEMPLATE);
            assert_eq!(known.judge.likelihood_digest.as_ref(), likelihood_digest);
            assert_eq!(known.judge.rules_digest, rule::digest(), "measured with other rules");
            assert_eq!(known.judge.rubric_digest, Rubric::default().digest());
        }
    }
}
