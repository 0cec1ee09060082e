//! The list of skills: every version, with its latest score and how often it was used.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::{Frame, PageError, html, link, words};
use crate::App;
use selftest_grading::improve::disabling::Reason;
use selftest_grading::improve::skill::{SkillStatus, SkillVersion};
use selftest_grading::improve::trend::{self, WeekCount};
use selftest_store::{Cursor, DayCount};

/// Rows of a page.
const ROWS: u32 = 100;
/// Height, width and distance of the bars of [`Weeks`], in its own units.
const HEIGHT: f64 = 18.0;
const WIDTH: usize = 6;
const STEP: usize = 8;

/// The query as it came; an empty text stands for none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    pub(super) after: String,
}

#[derive(Template)]
#[template(path = "page/skills.html")]
struct Skills {
    frame: Frame,
    rows: Vec<Row>,
    older: Option<String>,
    newer: bool,
}

struct Row {
    href: String,
    name: String,
    version: String,
    status: Status,
    score: Score,
    executions: String,
    weeks: Weeks,
    scored: String,
    why: String,
}

/// Whether a version is in use, as a badge.
pub(super) struct Status {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
}

/// A score of 0 to 1, or none.
pub(super) struct Score {
    pub(super) number: String,
    pub(super) percent: String,
    pub(super) grade: &'static str,
}

/// A small picture of executions per week: bars of all of them, and in front of these bars of
/// those that ended well. As paths of SVG.
pub(super) struct Weeks {
    pub(super) description: String,
    pub(super) all: String,
    pub(super) good: String,
}

impl From<SkillStatus> for Status {
    fn from(status: SkillStatus) -> Self {
        let class = match status {
            SkillStatus::Active => "good",
            SkillStatus::Superseded => "none",
            SkillStatus::Disabled => "poor",
        };
        Self { name: status.name(), class }
    }
}

impl From<Option<f64>> for Score {
    fn from(score: Option<f64>) -> Self {
        Self {
            number: words::score(score),
            percent: words::percent(score),
            grade: words::grade(score),
        }
    }
}

impl Weeks {
    pub(super) fn of(weeks: &[WeekCount]) -> Self {
        let most = weeks.iter().map(|week| week.executions).max().unwrap_or_default().max(1);
        let bars = |count: fn(&WeekCount) -> u32| -> String {
            let counts = weeks.iter().map(count).enumerate().filter(|(_, count)| *count > 0);
            let bar = |(number, count): (usize, u32)| {
                let height = HEIGHT * f64::from(count) / f64::from(most);
                format!("M{} {HEIGHT}v-{height:.1}h{WIDTH}v{height:.1}z", number * STEP)
            };
            counts.map(bar).collect::<Vec<_>>().concat()
        };
        let counts: Vec<String> = weeks
            .iter()
            .map(|week| match week.executions {
                0 => "0".to_owned(),
                all => format!("{} of {all}", week.successes),
            })
            .collect();
        Self {
            description: format!("Succeeded per week, oldest first: {}", counts.join(", ")),
            all: bars(|week| week.executions),
            good: bars(|week| week.successes),
        }
    }
}

/// The weeks of one version.
pub(super) fn weeks_of(skill: &SkillVersion, days: &[DayCount]) -> Vec<WeekCount> {
    let own = days.iter().filter(|day| day.skill_version_id == skill.id);
    let own = own.map(|day| (day.day, day.executions, day.successes));
    trend::weeks(own, today())
}

/// In UTC.
pub(super) fn today() -> jiff::civil::Date {
    selftest_clock::now().to_zoned(TimeZone::UTC).date()
}

/// Reasons on one line.
pub(super) fn why(reasons: &[Reason]) -> String {
    let words = reasons.iter().map(|reason| words::line(&reason.to_string()));
    words.collect::<Vec<_>>().join("; ")
}

/// The place that a page begins behind.
pub(super) fn after(params: &Params) -> Result<Option<Cursor>, PageError> {
    if params.after.is_empty() {
        return Ok(None);
    }
    let cursor = params.after.parse().ok().filter(|cursor: &Cursor| cursor.value.is_some());
    cursor
        .map(Some)
        .ok_or_else(|| PageError::bad_request("after is not of this list: begin at its first page"))
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<Params>,
) -> Result<Response, PageError> {
    let after = after(&params)?;
    let tracker = app.skills.tracker();
    let page = app.store.skills(tracker.user_id(), ROWS, after.as_ref()).await?;
    let days = tracker.days(today()).await?;
    let row = |skill: SkillVersion| Row {
        href: link::skill(&skill.id),
        name: words::line(&skill.skill_name),
        version: words::line(&skill.version),
        status: skill.status.into(),
        score: skill.effectiveness_score.into(),
        executions: words::count(skill.total_executions.into()),
        weeks: Weeks::of(&weeks_of(&skill, &days)),
        scored: skill.last_scored_at.map_or_else(|| words::ABSENT.to_owned(), words::minute),
        why: why(&skill.reasons),
    };
    let next = page.next.map(|next| next.to_string());
    html(&Skills {
        frame: Frame::of("skills"),
        rows: page.items.into_iter().map(row).collect(),
        older: next.map(|next| link::query("/skills", &[("after", &next)])),
        newer: after.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit_into_the_picture() {
        let week = |executions, successes| WeekCount {
            week_start: "2026-11-16".parse().unwrap(),
            executions,
            successes,
        };
        let weeks = Weeks::of(&[week(0, 0), week(4, 1), week(2, 2)]);
        assert_eq!(weeks.description, "Succeeded per week, oldest first: 0, 1 of 4, 2 of 2");
        assert_eq!(weeks.all, "M8 18v-18.0h6v18.0zM16 18v-9.0h6v9.0z");
        assert_eq!(weeks.good, "M8 18v-4.5h6v4.5zM16 18v-9.0h6v9.0z");
        assert_eq!(Weeks::of(&[week(0, 0)]).all, "");
    }
}
