//! The judge: takes a neutral transcript and returns a verdict.
//!
//! It never sees the system under test, only its output. The harness computes the overall score
//! itself and never asks a model for it (design: "the judge never grades itself").

pub mod ask;
pub mod bench;
pub mod evidence;
pub mod fitness;
pub mod known_answers;
pub mod likelihood;
pub mod panel;
pub mod probability;
pub mod prompt;
pub mod rule;
pub mod scale;
#[cfg(test)]
mod tests;
pub mod verdict;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rubric::Rubric;
use panel::PanelVerdict;
use probability::{QuestionAnswer, ReadingKind};
use scale::ProbabilityScale;
use selftest_models::name::ModelName;
use selftest_models::structured::UnscoredReason;
use selftest_models::{CallRecord, DEFAULT_THINK_TOKENS};
use selftest_stats::score::Score;

/// Paths of all judge templates under `prompts/`.
pub const TEMPLATES: [&str; 5] = [
    prompt::TEMPLATE,
    probability::TEMPLATE,
    probability::EXPLANATION,
    likelihood::TEMPLATE,
    prompt::TOOL_CALLS_TEMPLATE,
];

/// Returns the path of the template that a judge is asked with by this method, which is part of what
/// identifies it.
pub fn template_of(method: Option<JudgeMethod>) -> &'static str {
    match method {
        Some(method) if method.takes_readings() => probability::TEMPLATE,
        _ => prompt::TEMPLATE,
    }
}

/// The score of one category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryScore {
    /// Id of the category, such as `format_score`.
    pub category: String,
    /// The score; `None` if the judge says that it can't tell.
    pub score: Option<Score>,
}

/// Most questions that the explanation of a score names.
const MAX_NAMED: usize = 4;

/// Scores of every category, and the overall score computed from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scorecard {
    /// One entry per category in the rubric's order, each with a score.
    pub categories: Vec<CategoryScore>,
    /// `Σ weight · score`.
    pub overall: Score,
    /// The judge's explanation.
    pub reasoning: String,
    /// The yes/no questions behind the scores. Empty for a judge that was asked for a verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<ScoredQuestion>,
    /// The score of each expectation, from a judge that was asked for a verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<ExpectationScore>,
    /// True if form alone decided, and no judge was asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_certain: bool,
}

/// The score of one expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectationScore {
    /// Its number in the case, from 1.
    pub number: u32,
    /// The score; `None` if the judge says that it can't tell.
    pub score: Option<Score>,
}

/// A question with the judge's answer as a probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoredQuestion {
    /// The question and its reading.
    #[serde(flatten)]
    pub answer: QuestionAnswer,
    /// The probability of yes on the judge's scale.
    pub probability: Score,
}

impl Scorecard {
    /// Computes scores from the answers to questions: the probability that the answer is good, by all
    /// readings of the model and all findings of rules. Yes/no questions about a category count in
    /// that category alone. Returns `None` if nothing that has a weight was read, or if a probability
    /// is not a number.
    pub fn from_questions(
        rubric: &Rubric,
        answers: Vec<QuestionAnswer>,
        scale: &ProbabilityScale,
    ) -> Option<Scorecard> {
        let scored = |answer: QuestionAnswer| {
            let probability = Score::new(scale.probability_of(&answer)).ok()?;
            Some(ScoredQuestion { answer, probability })
        };
        let questions: Vec<ScoredQuestion> =
            answers.into_iter().map(scored).collect::<Option<_>>()?;
        let read: Vec<&QuestionAnswer> = questions.iter().map(|asked| &asked.answer).collect();
        let mut categories = Vec::new();
        let mut weighted = Vec::new();
        for category in rubric.categories() {
            let log_odds = scale.log_odds(&read, Some(&category.id))?;
            let score = Score::new(selftest_stats::sigmoid(log_odds)).ok()?;
            weighted.push((category.weight, score));
            categories.push(CategoryScore { category: category.id.clone(), score: Some(score) });
        }
        let mut doubted: Vec<&ScoredQuestion> =
            questions.iter().filter(|asked| asked.probability.get() < 0.5).collect();
        // The worst come first, because the explanation names only a few.
        doubted.sort_by(|a, b| a.probability.get().total_cmp(&b.probability.get()));
        let each = doubted.iter().map(|asked| {
            format!("{} ({:.2})", asked.answer.question.text, asked.probability.get())
        });
        let reasoning = if doubted.is_empty() {
            "Nothing speaks against the answer.".to_owned()
        } else {
            format!("Against it: {}", each.take(MAX_NAMED).collect::<Vec<_>>().join(" "))
        };
        Some(Scorecard {
            categories,
            overall: Score::weighted(weighted),
            reasoning,
            questions,
            expectations: Vec::new(),
            is_certain: false,
        })
    }

    /// Creates the scores of an answer whose form alone decides: all 1 or all 0.
    pub(crate) fn certain(rubric: &Rubric, is_right: bool, why: &str) -> Option<Scorecard> {
        let score = Score::new(f64::from(u8::from(is_right))).ok()?;
        let categories = rubric.categories().iter();
        let categories = categories
            .map(|category| CategoryScore { category: category.id.clone(), score: Some(score) })
            .collect();
        let reasoning = format!("Certain without a judge: {why}.");
        Some(Scorecard {
            categories,
            overall: score,
            reasoning,
            questions: Vec::new(),
            expectations: Vec::new(),
            is_certain: true,
        })
    }

    /// Returns the model's question with the lowest probability, if that is below 0.5.
    pub fn lowest_question(&self) -> Option<&ScoredQuestion> {
        let by_model = |asked: &&ScoredQuestion| {
            asked.answer.by == ReadingKind::Model && asked.probability.get() < 0.5
        };
        let by_probability = |a: &&ScoredQuestion, b: &&ScoredQuestion| {
            a.probability.get().total_cmp(&b.probability.get())
        };
        self.questions.iter().filter(by_model).min_by(by_probability)
    }

    /// Replaces the score of a category and recomputes the overall score.
    pub(crate) fn set_score(&mut self, rubric: &Rubric, category: &str, score: Score) {
        if let Some(entry) = self.categories.iter_mut().find(|entry| entry.category == category) {
            entry.score = Some(score);
        }
        let weighted = rubric.categories().iter();
        let weighted = weighted.filter_map(|known| Some((known.weight, self.score(&known.id)?)));
        self.overall = Score::weighted(weighted);
    }

    /// Returns true if the score of a category reflects that category. Likelihoods concern the
    /// answer as a whole, and a bad answer need not be bad in every category. A judge by questions
    /// was asked about all of them.
    pub fn reflects_category(&self, category: &str) -> bool {
        let tells = |asked: &ScoredQuestion| {
            let is_own = asked.answer.question.category == category;
            match asked.answer.by {
                ReadingKind::Model => true,
                ReadingKind::Description => is_own,
                // A rule that finds nothing wrong tells nothing about its category.
                _ => is_own && asked.probability.get() < 0.5,
            }
        };
        self.questions.is_empty() || self.questions.iter().any(tells)
    }

    /// Returns the score of a category, if the rubric has it.
    pub fn score(&self, category: &str) -> Option<Score> {
        self.categories.iter().find(|entry| entry.category == category)?.score
    }
}

/// The judge's result for one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum Verdict {
    /// All categories have a score.
    Scored(Scorecard),
    /// There is no score.
    Unscored {
        /// Kind of the reason.
        reason: UnscoredReason,
        /// The exact reason, in one line.
        detail: String,
        /// The readable part, such as the scores next to a "can't tell". For display only, never
        /// for the gate.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        partial: Vec<CategoryScore>,
    },
}

impl Verdict {
    /// Returns the scores, if there are any.
    pub fn card(&self) -> Option<&Scorecard> {
        match self {
            Self::Scored(card) => Some(card),
            Self::Unscored { .. } => None,
        }
    }
}

/// A verdict with every call that led to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The verdicts that it is the mean of, in order. Empty if the judge was asked once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Verdict>,
    /// The verdict of each judge of a panel, in order. Empty for a single judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<PanelVerdict>,
    /// Number of questions in the answer, counted by rule and stated to the judge.
    pub question_count: u32,
    /// Calls in order; more than one if a malformed reply was asked for again.
    pub calls: Vec<CallRecord>,
}

/// The method by which a judge is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum JudgeMethod {
    /// By decisions if it is a decision model, by probability if it supports logprobs, else for a
    /// verdict.
    #[default]
    Auto,
    /// Yes/no questions, all in one request to a decision model.
    Decision,
    /// Yes/no questions, answered by the probabilities of the first token.
    Probability,
    /// One JSON object with a score for each category.
    Verdict,
}

impl JudgeMethod {
    /// Returns true if readings are taken, which known answers weigh; a verdict has scores of its own.
    pub fn takes_readings(self) -> bool {
        matches!(self, Self::Decision | Self::Probability)
    }
}

/// The `judge` section: the model that scores the answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JudgeSettings {
    /// The model; `auto`, `provider/model`, or a bare name that `auto` resolves.
    #[schemars(length(min = 1), extend("examples" = ModelName::examples()))]
    pub model: String,
    /// Different models that all judge every answer, instead of `model`; the mean of their scores
    /// counts. Two or more, or none.
    #[schemars(length(max = 7), inner(length(min = 1)))]
    pub panel: Vec<String>,
    /// Sampling temperature; 0.0 is deterministic.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: f64,
    /// Maximum number of tokens of a verdict.
    #[schemars(range(min = 16, max = 32768))]
    pub max_tokens: u32,
    /// Maximum number of times a malformed verdict is asked for again.
    #[schemars(range(max = 20))]
    pub max_reasks: u32,
    /// Maximum number of tokens of a prompt to the judge. A case that needs more is unscored, not
    /// cut.
    #[schemars(range(min = 256, max = 1_048_576))]
    pub max_prompt_tokens: u32,
    /// Method by which the model is asked.
    pub method: JudgeMethod,
    /// Minimum area under the ROC curve (0.5 is chance, 1.0 perfect) that the judge must reach on
    /// known answers, by the lower end of its 95 % interval. Below it the judge decides nothing. 0
    /// accepts any judge and every score.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_auc: f64,
    /// Maximum share of wrong verdicts among the judge's passes, and among its fails. Scores at which
    /// more were wrong on known answers are left undecided.
    #[schemars(range(min = 0.01, max = 0.5))]
    pub max_wrong: f64,
    /// Measures a judge that was never measured, before its first verdict: 20 to 80 known answers, at
    /// most 60 seconds and 100,000 tokens. The result is kept until the judge changes. With `off`, a
    /// judge that was never measured judges without any promise, and reports say so.
    pub certificate: JudgeCertificate,
    /// Maximum probability, 0 to 1, that an answer to a yes/no question may leave to other words.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_neither: f64,
    /// Number of verdicts to ask for on each answer, each with another seed; the score is their
    /// mean. More than one requires `method: verdict` and a `temperature` above 0.
    #[schemars(range(min = 1, max = 9))]
    pub samples: u32,
    /// Set to have the judge explain its answer to the lowest-scoring question.
    pub explain: bool,
    /// Set to let a thinking model think before the verdict. Default: it must not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<bool>,
    /// Maximum number of thinking tokens, in addition to those of the verdict. Only used if `think`
    /// is true.
    #[schemars(range(min = 16, max = 131_072))]
    pub think_tokens: u32,
}

/// Whether a judge is measured before its first verdict.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum JudgeCertificate {
    /// Measures it at its first run.
    #[default]
    Auto,
    /// Never measures it.
    Off,
}

impl JudgeSettings {
    /// Returns the names of the models that judge: those of the panel, or the single one.
    pub fn models(&self) -> Vec<&str> {
        if self.panel.is_empty() {
            vec![self.model.as_str()]
        } else {
            self.panel.iter().map(String::as_str).collect()
        }
    }

    /// Returns the settings for measuring the judge itself: one verdict per answer, without
    /// explanations.
    #[must_use]
    pub fn for_measurement(&self) -> Self {
        Self { explain: false, samples: 1, ..self.clone() }
    }
}

impl Default for JudgeSettings {
    fn default() -> Self {
        Self {
            model: "auto".to_owned(),
            panel: Vec::new(),
            temperature: 0.0,
            max_tokens: 1000,
            max_reasks: 2,
            max_prompt_tokens: 6000,
            method: JudgeMethod::Auto,
            min_auc: 0.55,
            max_wrong: 0.1,
            certificate: JudgeCertificate::Auto,
            max_neither: 0.95,
            samples: 1,
            explain: true,
            think: None,
            think_tokens: DEFAULT_THINK_TOKENS,
        }
    }
}
