//! `search_sessions`: full-text search in recorded sessions.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{
    QuoteLimit, SHORT_ANSWER, ToolError, UntrustedText, clip_name, fit_within, fits_in,
};
use selftest_grading::grade::TaskOutcome;
use selftest_service::search::{SearchError, SearchRequest, SearchResults, parse_time};
use selftest_store::Store;
use selftest_text::wording::plural;

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
