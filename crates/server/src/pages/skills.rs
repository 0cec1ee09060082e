//! The list of skill versions with their latest scores and usage.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::{filters, links, parse_cursor, quote, render_html};
use crate::App;
use crate::api::{today, weeks_of};
use crate::problem::Problem;
use selftest_grading::improve::effectiveness::{Effectiveness, MIN_EXECUTIONS};
use selftest_grading::improve::skill::{
    AuditEntry, ExecutionStatus, SkillExecution, SkillVersion, WeekCount,
};
use selftest_service::grader::skills::SkillChangeError;
use selftest_store::{Cursor, ResultPage, SkillDayCount};

/// Maximum number of rows per page.
const MAX_ROWS: u32 = 100;
/// Height, width and spacing of the bars of [`WeeksChart`], in SVG units.
const HEIGHT: f64 = 18.0;
const WIDTH: usize = 6;
const STEP: usize = 8;

/// Raw query parameters; an empty text means a missing value.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SkillsParams {
    pub(super) after: String,
}

#[derive(Template)]
#[template(path = "page/skills.html")]
struct SkillsPage {
    section: &'static str,
    skills: ResultPage<SkillVersion>,
    days: Vec<SkillDayCount>,
    is_later: bool,
}

impl SkillsPage {
    fn weeks(&self, skill: &SkillVersion) -> WeeksChart {
        WeeksChart::of(&weeks_of(skill, &self.days))
    }
}

/// A small chart of executions per week as SVG paths: bars for all executions, with the successful
/// ones in front.
pub(super) struct WeeksChart {
    pub(super) description: String,
    pub(super) all: String,
    pub(super) good: String,
}

impl WeeksChart {
    pub(super) fn of(weeks: &[WeekCount]) -> Self {
        // At least 1, so that a chart without executions does not divide by 0.
        let most = weeks.iter().map(|week| week.executions).max().unwrap_or_default().max(1);
        let bars = |count: fn(&WeekCount) -> u32| -> String {
            let counts = weeks.iter().map(count).enumerate().filter(|(_, count)| *count > 0);
            let bar = |(number, count): (usize, u32)| {
                let height = HEIGHT * f64::from(count) / f64::from(most);
                format!("M{} {HEIGHT}v-{height:.1}h{WIDTH}v{height:.1}z", number * STEP)
            };
            // One path per colour instead of a rectangle per bar: a page of a hundred skills stays
            // small.
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

/// Parses the cursor of a page of skills or executions.
pub(super) fn parse_skills_cursor(params: &SkillsParams) -> Result<Option<Cursor>, Problem> {
    parse_cursor(&params.after, |cursor| cursor.value.is_some())
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(params): Query<SkillsParams>,
) -> Result<Response, Problem> {
    let after = parse_skills_cursor(&params)?;
    let tracker = app.skills.tracker();
    let skills = app.store.skills(tracker.user_id(), MAX_ROWS, after.as_ref()).await?;
    let days = tracker.days(today()).await?;
    render_html(&SkillsPage { section: "skills", skills, days, is_later: after.is_some() })
}

/// Maximum number of rows per page.
const MAX_EXECUTIONS: u32 = 50;

#[derive(Template)]
#[template(path = "page/skill.html")]
struct SkillDetailPage {
    section: &'static str,
    skill: SkillVersion,
    effectiveness: Effectiveness,
    weeks: WeeksChart,
    executions: ResultPage<SkillExecution>,
    is_later: bool,
    versions: Vec<SkillVersion>,
    audit: Vec<AuditEntry>,
}

impl SkillDetailPage {
    /// Returns the version that a history entry is about.
    fn version(&self, entry: &AuditEntry) -> &str {
        let version = self.versions.iter().find(|version| version.id == entry.skill_version_id);
        version.map(|version| version.version.as_str()).unwrap_or_default()
    }
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(params): Query<SkillsParams>,
) -> Result<Response, Problem> {
    let after = parse_skills_cursor(&params)?;
    let tracker = app.skills.tracker();
    let skill = tracker.find_by_id(&id).await.map_err(|error| match error {
        SkillChangeError::Store(error) => error.into(),
        // Only a lookup happens here, so that every other error means that the skill is missing.
        _ => Problem::not_found(format!("there is no skill with the id {}", quote(&id))),
    })?;
    let days = tracker.days(today()).await?;
    render_html(&SkillDetailPage {
        section: "skills",
        effectiveness: tracker.compute_effectiveness(&skill.id).await?,
        weeks: WeeksChart::of(&weeks_of(&skill, &days)),
        executions: app.store.skill_executions(&skill.id, MAX_EXECUTIONS, after.as_ref()).await?,
        is_later: after.is_some(),
        versions: app.store.skill_versions(&skill.user_id, &skill.skill_name).await?,
        audit: app.store.skill_audit(&skill.user_id, &skill.skill_name).await?.items,
        skill,
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
        let weeks = WeeksChart::of(&[week(0, 0), week(4, 1), week(2, 2)]);
        assert_eq!(weeks.description, "Succeeded per week, oldest first: 0, 1 of 4, 2 of 2");
        assert_eq!(weeks.all, "M8 18v-18.0h6v18.0zM16 18v-9.0h6v9.0z");
        assert_eq!(weeks.good, "M8 18v-4.5h6v4.5zM16 18v-9.0h6v9.0z");
        assert_eq!(WeeksChart::of(&[week(0, 0)]).all, "");
    }
}
