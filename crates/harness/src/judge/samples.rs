//! Combines several verdicts of one judge on one answer. Pure.

use super::{CategoryScore, Scorecard, Verdict};
use crate::rubric::Rubric;
use selftest_models::structured::UnscoredReason;
use selftest_stats::score::Score;

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
