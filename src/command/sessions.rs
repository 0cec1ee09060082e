//! `selftest sessions`: finds recorded sessions, lists them, prints one.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use jiff::Timestamp;
use serde::Serialize;

use super::context::Project;
use super::failure::Failure;
use super::{eprint, print, since};
use crate::cli::{GlobalArgs, SessionArgs, SessionsAction};
use crate::exit::Exit;
use crate::redact::Redactor;
use crate::report::escape::terminal;
use crate::report::transcript::transcript;
use crate::session::{self, Collector, Event, Found, Head, Outcome, Role, Sink, Source};
use crate::text::one_line;

/// Bytes of text in a column of the list.
const COLUMN: usize = 60;

pub(super) fn execute(
    action: &SessionsAction,
    args: &SessionArgs,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let roots = roots(&project, args)?;
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    match action {
        SessionsAction::List { limit } => list(&roots, *limit, args, &redactor),
        SessionsAction::Show { session, full } => {
            show(session, &roots, *full, args, &redactor, &project)
        }
    }
}

/// Where sessions are looked for: the flags, else the configuration, else the agents' homes.
/// Paths of the command line count from the project folder, as all others do.
pub(super) fn roots(project: &Project, args: &SessionArgs) -> Result<Vec<PathBuf>, Failure> {
    if !args.sources.is_empty() {
        for source in &args.sources {
            let path = project.path(source);
            path.symlink_metadata().map_err(|error| {
                let shown = source.display();
                Failure::usage(anyhow!("--source {shown}: {error}"))
            })?;
        }
        return Ok(args.sources.iter().map(|source| project.path(source)).collect());
    }
    let configured = project.load(Vec::new())?.config.grade.sources;
    if !configured.is_empty() {
        return Ok(configured.iter().map(|source| project.path(source)).collect());
    }
    let variables = &project.environment.variables;
    let variable = |name: &str| variables.get(name).map(Into::into);
    let home = variables.get("HOME").map(PathBuf::from);
    let homes = session::homes(variable, home.as_deref()).into_iter().map(|home| home.path);
    // Hardly anybody uses all agents.
    Ok(homes.filter(|path| path.exists()).collect())
}

fn find(roots: &[PathBuf]) -> Vec<Found> {
    session::find(roots, |problem| eprint(&format!("warning: {problem}\n")))
}

/// A line of the list.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    head: Head,
    file: String,
    messages: u64,
    tool_calls: u64,
    tool_errors: u64,
    request: String,
}

/// Counts the sessions of one source.
#[derive(Default)]
struct Counter {
    messages: u64,
    tool_calls: u64,
    tool_errors: u64,
    request: String,
    file: String,
    rows: Vec<Row>,
}

impl Sink for Counter {
    fn event(&mut self, event: Event<'_>) {
        self.messages += u64::from(!event.text.is_empty());
        self.tool_calls += event.calls.len() as u64;
        let failed = |result: &&session::ToolResult<'_>| result.outcome == Outcome::Failed;
        self.tool_errors += event.results.iter().filter(failed).count() as u64;
        if self.request.is_empty() && event.role == Role::User {
            event.text.as_str().clone_into(&mut self.request);
        }
    }

    fn end(&mut self, head: Head) {
        let this = std::mem::take(self);
        self.rows = this.rows;
        self.file = this.file;
        self.rows.push(Row {
            head,
            file: self.file.clone(),
            messages: this.messages,
            tool_calls: this.tool_calls,
            tool_errors: this.tool_errors,
            request: this.request,
        });
    }

    fn restart(&mut self) {
        let (file, rows) = (std::mem::take(&mut self.file), std::mem::take(&mut self.rows));
        *self = Self { file, rows, ..Self::default() };
    }
}

fn list(
    roots: &[PathBuf],
    limit: usize,
    args: &SessionArgs,
    redactor: &Redactor,
) -> Result<Exit, Failure> {
    let since =
        args.since.as_ref().map(|text| since::moment(text, Timestamp::now())).transpose()?;
    let mut found = find(roots);
    found.sort_by_key(|found| std::cmp::Reverse(found.modified_ns));
    let mut rows: Vec<Row> = Vec::new();
    for Found { source, modified_ns, .. } in &found {
        if limit > 0 && rows.len() >= limit {
            break;
        }
        if since.is_some_and(|since| i128::from(*modified_ns) < since.as_nanosecond()) {
            break;
        }
        let file = source.path().display().to_string();
        let mut counter = Counter { file, ..Counter::default() };
        // What is no session is no line of the list; `grade` says why.
        if session::read(source, &mut counter).is_err() {
            continue;
        }
        let is_asked_for =
            |row: &Row| args.agent.as_ref().is_none_or(|agent| row.head.agent == *agent);
        rows.extend(counter.rows.into_iter().filter(is_asked_for));
    }
    for row in &mut rows {
        row.request = one_line(&redactor.apply(&row.request), 4 * COLUMN);
    }
    if limit > 0 {
        rows.truncate(limit);
    }
    if args.json {
        print(&format!("{:#}\n", serde_json::json!(rows)))?;
    } else if rows.is_empty() {
        nothing_found(roots);
    } else {
        print(&table(&rows))?;
    }
    Ok(if rows.is_empty() { Exit::NothingRan } else { Exit::Passed })
}

/// Says where nothing was found.
pub(super) fn nothing_found(roots: &[PathBuf]) {
    let mut text = match roots {
        [] => "none of the known agents keeps sessions here\n".to_owned(),
        _ => "no recorded session was found in\n".to_owned(),
    };
    for root in roots {
        text += &format!("  {}\n", root.display());
    }
    text += "hint: name a file or folder with --source, or grade.sources in the configuration\n";
    eprint(&text);
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<20} {:<14} {:>5} {:>5} {:>6}  {:<38} {}\n",
        "START", "AGENT", "MSGS", "CALLS", "ERRORS", "SESSION", "REQUEST"
    );
    for row in rows {
        let start = row.head.start.map(|time| time.strftime("%Y-%m-%d %H:%M").to_string());
        text += &format!(
            "{:<20} {:<14} {:>5} {:>5} {:>6}  {:<38} {}\n",
            start.as_deref().unwrap_or("-"),
            terminal(&row.head.agent, 14),
            row.messages,
            row.tool_calls,
            row.tool_errors,
            terminal(&row.head.id, 200),
            terminal(&row.request, COLUMN),
        );
    }
    text
}

fn show(
    session: &str,
    roots: &[PathBuf],
    full: bool,
    args: &SessionArgs,
    redactor: &Redactor,
    project: &Project,
) -> Result<Exit, Failure> {
    let path = project.path(Path::new(session));
    let sessions = if path.exists() {
        let found = find(std::slice::from_ref(&path));
        let source = found.into_iter().next().map_or(Source::file(path), |found| found.source);
        let mut collector = Collector::default();
        session::read(&source, &mut collector)
            .map_err(|error| Failure::usage(anyhow!("{session}: {error}")))?;
        collector.into_sessions()
    } else {
        by_id(session, roots)?
    };
    if args.json {
        // Redacted as text: a secret may stand in any field.
        let json = format!("{:#}\n", serde_json::json!(sessions));
        print(&redactor.apply(&json))?;
    } else {
        let texts = sessions.iter().map(|session| transcript(session, redactor, full));
        print(&texts.collect::<Vec<_>>().join("\n\n"))?;
    }
    Ok(Exit::Passed)
}

/// The sessions whose id begins so. Files that carry the id in their name are read first, and
/// nearly all agents name their files so.
fn by_id(id: &str, roots: &[PathBuf]) -> Result<Vec<session::Session>, Failure> {
    let mut found = find(roots);
    found.sort_by_key(|found| !found.source.path().to_string_lossy().contains(id));
    for Found { source, .. } in found {
        let mut collector = Collector::default();
        if session::read(&source, &mut collector).is_err() {
            continue;
        }
        let sessions = collector.into_sessions();
        let matches: Vec<_> =
            sessions.into_iter().filter(|session| session.head.id.starts_with(id)).collect();
        if !matches.is_empty() {
            return Ok(matches);
        }
    }
    let shown = one_line(id, 80);
    Err(Failure::usage(anyhow!(
        "no recorded session has the id {shown:?}, and no file has that name"
    ))
    .hint(Some("`selftest sessions list` shows the ids")))
}
