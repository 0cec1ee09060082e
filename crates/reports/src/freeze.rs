//! Creates a suite from a run's report, which reruns its cases. Pure.

use std::collections::BTreeSet;

use crate::document::{CaseDocument, ReportDocument};
use selftest_checks::scenario::Scenario;
use selftest_checks::suite::{SUITE_VERSION, Suite, SuiteCase};

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
    use selftest_stats::score::Strictness;

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
