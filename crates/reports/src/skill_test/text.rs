//! A test of skills for a terminal. Pure; its texts are untrusted and escaped.

use super::words::{
    ArmCells, HEADINGS, MAX_NAME, arm_name, effect_line, effects, outcome, remarks, skill_name,
};
use super::{SkillTestOutcome, SkillTestReport, SkillTestResult, UntestedReason};
use crate::terminal::{StatusColour, TerminalStyle};
use selftest_harness::skill_test::RuleOutcome;
use selftest_text::escape::terminal;
use selftest_text::wording::plural;

/// Maximum number of skills of one reason that are named.
const MAX_NAMED: usize = 12;

/// Renders the results of each skill, and the outcome as the last line.
pub fn render(report: &SkillTestReport, style: TerminalStyle) -> String {
    let mut text = String::new();
    if let Some(base) = &report.base {
        let commit: String = base.commit.chars().take(9).collect();
        text += &format!("compared with {} ({commit})\n\n", terminal(&base.name, MAX_NAME));
    }
    for skill in &report.skills {
        text += &skill_text(report, skill, style);
        text.push('\n');
    }
    text += &not_tested(report);
    for remark in &report.remarks {
        text +=
            &format!("{}: {}\n", style.paint(StatusColour::Unsure, "note"), terminal(remark, 600));
    }
    let colour = match report.outcome {
        SkillTestOutcome::Passed | SkillTestOutcome::NothingChanged => StatusColour::Good,
        SkillTestOutcome::Failed => StatusColour::Bad,
        _ => StatusColour::Unsure,
    };
    text + &style.paint(colour, &terminal(&report.sentence(), 2_000)) + "\n"
}

fn skill_text(report: &SkillTestReport, skill: &SkillTestResult, style: TerminalStyle) -> String {
    let mut text = skill_name(skill);
    let label = skill.difference.label();
    if !label.is_empty() {
        text += &format!("  {}", style.paint(StatusColour::Faint, label));
    }
    text.push('\n');
    text += &table(report, skill, style);
    for (name, effect) in effects(skill) {
        text += &format!("  {name:<8} {}\n", effect_line(effect));
    }
    if let Some(evidence) = &skill.evidence {
        text += &format!("  {}\n", style.paint(StatusColour::Faint, &evidence.line()));
    }
    for remark in remarks(skill) {
        text += &format!("  {remark}\n");
    }
    for finding in &skill.rules {
        let colour = match finding.outcome {
            RuleOutcome::Met => StatusColour::Good,
            RuleOutcome::Missed => StatusColour::Bad,
            RuleOutcome::Undecided => StatusColour::Unsure,
        };
        let (name, word) = (finding.rule.name(), style.paint(colour, outcome(finding.outcome)));
        text += &format!("  {name} {word}: {}\n", terminal(&finding.why, 600));
    }
    text
}

/// One line for each arm; columns of which nothing is known are left out.
fn table(report: &SkillTestReport, skill: &SkillTestResult, style: TerminalStyle) -> String {
    let currency = report.currency.as_deref();
    let rows: Vec<Vec<String>> = skill
        .arms
        .iter()
        .map(|arm| {
            let ArmCells { passed, loading, time, tokens, cost } = ArmCells::of(arm, currency);
            vec![arm_name(report, &arm.arm), passed, loading, time, tokens, cost]
        })
        .collect();
    let headings: Vec<String> = std::iter::once("").chain(HEADINGS).map(str::to_owned).collect();
    let is_known = |column: usize| column == 0 || rows.iter().any(|row| row[column] != "-");
    let columns: Vec<usize> = (0..headings.len()).filter(|column| is_known(*column)).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&headings]).map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let line = |row: &[String]| {
        let cells = columns.iter().map(|&column| format!("{:<1$}", row[column], width(column)));
        format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned() + "\n"
    };
    let heading = line(&headings);
    let heading = style.paint(StatusColour::Faint, heading.trim_end_matches('\n')) + "\n";
    heading + &rows.iter().map(|row| line(row)).collect::<String>()
}

/// The skills that were not tested, by reason.
fn not_tested(report: &SkillTestReport) -> String {
    let mut text = String::new();
    for skill in &report.not_tested {
        if matches!(skill.reason, UntestedReason::Refused | UntestedReason::NotReached) {
            let (name, why) = (terminal(&skill.skill, MAX_NAME), terminal(&skill.why, 600));
            text += &format!("not tested: {name}: {why}\n");
        }
    }
    for (reason, words) in [
        (UntestedReason::NoCases, "without cases, not tested"),
        (UntestedReason::Unchanged, "unchanged, not tested"),
        (UntestedReason::OtherShard, "in other shards"),
    ] {
        let names: Vec<String> = report
            .not_tested
            .iter()
            .filter(|skill| skill.reason == reason)
            .map(|skill| terminal(&skill.skill, MAX_NAME))
            .collect();
        if names.is_empty() {
            continue;
        }
        let named = names.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = names.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text += &format!("{} {words}: {named}{more}\n", plural(names.len() as u64, "skill"));
    }
    text
}
