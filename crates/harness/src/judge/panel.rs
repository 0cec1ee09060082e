//! Several judges of the same answer: a panel.
//!
//! The judges of a panel score independently, and the mean of their scores counts. They are different
//! models: a second call of the same model would agree with itself for the wrong reason.

use std::sync::Arc;

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ask::{Judge, mean_card, no_common_scores};
use super::prompt::JudgeEvidence;
use super::{Judgement, Scorecard, Verdict};
use crate::rubric::{Rubric, SAFETY};
use selftest_models::prompts::PromptLibrary;
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
    unscored.map_or_else(no_common_scores, |judge| judge.verdict.clone())
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
}
