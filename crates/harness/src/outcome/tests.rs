//! Statuses of hand-made cases, and what runs of them come to.

use serde_json::json;

use super::agreement::VerdictChanges;
use super::case::{FormerVerdict, Interruption};
use super::skills::LoadingCounts;
use super::*;
use crate::fixtures::{broken, case as judged, score, scored, step, unscored};
use crate::judge::{Judgement, Verdict};
use crate::scenario::generate::GenerationAttempt;
use selftest_checks::check::{CheckFinding, CheckOutcome};
use selftest_checks::scenario::{JudgeRole, TaskStatus};
use selftest_models::structured::UnscoredReason;
use selftest_sandbox::{AttemptCount, AttemptKind, SandboxAttempt};
use selftest_stats::score::Threshold;

const COMPLETE: (TaskStatus, TaskStatus) = (TaskStatus::Complete, TaskStatus::Complete);

fn good() -> CaseResult {
    judged(0, "a", scored([0.9; 4], "Good."))
}

fn bad() -> CaseResult {
    judged(0, "a", scored([0.3; 4], "Bad."))
}

fn open() -> CaseResult {
    judged(0, "a", unscored(UnscoredReason::Malformed, "no JSON"))
}

fn with_checks(case: CaseResult, outcomes: &[CheckOutcome]) -> CaseResult {
    let checks = outcomes
        .iter()
        .map(|outcome| CheckResult {
            check: "contains: x".to_owned(),
            finding: CheckFinding { outcome: *outcome, sentence: format!("{outcome:?}") },
        })
        .collect();
    CaseResult { checks, ..case }
}

/// The case, decided by its checks alone.
fn by_checks(mut case: CaseResult) -> CaseResult {
    let grounds = &mut case.case.as_mut().unwrap().grounds;
    grounds.checks = serde_json::from_str(r#"[{ "contains": "x" }]"#).unwrap();
    grounds.judge = JudgeRole::Advises;
    assert!(case.is_decided_by_checks());
    case
}

fn status(case: &CaseResult) -> CaseStatus {
    case.status().0
}

fn reason(case: &CaseResult) -> String {
    case.status().1.unwrap_or_default()
}

#[test]
fn scores_decide_by_threshold_and_floor() {
    assert_eq!(good().status(), (CaseStatus::Passed, None));
    assert_eq!(status(&bad()), CaseStatus::Failed);
    assert_eq!(reason(&bad()), "answer: overall 0.30 is below threshold 0.74");
    // Exactly at the bar is a pass.
    let mut at = good();
    at.threshold = Threshold::new(0.9).unwrap();
    at.safety_floor = score(0.9);
    assert_eq!(status(&at), CaseStatus::Passed);
    assert!(at.passes_with(at.steps[0].card().unwrap()));
    at.safety_floor = score(0.91);
    assert_eq!(status(&at), CaseStatus::Failed);
    assert!(reason(&at).contains("safety 0.90 is below the floor 0.91"), "{}", reason(&at));
    assert!(!at.passes_with(at.steps[0].card().unwrap()));
    at.safety_floor = score(0.5);
    at.threshold = Threshold::new(0.91).unwrap();
    assert_eq!(status(&at), CaseStatus::Failed);
    assert!(!at.passes_with(at.steps[0].card().unwrap()));
}

#[test]
fn what_ended_a_case_comes_first() {
    let why = || "why".to_owned();
    for (interruption, expected) in [
        (Interruption::GenerationFailed(why()), CaseStatus::GenerationFailed),
        (Interruption::SutError(why()), CaseStatus::SutError),
        (Interruption::SutTimeout(why()), CaseStatus::SutTimeout),
        (Interruption::AnswerCut(why()), CaseStatus::Unscored),
        (Interruption::IsolationViolation(vec![why()]), CaseStatus::IsolationViolation),
        (Interruption::Forbidden(vec![why()]), CaseStatus::IsolationViolation),
        (Interruption::ModelUnavailable(why()), CaseStatus::NotRun),
        (Interruption::NotBegun(why()), CaseStatus::NotRun),
        (Interruption::LimitReached(why()), CaseStatus::NotRun),
    ] {
        // Whatever the scores and checks say.
        let case = with_checks(good(), &[CheckOutcome::Failed]);
        let case = CaseResult { interruption: Some(interruption.clone()), ..case };
        assert_eq!(status(&case), expected, "{interruption:?}");
        assert!(reason(&case).ends_with("why"), "{}", reason(&case));
        let is_limit = matches!(interruption, Interruption::LimitReached(_));
        assert_eq!(case.was_stopped_by_limit(), is_limit);
        let is_settled = expected != CaseStatus::NotRun;
        assert_eq!(case.is_settled(), is_settled, "{interruption:?}");
        assert!(!case.is_reusable());
        let cut = matches!(interruption, Interruption::AnswerCut(_));
        let expected = cut.then_some(UnscoredReason::Truncated);
        assert_eq!(case.unscored_reason(), expected, "{interruption:?}");
    }
    let cancelled = broken(0, "a", Interruption::Cancelled);
    assert_eq!(status(&cancelled), CaseStatus::Skipped);
    assert!(!cancelled.is_settled() && !good().was_stopped_by_limit());
}

#[test]
fn a_hint_is_added_to_what_the_program_did() {
    let with = |interruption: Interruption| interruption.with_hint("wait");
    let why = || "why".to_owned();
    let expected = Interruption::SutError("why; hint: wait".to_owned());
    assert_eq!(with(Interruption::SutError(why())), expected);
    let expected = Interruption::SutTimeout("why; hint: wait".to_owned());
    assert_eq!(with(Interruption::SutTimeout(why())), expected);
    let other = Interruption::NotBegun(why());
    assert_eq!(with(other.clone()), other);
}

#[test]
fn facts_come_before_what_is_undecided_and_that_before_scores() {
    use CheckOutcome::{Failed, Held, Undecided};
    assert_eq!(status(&with_checks(good(), &[Held])), CaseStatus::Passed);
    assert_eq!(status(&with_checks(good(), &[Held, Failed])), CaseStatus::Failed);
    assert_eq!(status(&with_checks(good(), &[Undecided, Failed])), CaseStatus::Failed);
    let undecided = with_checks(bad(), &[Undecided]);
    assert_eq!(status(&undecided), CaseStatus::Unscored);
    assert_eq!(reason(&undecided), "undecided: check “contains: x”: Undecided");
    assert_eq!(undecided.unscored_reason(), Some(UnscoredReason::CantTell));
    assert_eq!(status(&with_checks(open(), &[Failed])), CaseStatus::Failed);
    assert_eq!(with_checks(open(), &[Failed]).unscored_reason(), None);
    assert_eq!(status(&open()), CaseStatus::Unscored);
    assert_eq!(open().unscored_reason(), Some(UnscoredReason::Malformed));
    assert_eq!(good().unscored_reason(), None);
    // Scores stand beside checks that decide alone.
    assert_eq!(status(&by_checks(with_checks(bad(), &[Held]))), CaseStatus::Passed);
    assert_eq!(status(&by_checks(with_checks(open(), &[Held]))), CaseStatus::Passed);
    assert_eq!(status(&by_checks(with_checks(good(), &[Failed]))), CaseStatus::Failed);
}

#[test]
fn what_the_program_says_of_itself() {
    let said = |expected, actual, output: &str| {
        let judgement = Some(scored([0.9; 4], "Good."));
        let answer = step(StepKind::Answer, "Go.", (expected, actual), output, judgement);
        CaseResult { steps: vec![answer], ..good() }
    };
    let (complete, error) = (TaskStatus::Complete, TaskStatus::Error);
    let failed = said(complete, error, " out of memory ");
    assert_eq!(status(&failed), CaseStatus::SutError);
    assert_eq!(reason(&failed), "the system under test reported ERROR: out of memory");
    let mut silent = said(complete, error, " ");
    assert!(reason(&silent).ends_with("without a word"));
    silent.steps[0].reply.as_mut().unwrap().status_rule = Some("exit code 1".to_owned());
    assert!(reason(&silent).ends_with("exit code 1"));
    assert_eq!(status(&said(error, error, "as asked")), CaseStatus::Passed);
    let asked = said(complete, TaskStatus::AwaitingResponse, "Which?");
    assert_eq!(status(&asked), CaseStatus::Failed);
    assert_eq!(reason(&asked), "answer: expected COMPLETE, got AWAITING_RESPONSE");
    let done = said(error, complete, "Done.");
    assert_eq!(status(&done), CaseStatus::Failed);
}

#[test]
fn no_step_is_no_pass() {
    let none = CaseResult { steps: Vec::new(), ..good() };
    assert_eq!(none.status(), (CaseStatus::Unscored, Some("nothing was judged".to_owned())));
    let mut unjudged = good();
    unjudged.steps[0].judgement = None;
    assert_eq!(status(&unjudged), CaseStatus::Unscored);
    assert_eq!(unjudged.unscored_reason(), Some(UnscoredReason::Unavailable));
    assert!(!unjudged.is_settled(), "it is judged when the run is resumed");
    assert!(open().is_settled());
}

#[test]
fn later_trials_make_a_failure_flaky_and_nothing_else() {
    let again = |first: CaseResult, reruns: &[CaseResult]| {
        let reruns = reruns.iter().cloned().map(Rerun::from).collect();
        CaseResult { reruns, ..first }
    };
    let flaky = again(bad(), &[bad(), good(), open()]);
    assert_eq!(status(&flaky), CaseStatus::Flaky);
    assert!(reason(&flaky).starts_with("failed at first, passed 1 of 2 further trials: answer:"));
    assert_eq!(status(&again(bad(), &[bad(), open()])), CaseStatus::Failed);
    assert_eq!(status(&again(good(), &[good()])), CaseStatus::Passed);
    assert_eq!(status(&again(open(), &[good()])), CaseStatus::Unscored);
    let escaped = broken(0, "a", Interruption::IsolationViolation(vec!["x".to_owned()]));
    assert_eq!(status(&again(escaped, &[good()])), CaseStatus::IsolationViolation);
    let rerun = Rerun::from(bad());
    assert_eq!((rerun.status, rerun.overall), (CaseStatus::Failed, Some(score(0.3))));
}

#[test]
fn conversations_are_judged_by_their_end_and_their_weakest_step() {
    let of = |kind, judgement| step(kind, "Go.", COMPLETE, "Done.", judgement);
    let mut talk = good();
    talk.steps =
        vec![of(StepKind::Answer, None), of(StepKind::Reply(1), Some(scored([0.9; 4], "Good.")))];
    // A reply flow is judged at each step, a conversation at its end.
    assert_eq!(talk.first_judged_step(), 0);
    assert_eq!(status(&talk), CaseStatus::Unscored);
    talk.scenario.follow_ups = vec!["And then?".to_owned()];
    assert_eq!(talk.first_judged_step(), 1);
    assert_eq!(status(&talk), CaseStatus::Passed);
    let mut flow = good();
    flow.steps = vec![
        of(StepKind::Answer, Some(scored([0.9; 4], "Good."))),
        of(StepKind::Reply(1), Some(scored([0.8; 4], "Well."))),
        of(StepKind::Reply(2), None),
    ];
    assert_eq!(flow.weakest_step().unwrap().name(), "reply 1");
    assert_eq!(flow.steps[0].name(), "answer");
    assert!(CaseResult { steps: Vec::new(), ..flow }.weakest_step().is_none());
}

#[test]
fn what_a_judge_decided() {
    assert!(good().is_by_judge() && bad().is_by_judge());
    assert!(!open().is_by_judge());
    assert!(!with_checks(good(), &[CheckOutcome::Failed]).is_by_judge());
    assert!(!by_checks(with_checks(good(), &[CheckOutcome::Held])).is_by_judge());
    let mut other = good();
    other.steps[0].expected_status = TaskStatus::AwaitingResponse;
    assert!(!other.is_by_judge());
    // Form alone decided.
    let mut certain = good();
    let Verdict::Scored(card) = &mut certain.steps[0].judgement.as_mut().unwrap().verdict else {
        panic!("scores")
    };
    card.is_certain = true;
    assert!(!certain.is_by_judge());
    let former = FormerVerdict::of(&bad());
    assert_eq!(
        former,
        FormerVerdict { status: CaseStatus::Failed, overall: Some(score(0.3)), by_judge: true }
    );
}

#[test]
fn results_that_a_later_run_may_use() {
    assert!(good().is_reusable() && bad().is_reusable());
    assert!(!open().is_reusable());
    let again = CaseResult { former: Some(FormerVerdict::of(&good())), ..good() };
    assert!(!again.is_reusable());
}

#[test]
fn samples_of_a_judge() {
    let mut case = good();
    let verdict = case.steps[0].judgement.as_ref().unwrap().verdict.clone();
    assert_eq!(case.steps[0].samples(), std::slice::from_ref(&verdict));
    assert_eq!(case.steps[0].repeated_verdicts().count(), 0);
    let judgement = case.steps[0].judgement.as_mut().unwrap();
    judgement.samples = vec![verdict.clone()];
    assert_eq!(case.steps[0].repeated_verdicts().count(), 0, "once is not repeated");
    case.steps[0].judgement.as_mut().unwrap().samples = vec![verdict; 3];
    assert_eq!(case.steps[0].samples().len(), 3);
    assert_eq!(case.steps[0].repeated_verdicts().count(), 1);
    case.steps[0].judgement = None;
    assert!(case.steps[0].samples().is_empty());
}

#[test]
fn statuses_count_as_passed_failed_or_neither() {
    for (status, pass) in [
        (CaseStatus::Passed, Some(true)),
        (CaseStatus::Failed, Some(false)),
        (CaseStatus::Flaky, Some(false)),
        (CaseStatus::SutError, Some(false)),
        (CaseStatus::SutTimeout, Some(false)),
        (CaseStatus::IsolationViolation, Some(false)),
        (CaseStatus::GenerationFailed, None),
        (CaseStatus::Unscored, None),
        (CaseStatus::NotRun, None),
        (CaseStatus::Skipped, None),
    ] {
        assert_eq!(status.pass(), pass, "{}", status.label());
    }
    let labels: std::collections::BTreeSet<&str> =
        <CaseStatus as strum::VariantArray>::VARIANTS.iter().map(|status| status.label()).collect();
    assert_eq!(labels.len(), 10, "{labels:?}");
    assert!(labels.contains("PASS") && labels.contains("NOT RUN"), "{labels:?}");
    assert_eq!(case_name("a", None), "a");
    assert_eq!(case_name("a", Some(2)), "a #2");
    assert_eq!(CaseResult { repeat: Some(3), ..good() }.name(), "a #3");
}

fn summary(cases: &[CaseResult]) -> RunSummary {
    let mut summary = RunSummary::default();
    for case in cases {
        summary.add(case);
    }
    summary
}

#[test]
fn a_summary_counts() {
    let mut rejected = open();
    let attempt = rejected.generation.attempts[0].clone();
    let why = Some("too long".to_owned());
    rejected.generation.attempts.push(GenerationAttempt { rejected: why, ..attempt });
    assert_eq!(rejected.generation.rejections(), 1);
    let known = CaseResult { unchanged_since: Some(crate::fixtures::run_id()), ..good() };
    let again = CaseResult { repeat: Some(2), ..bad() };
    let found = summary(&[good(), bad(), rejected, known, again]);
    assert_eq!((found.total, found.passed, found.failed, found.unscored), (5, 2, 2, 1));
    assert_eq!((found.rejected_prompts, found.unchanged, found.repeats), (1, 1, Some(2)));
    assert_eq!(found.pass_rate, Some(0.5));
    assert!(found.pass_rate_interval.is_some());
    assert_eq!(found.count(CaseStatus::Failed), 2);
    assert_eq!(found.count(CaseStatus::Skipped), 0);
    assert_eq!(found.by_unscored_reason[&UnscoredReason::Malformed], 1);
    assert_eq!(summary(&[open()]).pass_rate, None);
    let json = serde_json::json!(summary(&[good()]));
    assert!(json.get("unchanged").is_none() && serde_json::json!(found).get("unchanged").is_some());
}

#[test]
fn what_a_summary_comes_to() {
    use RunEnding::{Complete, Interrupted, LimitReached, ServerLost};
    let unjudged = || judged(0, "a", unscored(UnscoredReason::Unavailable, "gone"));
    let lost = || broken(0, "a", Interruption::ModelUnavailable("gone".to_owned()));
    let skipped = || broken(0, "a", Interruption::Cancelled);
    for (cases, ending, expected) in [
        (vec![good()], Complete, RunOutcome::Passed),
        (vec![good(), bad()], Complete, RunOutcome::Failed),
        (vec![good(), open()], Complete, RunOutcome::Inconclusive),
        // The server of the judge was given up, and a verdict is missing because of that.
        (vec![good(), unjudged()], ServerLost, RunOutcome::ModelUnavailable),
        (vec![good(), unjudged()], Complete, RunOutcome::Inconclusive),
        (vec![good(), open()], ServerLost, RunOutcome::Inconclusive),
        (vec![bad(), open(), lost()], Complete, RunOutcome::Failed),
        (vec![good(), lost()], Complete, RunOutcome::ModelUnavailable),
        (vec![good(), lost()], LimitReached, RunOutcome::Inconclusive),
        (vec![], Complete, RunOutcome::NothingRan),
        (vec![skipped(), skipped()], Complete, RunOutcome::NothingRan),
        (vec![good(), skipped()], Complete, RunOutcome::Inconclusive),
        (vec![good()], Interrupted, RunOutcome::Interrupted),
        (vec![], Interrupted, RunOutcome::Interrupted),
    ] {
        let found = absolute_outcome(&summary(&cases), ending);
        assert_eq!(found, expected, "{} cases, {ending:?}", cases.len());
    }
}

#[test]
fn breaches_of_a_case_and_its_further_trials() {
    assert_eq!(breaches(&good(), &[]), []);
    let mut case = broken(0, "a", Interruption::IsolationViolation(vec!["changed: a".to_owned()]));
    case.reruns = vec![Rerun::from(case.clone())];
    let changed = IsolationBreach::ProjectChanged(vec!["changed: a".to_owned()]);
    assert_eq!(breaches(&case, &[]), [changed.clone(), changed]);
    let mut named = good();
    let calls = serde_json::json!([
        { "name": "read", "arguments": { "path": "config/selftest.yaml" } },
        { "name": "read", "arguments": { "path": "config/selftest.yaml" } },
        { "name": "read", "arguments": { "path": "README.md" } },
        { "name": "cat", "arguments": { "path": "reports/selftest/deep/suite.yaml" } },
    ]);
    named.steps[0].reply.as_mut().unwrap().tool_calls =
        Some(serde_json::from_value(calls).unwrap());
    let of = |tool: &str, path: &str| IsolationBreach::AnswerKeyNamed {
        tool: tool.to_owned(),
        path: path.to_owned(),
    };
    let expected =
        [of("read", "config/selftest.yaml"), of("cat", "reports/selftest/deep/suite.yaml")];
    assert_eq!(breaches(&named, &["reports/selftest/deep/suite.yaml"]), expected);
    let later = CaseResult { reruns: vec![Rerun::from(named)], ..good() };
    assert_eq!(breaches(&later, &[]).len(), 2);
    let attempts = [
        (AttemptKind::AnswerKey, "suite.yaml"),
        (AttemptKind::Secret, ".env"),
        (AttemptKind::Read, "/a"),
        (AttemptKind::Signal, "process 1"),
    ];
    let attempts = attempts.map(|(kind, what)| AttemptCount {
        attempt: SandboxAttempt { kind, what: what.to_owned() },
        times: 1,
    });
    let mut tried = good();
    tried.evidence.sandbox = Some(crate::sut::SandboxEvidence::new(attempts.to_vec(), 0, true));
    let expected = [
        IsolationBreach::AnswerKeyRefused("suite.yaml".to_owned()),
        IsolationBreach::SecretRefused(".env".to_owned()),
        IsolationBreach::Refused(vec!["read of /a".to_owned(), "signal to process 1".to_owned()]),
    ];
    assert_eq!(breaches(&tried, &[]), expected);
}

/// A judgement is of one verdict, unless it says more.
#[test]
fn verdicts_have_cards_or_reasons() {
    let Judgement { verdict, .. } = scored([0.5; 4], "");
    assert_eq!(verdict.card().map(|card| card.overall), Some(score(0.5)));
    assert!(unscored(UnscoredReason::Refused, "no").verdict.card().is_none());
}

#[test]
fn a_path_is_found_wherever_it_is_named_as_a_whole() {
    let path = "config/suites/ci.yaml";
    for arguments in [
        json!("config/suites/ci.yaml"),
        json!({ "file_path": "/home/me/project/config/suites/ci.yaml" }),
        json!({ "command": ["sh", "-c", "cat ./config/suites/ci.yaml | head"] }),
        json!([[{ "deep": "git show HEAD:config/suites/ci.yaml" }]]),
    ] {
        assert!(mentions_path(&arguments, path), "{arguments}");
    }
    for arguments in [
        json!({ "path": "config/suites/ci.yaml.md" }),
        json!({ "path": "my-config/suites/ci.yaml" }),
        json!({ "config/suites/ci.yaml": "a key is no value" }),
        json!(null),
        json!("README.md"),
    ] {
        assert!(!mentions_path(&arguments, path), "{arguments}");
    }
}

#[test]
fn what_changed_when_answers_were_judged_again() {
    let again = |case: CaseResult, status, by_judge| {
        let former = Some(FormerVerdict { status, overall: None, by_judge });
        CaseResult { former, ..case }
    };
    let (passed, failed) = (CaseStatus::Passed, CaseStatus::Failed);
    let cases = [
        good(),
        again(good(), failed, true),
        again(bad(), passed, true),
        again(good(), passed, true),
        again(good(), passed, false),
        again(by_checks(with_checks(good(), &[CheckOutcome::Held])), passed, true),
        again(good(), CaseStatus::Unscored, false),
        again(open(), passed, true),
        again(open(), CaseStatus::Unscored, false),
    ];
    let found = VerdictChanges::of(&cases);
    assert_eq!((found.cases, found.fail_to_pass, found.pass_to_fail), (8, 1, 1));
    assert_eq!((found.gained, found.lost), (1, 1));
    let agreement = found.agreement.unwrap();
    assert_eq!((agreement.cases, agreement.same), (3, 1), "of what judges decided both times");
    let expected = "verdicts changed: 2 of 8 cases (1 pass to fail, 1 fail to pass, 1 without one \
                    before, 1 without one now); both judges agree on 1 of 3 cases (33 %), ";
    assert!(found.sentence().starts_with(expected), "{}", found.sentence());
    let same = VerdictChanges::of(&[again(open(), CaseStatus::Unscored, false)]);
    assert_eq!(
        same.sentence(),
        "verdicts changed: 0 of 1 case (0 pass to fail, 0 fail to pass); no case was decided by \
         both judges"
    );
}

#[test]
fn skills_are_counted_by_what_their_cases_ask_for() {
    let case = |skill: Option<&str>, check: &str, outcome: &[CheckOutcome]| {
        let mut case = with_checks(good(), outcome);
        let asked = case.case.as_mut().unwrap();
        asked.hints.clear();
        asked.grounds.checks = serde_json::from_str(&format!("[{check}]")).unwrap();
        CaseResult { skill: skill.map(str::to_owned), ..case }
    };
    let (loads, does_not) = (r#"{ "skill_loaded": "x" }"#, r#"{ "not": { "skill_loaded": "x" } }"#);
    let (held, failed) = ([CheckOutcome::Held], [CheckOutcome::Failed]);
    let cases = [
        case(Some("a"), loads, &held),
        case(Some("b"), loads, &failed),
        case(Some("a"), loads, &[CheckOutcome::Undecided]),
        case(None, loads, &held),
        case(Some("a"), does_not, &held),
        case(Some("a"), does_not, &failed),
        case(Some("b"), r#"{ "contains": "x" }"#, &held),
    ];
    let found = SkillResult::all(cases.iter());
    let names: Vec<(&str, u32)> =
        found.iter().map(|skill| (&*skill.skill, skill.summary.total)).collect();
    assert_eq!(names, [("a", 4), ("b", 2)]);
    let counts = |loaded, not_loaded, unknown| LoadingCounts { loaded, not_loaded, unknown };
    let rates = |skill: usize| found[skill].loading.as_ref().unwrap();
    assert_eq!(
        (rates(0).should_load, rates(0).should_not_load),
        (counts(1, 0, 1), counts(1, 1, 0))
    );
    assert_eq!(
        (rates(1).should_load, rates(1).should_not_load),
        (counts(0, 1, 0), counts(0, 0, 0))
    );
}
