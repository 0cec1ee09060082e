//! Renderings of a test of skills with hostile names, and of one with very many skills.

use super::*;
use crate::TerminalStyle;
use crate::fixture;
use selftest_checks::scenario::TaskStatus;

fn run() -> ReportDocument {
    serde_json::from_str(&fixture::rich_run().json().unwrap().unwrap()).unwrap()
}

fn result(name: &str, rules: &[SkillRule]) -> SkillTestResult {
    let tested = TestedSkill {
        name: name.to_owned(),
        folder: "ferry".to_owned(),
        path: format!("skills/{name}"),
        difference: SkillDifference::Changed,
        digest: String::new(),
        model: None,
    };
    let arms = [SkillArm::Without, SkillArm::Base, SkillArm::Here].map(|arm| (arm, run()));
    SkillTestResult::new(tested, &arms, rules)
}

fn report(skills: Vec<SkillTestResult>) -> SkillTestReport {
    let not_tested = vec![UntestedSkill {
        skill: fixture::HOSTILE.to_owned(),
        reason: UntestedReason::Refused,
        why: fixture::HOSTILE.to_owned(),
    }];
    SkillTestReport {
        version: SKILL_TEST_VERSION,
        id: "selftest-20260207-0800-abcdef".to_owned(),
        started_at: Timestamp::UNIX_EPOCH,
        selftest_version: "0.1.0".to_owned(),
        base: Some(BaseBranch {
            name: fixture::HOSTILE.to_owned(),
            commit: "a1b2c3d4e5f6".to_owned(),
        }),
        rules: vec![SkillRule::NoRegression],
        currency: Some("EUR".to_owned()),
        skills_found: skills.len() + 1,
        outcome: SkillTestReport::outcome_of(&skills, &not_tested, false),
        skills,
        not_tested,
        remarks: vec![fixture::HOSTILE.to_owned()],
    }
}

#[test]
fn hostile_names_stay_text() {
    let report = report(vec![result(fixture::HOSTILE, &[SkillRule::NoRegression])]);
    let page = html(&report).unwrap();
    let plain = html(&SkillTestReport { skills: Vec::new(), ..report.clone() }).unwrap();
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    assert!(page.len() > plain.len());
    let style = TerminalStyle { terminal: false, colour: false };
    let printed = text(&report, style);
    assert!(!printed.chars().any(|c| c.is_control() && c != '\n'), "{printed:?}");
    for rendered in [markdown(&report), comment(&report, "skills")] {
        assert!(!rendered.contains("<script") && !rendered.contains("<img"), "{rendered}");
        let rows = rendered.lines().filter(|line| line.starts_with("| "));
        assert!(rows.clone().count() > 4, "{rendered}");
    }
    assert!(junit(&report).unwrap().contains("<testsuite name="));
}

#[test]
fn a_comment_has_room_for_what_matters() {
    let one = result("ferry", &[SkillRule::NoRegression]);
    let named = |number: usize| SkillTestResult {
        skill: format!("skill-with-a-long-name-{number}"),
        ..one.clone()
    };
    let report = report((0..300).map(named).collect());
    let comment = comment(&report, "skills");
    assert!(comment.len() < 65_536, "{}", comment.len());
    assert!(comment.starts_with("<!-- selftest:comment skills -->\n"));
    assert!(comment.contains("and 200 skills more") || comment.contains("200 skills"), "{comment}");
}

#[test]
fn a_report_can_be_read_again() {
    let report = report(vec![result("ferry", &SkillRule::ALL)]);
    let stored = serde_json::to_string(&report).unwrap();
    let read: SkillTestReport = serde_json::from_str(&stored).unwrap();
    assert_eq!(read.sentence(), report.sentence());
    assert_eq!(read.skills[0].rules, report.skills[0].rules);
    assert_eq!(read.skills[0].arms.len(), 3);
}

/// The same run, of an agent that ended every trial with an error and these words.
fn broken(mut report: ReportDocument, words: &str) -> ReportDocument {
    for case in &mut report.cases {
        for reply in case.steps.iter_mut().filter_map(|step| step.reply.as_mut()) {
            reply.status = TaskStatus::Error;
            words.clone_into(&mut reply.output);
        }
        case.status = CaseStatus::SutError;
        case.pass = Some(false);
    }
    report
}

/// The same run, of an agent that gave no complete answer in any trial.
fn silent(mut report: ReportDocument) -> ReportDocument {
    for case in &mut report.cases {
        case.steps.clear();
        case.status = CaseStatus::SutError;
        case.pass = Some(false);
    }
    report
}

#[test]
fn an_arm_without_an_answer_is_no_arm() {
    let answered = || {
        let mut report = run();
        report.cases.retain(|case| has_answer(case) && case.pass.is_some());
        assert!(report.cases.len() > 1);
        report
    };
    let decide = |arms: &[(SkillArm, ReportDocument)]| {
        let tested = TestedSkill {
            name: "ferry".to_owned(),
            folder: "ferry".to_owned(),
            path: "skills/ferry".to_owned(),
            difference: SkillDifference::Changed,
            digest: String::new(),
            model: None,
        };
        SkillTestResult::new(tested, arms, &SkillRule::ALL)
    };
    let both =
        decide(&[(SkillArm::Without, silent(answered())), (SkillArm::Here, silent(answered()))]);
    assert!(both.blocked.as_ref().unwrap().contains("no complete answer in any of"), "{both:?}");
    assert_eq!(both.outcome(), RuleOutcome::Undecided);
    let no_control =
        decide(&[(SkillArm::Without, silent(answered())), (SkillArm::Here, answered())]);
    assert!(no_control.blocked.as_ref().unwrap().contains("no control"), "{no_control:?}");
    assert_eq!(no_control.outcome(), RuleOutcome::Undecided);
    for (words, is_answer) in [("", false), (" \n", false), ("no such file", true)] {
        let without = broken(answered(), words);
        assert!(without.cases.iter().all(|case| has_answer(case) == is_answer), "{words:?}");
        let found = decide(&[(SkillArm::Without, without), (SkillArm::Here, answered())]);
        let why = found.blocked.unwrap_or_default();
        assert_eq!(why.contains("no complete answer in any of"), !is_answer, "{words:?}: {why}");
    }
    let no_base = decide(&[
        (SkillArm::Without, answered()),
        (SkillArm::Base, silent(answered())),
        (SkillArm::Here, answered()),
    ]);
    let regression = &no_base.rules[1];
    assert_eq!(regression.rule, SkillRule::NoRegression);
    assert_eq!(regression.outcome, RuleOutcome::Undecided, "{regression:?}");
}
