//! The judge's scores of answers that people labelled. Once there are enough, its bounds are chosen on
//! them and no longer on known answers: they are of the cases that it really judges.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::fit::CalibratedJudge;
use crate::judge::Verdict;
use crate::judge::fitness::{JudgeFitness, KnownScore, KnownScores};
use crate::outcome::CaseStep;
use selftest_stats::score::Score;
use selftest_text::digest;

/// Version of the file. Incremented when a key changes its meaning or is removed.
const OWN_SCORES_VERSION: u32 = 1;

/// Minimum number of labels, with or without a reference, for bounds of their own.
pub const MIN_OWN_LABELS: usize = 30;

/// The scores of a judge on a project's own labelled answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnScores {
    /// Version of this format; 1.
    pub version: u32,
    /// The judge that they are of.
    pub judge: CalibratedJudge,
    /// Digest of the scales on which it scored; empty for one that gives verdicts. Scores on other
    /// scales are other numbers.
    pub scales_digest: String,
    /// The scores with the labels.
    pub scores: KnownScores,
}

impl OwnScores {
    /// Creates an empty list.
    pub fn new(judge: CalibratedJudge, fitness: Option<&JudgeFitness>) -> Self {
        Self {
            version: OWN_SCORES_VERSION,
            judge,
            scales_digest: scales_digest(fitness),
            scores: KnownScores::default(),
        }
    }

    /// Returns true if they are of this judge with these scales.
    pub fn are_of(&self, judge: &CalibratedJudge, fitness: Option<&JudgeFitness>) -> bool {
        self.version == OWN_SCORES_VERSION
            && self.judge.difference_from(judge).is_none()
            && self.scales_digest == scales_digest(fitness)
    }

    /// Adds a labelled answer. One without a score of the judge is left out.
    pub fn add(
        &mut self,
        steps: &[CaseStep],
        weight: impl Fn(&str) -> Option<f64>,
        has_reference: bool,
        is_good: bool,
    ) {
        let Some(score) = overall_score(steps, weight) else { return };
        let known = KnownScore { score: score.get(), is_good, is_certain: false };
        let scores = &mut self.scores;
        if has_reference {
            scores.with_reference.push(known);
        } else {
            scores.without_reference.push(known);
        }
    }

    /// Returns true if there are enough for bounds, with or without a reference.
    pub fn are_enough(&self) -> bool {
        let count = |has_reference| self.scores.of(has_reference).len();
        count(true).max(count(false)) >= MIN_OWN_LABELS
    }
}

fn scales_digest(fitness: Option<&JudgeFitness>) -> String {
    let scales = fitness.and_then(|fitness| fitness.scales.as_ref());
    scales.map(|scales| digest::json_sha256_hex(json!(scales))).unwrap_or_default()
}

/// Returns the lowest overall score of the steps, also of those that the judge left undecided. Returns
/// `None` if form decided, or if a step has no score.
fn overall_score(steps: &[CaseStep], weight: impl Fn(&str) -> Option<f64>) -> Option<Score> {
    let each = steps.iter().map(|step| match &step.judgement.as_ref()?.verdict {
        Verdict::Scored(card) => Some(card.overall).filter(|_| !card.is_certain),
        // What lies between the bounds has all its scores.
        Verdict::Unscored { partial, .. } if !partial.is_empty() => {
            let parts = partial.iter().map(|one| Some(weight(&one.category)? * one.score?.get()));
            Score::new(parts.sum::<Option<f64>>()?.clamp(0.0, 1.0)).ok()
        }
        Verdict::Unscored { .. } => None,
    });
    let scores: Vec<Score> = each.collect::<Option<_>>()?;
    scores.into_iter().min_by(|a, b| a.get().total_cmp(&b.get()))
}
