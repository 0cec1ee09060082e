//! Tools that find sessions: `search_sessions`, full-text search in what was recorded, and
//! `list_worst_sessions`, the sessions that went worst, to be reviewed first.

use jiff::Timestamp;
use schemars::JsonSchema;
use selftest_grading::grade::TaskOutcome;
use selftest_service::search::{SearchError, SearchRequest, SearchResults, parse_time};
use selftest_store::{Cursor, ResultPage, SessionQuery, SessionRow, SessionSort, Store};
use selftest_text::wording::plural;
use serde::{Deserialize, Serialize};

use super::answer::{
    QuoteLimit, SHORT_ANSWER, ToolError, UntrustedText, clip_name, fit_within, fits_in,
};

/// Maximum number of sessions per result.
const MAX_LIMIT: u32 = 20;
/// Default number of sessions per result.
const DEFAULT_LIMIT: u32 = 8;
/// Maximum lengths in bytes of a text; shorter ones are used if a result is too large.
const LENGTHS: [usize; 3] = [240, 120, 60];
/// Maximum length in bytes of an argument.
const MAX_ARGUMENT: usize = 500;

/// Arguments of `search_sessions`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArguments {
    /// Words that must occur in one event, "phrases" in quotation marks, prefixes*.
    #[schemars(length(min = 1, max = 500))]
    words: String,
    /// Only sessions of this agent, such as claude-code.
    agent: Option<String>,
    /// Only sessions in this folder; its last component is enough.
    project: Option<String>,
    /// Only sessions in which this model replied.
    model: Option<String>,
    /// Only events of this tool, such as Bash.
    tool: Option<String>,
    /// Only events with a failed tool call.
    errors: Option<bool>,
    /// Only sessions that started at or after this time or day, such as 2026-11-01.
    since: Option<String>,
    /// Only sessions that started before this time or day.
    until: Option<String>,
    /// Maximum number of sessions. Default: 8.
    #[schemars(range(min = 1, max = 20))]
    limit: Option<u32>,
    /// `next_cursor` of the previous result, to continue after it.
    cursor: Option<String>,
}

/// Sessions with hits, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SearchAnswer {
    /// The sessions.
    sessions: Vec<SessionHits>,
    /// Value of `cursor` for the next page; null on the last one.
    next_cursor: Option<String>,
    /// Advice, and files that could not be searched.
    remarks: Vec<String>,
}

/// A session with hits.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionHits {
    /// Session id.
    session_id: String,
    /// Start of the first request.
    request: Option<UntrustedText>,
    /// The agent.
    agent: Option<String>,
    /// Time of the session.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    counts_at: Option<Timestamp>,
    /// `checks_passed`, `contradicted`, `claimed` or `unknown`.
    outcome: Option<&'static str>,
    /// First events with hits; use `read_session` to read them.
    hits: Vec<EventHit>,
    /// True if more of its events have hits.
    has_more: bool,
}

/// An event with a hit.
#[derive(Debug, Serialize, JsonSchema)]
struct EventHit {
    /// Number of the event in the session.
    event: u64,
    /// Text around the first hit; hits are marked with « and ».
    snippet: UntrustedText,
}

/// Runs the tool.
pub(super) async fn show(
    store: &Store,
    arguments: SearchArguments,
) -> Result<SearchAnswer, ToolError> {
    let mut limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ToolError(format!("limit is {limit}, expected 1 to {MAX_LIMIT}")));
    }
    let given = [&arguments.agent, &arguments.project, &arguments.model, &arguments.tool];
    // The lengths in the schema are only advice: clients need not check them.
    let longest = given.into_iter().flatten().chain([&arguments.words]).map(String::len).max();
    if longest > Some(MAX_ARGUMENT) {
        return Err(ToolError(format!("an argument is longer than {MAX_ARGUMENT} bytes")));
    }
    let time = |name: &str, text: Option<&String>| match text.map(|text| parse_time(text)) {
        Some(None) => Err(ToolError(format!("{name}: expected a time or a day, 2026-11-01"))),
        read => Ok(read.flatten()),
    };
    let mut request = SearchRequest {
        since: time("since", arguments.since.as_ref())?,
        until: time("until", arguments.until.as_ref())?,
        words: arguments.words,
        agent: arguments.agent,
        project: arguments.project,
        model: arguments.model,
        tool: arguments.tool,
        errors: arguments.errors.unwrap_or_default(),
        limit,
        cursor: arguments.cursor,
    };
    loop {
        request.limit = limit;
        let found = request.run(store).await.map_err(|fault| match fault {
            SearchError::Store(error) => ToolError::from(error),
            SearchError::NoWords => ToolError(format!("words: {fault}")),
            SearchError::Cursor => ToolError(format!("cursor: {fault}")),
        })?;
        let answer = fit_within(SHORT_ANSWER, &LENGTHS, |quoting| answer(&found, quoting));
        if limit == 1 || fits_in(&answer, SHORT_ANSWER) {
            return Ok(answer);
        }
        // Searched again with fewer, so that the cursor continues after the last session shown.
        limit /= 2;
    }
}

fn answer(found: &SearchResults, quoting: QuoteLimit) -> SearchAnswer {
    let sessions = found.items.iter().map(|one| SessionHits {
        session_id: clip_name(&one.session.session_id),
        request: quoting.quote_optional(one.session.task_summary.as_deref()),
        agent: one.session.agent.as_deref().map(clip_name),
        counts_at: one.session.counts_at,
        outcome: one.session.outcome.map(TaskOutcome::name),
        hits: one
            .hits
            .iter()
            .map(|hit| EventHit {
                event: hit.event, snippet: quoting.quote(&hit.marked("«", "»"))
            })
            .collect(),
        has_more: one.has_more,
    });
    let mut remarks = Vec::new();
    if found.items.is_empty() {
        remarks.push("nothing was found: try fewer words, or beginnings such as login*".to_owned());
    }
    if found.files_not_indexed > 0 {
        let files = plural(found.files_not_indexed, "file");
        remarks.push(format!(
            "{files} with graded sessions cannot be searched yet: a running `selftest serve` \
             indexes them, and so does `selftest sessions search WORDS`"
        ));
    }
    SearchAnswer { sessions: sessions.collect(), next_cursor: found.next.clone(), remarks }
}

/// Maximum number of sessions per result.
const MAX_WORST: u32 = 30;
/// Default number of sessions per result.
const DEFAULT_WORST: u32 = 10;
/// Maximum lengths in bytes of a text; shorter ones are used if a result is too large.
const WORST_LENGTHS: [usize; 3] = [240, 120, 60];

/// Arguments of `list_worst_sessions`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorstArguments {
    /// Only sessions of this agent, such as claude-code.
    #[schemars(length(max = 200))]
    agent: Option<String>,
    /// Maximum number of sessions. Default: 10.
    #[schemars(range(min = 1, max = 30))]
    limit: Option<u32>,
    /// `next_cursor` of the previous result, to continue after it.
    cursor: Option<String>,
}

/// Sessions, the worst first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WorstSessions {
    /// Contradicted tasks, then unknown, claimed ones and those whose checks passed, each sorted by number of
    /// errors. Sessions that are not a person's task come last.
    sessions: Vec<WorstSession>,
    /// Value of `cursor` for the next page; null on the last one.
    next_cursor: Option<String>,
    /// Advice if nothing was found.
    remarks: Vec<String>,
}

/// Summary of a session.
#[derive(Debug, Serialize, JsonSchema)]
struct WorstSession {
    /// Session id, for `get_session_grade` and `read_session`.
    session_id: String,
    /// Start of the first request.
    request: Option<UntrustedText>,
    /// `checks_passed`, `contradicted`, `claimed` or `unknown`.
    outcome: Option<&'static str>,
    /// `task` for a person's task; `subagent`, `warm_up` and `automatic` for others.
    kind: &'static str,
    /// Number of tool errors.
    errors: u64,
    /// Average overall score of the models, 0 to 1; null without a grade by a model.
    overall: Option<f64>,
    /// The agent.
    agent: Option<String>,
    /// Time of the session.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    counts_at: Option<Timestamp>,
}

/// Runs the tool.
pub(super) async fn show_worst(
    store: &Store,
    arguments: WorstArguments,
) -> Result<WorstSessions, ToolError> {
    let mut limit = arguments.limit.unwrap_or(DEFAULT_WORST);
    if !(1..=MAX_WORST).contains(&limit) {
        return Err(ToolError(format!("limit is {limit}, expected 1 to {MAX_WORST}")));
    }
    let (sort, descending) = (SessionSort::Worst, true);
    let cursor = arguments.cursor.as_deref().map(str::parse::<Cursor>).transpose().ok();
    let after = cursor
        .filter(|cursor| cursor.as_ref().is_none_or(|cursor| sort.fits(descending, cursor)))
        .ok_or_else(|| {
            ToolError("cursor: expected `next_cursor` of an answer before".to_owned())
        })?;
    loop {
        let query = SessionQuery {
            sort,
            descending,
            agent: arguments.agent.clone(),
            limit,
            after: after.clone(),
            ..SessionQuery::default()
        };
        let page = store.sessions(&query).await?;
        let answer =
            fit_within(SHORT_ANSWER, &WORST_LENGTHS, |quoting| answer_worst(&page, quoting));
        if limit == 1 || fits_in(&answer, SHORT_ANSWER) {
            return Ok(answer);
        }
        // Read again with fewer, so that the cursor continues after the last session shown.
        limit /= 2;
    }
}

fn answer_worst(page: &ResultPage<SessionRow>, quoting: QuoteLimit) -> WorstSessions {
    let sessions = page.items.iter().map(|row| WorstSession {
        session_id: clip_name(&row.session_id),
        request: quoting.quote_optional(row.task_summary.as_deref()),
        outcome: row.outcome.map(TaskOutcome::name),
        kind: row.session_kind.name(),
        errors: row.total_errors,
        overall: row.quality,
        agent: row.agent.as_deref().map(clip_name),
        counts_at: row.counts_at,
    });
    let nothing = "no session: run `selftest grade latest` in the project, which grades new ones";
    let remarks = if page.items.is_empty() { vec![nothing.to_owned()] } else { Vec::new() };
    let next_cursor = page.next.as_ref().map(ToString::to_string);
    WorstSessions { sessions: sessions.collect(), next_cursor, remarks }
}
