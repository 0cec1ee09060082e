//! Skills: recording uses, reading effectiveness, and changing the active version.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::super::App;
use super::super::problem::Problem;
use super::super::skill_queue::{EnqueueError, EnqueueOutcome};
use super::input::{self, IdempotentBody, PathName, QueryParameters, REPLAYED};
use super::types::{ExecutionPage, RecordAccepted, SkillDetail, SkillPage};
use selftest_grading::improve::skill;
use selftest_grading::improve::skill::{ExecutionStatus, SkillChange, SkillVersion, WeekCount};
use selftest_service::grader::skills::{NewExecution, NewMessage, SkillChangeError};
use selftest_store::{RequestKey, SkillDayCount, SkillRecord, SkillRef, SkillRequest};

/// Maximum number of key lookups while other keys are being written.
const MAX_LOOKUPS: usize = 20;

/// Actor of API requests in the audit log.
const ACTOR: &str = "api";

/// Idempotency key of a request, which is stored for 24 hours.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only described here; `Keyed` reads it")]
struct RequestHeaders {
    /// Chosen by the client, such as a UUID. A repeated request with the same key and body returns
    /// the same response and is stored once, for 24 hours. A different body is rejected.
    #[param(rename = "Idempotency-Key", min_length = 1, max_length = 255, pattern = "^[ -~]+$")]
    idempotency_key: Option<String>,
}

/// A use of a skill.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecutionReport {
    /// Id of a version, or name of a skill.
    #[serde(alias = "skill_version_id")]
    #[schema(min_length = 1, max_length = 200)]
    skill: String,
    /// Version of the named skill; the active one by default.
    #[schema(max_length = 200)]
    version: Option<String>,
    /// Session in which the skill was used.
    #[schema(max_length = 200)]
    session_id: Option<String>,
    /// Outcome of the execution.
    execution_status: ExecutionStatus,
    /// True if the user significantly changed the result.
    #[serde(default)]
    user_edited_output: bool,
    /// True if the user's next message is known to be a thank-you.
    #[serde(default)]
    user_sent_thank_you: bool,
    /// True if the user is known to have rephrased the same request.
    #[serde(default)]
    user_repeated_request: bool,
    /// Number of turns the task took.
    #[schema(minimum = 0, maximum = 2_147_483_647)]
    #[serde(default, deserialize_with = "input::body_count")]
    conversation_turns: Option<u32>,
    /// Duration in milliseconds.
    #[schema(minimum = 0, maximum = 2_147_483_647)]
    #[serde(default, deserialize_with = "input::body_count")]
    execution_time_ms: Option<u32>,
    /// Error message.
    #[schema(max_length = 4000)]
    error_message: Option<String>,
}

/// Record a use of a skill
///
/// Returns immediately. Executions are queued in memory, and once accepted with 202 they are
/// written as soon as the database allows. While the database fails or the queue is full, the
/// response is 503. Executions of unknown skills are counted in `/metrics`.
#[utoipa::path(post, path = "/api/skills/executions", operation_id = "record_skill_execution", tag = "skills", request_body = ExecutionReport,
    params(RequestHeaders),
    responses((status = 202, body = RecordAccepted, headers(
            ("Idempotency-Replayed" = String, description = "`true` where it had been sent before"))),
        (status = 422, description = "Another body was sent under that Idempotency-Key")))]
pub(super) async fn execution(
    State(app): State<Arc<App>>,
    IdempotentBody { body, key }: IdempotentBody<ExecutionReport>,
) -> Result<Response, Problem> {
    let execution = NewExecution {
        skill: SkillRef::Named {
            skill: input::body_text("skill", body.skill, 1, 200)?,
            version: input::optional_body_text("version", body.version, 200)?,
        },
        session_id: input::optional_body_text("session_id", body.session_id, 200)?,
        execution_status: body.execution_status,
        user_edited_output: body.user_edited_output,
        user_sent_thank_you: body.user_sent_thank_you,
        user_repeated_request: body.user_repeated_request,
        conversation_turns: body.conversation_turns,
        execution_time_ms: body.execution_time_ms,
        error_message: input::optional_body_text("error_message", body.error_message, 4000)?,
    };
    enqueue_record(&app, app.skills.tracker().execution_record(execution), key).await
}

/// Queues a record to be written. Returns an error if it cannot be accepted.
async fn enqueue_record(
    app: &App,
    record: SkillRecord,
    key: Option<RequestKey>,
) -> Result<Response, Problem> {
    let busy = |detail, seconds| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(seconds)
    };
    // Another request can write keys between the lookup and the queueing. The lookup is then
    // repeated.
    for _ in 0..MAX_LOOKUPS {
        // Read before the lookup: a write in between changes it, and `enqueue` then reports a stale
        // lookup.
        let seen = app.skills.write_count();
        if let Some(key) = &key
            && let Some(written) = app.store.request_digest(key).await?
        {
            // The same key with another body is a mistake of the client, not a repetition.
            return if written == key.digest {
                Ok(accepted_response(EnqueueOutcome::Duplicate))
            } else {
                Err(key_conflict())
            };
        }
        let request = SkillRequest { record: record.clone(), key: key.clone() };
        match app.skills.enqueue(request, seen) {
            Ok(accepted) => return Ok(accepted_response(accepted)),
            Err(EnqueueError::Full) => return Err(busy("too many records wait to be written", 1)),
            Err(EnqueueError::Failing) => {
                return Err(busy("the database takes no records at present", 5));
            }
            Err(EnqueueError::KeyConflict) => return Err(key_conflict()),
            Err(EnqueueError::StaleLookup) => {}
        }
    }
    Err(busy("too many records are being written", 1))
}

fn accepted_response(accepted: EnqueueOutcome) -> Response {
    let answer = (StatusCode::ACCEPTED, Json(RecordAccepted { accepted: true }));
    match accepted {
        EnqueueOutcome::New => answer.into_response(),
        EnqueueOutcome::Duplicate => ([(REPLAYED, "true")], answer).into_response(),
    }
}

fn key_conflict() -> Problem {
    // The Idempotency-Key draft of the IETF asks for 422 here, and 409 for a request still in
    // progress.
    let detail = "another body was sent under that Idempotency-Key; take a new key";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// A message of a user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageReport {
    /// Session of the message.
    #[schema(min_length = 1, max_length = 200)]
    session_id: String,
    /// The message. Analysed but not stored.
    #[schema(max_length = 8000)]
    message: String,
    /// The user's previous message, to detect repeated requests. Not stored.
    #[schema(max_length = 8000)]
    previous: Option<String>,
    /// True if the user significantly changed the last result.
    #[serde(default)]
    user_edited_output: bool,
}

/// Record the user's next message
///
/// The first message after an execution shows if the user was grateful or repeated the request. It
/// applies to the latest execution of the session. Returns immediately.
#[utoipa::path(post, path = "/api/skills/messages", operation_id = "record_message", tag = "skills", request_body = MessageReport,
    params(RequestHeaders),
    responses((status = 202, body = RecordAccepted, headers(
            ("Idempotency-Replayed" = String, description = "`true` where it had been sent before"))),
        (status = 422, description = "Another body was sent under that Idempotency-Key")))]
pub(super) async fn message(
    State(app): State<Arc<App>>,
    IdempotentBody { body, key }: IdempotentBody<MessageReport>,
) -> Result<Response, Problem> {
    let message = NewMessage {
        session_id: input::body_text("session_id", body.session_id, 1, 200)?,
        message: input::body_text("message", body.message, 0, 8000)?,
        previous: input::optional_body_text("previous", body.previous, 8000)?,
        user_edited_output: body.user_edited_output,
    };
    enqueue_record(&app, app.skills.tracker().message_record(&message).1, key).await
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SkillListQuery {
    /// Maximum number of rows per page.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

/// List all versions of all skills by name
#[utoipa::path(get, path = "/api/skills", operation_id = "list_skills", tag = "skills", params(SkillListQuery),
    responses((status = 200, body = SkillPage)))]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    QueryParameters(asked): QueryParameters<SkillListQuery>,
) -> Result<Json<SkillPage>, Problem> {
    let limit = input::page_limit(asked.limit)?;
    let after = input::parse_cursor(asked.cursor.as_deref(), |cursor| cursor.value.is_some())?;
    let user_id = app.skills.tracker().user_id();
    let page = app.store.skills(user_id, limit, after.as_ref()).await?;
    Ok(Json(SkillPage { items: page.items, next: page.next.map(|next| next.to_string()) }))
}

/// Get a version of a skill with its effectiveness, usage and executions
#[utoipa::path(get, path = "/api/skills/{id}", operation_id = "get_skill", tag = "skills",
    params(("id" = String, Path, description = "Id of the version", max_length = 512), SkillListQuery),
    responses((status = 200, body = SkillDetail)))]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
    QueryParameters(asked): QueryParameters<SkillListQuery>,
) -> Result<Json<SkillDetail>, Problem> {
    let limit = input::page_limit(asked.limit)?;
    let after = input::parse_cursor(asked.cursor.as_deref(), |cursor| cursor.value.is_some())?;
    let skill = find_skill(&app, &id).await?;
    let tracker = app.skills.tracker();
    let days = tracker.days(today()).await?;
    let page = app.store.skill_executions(&skill.id, limit, after.as_ref()).await?;
    let audit = app.store.skill_audit(&skill.user_id, &skill.skill_name).await?.items;
    Ok(Json(SkillDetail {
        effectiveness: tracker.compute_effectiveness(&skill.id).await?,
        weeks: weeks_of(&skill, &days),
        executions: ExecutionPage {
            items: page.items,
            next: page.next.map(|next| next.to_string()),
        },
        // The history is kept by name, for all versions of a skill.
        audit: audit.into_iter().filter(|entry| entry.skill_version_id == skill.id).collect(),
        skill,
    }))
}

/// Computes the last weeks of a version from the daily counts of all versions.
pub(crate) fn weeks_of(skill: &SkillVersion, days: &[SkillDayCount]) -> Vec<WeekCount> {
    let own = days.iter().filter(|day| day.skill_version_id == skill.id);
    skill::weeks(own.map(|day| (day.day, day.executions, day.successes)), today())
}

/// Returns the current day in UTC.
pub(crate) fn today() -> Date {
    selftest_clock::now().to_zoned(TimeZone::UTC).date()
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DisableQuery {
    /// Reason for the change.
    #[param(max_length = 500)]
    reason: Option<String>,
}

/// Disable a version
#[utoipa::path(post, path = "/api/skills/{id}/disable", operation_id = "disable_skill", tag = "skills",
    params(("id" = String, Path, description = "Id of the version", max_length = 512), DisableQuery),
    responses((status = 200, body = SkillChange),
        (status = 409, description = "The version is not in the state that this needs")))]
pub(super) async fn disable(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
    QueryParameters(why): QueryParameters<DisableQuery>,
) -> Result<Json<SkillChange>, Problem> {
    let why = input::checked_text("reason", why.reason, 500)?;
    let skill = find_skill(&app, &id).await?;
    Ok(log_refresh_faults(app.skills.tracker().disable(&skill, why.as_deref(), ACTOR).await?))
}

/// Activate a version
#[utoipa::path(post, path = "/api/skills/{id}/promote", operation_id = "promote_skill", tag = "skills",
    params(("id" = String, Path, description = "Id of the version", max_length = 512)),
    responses((status = 200, body = SkillChange),
        (status = 409, description = "The version is not in the state that this needs")))]
pub(super) async fn promote(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
) -> Result<Json<SkillChange>, Problem> {
    let skill = find_skill(&app, &id).await?;
    Ok(log_refresh_faults(app.skills.tracker().promote(&skill, ACTOR).await?))
}

/// Deactivate the active version and activate the previous one
#[utoipa::path(post, path = "/api/skills/{id}/rollback", operation_id = "roll_back_skill", tag = "skills",
    params(("id" = String, Path, description = "Id of the version in use", max_length = 512)),
    responses((status = 200, body = SkillChange),
        (status = 409, description = "The version is not in the state that this needs")))]
pub(super) async fn rollback(
    State(app): State<Arc<App>>,
    PathName(id): PathName,
) -> Result<Json<SkillChange>, Problem> {
    let skill = find_skill(&app, &id).await?;
    Ok(log_refresh_faults(app.skills.tracker().rollback(&skill, ACTOR).await?))
}

/// Returns a change after logging any errors of the refresh hook.
fn log_refresh_faults(change: SkillChange) -> Json<SkillChange> {
    for fault in &change.refresh_faults {
        tracing::warn!("a skill has changed, but {fault}");
    }
    Json(change)
}

async fn find_skill(app: &App, id: &str) -> Result<SkillVersion, Problem> {
    Ok(app.skills.tracker().find_by_id(id).await?)
}

impl From<SkillChangeError> for Problem {
    fn from(error: SkillChangeError) -> Self {
        let status = match error {
            SkillChangeError::Store(error) => return error.into(),
            SkillChangeError::Unknown(_) => {
                return Problem::not_found(
                    "there is no skill with that id; ids are listed at /api/skills",
                );
            }
            SkillChangeError::Name(_) => StatusCode::BAD_REQUEST,
            SkillChangeError::Taken(_)
            | SkillChangeError::Active(_)
            | SkillChangeError::Inactive(_)
            | SkillChangeError::NothingBefore(_) => StatusCode::CONFLICT,
        };
        Problem::new(status, error.to_string())
    }
}
