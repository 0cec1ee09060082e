//! Extracts regression features from a judge's verdict: the log-odds of every category, and of the
//! question with the lowest probability.

use crate::judge::{Scorecard, Verdict};
use crate::outcome::CaseStep;

/// Minimum distance of probabilities from 0 and 1: a judge that says 1.00 is not infinitely sure.
const EDGE: f64 = 0.02;

/// Name of the feature for the lowest probability.
const LEAST: &str = "least";

/// Returns the names of the features, in order.
pub fn names(card: &Scorecard) -> Vec<String> {
    let categories = card.categories.iter().map(|entry| entry.category.clone());
    categories.chain([LEAST.to_owned()]).collect()
}

/// Returns the features of a score card, or `None` if a category has no score.
pub fn values(card: &Scorecard) -> Option<Vec<f64>> {
    let categories: Vec<f64> =
        card.categories.iter().map(|entry| Some(entry.score?.get())).collect::<Option<_>>()?;
    // A judge that gives verdicts asks no questions: its lowest score is used instead.
    let questions = card.questions.iter().map(|asked| asked.probability.get());
    let least = questions.chain(categories.iter().copied()).fold(1.0, f64::min);
    Some(categories.into_iter().chain([least]).map(log_odds).collect())
}

/// Returns the score card of the step that decides a case: the one with the lowest overall score. What
/// form decided says nothing of the judge.
pub fn deciding_card(steps: &[CaseStep]) -> Option<&Scorecard> {
    let cards = steps.iter().filter_map(|step| match &step.judgement.as_ref()?.verdict {
        Verdict::Scored(card) => Some(card).filter(|card| !card.is_certain),
        Verdict::Unscored { .. } => None,
    });
    cards.min_by(|a, b| a.overall.get().total_cmp(&b.overall.get()))
}

fn log_odds(probability: f64) -> f64 {
    let inner = probability.clamp(EDGE, 1.0 - EDGE);
    (inner / (1.0 - inner)).ln()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::judge::{CategoryScore, Judgement};
    use crate::outcome::StepKind;
    use crate::rubric::Rubric;
    use selftest_checks::scenario::TaskStatus;
    use selftest_stats::score::Score;

    fn card(scores: [f64; 4]) -> Scorecard {
        let rubric = Rubric::default();
        let categories = rubric.categories().iter().zip(scores).map(|(category, score)| {
            CategoryScore { category: category.id.clone(), score: Score::new(score).ok() }
        });
        Scorecard {
            categories: categories.collect(),
            overall: Score::new(scores.into_iter().fold(1.0, f64::min)).unwrap(),
            reasoning: String::new(),
            questions: Vec::new(),
            expectations: Vec::new(),
            is_certain: false,
        }
    }

    /// A step with these scores.
    pub(in crate::calibration) fn step(scores: [f64; 4]) -> CaseStep {
        let verdict = Verdict::Scored(card(scores));
        CaseStep {
            kind: StepKind::Answer,
            input: "Explain x".to_owned(),
            expected_status: TaskStatus::Complete,
            reply: None,
            written: Vec::new(),
            judgement: Some(Judgement {
                verdict,
                samples: Vec::new(),
                panel: Vec::new(),
                question_count: 0,
                calls: Vec::new(),
            }),
            duration_ms: 1,
        }
    }

    #[test]
    fn a_verdict_in_numbers() {
        let card = card([0.5, 1.0, 0.9, 0.2]);
        let found = values(&card).unwrap();
        assert_eq!(found.len(), names(&card).len());
        assert_eq!(found[0], 0.0);
        assert!((found[1] - (0.98_f64 / 0.02).ln()).abs() < 1e-12, "{found:?}");
        assert_eq!(found[4], found[3], "the lowest score is the greatest doubt");
        assert_eq!(names(&card)[4], LEAST);
    }

    #[test]
    fn the_weakest_step_decides() {
        let steps = [step([0.9; 4]), step([0.3; 4]), step([0.7; 4])];
        assert_eq!(deciding_card(&steps).unwrap().overall.get(), 0.3);
        assert_eq!(deciding_card(&[]), None);
    }
}
