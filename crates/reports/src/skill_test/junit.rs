//! A test of skills as JUnit XML: a suite for each skill, a test case for each rule.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::words::{effect_line, effects, skill_name};
use super::{SkillTestReport, SkillTestResult, UntestedReason};
use selftest_harness::skill_test::RuleOutcome;
use selftest_text::escape::terminal;

/// Maximum length of a name and of a reason, in bytes.
const MAX_NAME: usize = 200;
const MAX_REASON: usize = 1_000;

/// Renders the report as XML.
pub fn render(report: &SkillTestReport) -> Result<String, SerializeError> {
    let mut junit = Report::new(report.id.as_str());
    for skill in &report.skills {
        junit.add_test_suite(suite(skill));
    }
    let mut others = TestSuite::new("not tested");
    for skill in &report.not_tested {
        let mut status = match skill.reason {
            UntestedReason::Refused | UntestedReason::NotReached => {
                TestCaseStatus::non_success(NonSuccessKind::Error)
            }
            _ => TestCaseStatus::skipped(),
        };
        status.set_message(terminal(&skill.why, MAX_REASON));
        let mut case = TestCase::new(terminal(&skill.skill, MAX_NAME), status);
        case.set_classname("not tested");
        others.add_test_case(case);
    }
    if !report.not_tested.is_empty() {
        junit.add_test_suite(others);
    }
    junit.to_string()
}

fn suite(skill: &SkillTestResult) -> TestSuite {
    let name = terminal(&skill_name(skill), MAX_NAME);
    let mut suite = TestSuite::new(name.as_str());
    for (effect, value) in effects(skill) {
        suite.add_property((effect, terminal(&effect_line(value), MAX_REASON).as_str()));
    }
    for finding in &skill.rules {
        let mut status = match finding.outcome {
            RuleOutcome::Met => TestCaseStatus::success(),
            RuleOutcome::Missed => TestCaseStatus::non_success(NonSuccessKind::Failure),
            // Not known to be wrong, and not known to be right.
            RuleOutcome::Undecided => TestCaseStatus::non_success(NonSuccessKind::Error),
        };
        if finding.outcome != RuleOutcome::Met {
            status.set_message(terminal(&finding.why, MAX_REASON));
        }
        let mut case = TestCase::new(finding.rule.name(), status);
        case.set_classname(name.as_str());
        suite.add_test_case(case);
    }
    suite
}
