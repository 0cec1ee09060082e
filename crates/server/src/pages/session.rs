//! One session with its grades by models and rules and its errors, as a page and as a panel beside
//! the list. Grades by models are shown per dimension: mean and spread over the models, and the
//! quotes and reasoning of each.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use selftest_grading::grade::quality::{
    CombinedQuality, DimensionNote, FIRST_OWN_VERSION, QualityDimension, ScoreSpread,
    combine_grades, rubric_name,
};
use selftest_grading::grade::{
    GradeEvidence, GradeField, GradeOverride, GradeRecord, QualityGrade, TaskOutcome, TokenCost,
};
use selftest_service::jobs::GradingState;

use super::{filters, links, quote, render_html};
use crate::App;
use crate::problem::Problem;

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
        field_value(field, field.value(&self.grade))
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
        Some(field_value(field, last.human_value))
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
    // The file's record knows what its reader could not read; the grade does not.
    let file = app.store.file(&grade.session_file).await?;
    let has_parent = match &grade.parent_session {
        // The parent may be outside of the scanned folders, and a link to it would lead nowhere.
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

/// Grades of one session by models.
pub(super) struct QualityView {
    pub(super) combined: CombinedQuality,
    pub(super) grades: Vec<QualityGrade>,
}

/// One dimension over all models.
pub(super) struct DimensionView<'g> {
    pub(super) name: &'static str,
    pub(super) mean: Option<f64>,
    pub(super) spread: Option<f64>,
    pub(super) weight: Option<f64>,
    /// Notes of each model. With a single model, empty notes are omitted.
    pub(super) notes: Vec<(&'g QualityGrade, Option<f64>, DimensionNote)>,
}

impl QualityView {
    /// Combines grades. Returns `None` for an empty list.
    pub(super) fn of(grades: Vec<QualityGrade>) -> Option<Self> {
        Some(Self { combined: combine_grades(&grades)?, grades })
    }

    pub(super) fn has_several(&self) -> bool {
        self.grades.len() > 1
    }

    /// Returns the rubric's name if the project has its own prompt.
    pub(super) fn own_rubric(&self) -> Option<String> {
        let version = self.combined.rubric_version;
        (version >= FIRST_OWN_VERSION).then(|| rubric_name(version))
    }

    pub(super) fn dimensions(&self) -> impl Iterator<Item = DimensionView<'_>> {
        let [_, means @ ..] = self.combined.rows();
        QualityDimension::ALL.into_iter().zip(means).map(|(dimension, (_, several))| {
            DimensionView {
                name: dimension.title(),
                mean: several.map(mean_score),
                spread: several.and_then(score_spread),
                weight: self.grades.iter().find_map(|grade| dimension_weight(grade, dimension)),
                notes: self
                    .grades
                    .iter()
                    .map(|grade| {
                        let note = dimension.note_of(grade).unwrap_or_default();
                        (grade, dimension.score_of(grade), note)
                    })
                    .filter(|(_, _, note)| self.has_several() || !is_empty_note(note))
                    .collect(),
            }
        })
    }
}

pub(super) fn mean_score(several: ScoreSpread) -> f64 {
    several.mean
}

/// Returns the highest score minus the lowest, if models differ.
pub(super) fn score_spread(several: ScoreSpread) -> Option<f64> {
    Some(several.spread).filter(|spread| *spread > 0.0)
}

fn is_empty_note(note: &DimensionNote) -> bool {
    note.evidence.trim().is_empty() && note.reasoning.trim().is_empty() && !note.unsupported
}

fn dimension_weight(grade: &QualityGrade, dimension: QualityDimension) -> Option<f64> {
    grade.details.as_ref()?.get("weights")?.get(dimension.name())?.as_f64()
}

pub(super) fn field_name(field: GradeField) -> &'static str {
    match field {
        GradeField::TaskCompleted => "Task completed",
        GradeField::ToolCallsEfficient => "Tool efficiency",
        GradeField::ResponseQuality => "Answer quality",
        GradeField::ErrorsRecovered => "Errors recovered",
    }
}

pub(super) fn field_value(field: GradeField, value: u8) -> String {
    match (field.is_boolean(), value) {
        (true, 0) => "no".to_owned(),
        (true, _) => "yes".to_owned(),
        (false, value) => format!("{value} of 5"),
    }
}

/// Start and end of the axis in the 640 × 48 picture.
const LEFT: f64 = 10.0;
const RIGHT: f64 = 630.0;

/// Returns the number of the last known event.
pub(super) fn last_event(grade: &GradeRecord) -> u64 {
    let details = &grade.details;
    let errors = details.errors.iter().map(|error| error.first_event);
    let evidence = single_events(grade).map(|(event, _)| event);
    // At least 1, because positions on the axis are shares of it.
    errors.chain(evidence).chain([details.messages.saturating_sub(1)]).fold(1, u64::max)
}

/// Returns the evidence that refers to a single event.
pub(super) fn single_events(grade: &GradeRecord) -> impl Iterator<Item = (u64, &GradeEvidence)> {
    let evidence = grade.details.evidence.iter();
    evidence.filter_map(|evidence| Some((evidence.event?, evidence)))
}

/// Returns the horizontal position of an event.
#[expect(clippy::cast_precision_loss, reason = "a place in a picture of 640 pixels")]
pub(super) fn timeline_x(event: u64, last: u64) -> f64 {
    LEFT + (RIGHT - LEFT) * (event as f64 / last.max(1) as f64)
}

/// Returns the radius of an error's circle, which grows with the count of its kind.
#[expect(clippy::cast_precision_loss, reason = "a radius of at most 9 pixels")]
pub(super) fn error_radius(count: u64) -> f64 {
    (4.0 + (count as f64).ln_1p()).min(9.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn grade(model: &str, solved: Option<f64>, details: Value) -> QualityGrade {
        QualityGrade {
            session_id: "s".to_owned(),
            model: model.to_owned(),
            rubric_version: 1,
            ts: "2026-11-20T10:00:00Z".parse().unwrap(),
            problem_solved: solved,
            tests_added: None,
            code_clean: None,
            edge_cases: Some(0.5),
            overall: solved,
            reasoning: None,
            details: Some(details),
        }
    }

    #[test]
    fn models_are_averaged_and_their_spread_is_said() {
        let notes = json!({
            "dimensions": {
                "edge_cases_handled": { "evidence": "q", "unsupported": true },
                "code_clean": 7,
            },
            "weights": { "problem_solved": 0.4, "edge_cases_handled": "x" },
        });
        let grades = [grade("a", Some(0.6), notes), grade("b", Some(0.9), json!([1]))];
        let quality = QualityView::of(grades.to_vec()).unwrap();
        let dimensions: Vec<_> = quality.dimensions().collect();
        let solved = &dimensions[0];
        assert_eq!((solved.mean, solved.weight), (Some(0.75), Some(0.4)));
        assert!((solved.spread.unwrap() - 0.3).abs() < 1e-9);
        let edges = &dimensions[3];
        let (_, _, note) = &edges.notes[0];
        assert!(note.unsupported && note.evidence == "q");
        assert_eq!((edges.spread, edges.weight), (None, None));
        assert_eq!(dimensions[1].mean, None);
        assert!(QualityView::of(Vec::new()).is_none());
    }

    #[test]
    fn notes_that_say_nothing_are_not_shown_for_a_single_model() {
        let quality = QualityView::of(vec![grade("a", Some(1.0), Value::Null)]).unwrap();
        assert!(quality.dimensions().all(|dimension| dimension.notes.is_empty()));
    }
}
