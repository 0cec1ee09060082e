//! The judge: a model with its rubric and settings, which scores one step. Asked several times, it
//! gives several samples, which are pooled.

use std::sync::Arc;

use tokio::sync::OnceCell;

use super::fitness::JudgeFitness;
use super::likelihood::{self, LikelihoodProbe};
use super::probability::{
    self, ModelAsker, QuestionAnswer, QuestionAsker, ReadingKind, general_question, questions,
};
use super::prompt::{self, JudgeEvidence};
use super::rule::{certain_verdict, rule_answers};
use super::scale::{JudgeScales, ProbabilityScale};
use super::verdict::{VerdictReader, schema, schema_in_prompt};
use super::{CategoryScore, JudgeMethod, JudgeSettings, Judgement, Scorecard, Verdict};
use crate::rubric::Rubric;
use selftest_models::fence::FenceNonce;
use selftest_models::prompts::{PromptError, PromptLibrary, PromptPrefix};
use selftest_models::structured::{self, AskError, AskLimits, UnscoredReason};
use selftest_models::{
    CallRecord, ChatModel, ChatRequest, ReplySchema, SamplingParameters, ThinkingMode,
    estimate_tokens,
};
use selftest_stats::score::Score;

/// A model that judges by a rubric.
pub struct Judge {
    model: Arc<dyn ChatModel>,
    settings: JudgeSettings,
    context_tokens: u32,
    reader: VerdictReader,
    schema: ReplySchema,
    prefix: PromptPrefix,
    questioner: QuestionAsker,
    likelihoods: LikelihoodProbe,
    /// Its fitness measurement, if there is one.
    fitness: Option<JudgeFitness>,
    scales: JudgeScales,
    /// True if every reading is taken, with or without a weight.
    reads_all: bool,
    /// True if the model supports logprobs; cached after the first query.
    supports_logprobs: OnceCell<bool>,
    /// True if it is a decision model; cached after the first query.
    supports_decisions: OnceCell<bool>,
}

impl Judge {
    /// Creates a judge for this rubric. `context_tokens` is the context window of every call.
    pub fn new(
        model: Arc<dyn ChatModel>,
        settings: JudgeSettings,
        context_tokens: u32,
        rubric: Rubric,
    ) -> Self {
        let prefix = prompt::prefix(&rubric, &schema_in_prompt(&rubric).to_string());
        let schema = ReplySchema { name: "verdict", schema: Arc::new(schema(&rubric, 0)) };
        let questioner = QuestionAsker::new(context_tokens, settings.max_prompt_tokens);
        let likelihoods = LikelihoodProbe::new(context_tokens, settings.max_prompt_tokens, &rubric);
        let reader = VerdictReader::new(rubric, 0);
        let (fitness, scales) = (None, JudgeScales::default());
        let (supports_logprobs, supports_decisions) = (OnceCell::new(), OnceCell::new());
        Self {
            model,
            settings,
            context_tokens,
            reader,
            schema,
            prefix,
            questioner,
            likelihoods,
            fitness,
            scales,
            reads_all: false,
            supports_logprobs,
            supports_decisions,
        }
    }

    /// Returns the same judge with its fitness measurement.
    #[must_use]
    pub fn with_fitness(self, fitness: JudgeFitness) -> Self {
        let scales = fitness.scales.clone().unwrap_or_default();
        Self { fitness: Some(fitness), scales, ..self }
    }

    /// Returns the same judge with scales for its probabilities, whether it is fit or not.
    #[must_use]
    pub fn with_scales(self, scales: JudgeScales) -> Self {
        Self { scales, ..self }
    }

    /// Returns the same judge, which takes every reading, so that their weights can be fitted.
    #[must_use]
    pub fn with_all_readings(self) -> Self {
        Self { reads_all: true, ..self }
    }

    /// Returns the same judge with quoted evidence, or bare evidence for comparison.
    #[must_use]
    pub fn with_quotes(self, quotes: bool) -> Self {
        Self { questioner: self.questioner.with_quotes(quotes), ..self }
    }

    /// Returns the full name of the model.
    pub fn model_id(&self) -> &str {
        self.model.id()
    }

    /// Returns the rubric.
    pub fn rubric(&self) -> &Rubric {
        self.reader.rubric()
    }

    /// Returns its fitness measurement, if there is one.
    pub fn fitness(&self) -> Option<&JudgeFitness> {
        self.fitness.as_ref()
    }

    /// Returns the method used to ask the model. Never `auto`, which is resolved by the model's
    /// capabilities.
    pub async fn method(&self, library: &PromptLibrary) -> JudgeMethod {
        match self.settings.method {
            JudgeMethod::Auto => {}
            method => return method,
        }
        // A project may replace the prompts and have none for questions.
        if !library.digests().contains_key(probability::TEMPLATE) {
            return JudgeMethod::Verdict;
        }
        let decides = || self.model.supports_decisions();
        if *self.supports_decisions.get_or_init(decides).await {
            return JudgeMethod::Decision;
        }
        let tells = || self.model.supports_logprobs();
        if *self.supports_logprobs.get_or_init(tells).await {
            JudgeMethod::Probability
        } else {
            JudgeMethod::Verdict
        }
    }

    /// Returns true if a judge by probability also reads likelihoods.
    pub fn reads_likelihoods(&self, library: &PromptLibrary) -> bool {
        self.model.supports_scoring() && library.digests().contains_key(likelihood::TEMPLATE)
    }

    /// Judges one step. `seed` gives the sampling seed of a call, counted from 0.
    pub async fn judge(
        &self,
        library: &PromptLibrary,
        evidence: &JudgeEvidence,
        seed: impl Fn(u32) -> u64,
    ) -> Judgement {
        let (mut calls, mut samples) = (Vec::new(), Vec::new());
        let has_reference = evidence.case.grounds.reference.is_some();
        let unfit = self.fitness.as_ref().and_then(|known| known.unfit_reason_for(has_reference));
        // Before the judge's fitness: what form decides needs no judge.
        let certain = certain_verdict(evidence).filter(|_| !self.reads_all);
        let certain = certain.and_then(|certain| {
            Scorecard::certain(self.reader.rubric(), certain.is_right, &certain.why)
        });
        let is_certain = certain.is_some();
        let verdict = if let Some(card) = certain {
            Verdict::Scored(card)
        } else if let Some(why) = unfit {
            unscored(UnscoredReason::JudgeUnfit, why)
        } else {
            match self.method(library).await {
                JudgeMethod::Verdict => {
                    for sample in 0..self.settings.samples.max(1) {
                        // Each sample has its own range of seeds.
                        let seed = |call| seed(sample * SEEDS + call);
                        let verdict = self.verdict(library, evidence, seed, &mut calls).await;
                        let ends = is_final(&verdict);
                        samples.push(verdict);
                        if ends {
                            break;
                        }
                    }
                    pool(self.reader.rubric(), &samples).unwrap_or_else(no_common_scores)
                }
                JudgeMethod::Decision => self.questions(library, evidence, true, &mut calls).await,
                // `method` never returns `auto`.
                JudgeMethod::Probability | JudgeMethod::Auto => {
                    self.questions(library, evidence, false, &mut calls).await
                }
            }
        };
        let verdict = if is_certain { verdict } else { self.within_bounds(verdict, has_reference) };
        // A single verdict is not listed again as a sample.
        if samples.len() < 2 {
            samples.clear();
        }
        let panel = Vec::new();
        Judgement { verdict, samples, panel, question_count: evidence.question_count, calls }
    }

    /// Returns what rules find about an answer, without asking the model. For measurements.
    pub(super) fn read_rules(&self, evidence: &JudgeEvidence) -> Judgement {
        let rubric = self.reader.rubric();
        let rules = rule_answers(rubric, evidence);
        let card = Scorecard::from_questions(rubric, rules, &ProbabilityScale::of_rules());
        let verdict = card.map_or_else(no_common_scores, Verdict::Scored);
        let question_count = evidence.question_count;
        let (samples, panel, calls) = (Vec::new(), Vec::new(), Vec::new());
        Judgement { verdict, samples, panel, question_count, calls }
    }

    /// Withholds a verdict between the bounds, where more than `judge.max_wrong` would be wrong.
    fn within_bounds(&self, verdict: Verdict, has_reference: bool) -> Verdict {
        let Some(fitness) = &self.fitness else { return verdict };
        let band = fitness.band(has_reference);
        match (verdict, band) {
            (Verdict::Scored(card), Some(band)) if band.verdict(card.overall).is_none() => {
                let detail = format!(
                    "the judge gives the answer {:.2}; {}",
                    card.overall.get(),
                    band.sentence()
                );
                let (reason, detail) =
                    (UnscoredReason::CantTell, selftest_text::one_line(&detail, 600));
                Verdict::Unscored { reason, detail, partial: card.categories }
            }
            (verdict, _) => verdict,
        }
    }

    /// Judges by yes/no questions.
    async fn questions(
        &self,
        library: &PromptLibrary,
        evidence: &JudgeEvidence,
        decides: bool,
        calls: &mut Vec<CallRecord>,
    ) -> Verdict {
        let rubric = self.reader.rubric();
        let scale = self.scales.of(evidence.case.grounds.reference.is_some());
        let mut said = match self.read(library, evidence, scale, decides, calls).await {
            Ok(said) => said,
            Err(AskError { reason, detail, .. }) => return unscored(reason, &detail),
        };
        let most = self.settings.max_neither;
        // Such a model did not answer the question, however clear the rest of its probabilities is.
        if let Some(vague) = said.iter().find(|answer| answer.neither > most) {
            let detail = format!(
                "neither yes nor no with a probability of {:.2} to `{}`; judge.max_neither is {most}",
                vague.neither, vague.question.text
            );
            return unscored(UnscoredReason::CantTell, &detail);
        }
        // Rules answer without the model, so they are added after the check for vague answers.
        said.extend(rule_answers(rubric, evidence));
        let Some(mut card) = Scorecard::from_questions(rubric, said, scale) else {
            return unscored(UnscoredReason::CantTell, "nothing was read that says anything");
        };
        if self.settings.explain
            && !decides
            && let Some(doubted) = card.lowest_question()
        {
            let question = doubted.answer.question.text.clone();
            let why = self.questioner.explain(&*self.model, library, evidence, &question, calls);
            if let Some(why) = why.await {
                card.reasoning += &format!(" The judge of the first: {why}");
            }
        }
        Verdict::Scored(card)
    }

    /// Takes the readings that have a weight, or all of them if weights are to be fitted.
    async fn read(
        &self,
        library: &PromptLibrary,
        evidence: &JudgeEvidence,
        scale: &ProbabilityScale,
        decides: bool,
        calls: &mut Vec<CallRecord>,
    ) -> Result<Vec<QuestionAnswer>, AskError> {
        let model = &*self.model;
        // What has no weight would cost calls and change nothing.
        let counts = |by: ReadingKind| self.reads_all || scale.weights.contains_key(&by);
        let reads_likelihoods = !decides && self.reads_likelihoods(library);
        let mut said = Vec::new();
        if counts(ReadingKind::Model) {
            let (rubric, expected) = (self.reader.rubric(), evidence.expected_status);
            // A small model answers all questions alike: one is enough beside descriptions.
            let asked = if reads_likelihoods {
                general_question(rubric).into_iter().collect()
            } else {
                questions(rubric, &evidence.case, expected)
            };
            let asker = ModelAsker { model, library, decides };
            said = self.questioner.ask(asker, evidence, &asked, calls).await?;
        }
        if counts(ReadingKind::Description) && reads_likelihoods {
            said.extend(self.likelihoods.read(model, library, evidence, calls).await?);
        }
        Ok(said)
    }

    /// Judges by a single JSON object with all scores.
    async fn verdict(
        &self,
        library: &PromptLibrary,
        evidence: &JudgeEvidence,
        seed: impl Fn(u32) -> u64,
        calls: &mut Vec<CallRecord>,
    ) -> Verdict {
        // A fresh nonce, so that an answer cannot forge the end of its fence.
        let nonce = FenceNonce::random();
        let render = |evidence: &JudgeEvidence| {
            let prompt = prompt::render(library, &self.prefix, evidence, &nonce)?;
            let tokens = estimate_tokens(&prompt.system) + estimate_tokens(&prompt.user);
            Ok::<_, PromptError>((prompt, tokens))
        };
        let limit = self.settings.max_prompt_tokens;
        let rendered = match render(evidence) {
            // If the prompt is too long, the answer is judged without its tool calls instead of not
            // at all.
            Ok((_, tokens)) if tokens > limit && !evidence.tool_calls.is_empty() => {
                render(&JudgeEvidence { tool_calls: Vec::new(), ..evidence.clone() })
            }
            rendered => rendered,
        };
        let (rendered, tokens) = match rendered {
            Ok(rendered) => rendered,
            Err(error) => return unscored(UnscoredReason::Unavailable, &error.to_string()),
        };
        if tokens > limit {
            let detail = format!(
                "the prompt takes about {tokens} tokens, judge.max_prompt_tokens is {limit}"
            );
            return unscored(UnscoredReason::Truncated, &detail);
        }
        let JudgeSettings { temperature, max_tokens, think, think_tokens, max_reasks, .. } =
            self.settings;
        let sampling = SamplingParameters { temperature, max_tokens, seed: seed(0) };
        // A case with expectations has a schema of its own, because each has a score.
        let expectations = evidence.scored_expectations();
        // Declared here, because the references to them outlive the branch below.
        let (own_schema, own_reader);
        let (reply_schema, reader) = if expectations == 0 {
            (&self.schema, &self.reader)
        } else {
            let rubric = self.reader.rubric();
            let schema = Arc::new(schema(rubric, expectations));
            own_schema = ReplySchema { name: "verdict", schema };
            own_reader = VerdictReader::new(rubric.clone(), expectations);
            (&own_schema, &own_reader)
        };
        let request =
            ChatRequest::structured(rendered, reply_schema, sampling, self.context_tokens)
                .with_nonce(&nonce)
                .with_thinking(ThinkingMode::from_settings(think, think_tokens));
        let limits = AskLimits { max_reasks, max_tokens_key: "judge.max_tokens" };
        let read = |reply: &str| reader.read(reply);
        structured::ask(&*self.model, request, limits, seed, read, calls)
            .await
            .unwrap_or_else(|AskError { reason, detail, .. }| unscored(reason, &detail))
    }
}

/// Number of seeds reserved for one sample: its first call and the calls that ask again.
const SEEDS: u32 = 1_000;

/// Returns true if further samples are pointless, because the model is unavailable.
fn is_final(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unscored { reason: UnscoredReason::Unavailable, .. })
}

/// Returns the mean of the scored samples by category. A sample without a score is excluded and
/// does not count as zero. Without any score, returns the first sample. The explanation is that of
/// the sample closest to the mean.
fn pool(rubric: &Rubric, samples: &[Verdict]) -> Option<Verdict> {
    let cards: Vec<&Scorecard> = samples.iter().filter_map(Verdict::card).collect();
    if cards.len() < 2 {
        let scored = samples.iter().find(|sample| sample.card().is_some());
        return scored.or_else(|| samples.first()).cloned();
    }
    let mean = mean_card(rubric, &cards, String::new())?;
    let distance = |card: &&&Scorecard| (card.overall.get() - mean.overall.get()).abs();
    let typical = cards.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    Some(Verdict::Scored(Scorecard { reasoning: typical.reasoning.clone(), ..mean }))
}

/// Returns the mean of scores by category with this explanation, or `None` without any scores.
pub(super) fn mean_card(
    rubric: &Rubric,
    cards: &[&Scorecard],
    reasoning: String,
) -> Option<Scorecard> {
    let (mut categories, mut weighted) = (Vec::new(), Vec::new());
    for category in rubric.categories() {
        let scores = cards.iter().map(|card| card.score(&category.id).map(Score::get));
        // All categories have the mean of the same cards, or none has one.
        let scores = scores.collect::<Option<Vec<f64>>>()?;
        let score = Score::new(selftest_stats::mean(&scores)?.clamp(0.0, 1.0)).ok()?;
        weighted.push((category.weight, score));
        categories.push(CategoryScore { category: category.id.clone(), score: Some(score) });
    }
    let overall = Score::weighted(weighted);
    Some(Scorecard {
        categories,
        overall,
        reasoning,
        questions: Vec::new(),
        expectations: Vec::new(),
        is_certain: !cards.is_empty() && cards.iter().all(|card| card.is_certain),
    })
}

/// Returns the verdict for samples that share no scores.
pub(super) fn no_common_scores() -> Verdict {
    unscored(UnscoredReason::CantTell, "the verdicts have no mean")
}

fn unscored(reason: UnscoredReason, detail: &str) -> Verdict {
    Verdict::Unscored { reason, detail: selftest_text::one_line(detail, 600), partial: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(score: f64) -> Verdict {
        let rubric = Rubric::default();
        let score = Score::new(score).unwrap();
        let of_category = |category: &crate::rubric::RubricCategory| CategoryScore {
            category: category.id.clone(),
            score: Some(score),
        };
        Verdict::Scored(Scorecard {
            categories: rubric.categories().iter().map(of_category).collect(),
            overall: score,
            reasoning: format!("It is worth {score}."),
            questions: Vec::new(),
            expectations: Vec::new(),
            is_certain: false,
        })
    }

    fn silent(reason: UnscoredReason) -> Verdict {
        Verdict::Unscored { reason, detail: "no".to_owned(), partial: Vec::new() }
    }

    #[test]
    fn the_mean_counts_and_a_missing_score_is_no_zero() {
        let cant = silent(UnscoredReason::CantTell);
        let samples = [cant.clone(), sample(0.9), sample(0.4), sample(0.5)];
        let pooled = |samples: &[Verdict]| super::pool(&Rubric::default(), samples).unwrap();
        let card = pooled(&samples).card().cloned().unwrap();
        assert!((card.overall.get() - 0.6).abs() < 1e-9, "{card:?}");
        assert!(card.categories.iter().all(|entry| entry.score == Score::new(0.6).ok()));
        assert_eq!(card.reasoning, "It is worth 0.50.");
        assert_eq!(pooled(&[cant.clone(), sample(0.4)]), sample(0.4));
        let refused = silent(UnscoredReason::Refused);
        assert_eq!(pooled(&[refused.clone(), cant]), refused, "the first reason");
        assert_eq!(super::pool(&Rubric::default(), &[]), None);
    }

    #[test]
    fn only_silence_ends_the_asking() {
        assert!(is_final(&silent(UnscoredReason::Unavailable)));
        assert!(!is_final(&silent(UnscoredReason::Malformed)) && !is_final(&sample(0.5)));
    }
}
