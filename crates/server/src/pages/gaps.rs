//! Gaps in the agent's skills with what is proposed for them, and how each type of task goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::{Frame, PageError, html, link, words};
use crate::App;
use selftest_grading::improve::gap::Gap;
use selftest_grading::improve::proposal::Proposal;
use selftest_grading::improve::recommend::Recommendation;
use selftest_grading::improve::routing::{Advice, Direction};
use selftest_service::grader::routing;

/// Gaps and proposals of the page.
const ROWS: u64 = 200;
/// Sessions that are linked for a gap.
const SESSIONS: usize = 3;

#[derive(Template)]
#[template(path = "page/gaps.html")]
struct GapsPage {
    frame: Frame,
    gaps: Vec<GapRow>,
    unreadable: u64,
    types: Vec<TypeRow>,
    weak: Vec<Weak>,
}

struct GapRow {
    description: String,
    status: &'static str,
    class: &'static str,
    weeks: String,
    seen: String,
    sessions: Vec<(String, String)>,
    more: u64,
    fault: Option<String>,
    /// Address, name and status of what was drafted.
    proposals: Vec<(String, String, &'static str)>,
}

struct TypeRow {
    name: String,
    score: String,
    interval: String,
    sessions: String,
    completed: String,
    trend: &'static str,
    class: &'static str,
    confidence: &'static str,
    tier: String,
    why: String,
}

struct Weak {
    name: String,
    score: String,
    skills: Vec<String>,
    gaps: Vec<String>,
}

pub(super) fn status_class(status: &str) -> &'static str {
    match status {
        "accepted" | "closed" => "good",
        "open" | "proposed" => "fair",
        _ => "none",
    }
}

impl GapRow {
    fn of(gap: &Gap, proposals: &[&Proposal]) -> Self {
        let mut sessions: Vec<(String, String)> = Vec::new();
        for one in &gap.evidence {
            let entry = (link::session(&one.session_id), words::line(&one.session_id));
            if sessions.len() < SESSIONS && !sessions.contains(&entry) {
                sessions.push(entry);
            }
        }
        let address = |one: &&Proposal| {
            (link::proposal(&one.id), words::line(&one.skill_name), one.status.name())
        };
        Self {
            description: words::line(&gap.description),
            status: gap.status.name(),
            class: status_class(gap.status.name()),
            weeks: words::plural(gap.weeks, "week"),
            seen: words::minute(gap.last_seen),
            more: gap.sessions.saturating_sub(sessions.len() as u64),
            sessions,
            fault: gap.last_fault.as_deref().map(words::line),
            proposals: proposals.iter().map(address).collect(),
        }
    }
}

impl From<&Advice> for TypeRow {
    fn from(advice: &Advice) -> Self {
        let rate = advice.completion_rate.rate;
        Self {
            name: words::spaced(advice.task_type.name()),
            score: words::score(advice.score),
            interval: advice.interval.map_or_else(
                || words::ABSENT.to_owned(),
                |ends| format!("{:.2} to {:.2}", ends.low, ends.high),
            ),
            sessions: words::count(advice.sessions),
            completed: rate.map_or_else(
                || words::ABSENT.to_owned(),
                |rate| format!("{} %", words::percent(Some(rate))),
            ),
            trend: advice.trend.direction.name(),
            class: match advice.trend.direction {
                Direction::Better => "good",
                Direction::Worse => "poor",
                Direction::Steady | Direction::Unknown => "none",
            },
            confidence: advice.confidence.name(),
            tier: words::line(advice.tier.as_deref().unwrap_or(words::ABSENT)),
            why: words::line(&advice.why),
        }
    }
}

impl From<&Recommendation> for Weak {
    fn from(weak: &Recommendation) -> Self {
        Self {
            name: words::spaced(weak.task_type.name()),
            score: words::score(Some(weak.score)),
            skills: weak.skills.iter().map(|skill| words::line(skill)).collect(),
            gaps: weak.gaps.iter().map(|gap| words::line(&gap.description)).collect(),
        }
    }
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response, PageError> {
    let gaps = app.store.gaps(None, ROWS).await?;
    let proposals = app.store.proposals(None, ROWS).await?.items;
    let mut by_gap: BTreeMap<&str, Vec<&Proposal>> = BTreeMap::new();
    for one in &proposals {
        by_gap.entry(&one.gap_id).or_default().push(one);
    }
    let settings = &app.improvement.routing;
    let routing = routing(&app.store, settings, None, None, selftest_clock::now()).await?;
    let row = |gap: &Gap| {
        let own = by_gap.get(gap.id.as_str());
        GapRow::of(gap, own.map_or(&[], Vec::as_slice))
    };
    html(&GapsPage {
        frame: Frame::of("gaps"),
        gaps: gaps.items.iter().map(row).collect(),
        unreadable: gaps.unreadable,
        types: routing.items.iter().map(TypeRow::from).collect(),
        weak: routing.recommendations.iter().map(Weak::from).collect(),
    })
}
