//! A test of skills as one self-contained HTML page. The template escapes every value, and a content
//! security policy allows only the page's own style.

use askama::Template;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use super::words::{
    ArmCells, MAX_NAME, arm_name, effect_line, effects, outcome, remarks, skill_name,
};
use super::{SkillTestOutcome, SkillTestReport, SkillTestResult};
use selftest_harness::skill_test::RuleOutcome;
use selftest_text::escape::terminal;
use selftest_text::wording::date_time;

/// The page's style.
const STYLE: &str = include_str!("../../templates/ci_report.css");

#[derive(Template)]
#[template(path = "skill_test.html")]
struct SkillTestPage {
    style_source: String,
    title: String,
    class: &'static str,
    id: String,
    date: String,
    base: Option<String>,
    rules: Vec<(&'static str, &'static str)>,
    skills: Vec<SkillSection>,
    not_tested: Vec<(String, String)>,
    remarks: Vec<String>,
}

struct SkillSection {
    name: String,
    label: &'static str,
    class: &'static str,
    outcome: &'static str,
    arms: Vec<[String; 7]>,
    lines: Vec<String>,
}

/// Renders the page.
pub fn render(report: &SkillTestReport) -> Result<String, askama::Error> {
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let base = report.base.as_ref().map(|base| {
        let commit: String = base.commit.chars().take(9).collect();
        format!("{} ({commit})", terminal(&base.name, MAX_NAME))
    });
    let not_tested = report.not_tested.iter();
    SkillTestPage {
        style_source: format!("sha256-{style}"),
        title: terminal(&report.sentence(), 600),
        class: match report.outcome {
            SkillTestOutcome::Passed | SkillTestOutcome::NothingChanged => "passed",
            SkillTestOutcome::Failed => "failed",
            _ => "open",
        },
        id: report.id.clone(),
        date: date_time(report.started_at),
        base,
        rules: report.rules.iter().map(|rule| (rule.name(), rule.demand())).collect(),
        skills: report.skills.iter().map(|skill| section(report, skill)).collect(),
        not_tested: not_tested
            .map(|skill| (terminal(&skill.skill, MAX_NAME), terminal(&skill.why, 600)))
            .collect(),
        remarks: report.remarks.iter().map(|remark| terminal(remark, 600)).collect(),
    }
    .render()
}

fn section(report: &SkillTestReport, skill: &SkillTestResult) -> SkillSection {
    let arms = skill.arms.iter().map(|arm| {
        let ArmCells { passed, loading, time, tokens, cost } =
            ArmCells::of(arm, report.currency.as_deref());
        let name = arm_name(report, &arm.arm);
        [name, passed, loading, time, tokens, cost, arm.run_id.clone()]
    });
    let mut lines: Vec<String> = effects(skill)
        .into_iter()
        .map(|(name, effect)| format!("{name}: {}", effect_line(effect)))
        .collect();
    lines.extend(
        skill.evidence.as_ref().map(super::super::comparison::experiment::TreatmentEvidence::line),
    );
    lines.extend(remarks(skill));
    lines.extend(skill.rules.iter().map(|finding| {
        let (name, word) = (finding.rule.name(), outcome(finding.outcome));
        format!("{name} {word}: {}", terminal(&finding.why, 600))
    }));
    SkillSection {
        name: skill_name(skill),
        label: skill.difference.label(),
        class: match skill.outcome() {
            RuleOutcome::Met => "passed",
            RuleOutcome::Missed => "failed",
            RuleOutcome::Undecided => "open",
        },
        outcome: outcome(skill.outcome()),
        arms: arms.collect(),
        lines,
    }
}
