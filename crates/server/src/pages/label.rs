//! The labelling page: a person labels the answers of a run one at a time, without seeing the
//! results of checks and judge. The form works without JavaScript, and labels are stored in the
//! same file as in the terminal.

use std::sync::{Arc, Mutex, PoisonError};

use askama::Template;
use axum::Form;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::run::read_run;
use super::{filters, links, quote, render_html, run_blocking};
use crate::App;
use crate::problem::Problem;
use selftest_harness::calibration::Label;
use selftest_harness::calibration::labels::AnswerId;
use selftest_reports::document::ReportDocument;
use selftest_reports::label_store::{LabelStore, LabelStoreError};
use selftest_reports::labelling::{LabellingSection, answers, sections};

/// Serialises writes of labels.
static WRITING: Mutex<()> = Mutex::new(());

#[derive(Template)]
#[template(path = "page/label.html")]
struct LabelPage {
    section: &'static str,
    run_id: String,
    /// Number of labelled answers, and of all answers.
    done: usize,
    all: usize,
    /// Next unlabelled answer after the skipped ones, if any.
    open: Option<UnlabelledAnswer>,
}

/// An unlabelled answer.
struct UnlabelledAnswer {
    id: AnswerId,
    /// Position in the labelling order.
    position: usize,
    parts: Vec<LabellingSection>,
}

impl LabelPage {
    fn address(&self) -> String {
        links::label(&self.run_id)
    }

    /// Returns the number of unlabelled answers.
    fn left(&self) -> usize {
        self.all - self.done
    }
}

/// Query parameter: first position in the labelling order.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LabelParams {
    from: usize,
}

impl std::convert::From<LabelStoreError> for Problem {
    fn from(error: LabelStoreError) -> Self {
        match error {
            LabelStoreError::Refused(fault) => {
                let detail = format!("{fault}; remove it from the file of labels to label it anew");
                Self::new(StatusCode::CONFLICT, detail)
            }
            LabelStoreError::Unreadable { why, .. } => {
                let detail = format!("the labels that are kept of this run cannot be used: {why}");
                Self::new(StatusCode::CONFLICT, detail)
            }
            LabelStoreError::Unwritten { .. } => Self::internal(&error),
        }
    }
}

/// Returns the report of a run, its answers in labelling order, and the store of their labels.
fn load_labels(
    app: &App,
    run_id: &str,
) -> Result<(ReportDocument, Vec<AnswerId>, LabelStore), Problem> {
    let (report, _) = read_run(app, run_id)?;
    let answers = answers(&report);
    let store = LabelStore::new(app.runs.folder(), &report.run_id);
    Ok((report, answers, store))
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(run_id): Path<String>,
    Query(LabelParams { from }): Query<LabelParams>,
) -> Result<Response, Problem> {
    let page = move || {
        let (report, answers, store) = load_labels(&app, &run_id)?;
        let labels = store.read(&answers)?;
        // `from` is in the link, so that "skip" needs no state on the server.
        let open = answers.iter().enumerate().skip(from).find_map(|(position, id)| {
            if labels.of(&id.case).is_some() {
                return None;
            }
            let parts = sections(&report, id)?;
            Some(UnlabelledAnswer { id: id.clone(), position, parts })
        });
        Ok(LabelPage {
            section: "selftests",
            run_id: report.run_id.to_string(),
            done: labels.labels.len(),
            all: answers.len(),
            open,
        })
    };
    render_html(&run_blocking(page).await?)
}

/// The user's choice.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LabelChoice {
    Good,
    Bad,
    Skip,
}

/// Fields of the form.
#[derive(Debug, Deserialize)]
pub(super) struct LabelForm {
    case: String,
    /// Digest of the displayed answer.
    answer: String,
    position: usize,
    said: LabelChoice,
}

pub(super) async fn submit_label(
    State(app): State<Arc<App>>,
    Path(run_id): Path<String>,
    Form(form): Form<LabelForm>,
) -> Result<Response, Problem> {
    let keep = move || {
        let (report, answers, store) = load_labels(&app, &run_id)?;
        let label = match form.said {
            LabelChoice::Good => Some(Label::Good),
            LabelChoice::Bad => Some(Label::Bad),
            LabelChoice::Skip => None,
        };
        let answer = answers.iter().find(|answer| answer.case == form.case).ok_or_else(|| {
            let case = quote(&form.case);
            Problem::not_found(format!("run {} has no answer of {case}", report.run_id))
        })?;
        // The report may have been written again while the form was open.
        if answer.answer_digest != form.answer {
            let detail = "the run has another answer by now: look at it again";
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        if let Some(label) = label {
            // Labels are read, changed and written as a whole: of two forms sent at once, one label
            // would be lost. The file is replaced atomically, so that a panic leaves no broken
            // state behind.
            let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
            store.add(&answers, &[(answer, label)])?;
        }
        // Earlier answers were labelled or skipped.
        let from = form.position.saturating_add(1).to_string();
        Ok(links::query(&links::label(report.run_id.as_str()), &[("from", &from)]))
    };
    Ok(Redirect::to(&run_blocking(keep).await?).into_response())
}
