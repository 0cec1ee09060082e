//! Renders skills, gaps, proposals and routing for a terminal. Texts inside them are untrusted.

use std::fmt::Write as _;

use crate::improve::effectiveness::ChangeReason;
use crate::improve::gap::{SkillGap, SkillProposal, SkillTest};
use crate::improve::recommend::{RoutingReport, SkillRecommendation, TypeEvidence};
use crate::improve::routing::RoutingAdvice;
use crate::improve::skill::{
    AuditEntry, DisabledSkill, SkillChange, SkillScore, SkillStatus, SkillVersion,
};
use selftest_text::escape::{block, terminal};
use selftest_text::wording::{date_time, plural};

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

const MAX_SKILL: usize = 64 * 1024;
/// Maximum number of sessions shown per gap.
const MAX_SHOWN: usize = 5;

/// Renders gaps with their evidence.
pub fn gaps(gaps: &[SkillGap]) -> String {
    let mut text = String::new();
    for gap in gaps {
        let _ = writeln!(
            text,
            "{}  {:<9} {:<16} {:>8} {}",
            terminal(&gap.id, 40),
            gap.status,
            gap.kind,
            plural(gap.weeks, "week"),
            terminal(&gap.description, 2 * MAX_WORDS)
        );
        for one in gap.evidence.iter().take(MAX_SHOWN) {
            let event = one.event.map_or_else(|| "-".to_owned(), |event| format!("#{event}"));
            let (session, words) = (terminal(&one.session_id, 80), terminal(&one.words, MAX_WORDS));
            let _ = writeln!(text, "    {session} {event}  {words}");
        }
        // The evidence has some of the sessions only, and `gap.sessions` counts all.
        let more = gap.sessions.saturating_sub(MAX_SHOWN.min(gap.evidence.len()) as u64);
        if more > 0 {
            let _ = writeln!(text, "    and {more} more");
        }
        if let Some(fault) = &gap.last_fault {
            let drafts = plural(gap.attempts, "draft");
            let _ = writeln!(text, "    {drafts} failed: {}", terminal(fault, MAX_WORDS));
        }
    }
    text
}

/// Renders a table with one line per proposal and a heading.
pub fn proposals(proposals: &[SkillProposal]) -> String {
    let mut text =
        format!("{:<21} {:<9} {:<30} {:<12} {}\n", "PROPOSAL", "STATUS", "SKILL", "TEST", "GAP");
    for one in proposals {
        let test = match &one.experiment {
            Some(SkillTest::Tested { details, .. }) => {
                // The conclusions as written by `harness`, which this crate does not depend on. A
                // test in `src/commands/improve/gaps.rs` keeps the two in sync.
                match details["conclusion"].as_str() {
                    Some("helps") => "helps",
                    Some("harms") => "harms",
                    Some("not_enough_evidence") => "unclear",
                    Some("blocked") => "blocked",
                    _ => "tested",
                }
            }
            _ => "not tested",
        };
        let _ = writeln!(
            text,
            "{:<21} {:<9} {:<30} {test:<12} {}",
            terminal(&one.id, 40),
            one.status,
            terminal(&one.skill_name, 64),
            terminal(&one.gap_id, 40)
        );
    }
    text
}

/// Renders a proposal with its skill, gap and test.
pub fn proposal(proposal: &SkillProposal, gap: Option<&SkillGap>) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<12} {}", terminal(value, 4 * MAX_WORDS));
    };
    fact("proposal", &proposal.id);
    fact("status", proposal.status.name());
    fact("skill", &proposal.skill_name);
    fact("gap", gap.map_or(&*proposal.gap_id, |gap| &*gap.description));
    fact("model", &proposal.model);
    fact("prompt", &proposal.prompt_digest);
    fact("drafted", &proposal.created_at.to_string());
    let test = proposal.experiment.as_ref().map(SkillTest::describe);
    fact("test", test.as_deref().unwrap_or("not tested: nothing was kept of a test"));
    if let Some(at) = proposal.decided_at {
        fact("decided", &at.to_string());
    }
    if let Some(reason) = &proposal.reason {
        fact("reason", reason);
    }
    if let Some(file) = &proposal.file {
        fact("file", file);
    }
    let _ = writeln!(text, "\n{}", block(&proposal.skill_md, MAX_SKILL).trim_end());
    text
}

/// Renders what was seen of each type of task.
pub fn evidence(types: &[TypeEvidence]) -> String {
    let mut text = format!(
        "{:<15} {:>5} {:<22} {:<14} {}\n",
        "SEEN OF", "TASKS", "CONTRADICTED", "CHECKS PASSED", "WHY CALLS FAILED MOST"
    );
    for one in types {
        let contradicted = &one.outcomes.contradicted;
        let ends = contradicted.interval.map(|ends| {
            format!("{} [{:.0}, {:.0}] %", contradicted.count, ends.low * 100.0, ends.high * 100.0)
        });
        let cause = one.causes.first().map(|cause| {
            format!("{} in {}: {}", cause.cause, plural(cause.tasks.count, "task"), cause.advice)
        });
        let _ = writeln!(
            text,
            "{:<15} {:>5} {:<22} {:<14} {}",
            one.task_type,
            one.tasks,
            ends.unwrap_or_default(),
            one.outcomes.checks_passed.count,
            cause.as_deref().unwrap_or("-")
        );
    }
    text.push('\n');
    text
}

/// Renders the advice for each task type and the recommendations for the weak ones.
pub fn routing(routing: &RoutingReport) -> String {
    let mut text = format!(
        "{:<15} {:>5} {:>12} {:>8} {:<8} {:<10} {:<8} {}\n",
        "TASK", "SCORE", "95 %", "SESSIONS", "TREND", "CONFIDENCE", "TIER", "WHY"
    );
    for advice in &routing.items {
        text += &line(advice);
    }
    for recommendation in &routing.recommendations {
        text += &render_recommendation(recommendation);
    }
    text
}

fn line(advice: &RoutingAdvice) -> String {
    let score = advice.score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"));
    let interval = advice
        .interval
        .map_or_else(|| "-".to_owned(), |ends| format!("{:.2} to {:.2}", ends.low, ends.high));
    format!(
        "{:<15} {score:>5} {interval:>12} {:>8} {:<8} {:<10} {:<8} {}\n",
        advice.task_type,
        advice.sessions,
        advice.trend.direction.name(),
        advice.confidence.name(),
        terminal(advice.tier.as_deref().unwrap_or("-"), 40),
        terminal(&advice.why, MAX_WORDS)
    )
}

fn render_recommendation(recommendation: &SkillRecommendation) -> String {
    let mut text = format!(
        "\n{} is weak ({:.2} in {}); what could help:\n",
        recommendation.task_type,
        recommendation.score,
        plural(recommendation.sessions, "session")
    );
    for skill in &recommendation.skills {
        let _ = writeln!(text, "  skill {}", terminal(skill, MAX_WORDS));
    }
    for one in &recommendation.proposals {
        let (id, name) = (terminal(&one.id, 40), terminal(&one.skill_name, 64));
        let _ = writeln!(text, "  {id} ({}): {name}", one.status);
    }
    for gap in &recommendation.gaps {
        let (id, words) = (terminal(&gap.id, 40), terminal(&gap.description, MAX_WORDS));
        let _ = writeln!(text, "  {id} ({}): {words}", gap.status);
    }
    let nothing = recommendation.skills.is_empty()
        && recommendation.gaps.is_empty()
        && recommendation.proposals.is_empty();
    if nothing {
        text += "  nothing is known yet; `selftest improve gaps detect` looks for gaps\n";
    }
    text
}
