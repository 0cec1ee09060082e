//! `selftest sessions`: finds recorded sessions, lists, prints, searches and exports them, and says
//! what cannot be read.

mod doctor;
mod export;
mod label;
mod list;
mod named;
mod outcomes;
mod search;

use crate::args::run::share;
use std::ops::Range;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use doctor::doctor;
use export::export;
use list::{Form, list, show};
use named::NamedSession;
use outcomes::{OutcomesArgs, outcomes};
use search::{Asked, search};
use selftest_app::AppError;
use selftest_grading::report::transcript::TranscriptOptions;
use selftest_service::search::SearchRequest;
use selftest_sessions::SessionFile;
use selftest_text::redact::Redactor;

use crate::args::sessions::{homes, roots};
use crate::args::{DatabaseArgs, GlobalArgs, SessionArgs};
use crate::exit::Exit;
use crate::ui::{self, eprint};

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
