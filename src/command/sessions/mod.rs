//! `selftest sessions`: finds recorded sessions, lists, prints, searches and exports them, and says
//! what cannot be read.

mod doctor;
mod export;
mod label;
mod list;
mod search;
mod show;

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::since;
use super::sources::{homes, roots};
use crate::cli::{DoctorFormat, GlobalArgs, SessionArgs, SessionsAction};
use crate::exit::Exit;
use crate::ui;
use crate::ui::eprint;
use doctor::doctor;
use export::export;
use list::list;
use search::{Asked, search};
use selftest_app::AppError;
use selftest_grading::report::transcript::TranscriptOptions;
use selftest_service::search::SearchRequest;
use selftest_sessions::SessionFile;
use selftest_text::redact::Redactor;
use show::{Form, show};

/// Events that are shown where only the first is named.
const EVENTS: u64 = 100;

/// Events before and after one that is looked for.
const CONTEXT: u64 = 3;

/// An event and those around it.
fn around(event: u64) -> Range<u64> {
    event.saturating_sub(CONTEXT)..event.saturating_add(CONTEXT + 1)
}

pub(super) async fn execute(
    action: &SessionsAction,
    args: &SessionArgs,
    as_json: bool,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let roots = roots(&project, args)?;
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    match action {
        SessionsAction::List { limit } => list(&roots, *limit, args, as_json, &redactor),
        SessionsAction::Doctor { format } => {
            let is_at_home = args.sources.is_empty();
            let homes = if is_at_home { homes(&project) } else { Vec::new() };
            let as_json = as_json || *format == DoctorFormat::Json;
            doctor(&project, &roots, &homes, as_json, &redactor)
        }
        SessionsAction::Export { sessions, format, output } => {
            let target = output.as_ref().map(|folder| project.path(folder));
            let named =
                sessions.iter().map(|named| (named.as_str(), project.path(Path::new(named))));
            let prices = project.load(Vec::new())?.config.prices;
            export(named, &roots, *format, target.as_deref(), &prices, &redactor)
        }
        SessionsAction::Label(given) => label::label(&project, given, as_json).await,
        SessionsAction::Estimate(wanted) => label::estimates(&project, wanted, as_json).await,
        SessionsAction::Search {
            words,
            project: folder,
            model,
            until,
            tool,
            errors,
            limit,
            cursor,
            no_scan,
            database,
        } => {
            let request = SearchRequest {
                words: words.join(" "),
                project: folder.clone(),
                model: model.clone(),
                tool: tool.clone(),
                errors: *errors,
                limit: *limit,
                cursor: cursor.clone(),
                ..SearchRequest::default()
            };
            let (until, no_scan) = (until.as_deref(), *no_scan);
            let asked = Asked { request, until, no_scan, as_json, database };
            search(&project, args, asked).await
        }
        SessionsAction::Show { session, full, from, events, event } => {
            let path = project.path(Path::new(session));
            let prices = project.load(Vec::new())?.config.prices;
            let printing = TranscriptOptions { full: *full, target: *event };
            let part = match (event, from, events) {
                (Some(event), ..) => Some(around(*event)),
                (None, None, None) => None,
                (None, from, events) => {
                    let (from, events) = (from.unwrap_or_default(), events.unwrap_or(EVENTS));
                    Some(from..from.saturating_add(events))
                }
            };
            let form = Form { printing, part, as_json, prices };
            show(session, &path, &roots, &form, &redactor)
        }
    }
}

fn find(roots: &[PathBuf]) -> Vec<SessionFile> {
    selftest_sessions::find_session_files(roots, |problem| eprint(&format!("warning: {problem}\n")))
}
