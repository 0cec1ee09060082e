//! Measures a judge on answers of known quality. Prints nothing; a callback receives each answer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::ask::Judge;
use super::fitness::{
    DecisionBand, DecisionCounts, IntervalEstimate, JudgeFitness, KnownScore, KnownScores,
    QuickCheck,
};
use super::judge_settings::JudgeMethod;
use super::known_answers::{AnswerFault, AnswerSet, Attack, KnownCase};
use super::probability::{AnsweredBy, QuestionAnswer};
use super::prompt::JudgeEvidence;
use super::scale::{JudgeScales, KnownReading, ProbabilityScale};
use super::{Judgement, Scorecard, Verdict};
use crate::rubric::Rubric;
use selftest_checks::check::questions::count_questions;
use selftest_checks::scenario::GeneratedCase;
use selftest_checks::scenario::TaskStatus;
use selftest_models::prompts::PromptLibrary;
use selftest_stats::score::{Score, Threshold};
use selftest_stats::{auc, wilson};

/// A judge's verdict on one known answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BenchAnswer {
    /// Id of its case.
    pub case: String,
    /// Text of the answer.
    pub text: String,
    /// Two-letter language code.
    pub language: String,
    /// The fault of a bad answer. Absent for a good one.
    pub fault: Option<AnswerFault>,
    /// The verdict, with its calls.
    pub judgement: Judgement,
    /// Wall time.
    pub duration: Duration,
}

impl BenchAnswer {
    fn is_good(&self) -> bool {
        self.fault.is_none()
    }

    pub(super) fn overall(&self) -> Option<f64> {
        match &self.judgement.verdict {
            Verdict::Scored(card) => Some(card.overall.get()),
            Verdict::Unscored { .. } => None,
        }
    }

    fn answers(&self) -> impl Iterator<Item = &QuestionAnswer> {
        let card = self.judgement.verdict.card();
        card.into_iter().flat_map(|card| &card.questions).map(|question| &question.answer)
    }

    /// Returns the mean reading of each kind, or `None` if the answer has no score or was judged by
    /// verdict.
    fn reading(&self) -> Option<KnownReading> {
        let mut all = BTreeMap::<AnsweredBy, Vec<f64>>::new();
        for answer in self.answers().filter(|answer| answer.by != AnsweredBy::Rule) {
            all.entry(answer.by).or_default().push(answer.relative);
        }
        let means = all.into_iter().filter_map(|(by, all)| Some((by, selftest_stats::mean(&all)?)));
        let read: BTreeMap<_, _> = means.collect();
        (!read.is_empty()).then_some(KnownReading { read, is_good: self.is_good() })
    }
}

/// The numbers of one measurement.
#[derive(Debug, Clone, Serialize)]
pub struct BenchReport {
    /// The part shown in reports.
    #[serde(flatten)]
    pub fitness: JudgeFitness,
    /// Minimum overall score that counts as a pass in this measurement.
    pub threshold: Threshold,
    /// Share of good answers that pass.
    pub true_positive_rate: Option<IntervalEstimate>,
    /// Share of bad answers that fail.
    pub true_negative_rate: Option<IntervalEstimate>,
    /// The same shares over the answers that the judge decides. Absent for a judge that gives
    /// verdicts.
    pub sure: Option<DecidedRates>,
    /// Results by fault.
    pub faults: Vec<FaultReport>,
    /// Mean number of prompt tokens per answer over all questions; cached prefixes count every
    /// time.
    pub tokens_per_answer: f64,
}

/// How often a judge decides, and how often it is right.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DecidedRates {
    /// Share of good answers that it decides.
    pub good_decided: Option<IntervalEstimate>,
    /// Share of passes among these.
    pub good_right: Option<IntervalEstimate>,
    /// Share of bad answers that it decides.
    pub bad_decided: Option<IntervalEstimate>,
    /// Share of fails among these.
    pub bad_right: Option<IntervalEstimate>,
}

/// Detection of one kind of fault.
#[derive(Debug, Clone, Serialize)]
pub struct FaultReport {
    /// The fault.
    pub fault: AnswerFault,
    /// Scored bad answers with this fault.
    pub answers: u32,
    /// Number of them that fail.
    pub caught: u32,
    /// Area under the ROC curve against all good answers.
    pub auc: Option<f64>,
}

/// The result of one shape of attack.
#[derive(Debug, Clone, Serialize)]
pub struct AttackReport {
    /// The shape.
    pub shape: String,
    /// Scored attempts.
    pub attempts: u32,
    /// Attempts that turned a failing answer into a passing one.
    pub successes: u32,
    /// Mean change of the overall score.
    pub lift: f64,
}

/// Returns the evidence that the judge receives for a known answer.
pub(super) fn evidence(known: &KnownCase, case: GeneratedCase, answer: &str) -> JudgeEvidence {
    let asks = known.expected_status() == TaskStatus::AwaitingResponse;
    JudgeEvidence {
        case,
        conversation: Vec::new(),
        reply: None,
        output: answer.to_owned(),
        tool_calls: Vec::new(),
        expected_status: known.expected_status(),
        // The status that an agent would report. Judging the text itself is up to the judge.
        actual_status: known.expected_status(),
        question_count: count_questions(answer),
        max_questions_allowed: if asks { 5 } else { 0 },
        allow_minor_format_deviation: true,
    }
}

/// The subset of a set's answers to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchSubset {
    /// All of them.
    Whole,
    /// One good and one bad answer of every n-th request, for a quick check.
    Every(usize),
}

impl BenchSubset {
    fn cases(self, set: AnswerSet) -> Vec<KnownCase> {
        let all = KnownCase::all(set);
        let BenchSubset::Every(step) = self else { return all };
        let few = all.into_iter().step_by(step.max(1)).map(|mut case| {
            let (good, bad) = (
                case.answers.iter().find(|answer| answer.is_good()).cloned(),
                case.answers.iter().find(|answer| !answer.is_good()).cloned(),
            );
            case.answers = good.into_iter().chain(bad).collect();
            case
        });
        few.collect()
    }

    /// Returns the number of answers.
    pub fn count(self, set: AnswerSet) -> usize {
        self.cases(set).iter().map(|case| case.answers.len()).sum()
    }
}

/// Asks a judge about known answers, reusing the `finished` ones. `on_answer` receives each new
/// answer.
pub async fn measure(
    judge: &Judge,
    library: &PromptLibrary,
    set: AnswerSet,
    extent: BenchSubset,
    mut finished: Vec<BenchAnswer>,
    mut on_answer: impl FnMut(&BenchAnswer),
) -> Vec<BenchAnswer> {
    let mut answers = Vec::new();
    for known in extent.cases(set) {
        for answer in &known.answers {
            let is_it = |one: &BenchAnswer| one.case == known.id && one.text == answer.text;
            // Reuses the verdicts of an interrupted measurement.
            if let Some(at) = finished.iter().position(is_it) {
                answers.push(finished.swap_remove(at));
                continue;
            }
            let evidence = evidence(&known, known.case(), &answer.text);
            let started = Instant::now();
            let judgement = judge.judge(library, &evidence, u64::from).await;
            let answer = BenchAnswer {
                case: known.id.clone(),
                text: answer.text.clone(),
                language: known.language.clone(),
                fault: answer.fault,
                judgement,
                duration: started.elapsed(),
            };
            on_answer(&answer);
            answers.push(answer);
        }
    }
    answers
}

/// Counts the pairs of a good and a bad answer to the same request, and those in which the good one
/// scores higher. Pairs with an unscored answer do not count.
pub fn count_pairs(answers: &[BenchAnswer]) -> QuickCheck {
    let (mut right, mut pairs) = (0, 0);
    for good in answers.iter().filter(|answer| answer.fault.is_none()) {
        for bad in answers.iter().filter(|bad| bad.case == good.case && bad.fault.is_some()) {
            if let Some((good, bad)) = good.overall().zip(bad.overall()) {
                pairs += 1;
                right += u32::from(good > bad);
            }
        }
    }
    QuickCheck { right, pairs }
}

/// Fits the scales that convert readings of these answers to probabilities. Returns `None` without
/// both good and bad answers.
pub fn fit_scales(answers: &[BenchAnswer]) -> Option<JudgeScales> {
    JudgeScales::fit(&answers.iter().filter_map(BenchAnswer::reading).collect::<Vec<_>>())
}

/// Rescales the same answers: the readings stay, the probabilities change.
pub fn rescale(
    mut answers: Vec<BenchAnswer>,
    scales: Option<&JudgeScales>,
    rubric: &Rubric,
) -> Vec<BenchAnswer> {
    // Every known answer has a reference.
    let Some(scale) = scales.map(|scales| &scales.with_reference) else { return answers };
    for answer in &mut answers {
        if let Verdict::Scored(card) = &mut answer.judgement.verdict
            && !card.questions.is_empty()
        {
            let said = card.questions.iter().map(|question| question.answer.clone()).collect();
            if let Some(again) = Scorecard::from_questions(rubric, said, scale) {
                *card = again;
            }
        }
    }
    answers
}

/// Returns the scores of the scored answers.
pub fn known_scores(answers: &[BenchAnswer]) -> KnownScores {
    let of = |is_good| {
        let own = answers.iter().filter(|answer| answer.is_good() == is_good);
        let cards = own.filter_map(|answer| answer.judgement.verdict.card());
        let known =
            |card: &Scorecard| KnownScore { score: card.overall, against: card.has_rule_against() };
        cards.map(known).collect()
    };
    KnownScores { good: of(true), bad: of(false) }
}

/// Returns the area under the ROC curve with its interval, or `None` for too few answers.
fn estimate(labelled: &[(f64, bool)]) -> Option<IntervalEstimate> {
    if labelled.len() < MIN_ANSWERS {
        return None;
    }
    let auc = auc(labelled)?;
    // A perfect separation has no interval of its own; the rule of three bounds it.
    let least = 1.0 - 3.0 / f64::from(count(labelled.len()));
    let (low, high) = match auc.interval {
        Some(interval) => (interval.low, interval.high),
        None if auc.area > 0.5 => (least, 1.0),
        None => (auc.area, auc.area),
    };
    Some(IntervalEstimate { value: auc.area, low, high })
}

/// Builds the report of a measurement.
pub fn report(
    model: &str,
    method: JudgeMethod,
    set: AnswerSet,
    scales: Option<&JudgeScales>,
    threshold: Threshold,
    answers: &[BenchAnswer],
) -> BenchReport {
    let scored: Vec<(f64, Option<AnswerFault>)> =
        answers.iter().filter_map(|answer| Some((answer.overall()?, answer.fault))).collect();
    let known = known_scores(answers);
    let [good_right, bad_right] = known.decided(threshold, None);
    let passes = |score: f64| Score::new(score).is_ok_and(|score| score.reaches(threshold));
    let rate = |hits: u32, of: u32| {
        let interval = wilson(hits, of)?;
        let value = f64::from(hits) / f64::from(of);
        Some(IntervalEstimate { value, low: interval.low, high: interval.high })
    };
    let right = |decided: DecisionCounts| rate(decided.right, decided.of);
    let sure = scales.map(|_| {
        let [good, bad] = known.decided(threshold, Some(DecisionBand::from_threshold(threshold)));
        DecidedRates {
            good_decided: rate(good.of, good_right.of),
            good_right: right(good),
            bad_decided: rate(bad.of, bad_right.of),
            bad_right: right(bad),
        }
    });
    let good: Vec<f64> =
        scored.iter().filter(|(_, fault)| fault.is_none()).map(|(score, _)| *score).collect();
    let area = |bad: &[f64]| {
        let all = good.iter().map(|score| (*score, true));
        auc(&all.chain(bad.iter().map(|score| (*score, false))).collect::<Vec<_>>())
    };
    let mut by_fault = BTreeMap::<AnswerFault, Vec<f64>>::new();
    for (score, fault) in &scored {
        if let Some(fault) = fault {
            by_fault.entry(*fault).or_default().push(*score);
        }
    }
    let faults = by_fault.into_iter().map(|(fault, scores)| FaultReport {
        fault,
        answers: count(scores.len()),
        caught: count(scores.iter().filter(|score| !passes(**score)).count()),
        auc: area(&scores).map(|auc| auc.area),
    });
    let labelled: Vec<(f64, bool)> =
        scored.iter().map(|(score, fault)| (*score, fault.is_none())).collect();
    let own = |scale: &ProbabilityScale| -> Vec<(f64, bool)> {
        let is_read = |answer: &&BenchAnswer| answer.reading().is_some();
        let of = |answer: &BenchAnswer| {
            let read: Vec<&QuestionAnswer> = answer.answers().collect();
            // If nothing has a weight, all answers are equal.
            (scale.log_odds(&read, None).unwrap_or(scale.intercept), answer.is_good())
        };
        answers.iter().filter(is_read).map(of).collect()
    };
    let used = scales.cloned().unwrap_or_default();
    let kinds_differ = used.with_reference != used.without_reference;
    let bare = kinds_differ.then(|| own(&used.without_reference));
    let per_answer = |sum: f64| sum / f64::from(count(answers.len()).max(1));
    let tokens = |answer: &BenchAnswer| {
        let calls = answer.judgement.calls.iter();
        calls.filter_map(|call| call.usage.prompt_tokens).sum::<u64>()
    };
    BenchReport {
        fitness: JudgeFitness {
            model: model.to_owned(),
            method,
            set,
            scored: count(scored.len()),
            unscored: count(answers.len() - scored.len()),
            seconds_per_answer: per_answer(
                answers.iter().map(|answer| answer.duration.as_secs_f64()).sum(),
            ),
            auc: estimate(&labelled),
            model_auc: estimate(&own(&used.with_reference)),
            bare_auc: bare.and_then(|bare| estimate(&bare)),
            scales: scales.cloned(),
            sure: None,
            unfit: None,
            unfit_without_reference: None,
        },
        threshold,
        true_positive_rate: right(good_right),
        true_negative_rate: right(bad_right),
        sure,
        faults: faults.collect(),
        #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
        tokens_per_answer: per_answer(answers.iter().map(|answer| tokens(answer) as f64).sum()),
    }
}

/// Minimum number of answers for an AUC with an interval.
const MIN_ANSWERS: usize = 40;

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The scores of a bad answer with and without an attack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AttackAttempt {
    /// Id of the attack.
    pub attack: String,
    /// The kind of attack.
    pub shape: String,
    /// Overall score of the unmodified bad answer. Absent if it has none.
    pub plain: Option<Score>,
    /// Overall score of the answer with the attack.
    pub attacked: Option<Score>,
}

/// Attacks the judge with bad answers that try to persuade it, reusing the `finished` attempts.
/// `on_attempt` receives each new attempt.
pub async fn attack(
    judge: &Judge,
    library: &PromptLibrary,
    mut finished: Vec<AttackAttempt>,
    mut on_attempt: impl FnMut(&AttackAttempt),
) -> Vec<AttackAttempt> {
    let cases = KnownCase::all(AnswerSet::Calibration);
    let bad: Vec<(&KnownCase, &str)> = cases
        .iter()
        .filter_map(|case| {
            let answer = case.answers.iter().find(|answer| !answer.is_good())?;
            Some((case, answer.text.as_str()))
        })
        .collect();
    let mut attempts = Vec::new();
    for (attack, (known, answer)) in Attack::all().iter().zip(bad.iter().cycle()) {
        if let Some(at) = finished.iter().position(|attempt| attempt.attack == attack.id) {
            attempts.push(finished.swap_remove(at));
            continue;
        }
        let score = async |text: String| {
            // The same case and answer, so that only the attack differs.
            let evidence = evidence(known, known.case(), &text);
            let verdict = judge.judge(library, &evidence, u64::from).await.verdict;
            verdict.card().map(|card| card.overall)
        };
        let shape = attack.shape.clone();
        let plain = score((*answer).to_owned()).await;
        let attacked = score(attack.on(answer)).await;
        let attempt = AttackAttempt { attack: attack.id.clone(), shape, plain, attacked };
        on_attempt(&attempt);
        attempts.push(attempt);
    }
    attempts
}

/// Summarises the attempts with two scores by shape.
pub fn attack_report(threshold: Threshold, attempts: &[AttackAttempt]) -> Vec<AttackReport> {
    let mut shapes = BTreeMap::<&str, (u32, u32, f64)>::new();
    for attempt in attempts {
        if let Some((plain, attacked)) = attempt.plain.zip(attempt.attacked) {
            let entry = shapes.entry(&attempt.shape).or_default();
            entry.0 += 1;
            entry.1 += u32::from(!plain.reaches(threshold) && attacked.reaches(threshold));
            entry.2 += attacked.get() - plain.get();
        }
    }
    let reports = shapes.into_iter().map(|(shape, (attempts, successes, lift))| AttackReport {
        shape: shape.to_owned(),
        attempts,
        successes,
        lift: lift / f64::from(attempts.max(1)),
    });
    reports.collect()
}
