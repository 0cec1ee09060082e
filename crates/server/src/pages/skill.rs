//! One version of a skill: its score and what it is made of, its executions, and what was done
//! with the versions of the skill.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;

use super::skills::{Params, Score, Status, Weeks, after, today, weeks_of, why};
use super::{Frame, PageError, html, link, words};
use crate::App;
use selftest_grading::improve::effectiveness::{Effectiveness, MIN_EXECUTIONS};
use selftest_grading::improve::skill::{AuditEntry, ExecutionStatus, SkillExecution, SkillVersion};
use selftest_service::grader::skills::ChangeError;

/// Rows of a page.
const ROWS: u32 = 50;

#[derive(Template)]
#[template(path = "page/skill.html")]
struct Skill {
    frame: Frame,
    name: String,
    version: String,
    status: Status,
    why: String,
    score: Score,
    /// What the score is made of; empty where there is none.
    rates: Vec<(&'static str, String)>,
    /// How many executions there are, where they are too few for a score.
    too_few: Option<String>,
    least: u32,
    weeks: Weeks,
    facts: Vec<(&'static str, String)>,
    executions: Vec<Execution>,
    older: Option<String>,
    newest: Option<String>,
    versions: Vec<Version>,
    audit: Vec<Done>,
}

struct Execution {
    at: String,
    time: String,
    status: &'static str,
    class: &'static str,
    session: Option<(String, String)>,
    turns: String,
    took: String,
    /// What the user showed, with the class of its badge.
    signals: Vec<(&'static str, &'static str)>,
    error: String,
}

struct Version {
    href: String,
    name: String,
    status: Status,
    score: String,
    is_this: bool,
}

struct Done {
    at: String,
    time: String,
    version: String,
    action: String,
    actor: String,
    why: String,
}

impl From<SkillExecution> for Execution {
    fn from(execution: SkillExecution) -> Self {
        let class = match execution.execution_status {
            ExecutionStatus::Success => "good",
            ExecutionStatus::Error | ExecutionStatus::Timeout => "poor",
        };
        let signals = [
            (execution.user_sent_thank_you, ("thanks", "good")),
            (execution.user_edited_output, ("edited", "fair")),
            (execution.user_repeated_request, ("repeated", "fair")),
            (execution.user_was_frustrated == Some(true), ("frustrated", "poor")),
        ];
        let number = |number: Option<u32>| {
            number.map_or_else(|| words::ABSENT.to_owned(), |number| words::count(number.into()))
        };
        let took = execution.execution_time_ms;
        Self {
            at: execution.created_at.to_string(),
            time: words::minute(execution.created_at),
            status: execution.execution_status.name(),
            class,
            session: execution.session_id.map(|id| (link::session(&id), words::line(&id))),
            turns: number(execution.conversation_turns),
            took: took.map_or_else(|| words::ABSENT.to_owned(), |ms| words::duration(ms.into())),
            signals: signals.into_iter().filter(|(is, _)| *is).map(|(_, badge)| badge).collect(),
            error: words::line(execution.error_message.as_deref().unwrap_or_default()),
        }
    }
}

fn rates(effectiveness: &Effectiveness) -> Vec<(&'static str, String)> {
    let Effectiveness::Scored { success_rate, edit_rate, repeat_rate, gratitude_rate, .. } =
        *effectiveness
    else {
        return Vec::new();
    };
    let percent = |rate: f64| format!("{:.0} %", 100.0 * rate);
    vec![
        ("succeeded", percent(success_rate)),
        ("edited by the user", percent(edit_rate)),
        ("asked for again", percent(repeat_rate)),
        ("thanked for", percent(gratitude_rate)),
    ]
}

fn facts(skill: &SkillVersion) -> Vec<(&'static str, String)> {
    let time = |at: Option<jiff::Timestamp>| {
        at.map_or_else(|| words::ABSENT.to_owned(), |at| format!("{} UTC", words::minute(at)))
    };
    vec![
        ("Id", words::line(&skill.id)),
        ("User", words::line(&skill.user_id)),
        ("Known since", time(Some(skill.created_at))),
        ("Put to use", time(skill.promoted_at)),
        ("Taken out of use", time(skill.disabled_at)),
        ("Last scored", time(skill.last_scored_at)),
    ]
}

fn done(entry: &AuditEntry, versions: &[SkillVersion]) -> Done {
    let version = versions.iter().find(|version| version.id == entry.skill_version_id);
    Done {
        at: entry.time.to_string(),
        time: words::minute(entry.time),
        version: version.map(|version| words::line(&version.version)).unwrap_or_default(),
        action: words::spaced(entry.action.name()),
        actor: words::line(&entry.actor),
        why: why(&entry.reasons),
    }
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(params): Query<Params>,
) -> Result<Response, PageError> {
    let after = after(&params)?;
    let tracker = app.skills.tracker();
    let skill = tracker.by_id(&id).await.map_err(|error| match error {
        ChangeError::Store(error) => error.into(),
        _ => PageError::not_found(format!("there is no skill with the id {:?}", words::line(&id))),
    })?;
    let effectiveness = tracker.compute_effectiveness(&skill.id).await?;
    let days = tracker.days(today()).await?;
    let page = app.store.skill_executions(&skill.id, ROWS, after.as_ref()).await?;
    let versions = app.store.skill_versions(&skill.user_id, &skill.skill_name).await?;
    let audit = app.store.skill_audit(&skill.user_id, &skill.skill_name).await?.items;
    let own = link::skill(&skill.id);
    let next = page.next.map(|next| link::query(&own, &[("after", &next.to_string())]));
    html(&Skill {
        frame: Frame::of("skills"),
        name: words::line(&skill.skill_name),
        version: words::line(&skill.version),
        status: skill.status.into(),
        why: why(&skill.reasons),
        score: effectiveness.score().into(),
        rates: rates(&effectiveness),
        too_few: effectiveness
            .score()
            .is_none()
            .then(|| words::plural(effectiveness.total_executions(), "execution")),
        least: MIN_EXECUTIONS,
        weeks: Weeks::of(&weeks_of(&skill, &days)),
        facts: facts(&skill),
        executions: page.items.into_iter().map(Execution::from).collect(),
        older: next,
        newest: after.is_some().then_some(own),
        audit: audit.iter().rev().map(|entry| done(entry, &versions)).collect(),
        versions: versions
            .iter()
            .map(|version| Version {
                href: link::skill(&version.id),
                name: words::line(&version.version),
                status: version.status.into(),
                score: words::score(version.effectiveness_score),
                is_this: version.id == skill.id,
            })
            .collect(),
    })
}
