//! Renders skills for a terminal. Texts inside them are untrusted.

use std::fmt::Write as _;

use crate::improve::disabling::ChangeReason;
use crate::improve::skill::{
    AuditEntry, DisabledSkill, SkillChange, SkillScore, SkillStatus, SkillVersion,
};
use selftest_text::escape::terminal;
use selftest_text::wording::date_time;

const NAME_WIDTH: usize = 32;
const VERSION_WIDTH: usize = 12;
const MAX_WORDS: usize = 160;

/// Renders a table with one line per version and a heading. `-` stands for a missing score.
pub fn table(skills: &[SkillVersion]) -> String {
    let mut text = format!(
        "{:<NAME_WIDTH$} {:<VERSION_WIDTH$} {:<10} {:>5} {:>10}  {}\n",
        "SKILL", "VERSION", "STATUS", "SCORE", "EXECUTIONS", "WHY DISABLED"
    );
    for skill in skills {
        let line = format!(
            "{} {:<10} {:>5} {:>10}  {}",
            columns(&skill.skill_name, &skill.version),
            skill.status,
            score(skill.effectiveness_score),
            skill.total_executions,
            words(&skill.reasons)
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Renders the new scores and the skills disabled because of them.
pub fn scores(scores: &[SkillScore], disabled: &[DisabledSkill]) -> String {
    let mut text = String::new();
    if !scores.is_empty() {
        let (skill, version) = ("SKILL", "VERSION");
        let _ = writeln!(text, "{skill:<NAME_WIDTH$} {version:<VERSION_WIDTH$} SCORE EXECUTIONS");
    }
    for one in scores {
        let _ = writeln!(
            text,
            "{} {:>5} {:>10}",
            columns(&one.skill_name, &one.version),
            score(one.score),
            one.total_executions
        );
    }
    if scores.iter().any(|one| one.score.is_none()) {
        text += "- stands for insufficient data: fewer than 5 executions\n";
    }
    for one in disabled {
        let name = terminal(&one.scored.skill_name, NAME_WIDTH);
        let version = terminal(&one.scored.version, VERSION_WIDTH);
        let _ = writeln!(text, "disabled: {name}, version {version}: {}", words(&one.reasons));
    }
    text
}

/// Renders a change on one line, with the version in use afterwards.
pub fn change(change: &SkillChange) -> String {
    let SkillVersion { skill_name, version, .. } = &change.skill;
    let (name, version) = (terminal(skill_name, NAME_WIDTH), terminal(version, VERSION_WIDTH));
    let now = match &change.active {
        Some(active) => format!("version {} is in use", terminal(&active.version, VERSION_WIDTH)),
        None => "no version is in use".to_owned(),
    };
    match change.skill.status {
        SkillStatus::Active => format!("{name}: {now}\n"),
        status => format!("{name}: version {version} is {status}, {now}\n"),
    }
}

/// Renders the versions of a skill and its audit log.
pub fn history(versions: &[SkillVersion], audit: &[AuditEntry]) -> String {
    let mut text = table(versions);
    if !audit.is_empty() {
        text.push('\n');
    }
    for entry in audit {
        let version = versions.iter().find(|version| version.id == entry.skill_version_id);
        let version = version.map_or("-", |version| version.version.as_str());
        let line = format!(
            "{} {:<VERSION_WIDTH$} {:<14} by {}  {}",
            date_time(entry.time),
            terminal(version, VERSION_WIDTH),
            entry.action,
            terminal(&entry.actor, NAME_WIDTH),
            words(&entry.reasons)
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Formats name and version as columns.
fn columns(name: &str, version: &str) -> String {
    format!(
        "{:<NAME_WIDTH$} {:<VERSION_WIDTH$}",
        terminal(name, NAME_WIDTH),
        terminal(version, VERSION_WIDTH)
    )
}

fn words(reasons: &[ChangeReason]) -> String {
    let words = reasons.iter().map(|reason| terminal(&reason.to_string(), MAX_WORDS));
    words.collect::<Vec<_>>().join("; ")
}

fn score(score: Option<f64>) -> String {
    score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"))
}
