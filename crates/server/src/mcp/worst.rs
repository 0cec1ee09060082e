//! `list_worst_sessions`: the sessions that went worst, to be reviewed first.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{
    QuoteLimit, SHORT_ANSWER, ToolError, UntrustedText, clip_name, fit_within, fits_in,
};
use selftest_grading::grade::TaskOutcome;
use selftest_store::{Cursor, ResultPage, SessionQuery, SessionRow, SessionSort, Store};

/// Maximum number of sessions per result.
const MAX_LIMIT: u32 = 30;
/// Default number of sessions per result.
const DEFAULT_LIMIT: u32 = 10;
/// Maximum lengths in bytes of a text; shorter ones are used if a result is too large.
const LENGTHS: [usize; 3] = [240, 120, 60];

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
pub(super) async fn show(
    store: &Store,
    arguments: WorstArguments,
) -> Result<WorstSessions, ToolError> {
    let mut limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ToolError(format!("limit is {limit}, expected 1 to {MAX_LIMIT}")));
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
        let answer = fit_within(SHORT_ANSWER, &LENGTHS, |quoting| answer(&page, quoting));
        if limit == 1 || fits_in(&answer, SHORT_ANSWER) {
            return Ok(answer);
        }
        limit /= 2;
    }
}

fn answer(page: &ResultPage<SessionRow>, quoting: QuoteLimit) -> WorstSessions {
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
