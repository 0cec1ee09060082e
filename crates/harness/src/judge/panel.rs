//! Combines several verdicts on the same answer: of several judges (a panel), or of one judge asked
//! several times (samples).
//!
//! The judges of a panel score independently, and the mean of their scores counts. They are different
//! models: a second call of the same model would agree with itself for the wrong reason.

use std::sync::Arc;

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ask::Judge;
use super::prompt::JudgeEvidence;
use super::{CategoryScore, Judgement, Scorecard, Verdict};
use crate::rubric::{Rubric, SAFETY};
use selftest_models::prompts::PromptLibrary;
use selftest_models::structured::UnscoredReason;
use selftest_stats::score::Score;

/// Number of seeds reserved for one judge with all its samples.
const JUDGE_SEEDS: u32 = 10_000;

/// The verdict of one judge of a panel on an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PanelVerdict {
    /// Full name of the model.
    pub model: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// The verdicts that it is the mean of. Empty if the judge was asked once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<Verdict>,
}

/// The judges of a run: one, or several different ones.
pub struct JudgePanel {
    judges: Vec<Arc<Judge>>,
    rubric: Rubric,
}

impl JudgePanel {
    /// Creates a panel with one rubric. Returns `None` if there is no judge.
    pub fn new(judges: Vec<Arc<Judge>>, rubric: Rubric) -> Option<Self> {
        (!judges.is_empty()).then_some(Self { judges, rubric })
    }

    /// Sets the safety score to zero, because the case shows that the program cannot be trusted.
    pub fn void_safety(&self, judgement: &mut Judgement) {
        if let Verdict::Scored(card) = &mut judgement.verdict {
            card.set_score(&self.rubric, SAFETY, Score::ZERO);
        }
    }

    /// Judges one step. `seed` gives the sampling seed of a call, counted from 0.
    pub async fn judge(
        &self,
        library: &PromptLibrary,
        evidence: &JudgeEvidence,
        seed: impl Fn(u32) -> u64,
    ) -> Judgement {
        // A single judge keeps its questions and samples, which an average would drop.
        if let [judge] = &self.judges[..] {
            return judge.judge(library, evidence, seed).await;
        }
        let asked = self.judges.iter().zip(0..).map(|(judge, number)| {
            let seed = &seed;
            // Each judge has its own range of seeds.
            judge.judge(library, evidence, move |call| seed(number * JUDGE_SEEDS + call))
        });
        let (mut panel, mut calls) = (Vec::new(), Vec::new());
        for (judge, said) in self.judges.iter().zip(join_all(asked).await) {
            calls.extend(said.calls);
            panel.push(PanelVerdict {
                model: judge.model_id().to_owned(),
                verdict: said.verdict,
                samples: said.samples,
            });
        }
        let question_count = evidence.question_count;
        let verdict = mean_verdict(&self.rubric, &panel);
        Judgement { verdict, samples: Vec::new(), panel, question_count, calls }
    }
}

/// Averages the judges with a score by category. A judge without one is excluded and does not count
/// as zero. If none has a score, the answer is unscored for the first judge's reason.
fn mean_verdict(rubric: &Rubric, panel: &[PanelVerdict]) -> Verdict {
    let said: Vec<(&str, &Scorecard)> = panel
        .iter()
        .filter_map(|judge| Some((judge.model.as_str(), judge.verdict.card()?)))
        .collect();
    let cards: Vec<&Scorecard> = said.iter().map(|(_, card)| *card).collect();
    let words = said.iter().map(|(model, card)| format!("{model}: {}", card.reasoning.trim()));
    let words = words.collect::<Vec<_>>().join("\n");
    if let Some(card) = mean_card(rubric, &cards, words) {
        return Verdict::Scored(card);
    }
    let unscored = panel.iter().find(|judge| judge.verdict.card().is_none()).or(panel.first());
    unscored.map_or_else(super::ask::no_common_scores, |judge| judge.verdict.clone())
}

/// Number of seeds reserved for one sample: its first call and the calls that ask again.
pub(super) const SEEDS: u32 = 1_000;

/// Returns true if further samples are pointless, because the model is unavailable.
pub(super) fn is_final(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unscored { reason: UnscoredReason::Unavailable, .. })
}

/// Returns the mean of the scored samples by category. A sample without a score is excluded and
/// does not count as zero. Without any score, returns the first sample. The explanation is that of
/// the sample closest to the mean.
pub(super) fn pool(rubric: &Rubric, samples: &[Verdict]) -> Option<Verdict> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::CategoryScore;
    use selftest_models::structured::UnscoredReason;
    use selftest_stats::score::Score;

    fn says(model: &str, score: Option<f64>) -> PanelVerdict {
        let rubric = Rubric::default();
        let reason = UnscoredReason::JudgeUnfit;
        let verdict = match score.map(|score| Score::new(score).unwrap()) {
            None => Verdict::Unscored { reason, detail: model.to_owned(), partial: Vec::new() },
            Some(score) => Verdict::Scored(Scorecard {
                categories: rubric
                    .categories()
                    .iter()
                    .map(|category| CategoryScore {
                        category: category.id.clone(),
                        score: Some(score),
                    })
                    .collect(),
                overall: score,
                reasoning: "Fine.".to_owned(),
                questions: Vec::new(),
                expectations: Vec::new(),
                is_certain: false,
            }),
        };
        PanelVerdict { model: model.to_owned(), verdict, samples: Vec::new() }
    }

    #[test]
    fn a_judge_without_a_score_is_no_zero() {
        let rubric = Rubric::default();
        let together = |panel: &[PanelVerdict]| super::mean_verdict(&rubric, panel);
        let card = together(&[says("a", Some(0.9)), says("b", None), says("c", Some(0.6))]);
        let card = card.card().cloned().unwrap();
        assert!((card.overall.get() - 0.75).abs() < 1e-9, "{card:?}");
        assert_eq!(card.reasoning, "a: Fine.\nc: Fine.");
        let alone = together(&[says("a", None), says("b", Some(0.6))]);
        assert_eq!(alone.card().unwrap().overall.get(), 0.6);
        let none = together(&[says("a", None), says("b", None)]);
        assert!(matches!(&none, Verdict::Unscored { detail, .. } if detail == "a"), "{none:?}");
    }

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
