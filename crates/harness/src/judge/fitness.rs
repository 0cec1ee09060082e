//! A judge's fitness: how reliably it tells good answers from bad, as measured on known answers.
//! Plain data and its rules; the measuring is in `bench`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::JudgeMethod;
use super::known_answers::AnswerSet;
use super::scale::JudgeScales;
use selftest_stats::score::{Score, Threshold};
use selftest_stats::{RISK_CONFIDENCE, RiskBounds};

/// A share or an area with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalEstimate {
    /// The value, 0 to 1.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl std::fmt::Display for IntervalEstimate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:.2} [{:.2}, {:.2}]", self.value, self.low, self.high)
    }
}

/// The measurement of a judge on known answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeFitness {
    /// Full name of the model.
    pub model: String,
    /// How it was asked.
    pub method: JudgeMethod,
    /// The set of answers that it was measured on.
    pub set: AnswerSet,
    /// Number of scored answers.
    pub scored: u32,
    /// Number of answers without a score.
    pub unscored: u32,
    /// Mean wall time per answer in seconds.
    pub seconds_per_answer: f64,
    /// Area under the ROC curve of the scores, each by a fit on the answers to other requests. Absent
    /// if it has no interval.
    pub auc: Option<IntervalEstimate>,
    /// AUC of the model's own readings, without rules. Absent for a judge that gives verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_auc: Option<IntervalEstimate>,
    /// AUC for cases without a reference. Absent for a judge that gives verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_auc: Option<IntervalEstimate>,
    /// AUC of the overlap of words with the reference on the same answers: what costs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_auc: Option<f64>,
    /// Scales from readings to probabilities, fitted on the calibration set. Absent for a judge
    /// that gives verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scales: Option<JudgeScales>,
    /// Scores that decide cases with a reference in this run. Absent if all of them do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_reference: Option<DecisionBand>,
    /// Scores that decide cases without a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_reference: Option<DecisionBand>,
    /// The reason why the judge is unfit by the requirements of this run. Absent if it is fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// The reason why it is unfit for cases without a reference. Absent if it is fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit_without_reference: Option<String>,
}

/// Minimum requirements for a judge to count.
#[derive(Debug, Clone, Copy)]
pub struct FitnessRequirement {
    /// Minimum lower end of its AUC's interval, `judge.min_auc`.
    pub min_auc: f64,
    /// Maximum share of wrong verdicts among passes, and among fails, `judge.max_wrong`.
    pub max_wrong: f64,
    /// Minimum overall score that passes.
    pub threshold: Threshold,
}

/// The scores at which a judge decides; between the bounds it abstains. Bounds are chosen on known
/// answers, such that of its passes and of its fails at most a given share is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionBand {
    /// Minimum overall score that passes. Absent if the judge passes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes_from: Option<f64>,
    /// Overall scores below this fail. Absent if the judge fails nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fails_below: Option<f64>,
    /// Maximum share of wrong verdicts on each side.
    pub max_wrong: f64,
    /// Number of known answers that are decided, by the bounds or without a judge.
    pub decided: u32,
    /// Number of those that are certain without a judge.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub certain: u32,
    /// Number of known answers.
    pub of: u32,
    /// True if they are labelled answers of the project's own cases.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
}

/// What the scores of a judge rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScoreSource {
    /// A model, with rules or without.
    Model,
    /// Rules alone, because no reading of the model has a weight.
    RulesAlone {
        /// True if they have a reference to compare the answer with.
        has_reference: bool,
    },
}

impl ScoreSource {
    /// Returns what scores on these scales rest on. A judge without scales gives verdicts itself.
    pub fn of(scales: Option<&JudgeScales>, has_reference: bool) -> Self {
        let Some(scales) = scales else { return Self::Model };
        // A reading that does not separate good from bad answers has no weight in the scale at all.
        let kinds = scales.of(has_reference).weights.keys();
        if kinds.clone().all(|kind| kind.is_rule()) {
            Self::RulesAlone { has_reference }
        } else {
            Self::Model
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl DecisionBand {
    /// Chooses the bounds on known scores, without answers that form decides: a project may have none
    /// of them. An answer that passes also reaches the threshold, and one that fails does not.
    ///
    /// Rules find faults; that they find none is no proof, however often it was true of known answers.
    /// So scores of rules alone pass nothing. Without a reference they fail nothing either: what
    /// looks like a fault beside an excerpt is often new and right, as in code. On held-out answers a
    /// fifth of such verdicts were wrong, however strict the bound.
    pub fn choose(
        known: &[KnownScore],
        source: ScoreSource,
        max_wrong: f64,
        threshold: Threshold,
    ) -> Self {
        // Answers that form decides would make the judge look better than it is on those that only
        // it decides.
        let judged = known.iter().filter(|known| !known.is_certain);
        let judged: Vec<(f64, bool)> = judged.map(|known| (known.score, known.is_good)).collect();
        let mut bounds = RiskBounds::fit(&judged, max_wrong);
        if let ScoreSource::RulesAlone { has_reference } = source {
            bounds.passes_from = None;
            bounds.fails_below = bounds.fails_below.filter(|_| has_reference);
        }
        // Both sides are clamped to the run's threshold, so that no verdict contradicts the
        // displayed score.
        let least = threshold.get();
        let mut band = Self {
            passes_from: bounds.passes_from.map(|bound| bound.max(least)),
            fails_below: bounds.fails_below.map(|bound| bound.min(least)),
            max_wrong,
            decided: 0,
            certain: 0,
            of: u32::try_from(known.len()).unwrap_or(u32::MAX),
            is_own: false,
        };
        let count = |is: fn(&Self, &KnownScore) -> bool| {
            let count = known.iter().filter(|known| is(&band, known)).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let decided = count(|band, known| band.verdict_on(known).is_some());
        band.certain = count(|_, known| known.is_certain);
        band.decided = decided;
        band
    }

    /// Chooses the bounds on labelled answers of a project's own cases, if there are at least `least`.
    pub fn of_own_labels(
        labelled: &[KnownScore],
        source: ScoreSource,
        bar: FitnessRequirement,
        least: usize,
    ) -> Option<Self> {
        // Counted on the project's own answers, rules are worth what they are worth there.
        let source = match source {
            ScoreSource::RulesAlone { .. } => ScoreSource::RulesAlone { has_reference: true },
            ScoreSource::Model => source,
        };
        let band = Self::choose(labelled, source, bar.max_wrong, bar.threshold);
        (labelled.len() >= least).then_some(Self { is_own: true, ..band })
    }

    /// Returns true if an answer passes, or `None` if the judge abstains.
    pub fn verdict(self, score: Score) -> Option<bool> {
        let score = score.get();
        if self.passes_from.is_some_and(|bound| score >= bound) {
            return Some(true);
        }
        // Between the bounds it abstains: the share of wrong verdicts there is above the promise.
        self.fails_below.is_some_and(|bound| score < bound).then_some(false)
    }

    /// Returns true if a known answer passes, or `None` if it is not decided.
    pub fn verdict_on(self, known: &KnownScore) -> Option<bool> {
        if known.is_certain {
            return Some(known.score > 0.5);
        }
        self.verdict(Score::new(known.score).ok()?)
    }

    /// Returns true if the judge decides something.
    pub fn decides_anything(self) -> bool {
        self.passes_from.is_some() || self.fails_below.is_some()
    }

    /// Returns the promise: `decides 46 % of known answers; of its passes and of its fails at most
    /// 10 % are wrong (80 %, n = 240)`.
    pub fn promise(self) -> String {
        let share = |count: u32| 100.0 * f64::from(count) / f64::from(self.of.max(1));
        let certain = match share(self.certain) {
            less if less < 0.5 => String::new(),
            share => format!(" ({share:.0} % by form)"),
        };
        let share = share(self.decided);
        let only = match (self.passes_from, self.fails_below) {
            (Some(_), Some(_)) => "of its passes and of its fails",
            (Some(_), None) => "its scores only pass answers; of its passes",
            (None, Some(_)) => "its scores only fail answers; of its fails",
            (None, None) if self.certain > 0 => return "decides only what form decides".to_owned(),
            (None, None) => return "decides nothing".to_owned(),
        };
        let known = if self.is_own { "its labelled answers" } else { "known answers" };
        format!(
            "decides {share:.0} % of {known}{certain}; {only} at most {:.0} % are wrong ({:.0} %, n = {})",
            100.0 * self.max_wrong,
            100.0 * RISK_CONFIDENCE,
            // The bounds were fitted on these answers only.
            self.of - self.certain
        )
    }

    /// Returns the bounds as a sentence.
    pub fn sentence(self) -> String {
        match (self.passes_from, self.fails_below) {
            (Some(pass), Some(fail)) => {
                format!("it decides from {pass:.2} on and below {fail:.2}")
            }
            (Some(pass), None) => format!("it decides from {pass:.2} on"),
            (None, Some(fail)) => format!("it decides below {fail:.2}"),
            (None, None) => "it decides nothing".to_owned(),
        }
    }
}

/// The overall score of a known answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KnownScore {
    /// The score, by a fit on the answers to other requests.
    pub score: f64,
    /// True if the answer is good.
    pub is_good: bool,
    /// True if the answer is decided without a judge: the score is 0 or 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_certain: bool,
}

/// The scores of all scored known answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownScores {
    /// Scores of the answers to cases with a reference.
    pub with_reference: Vec<KnownScore>,
    /// Scores as if no case had a reference.
    pub without_reference: Vec<KnownScore>,
}

impl KnownScores {
    /// Returns true if nothing was scored.
    pub fn is_empty(&self) -> bool {
        self.with_reference.is_empty() && self.without_reference.is_empty()
    }

    /// Returns the scores with or without a reference.
    pub fn of(&self, has_reference: bool) -> &[KnownScore] {
        if has_reference { &self.with_reference } else { &self.without_reference }
    }
}

impl JudgeFitness {
    /// Returns the fitness of a judge of which nothing is known. It decides nothing.
    pub fn unmeasured(model: &str, method: JudgeMethod) -> Self {
        let why = "it was not measured".to_owned();
        Self {
            model: model.to_owned(),
            method,
            set: AnswerSet::Certificate,
            scored: 0,
            unscored: 0,
            seconds_per_answer: 0.0,
            auc: None,
            model_auc: None,
            bare_auc: None,
            overlap_auc: None,
            scales: None,
            with_reference: None,
            without_reference: None,
            unfit: Some(why.clone()),
            unfit_without_reference: Some(why),
        }
    }

    /// Evaluates the measurement against the requirements of this run.
    ///
    /// A judge counts if the lower end of its AUC reaches the minimum and is above the overlap of
    /// words, and if some of its scores keep the promise of `max_wrong`. A model whose readings do not
    /// differ between good and bad answers has no weight: rules alone decide then, within their own
    /// promise. Too few answers for an interval do not disqualify a judge, but then no score keeps the
    /// promise. With `min_auc` 0 every judge counts, with all its scores.
    #[must_use]
    pub fn evaluate(self, bar: FitnessRequirement, scores: &KnownScores) -> Self {
        // `judge.min_auc: 0` turns the requirement off: every score decides.
        if bar.min_auc <= 0.0 {
            return Self {
                with_reference: None,
                without_reference: None,
                unfit: None,
                unfit_without_reference: None,
                ..self
            };
        }
        let band = |has_reference| {
            let source = self.score_source(has_reference);
            DecisionBand::choose(scores.of(has_reference), source, bar.max_wrong, bar.threshold)
        };
        let (with, without) = (band(true), band(false));
        // A judge that does not separate answers at all is unfit for both kinds of cases.
        let general = self.unfit_reason(bar);
        let of = |band: DecisionBand, what: &str| {
            (!band.decides_anything()).then(|| {
                format!(
                    "no score decides{what} with at most {:.0} % wrong verdicts (judge.max_wrong)",
                    100.0 * bar.max_wrong
                )
            })
        };
        let bare = self.bare_auc.filter(|auc| auc.low < bar.min_auc).map(|auc| {
            format!("AUC {auc} without a reference; judge.min_auc is {:.2}", bar.min_auc)
        });
        Self {
            with_reference: Some(with),
            without_reference: Some(without),
            unfit: general.clone().or_else(|| of(with, "")),
            unfit_without_reference: general.or(bare).or_else(|| {
                // Rules alone are not unfit there: they say nothing, as between bounds.
                let is_model = self.score_source(false) == ScoreSource::Model;
                is_model.then(|| of(without, " without a reference")).flatten()
            }),
            ..self
        }
    }

    /// Chooses the bounds on labelled answers of the project's own cases, with or without a reference,
    /// where there are at least `least` of them. They say more of its cases than known answers do, and
    /// may make a judge fit or unfit. A judge whose scores all count has no bounds.
    #[must_use]
    pub fn with_own_labels(self, bar: FitnessRequirement, own: &KnownScores, least: usize) -> Self {
        let band = |has_reference| {
            let source = self.score_source(has_reference);
            DecisionBand::of_own_labels(own.of(has_reference), source, bar, least)
        };
        let why = |band: DecisionBand| {
            (!band.decides_anything()).then(|| {
                format!(
                    "no score decides with at most {:.0} % wrong verdicts on {} labelled answers",
                    100.0 * bar.max_wrong,
                    band.of
                )
            })
        };
        let bands = (bar.min_auc > 0.0).then(|| (band(true), band(false)));
        let mut fitness = self;
        if let Some((with, without)) = bands {
            if let Some(band) = with {
                (fitness.with_reference, fitness.unfit) = (Some(band), why(band));
            }
            if let Some(band) = without {
                fitness.without_reference = Some(band);
                // The reason is replaced even by none: own labels may make an unfit judge fit.
                fitness.unfit_without_reference = why(band);
            }
        }
        fitness
    }

    /// Returns the bounds for such a case; `None` if every score decides.
    pub fn band(&self, has_reference: bool) -> Option<DecisionBand> {
        if has_reference { self.with_reference } else { self.without_reference }
    }

    /// Returns the reason why the judge is unfit for such a case.
    pub fn unfit_reason_for(&self, has_reference: bool) -> Option<&str> {
        if has_reference { self.unfit.as_deref() } else { self.unfit_without_reference.as_deref() }
    }

    fn unfit_reason(&self, bar: FitnessRequirement) -> Option<String> {
        let auc = self.auc?;
        if auc.low < bar.min_auc {
            return Some(format!("{}; judge.min_auc is {:.2}", self.sentence(), bar.min_auc));
        }
        // A model that sees no more than shared words do is not worth its calls.
        let overlap = self.overlap_auc.filter(|overlap| auc.low <= *overlap)?;
        Some(format!(
            "AUC {auc} is no better than the overlap of words with the reference, {overlap:.2}"
        ))
    }

    /// Returns what the scores of cases with or without a reference rest on.
    pub fn score_source(&self, has_reference: bool) -> ScoreSource {
        ScoreSource::of(self.scales.as_ref(), has_reference)
    }

    /// Returns true if no reading of the model has a weight.
    pub fn decides_by_rules_alone(&self) -> bool {
        self.scales.as_ref().is_some_and(|scales| {
            let all =
                scales.with_reference.weights.keys().chain(scales.without_reference.weights.keys());
            all.clone().count() > 0 && all.clone().all(|kind| kind.is_rule())
        })
    }

    /// Returns the sentence with the promise, if there is one.
    pub fn summary(&self) -> String {
        let alone = if self.decides_by_rules_alone() {
            let auc = self.model_auc.map(|auc| format!(" (AUC {auc})")).unwrap_or_default();
            format!("; the model's readings do not differ{auc}, so that rules alone decide")
        } else {
            String::new()
        };
        match self.with_reference {
            Some(band) => format!("{}; it {}{alone}", self.sentence(), band.promise()),
            None => self.sentence() + &alone,
        }
    }

    /// Returns the measurement with the ranking on other answers, if it is worse there. What the judge
    /// decides by stays.
    #[must_use]
    pub fn or_worse(self, other: &Self) -> Self {
        let area = |fitness: &Self| fitness.auc.map(|auc| auc.value);
        if area(other).zip(area(&self)).is_none_or(|(other, own)| other >= own) {
            return self;
        }
        Self {
            set: other.set,
            scored: other.scored,
            unscored: other.unscored,
            auc: other.auc,
            model_auc: other.model_auc,
            bare_auc: other.bare_auc,
            overlap_auc: other.overlap_auc,
            ..self
        }
    }

    /// Returns a sentence for reports: `AUC 0.78 [0.73, 0.83] on 315 known answers, where word
    /// overlap has 0.52`.
    pub fn sentence(&self) -> String {
        let unscored = match self.unscored {
            0 => String::new(),
            count => format!(" ({count} more without a score)"),
        };
        let overlap = self.overlap_auc.map(|auc| format!(", where word overlap has {auc:.2}"));
        let overlap = overlap.unwrap_or_default();
        let answers = match self.set {
            AnswerSet::HeldOut => "held-out answers",
            AnswerSet::Calibration | AnswerSet::Certificate => "known answers",
        };
        match self.auc {
            Some(auc) => {
                format!("AUC {auc} on {} {answers}{unscored}{overlap}", self.scored)
            }
            None => format!("too few scores on {answers}: {}{unscored}", self.scored),
        }
    }
}

#[cfg(test)]
mod tests {
    use selftest_stats::score::Strictness;

    use super::*;

    fn threshold() -> Threshold {
        Threshold::effective(Score::new(0.6).unwrap(), Strictness::new(0.7).unwrap())
    }

    fn fitness(low: f64) -> JudgeFitness {
        JudgeFitness {
            model: "m".into(),
            method: JudgeMethod::Probability,
            set: AnswerSet::Calibration,
            scored: 158,
            unscored: 2,
            seconds_per_answer: 1.0,
            auc: Some(IntervalEstimate { value: 0.8, low, high: 0.9 }),
            model_auc: None,
            bare_auc: None,
            overlap_auc: Some(0.55),
            scales: None,
            with_reference: None,
            without_reference: None,
            unfit: None,
            unfit_without_reference: None,
        }
    }

    /// Scores of 80 good answers, 80 bad ones, and 40 between that are as often good as bad.
    fn scores() -> KnownScores {
        let known = |score: f64, is_good| KnownScore { score, is_good, is_certain: false };
        let mut all: Vec<KnownScore> =
            (0..80).flat_map(|_| [known(0.9, true), known(0.1, false)]).collect();
        all.extend((0..40).map(|step| known(0.5, step % 2 == 0)));
        KnownScores { with_reference: all.clone(), without_reference: all }
    }

    fn bar() -> FitnessRequirement {
        FitnessRequirement { min_auc: 0.6, max_wrong: 0.1, threshold: threshold() }
    }

    #[test]
    fn the_worse_ranking_is_stated() {
        let ranked = |set, value, scored| {
            let auc = Some(IntervalEstimate { value, low: value - 0.06, high: value + 0.06 });
            JudgeFitness { set, scored, unscored: 0, auc, ..fitness(0.7) }
        };
        let known = ranked(AnswerSet::Calibration, 0.8, 400);
        let worse = known.clone().or_worse(&ranked(AnswerSet::HeldOut, 0.7, 300));
        assert_eq!(
            worse.sentence(),
            "AUC 0.70 [0.64, 0.76] on 300 held-out answers, where word overlap has 0.55"
        );
        let better = known.clone().or_worse(&ranked(AnswerSet::HeldOut, 0.9, 300));
        assert_eq!(better, known);
        let unranked = JudgeFitness { auc: None, ..ranked(AnswerSet::HeldOut, 0.7, 3) };
        assert_eq!(known.clone().or_worse(&unranked), known);
    }

    #[test]
    fn the_lower_end_decides() {
        let unfit = |fitness: JudgeFitness| fitness.evaluate(bar(), &scores()).unfit;
        assert_eq!(unfit(fitness(0.7)), None);
        assert!(unfit(fitness(0.59)).unwrap().ends_with("; judge.min_auc is 0.60"));
        assert!(
            unfit(JudgeFitness { overlap_auc: Some(0.7), ..fitness(0.7) })
                .unwrap()
                .contains("no better than the overlap of words")
        );
        let bare_auc = Some(IntervalEstimate { value: 0.6, low: 0.5, high: 0.7 });
        let leaning = JudgeFitness { bare_auc, ..fitness(0.7) }.evaluate(bar(), &scores());
        assert_eq!(leaning.unfit_reason_for(true), None);
        assert!(leaning.unfit_reason_for(false).unwrap().contains("without a reference"));
        let any = fitness(0.1)
            .evaluate(FitnessRequirement { min_auc: 0.0, ..bar() }, &KnownScores::default());
        assert_eq!((any.unfit_reason_for(true), any.band(true)), (None, None));
        assert_eq!(
            fitness(0.7).sentence(),
            "AUC 0.80 [0.70, 0.90] on 158 known answers (2 more without a score), where word \
             overlap has 0.55"
        );
    }

    #[test]
    fn own_labels_replace_the_bounds_where_they_are_enough() {
        let known = fitness(0.7).evaluate(bar(), &scores());
        // On this project's cases its high scores are worth nothing.
        let known_score = |score, is_good| KnownScore { score, is_good, is_certain: false };
        let labelled: Vec<KnownScore> = (0..40)
            .flat_map(|step| [known_score(0.9, step % 2 == 0), known_score(0.1, false)])
            .collect();
        let own = KnownScores { with_reference: labelled, without_reference: Vec::new() };
        let bounded = known.clone().with_own_labels(bar(), &own, 30);
        let band = bounded.band(true).unwrap();
        assert_eq!((band.passes_from, band.of, band.is_own), (None, 80, true));
        assert!(band.fails_below.is_some_and(|bound| bound > 0.1 && bound < 0.2), "{band:?}");
        assert_eq!(
            band.promise(),
            "decides 50 % of its labelled answers; its scores only fail answers; of its fails at \
             most 10 % are wrong (80 %, n = 80)"
        );
        assert_eq!(bounded.band(false), known.band(false), "without a reference there are none");
        assert_eq!(known.clone().with_own_labels(bar(), &own, 81), known, "too few");
        let bad: Vec<KnownScore> = (0..40).map(|step| known_score(0.5, step % 2 == 0)).collect();
        let own = KnownScores { with_reference: bad, without_reference: Vec::new() };
        let unfit = known.with_own_labels(bar(), &own, 30);
        assert_eq!(
            unfit.unfit_reason_for(true),
            Some("no score decides with at most 10 % wrong verdicts on 40 labelled answers")
        );
        assert_eq!(unfit.unfit_reason_for(false), None);
    }

    #[test]
    fn what_is_certain_counts_apart_from_scores() {
        let mut known = scores();
        known.with_reference.extend((0..50).map(|_| KnownScore {
            score: 1.0,
            is_good: true,
            is_certain: true,
        }));
        let band = DecisionBand::choose(known.of(true), ScoreSource::Model, 0.1, threshold());
        assert_eq!((band.decided, band.certain, band.of), (210, 50, 250));
        assert!(band.promise().ends_with("(80 %, n = 200)"), "{}", band.promise());
        assert!(band.promise().starts_with("decides 84 % of known answers (20 % by form); of its"));
        let of_rules = |has_reference| {
            let source = ScoreSource::RulesAlone { has_reference };
            DecisionBand::choose(known.of(true), source, 0.1, threshold())
        };
        assert!(!of_rules(false).decides_anything());
        let rules = of_rules(true);
        assert_eq!((rules.passes_from, rules.certain, rules.decided), (None, 50, 130));
        // A judge that gives everything the best score has shown nothing.
        let all: Vec<KnownScore> = (0..80)
            .map(|step| KnownScore { score: 1.0, is_good: step % 2 == 0, is_certain: false })
            .collect();
        let band = DecisionBand::choose(&all, ScoreSource::Model, 0.1, threshold());
        assert_eq!(band.verdict(Score::new(1.0).unwrap()), None);
    }

    #[test]
    fn between_the_bounds_a_judge_abstains() {
        let fitness = fitness(0.7).evaluate(bar(), &scores());
        let band = fitness.band(true).unwrap();
        let verdict = |score: f64| band.verdict(Score::new(score).unwrap());
        assert_eq!(verdict(0.9), Some(true));
        assert_eq!(verdict(0.5), None);
        assert_eq!(verdict(0.05), Some(false));
        assert_eq!((verdict(0.0), verdict(1.0)), (Some(false), Some(true)));
        assert_eq!(
            band.promise(),
            "decides 80 % of known answers; of its passes and of its fails at most 10 % are wrong \
             (80 %, n = 200)"
        );
        // A pass reaches the threshold too.
        assert!(band.passes_from.unwrap() >= threshold().get());
        let nothing = fitness.evaluate(bar(), &KnownScores::default());
        assert!(nothing.unfit.unwrap().starts_with("no score decides with at most 10 %"));
    }
}
