//! The judge: a neutral transcript in, a verdict out.
//!
//! Never sees a system under test, only what it said. Computes the overall score itself and
//! never asks a model for it (design: "the judge never grades itself").

pub mod ask;
pub mod bench;
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
use panel::PanelVerdict;
use probability::{AnsweredBy, QuestionAnswer};
use scale::Scale;
use selftest_models::CallRecord;
use selftest_models::structured::UnscoredReason;
use selftest_stats::score::Score;

/// The templates of all that a judge is asked, paths under `prompts/`.
pub const TEMPLATES: [&str; 5] = [
    prompt::TEMPLATE,
    probability::TEMPLATE,
    probability::EXPLANATION,
    likelihood::TEMPLATE,
    tool_calls::TEMPLATE,
];

/// The score of one category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryScore {
    /// Id of the category, such as `format_score`.
    pub category: String,
    /// `None`: the judge says that it can't tell.
    pub score: Option<Score>,
}

/// Scores of every category, and the overall score that the harness made of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scorecard {
    /// One entry per category, in the rubric's order; all of them have a score.
    pub categories: Vec<CategoryScore>,
    /// `Σ weight · score`.
    pub overall: Score,
    /// The judge's words.
    pub reasoning: String,
    /// The yes/no questions behind the scores; empty of a judge that was asked for a verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<ScoredQuestion>,
}

/// A question with the judge's answer, as a probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoredQuestion {
    /// The question and what was read.
    #[serde(flatten)]
    pub answer: QuestionAnswer,
    /// The probability of yes on the judge's scale.
    pub probability: Score,
}

impl ScoredQuestion {
    /// Whether it is a rule that speaks against the answer.
    fn is_rule_against(&self) -> bool {
        self.answer.by == AnsweredBy::Rule && self.probability.get() < 0.5
    }
}

impl Scorecard {
    /// The scores that answers to questions make on a scale: each category has the probability of
    /// all that the model says of it and of the answer as a whole, and no more than a rule leaves
    /// it: what is seen by rule does not get lost among many questions. None where nothing was read
    /// of a category, or a probability is no number.
    pub fn of_questions(
        rubric: &Rubric,
        answers: Vec<QuestionAnswer>,
        scale: &Scale,
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
            let against = questions.iter().filter(|asked| {
                asked.is_rule_against() && asked.answer.question.category == category.id
            });
            let cap = against.map(|asked| asked.probability.get()).fold(1.0, f64::min);
            let score = Score::new(selftest_stats::sigmoid(log_odds).min(cap)).ok()?;
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
            "Every question gets a yes.".to_owned()
        } else {
            format!("Doubted: {}", each.collect::<Vec<_>>().join(" "))
        };
        Some(Scorecard { categories, overall: Score::weighted(weighted), reasoning, questions })
    }

    /// Whether a rule speaks against the answer.
    pub fn has_rule_against(&self) -> bool {
        self.questions.iter().any(ScoredQuestion::is_rule_against)
    }

    /// The question with the least probability among those that the model is more against than for.
    pub fn most_doubted(&self) -> Option<&ScoredQuestion> {
        let by_model = |asked: &&ScoredQuestion| {
            asked.answer.by == AnsweredBy::Model && asked.probability.get() < 0.5
        };
        let by_probability = |a: &&ScoredQuestion, b: &&ScoredQuestion| {
            a.probability.get().total_cmp(&b.probability.get())
        };
        self.questions.iter().filter(by_model).min_by(by_probability)
    }

    /// Gives a category another score, and the overall score that follows from it.
    pub(crate) fn set(&mut self, rubric: &Rubric, category: &str, score: Score) {
        if let Some(entry) = self.categories.iter_mut().find(|entry| entry.category == category) {
            entry.score = Some(score);
        }
        let weighted = rubric.categories().iter();
        let weighted = weighted.filter_map(|known| Some((known.weight, self.score(&known.id)?)));
        self.overall = Score::weighted(weighted);
    }

    /// Whether the score of a category says something of it: likelihoods are about the answer as a
    /// whole, and a bad answer need not be bad in each category. A judge that answers yes or no was
    /// asked about all of them.
    pub fn is_about(&self, category: &str) -> bool {
        let tells = |asked: &ScoredQuestion| {
            let is_own = asked.answer.question.category == category;
            match asked.answer.by {
                AnsweredBy::Model => true,
                AnsweredBy::Description => is_own,
                AnsweredBy::Rule => is_own && asked.is_rule_against(),
                AnsweredBy::Reference | AnsweredBy::Facts => false,
            }
        };
        self.questions.is_empty() || self.questions.iter().any(tells)
    }

    /// The score of a category, if the rubric has it.
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
        /// Which kind.
        reason: UnscoredReason,
        /// The exact fault, in one line.
        detail: String,
        /// The readable part, such as the scores beside a "can't tell"; for people, never for
        /// the gate.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        partial: Vec<CategoryScore>,
    },
}

impl Verdict {
    /// The scores, if there are any.
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
    /// The verdicts of which it is the mean, in order; empty where the judge was asked once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Verdict>,
    /// The verdict of each judge of a panel, in its order; empty of a judge alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub panel: Vec<PanelVerdict>,
    /// Questions counted in the answer by rule, as told to the judge.
    pub question_count: u32,
    /// Calls in order; more than one when a malformed reply was re-asked.
    pub calls: Vec<CallRecord>,
}
