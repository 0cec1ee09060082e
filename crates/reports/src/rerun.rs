//! What a run's report holds for running it again: the cases that did not pass, and all cases as a
//! suite. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{CaseDocument, ReportDocument};
use selftest_checks::scenario::Scenario;
use selftest_checks::suite::{SUITE_VERSION, Suite, SuiteCase};

/// Case IDs in the order of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnpassedCases {
    /// Failed, without a verdict or not run, with a known prompt.
    pub with_prompt: Vec<String>,
    /// The same without a prompt: not generated, or never started.
    pub without_prompt: Vec<String>,
}

impl UnpassedCases {
    /// Collects each case with a planned trial that did not pass.
    pub fn of(report: &ReportDocument) -> Self {
        let mut planned: Vec<(&str, usize)> = Vec::new();
        let mut positions = BTreeMap::new();
        for id in &report.scenarios {
            let position = *positions.entry(id.as_str()).or_insert_with(|| {
                planned.push((id, 0));
                planned.len() - 1
            });
            planned[position].1 += 1;
        }
        let mut found = Self::default();
        for (id, trials) in planned {
            let mut cases = report.cases.iter().filter(|case| case.id == id);
            // Counted against the plan, so that a trial without a result is no pass either.
            if cases.clone().filter(|case| case.pass == Some(true)).count() >= trials {
                continue;
            }
            let known = cases.any(|case| case.generated().is_some());
            let list = if known { &mut found.with_prompt } else { &mut found.without_prompt };
            list.push(id.to_owned());
        }
        found
    }

    /// Returns true if every case passed.
    pub fn is_empty(&self) -> bool {
        self.with_prompt.is_empty() && self.without_prompt.is_empty()
    }
}

/// A suite, and the cases missing from it.
#[derive(Debug, Clone, PartialEq)]
pub struct FrozenSuite {
    /// The suite; without cases if none was generated.
    pub suite: Suite,
    /// Names of cases without a prompt.
    pub left_out: Vec<String>,
}

/// Returns the cases of a run with everything their answers are judged by. Each carries the
/// strictness and limits of the run, so that another configuration does not change them. Repeated
/// cases are included once.
pub fn freeze(report: &ReportDocument) -> FrozenSuite {
    let (mut cases, mut left_out) = (Vec::<SuiteCase>::new(), Vec::new());
    let mut taken = BTreeSet::new();
    for case in &report.cases {
        let Some(generated) = case.generated() else {
            left_out.push(case.name());
            continue;
        };
        if taken.insert(&case.id) {
            cases.push(SuiteCase::new(scenario(report, case), generated));
        }
    }
    let suite = Suite {
        version: SUITE_VERSION,
        run_id: Some(report.run_id.to_string()),
        rubric_digest: Some(report.rubric.digest.clone()),
        prompt_digests: report.prompt_digests.clone(),
        cases,
    };
    FrozenSuite { suite, left_out }
}

fn scenario(report: &ReportDocument, case: &CaseDocument) -> Scenario {
    let (run, own) = (&report.config, case.scenario.clone());
    Scenario {
        strictness: own.strictness.or(Some(run.strictness)),
        min_score_to_pass: own.min_score_to_pass.or(Some(run.min_score_to_pass)),
        allow_minor_format_deviation: own
            .allow_minor_format_deviation
            .or(Some(run.allow_minor_format_deviation)),
        max_questions_allowed: own.max_questions_allowed.or(Some(run.max_questions_allowed)),
        timeout_seconds: own.timeout_seconds.or(Some(run.timeout_seconds)),
        // Part of the case, as of the run.
        expectations: Vec::new(),
        checks: Vec::new(),
        reference: None,
        files: Vec::new(),
        ..own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use selftest_harness::outcome::CaseStatus;
    use selftest_stats::score::Strictness;

    #[test]
    fn whatever_is_no_pass_is_run_again() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let mut report: ReportDocument = serde_json::from_str(&text).unwrap();
        let found = UnpassedCases::of(&report);
        assert_eq!(found.without_prompt, ["generation"]);
        let passed = |id: &String| {
            report.cases.iter().any(|case| case.id == *id && case.status == CaseStatus::Passed)
        };
        assert!(!found.with_prompt.is_empty() && !found.with_prompt.iter().any(passed));
        let passes = report.cases.iter().filter(|case| case.pass == Some(true)).count();
        assert_eq!(found.with_prompt.len() + 1 + passes, report.cases.len());
        // One case that the run was killed before, and one with a missing repeat.
        report.scenarios.push("later".to_owned());
        let first = report.cases.iter().find(|case| case.pass == Some(true)).unwrap().id.clone();
        report.scenarios.push(first.clone());
        let found = UnpassedCases::of(&report);
        assert_eq!(found.without_prompt, ["generation", "later"]);
        assert!(found.with_prompt.contains(&first));
    }

    fn report() -> ReportDocument {
        serde_json::from_str(&fixture::rich_run().json().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn what_held_in_the_run_is_written_down() {
        let mut report = report();
        report.cases[1].scenario.strictness = Some(Strictness::new(0.1).unwrap());
        let FrozenSuite { suite, left_out } = freeze(&report);
        assert_eq!(left_out, ["generation"]);
        assert_eq!(suite.cases.len(), report.cases.len() - 1);
        assert_eq!(suite.run_id.as_deref(), Some("selftest-20260206-1234-bcdfgh"));
        assert_eq!(suite.cases[1].scenario.strictness, Some(Strictness::new(0.1).unwrap()));
        let flow = &suite.cases[0];
        assert_eq!(flow.scenario.strictness, Some(Strictness::new(0.7).unwrap()));
        assert_eq!(flow.scenario.timeout_seconds, Some(60.0));
        assert!(flow.scenario.requires_reply);
        assert_eq!(flow.hints, "accurate analysis");
    }

    #[test]
    fn of_repeats_one_is_taken() {
        let mut report = report();
        report.cases.truncate(1);
        let again = report.cases[0].clone();
        report.cases.push(again);
        report.cases[0].repeat = Some(1);
        report.cases[1].repeat = Some(2);
        assert_eq!(freeze(&report).suite.cases.len(), 1);
    }
}
