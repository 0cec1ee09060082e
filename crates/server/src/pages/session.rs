//! One session: its grades by models and by rules side by side, and its errors. As a page of its
//! own, and as a panel that the list shows.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::quality::Quality;
use super::rules::Rules;
use super::timeline::Timeline;
use super::{Frame, PageError, html, link, words};
use crate::App;
use selftest_grading::grade::GradeRecord;
use selftest_service::jobs::GradingRequest;

struct Session {
    title: String,
    id: String,
    facts: Vec<(&'static str, String)>,
    quality: Option<Quality>,
    rules: Rules,
    timeline: Timeline,
    /// Where a grading is asked for.
    grading: String,
    /// What became of the last one that was asked for.
    request: Option<&'static str>,
    /// Why it failed.
    fault: Option<String>,
}

#[derive(Template)]
#[template(path = "page/session.html")]
struct SessionPage {
    frame: Frame,
    session: Session,
}

#[derive(Template)]
#[template(path = "page/session_panel.html")]
struct SessionPanel {
    session: Session,
}

/// `lost` is what of its file could not be read.
fn facts(grade: &GradeRecord, lost: Option<&str>) -> Vec<(&'static str, String)> {
    let named = |text: &Option<String>| words::line(text.as_deref().unwrap_or(words::ABSENT));
    let details = &grade.details;
    let mut facts = vec![
        ("Agent", words::line(&details.agent)),
        ("Model", named(&grade.model)),
        ("Task type", words::spaced(details.task_type.name())),
        ("Time", format!("{} UTC", words::minute(details.counts_at))),
        ("Duration", words::seconds(grade.duration_seconds)),
        ("Messages", words::count(details.messages)),
        ("Model calls", words::count(grade.total_api_calls)),
        (
            "Tool calls",
            format!(
                "{}, {} failed, {} rejected",
                words::count(details.tool_calls),
                words::count(grade.total_errors),
                words::count(details.rejected_calls)
            ),
        ),
        ("File", words::line(&grade.session_file)),
    ];
    facts.extend(lost.map(|lost| ("Lost of the file", words::line(lost))));
    facts
}

async fn load(app: &App, id: &str) -> Result<Session, PageError> {
    let grade = app.store.grade(id).await?;
    let grade = grade.ok_or_else(|| {
        PageError::not_found(format!("no session {:?} has a grade", words::line(id)))
    })?;
    let quality = app.store.quality_of(id).await?.items;
    let overrides = app.store.overrides_of(id).await?.items;
    let (request, fault) = match app.queue.request(id).await? {
        Some(GradingRequest::Waiting | GradingRequest::Running) => {
            (Some("A grading waits or goes on."), None)
        }
        Some(GradingRequest::Failed(why)) => {
            (Some("The last grading gave no grade:"), Some(words::line(&why)))
        }
        Some(GradingRequest::Done) | None => (None, None),
    };
    let file = app.store.file(&grade.session_file).await?;
    let lost = file.and_then(|file| file.lost());
    let title = words::line(grade.task_summary.as_deref().unwrap_or_default());
    Ok(Session {
        title: if title.is_empty() { "(no request)".to_owned() } else { title },
        id: words::line(id),
        facts: facts(&grade, lost.as_deref()),
        quality: Quality::of(&quality),
        rules: Rules::of(&grade, &overrides),
        timeline: Timeline::of(&grade),
        grading: format!("/api/grades/session/{}", link::encoded(id)),
        request,
        fault,
    })
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let session = load(&app, &id).await?;
    html(&SessionPage { frame: Frame::of("sessions"), session })
}

pub(super) async fn panel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    html(&SessionPanel { session: load(&app, &id).await? })
}
