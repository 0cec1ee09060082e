//! `selftest sessions list`: one line for each session.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::anyhow;
use serde::Serialize;

use super::{NamedSession, Shown, find};
use crate::args::SessionArgs;
use crate::args::sessions::{moment, nothing_found};
use crate::exit::Exit;
use crate::ui::{eprint, print};
use selftest_app::AppError;
use selftest_grading::report::transcript::{TranscriptOptions, transcript};
use selftest_models::prices::ModelPrices;
use selftest_sessions::{
    Event, EventOrigin, EventRole, ReadNotes, SessionHead, SessionSink, ToolOutcome,
};
use selftest_text::escape::terminal;
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use selftest_text::wording::plural;

/// Bytes of text in a column of the list.
const MAX_COLUMN: usize = 60;

/// A line of the list.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    head: SessionHead,
    file: String,
    messages: u64,
    tool_calls: u64,
    tool_errors: u64,
    request: String,
    /// Parts of its file that could not be used.
    notes: ReadNotes,
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

impl SessionSink for Counter {
    fn event(&mut self, event: Event<'_>) {
        self.messages += u64::from(!event.text.is_empty());
        self.tool_calls += event.calls.len() as u64;
        let failed =
            |result: &&selftest_sessions::ToolResult<'_>| result.outcome == ToolOutcome::Failed;
        self.tool_errors += event.results.iter().filter(failed).count() as u64;
        let is_request = event.role == EventRole::User && event.origin == EventOrigin::Human;
        if self.request.is_empty() && is_request {
            event.text.as_str().clone_into(&mut self.request);
        }
    }

    fn end(&mut self, head: SessionHead) {
        let this = std::mem::take(self);
        // These two are of the whole file, all counts of one session.
        (self.rows, self.file) = (this.rows, this.file);
        self.rows.push(Row {
            head,
            file: self.file.clone(),
            messages: this.messages,
            tool_calls: this.tool_calls,
            tool_errors: this.tool_errors,
            request: this.request,
            notes: ReadNotes::default(),
        });
    }

    fn restart(&mut self) {
        let this = std::mem::take(self);
        let Self { file, rows, .. } = this;
        *self = Self { file, rows, ..Self::default() };
    }
}

pub(super) fn list(
    roots: &[PathBuf],
    limit: usize,
    args: &SessionArgs,
    as_json: bool,
    redactor: &Redactor,
) -> Result<Exit, AppError> {
    let since = args.since.as_ref().map(|text| moment(text, selftest_clock::now())).transpose()?;
    let mut found = find(roots);
    // Files are read by date of change, newest first, because that bounds the dates inside. The
    // list itself is sorted by the sessions' own dates below.
    found.sort_by_key(|found| std::cmp::Reverse(found.modified_ns));
    let (mut rows, mut dated): (Vec<Row>, usize) = (Vec::new(), 0);
    for found in &found {
        // Undated ones come last, so they do not end the search for dated ones.
        if (limit > 0 && dated >= limit) || !found.may_contain_session_since(since) {
            break;
        }
        let file = found.source.path().display().to_string();
        let mut counter = Counter { file, ..Counter::default() };
        // What is no session is no line of the list; `grade` says why.
        let Ok(reading) = selftest_sessions::read(&found.source, &mut counter) else { continue };
        let is_asked_for = |row: &Row| {
            args.agent.as_ref().is_none_or(|agent| row.head.agent == *agent)
                && since.is_none_or(|since| row.head.start.is_some_and(|start| start >= since))
        };
        let asked_for = counter.rows.into_iter().filter(is_asked_for);
        let before = rows.len();
        rows.extend(asked_for.map(|row| Row { notes: reading.notes.clone(), ..row }));
        dated += rows[before..].iter().filter(|row| row.head.start.is_some()).count();
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.head.start));
    let undated = rows.len() - dated;
    if limit > 0 {
        rows.truncate(limit);
    }
    for row in &mut rows {
        // Redacted before it is cut, so that no half of a secret stays.
        row.request = one_line(&redactor.apply(&row.request), 4 * MAX_COLUMN);
    }
    if as_json {
        let mut json = serde_json::json!(rows);
        redactor.apply_json(&mut json);
        print(&format!("{json:#}\n"))?;
    } else if rows.is_empty() {
        nothing_found(roots);
    } else {
        print(&table(&rows))?;
        if undated > 0 {
            eprint(&format!("{} without a date, listed last\n", plural(undated as u64, "session")));
        }
    }
    warn_of_losses(&rows);
    Ok(if rows.is_empty() { Exit::NothingRan } else { Exit::Passed })
}

/// Says of which files a part is missing from the list.
fn warn_of_losses(rows: &[Row]) {
    let mut said: Vec<&str> = Vec::new();
    for row in rows {
        if let Some(lost) = row.notes.describe_losses()
            && !said.contains(&row.file.as_str())
        {
            eprint(&format!("warning: {}: {}\n", one_line(&row.file, 400), one_line(&lost, 200)));
            said.push(&row.file);
        }
    }
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
            terminal(&row.request, MAX_COLUMN),
        );
    }
    text
}

/// How a session is shown.
pub(super) struct Form {
    pub(super) printing: TranscriptOptions,
    /// The numbers of the events that are shown, where not all are.
    pub(super) part: Option<Range<u64>>,
    pub(super) as_json: bool,
    pub(super) prices: ModelPrices,
}

/// Prints the sessions that a name stands for.
pub(super) fn show(
    session: &NamedSession,
    roots: &[PathBuf],
    form: &Form,
    redactor: &Redactor,
) -> Result<Exit, AppError> {
    let shown = session.read(roots, form.part.as_ref())?;
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
        eprint(&format!("warning: {}: {}\n", one_line(&session.name, 400), one_line(&lost, 200)));
    }
    Ok(Exit::Passed)
}
