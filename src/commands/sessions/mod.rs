//! `selftest sessions`: finds recorded sessions, lists, prints, searches and exports them, and says
//! what cannot be read.
//!
//! A word of the command line stands for a file, an id, or the beginning of one. Several files may
//! hold a session of the same id: copies, backups, what a subagent repeats. The one that was graded
//! is the one that is meant; without a grade, the one that would be.

mod doctor;
mod export;
mod label;
mod list;
mod search;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde::Serialize;

use crate::args::sessions::{database, homes, roots};
use crate::args::{DatabaseArgs, GlobalArgs, SessionArgs, share};
use crate::exit::Exit;
use crate::ui;
use crate::ui::eprint;
use doctor::doctor;
use export::export;
use label::{OutcomesArgs, outcomes};
use list::{Form, list, show};
use search::{Asked, search};
use selftest_app::{AppError, Project};
use selftest_grading::report::session::{OverviewCollector, SessionOverview};
use selftest_grading::report::transcript::TranscriptOptions;
use selftest_service::search::SearchRequest;
use selftest_sessions::{ReadNotes, Session, SessionCollector, SessionFile, SessionSource};
use selftest_store::Store;
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Actions on recorded sessions.
#[derive(Debug, Subcommand)]
pub enum SessionsAction {
    /// List recorded sessions, newest first
    List {
        /// Maximum number of sessions to list, newest files first; 0 for all
        #[arg(long, value_name = "N", default_value_t = 30)]
        limit: usize,
    },
    /// Print the transcript of a session
    Show {
        /// Its file, id or id prefix
        session: String,
        /// Print full texts instead of excerpts
        #[arg(long)]
        full: bool,
        /// Print events from this number on, 100 unless --events is given
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// Maximum number of events to print
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        events: Option<u64>,
        /// Print one event in full, with three events before and after it
        #[arg(long, value_name = "N", conflicts_with_all = ["from", "events"])]
        event: Option<u64>,
        /// The database, which knows the graded file of each session.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Search the transcripts of graded sessions; grades and indexes new sessions first
    Search {
        /// Words that must occur in one event, "quoted phrases", prefixes*
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
        /// Only sessions in this folder; its last component is enough
        #[arg(long, value_name = "FOLDER", help_heading = "Which sessions")]
        project: Option<String>,
        /// Only sessions with this model
        #[arg(long, value_name = "NAME", help_heading = "Which sessions")]
        model: Option<String>,
        /// Only sessions started before then: a date such as 2026-11-01, or 30d
        #[arg(long, value_name = "TIME", help_heading = "Which sessions")]
        until: Option<String>,
        /// Only events of this tool, such as Bash
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Only events with a failed tool call
        #[arg(long)]
        errors: bool,
        /// Maximum number of sessions to list
        #[arg(long, value_name = "N", default_value_t = 20,
            value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
        /// Continue after a page: its `next`
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
        /// Do not scan; search the existing index
        #[arg(long)]
        no_scan: bool,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List for each source what was found, read and refused, and why
    Doctor {
        /// Output format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: DoctorFormat,
    },
    /// Export sessions of any agent for other programs or people; secrets are redacted
    Export {
        /// Their files, ids or id prefixes
        #[arg(required = true, value_name = "FILE|ID")]
        sessions: Vec<String>,
        /// Export format
        #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
        format: ExportFormat,
        /// Write one file per session to this folder instead of printing
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
        /// The database, which knows the graded file of each session.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Label whether the tasks of graded sessions succeeded, one by one or from a file
    Label(SessionLabelArgs),
    /// Show how often labelled tasks had succeeded by what was seen of them: precision, recall, lift
    Outcomes(OutcomesArgs),
    /// Estimate which tasks succeeded, from the labels of each project
    Estimate(EstimateArgs),
}

/// Labels of tasks.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group(ArgGroup::new("said").required(true)))]
pub struct SessionLabelArgs {
    /// Their ids or id prefixes
    #[arg(required_unless_present = "labels", conflicts_with = "labels", value_name = "ID")]
    pub sessions: Vec<String>,
    /// They succeeded
    #[arg(long, group = "said")]
    pub success: bool,
    /// They failed
    #[arg(long, group = "said")]
    pub failure: bool,
    /// Import labels: JSON lines or a JSON list of objects, each with a session, whether it succeeded
    /// or its reward, and its task
    #[arg(long, group = "said", value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Minimum reward in the file that counts as success
    #[arg(long, value_name = "0..1", default_value_t = 1.0, value_parser = share,
        requires = "labels")]
    pub least_reward: f64,
    /// The task, if several sessions share it
    #[arg(long, conflicts_with = "labels", value_name = "NAME")]
    pub task: Option<String>,
    /// Reason, for later readers
    #[arg(long, conflicts_with = "labels", value_name = "TEXT")]
    pub note: Option<String>,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// Arguments of an estimate.
#[derive(Debug, Args)]
pub struct EstimateArgs {
    /// Only this project: the folder that its sessions worked in
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<String>,
    /// Number of unlabelled sessions to list that probably failed
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// How `sessions doctor` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// A table, for people
    #[default]
    Text,
    /// JSON
    Json,
}

/// Format of exported sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A trajectory of the Agent Trajectory Interchange Format
    #[default]
    Atif,
    /// Markdown
    Markdown,
    /// One self-contained page
    Html,
    /// One line about the session, then one per event, as parsed by selftest
    Jsonl,
}

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
        SessionsAction::Export { sessions, format, output, database } => {
            let target = output.as_ref().map(|folder| project.path(folder));
            let mut named = Vec::new();
            for session in sessions {
                named.push(NamedSession::find(session, &project, &roots, database).await?);
            }
            let prices = project.load(Vec::new())?.config.prices;
            export(&named, &roots, *format, target.as_deref(), &prices, &redactor)
        }
        SessionsAction::Label(given) => label::label(&project, given, as_json).await,
        SessionsAction::Outcomes(wanted) => outcomes(&project, wanted, as_json).await,
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
        SessionsAction::Show { session, full, from, events, event, database } => {
            // The file that was graded is shown, so that its events have the numbers of the
            // evidence.
            let session = NamedSession::find(session, &project, &roots, database).await?;
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
            show(&session, &roots, &form, &redactor)
        }
    }
}

fn find(roots: &[PathBuf]) -> Vec<SessionFile> {
    selftest_sessions::find_session_files(roots, |problem| eprint(&format!("warning: {problem}\n")))
}

/// Maximum number of ids listed if several match.
const MAX_NAMED: usize = 5;

/// A session, and what of its file could not be used.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    session: Session,
    notes: ReadNotes,
    /// Counts over all events of the session.
    #[serde(skip)]
    overview: SessionOverview,
}

/// What a word of the command line stands for.
struct NamedSession {
    /// The word.
    name: String,
    /// The same as a path from the project folder.
    path: PathBuf,
    /// Id and file of the grade with this id.
    graded: Option<(String, PathBuf)>,
}

impl NamedSession {
    /// Looks up which file of this session was graded, if any was.
    async fn find(
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
        // A path that exists wins over an id of the same text.
        if !name.is_empty() && !named.path.exists() && is_there {
            named.graded = graded_file(name, &address, roots).await;
        }
        Ok(named)
    }

    /// Reads the sessions; of each only the events of `part`, if one is given.
    fn read(&self, roots: &[PathBuf], part: Option<&Range<u64>>) -> Result<Vec<Shown>, AppError> {
        if !self.name.is_empty() && self.path.exists() {
            return in_file(&self.name, &self.path, part);
        }
        // A graded file that no longer holds the session is passed over: a copy of it may.
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
        // An ambiguous prefix is left to `by_id`, which lists the ids.
        if found.len() == 1 { found.pop()? } else { return None }
    };
    let file = PathBuf::from(&grade.session_file);
    // The database may name a file of another `--source`, which the user did not ask for.
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
        // A file that the finder does not take, such as one without a known name, is read all the
        // same.
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
        // The overview counts all events, although only those of the part are collected.
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
            // An unreadable file may not hide the session in another one.
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
                // Only shown if no other id starts so.
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
