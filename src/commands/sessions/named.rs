//! The sessions that a word of the command line stands for: a file, an id, or the beginning of one.
//!
//! Several files may hold a session of the same id: copies, backups, what a subagent repeats. The
//! one that was graded is the one that is meant; without a grade, the one that would be.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use selftest_app::{AppError, Project};
use selftest_grading::report::session::{OverviewCollector, SessionOverview};
use selftest_sessions::{ReadNotes, Session, SessionCollector, SessionFile, SessionSource};
use selftest_store::Store;
use selftest_text::one_line;
use serde::Serialize;

use super::find;
use crate::args::DatabaseArgs;
use crate::args::sessions::database;

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
    pub(super) overview: SessionOverview,
}

/// What a word of the command line stands for.
pub(super) struct NamedSession {
    /// The word.
    pub(super) name: String,
    /// The same as a path from the project folder.
    path: PathBuf,
    /// Id and file of the grade with this id.
    graded: Option<(String, PathBuf)>,
}

impl NamedSession {
    /// Looks up which file of this session was graded, if any was.
    pub(super) async fn find(
        name: &str,
        project: &Project,
        roots: &[PathBuf],
        args: &DatabaseArgs,
    ) -> Result<Self, AppError> {
        let path = project.path(Path::new(name));
        let mut named = Self { name: name.to_owned(), path, graded: None };
        let address = database(project, args);
        // Showing a session creates no database.
        let is_there = address.contains("://") || Path::new(&address).is_file();
        if !name.is_empty() && !named.path.exists() && is_there {
            named.graded = graded_file(name, &address, roots).await;
        }
        Ok(named)
    }

    /// Reads the sessions; of each only the events of `part`, if one is given.
    pub(super) fn read(
        &self,
        roots: &[PathBuf],
        part: Option<&Range<u64>>,
    ) -> Result<Vec<Shown>, AppError> {
        if !self.name.is_empty() && self.path.exists() {
            return in_file(&self.name, &self.path, part);
        }
        if let Some((id, file)) = &self.graded
            && let Some(SessionFile { source, .. }) = find(std::slice::from_ref(file)).pop()
            && let Ok(mut sessions) = read(&source, SessionCollector::with_id(id), part)
            && !sessions.is_empty()
        {
            sessions.truncate(1);
            return Ok(sessions);
        }
        by_id(&self.name, roots, part)
    }
}

/// Returns id and file of the only grade whose id begins so, if the file is in these folders. A
/// database that cannot be read is none: the files hold the sessions.
async fn graded_file(name: &str, address: &str, roots: &[PathBuf]) -> Option<(String, PathBuf)> {
    let store = Store::open(address).await.ok()?;
    let grade = if let Some(grade) = store.grade(name).await.ok()? {
        grade
    } else {
        let mut found = store.find_grades(name).await.ok()?.items;
        if found.len() == 1 { found.pop()? } else { return None }
    };
    let file = PathBuf::from(&grade.session_file);
    let is_below = |root: &PathBuf| root.canonicalize().is_ok_and(|root| file.starts_with(root));
    (file.exists() && roots.iter().any(is_below)).then_some((grade.session_id, file))
}

/// Reads all sessions of a file, or of a folder that is one session.
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

/// Returns the session with this id, or the only one whose id starts with it. Of several with the
/// id, the longest counts, as in grades. Files with the id in their name are read first, because
/// nearly all agents name their files so, and the others only if none of them holds it.
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
    let has_name = |found: &SessionFile| found.source.path().to_string_lossy().contains(id);
    let (named, others): (Vec<SessionFile>, Vec<SessionFile>) =
        find(roots).into_iter().partition(has_name);
    let (mut first, mut ids) = (None, BTreeSet::new());
    for files in [named, others] {
        let mut best: Option<Shown> = None;
        for SessionFile { source, .. } in files {
            let Ok(sessions) = read(&source, SessionCollector::with_id_prefix(id), part) else {
                continue;
            };
            for one in sessions {
                let is_longer = |best: &Shown| one.overview.events > best.overview.events;
                if one.session.head.id == id {
                    if best.as_ref().is_none_or(is_longer) {
                        best = Some(one);
                    }
                    continue;
                }
                // Copies of a file hold the same session.
                ids.insert(one.session.head.id.clone());
                first.get_or_insert(one);
            }
        }
        if let Some(best) = best {
            return Ok(vec![best]);
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
