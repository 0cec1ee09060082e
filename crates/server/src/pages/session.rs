//! One session with its grades by models and rules and its errors, as a page and as a panel beside
//! the list.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::quality::QualityView;
use super::{filters, links, quality, quote, render_html, rules, timeline};
use crate::App;
use crate::problem::Problem;
use selftest_grading::grade::{GradeField, GradeOverride, GradeRecord, TaskOutcome, TokenCost};
use selftest_service::jobs::GradingState;

/// Maximum number of evidence points, overrides and errors to show.
const MAX_ROWS: usize = 60;

pub(super) struct SessionView {
    pub(super) grade: GradeRecord,
    pub(super) overrides: Vec<GradeOverride>,
    quality: Option<QualityView>,
    /// Last requested grading.
    request: Option<GradingState>,
    /// True if the parent session has a page.
    has_parent: bool,
    /// Formatted cost of its tokens.
    cost: String,
    /// Parts of its file that could not be read.
    lost: Option<String>,
}

impl SessionView {
    /// Returns the value given by the rules.
    pub(super) fn by_rules(&self, field: GradeField) -> String {
        // Without errors, the rule's value is meaningless.
        if field == GradeField::ErrorsRecovered && self.grade.total_errors == 0 {
            return "no errors".to_owned();
        }
        rules::value(field, field.value(&self.grade))
    }

    /// Returns true if the session's file contains token counts.
    fn has_tokens(&self) -> bool {
        let tokens = self.grade.details.tokens;
        tokens.input > 0 || tokens.output > 0 || tokens.cached > 0
    }

    /// Returns true for the first error of its event in the list, which carries the event's anchor.
    fn is_first_error_at(&self, place: usize) -> bool {
        let errors = &self.grade.details.errors;
        let event = errors.get(place).map(|error| error.first_event);
        errors.iter().position(|error| Some(error.first_event) == event) == Some(place)
    }

    /// Returns true for the first outcome sign of its event, unless an error carries the event's
    /// anchor.
    fn is_first_sign_at(&self, place: usize) -> bool {
        let signs = &self.grade.details.outcome_evidence;
        let event = signs.get(place).map(|sign| sign.event);
        let mut errors = self.grade.details.errors.iter().take(MAX_ROWS);
        signs.iter().position(|sign| Some(sign.event) == event) == Some(place)
            && !errors.any(|error| Some(error.first_event) == event)
    }

    /// Returns the last correction by a person.
    pub(super) fn by_person(&self, field: GradeField) -> Option<String> {
        let last = self.overrides.iter().rev().find(|made| made.field == field)?;
        Some(rules::value(field, last.human_value))
    }
}

#[derive(Template)]
#[template(path = "page/session.html")]
struct SessionDetailPage {
    section: &'static str,
    session: SessionView,
}

#[derive(Template)]
#[template(path = "page/session_panel.html")]
struct SessionPanel {
    session: SessionView,
}

async fn load(app: &App, id: &str) -> Result<SessionView, Problem> {
    let grade = app.store.grade(id).await?;
    let mut grade =
        grade.ok_or_else(|| Problem::not_found(format!("no session {} has a grade", quote(id))))?;
    // In the order of the transcript.
    grade.details.errors.sort_by_key(|error| error.first_event);
    let file = app.store.file(&grade.session_file).await?;
    let has_parent = match &grade.parent_session {
        Some(parent) => app.store.grade(parent).await?.is_some(),
        None => false,
    };
    Ok(SessionView {
        has_parent,
        overrides: app.store.session_overrides(id).await?.items,
        quality: QualityView::of(app.store.session_quality_grades(id).await?.items),
        request: app.queue.request_state(id).await?,
        cost: TokenCost::of_session(&grade.details, app.transcripts.prices()).words(),
        lost: file.and_then(|file| file.lost_parts()),
        grade,
    })
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let session = load(&app, &id).await?;
    render_html(&SessionDetailPage { section: "sessions", session })
}

pub(super) async fn panel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    render_html(&SessionPanel { session: load(&app, &id).await? })
}

/// Renders the panel of a session as HTML for another page.
pub(super) async fn render_panel(app: &App, id: &str) -> Result<String, Problem> {
    Ok(SessionPanel { session: load(app, id).await? }.render()?)
}
