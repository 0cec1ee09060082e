//! Measures a judge on answers of known quality. Prints nothing; a callback receives each answer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::ask::Judge;
use super::evidence::word_overlap;
use super::fitness::{
    DecisionBand, IntervalEstimate, JudgeFitness, KnownScore, KnownScores, ScoreSource,
};
use super::known_answers::{AnswerFault, AnswerSet, Attack, KnownAnswer, KnownCase};
use super::probability::{QuestionAnswer, ReadingKind};
use super::prompt::JudgeEvidence;
use super::rule::{certain_verdict, rule_answers};
use super::scale::{ALL, JudgeScales, KnownReading, MODEL_ONLY, ReadingFilter, cross_validated};
use super::{JudgeMethod, Judgement, Scorecard, Verdict};
use crate::rubric::Rubric;
use selftest_checks::check::questions::count_questions;
use selftest_checks::scenario::{GeneratedCase, TaskStatus};
use selftest_models::prompts::PromptLibrary;
use selftest_stats::score::{Score, Threshold};
use selftest_stats::{auc, sigmoid, wilson};

/// A judge's verdict on one known answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BenchAnswer {
    /// Id of its case.
    pub case: String,
    /// Number of the answer among those of its case.
    pub number: usize,
    /// Text of the answer.
    pub text: String,
    /// Two-letter language code.
    pub language: String,
    /// The fault of a bad answer. Absent for a good one.
    pub fault: Option<AnswerFault>,
    /// True if its case has a reference.
    pub has_reference: bool,
    /// The verdict, with its calls.
    pub judgement: Judgement,
    /// True if rules alone were read.
    pub is_by_rules: bool,
    /// True if the answer passes without a judge, false if it fails. Absent if only a judge decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certain: Option<bool>,
    /// The same if the reference is hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_certain: Option<bool>,
    /// What rules find if the reference is hidden.
    pub bare_rules: Vec<QuestionAnswer>,
    /// Overlap of words with the reference, 0 to 1.
    pub overlap: f64,
    /// Wall time.
    pub duration: Duration,
}

impl BenchAnswer {
    fn is_good(&self) -> bool {
        self.fault.is_none()
    }

    /// Returns the overall score of a verdict that was asked for as such.
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

    /// Returns the mean reading of each kind, or `None` if the answer has no score. What is certain
    /// without a judge is no reading. For a judge that is asked for verdicts these are rules alone,
    /// and of no use.
    fn reading(&self) -> Option<KnownReading> {
        let means = |answers: &mut dyn Iterator<Item = &QuestionAnswer>| {
            let mut all = BTreeMap::<ReadingKind, Vec<f64>>::new();
            for answer in answers {
                all.entry(answer.by).or_default().push(answer.relative);
            }
            let means =
                all.into_iter().filter_map(|(by, all)| Some((by, selftest_stats::mean(&all)?)));
            means.collect::<BTreeMap<_, _>>()
        };
        self.judgement.verdict.card()?;
        let read = means(&mut self.answers());
        let of_model = self.answers().filter(|answer| !answer.by.is_rule());
        let bare = means(&mut of_model.chain(&self.bare_rules));
        Some(KnownReading {
            case: self.case.clone(),
            with_reference: (self.has_reference && self.certain.is_none()).then_some(read),
            bare: self.bare_certain.is_none().then_some(bare),
            is_good: self.is_good(),
        })
    }
}

/// The numbers of one measurement.
#[derive(Debug, Clone, Serialize)]
pub struct BenchReport {
    /// The part shown in reports.
    #[serde(flatten)]
    pub fitness: JudgeFitness,
    /// AUC of rules alone, without the model.
    pub rules_auc: Option<IntervalEstimate>,
    /// What it decides with a reference, and how much of that is right.
    pub with_reference: DecidedRates,
    /// The same without a reference.
    pub without_reference: DecidedRates,
    /// Results by fault.
    pub faults: Vec<FaultReport>,
    /// Mean number of prompt tokens per answer over all questions; cached prefixes count every
    /// time.
    pub tokens_per_answer: f64,
}

/// How often a judge decides, and how often it is right.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DecidedRates {
    /// The bounds by which it decides.
    pub band: DecisionBand,
    /// Share of answers that it decides.
    pub decided: Option<IntervalEstimate>,
    /// Share of its passes that are good.
    pub passes_right: Option<IntervalEstimate>,
    /// Share of its fails that are bad.
    pub fails_right: Option<IntervalEstimate>,
}

impl DecidedRates {
    fn of(band: DecisionBand, scored: &[KnownScore]) -> Self {
        let (mut passes, mut fails) = ((0, 0), (0, 0));
        for known in scored {
            match band.verdict_on(known) {
                Some(true) => passes = (passes.0 + u32::from(known.is_good), passes.1 + 1),
                Some(false) => fails = (fails.0 + u32::from(!known.is_good), fails.1 + 1),
                None => {}
            }
        }
        Self {
            band,
            decided: rate(passes.1 + fails.1, count(scored.len())),
            passes_right: rate(passes.0, passes.1),
            fails_right: rate(fails.0, fails.1),
        }
    }
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
    /// Number of them that pass.
    pub passed: u32,
}

/// The result of one shape of attack.
#[derive(Debug, Clone, Serialize)]
pub struct AttackReport {
    /// The shape.
    pub shape: String,
    /// Scored attempts.
    pub attempts: u32,
    /// Attempts whose answer the judge fails without the attack: only these can be turned.
    pub eligible: u32,
    /// Eligible attempts that the judge passes with the attack.
    pub passed: u32,
    /// Eligible attempts that the judge no longer decides.
    pub undecided: u32,
    /// Mean change of the overall score.
    pub lift: f64,
}

/// The result of all attacks.
#[derive(Debug, Clone, Serialize)]
pub struct AttackSummary {
    /// Results by shape.
    pub shapes: Vec<AttackReport>,
    /// Share of eligible attempts that end in a pass. Absent if nothing was eligible: a judge that
    /// fails no bad answer cannot be attacked, and is not robust for it.
    pub passed: Option<IntervalEstimate>,
    /// Number of eligible attempts.
    pub eligible: u32,
}

/// Returns the evidence that the judge receives for a known answer.
pub fn evidence(known: &KnownCase, case: GeneratedCase, answer: &KnownAnswer) -> JudgeEvidence {
    let asks = known.expected_status() == TaskStatus::AwaitingResponse;
    JudgeEvidence {
        case,
        conversation: Vec::new(),
        reply: None,
        output: answer.text.clone(),
        tool_calls: answer.tool_calls.clone(),
        files: answer.files.clone(),
        scores_expectations: true,
        expected_status: known.expected_status(),
        // The status that an agent would report. Judging the text itself is up to the judge.
        actual_status: known.expected_status(),
        question_count: count_questions(&answer.text),
        max_questions_allowed: if asks { 5 } else { 0 },
        allow_minor_format_deviation: true,
    }
}

/// The subset of a set's answers to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BenchSubset {
    /// All of them.
    Whole,
    /// The first answers of a certificate: good and bad ones in turn, spread over the requests.
    First(usize),
}

impl BenchSubset {
    /// Returns the cases with those of their answers that are in the subset, in order.
    fn cases(self, set: AnswerSet) -> Vec<(KnownCase, Vec<usize>)> {
        let all = KnownCase::all(set);
        let BenchSubset::First(most) = self else {
            let each = all.into_iter().map(|case| {
                let numbers = (0..case.answers.len()).collect();
                (case, numbers)
            });
            return each.collect();
        };
        // Cases of all files and languages, in a fixed order that mixes them; one of seven has no
        // reference. Few answers with a reference would certify nothing.
        let mut cases: Vec<KnownCase> = all;
        cases.sort_by_key(|case| selftest_text::digest::sha256_hex(case.id.as_bytes()));
        let (with, without): (Vec<_>, Vec<_>) =
            cases.into_iter().partition(|case| case.reference().is_some());
        let mut without = without.into_iter();
        let cases = with.into_iter().enumerate().flat_map(|(at, case)| {
            let other = if at % 6 == 5 { without.next() } else { None };
            std::iter::once(case).chain(other)
        });
        let cases: Vec<KnownCase> = cases.collect();
        let mut left = most;
        let mut chosen = Vec::new();
        for case in cases {
            if left == 0 {
                break;
            }
            let of = |is_good: bool, skip: usize| {
                let own = case.answers.iter().enumerate();
                own.filter(|(_, answer)| answer.is_good() == is_good).nth(skip).map(|(at, _)| at)
            };
            // Another good answer for each case: in other words, and close to the reference.
            let turn = chosen.len() % 3;
            let numbers: Vec<usize> = of(true, turn)
                .or_else(|| of(true, 0))
                .into_iter()
                .chain(of(false, turn % 2))
                .take(left)
                .collect();
            left -= numbers.len();
            chosen.push((case, numbers));
        }
        chosen
    }

    /// Returns the number of answers.
    pub fn count(self, set: AnswerSet) -> usize {
        self.cases(set).iter().map(|(_, numbers)| numbers.len()).sum()
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
    let mut answers: Vec<BenchAnswer> = Vec::new();
    let reads_rules = judge.method(library).await.takes_readings();
    let mut asks_model = true;
    for (known, numbers) in extent.cases(set) {
        // A model that knows nothing by now is asked no further; rules take no time.
        if asks_model && reads_rules && answers.len() >= FUTILE_AFTER {
            asks_model = adds_to_rules(&answers);
        }
        for number in numbers {
            let is_it = |one: &BenchAnswer| one.case == known.id && one.number == number;
            // Reuses the verdicts of an interrupted measurement.
            if let Some(at) = finished.iter().position(is_it) {
                answers.push(finished.swap_remove(at));
                continue;
            }
            let answer = measure_one(judge, library, &known, number, asks_model).await;
            on_answer(&answer);
            answers.push(answer);
        }
    }
    answers
}

async fn measure_one(
    judge: &Judge,
    library: &PromptLibrary,
    known: &KnownCase,
    number: usize,
    asks_model: bool,
) -> BenchAnswer {
    let answer = &known.answers[number];
    let evidence = evidence(known, known.case(), answer);
    let mut bare = evidence.clone();
    bare.case.grounds.reference = None;
    let is_right = |evidence| certain_verdict(evidence).map(|certain| certain.is_right);
    let (certain, bare_certain) = (is_right(&evidence), is_right(&bare));
    // Where form decides with and without a reference, no judge is ever asked.
    let asks_model = asks_model && (certain.is_none() || bare_certain.is_none());
    let started = Instant::now();
    let judgement = if asks_model {
        judge.judge(library, &evidence, u64::from).await
    } else {
        judge.read_rules(&evidence)
    };
    let duration = started.elapsed();
    BenchAnswer {
        case: known.id.clone(),
        number,
        text: answer.text.clone(),
        language: known.language.clone(),
        fault: answer.fault,
        has_reference: evidence.case.grounds.reference.is_some(),
        judgement,
        is_by_rules: !asks_model,
        certain,
        bare_certain,
        bare_rules: rule_answers(judge.rubric(), &bare),
        overlap: word_overlap(&evidence),
        duration,
    }
}

/// Number of answers after which a model whose readings say nothing is asked no further.
const FUTILE_AFTER: usize = 60;

/// Returns true if a reading of the model has a weight beside the rules.
fn adds_to_rules(answers: &[BenchAnswer]) -> bool {
    let scales = fit_scales(answers);
    scales.is_none_or(|scales| {
        let both = [&scales.with_reference, &scales.without_reference];
        both.iter().any(|scale| scale.weights.keys().any(|kind| !kind.is_rule()))
    })
}

fn readings(answers: &[BenchAnswer]) -> Vec<KnownReading> {
    answers.iter().filter_map(BenchAnswer::reading).collect()
}

/// Fits the scales that convert readings of these answers to probabilities. Returns `None` without
/// both good and bad answers.
pub fn fit_scales(answers: &[BenchAnswer]) -> Option<JudgeScales> {
    JudgeScales::fit(&readings(answers))
}

/// The fit by which answers are scored.
#[derive(Debug, Clone, Copy)]
pub enum ScoredBy<'a> {
    /// Each answer by a fit on the answers to other requests.
    CrossValidation,
    /// All answers by a fit on other answers.
    Scales(&'a JudgeScales),
    /// Each answer as the judge scored it, by verdict.
    Verdicts,
}

/// Returns the scores of the scored answers.
pub fn known_scores(answers: &[BenchAnswer], by: ScoredBy<'_>) -> KnownScores {
    let of = |has_reference: bool| -> Vec<KnownScore> {
        let judged: Vec<(f64, bool)> = match by {
            ScoredBy::CrossValidation => {
                let known = readings(answers);
                let scored = cross_validated(&known, has_reference, ALL).unwrap_or_default();
                scored.into_iter().map(|(odds, is_good)| (sigmoid(odds), is_good)).collect()
            }
            ScoredBy::Scales(scales) => scored_by(&readings(answers), scales, has_reference),
            ScoredBy::Verdicts => {
                let own = answers.iter().filter(|answer| {
                    answer.has_reference == has_reference && answer.certain.is_none()
                });
                own.filter_map(|answer| Some((answer.overall()?, answer.is_good()))).collect()
            }
        };
        let judged = judged.into_iter().map(|(score, is_good)| KnownScore {
            score,
            is_good,
            is_certain: false,
        });
        let certain = answers.iter().filter_map(|answer| {
            let is_right = match (by, has_reference) {
                // Readings show each answer as if it had no reference, too.
                (ScoredBy::CrossValidation | ScoredBy::Scales(_), false) => answer.bare_certain,
                _ if answer.has_reference == has_reference => answer.certain,
                _ => None,
            };
            let score = f64::from(u8::from(is_right?));
            Some(KnownScore { score, is_good: answer.is_good(), is_certain: true })
        });
        judged.chain(certain).collect()
    };
    KnownScores { with_reference: of(true), without_reference: of(false) }
}

fn scored_by(
    known: &[KnownReading],
    scales: &JudgeScales,
    has_reference: bool,
) -> Vec<(f64, bool)> {
    let scale = scales.of(has_reference);
    let each = known.iter().filter_map(|one| {
        let read = if has_reference { &one.with_reference } else { &one.bare };
        let read = read.as_ref()?;
        Some((sigmoid(scale.log_odds_of_row(read)), one.is_good))
    });
    each.collect()
}

/// Rescales the same answers: the readings stay, the probabilities change.
pub fn rescale(
    mut answers: Vec<BenchAnswer>,
    scales: Option<&JudgeScales>,
    rubric: &Rubric,
) -> Vec<BenchAnswer> {
    let Some(scales) = scales else { return answers };
    for answer in &mut answers {
        if let Verdict::Scored(card) = &mut answer.judgement.verdict
            && !card.questions.is_empty()
        {
            let said = card.questions.iter().map(|question| question.answer.clone()).collect();
            let scale = scales.of(answer.has_reference);
            if let Some(again) = Scorecard::from_questions(rubric, said, scale) {
                *card = again;
            }
        }
    }
    answers
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

fn rate(hits: u32, of: u32) -> Option<IntervalEstimate> {
    let interval = wilson(hits, of)?;
    let value = f64::from(hits) / f64::from(of);
    Some(IntervalEstimate { value, low: interval.low, high: interval.high })
}

/// What a measurement is reported with.
#[derive(Debug, Clone, Copy)]
pub struct BenchReportSettings<'a> {
    /// Full name of the model.
    pub model: &'a str,
    /// Method of judging.
    pub method: JudgeMethod,
    /// The set of answers.
    pub set: AnswerSet,
    /// The scales of the judge, unless it gives verdicts.
    pub scales: Option<&'a JudgeScales>,
    /// Bounds for cases with and without a reference, chosen on other answers; else they are chosen
    /// on these.
    pub bands: Option<[DecisionBand; 2]>,
    /// Maximum share of wrong verdicts.
    pub max_wrong: f64,
    /// Minimum overall score that passes.
    pub threshold: Threshold,
}

/// Builds the report of a measurement.
pub fn report(
    settings: &BenchReportSettings<'_>,
    answers: &[BenchAnswer],
) -> (BenchReport, KnownScores) {
    let BenchReportSettings { model, method, set, scales, bands, max_wrong, threshold } = *settings;
    let by = match (scales, bands) {
        (Some(_), None) => ScoredBy::CrossValidation,
        (Some(scales), Some(_)) => ScoredBy::Scales(scales),
        (None, _) => ScoredBy::Verdicts,
    };
    let known = known_scores(answers, by);
    let [with, without] = [known.of(true), known.of(false)];
    let chosen = |scored: &[KnownScore], has_reference| {
        let source = ScoreSource::of(scales, has_reference);
        DecisionBand::choose(scored, source, max_wrong, threshold)
    };
    let [with_band, without_band] =
        bands.unwrap_or_else(|| [chosen(with, true), chosen(without, false)]);
    let filtered = |filter: ReadingFilter| {
        let scored = cross_validated(&readings(answers), true, filter)?;
        estimate(&scored)
    };
    let pairs = |known: &[KnownScore]| -> Vec<(f64, bool)> {
        // Form ranks no answers: what it decides says nothing of the judge.
        let judged = known.iter().filter(|known| !known.is_certain);
        judged.map(|known| (known.score, known.is_good)).collect()
    };
    let mut all = pairs(with);
    if matches!(by, ScoredBy::Verdicts) {
        all.extend(pairs(without));
    }
    // The answers on which the judge is ranked: its AUC is compared with that of the overlap.
    let overlap: Vec<(f64, bool)> = answers
        .iter()
        .filter(|answer| answer.has_reference && answer.certain.is_none())
        .map(|answer| (answer.overlap, answer.is_good()))
        .collect();
    let scored = answers.iter().filter(|answer| answer.judgement.verdict.card().is_some()).count();
    let per_answer = |sum: f64| sum / f64::from(count(answers.len()).max(1));
    let report = BenchReport {
        fitness: JudgeFitness {
            model: model.to_owned(),
            method,
            set,
            scored: count(scored),
            unscored: count(answers.len() - scored),
            seconds_per_answer: seconds_per_answer(answers),
            auc: estimate(&all),
            model_auc: scales.and_then(|_| filtered(MODEL_ONLY)),
            bare_auc: scales.and_then(|_| estimate(&pairs(without))),
            overlap_auc: auc(&overlap).map(|auc| auc.area),
            scales: scales.cloned(),
            // `evaluate` sets these, by the requirements of a configuration.
            with_reference: None,
            without_reference: None,
            unfit: None,
            unfit_without_reference: None,
        },
        rules_auc: scales.and_then(|_| filtered(ReadingKind::is_rule)),
        with_reference: DecidedRates::of(with_band, with),
        without_reference: DecidedRates::of(without_band, without),
        faults: faults(answers, scales, with_band),
        #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
        tokens_per_answer: per_answer(prompt_tokens(answers) as f64),
    };
    (report, known)
}

/// Counts the bad answers to cases with a reference by fault, with what the bounds make of them.
fn faults(
    answers: &[BenchAnswer],
    scales: Option<&JudgeScales>,
    band: DecisionBand,
) -> Vec<FaultReport> {
    let mut by_fault = BTreeMap::<AnswerFault, (u32, u32, u32)>::new();
    for answer in answers.iter().filter(|answer| answer.has_reference) {
        let Some(fault) = answer.fault else { continue };
        let score = match (answer.certain, scales) {
            // What form decides needs no reading, in a run as little as here.
            (Some(is_right), _) => Some(f64::from(u8::from(is_right))),
            (None, Some(scales)) => answer.reading().and_then(|reading| {
                let read = reading.with_reference?;
                Some(sigmoid(scales.with_reference.log_odds_of_row(&read)))
            }),
            (None, None) => answer.overall(),
        };
        let Some(score) = score else { continue };
        let is_certain = answer.certain.is_some();
        let verdict = band.verdict_on(&KnownScore { score, is_good: false, is_certain });
        let entry = by_fault.entry(fault).or_default();
        entry.0 += 1;
        entry.1 += u32::from(verdict == Some(false));
        entry.2 += u32::from(verdict == Some(true));
    }
    let reports = by_fault.into_iter();
    reports
        .map(|(fault, (answers, caught, passed))| FaultReport { fault, answers, caught, passed })
        .collect()
}

/// Returns the number of prompt tokens of all answers; cached prefixes count every time.
pub fn prompt_tokens(answers: &[BenchAnswer]) -> u64 {
    let calls = answers.iter().flat_map(|answer| &answer.judgement.calls);
    calls.filter_map(|call| call.usage.prompt_tokens).sum()
}

/// Returns the mean wall time of the answers that the judge was asked about.
fn seconds_per_answer(answers: &[BenchAnswer]) -> f64 {
    let asked = answers.iter().filter(|answer| !answer.is_by_rules);
    let times: Vec<f64> = asked.map(|answer| answer.duration.as_secs_f64()).collect();
    selftest_stats::mean(&times).unwrap_or_default()
}

/// Minimum number of answers for an AUC with an interval.
const MIN_ANSWERS: usize = 30;

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
    /// True if that answer passes without a judge, false if it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certain: Option<bool>,
}

/// Attacks the judge with bad answers that try to persuade it, reusing the `finished` attempts.
/// `on_attempt` receives each new attempt.
///
/// Each attack is made on a bad answer that `verdict` fails, as long as one is found among the first
/// few: an attack on an answer that passes anyway turns nothing.
pub async fn attack(
    judge: &Judge,
    library: &PromptLibrary,
    verdict: impl Fn(Score) -> Option<bool>,
    mut finished: Vec<AttackAttempt>,
    mut on_attempt: impl FnMut(&AttackAttempt),
) -> Vec<AttackAttempt> {
    let cases = KnownCase::all(AnswerSet::Calibration);
    let bad: Vec<(&KnownCase, &KnownAnswer)> = cases
        .iter()
        .flat_map(|case| case.answers.iter().map(move |answer| (case, answer)))
        .filter(|(_, answer)| !answer.is_good() && answer.files.is_empty())
        .collect();
    let score = async |known: &KnownCase, answer: &KnownAnswer| {
        let evidence = evidence(known, known.case(), answer);
        let judgement = judge.judge(library, &evidence, u64::from).await;
        judgement.verdict.card().map(|card| card.overall)
    };
    let attacks = Attack::all();
    // Enough answers that fail, so that no single request decides what attacks can do.
    let mut targets = Vec::new();
    let left = attacks.iter().any(|attack| finished.iter().all(|done| done.attack != attack.id));
    if left {
        // Spread over the requests.
        for (known, answer) in bad.iter().step_by(bad.len().div_ceil(MAX_TRIED).max(1)) {
            if targets.len() == TARGETS {
                break;
            }
            let plain = score(known, answer).await;
            if plain.is_some_and(|plain| verdict(plain) == Some(false)) {
                targets.push((*known, *answer, plain));
            }
        }
    }
    let mut attempts = Vec::new();
    for (attack, target) in attacks.iter().zip(0..) {
        if let Some(at) = finished.iter().position(|attempt| attempt.attack == attack.id) {
            attempts.push(finished.swap_remove(at));
            continue;
        }
        let chosen = targets.get(target % targets.len().max(1)).copied();
        let (known, answer, plain) = if let Some(chosen) = chosen {
            chosen
        } else {
            // Nothing fails: the attempt is made all the same, and counts as not eligible.
            let (known, answer) = bad[target % bad.len()];
            (known, answer, score(known, answer).await)
        };
        let mut attacked = answer.clone();
        attacked.text = attack.on(&answer.text, known.reference());
        let certain = certain_verdict(&evidence(known, known.case(), &attacked));
        let attempt = AttackAttempt {
            attack: attack.id.clone(),
            shape: attack.shape.clone(),
            plain,
            attacked: score(known, &attacked).await,
            certain: certain.map(|certain| certain.is_right),
        };
        on_attempt(&attempt);
        attempts.push(attempt);
    }
    attempts
}

/// Number of answers that attacks are made on.
const TARGETS: usize = 20;

/// Most answers that are tried as targets.
const MAX_TRIED: usize = 80;

/// Summarises the attempts with two scores by shape.
pub fn attack_report(
    verdict: impl Fn(Score) -> Option<bool>,
    attempts: &[AttackAttempt],
) -> AttackSummary {
    let mut shapes = BTreeMap::<&str, AttackReport>::new();
    for attempt in attempts {
        let Some((plain, attacked)) = attempt.plain.zip(attempt.attacked) else { continue };
        let entry = shapes.entry(&attempt.shape).or_insert_with(|| AttackReport {
            shape: attempt.shape.clone(),
            attempts: 0,
            eligible: 0,
            passed: 0,
            undecided: 0,
            lift: 0.0,
        });
        entry.attempts += 1;
        entry.lift += attacked.get() - plain.get();
        // Only an answer that fails without the attack can be lifted over the bar by it.
        if verdict(plain) == Some(false) {
            let after = attempt.certain.or_else(|| verdict(attacked));
            entry.eligible += 1;
            entry.passed += u32::from(after == Some(true));
            entry.undecided += u32::from(after.is_none());
        }
    }
    let shapes: Vec<AttackReport> = shapes
        .into_values()
        .map(|report| AttackReport {
            lift: report.lift / f64::from(report.attempts.max(1)),
            ..report
        })
        .collect();
    let sum = |of: fn(&AttackReport) -> u32| shapes.iter().map(of).sum::<u32>();
    let (passed, eligible) = (sum(|one| one.passed), sum(|one| one.eligible));
    AttackSummary { passed: rate(passed, eligible), eligible, shapes }
}
