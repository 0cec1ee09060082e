//! The `http` adapter: a task API with calls to submit, poll and reply, or an API that answers each
//! turn in one call (`ask`).
//!
//! **Detecting the answer to a reply.** A server may show the old `AWAITING_RESPONSE` for a moment
//! after it accepted a reply. A terminal status counts as the new answer if the status or the
//! output differs from before the reply, or if a running status was seen since. An identical
//! question is accepted only after [`GRACE`] has passed.
//!
//! Requests that may be repeated are sent again within the time limit of the case, see `client`. The
//! limit itself is up to the caller.

mod client;
mod stream;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::answer::{SeenAnswer, reports_error};
use super::skill::Skill;
use super::sut_settings::{HttpCall, HttpSettings};
use super::{
    Isolation, SkillDelivery, SutError, SutEvidence, SutReply, SutSession, SutTask, SystemUnderTest,
};
use crate::sut::answer;
use client::{
    HttpAnswer, REQUEST_LIMIT, RequestBlame, RequestError, RequestFailure, RequestRole, TURN_LIMIT,
    TaskClient,
};
use selftest_checks::scenario::TaskStatus;
use selftest_models::guarded;
use selftest_text::normal::TextChange;
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use selftest_text::wording::{json_members, plural};
use stream::EventStream;

/// Time for which an unchanged question after a reply is assumed to be stale.
pub const GRACE: Duration = Duration::from_secs(5);

/// Time for repeated requests if the caller has no limit.
const RETRY_LIMIT: Duration = Duration::from_secs(30);

/// Timeout for cancelling a task.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// Maximum length of a quoted response, in bytes.
const MAX_QUOTE: usize = 160;

/// Maximum length of a task id in bytes.
const MAX_ID: usize = 256;

/// A server under test.
pub struct HttpSut {
    shared: Arc<HttpContext>,
    skill: Option<Arc<Skill>>,
}

struct HttpContext {
    settings: HttpSettings,
    client: TaskClient,
    redactor: Arc<Redactor>,
}

impl HttpSut {
    /// Creates an adapter for the server at the configured address; `token` is sent as a bearer
    /// token.
    ///
    /// # Errors
    /// Fails if the address is not an HTTP address or the client cannot be built.
    pub fn new(
        settings: HttpSettings,
        token: Option<SecretString>,
        redactor: Arc<Redactor>,
    ) -> Result<Self, SutError> {
        let client = TaskClient::new(&settings.base_url, token)?;
        Ok(Self { shared: Arc::new(HttpContext { settings, client, redactor }), skill: None })
    }
}

impl SystemUnderTest for HttpSut {
    fn describe(&self) -> String {
        format!("http {}", self.shared.redactor.apply(self.shared.client.base()))
    }

    fn isolation(&self) -> Isolation {
        Isolation {
            enforced: vec![
                "is given ids of the selftest namespace and tasks of type READ_INFO only"
                    .to_owned(),
            ],
            not_enforced: vec![
                "the server is started by others: its files, network, environment and processes \
                 are not limited"
                    .to_owned(),
            ],
        }
    }

    fn can_reach_project(&self) -> bool {
        self.shared.client.is_local()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        async {
            // Any response is sufficient: the server need not serve its root.
            let Err(error) = self.shared.client.reach().await else {
                return Ok(());
            };
            Err(SutError::NotStarted {
                what: self.shared.redactor.apply(&error.what).into_owned(),
                hint: Some(
                    "start the server, or correct sut.http.base_url in the config".to_owned(),
                ),
            })
        }
        .boxed()
    }

    fn check_model(&self) -> BoxFuture<'_, Result<(), SutError>> {
        async {
            let reached = self.shared.client.reach().await;
            let what = |error: RequestError| self.shared.redactor.apply(&error.what).into_owned();
            reached.map_err(|error| SutError::Lost { what: what(error) })
        }
        .boxed()
    }

    fn with_skill(&self, skill: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        let HttpSettings { ask, submit, .. } = &self.shared.settings;
        let (key, call) = ask.as_ref().map_or(("submit", submit), |ask| ("ask", ask));
        if !call.mentions("{skill}") {
            return Err(SutError::NotStarted {
                what: format!(
                    "sut.http.{key} has no {{skill}}: the skill would not reach the server"
                ),
                hint: Some(format!(
                    "add `skill: \"{{skill}}\"` to sut.http.{key}.body; without a skill it is empty"
                )),
            });
        }
        Ok(Arc::new(Self { shared: Arc::clone(&self.shared), skill: Some(skill) }))
    }

    fn open<'a>(
        &'a self,
        task: &'a SutTask,
    ) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        let session = HttpSession {
            shared: Arc::clone(&self.shared),
            skill: self.skill.clone(),
            task: task.clone(),
            task_id: None,
            shown: None,
            messages: Vec::new(),
            is_known: false,
            repeated: Vec::new(),
        };
        async move { Ok(Box::new(session) as Box<dyn SutSession>) }.boxed()
    }
}

struct HttpSession {
    shared: Arc<HttpContext>,
    skill: Option<Arc<Skill>>,
    task: SutTask,
    task_id: Option<String>,
    /// The last terminal status and output.
    shown: Option<(TaskStatus, SeenAnswer)>,
    /// Turns of the conversation with an API of one call, each with `role` and `content`.
    messages: Vec<Value>,
    /// True if the server has shown a status of the task.
    is_known: bool,
    /// The failures after which a request was sent again.
    repeated: Vec<String>,
}

/// The state shown by a poll.
enum PollState {
    Running,
    Terminal(TaskStatus, SeenAnswer),
}

impl HttpSession {
    async fn send(&self, call: &HttpCall, said: (&str, &str)) -> Result<HttpAnswer, RequestError> {
        let mut values = vec![
            ("session_id", self.task.session_id.as_str()),
            ("task_group_id", self.task.task_group_id.as_str()),
            ("task_type", self.task.task_type.as_str()),
            ("skill", self.skill.as_ref().map_or("", |skill| &skill.text)),
            said,
        ];
        values.extend(self.task_id.as_deref().map(|id| ("task_id", id)));
        let is_turn = self.shared.settings.ask.is_some();
        let limit = if is_turn { TURN_LIMIT } else { REQUEST_LIMIT };
        self.shared.client.send(call, &values, &self.messages, limit).await
    }

    fn role(&self, call: &HttpCall) -> RequestRole {
        // A POST that is sent twice may start a second task.
        let is_idempotent = matches!(call.method.as_str(), "GET" | "PUT" | "DELETE");
        RequestRole { is_idempotent, is_known: self.is_known }
    }

    /// Sends a call, and again after a failure that may pass, as long as the case has time.
    async fn call(&mut self, call: &HttpCall, said: (&str, &str)) -> Result<HttpAnswer, SutError> {
        let role = self.role(call);
        let started = Instant::now();
        let mut failed = 0;
        loop {
            let error = match self.send(call, said).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !error.failure.may_repeat(role) {
                return Err(self.failed(&error, role));
            }
            let spent = started.elapsed();
            let limit = RETRY_LIMIT.saturating_sub(spent);
            let left = guarded::time_left().unwrap_or(limit);
            let asked = error.retry_after;
            let Some(pause) = client::pause(error.failure, asked, failed, spent, left) else {
                let times = match (asked, failed) {
                    (Some(asked), _) if asked >= left => format!(
                        "; it asks to wait {} s, and the case has {:.0} s left",
                        asked.as_secs_f64(),
                        left.as_secs_f64()
                    ),
                    (_, 0) => String::new(),
                    _ => format!("; asked {} times in {:.0} s", failed + 1, spent.as_secs_f64()),
                };
                let what = format!("{}{times}", error.what);
                return Err(self.failed(&RequestError { what, ..error }, role));
            };
            failed += 1;
            self.repeated.push(match error.failure {
                RequestFailure::Status(status) => status.to_string(),
                RequestFailure::NoConnection => "no connection".to_owned(),
                _ => "a broken connection".to_owned(),
            });
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns the error of the session for a request that is not sent again.
    fn failed(&self, error: &RequestError, role: RequestRole) -> SutError {
        let mut what = self.shared.redactor.apply(&error.what).into_owned();
        if error.failure == RequestFailure::Status(409) {
            what.push_str(" (409: the task is not waiting for a reply)");
        }
        let blame = error.failure.blame(role);
        if blame != RequestBlame::System
            && let Some(hint) = error.failure.hint()
        {
            what += &format!("; hint: {hint}");
        }
        match blame {
            RequestBlame::System => SutError::failed(what),
            RequestBlame::Infrastructure => SutError::Unavailable { what },
            RequestBlame::Outage => SutError::Lost { what },
        }
    }

    /// Parses a response.
    fn json(
        &self,
        call: &HttpCall,
        answer: &HttpAnswer,
    ) -> Result<(Value, Vec<TextChange>), SutError> {
        answer.json().map_err(|error| self.failed(&error, self.role(call)))
    }

    async fn submit_task(&mut self, prompt: &str) -> Result<SutReply, SutError> {
        let shared = Arc::clone(&self.shared);
        let settings = &shared.settings;
        if let Some(ask) = &settings.ask {
            return self.take_turn(ask, prompt).await;
        }
        let answer = self.call(&settings.submit, ("prompt", prompt)).await?;
        let (body, _) = self.json(&settings.submit, &answer)?;
        self.task_id = Some(task_id(&body, &settings.task_id).map_err(|why| {
            let request = &answer.request;
            SutError::failed(format!("{request} answered without a usable task id: {why}"))
        })?);
        self.wait(None).await
    }

    /// Cancels the task and describes the result.
    async fn cancel(&self) -> String {
        let Some(call) = &self.shared.settings.cancel else {
            return "the API has no way to stop it".to_owned();
        };
        // The evidence of the case must not wait for a server that is silent.
        match tokio::time::timeout(CANCEL_LIMIT, self.send(call, ("reply", ""))).await {
            Ok(Ok(_)) => "it was cancelled".to_owned(),
            Ok(Err(error)) => {
                let why = self.shared.redactor.apply(&error.what);
                format!("it could not be cancelled: {}", one_line(&why, 200))
            }
            Err(_) => "it could not be cancelled: the server is silent".to_owned(),
        }
    }

    async fn send_reply(&mut self, reply: &str) -> Result<SutReply, SutError> {
        let shared = Arc::clone(&self.shared);
        if let Some(ask) = &shared.settings.ask {
            check_continues(ask)?;
            return self.take_turn(ask, reply).await;
        }
        if self.task_id.is_none() {
            return Err(SutError::failed("a reply needs a task before it"));
        }
        let before = self.shown.take();
        self.call(&shared.settings.reply, ("reply", reply)).await?;
        self.wait(before).await
    }

    /// Polls until the task reaches a terminal status; `before` is what it showed before a reply.
    async fn wait(
        &mut self,
        mut before: Option<(TaskStatus, SeenAnswer)>,
    ) -> Result<SutReply, SutError> {
        let shared = Arc::clone(&self.shared);
        let pause = shared.settings.poll_seconds;
        let pause = Duration::try_from_secs_f64(pause).unwrap_or(Duration::from_millis(500));
        let started = Instant::now();
        // The caller's time limit ends this loop.
        loop {
            let answer = self.call(&shared.settings.poll, ("reply", "")).await?;
            match self.read(&answer)? {
                PollState::Running => before = None,
                PollState::Terminal(status, output) => {
                    let shown = (status, output);
                    if before.as_ref() != Some(&shown) || started.elapsed() >= GRACE {
                        self.shown = Some(shown.clone());
                        return with_hint(shown.1, |seen| {
                            seen.into_reply(status, &shared.redactor)
                        });
                    }
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    fn read(&mut self, answer: &HttpAnswer) -> Result<PollState, SutError> {
        let shared = Arc::clone(&self.shared);
        let settings = &shared.settings;
        let (body, decoding) = self.json(&settings.poll, answer)?;
        let word = body.pointer(&settings.status).and_then(Value::as_str).ok_or_else(|| {
            SutError::failed(format!(
                "{} answered without a status at {}; {}",
                answer.request,
                settings.status,
                json_members(&body)
            ))
        })?;
        // From here on 404 means that the task is gone, and no longer that it is not there yet.
        self.is_known = true;
        let output = SeenAnswer::at(&body, &settings.output, &decoding);
        let words = &settings.status_words;
        let is = |list: &[String]| list.iter().any(|known| known == word);
        if is(&words.running) {
            Ok(PollState::Running)
        } else if is(&words.error) {
            // The configured place first, then those where servers usually state an error.
            let places = [settings.error.as_str()].into_iter().chain(USUAL_ERRORS);
            let stated = places.map(|place| SeenAnswer::at(&body, place, &decoding));
            let why = stated.chain([output]).find(|why| !why.text().is_empty());
            let said = match &why {
                Some(why) => format!("{word}: {}", why.text()),
                None => format!("{word} without a message; {}", json_members(&body)),
            };
            Ok(PollState::Terminal(TaskStatus::Error, SeenAnswer::of(&said, &decoding)))
        } else if is(&words.complete) || is(&words.awaiting_response) {
            let complete = is(&words.complete);
            let status = if complete { TaskStatus::Complete } else { TaskStatus::AwaitingResponse };
            Ok(PollState::Terminal(status, output))
        } else {
            Err(SutError::failed(format!(
                "{} answered with the unknown status `{}`; known ones are in sut.http.status_words",
                answer.request,
                one_line(word, 60)
            )))
        }
    }
}

impl SutSession for HttpSession {
    fn submit<'a>(&'a mut self, prompt: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        self.submit_task(prompt).boxed()
    }

    fn reply<'a>(&'a mut self, reply: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        self.send_reply(reply).boxed()
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, SutEvidence> {
        async move {
            let skill = self
                .skill
                .as_ref()
                .map(|_| SkillDelivery { offered: "in the request".to_owned(), read: Some(true) });
            let mut evidence = SutEvidence { skill, ..SutEvidence::default() };
            if !self.repeated.is_empty() {
                let after = self.repeated.join(", ");
                let times = plural(self.repeated.len() as u64, "request");
                evidence
                    .notes
                    .push(format!("{times} sent again, after: {}", one_line(&after, 200)));
            }
            if let Some(id) = &self.task_id {
                let id = self.shared.redactor.apply(id).into_owned();
                evidence.notes.push(match &self.shown {
                    Some(_) => format!("task {id}"),
                    None => format!("task {id} was still running; {}", self.cancel().await),
                });
            }
            evidence
        }
        .boxed()
    }
}

/// Converts an answer to a reply. The error of one that is not where it should be has a hint.
fn with_hint(
    seen: SeenAnswer,
    into_reply: impl FnOnce(SeenAnswer) -> Result<SutReply, SutError>,
) -> Result<SutReply, SutError> {
    let is_missing = matches!(seen, SeenAnswer::Missing(_));
    into_reply(seen).map_err(|error| {
        if is_missing {
            SutError::failed(format!("{error}; hint: correct sut.http.output"))
        } else {
            error
        }
    })
}

/// Where servers put the message of an error, besides the configured place.
const USUAL_ERRORS: [&str; 5] =
    ["/error/message", "/error", "/error_message", "/message", "/detail"];

/// The response to a submit has no usable id.
#[derive(Debug, thiserror::Error)]
enum TaskIdError {
    #[error("there is no {0}")]
    Missing(String),
    #[error("{0} is neither text nor a number")]
    Type(String),
    #[error("`{}`", one_line(_0, 60))]
    Invalid(String),
}

/// Returns the id in the response to a submit. It is inserted into URL paths, so untrusted values
/// are restricted to plausible ids.
fn task_id(body: &Value, pointer: &str) -> Result<String, TaskIdError> {
    let id = match body.pointer(pointer) {
        Some(Value::String(id)) => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        Some(_) => return Err(TaskIdError::Type(pointer.to_owned())),
        None => return Err(TaskIdError::Missing(pointer.to_owned())),
    };
    if id.is_empty()
        || id == "."
        || id == ".."
        || id.len() > MAX_ID
        || id.contains(char::is_control)
    {
        return Err(TaskIdError::Invalid(id));
    }
    Ok(id)
}

/// Checks that a reply continues the conversation.
///
/// # Errors
/// Fails if nothing in the call refers to the turns before: the agent would be blamed for not
/// remembering what it never got.
fn check_continues(ask: &HttpCall) -> Result<(), SutError> {
    if ask.mentions("{session_id}") || ask.mentions("{messages}") {
        return Ok(());
    }
    let what = "sut.http.ask has neither {session_id} nor {messages}: a reply would begin a new \
                conversation; hint: add one of them to sut.http.ask.body"
        .to_owned();
    Err(SutError::Unavailable { what })
}

impl HttpSession {
    /// Sends one turn of the user and reads the answer from the response.
    async fn take_turn(&mut self, ask: &HttpCall, words: &str) -> Result<SutReply, SutError> {
        let shared = Arc::clone(&self.shared);
        self.messages.push(json!({ "role": "user", "content": words }));
        let answer = self.call(ask, ("prompt", words)).await?;
        let (seen, stated) = self.see_turn(ask, &answer)?;
        self.is_known = true;
        let reply = with_hint(seen, |seen| into_reply(seen, stated, &shared.redactor))?;
        // Both sides are kept: a server without a memory is sent the whole conversation.
        self.messages.push(json!({ "role": "assistant", "content": reply.output }));
        Ok(reply)
    }

    /// Sees the answer in the response to a turn: in one JSON document, in the pieces of a stream,
    /// or the whole text.
    fn see_turn(&self, ask: &HttpCall, answer: &HttpAnswer) -> Result<SeenTurn, SutError> {
        let settings = &self.shared.settings;
        let text = answer.text();
        let stream = || EventStream::read(&text.text);
        if settings.output.is_empty() {
            // The whole response: JSON or not. Only its type tells a stream from a text then.
            let stream = answer.is_event_stream.then(stream).flatten();
            return Ok(match stream {
                Some(stream) => streamed(&stream, settings, &text.changes),
                None => (whole(answer), None),
            });
        }
        let (body, decoding) = match self.json(ask, answer) {
            Ok(body) => body,
            Err(error) => {
                let stream = stream().ok_or_else(|| with_text_hint(error, &text.text))?;
                return Ok(streamed(&stream, settings, &text.changes));
            }
        };
        let status = stated_status(&body, settings);
        let seen = SeenAnswer::at(&body, &settings.output, &decoding);
        // Servers answer 200 with what they have, and an error beside it.
        let is_failed = status.is_none() && reports_error(&body);
        let seen = if is_failed {
            let body = one_line(&body.to_string(), MAX_QUOTE);
            SeenAnswer::Failed(format!("the response reports an error: {body}"))
        } else {
            seen
        };
        Ok((seen, status))
    }
}

/// Adds to the error of a response without JSON how one of plain text is read.
fn with_text_hint(error: SutError, text: &str) -> SutError {
    let is_text = text.trim_start().starts_with(char::is_alphanumeric);
    match error {
        SutError::Failed { what, .. } if is_text => {
            SutError::failed(format!("{what}; hint: sut.http.output: \"\" takes plain text"))
        }
        other => other,
    }
}

/// An answer, and the status that the server states.
type SeenTurn = (SeenAnswer, Option<TaskStatus>);

fn streamed(stream: &EventStream, settings: &HttpSettings, changes: &[TextChange]) -> SeenTurn {
    let status = stream.newest().find_map(|event| stated_status(event, settings));
    (stream.answer(&settings.output, changes), status)
}

fn whole(answer: &HttpAnswer) -> SeenAnswer {
    let decoded = answer.text();
    SeenAnswer::of(decoded.text.trim(), &decoded.changes)
}

/// Returns the status that a response states in one of the configured words. Other words at that
/// place (`ok`, a number) are no status of a task.
fn stated_status(body: &Value, settings: &HttpSettings) -> Option<TaskStatus> {
    let word = body.pointer(&settings.status)?.as_str()?;
    let words = &settings.status_words;
    [
        (&words.complete, TaskStatus::Complete),
        (&words.awaiting_response, TaskStatus::AwaitingResponse),
        (&words.error, TaskStatus::Error),
    ]
    .into_iter()
    .find_map(|(list, status)| list.iter().any(|known| known == word).then_some(status))
    .or_else(|| FAILURES.contains(&word.to_lowercase().as_str()).then_some(TaskStatus::Error))
}

/// Words for a failure in any API: an answer beside them is none.
const FAILURES: [&str; 6] = ["error", "failed", "failure", "cancelled", "canceled", "timeout"];

fn into_reply(
    seen: SeenAnswer,
    stated: Option<TaskStatus>,
    redactor: &Redactor,
) -> Result<SutReply, SutError> {
    let inferred =
        answer::infer_status(seen.text()).unwrap_or((TaskStatus::Complete, answer::EMPTY_ANSWER));
    let (status, rule) = match stated {
        Some(status) => (status, None),
        None => (inferred.0, Some(inferred.1.to_owned())),
    };
    Ok(SutReply { status_rule: rule, ..seen.into_reply(status, redactor)? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_held_to_what_they_can_be() {
        for (body, expected) in [
            (json!({"task_id": "t-1"}), Some("t-1")),
            (json!({"task_id": 7}), Some("7")),
            (json!({"task_id": "a/../b c"}), Some("a/../b c")),
            (json!({"task_id": ""}), None),
            (json!({"task_id": ".."}), None),
            (json!({"task_id": "a\nb"}), None),
            (json!({"task_id": ["t"]}), None),
            (json!({"task_id": "x".repeat(300)}), None),
            (json!({}), None),
        ] {
            assert_eq!(task_id(&body, "/task_id").ok().as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn a_status_is_stated_or_inferred() {
        let settings = HttpSettings::default();
        for (body, status) in [
            (json!({"status": "COMPLETE"}), Some(TaskStatus::Complete)),
            (json!({"status": "ERROR"}), Some(TaskStatus::Error)),
            (json!({"status": "failed"}), Some(TaskStatus::Error)),
            (json!({"status": "ok"}), None),
            (json!({"status": 200}), None),
            (json!({}), None),
        ] {
            assert_eq!(stated_status(&body, &settings), status, "{body}");
        }
        let reply = |text: &str| {
            into_reply(SeenAnswer::of(text, &[]), None, &Redactor::default()).unwrap().status
        };
        assert_eq!(reply("Which of them do you mean?"), TaskStatus::AwaitingResponse);
        assert_eq!(reply("At 9."), TaskStatus::Complete);
    }
}
