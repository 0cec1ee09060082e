//! `selftest sessions show`: what was said and done in one session, or in all of one file.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use selftest_app::AppError;
use selftest_grading::report::session::{OverviewCollector, SessionOverview};
use selftest_grading::report::transcript::{TranscriptOptions, transcript};
use selftest_models::prices::ModelPrices;
use selftest_sessions::{ReadNotes, Session, SessionCollector, SessionFile, SessionSource};
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use serde::Serialize;

use super::find;
use crate::exit::Exit;
use crate::ui::{eprint, print};

/// Maximum number of ids listed if several match.
const MAX_NAMED: usize = 5;

/// A session, and what of its file could not be used.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    pub(super) session: Session,
    pub(super) notes: ReadNotes,
    /// Counts over all events of the session.
    #[serde(skip)]
    overview: SessionOverview,
}

/// How a session is shown.
pub(super) struct Form {
    pub(super) printing: TranscriptOptions,
    /// The numbers of the events that are shown, where not all are.
    pub(super) part: Option<Range<u64>>,
    pub(super) as_json: bool,
    pub(super) prices: ModelPrices,
}

/// `path` is `session` as a path from the project folder.
pub(super) fn show(
    session: &str,
    path: &Path,
    roots: &[PathBuf],
    form: &Form,
    redactor: &Redactor,
) -> Result<Exit, AppError> {
    let shown = named(session, path, roots, form.part.as_ref())?;
    if let Some(part) = &form.part
        && let [only] = shown.as_slice()
        && let wanted = form.printing.target.unwrap_or(part.start)
        && !only.session.events.iter().any(|event| event.number == wanted)
    {
        let last = only.overview.events.saturating_sub(1);
        let error = anyhow!("event {wanted} is not among those of the session, 0 to {last}");
        return Err(AppError::usage(error));
    }
    if form.as_json {
        // A secret may stand in any field.
        let mut json = serde_json::json!(shown);
        for (one, json) in shown.iter().zip(json.as_array_mut().into_iter().flatten()) {
            json["cost"] = serde_json::json!(one.overview.cost(&one.session.head, &form.prices));
            json["events_in_all"] = serde_json::json!(one.overview.events);
        }
        redactor.apply_json(&mut json);
        print(&format!("{json:#}\n"))?;
    } else {
        let texts = shown.iter().map(|Shown { session, overview, .. }| {
            transcript(session, overview, &form.prices, redactor, form.printing)
        });
        print(&texts.collect::<Vec<_>>().join("\n\n"))?;
    }
    if let Some(lost) = shown.first().and_then(|shown| shown.notes.describe_losses()) {
        eprint(&format!("warning: {}: {}\n", one_line(session, 400), one_line(&lost, 200)));
    }
    Ok(Exit::Passed)
}

/// The sessions that a file or an id names; `path` is `session` as a path from the project folder.
///
/// Of each only the events of `part`, where there is one.
pub(super) fn named(
    session: &str,
    path: &Path,
    roots: &[PathBuf],
    part: Option<&Range<u64>>,
) -> Result<Vec<Shown>, AppError> {
    if !session.is_empty() && path.exists() {
        in_file(session, path, part)
    } else {
        by_id(session, roots, part)
    }
}

/// All sessions of a file, or of a folder that is one session.
fn in_file(named: &str, path: &Path, part: Option<&Range<u64>>) -> Result<Vec<Shown>, AppError> {
    let refused = |why: String| AppError::usage(anyhow!("{named}: {why}"));
    let mut found = find(&[path.to_owned()]);
    let source = match found.len() {
        0 if path.is_dir() => return Err(refused("no recorded session is in it".to_owned())),
        0 if !path.is_file() => return Err(refused("neither a file nor a folder".to_owned())),
        0 => SessionSource::file(path.to_owned()),
        1 => found.remove(0).source,
        count => {
            return Err(refused(format!("{count} files in it may hold sessions"))
                .hint(Some("`selftest sessions list --source FOLDER` lists its sessions")));
        }
    };
    read(&source, SessionCollector::default(), part).map_err(|error| refused(error.to_string()))
}

fn read(
    source: &SessionSource,
    collector: SessionCollector,
    part: Option<&Range<u64>>,
) -> Result<Vec<Shown>, selftest_sessions::SessionReadError> {
    let mut counted = OverviewCollector::new(
        part.cloned().into_iter().fold(collector, SessionCollector::with_events),
    );
    let notes = selftest_sessions::read(source, &mut counted)?.notes;
    let shown = |(session, overview)| Shown { session, notes: notes.clone(), overview };
    Ok(counted.into_sessions().map(shown).collect())
}

/// Returns the session with this id, or the only one whose id starts with it. Files with the id in
/// their name are read first, because nearly all agents name their files so.
fn by_id(id: &str, roots: &[PathBuf], part: Option<&Range<u64>>) -> Result<Vec<Shown>, AppError> {
    let shown = one_line(id, 80);
    let nothing = || {
        AppError::usage(anyhow!(
            "no recorded session has the id {shown:?}, and no file has that name"
        ))
        .hint(Some("`selftest sessions list` shows the ids"))
    };
    if id.is_empty() {
        return Err(nothing());
    }
    let mut found = find(roots);
    found.sort_by_key(|found| !found.source.path().to_string_lossy().contains(id));
    let mut first = None;
    let mut ids = BTreeSet::new();
    for SessionFile { source, .. } in found {
        let Ok(sessions) = read(&source, SessionCollector::with_id_prefix(id), part) else {
            continue;
        };
        for one in sessions {
            if one.session.head.id == id {
                return Ok(vec![one]);
            }
            // Copies of a file hold the same session.
            ids.insert(one.session.head.id.clone());
            first.get_or_insert(one);
        }
    }
    if ids.len() > 1 {
        let mut named: Vec<String> =
            ids.iter().take(MAX_NAMED).map(|id| one_line(id, 80)).collect();
        if ids.len() > MAX_NAMED {
            named.push("…".to_owned());
        }
        let (count, named) = (ids.len(), named.join(", "));
        return Err(AppError::usage(anyhow!("{count} session ids start with {shown:?}: {named}"))
            .hint(Some("write more of the id")));
    }
    first.map(|one| vec![one]).ok_or_else(nothing)
}
