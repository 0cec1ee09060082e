//! The judge: takes a neutral transcript and returns a verdict.
//!
//! It never sees the system under test, only its output. The harness computes the overall score
//! itself and never asks a model for it (design: "the judge never grades itself").

pub mod ask;
pub mod bench;
pub mod evidence;
pub mod fitness;
pub mod judge_settings;
pub mod known_answers;
pub mod likelihood;
pub mod panel;
pub mod probability;
pub mod prompt;
pub mod question;
mod quote;
pub mod rule;
mod samples;
pub mod scale;
#[cfg(test)]
mod tests;
pub mod tool_calls;
pub mod verdict;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rubric::Rubric;
use judge_settings::JudgeMethod;
use panel::PanelVerdict;
use probability::{QuestionAnswer, ReadingKind};
use scale::ProbabilityScale;
use selftest_models::CallRecord;
use selftest_models::structured::UnscoredReason;
use selftest_stats::score::Score;

/// Paths of all judge templates under `prompts/`.
pub const TEMPLATES: [&str; 5] = [
    prompt::TEMPLATE,
    probability::TEMPLATE,
    probability::EXPLANATION,
    likelihood::TEMPLATE,
    tool_calls::TEMPLATE,
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
