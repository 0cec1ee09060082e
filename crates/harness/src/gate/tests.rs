//! Decisions of the gate about hand-made runs: which cases are run again, how each changed, and what
//! the run comes to.

use super::attribution::ChangeAttribution;
use super::baseline::case_digest_of;
use super::finding::{CaseChange, GatedCase};
use super::pooled::{PooledFinding, PooledVerdict};
use super::trials::TrialCounts;
use super::*;
use crate::fixtures::{broken, case as judged_case, score, scored, unscored};
use crate::judge::JudgeMethod;
use crate::outcome::case::Interruption;
use crate::outcome::repeats::RepeatedResult;
use crate::outcome::{Rerun, RunEnding, RunOutcome, RunSummary};
use selftest_models::structured::UnscoredReason;
use selftest_stats::score::Threshold;

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);

/// A case with this verdict.
fn case(id: &str, pass: Option<bool>) -> CaseResult {
    let judgement = match pass {
        Some(true) => scored([0.9; 4], "Good."),
        Some(false) => scored([0.3; 4], "Bad."),
        None => unscored(UnscoredReason::Malformed, "no verdict"),
    };
    judged_case(0, id, judgement)
}

/// A case with these verdicts, the first of which was not run again.
fn trials(id: &str, passes: &[Option<bool>]) -> CaseResult {
    let reruns = passes[1..].iter().map(|pass| Rerun::from(case(id, *pass))).collect();
    CaseResult { reruns, ..case(id, passes[0]) }
}

/// A case that changed the project.
fn broke_out(id: &str) -> CaseResult {
    let files = vec!["src/main.rs".to_owned()];
    CaseResult { interruption: Some(Interruption::IsolationViolation(files)), ..case(id, YES) }
}

/// A baseline entry with this number of passed trials and trials in all.
fn accepted(id: &str, passed: u32, all: u32) -> BaselineCase {
    let now = case(id, YES);
    BaselineCase {
        id: id.to_owned(),
        digest: case_digest_of(&now).unwrap(),
        result: RepeatedResult::of(passed, all),
        passed,
        trials: all,
        first_trials: None,
        score: Some(score(0.8)),
        judged: false,
        threshold: now.threshold,
        safety_floor: now.safety_floor,
    }
}

fn gate(cases: Vec<BaselineCase>) -> BaselineGate {
    let planned = cases.iter().map(|case| case.id.clone()).collect();
    BaselineGate {
        mode: GateMode::NoRegression,
        path: "config/selftest-baseline.json".to_owned(),
        baseline: Baseline {
            schema_version: baseline::BASELINE_VERSION,
            run_id: "selftest-20260206-1234-bcdfgh".to_owned(),
            selftest_version: "0.1.0".to_owned(),
            judge: None,
            cases,
        },
        judge: None,
        planned,
        existing: None,
        confirm: 2,
        is_over: false,
    }
}

/// A gate whose cases `case-0` and so on passed once.
fn gate_of(count: usize) -> BaselineGate {
    gate((0..count).map(|number| accepted(&format!("case-{number}"), 1, 1)).collect())
}

fn judge(model: &str) -> JudgeIdentity {
    JudgeIdentity {
        model: model.to_owned(),
        weights: None,
        method: Some(JudgeMethod::Verdict),
        prompt_digest: None,
        rubric_digest: "r".to_owned(),
    }
}

fn to_confirm(gate: &BaselineGate, cases: &[CaseResult], all_ran: bool) -> Vec<String> {
    gate.to_confirm(&cases.iter().collect::<Vec<_>>(), all_ran)
}

#[test]
fn modes_that_compare_need_a_baseline() {
    assert!(!GateMode::Absolute.needs_baseline());
    assert!(GateMode::NoRegression.needs_baseline() && GateMode::Both.needs_baseline());
}

#[test]
fn a_miss_is_a_failure_that_only_another_trial_can_undo() {
    let open = RunGate::Absolute;
    assert!(open.is_miss(&case("a", NO)));
    assert!(!open.is_miss(&case("a", YES)) && !open.is_miss(&case("a", None)));
    let of = |mode, passed| {
        RunGate::Baseline(Box::new(BaselineGate { mode, ..gate(vec![accepted("a", passed, 1)]) }))
    };
    let none = of(GateMode::NoRegression, 1);
    assert!(none.is_miss(&case("a", NO)));
    assert!(!none.is_miss(&case("a", YES)), "it passes");
    assert!(!none.is_miss(&case("new", NO)), "it is new");
    assert!(!of(GateMode::NoRegression, 0).is_miss(&case("a", NO)), "it failed before");
    assert!(of(GateMode::Both, 0).is_miss(&case("a", NO)), "every case has to pass");
    assert!(!of(GateMode::Both, 0).is_miss(&case("a", YES)));
}

#[test]
fn a_miss_that_passed_when_it_was_run_again_is_not_settled() {
    assert!(RunGate::Absolute.is_settled_miss(&case("a", NO)));
    assert!(!RunGate::Absolute.is_settled_miss(&case("a", YES)));
    let flaky = trials("a", &[NO, YES]);
    assert_eq!(flaky.status().0, CaseStatus::Flaky);
    assert!(RunGate::Absolute.is_miss(&flaky) && !RunGate::Absolute.is_settled_miss(&flaky));
}

#[test]
fn what_can_be_held_against_a_baseline() {
    let why = |gate: &BaselineGate, case: &CaseResult| match gate.standing(case) {
        BaselineStanding::New => "new".to_owned(),
        BaselineStanding::Incomparable(why) => why,
        BaselineStanding::Accepted(then) => format!("accepted {}", then.id),
    };
    let mut gate = gate(vec![accepted("a", 1, 1)]);
    let now = case("a", YES);
    assert_eq!(why(&gate, &now), "accepted a");
    assert_eq!(why(&gate, &case("b", YES)), "new");
    assert_eq!(why(&gate, &CaseResult { case: None, ..now.clone() }), "it has no prompt");
    let mut other = now.clone();
    other.case.as_mut().unwrap().prompt.push('!');
    assert_eq!(why(&gate, &other), "its prompt or its demands have changed");
    // What no judge decides passes at any threshold and by any judge.
    let bar = CaseResult { threshold: Threshold::new(0.75).unwrap(), ..now.clone() };
    let floor = CaseResult { safety_floor: score(0.6), ..now.clone() };
    gate.baseline.judge = Some(judge("a"));
    gate.judge = Some(judge("b"));
    for case in [&now, &bar, &floor] {
        assert_eq!(why(&gate, case), "accepted a");
    }
    gate.baseline.cases[0].judged = true;
    assert_eq!(why(&gate, &now), "another model judges: b now, a then");
    gate.judge = Some(judge("a"));
    assert_eq!(why(&gate, &now), "accepted a");
    assert!(why(&gate, &bar).starts_with("it passes at 0.75 and safety 0.50 now"));
    assert!(why(&gate, &floor).starts_with("it passes at 0.74 and safety 0.60 now"));
    gate.judge = None;
    assert_eq!(gate.judge_difference(), None);
}

#[test]
fn a_run_that_is_over_has_one_round() {
    let gate = gate_of(1);
    assert_eq!(gate.max_rounds(), MAX_ROUNDS);
    assert_eq!(BaselineGate { confirm: 0, ..gate.clone() }.max_rounds(), 1);
    let over = gate.of_finished_run();
    assert!(over.is_over && over.max_rounds() == 1);
}

#[test]
fn the_rule_is_sized_by_the_cases_that_passed_and_are_run() {
    assert_eq!(gate_of(5).rule().trials_needed(), 3);
    assert_eq!(gate_of(6).rule().trials_needed(), 4);
    let mut five_of_six = gate_of(6);
    five_of_six.planned.remove("case-5");
    assert_eq!(five_of_six.rule().trials_needed(), 3);
    let mut failed_before = gate_of(6);
    failed_before.baseline.cases[5] = accepted("case-5", 0, 1);
    assert_eq!(failed_before.rule().trials_needed(), 3);
    assert_eq!(BaselineGate { confirm: 0, ..gate_of(6) }.rule().trials_needed(), 1);
}

#[test]
fn misses_are_run_again_until_they_are_decided() {
    let gate = gate_of(3);
    let passing = [case("case-1", YES), case("case-2", YES)];
    let again = |first: CaseResult, all_ran| {
        let cases = [vec![first], passing.to_vec()].concat();
        to_confirm(&gate, &cases, all_ran)
    };
    for all_ran in [false, true] {
        assert_eq!(again(case("case-0", NO), all_ran), ["case-0"]);
        assert_eq!(again(trials("case-0", &[NO, NO]), all_ran), ["case-0"]);
        // A trial without a verdict is a trial.
        assert_eq!(again(trials("case-0", &[NO, None, NO]), all_ran), [""; 0]);
        for decided in [
            case("case-0", YES),
            case("case-0", None),
            trials("case-0", &[NO, NO, NO]),
            trials("case-0", &[NO, YES]),
            broke_out("case-0"),
            case("new", NO),
        ] {
            assert_eq!(again(decided, all_ran), [""; 0]);
        }
    }
    // All at once is no chance.
    let failed = [case("case-0", NO), case("case-1", NO), case("case-2", NO)];
    assert_eq!(to_confirm(&gate, &failed, true), [""; 0]);
}

#[test]
fn all_cases_are_run_again_if_the_agent_as_a_whole_is_in_doubt() {
    let gate = gate_of(8);
    let run = |doubtful: &[CaseResult]| {
        let mut cases = doubtful.to_vec();
        cases.extend((doubtful.len()..8).map(|number| case(&format!("case-{number}"), YES)));
        cases
    };
    let flaky = |id| trials(id, &[NO, YES]);
    let doubt = run(&[flaky("case-0"), flaky("case-1")]);
    let others: Vec<String> = (2..8).map(|number| format!("case-{number}")).collect();
    assert_eq!(to_confirm(&gate, &doubt, true), others);
    // Not while cases are running, nor once a case blocks the run.
    assert_eq!(to_confirm(&gate, &doubt, false), [""; 0]);
    let regression = trials("case-1", &[NO; 4]);
    assert_eq!(to_confirm(&gate, &run(&[flaky("case-0"), regression]), true), [""; 0]);
    let escaped = CaseResult { reruns: flaky("case-1").reruns, ..broke_out("case-1") };
    assert_eq!(to_confirm(&gate, &run(&[flaky("case-0"), escaped]), true), [""; 0]);
    // A miss that is open comes first.
    assert_eq!(to_confirm(&gate, &run(&[flaky("case-0"), case("case-1", NO)]), true), ["case-1"]);
    // Nor if it may not be, or is over.
    let over = gate.of_finished_run();
    assert_eq!(to_confirm(&over, &doubt, true), [""; 0]);
}

#[test]
fn shifts_of_cases_by_what_decides_them() {
    let mut gate = gate_of(5);
    gate.baseline.cases[1].judged = true;
    gate.baseline.cases[2] = accepted("case-2", 1, 4);
    gate.baseline.cases[3] = accepted("case-3", 0, 0);
    let mut other = case("case-4", NO);
    other.case.as_mut().unwrap().prompt.push('!');
    let cases = [
        case("case-0", NO),
        case("case-1", NO),
        trials("case-2", &[NO, YES]),
        case("case-3", YES),
        other,
        case("new", NO),
        broken(0, "lost", Interruption::ModelUnavailable("the server is gone".to_owned())),
    ];
    let shifts = gate.case_shifts(&TrialGroup::by_case(&cases));
    let near = |values: &[f64], expected: &[f64]| {
        assert_eq!(values.len(), expected.len(), "{values:?}");
        for (value, expected) in values.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-9, "{values:?}");
        }
    };
    near(&shifts.judged, &[0.3 - 0.8]);
    near(&shifts.checked, &[-1.0, 0.5 - 0.25]);
    assert_eq!(shifts.not_run, ["the server is gone"]);
    // Without a verdict there is no share.
    let none = gate.case_shifts(&TrialGroup::by_case(&[case("case-0", None)]));
    near(&none.checked, &[]);
}

/// Returns the change of the only case of a run.
fn change(gate: &BaselineGate, cases: &[CaseResult]) -> Option<CaseChange> {
    let finding = gate.finding(cases, &[]);
    assert!(finding.cases.len() < 2, "{:?}", finding.cases);
    finding.cases.first().map(|case| case.change)
}

#[test]
fn how_a_case_changed() {
    let passed = gate(vec![accepted("a", 1, 1)]);
    for (now, expected) in [
        (case("a", YES), None),
        (case("a", NO), Some(CaseChange::Unconfirmed)),
        (trials("a", &[NO; 3]), Some(CaseChange::Regression)),
        (trials("a", &[NO, YES]), Some(CaseChange::Flaky)),
        (case("a", None), Some(CaseChange::Undecided)),
        (broke_out("a"), Some(CaseChange::Regression)),
        // What a case did to the project, no later pass undoes.
        (
            CaseResult { reruns: trials("a", &[NO, YES]).reruns, ..broke_out("a") },
            Some(CaseChange::Regression),
        ),
        (case("new", NO), Some(CaseChange::New)),
        (CaseResult { case: None, ..case("a", YES) }, Some(CaseChange::NotCompared)),
    ] {
        let words = format!("{:?} {}", now.status(), now.reruns.len());
        assert_eq!(change(&passed, &[now]), expected, "{words}");
    }
    let failed = gate(vec![accepted("a", 0, 1)]);
    let flaky = gate(vec![accepted("a", 1, 2)]);
    let unscored = gate(vec![accepted("a", 0, 0)]);
    for (pass, after_failed, after_flaky) in [
        (YES, Some(CaseChange::Fixed), None),
        (NO, Some(CaseChange::StillFailing), Some(CaseChange::StillFailing)),
        (None, None, None),
    ] {
        assert_eq!(change(&failed, &[case("a", pass)]), after_failed, "{pass:?}");
        assert_eq!(change(&flaky, &[case("a", pass)]), after_flaky, "{pass:?}");
        assert_eq!(change(&unscored, &[case("a", pass)]), Some(CaseChange::NotCompared));
    }
    let partly = trials("a", &[NO, YES]);
    assert_eq!(change(&failed, std::slice::from_ref(&partly)), Some(CaseChange::StillFailing));
    assert_eq!(change(&flaky, &[partly]), Some(CaseChange::StillFailing));
}

#[test]
fn what_a_finding_counts() {
    let mut gate = gate(vec![accepted("a", 1, 1), accepted("b", 0, 1), accepted("c", 0, 0)]);
    gate.existing = Some(["a".to_owned(), "b".to_owned()].into());
    let cases = [case("b", NO), case("a", NO), case("c", YES), case("d", YES)];
    let finding = gate.finding(&cases, &[]);
    assert_eq!((finding.compared, finding.passed_before), (2, 1));
    assert_eq!(finding.trials_needed, 3);
    assert!(!finding.beyond_chance);
    let changes: Vec<(&str, CaseChange)> =
        finding.cases.iter().map(|case| (&*case.id, case.change)).collect();
    let expected = [
        ("a", CaseChange::Unconfirmed),
        ("b", CaseChange::StillFailing),
        ("d", CaseChange::New),
        ("c", CaseChange::NotCompared),
    ];
    assert_eq!(changes, expected, "worst first");
    assert_eq!(finding.removed, ["c"]);
    let of_case = |id: &str| finding.of_case(id).map(|case| case.change);
    assert_eq!((of_case("b"), of_case("e")), (Some(CaseChange::StillFailing), None));
    let first = &finding.cases[0];
    assert_eq!((first.passed, first.decided), (0, 1));
    assert_eq!((first.score_before, first.score), (Some(score(0.8)), Some(score(0.3))));
    let finding = gate.finding(&[case("a", None), case("b", None)], &[]);
    assert_eq!((finding.compared, finding.passed_before), (0, 1), "no verdict, no comparison");
    gate.existing = None;
    assert_eq!(gate.finding(&cases, &[]).removed, [""; 0], "unknown is not gone");
}

#[test]
fn a_judge_that_moved_is_no_regression_of_the_agent() {
    let mut gate = gate_of(1);
    gate.baseline.cases[0].judged = true;
    let moved = vec![Anchor { scores: [0.9, 0.3], flipped: true }; 10];
    let still = vec![Anchor { scores: [0.9, 0.9], flipped: false }; 10];
    let of = |case: CaseResult, anchors: &[Anchor]| gate.finding(&[case], anchors).cases[0].change;
    let misses = [case("case-0", NO), trials("case-0", &[NO; 3])];
    assert_eq!(misses.clone().map(|case| of(case, &moved)), [CaseChange::JudgeMoved; 2]);
    let [open, miss] = misses;
    assert_eq!(of(open, &still), CaseChange::Unconfirmed);
    assert_eq!(of(miss, &still), CaseChange::Regression);
    // What no judge decided is the agent's doing: it died.
    let died = broken(0, "case-0", Interruption::SutError("exit code 1".to_owned()));
    let died = CaseResult { reruns: vec![Rerun::from(died.clone()); 2], ..died };
    assert_eq!(of(died, &moved), CaseChange::Regression);
    assert_eq!(of(trials("case-0", &[NO, YES]), &moved), CaseChange::Flaky);
}

/// A finding of one comparison, in which nothing changed.
fn unchanged() -> GateFinding {
    let finding = gate_of(1).finding(&[case("case-0", YES)], &[]);
    assert!(finding.cases.is_empty());
    GateFinding { pooled: None, ..finding }
}

fn gated(change: CaseChange, passed: u32, decided: u32) -> GatedCase {
    let (score, score_before) = (None, None);
    GatedCase { id: "a".to_owned(), change, reason: None, passed, decided, score_before, score }
}

fn summary(cases: &[CaseResult]) -> RunSummary {
    let mut summary = RunSummary::default();
    for case in cases {
        summary.add(case);
    }
    summary
}

fn pooled(verdict: PooledVerdict, rounds: u32) -> PooledFinding {
    let count = |passed, failed| TrialCounts { passed, failed };
    let (now, before) = (count(6, 2), count(8, 0));
    PooledFinding { verdict, cases: 4, rounds, now, before, tolerated: 0.1 }
}

#[test]
fn what_a_run_comes_to() {
    let of = |mode: GateMode, changes: &[GatedCase], cases: &[CaseResult], ending| {
        let finding = GateFinding { mode, cases: changes.to_vec(), ..unchanged() };
        finding.outcome(&summary(cases), ending)
    };
    let (some, both) = (GateMode::NoRegression, GateMode::Both);
    let (yes, no, none) = (case("a", YES), case("a", NO), case("a", None));
    let end = RunEnding::Complete;
    assert_eq!(of(some, &[], std::slice::from_ref(&yes), end), RunOutcome::Passed);
    assert_eq!(of(some, &[], &[], end), RunOutcome::NothingRan);
    let interrupted = of(some, &[], std::slice::from_ref(&yes), RunEnding::Interrupted);
    assert_eq!(interrupted, RunOutcome::Interrupted);
    for (change, passed, expected, in_both) in [
        (CaseChange::Regression, 0, RunOutcome::Failed, RunOutcome::Failed),
        (CaseChange::Unconfirmed, 0, RunOutcome::Inconclusive, RunOutcome::Failed),
        (CaseChange::Undecided, 1, RunOutcome::Inconclusive, RunOutcome::Inconclusive),
        (CaseChange::JudgeMoved, 0, RunOutcome::Inconclusive, RunOutcome::Inconclusive),
        (CaseChange::Flaky, 0, RunOutcome::Passed, RunOutcome::Passed),
        (CaseChange::StillFailing, 0, RunOutcome::Passed, RunOutcome::Failed),
        (CaseChange::New, 0, RunOutcome::Passed, RunOutcome::Failed),
        (CaseChange::New, 1, RunOutcome::Passed, RunOutcome::Passed),
        (CaseChange::NotCompared, 0, RunOutcome::Passed, RunOutcome::Failed),
        (CaseChange::Fixed, 1, RunOutcome::Passed, RunOutcome::Passed),
    ] {
        let changes = [gated(change, passed, 1)];
        assert_eq!(
            of(some, &changes, std::slice::from_ref(&no), end),
            expected,
            "{change:?} {passed}"
        );
        assert_eq!(
            of(both, &changes, std::slice::from_ref(&no), end),
            in_both,
            "{change:?} {passed}"
        );
    }
    // Cases without a verdict that did not pass before either.
    assert_eq!(of(some, &[], std::slice::from_ref(&none), end), RunOutcome::Passed);
    assert_eq!(of(both, &[], &[none], end), RunOutcome::Inconclusive);
    // Cases that were not run.
    let why = "gone".to_owned();
    let lost = broken(0, "b", Interruption::ModelUnavailable(why.clone()));
    assert_eq!(of(some, &[], &[yes.clone(), lost.clone()], end), RunOutcome::ModelUnavailable);
    let regression = [gated(CaseChange::Regression, 0, 3)];
    assert_eq!(of(some, &regression, &[no, lost], end), RunOutcome::Failed);
    let stopped = broken(0, "b", Interruption::LimitReached(why));
    let stopped = of(some, &[], &[yes, stopped], RunEnding::LimitReached);
    assert_eq!(stopped, RunOutcome::Inconclusive);
}

#[test]
fn a_comparison_of_nothing_passes_no_gate() {
    let summary = summary(&[case("a", YES)]);
    let nothing = GateFinding { compared: 0, ..unchanged() };
    assert_eq!(nothing.outcome(&summary, RunEnding::Complete), RunOutcome::Inconclusive);
    // Where every case has to pass, there is something to hold cases against.
    let both = GateFinding { mode: GateMode::Both, ..nothing };
    assert_eq!(both.outcome(&summary, RunEnding::Complete), RunOutcome::Passed);
}

#[test]
fn the_agent_as_a_whole_blocks_or_leaves_open() {
    let summary = summary(&[case("a", YES)]);
    for (verdict, expected) in [
        (PooledVerdict::Unchanged, RunOutcome::Passed),
        (PooledVerdict::Unclear, RunOutcome::Passed),
        (PooledVerdict::Open, RunOutcome::Inconclusive),
        (PooledVerdict::JudgeMoved, RunOutcome::Inconclusive),
        (PooledVerdict::Worse, RunOutcome::Failed),
    ] {
        let finding = GateFinding { pooled: Some(pooled(verdict, 1)), ..unchanged() };
        assert_eq!(finding.outcome(&summary, RunEnding::Complete), expected, "{verdict:?}");
        let blocks = finding.blocking_sentence();
        assert_eq!(blocks.is_some(), verdict == PooledVerdict::Worse, "{blocks:?}");
        assert_eq!(finding.pooled_sentence().is_some(), verdict != PooledVerdict::Unchanged);
    }
    // While cases block the run, what is unclear about the whole does not matter.
    let unclear = GateFinding { pooled: Some(pooled(PooledVerdict::Unclear, 1)), ..unchanged() };
    let crowd = GateFinding { beyond_chance: true, ..unclear.clone() };
    assert_eq!(crowd.pooled_sentence(), None);
    let regression = gated(CaseChange::Regression, 0, 3);
    let blocked = GateFinding { cases: vec![regression.clone()], ..unclear };
    assert_eq!(blocked.pooled_sentence(), None);
    let open = GateFinding {
        cases: vec![regression],
        pooled: Some(pooled(PooledVerdict::Open, 1)),
        ..unchanged()
    };
    assert!(open.pooled_sentence().is_some());
}

#[test]
fn ten_trials_in_the_baseline_are_enough_to_weigh_one_case() {
    for (trials, weighed) in [(9, None), (10, Some(1))] {
        let gate = gate(vec![accepted("case-0", trials, trials)]);
        let finding = gate.finding(&[case("case-0", YES)], &[]);
        assert_eq!(finding.pooled.map(|pooled| pooled.cases), weighed, "{trials}");
    }
}

#[test]
fn the_whole_is_weighed_by_the_trials_of_comparable_cases() {
    let gate = gate_of(6);
    let run = |failed: usize| -> Vec<CaseResult> {
        let pass = |number| if number < failed { NO } else { YES };
        (0..6).map(|number| case(&format!("case-{number}"), pass(number))).collect()
    };
    let of = |failed| gate.finding(&run(failed), &[]);
    let good = of(0).pooled.unwrap();
    assert_eq!((good.verdict, good.cases, good.rounds), (PooledVerdict::Unchanged, 6, 1));
    assert_eq!(good.now, TrialCounts { passed: 6, failed: 0 });
    assert_eq!(good.before, TrialCounts { passed: 6, failed: 0 });
    let bad = of(6);
    assert_eq!(bad.pooled.unwrap().verdict, PooledVerdict::Worse);
    assert!(bad.beyond_chance && bad.cases.iter().all(|it| it.change == CaseChange::Regression));
    // What was not run, or has no verdict, does not count, now or before.
    let four = gate.finding(&run(0)[..4], &[]).pooled.unwrap();
    assert_eq!((four.cases, four.before), (4, TrialCounts { passed: 4, failed: 0 }));
    assert!(gate.finding(&[case("case-0", None)], &[]).pooled.is_none());
    // One trial of each of three cases in the baseline is too little, and so it is of three with a
    // verdict.
    assert!(gate.finding(&run(0)[..3], &[]).pooled.is_none());
    let mut cases = run(0);
    for case_without in &mut cases[..3] {
        *case_without = case(&case_without.scenario.id.clone(), None);
    }
    assert!(gate.finding(&cases, &[]).pooled.is_none());
    // What never passed cannot fail more often.
    let mut known = gate.clone();
    known.baseline.cases[5] = accepted("case-5", 0, 3);
    let known = known.finding(&run(0), &[]).pooled.unwrap();
    assert_eq!((known.cases, known.before), (5, TrialCounts { passed: 5, failed: 0 }));
    // Where the judge moved, only what no judge decides counts against the agent.
    let moved = vec![Anchor { scores: [0.9, 0.3], flipped: true }; 10];
    let charged = gate.finding(&run(6), &moved);
    assert_eq!(charged.pooled.unwrap().verdict, PooledVerdict::JudgeMoved);
    let died = |number| {
        let why = "exit code 1".to_owned();
        broken(0, &format!("case-{number}"), Interruption::SutError(why))
    };
    let died: Vec<CaseResult> = (0..6).map(died).collect();
    assert_eq!(gate.finding(&died, &moved).pooled.unwrap().verdict, PooledVerdict::Worse);
    // A run that a regression blocks needs no further round.
    let mut blocked = run(1);
    blocked[0] = trials("case-0", &[NO; 4]);
    assert_eq!(gate.finding(&blocked, &[]).pooled.unwrap().verdict, PooledVerdict::Unclear);
    let mut open = run(2);
    open[0] = trials("case-0", &[NO, YES]);
    open[1] = trials("case-1", &[NO, YES]);
    assert_eq!(gate.finding(&open, &[]).pooled.unwrap().verdict, PooledVerdict::Open);
}

#[test]
fn sentences_of_a_finding() {
    let plain = unchanged();
    assert_eq!(
        plain.sentences()[0],
        "no_regression: 1 case held against config/selftest-baseline.json \
         (selftest-20260206-1234-bcdfgh), 1 of them passed there"
    );
    let has = |finding: &GateFinding, words: &str| {
        finding.sentences().iter().any(|sentence| sentence.contains(words))
    };
    for words in ["nothing could be compared", "so many cases failed", "no more there"] {
        assert!(!has(&plain, words), "{words}");
    }
    let full = GateFinding {
        compared: 0,
        beyond_chance: true,
        judge_difference: Some("the rubric has changed".to_owned()),
        removed: vec!["gone".to_owned()],
        pooled: Some(pooled(PooledVerdict::Worse, 2)),
        cases: vec![gated(CaseChange::Flaky, 1, 2)],
        ..plain
    };
    for words in [
        "the rubric has changed: what a judge decides is not compared",
        "nothing could be compared",
        "where each passes 90 times of 100",
        "2 of 8 trials of 4 cases failed in 2 rounds, before 0 of 8; an agent that fails in 10 %",
        "FLAKY a: passed before, 1 of 2 trials now",
        "no more there: gone",
    ] {
        assert!(has(&full, words), "{words}: {:#?}", full.sentences());
    }
}

#[test]
fn sentences_of_cases_and_of_the_whole() {
    let of = |change, passed, decided| gated(change, passed, decided).sentence();
    let with =
        GatedCase { reason: Some("overall 0.3".to_owned()), ..gated(CaseChange::Regression, 0, 3) };
    let expected = "REGRESSION a: passed before, fails now (0 of 3 trials passed): overall 0.3";
    assert_eq!(with.sentence(), expected);
    assert_eq!(of(CaseChange::New, 1, 1), "NEW a: passes");
    assert_eq!(of(CaseChange::New, 0, 0), "NEW a: has no verdict");
    for (passed, decided) in [(0, 1), (1, 2)] {
        assert_eq!(of(CaseChange::New, passed, decided), "NEW a: does not pass");
    }
    assert_eq!(of(CaseChange::Fixed, 1, 1), "FIXED a: failed before, passes now");
    let again = pooled(PooledVerdict::Unchanged, 2).sentence().unwrap();
    assert!(again.contains("2 of 8 trials of 4 cases failed in 2 rounds"), "{again}");
    assert_eq!(pooled(PooledVerdict::Unchanged, 1).sentence(), None);
    let unclear = pooled(PooledVerdict::Unclear, 1).sentence().unwrap();
    assert!(unclear.starts_with("2 of 8 trials of 4 cases failed, before 0 of 8"), "{unclear}");
}

#[test]
fn trials_are_counted_in_order_and_none_is_lost() {
    let repeats = [
        CaseResult { repeat: Some(1), ..trials("a", &[NO, YES, None]) },
        CaseResult { repeat: Some(2), ..case("a", NO) },
        case("b", None),
    ];
    let groups = TrialGroup::by_case(&repeats);
    let [a, b] = &groups[..] else { panic!("two cases") };
    assert_eq!((a.id(), b.id(), a.repeats()), ("a", "b", 2));
    assert_eq!(a.in_order(), [NO, NO, YES, None]);
    assert_eq!((a.passed(), a.decided(), a.all()), (1, 3, 4));
    assert_eq!(a.first_trials(), TrialCounts { passed: 0, failed: 2 });
    assert_eq!(a.score(), Some(score(0.5)), "the mean of 0.3, 0.3 and 0.9");
    assert!(a.failed_at_first() && !b.failed_at_first());
    assert!(a.reason().unwrap().contains("below threshold"), "{:?}", a.reason());
    let passed_first = [case("a", YES), case("a", NO)];
    assert!(!TrialGroup::by_case(&passed_first)[0].failed_at_first());
    let passed_then = [case("a", NO), case("a", YES)];
    assert!(!TrialGroup::by_case(&passed_then)[0].failed_at_first());
    assert_eq!(TrialGroup::by_case(&[case("a", YES)])[0].reason(), None);
}

#[test]
fn a_group_knows_escapes_and_cases_that_were_not_run() {
    let is = |case: CaseResult| {
        let cases = [case];
        let group = &TrialGroup::by_case(&cases)[0];
        (group.broke_out(), group.was_not_run())
    };
    assert_eq!(is(case("a", NO)), (false, false));
    assert_eq!(is(broke_out("a")), (true, false));
    let later = Rerun::from(broke_out("a"));
    assert_eq!(is(CaseResult { reruns: vec![later], ..case("a", NO) }), (true, false));
    assert_eq!(is(broken(0, "a", Interruption::Cancelled)), (false, true));
    let why = "a limit".to_owned();
    assert_eq!(is(broken(0, "a", Interruption::LimitReached(why))), (false, true));
    let partly = [broken(0, "a", Interruption::Cancelled), case("a", YES)];
    assert!(!TrialGroup::by_case(&partly)[0].was_not_run());
}

#[test]
fn history_fades_in_proportion() {
    let of = |passed, failed| {
        let TrialCounts { passed, failed } = TrialCounts { passed, failed }.recent();
        (passed, failed)
    };
    assert_eq!(of(40, 0), (40, 0));
    assert_eq!(of(41, 0), (20, 0));
    assert_eq!(of(30, 11), (15, 6));
    assert_eq!(of(400, 1), (25, 1), "a failure is not forgotten");
    let is_known = |passed, failed| TrialCounts { passed, failed }.is_known_failure();
    assert!(is_known(0, 3) && !is_known(0, 2) && !is_known(1, 9));
    assert_eq!(TrialCounts { passed: u32::MAX, failed: 2 }.all(), u32::MAX);
}

#[test]
fn the_reason_of_what_the_infrastructure_prevented() {
    let of = |case: &CaseResult| infrastructure_failure(case);
    let why = "the server is gone".to_owned();
    let gone = broken(0, "a", Interruption::ModelUnavailable(why.clone()));
    assert_eq!(of(&gone).as_deref(), Some("the server is gone"));
    let limit = broken(0, "a", Interruption::LimitReached(why.clone()));
    assert_eq!(of(&limit).as_deref(), Some("the server is gone"));
    for other in [
        case("a", NO),
        case("a", None),
        broken(0, "a", Interruption::Cancelled),
        broken(0, "a", Interruption::SutError(why)),
    ] {
        assert_eq!(of(&other), None, "{:?}", other.status());
    }
}

#[test]
fn anchors_are_judged_cases_chosen_by_their_ids() {
    let failed: Vec<CaseResult> =
        (0..20).map(|number| case(&format!("case-{number}"), NO)).collect();
    let twice = failed.iter().chain(&failed).cloned();
    let none = [case("unscored", None), broken(0, "died", Interruption::SutError("x".to_owned()))];
    let set = anchors::AnchorSet::choose("run", twice.chain(none));
    let ids: BTreeSet<&str> = set.cases.iter().map(|case| &*case.scenario.id).collect();
    assert_eq!((set.cases.len(), ids.len()), (anchors::MAX_ANCHORS, anchors::MAX_ANCHORS));
    assert!(ids.iter().all(|id| id.starts_with("case-")), "{ids:?}");
    let chosen = |run: &str, cases: &[CaseResult]| -> Vec<String> {
        let set = anchors::AnchorSet::choose(run, cases.iter().cloned());
        set.cases.iter().map(CaseResult::name).collect()
    };
    let reversed: Vec<CaseResult> = failed.iter().rev().cloned().collect();
    assert_eq!(chosen("run", &failed), chosen("run", &reversed));
    assert_ne!(chosen("run", &failed), chosen("another", &failed));
    // What was run again is not judged again.
    let again = anchors::AnchorSet::choose("run", [trials("a", &[NO, NO])]);
    assert_eq!(again.cases, [case("a", NO)]);
    // A file may have been extended by hand.
    let mut long = set.clone();
    long.cases = failed;
    assert_eq!(anchors::AnchorSet::read(&long.text()).unwrap().cases.len(), anchors::MAX_ANCHORS);
    assert_eq!(anchors::AnchorSet::read(&set.text()).unwrap(), set);
}

#[test]
fn an_anchor_has_a_score_before_and_now() {
    use crate::outcome::case::FormerVerdict;
    let former = |status, overall: Option<f64>| FormerVerdict {
        status,
        overall: overall.map(score),
        by_judge: true,
    };
    let of = |former, now: CaseResult| Anchor::of(&CaseResult { former, ..now });
    assert_eq!(of(None, case("a", YES)), None);
    assert_eq!(of(Some(former(CaseStatus::Passed, None)), case("a", YES)), None);
    assert_eq!(of(Some(former(CaseStatus::Passed, Some(0.8))), case("a", None)), None);
    for (status, now, flipped) in [
        (CaseStatus::Passed, YES, false),
        (CaseStatus::Passed, NO, true),
        (CaseStatus::Failed, YES, true),
        (CaseStatus::Failed, NO, false),
        (CaseStatus::Unscored, NO, false),
    ] {
        let anchor = of(Some(former(status, Some(0.8))), case("a", now)).unwrap();
        let expected = if now == YES { 0.9 } else { 0.3 };
        assert!((anchor.scores[0] - 0.8).abs() < 1e-9, "{anchor:?}");
        assert!((anchor.scores[1] - expected).abs() < 1e-9, "{anchor:?}");
        assert_eq!(anchor.flipped, flipped, "{status:?} {now:?}");
    }
}

#[test]
fn when_a_judge_has_moved() {
    let moved = |anchors: &[(f64, f64, bool)]| {
        let anchors: Vec<Anchor> = anchors
            .iter()
            .map(|(before, now, flipped)| Anchor { scores: [*before, *now], flipped: *flipped })
            .collect();
        let shifts = attribution::CaseShifts { same_answer: 1, ..Default::default() };
        ChangeAttribution::of(&shifts, &anchors, true).unwrap().judge_moved
    };
    assert!(!moved(&[]));
    // Far apart, in either direction.
    assert!(moved(&[(0.5, 0.75, false), (0.75, 0.5, false)]));
    assert!(!moved(&[(0.5, 0.5625, false), (0.5625, 0.5, false)]));
    // A little, but all in one direction.
    assert!(moved(&[(0.5, 0.53125, false); 10]) && moved(&[(0.53125, 0.5, false); 10]));
    assert!(!moved(&[(0.5, 0.53125, false); 6]), "chance does so once in a hundred");
    assert!(!moved(&[(0.5, 0.515_625, false); 10]), "too little to matter");
    // Other verdicts: at least two, and a fifth of all.
    let flips = |flipped: usize, all: usize| {
        let of = |number| (0.5, if number % 2 == 0 { 0.5625 } else { 0.4375 }, number < flipped);
        moved(&(0..all).map(of).collect::<Vec<_>>())
    };
    assert!(flips(2, 10) && flips(3, 10));
    assert!(!flips(1, 2) && !flips(1, 10) && !flips(2, 11));
}

#[test]
fn what_is_said_of_a_change() {
    let shifts = |judged: &[f64], same_answer| attribution::CaseShifts {
        judged: judged.to_vec(),
        same_answer,
        ..Default::default()
    };
    let anchor = [Anchor { scores: [0.5, 0.5], flipped: false }];
    let none = attribution::CaseShifts::default();
    // Of nothing nothing is said; of anchors, cases or losses alone something is.
    assert!(ChangeAttribution::of(&none, &[], true).is_none());
    assert!(ChangeAttribution::of(&none, &anchor, true).unwrap().agent.is_none());
    let lost = attribution::CaseShifts { not_run: vec!["gone".to_owned()], ..none.clone() };
    assert_eq!(ChangeAttribution::of(&lost, &[], true).unwrap().not_run, 1);
    // Another judge without anchors says nothing of the agent, unless no judge decided.
    assert!(ChangeAttribution::of(&shifts(&[-0.25], 0), &[], false).unwrap().agent.is_none());
    assert!(ChangeAttribution::of(&shifts(&[-0.25], 0), &[], true).unwrap().agent.is_some());
    assert!(ChangeAttribution::of(&shifts(&[-0.25], 0), &anchor, false).unwrap().agent.is_some());
    let checked = attribution::CaseShifts { checked: vec![-0.5], ..none };
    assert!(ChangeAttribution::of(&checked, &[], false).unwrap().agent.is_some());
    // Answers that did not change dilute the change of those that did.
    let agent = |found: Option<ChangeAttribution>| found.unwrap().agent.unwrap();
    let half = agent(ChangeAttribution::of(&shifts(&[-0.5, -0.25], 2), &[], true));
    assert!((half.mean - -0.1875).abs() < 1e-9, "{half:?}");
    let same = agent(ChangeAttribution::of(&shifts(&[], 4), &[], true));
    assert_eq!(same.to_string(), "0.00 [0.00, 0.00]");
    // What the judge moved on half of the cases is taken off by half.
    let by_two = [Anchor { scores: [0.75, 0.5], flipped: false }; 2];
    let half = agent(ChangeAttribution::of(&shifts(&[-0.5, -0.5], 2), &by_two, true));
    assert!((half.mean - -0.125).abs() < 1e-9, "{half:?}");
    let interval = half.interval.unwrap();
    assert!((interval.low - -0.125).abs() < 1e-9 && (interval.high - -0.125).abs() < 1e-9);
    // Neither end is beyond what a share can change by.
    let wide = agent(ChangeAttribution::of(&shifts(&[-1.0, 1.0], 0), &[], true));
    assert_eq!(wide.interval.map(|it| (it.low, it.high)), Some((-1.0, 1.0)));
    assert_eq!(agent(ChangeAttribution::of(&shifts(&[-0.5], 0), &[], true)).to_string(), "-0.50");
}
