//! Creates a baseline from a run's report, for later runs to be compared with. Pure.

use crate::document::ReportDocument;
use selftest_checks::scenario::GeneratedCase;
use selftest_harness::gate::anchors::AnchorSet;
use selftest_harness::gate::baseline::{BASELINE_VERSION, Baseline, BaselineCase, case_digest_of};
use selftest_harness::gate::trials::TrialGroup;
use selftest_harness::outcome::CaseResult;
use selftest_harness::outcome::repeats::RepeatedResult;

/// A baseline, and the cases missing from it.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedBaseline {
    /// The results.
    pub baseline: Baseline,
    /// Answers that later runs judge again.
    pub anchors: AnchorSet,
    /// IDs of cases without a result: those that were not run or have no prompt.
    pub left_out: Vec<String>,
}

/// A reason why a run cannot be accepted as a baseline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// The run was killed or stopped.
    #[error("it did not finish")]
    Incomplete,
    /// The run is one arm of an experiment.
    #[error("it is an arm of an experiment")]
    Arm,
    /// No case was run.
    #[error("none of its cases was run")]
    Empty,
}

/// Creates a baseline from the results of a run.
pub fn accept(report: &ReportDocument) -> Result<AcceptedBaseline, AcceptError> {
    if !report.complete {
        return Err(AcceptError::Incomplete);
    }
    if report.experiment.is_some() {
        return Err(AcceptError::Arm);
    }
    let results: Vec<CaseResult> =
        report.cases.iter().enumerate().map(|(index, case)| case.result(index)).collect();
    let (mut cases, mut left_out) = (Vec::new(), Vec::new());
    for trials in TrialGroup::by_case(&results) {
        match baseline_case(&trials) {
            Some(case) => cases.push(case),
            None => left_out.push(trials.id().to_owned()),
        }
    }
    if cases.is_empty() {
        return Err(AcceptError::Empty);
    }
    // By id, so that a baseline that is committed changes only where its cases do.
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    let judge = report.models.judge_identity(&report.prompt_digests, &report.rubric.digest);
    let baseline = Baseline {
        schema_version: BASELINE_VERSION,
        run_id: report.run_id.to_string(),
        selftest_version: report.selftest_version.clone(),
        judge,
        cases,
    };
    let anchors = AnchorSet::choose(&baseline.run_id, results);
    Ok(AcceptedBaseline { baseline, anchors, left_out })
}

/// Returns a case in the form of a baseline; `None` if it was never run.
fn baseline_case(trials: &TrialGroup<'_>) -> Option<BaselineCase> {
    let case = trials.first();
    let digest = case_digest_of(case)?;
    if trials.was_not_run() {
        return None;
    }
    let accepted = BaselineCase {
        id: trials.id().to_owned(),
        digest,
        result: RepeatedResult::of(trials.passed(), trials.decided()),
        passed: trials.passed(),
        trials: trials.all(),
        first_trials: None,
        score: trials.score(),
        judged: case.case.as_ref().is_some_and(GeneratedCase::needs_judge),
        threshold: case.threshold,
        safety_floor: case.safety_floor,
    };
    Some(accepted.with_first_trials(trials.first_trials()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fixture;
    use selftest_harness::gate::finding::CaseChange;
    use selftest_harness::gate::{BaselineGate, GateMode};
    use selftest_harness::outcome::case::Interruption;
    use selftest_harness::outcome::{CaseStatus, Rerun};

    fn report() -> ReportDocument {
        serde_json::from_str(&fixture::rich_run().json().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn the_text_of_a_baseline_is_read_again_and_has_a_line_for_each_case() {
        let AcceptedBaseline { baseline, anchors, left_out } = accept(&report()).unwrap();
        assert_eq!(left_out, ["generation", "skipped"], "what was not run has no result");
        let text = baseline.text();
        assert_eq!(Baseline::read(&text).unwrap(), baseline);
        assert!(!anchors.cases.is_empty() && anchors.cases.iter().all(CaseResult::is_by_judge));
        assert_eq!(AnchorSet::read(&anchors.text()).unwrap(), anchors);
        let lines = text.lines().filter(|line| line.contains("\"digest\"")).count();
        assert_eq!(lines, baseline.cases.len());
        assert!(text.len() < 400 * baseline.cases.len() + 1_000, "{}", text.len());
        let none = Baseline { cases: Vec::new(), ..baseline };
        assert_eq!(Baseline::read(&none.text()).unwrap(), none);
        // It contains no messages.
        let report = report();
        for case in &report.cases {
            for said in case.prompt.iter().chain(&case.hints).filter(|said| said.len() > 8) {
                assert!(!text.contains(said.as_str()), "{said}");
            }
        }
    }

    #[test]
    fn what_is_no_baseline() {
        let text = accept(&report()).unwrap().baseline.text();
        let says = |text: &str, part: &str| {
            let error = Baseline::read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        says(&text.replace("\"schema_version\": 1", "\"schema_version\": 2"), "version 2");
        says("<<<<<<< HEAD\n{}", "line 1");
        says("{\"schema_version\": 1}", "run_id");
        says("[]", "no baseline");
        let mut twice = accept(&report()).unwrap().baseline;
        twice.cases.push(twice.cases[0].clone());
        says(&twice.text(), "twice");
    }

    #[test]
    fn a_run_that_is_not_whole_is_not_accepted() {
        let mut report = report();
        report.complete = false;
        assert_eq!(accept(&report).unwrap_err(), AcceptError::Incomplete);
        report.complete = true;
        report.cases.retain(|case| case.id == "skipped");
        assert_eq!(accept(&report).unwrap_err(), AcceptError::Empty);
    }

    #[test]
    fn no_further_try_makes_up_for_an_agent_that_broke_out() {
        let mut cases = fixture::passing_cases();
        let state = fixture::state(&fixture::events(&cases));
        let report: ReportDocument = serde_json::from_str(&state.json().unwrap().unwrap()).unwrap();
        let gate = BaselineGate {
            mode: GateMode::NoRegression,
            path: "baseline.json".to_owned(),
            baseline: accept(&report).unwrap().baseline,
            judge: None,
            planned: cases.iter().map(|case| case.scenario.id.clone()).collect(),
            existing: None,
            confirm: 2,
            is_over: false,
        };
        let weighed = |cases: &[Arc<CaseResult>]| {
            let all: Vec<&CaseResult> = cases.iter().map(|case| &**case).collect();
            let finding = gate.finding(all.iter().copied(), &[]);
            let regressions = finding.cases_with(CaseChange::Regression).count();
            (gate.to_confirm(&all, false).len(), regressions)
        };
        assert_eq!(weighed(&cases), (0, 0));
        let passed = Rerun::from((*cases[0]).clone());
        let case = Arc::make_mut(&mut cases[0]);
        case.interruption = Some(Interruption::SutError("it died".to_owned()));
        assert_eq!(weighed(&cases), (1, 0), "it is run again before it counts");
        let case = Arc::make_mut(&mut cases[0]);
        case.reruns = vec![passed.clone()];
        assert_eq!(case.status().0, CaseStatus::Flaky);
        assert_eq!(weighed(&cases), (0, 0));
        let case = Arc::make_mut(&mut cases[0]);
        case.interruption = Some(Interruption::IsolationViolation(vec!["a".to_owned()]));
        assert_eq!(case.status().0, CaseStatus::IsolationViolation);
        assert_eq!(weighed(&cases), (0, 1));
    }
}
