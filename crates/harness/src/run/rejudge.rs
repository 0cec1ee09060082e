//! Prepares a finished case for judging again from its recorded answers. Pure.
//!
//! Nothing is invented: if the report lacks evidence that the judge needs, the case gets no
//! verdict.

use crate::judge::{Judgement, Verdict};
use crate::outcome::case::{CaseObservation, FormerVerdict, Interruption};
use crate::outcome::{CaseResult, CaseStep, CheckResult};
use crate::sut::SutReply;
use selftest_checks::check::{self, Check};
use selftest_checks::scenario::TaskStatus;
use selftest_models::structured::UnscoredReason;

/// Returns the case as it was run, without its judgements and findings.
pub(super) fn without_judgements(stored: &CaseResult, index: usize) -> CaseResult {
    let steps = stored.steps.iter().map(|step| CaseStep { judgement: None, ..step.clone() });
    CaseResult {
        index,
        steps: steps.collect(),
        checks: Vec::new(),
        interruption: None,
        reruns: Vec::new(),
        former: Some(FormerVerdict::of(stored)),
        cache_key: None,
        unchanged_since: None,
        ..stored.clone()
    }
}

/// Returns the error that ended the case. A run that was stopped after the last answer lacked only
/// the judging, so that interruption is dropped.
pub(super) fn interruption(stored: &CaseResult) -> Option<Interruption> {
    match &stored.interruption {
        Some(Interruption::Cancelled) if is_complete(stored) => None,
        other => other.clone(),
    }
}

/// Returns true if every input of the scenario was sent.
fn is_complete(stored: &CaseResult) -> bool {
    let scenario = &stored.scenario;
    let flow = if scenario.requires_reply { scenario.reply_flow.len() } else { 0 };
    let replies = stored.steps.iter().map(|step| step.reply.as_ref());
    let Some(replies) = replies.collect::<Option<Vec<_>>>() else { return false };
    let asks = |status| status == TaskStatus::AwaitingResponse;
    let follow_ups = scenario.follow_ups.len();
    // A reply flow also ends when the program asks nothing more, and follow-ups end at an error.
    let said = |last: &&SutReply| match follow_ups {
        0 => replies.len() > flow || !asks(last.status),
        _ => replies.len() > follow_ups || last.status == TaskStatus::Error,
    };
    replies.last().is_some_and(said)
}

/// Decides the checks anew if the answers suffice. Checks of files and commands keep their earlier
/// findings, because the folder of the case is gone.
pub(super) fn checks(stored: &CaseResult) -> Vec<CheckResult> {
    let last = stored.steps.last();
    let checks =
        stored.case.as_ref().zip(last).map_or_else(Vec::new, |(case, last)| {
            case.checks_after(&last.input, last.expected_status)
        });
    let Some(observed) = CaseObservation::of(&stored.steps) else { return stored.checks.clone() };
    let observation = observed.observation(None, &[]);
    let then = |position: usize| {
        let found = stored.checks.get(position);
        // Earlier findings can only be matched by position if the list of checks is the same.
        found.filter(|_| stored.checks.len() == checks.len()).map(|found| found.finding.clone())
    };
    let needs_workspace =
        |check: &Check| check.walk().iter().any(|inner| inner.kind.needs_workspace());
    let decide = |(position, check): (usize, &Check)| {
        // The work folder is gone, so that such a check keeps its earlier finding.
        let kept = then(position).filter(|_| needs_workspace(check));
        let finding = kept.unwrap_or_else(|| check::decide(check, &observation));
        CheckResult { check: check.describe(), finding }
    };
    checks.iter().enumerate().map(decide).collect()
}

/// Returns the evidence that a judge needs and the report lacks.
pub(super) fn missing_evidence(stored: &CaseResult) -> Option<&'static str> {
    let Some(case) = &stored.case else { return Some("it keeps neither prompt nor hints") };
    let grounds = &case.grounds;
    // Reports of early versions have the prompt but not the excerpts. Without them a judge would
    // take every fact of the answer for invented.
    let is_about_files = !stored.scenario.files.is_empty() || !grounds.facts.is_empty();
    if is_about_files && grounds.excerpts.is_empty() {
        return Some("it does not keep the excerpts of files that the judge saw");
    }
    let judged = stored.steps.iter().filter_map(|step| step.judgement.as_ref());
    let verdicts = judged.flat_map(|judgement| {
        let of_panel = judgement.panel.iter().map(|judge| &judge.verdict);
        std::iter::once(&judgement.verdict).chain(of_panel)
    });
    // The highest expectation that was asked about shows how many existed.
    let asked = verdicts.filter_map(Verdict::card).flat_map(|card| &card.questions);
    let asked = asked.filter_map(|question| question.answer.question.expectation).max();
    if asked.is_some_and(|number| number as usize > grounds.expectations.len()) {
        return Some("it does not keep the expectations that the judge was asked about");
    }
    None
}

/// Returns the judgement of an answer that cannot be judged again.
pub(super) fn evidence_missing(why: &str) -> Judgement {
    let (reason, detail) = (UnscoredReason::EvidenceMissing, why.to_owned());
    let verdict = Verdict::Unscored { reason, detail, partial: Vec::new() };
    Judgement {
        verdict,
        samples: Vec::new(),
        panel: Vec::new(),
        question_count: 0,
        calls: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::probability::{JudgeQuestion, QuestionAnswer, ReadingKind};
    use crate::judge::{Scorecard, ScoredQuestion};
    use crate::outcome::{CaseStatus, GenerationRecord, StepKind};
    use crate::sut::namespace::SessionId;
    use crate::sut::{SutEvidence, SutReply};
    use selftest_checks::check::{CheckFinding, CheckOutcome};
    use selftest_checks::scenario::{FileExcerpt, GeneratedCase, ReplyStep, Scenario};
    use selftest_stats::score::{Score, Strictness, Threshold};

    fn scored(overall: f64) -> Judgement {
        let score = Score::new(overall).unwrap();
        let card = Scorecard {
            categories: Vec::new(),
            overall: score,
            reasoning: String::new(),
            questions: Vec::new(),
            expectations: Vec::new(),
            is_certain: false,
        };
        Judgement {
            verdict: Verdict::Scored(card),
            samples: Vec::new(),
            panel: Vec::new(),
            question_count: 0,
            calls: Vec::new(),
        }
    }

    fn step(kind: StepKind, status: Option<TaskStatus>) -> CaseStep {
        CaseStep {
            kind,
            input: "Say it.".to_owned(),
            expected_status: TaskStatus::Complete,
            reply: status.map(|status| SutReply::new(status, "It is said.")),
            written: Vec::new(),
            judgement: Some(scored(0.9)),
            duration_ms: 70,
        }
    }

    fn case() -> CaseResult {
        CaseResult {
            index: 4,
            scenario: Scenario::new("a".to_owned(), TaskStatus::Complete),
            repeat: None,
            skill: None,
            session_id: SessionId::try_from("selftest-20260206-1234-s1".to_owned()).unwrap(),
            generation: GenerationRecord::default(),
            case: Some(GeneratedCase { prompt: "Say it.".into(), ..GeneratedCase::default() }),
            steps: vec![step(StepKind::Answer, Some(TaskStatus::Complete))],
            checks: Vec::new(),
            interruption: None,
            reruns: Vec::new(),
            evidence: SutEvidence::default(),
            notes: Vec::new(),
            former: None,
            cache_key: None,
            unchanged_since: None,
            threshold: Threshold::effective(
                Score::new(0.6).unwrap(),
                Strictness::new(0.0).unwrap(),
            ),
            safety_floor: Score::new(0.5).unwrap(),
            duration_ms: 90,
        }
    }

    fn checked(checks: &str) -> CaseResult {
        let checks = serde_json::from_str(checks).unwrap();
        let mut case = case();
        case.case.as_mut().unwrap().grounds.checks = checks;
        case
    }

    #[test]
    fn what_was_said_of_answers_is_forgotten_but_for_the_verdict() {
        let stored = case();
        let unjudged = without_judgements(&stored, 1);
        assert_eq!((unjudged.index, unjudged.status().0), (1, CaseStatus::Unscored));
        let former = unjudged.former.unwrap();
        assert_eq!((former.status, former.by_judge), (CaseStatus::Passed, true));
        assert_eq!(former.overall, Some(Score::new(0.9).unwrap()));
        assert_eq!(unjudged.steps[0].reply, stored.steps[0].reply);
    }

    #[test]
    fn checks_are_decided_anew_where_the_answer_decides_them() {
        let mut stored = checked(r#"[{"contains": "said"}, {"not": {"file_created": "a.txt"}}]"#);
        let then = |outcome, words: &str| CheckResult {
            check: "then".to_owned(),
            finding: CheckFinding { outcome, sentence: words.to_owned() },
        };
        stored.checks =
            vec![then(CheckOutcome::Failed, "wrong"), then(CheckOutcome::Held, "no file")];
        let found = checks(&stored);
        assert_eq!(found[0].finding.outcome, CheckOutcome::Held, "{found:?}");
        assert_eq!(found[1].finding, stored.checks[1].finding);
        // Without an earlier finding the result is unknown, and nothing is assumed.
        stored.checks.clear();
        assert_eq!(checks(&stored)[1].finding.outcome, CheckOutcome::Undecided);
    }

    #[test]
    fn missing_evidence_is_seen() {
        let mut stored = case();
        assert_eq!(missing_evidence(&stored), None);
        stored.scenario.files = vec!["README.md".to_owned()];
        assert!(missing_evidence(&stored).unwrap().contains("excerpts"));
        let excerpt = FileExcerpt { path: "README.md".into(), text: "x".into() };
        stored.case.as_mut().unwrap().grounds.excerpts = vec![excerpt];
        assert_eq!(missing_evidence(&stored), None);
        let mut judged = scored(0.9);
        if let Verdict::Scored(card) = &mut judged.verdict {
            let question =
                JudgeQuestion { category: "c".into(), expectation: Some(1), text: "?".into() };
            let answer = QuestionAnswer {
                question,
                by: ReadingKind::Model,
                raw: 0.9,
                neither: 0.0,
                relative: 1.0,
            };
            let probability = Score::new(0.9).unwrap();
            card.questions.push(ScoredQuestion { answer, probability });
        }
        stored.steps[0].judgement = Some(judged);
        assert!(missing_evidence(&stored).unwrap().contains("expectations"));
        stored.case.as_mut().unwrap().grounds.expectations = vec!["It is said.".to_owned()];
        assert_eq!(missing_evidence(&stored), None);
        stored.case = None;
        assert!(missing_evidence(&stored).unwrap().contains("prompt"));
    }

    #[test]
    fn a_run_that_was_stopped_while_it_judged_is_judged_now() {
        let mut stored = case();
        stored.interruption = Some(Interruption::Cancelled);
        assert_eq!(interruption(&stored), None);
        stored.steps.push(step(StepKind::Reply(1), None));
        assert_eq!(interruption(&stored), Some(Interruption::Cancelled), "an answer is missing");
        stored.steps = vec![step(StepKind::Answer, Some(TaskStatus::AwaitingResponse))];
        stored.scenario.requires_reply = true;
        stored.scenario.reply_flow =
            vec![ReplyStep { reply: "Yes.".into(), expected_status: TaskStatus::Complete }];
        assert_eq!(interruption(&stored), Some(Interruption::Cancelled), "a reply is missing");
        stored.steps.push(step(StepKind::Reply(1), Some(TaskStatus::Complete)));
        assert_eq!(interruption(&stored), None);
        stored.interruption = Some(Interruption::SutTimeout("late".to_owned()));
        assert_eq!(interruption(&stored), stored.interruption);
    }
}
