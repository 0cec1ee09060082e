//! View of cases for reports: status, score, and the deciding step; and repeated cases with all
//! their trials. Computes nothing that `outcome` has not decided.

use std::collections::{BTreeMap, HashMap};

use super::wording;
use selftest_checks::scenario::TaskStatus;
use selftest_harness::judge::{CategoryScore, Judgement, Scorecard, ScoredQuestion, Verdict};
use selftest_harness::outcome::agreement::{PanelVote, is_disputed, votes};
use selftest_harness::outcome::repeats::{RepeatSummary, RepeatedResult, RepeatedTrial};
use selftest_harness::outcome::{CaseResult, CaseStatus, CaseStep, LoadingRates, SkillResult};
use selftest_harness::rubric;
use selftest_harness::sut::SandboxState;
use selftest_harness::sut::namespace::RunId;
use selftest_stats::score::Score;
use selftest_stats::{Interval, wilson};
use selftest_text::one_line;
use selftest_text::wording::plural;

/// Maximum length of an excerpt within a line, in bytes.
pub(super) const MAX_EXCERPT: usize = 240;

/// A case whose status has been computed once.
pub(super) struct CaseView<'a> {
    pub(super) result: &'a CaseResult,
    /// Name of the case.
    name: String,
    pub(super) status: CaseStatus,
    /// Votes of the judges on a panel.
    pub(super) votes: Vec<PanelVote>,
    /// Reason, unless the case passed.
    pub(super) reason: Option<String>,
}

impl<'a> CaseView<'a> {
    pub(super) fn new(result: &'a CaseResult) -> Self {
        let (status, reason) = result.status();
        Self { result, name: result.name(), status, votes: votes(result), reason }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the status for tables, with marks if the judges of a panel disagree or if the result
    /// comes from an earlier run.
    pub(super) fn label(&self) -> String {
        let disputed = if is_disputed(&self.votes) { " (disputed)" } else { "" };
        let unchanged = if self.unchanged_since().is_some() { " (unchanged)" } else { "" };
        format!("{}{disputed}{unchanged}", self.status.label())
    }

    /// Returns the run that the result comes from, if it is not this run.
    pub(super) fn unchanged_since(&self) -> Option<&'a RunId> {
        self.result.unchanged_since.as_ref()
    }

    /// Returns true if the case was not run to the end, through no fault of its own.
    pub(super) fn was_not_run(&self) -> bool {
        matches!(self.status, CaseStatus::NotRun | CaseStatus::Skipped)
    }

    /// Returns the final status of the task.
    pub(super) fn task_status(&self) -> Option<TaskStatus> {
        self.result
            .steps
            .iter()
            .rev()
            .find_map(|step| step.reply.as_ref())
            .map(|reply| reply.status)
    }

    /// Returns the task status for tables.
    pub(super) fn task_status_word(&self) -> &'static str {
        self.task_status().map_or("-", TaskStatus::as_str)
    }

    /// Returns the lowest overall score; `None` for a case without a verdict.
    pub(super) fn score(&self) -> Option<Score> {
        self.status.pass()?;
        // Beside a verdict of checks, a score that decides nothing would mislead.
        let decides = !self.result.is_decided_by_checks();
        self.result.weakest_step().filter(|_| decides)?.overall()
    }

    /// Returns the judge's scores of an answer that passed by its checks, as text. `None` if the
    /// judge decides the case, or was not asked.
    pub(super) fn advice(&self) -> Option<String> {
        if !self.result.is_decided_by_checks() || self.status.pass() != Some(true) {
            return None;
        }
        let checks = plural(self.result.checks.len() as u64, "check");
        Some(format!("{} passed by its {checks}. {}", self.name(), self.advised_scores()?))
    }

    fn advised_scores(&self) -> Option<String> {
        let threshold = self.result.threshold;
        let judgement = self.deciding_step()?.judgement.as_ref()?;
        Some(match &judgement.verdict {
            Verdict::Scored(card) => format!(
                "The judge, which only advises here, gives it {} where {threshold} would pass: {}.",
                card.overall,
                category_scores(&card.categories)
            ),
            Verdict::Unscored { detail, partial, .. } if partial.is_empty() => {
                format!("The judge, which only advises here, has no score: {detail}.")
            }
            Verdict::Unscored { detail, partial, .. } => format!(
                "The judge only advises here and is not sure: {detail}; {threshold} would pass. Its \
                 scores: {}.",
                category_scores(partial)
            ),
        })
    }

    /// Returns the step to look at: the first insufficient one, or else the last one.
    pub(super) fn deciding_step(&self) -> Option<&'a CaseStep> {
        // A wrong status fails a case before its answer is judged, so it goes first.
        let steps = &self.result.steps;
        steps
            .iter()
            .find(|step| is_mismatch(step))
            .or_else(|| steps.iter().find(|step| self.falls_short(step)))
            .or_else(|| steps.last())
    }

    /// Returns the expected status of the task after the deciding step.
    pub(super) fn expected_status(&self) -> TaskStatus {
        let step = self.deciding_step();
        step.map_or(self.result.scenario.expected_status, |step| step.expected_status)
    }

    /// Returns the start of the judge's hints, if there are any.
    pub(super) fn hints(&self) -> Option<String> {
        let hints = one_line(&self.result.case.as_ref()?.hints, MAX_EXCERPT);
        (!hints.is_empty()).then_some(hints)
    }

    /// Returns the program's stderr, unless blank.
    pub(super) fn stderr(&self) -> Option<&str> {
        self.result.evidence.stderr.as_deref().filter(|text| !text.trim().is_empty())
    }

    /// Describes how the case ended instead of passing, for this reason.
    pub(super) fn got(&self, reason: &str) -> String {
        let step = self.deciding_step();
        let Some((step, reply)) = step.and_then(|step| Some((step, step.reply.as_ref()?))) else {
            return format!("{}: {}", self.status.label(), one_line(reason, MAX_EXCERPT));
        };
        let status = reply.status;
        if self.status != CaseStatus::Failed {
            return format!("{status} but {}", one_line(reason, MAX_EXCERPT));
        }
        // A wrong status or an unsafe answer decides even if the overall score is high enough.
        let fault = if is_mismatch(step) {
            Some(format!("{} was expected", step.expected_status))
        } else {
            let floor = self.result.safety_floor;
            let low = self.unsafe_score(step);
            low.map(|safety| format!("safety {safety} is below the floor {floor}"))
        };
        let reasoning = card(step).map(|card| one_line(&card.reasoning, MAX_EXCERPT));
        let reasoning = reasoning.filter(|words| !words.is_empty());
        let parts: Vec<String> = fault.into_iter().chain(reasoning).collect();
        if parts.is_empty() {
            return format!("{status} but {reason}");
        }
        format!("{status} but {}", parts.join("; the judge: "))
    }

    /// Describes the overall score of the deciding step, and whether it reaches the threshold.
    pub(super) fn against_threshold(&self) -> String {
        let threshold = self.result.threshold;
        match self.deciding_step().and_then(CaseStep::overall) {
            Some(overall) if overall.reaches(threshold) => {
                format!("{overall} (reaches threshold {threshold})")
            }
            Some(overall) => format!("{overall} (below threshold {threshold})"),
            None => format!("none (threshold {threshold})"),
        }
    }

    /// Returns true if the step has scores that do not pass.
    pub(super) fn falls_short(&self, step: &CaseStep) -> bool {
        self.is_below_threshold(step) || self.unsafe_score(step).is_some()
    }

    /// Returns true if the step's overall score is below the case's threshold.
    pub(super) fn is_below_threshold(&self, step: &CaseStep) -> bool {
        step.overall().is_some_and(|overall| !overall.reaches(self.result.threshold))
    }

    /// Returns the safety score of a step, if it is below the floor and was judged separately.
    pub(super) fn unsafe_score(&self, step: &CaseStep) -> Option<Score> {
        // A judge that scores answers as a whole has no opinion on safety alone.
        let card = card(step).filter(|card| card.reflects_category(rubric::SAFETY))?;
        let score = card.score(rubric::SAFETY)?;
        (score < self.result.safety_floor).then_some(score)
    }
}

/// Returns the yes/no questions about a step, the least likely first; empty if the judge was asked
/// for a verdict instead.
pub(super) fn questions(step: &CaseStep) -> Vec<&ScoredQuestion> {
    let Some(Verdict::Scored(card)) = step.judgement.as_ref().map(|judged| &judged.verdict) else {
        return Vec::new();
    };
    let mut questions: Vec<&ScoredQuestion> = card.questions.iter().collect();
    // The least likely first: those are the reasons of a low score.
    questions.sort_by(|a, b| a.probability.get().total_cmp(&b.probability.get()));
    questions
}

/// Returns the questions about the deciding step of a case.
pub(super) fn asked<'a>(case: &CaseView<'a>) -> Vec<&'a ScoredQuestion> {
    case.deciding_step().map(questions).unwrap_or_default()
}

/// Groups the cases that were not run by reason, in plan order.
pub(super) fn not_run<'a>(cases: &'a [CaseView<'_>]) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for case in cases.iter().filter(|case| case.was_not_run()) {
        let reason = case.reason.as_deref().unwrap_or_default();
        match found.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(case.name()),
            None => found.push((reason, vec![case.name()])),
        }
    }
    found
}

/// Returns the scores of a step, if any.
pub(super) fn card(step: &CaseStep) -> Option<&Scorecard> {
    step.card()
}

/// Returns true if the task's status after the step was not the expected one.
pub(super) fn is_mismatch(step: &CaseStep) -> bool {
    step.reply.as_ref().is_some_and(|reply| reply.status != step.expected_status)
}

/// Turns `format_score` into `format`, and `instruction_following_score` into `instruction
/// following`.
pub(super) fn category_name(id: &str) -> String {
    id.strip_suffix("_score").unwrap_or(id).replace('_', " ")
}

/// Describes the number of judge calls.
pub(super) fn judge_calls(judgement: &Judgement) -> String {
    plural(judgement.calls.len() as u64, "call")
}

/// Formats the scores of categories on one line.
pub(super) fn category_scores<'c>(
    categories: impl IntoIterator<Item = &'c CategoryScore>,
) -> String {
    let words = categories
        .into_iter()
        .map(|entry| format!("{} {}", category_name(&entry.category), wording::score(entry.score)));
    words.collect::<Vec<_>>().join(", ")
}

/// Formats the scores of a verdict on one line. Categories that were not judged separately merely
/// repeat the overall score, which is displayed elsewhere.
pub(super) fn scores(card: &Scorecard) -> String {
    let (own, others): (Vec<&CategoryScore>, Vec<_>) =
        card.categories.iter().partition(|entry| card.reflects_category(&entry.category));
    match (own.is_empty(), others.is_empty()) {
        (_, true) => category_scores(own),
        (true, false) => "none, the answer was judged as a whole".to_owned(),
        (false, false) => format!("{}, the rest was judged as a whole", category_scores(own)),
    }
}

/// One case with all its trials so far.
pub(super) struct RepeatedCaseView<'a> {
    /// ID of the scenario.
    pub(super) id: &'a str,
    passed: u32,
    /// Number of trials with a verdict.
    decided: u32,
    trials: u32,
    /// Mean over the trials with a score; `None` if no trial has one.
    pub(super) mean: Option<Score>,
    pub(super) lowest: Option<Score>,
    pub(super) highest: Option<Score>,
}

impl RepeatedCaseView<'_> {
    /// Returns `PASS`, `FAIL`, or `FLAKY` if trials disagree.
    pub(super) fn result(&self) -> RepeatedResult {
        RepeatedResult::of(self.passed, self.decided)
    }

    /// Returns the number of trials.
    pub(super) fn trials(&self) -> u32 {
        self.trials
    }

    /// Formats the share of passed trials.
    pub(super) fn rate(&self) -> String {
        wording::share(self.passed, self.decided)
    }

    /// Formats the 95 % Wilson interval of that share.
    pub(super) fn interval(&self) -> String {
        wilson(self.passed, self.decided).map_or_else(
            || "-".to_owned(),
            |Interval { low, high }| format!("{:.0} % to {:.0} %", 100.0 * low, 100.0 * high),
        )
    }

    /// States the result of the trials: `4 of 5 passed (80 %, 95 % interval 38 % to 96 %)`.
    pub(super) fn sentence(&self) -> String {
        let unscored = self.trials - self.decided;
        if self.decided == 0 {
            return format!("no verdict in {}", plural(u64::from(self.trials), "trial"));
        }
        let rest = match unscored {
            0 => String::new(),
            count => format!(", {count} without a verdict"),
        };
        let Self { passed, decided, .. } = self;
        let (rate, interval) = (self.rate(), self.interval());
        format!("{passed} of {decided} passed ({rate}, 95 % interval {interval}){rest}")
    }

    /// Formats as `4 of 5`, with the number of trials without a verdict.
    pub(super) fn passed_words(&self) -> String {
        let Self { passed, decided, trials, .. } = self;
        match trials - decided {
            0 => format!("{passed} of {decided}"),
            unscored => format!("{passed} of {decided}, {unscored} without a verdict"),
        }
    }
}

/// Returns the statistics of the repeated cases; `None` in a run without repeats.
pub(super) fn repeats<'a>(cases: impl Iterator<Item = &'a CaseResult>) -> Option<RepeatSummary> {
    let trials: Vec<RepeatedTrial<'a>> = cases
        .filter(|case| case.repeat.is_some())
        .map(|case| {
            let pass = case.status().0.pass();
            // Scores of a case without a verdict would count in the spread but not in the rate.
            let step = case.weakest_step().filter(|_| pass.is_some());
            RepeatedTrial { id: &case.scenario.id, pass, scores: overalls(step) }
        })
        .collect();
    (!trials.is_empty()).then(|| RepeatSummary::of(trials))
}

/// Returns the overall scores of a step, one per judge sample.
fn overalls(step: Option<&CaseStep>) -> Vec<f64> {
    let cards = step.into_iter().flat_map(CaseStep::samples).filter_map(Verdict::card);
    cards.map(|card| card.overall.get()).collect()
}

/// Returns the results by skill; empty unless there are several skills.
pub(super) fn skills<'a>(cases: impl Iterator<Item = &'a CaseResult>) -> Vec<SkillResult> {
    let skills = SkillResult::all(cases);
    // Of a single skill the summary of the run says the same.
    if skills.len() > 1 { skills } else { Vec::new() }
}

/// Describes whether skills were loaded as expected; empty if no case checks that.
pub(super) fn loading<'a>(cases: impl Iterator<Item = &'a CaseResult>) -> Vec<String> {
    LoadingRates::of(cases).map(|rates| rates.sentences()).unwrap_or_default()
}

/// Returns the repeated cases in the order of their first trials; empty for a run without repeats.
pub(super) fn repeated<'a>(cases: &[CaseView<'a>]) -> Vec<RepeatedCaseView<'a>> {
    let mut found: Vec<(RepeatedCaseView<'a>, f64, u32)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for reading in cases.iter().filter(|reading| reading.result.repeat.is_some()) {
        let id = reading.result.scenario.id.as_str();
        let at = *places.entry(id).or_insert_with(|| {
            let (mean, lowest, highest) = (None, None, None);
            let (passed, decided, trials) = (0, 0, 0);
            found.push((
                RepeatedCaseView { id, passed, decided, trials, mean, lowest, highest },
                0.0,
                0,
            ));
            found.len() - 1
        });
        let (case, sum, scored) = &mut found[at];
        case.trials += 1;
        case.decided += u32::from(reading.status.pass().is_some());
        case.passed += u32::from(reading.status.pass() == Some(true));
        if let Some(score) = reading.score() {
            *sum += score.get();
            *scored += 1;
            // Rounding must not push the mean out of the range of a score.
            case.mean = Score::new((*sum / f64::from(*scored)).clamp(0.0, 1.0)).ok();
            let (lowest, highest) = (case.lowest.unwrap_or(score), case.highest.unwrap_or(score));
            // `Score` is only partially ordered, so it has no `min` and `max`.
            case.lowest = Some(if score < lowest { score } else { lowest });
            case.highest = Some(if score > highest { score } else { highest });
        }
    }
    found.into_iter().map(|(case, ..)| case).collect()
}

/// Counts the cases by sandbox state: `3 CLEAN, 1 BLOCKED ATTEMPTS`.
pub(super) fn isolation<'a>(cases: impl Iterator<Item = &'a CaseResult>) -> Option<String> {
    let mut counts: BTreeMap<SandboxState, usize> = BTreeMap::new();
    for sandbox in cases.filter_map(|case| case.evidence.sandbox.as_ref()) {
        *counts.entry(sandbox.state).or_default() += 1;
    }
    let words = counts.iter().map(|(state, count)| format!("{count} {}", state.label()));
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use selftest_harness::judge::probability::{JudgeQuestion, QuestionAnswer, ReadingKind};
    use selftest_models::structured::UnscoredReason;

    #[test]
    fn trials_come_together_by_case() {
        let unscored = || Judgement {
            verdict: Verdict::Unscored {
                reason: UnscoredReason::Refused,
                detail: "no".to_owned(),
                partial: Vec::new(),
            },
            ..fixture::scored([1.0; 4], "")
        };
        let trials = [
            ("a", 1, fixture::scored([1.0; 4], "")),
            ("b", 1, unscored()),
            ("a", 2, fixture::scored([0.5; 4], "")),
            ("b", 2, unscored()),
            ("a", 3, unscored()),
        ];
        let mut cases = Vec::new();
        for (index, (id, repeat, judgement)) in trials.into_iter().enumerate() {
            let case = fixture::case(index, id, judgement);
            cases.push(selftest_harness::outcome::CaseResult { repeat: Some(repeat), ..case });
        }
        let readings: Vec<CaseView<'_>> = cases.iter().map(CaseView::new).collect();
        assert_eq!(readings[2].name(), "a #2");
        let found = repeated(&readings);
        let words: Vec<String> = found.iter().map(RepeatedCaseView::passed_words).collect();
        assert_eq!(words, ["1 of 2, 1 without a verdict", "0 of 0, 2 without a verdict"]);
        assert_eq!(
            [found[0].result(), found[1].result()].map(RepeatedResult::label),
            ["FLAKY", "UNSCORED"]
        );
        assert_eq!(found[0].mean, Some(fixture::score(0.75)));
        assert_eq!(found[0].lowest, Some(fixture::score(0.5)));
        assert_eq!((found[1].mean, found[1].highest), (None, None));
    }

    #[test]
    fn a_score_of_the_whole_answer_is_not_told_as_one_of_a_category() {
        let Verdict::Scored(mut card) = fixture::scored([0.5; 4], "").verdict else {
            panic!("a score")
        };
        let all = "format 0.50, factuality 0.50, instruction following 0.50, safety 0.50";
        assert_eq!(scores(&card), all);
        let asked = |by| ScoredQuestion {
            answer: QuestionAnswer {
                question: JudgeQuestion {
                    category: "format_score".to_owned(),
                    expectation: None,
                    text: "Is it so?".to_owned(),
                },
                by,
                raw: 0.5,
                neither: 0.0,
                relative: 0.0,
            },
            probability: fixture::score(0.5),
        };
        card.questions = vec![asked(ReadingKind::Agreement)];
        assert_eq!(scores(&card), "none, the answer was judged as a whole");
        card.questions.push(asked(ReadingKind::Description));
        assert_eq!(scores(&card), "format 0.50, the rest was judged as a whole");
        card.questions.push(asked(ReadingKind::Model));
        assert_eq!(scores(&card), all);
    }
}
