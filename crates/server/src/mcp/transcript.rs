//! `read_session`: the contents of one session, a few events at a time.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{
    QuoteLimit, SHORT_ANSWER, ToolError, UntrustedText, clip_name, fit_within, fits_in,
    truncation_remarks,
};
use super::session::SessionMatch;
use selftest_grading::report::session::format_usage;
use selftest_models::prices::ModelPrices;
use selftest_service::transcripts::{TranscriptPart, TranscriptReader};
use selftest_text::wording::plural;

/// Maximum number of events per result.
const MAX_EVENTS: u64 = 50;
/// Default number of events per result.
const DEFAULT_EVENTS: u64 = 20;
/// Maximum number of calls and of results per event.
const MAX_PARTS: usize = 8;
/// Maximum lengths in bytes of a text; shorter ones are used if a result is too large.
const LENGTHS: [usize; 5] = [3000, 1000, 400, 160, 60];

/// Arguments of `read_session`.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TranscriptArguments {
    /// Session id, or an unambiguous prefix of it.
    #[schemars(length(min = 1, max = 512))]
    pub(super) session_id: String,
    /// Number of the first event. Default: 0. Evidence, errors and search hits refer to these
    /// numbers.
    from: Option<u64>,
    /// Maximum number of events. Default: 20. A single event is shown at greater length.
    #[schemars(range(min = 1, max = 50))]
    events: Option<u64>,
}

/// Some events of a session.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TranscriptAnswer {
    /// Session id.
    session_id: String,
    /// Agent that recorded the session.
    agent: String,
    /// Number of events in the session, numbered from 0.
    events_in_all: u64,
    /// Cost, or why it is unknown.
    cost: String,
    /// The events, in order.
    events: Vec<EventAnswer>,
    /// Value of `from` for the next events; null if there are no more.
    next_from: Option<u64>,
    /// Omitted parts.
    remarks: Vec<String>,
}

/// One event.
#[derive(Debug, Serialize, JsonSchema)]
struct EventAnswer {
    /// Number of the event.
    event: u64,
    /// `user`, `assistant`, `system` or `tool`, and the author.
    role: String,
    /// Time of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    time: Option<Timestamp>,
    /// The message.
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<UntrustedText>,
    /// The model's reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<UntrustedText>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<CallAnswer>,
    /// Tool results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<ResultAnswer>,
    /// Tokens, model and cost of a model call, as far as the file contains them.
    #[serde(skip_serializing_if = "Option::is_none")]
    spent: Option<String>,
}

/// A tool call.
#[derive(Debug, Serialize, JsonSchema)]
struct CallAnswer {
    /// The tool.
    tool: String,
    /// Its arguments.
    arguments: Option<UntrustedText>,
}

/// A tool result.
#[derive(Debug, Serialize, JsonSchema)]
struct ResultAnswer {
    /// The tool.
    tool: String,
    /// `ok`, `failed`, `rejected`, `pending` or `unknown`.
    outcome: String,
    /// Its output.
    output: Option<UntrustedText>,
}

/// Runs the tool.
pub(super) async fn show(
    transcripts: &TranscriptReader,
    session: &SessionMatch,
    arguments: &TranscriptArguments,
) -> Result<TranscriptAnswer, ToolError> {
    let mut count = arguments.events.unwrap_or(DEFAULT_EVENTS);
    if !(1..=MAX_EVENTS).contains(&count) {
        return Err(ToolError(format!("events is {count}, expected 1 to {MAX_EVENTS}")));
    }
    // Grades by models alone name no file.
    let Some(file) = session.file() else {
        return Err(ToolError(
            "the file of this session is not known: run `selftest grade latest` in the project, \
             which reads new sessions"
                .to_owned(),
        ));
    };
    let from = arguments.from.unwrap_or_default();
    // An agent may name any number, even the largest there is.
    let wanted = from..from.saturating_add(count);
    let part = transcripts.part(&session.session_id, file, wanted).await;
    let part = part.map_err(|error| {
        ToolError(format!("{error}; its grade is kept: call get_session_grade"))
    })?;
    if from >= part.overview.events {
        let events = plural(part.overview.events, "event");
        return Err(ToolError(format!("from is {from}, and the session has {events}")));
    }
    loop {
        let shown = usize::try_from(count).unwrap_or(usize::MAX);
        let answer = fit_within(SHORT_ANSWER, &LENGTHS, |quoting| {
            answer(&session.session_id, transcripts.prices(), &part, shown, quoting)
        });
        // Shows fewer events instead of truncating the list, so that the next page continues after
        // the last one shown.
        if count == 1 || fits_in(&answer, SHORT_ANSWER) {
            return Ok(answer);
        }
        count /= 2;
    }
}

fn answer(
    id: &str,
    prices: &ModelPrices,
    part: &TranscriptPart,
    count: usize,
    quoting: QuoteLimit,
) -> TranscriptAnswer {
    let mut remarks = Vec::new();
    let events = part.events.iter().take(count).map(|event| {
        remarks.extend(truncation_remarks([
            (event.calls.len(), MAX_PARTS, "calls of an event"),
            (event.results.len(), MAX_PARTS, "results of an event"),
        ]));
        // Serialised, so that roles and outcomes have the names of the JSON API.
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let (role, origin) = (serde_json::json!(event.role), serde_json::json!(event.origin));
        EventAnswer {
            event: event.number,
            role: format!("{}, written by {}", word(role), word(origin)),
            time: event.time,
            said: quoting.quote_optional(Some(&event.text)),
            thought: quoting.quote_optional(Some(&event.reasoning)),
            calls: event
                .calls
                .iter()
                .take(MAX_PARTS)
                .map(|call| CallAnswer {
                    tool: clip_name(&call.name),
                    arguments: quoting.quote_optional(Some(&call.arguments)),
                })
                .collect(),
            results: event
                .results
                .iter()
                .take(MAX_PARTS)
                .map(|result| ResultAnswer {
                    tool: clip_name(&result.tool),
                    outcome: word(serde_json::json!(result.outcome)),
                    // Of a failed call, the error says more than the output before it, and space is
                    // scarce.
                    output: quoting.quote_optional(Some(if result.error.is_empty() {
                        result.text.as_str()
                    } else {
                        result.error.as_str()
                    })),
                })
                .collect(),
            spent: format_usage(event, prices).map(|words| clip_name(&words)),
        }
    });
    let events: Vec<EventAnswer> = events.collect();
    let next = events.last().map_or(0, |event| event.event + 1);
    remarks.extend(
        part.notes.describe_losses().map(|lost| format!("lost of the file: {}", clip_name(&lost))),
    );
    // Every event may add two remarks, which must not outweigh the events.
    remarks.truncate(MAX_PARTS);
    TranscriptAnswer {
        session_id: clip_name(id),
        agent: clip_name(&part.head.agent),
        events_in_all: part.overview.events,
        cost: part.cost.words(),
        events,
        next_from: (next < part.overview.events).then_some(next),
        remarks,
    }
}
