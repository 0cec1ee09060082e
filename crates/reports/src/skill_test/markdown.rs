//! A test of skills as Markdown: a report, and a comment on a pull request. Pure; its texts are
//! untrusted and escaped.

use super::words::{
    ArmCells, HEADINGS, MAX_NAME, arm_name, effect_line, effects, outcome, remarks, skill_name,
};
use super::{SkillTestReport, SkillTestResult, UntestedReason};
use crate::comment::marker;
use selftest_harness::skill_test::{RuleOutcome, SkillArm};
use selftest_text::escape::inline_in_comment;
use selftest_text::wording::plural;

/// Maximum length of a comment, in bytes. GitHub accepts 65,536 characters.
const MAX_COMMENT: usize = 60_000;
/// Maximum number of skills whose details a comment has.
const MAX_DETAILED: usize = 20;
/// Maximum number of skills in the table of a comment.
const MAX_ROWS: usize = 100;

/// Renders the whole report.
pub fn render(report: &SkillTestReport) -> String {
    let mut text = format!("# Test of skills\n\n{}\n", summary(report));
    for skill in &report.skills {
        text += &format!("\n## {}\n\n{}", cell(&skill_name(skill)), details(report, skill));
    }
    text + &not_tested(report)
}

/// Renders the comment that a later run with this key replaces.
pub fn comment(report: &SkillTestReport, key: &str) -> String {
    let mut text = format!("{}\n## selftest: skills\n\n{}\n", marker(key), summary(report));
    for skill in report.skills.iter().take(MAX_DETAILED) {
        let open = if skill.outcome() == RuleOutcome::Met { "" } else { " open" };
        let part = format!(
            "\n<details{open}><summary>{}</summary>\n\n{}\n</details>\n",
            cell(&skill_name(skill)),
            details(report, skill)
        );
        // What does not fit is in the reports.
        if text.len() + part.len() > MAX_COMMENT {
            break;
        }
        text += &part;
    }
    text + &not_tested(report)
}

/// The sentence, and one row for each skill.
fn summary(report: &SkillTestReport) -> String {
    let mut text = format!("**{}**\n", cell(&report.sentence()));
    if let Some(base) = &report.base {
        let commit: String = base.commit.chars().take(9).collect();
        text += &format!("\nCompared with {} ({commit}).\n", cell(&base.name));
    }
    for rule in &report.rules {
        text += &format!("\n`{}` needs: {}.\n", rule.name(), rule.demand());
    }
    if !report.skills.is_empty() {
        let base = report.base.as_ref().map_or_else(|| "base".to_owned(), |base| cell(&base.name));
        text += &format!(
            "\n| Skill | Without | {base} | This branch | Loading | Tokens | Cost | Rules |\n\
             |---|---|---|---|---|---|---|---|\n"
        );
        for skill in report.skills.iter().take(MAX_ROWS) {
            text += &row(report, skill);
        }
        let more = report.skills.len().saturating_sub(MAX_ROWS);
        if more > 0 {
            text += &format!("\nand {} more\n", plural(more as u64, "skill"));
        }
    }
    for remark in &report.remarks {
        text += &format!("\n> {}\n", cell(remark));
    }
    text
}

fn row(report: &SkillTestReport, skill: &SkillTestResult) -> String {
    let currency = report.currency.as_deref();
    let of = |arm: &SkillArm| skill.arm(arm).map(|arm| ArmCells::of(arm, currency));
    let passed = |arm: &SkillArm| of(arm).map_or_else(|| "-".to_owned(), |cells| cells.passed);
    let here = of(&SkillArm::Here);
    let [loading, tokens, cost] = here.map_or_else(
        || [(); 3].map(|()| "-".to_owned()),
        |cells| [cells.loading, cells.tokens, cells.cost],
    );
    let rules: Vec<String> = skill
        .rules
        .iter()
        .map(|finding| format!("{} {}", finding.rule.name(), outcome(finding.outcome)))
        .collect();
    format!(
        "| {} | {} | {} | {} | {loading} | {tokens} | {cost} | {} |\n",
        cell(&skill_name(skill)),
        passed(&SkillArm::Without),
        passed(&SkillArm::Base),
        passed(&SkillArm::Here),
        rules.join(", ")
    )
}

fn details(report: &SkillTestReport, skill: &SkillTestResult) -> String {
    let mut text =
        format!("| Arm | {} | Run |\n|---|---|---|---|---|---|---|\n", HEADINGS.join(" | "));
    for arm in &skill.arms {
        let ArmCells { passed, loading, time, tokens, cost } =
            ArmCells::of(arm, report.currency.as_deref());
        text += &format!(
            "| {} | {passed} | {loading} | {time} | {tokens} | {cost} | {} |\n",
            cell(&arm_name(report, &arm.arm)),
            cell(&arm.run_id)
        );
    }
    text.push('\n');
    for (name, effect) in effects(skill) {
        text += &format!("- {name}: {}\n", effect_line(effect));
    }
    if let Some(evidence) = &skill.evidence {
        text += &format!("- {}\n", cell(&evidence.line()));
    }
    for remark in remarks(skill) {
        text += &format!("- {}\n", cell(&remark));
    }
    for finding in &skill.rules {
        let (name, word) = (finding.rule.name(), outcome(finding.outcome));
        text += &format!("- `{name}` {word}: {}\n", cell(&finding.why));
    }
    text
}

fn not_tested(report: &SkillTestReport) -> String {
    let mut text = String::new();
    let count = |reason| report.not_tested.iter().filter(|skill| skill.reason == reason).count();
    for skill in &report.not_tested {
        if matches!(skill.reason, UntestedReason::Unchanged | UntestedReason::OtherShard) {
            continue;
        }
        text += &format!("- {}: {}\n", cell(&skill.skill), cell(&skill.why));
    }
    for (reason, words) in
        [(UntestedReason::Unchanged, "unchanged"), (UntestedReason::OtherShard, "in other shards")]
    {
        let count = count(reason);
        if count > 0 {
            text += &format!("- {} {words}\n", plural(count as u64, "skill"));
        }
    }
    if text.is_empty() { text } else { format!("\n### Not tested\n\n{text}") }
}

/// A text that cannot end its cell, begin a tag or mention a person.
fn cell(text: &str) -> String {
    inline_in_comment(text, 6 * MAX_NAME).as_str().to_owned()
}
