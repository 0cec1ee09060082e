//! The `http` adapter: a task API with calls to submit, poll and reply.
//!
//! **Detecting the answer to a reply.** A server may show the old `AWAITING_RESPONSE` for a moment
//! after it accepted a reply. A terminal status counts as the new answer if the status or the
//! output differs from before the reply, or if a running status was seen since. An identical
//! question is accepted only after [`GRACE`] has passed.
//!
//! Time limits of a case are up to the caller.

mod client;
mod template;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use serde_json::Value;

use super::skill::Skill;
use super::sut_settings::{HttpCall, HttpSettings};
use super::{
    Isolation, SkillDelivery, SutError, SutEvidence, SutReply, SutSession, SutTask, SystemUnderTest,
};
use client::{HttpAnswer, TaskClient};
use selftest_checks::scenario::TaskStatus;
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Time for which an unchanged question after a reply is assumed to be stale.
pub const GRACE: Duration = Duration::from_secs(5);

/// Timeout for cancelling a task.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

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
        format!("http {}", self.shared.redactor.apply(&self.shared.settings.base_url))
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

    fn with_skill(&self, skill: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        let HttpCall { path, body, .. } = &self.shared.settings.submit;
        let body = body.as_ref().map(Value::to_string).unwrap_or_default();
        if ![path, &body].iter().any(|template| template.contains("{skill}")) {
            return Err(SutError::NotStarted {
                what: "sut.http.submit has no {skill}: the skill would not reach the server"
                    .to_owned(),
                hint: Some(
                    "add `skill: \"{skill}\"` to sut.http.submit.body; without a skill it is empty"
                        .to_owned(),
                ),
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
            without_output: None,
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
    shown: Option<(TaskStatus, String)>,
    /// The keys of the first terminal response without an output.
    without_output: Option<String>,
}

/// The state shown by a poll.
enum PollState {
    Running,
    Terminal(TaskStatus, String),
}

impl HttpSession {
    async fn call(&self, call: &HttpCall, said: (&str, &str)) -> Result<HttpAnswer, SutError> {
        let mut values = vec![
            ("session_id", self.task.session_id.as_str()),
            ("task_group_id", self.task.task_group_id.as_str()),
            ("task_type", self.task.task_type.as_str()),
            ("skill", self.skill.as_ref().map_or("", |skill| &skill.text)),
            said,
        ];
        values.extend(self.task_id.as_deref().map(|id| ("task_id", id)));
        self.shared.client.send(call, &values).await.map_err(|failure| {
            let mut what = self.shared.redactor.apply(&failure.what).into_owned();
            if failure.status == Some(409) {
                what.push_str(" (409: the task is not waiting for a reply)");
            }
            SutError::failed(what)
        })
    }

    async fn submit_task(&mut self, prompt: &str) -> Result<SutReply, SutError> {
        let settings = &self.shared.settings;
        let answer = self.call(&settings.submit, ("prompt", prompt)).await?;
        let body = answer.json().map_err(|error| SutError::failed(error.what))?;
        self.task_id = Some(task_id(&body, &settings.task_id).map_err(|why| {
            SutError::failed(format!("{} answered without a usable task id: {why}", answer.request))
        })?);
        self.wait(None).await
    }

    /// Cancels the task and describes the result.
    async fn cancel(&self) -> String {
        let Some(call) = &self.shared.settings.cancel else {
            return "the API has no way to stop it".to_owned();
        };
        match tokio::time::timeout(CANCEL_LIMIT, self.call(call, ("reply", ""))).await {
            Ok(Ok(_)) => "it was cancelled".to_owned(),
            Ok(Err(error)) => {
                format!("it could not be cancelled: {}", one_line(&error.to_string(), 200))
            }
            Err(_) => "it could not be cancelled: the server is silent".to_owned(),
        }
    }

    async fn send_reply(&mut self, reply: &str) -> Result<SutReply, SutError> {
        if self.task_id.is_none() {
            return Err(SutError::failed("a reply needs a task before it"));
        }
        let before = self.shown.take();
        self.call(&self.shared.settings.reply, ("reply", reply)).await?;
        self.wait(before).await
    }

    /// Polls until the task reaches a terminal status; `before` is what it showed before a reply.
    async fn wait(
        &mut self,
        mut before: Option<(TaskStatus, String)>,
    ) -> Result<SutReply, SutError> {
        let pause = self.shared.settings.poll_seconds;
        let pause = Duration::try_from_secs_f64(pause).unwrap_or(Duration::from_millis(500));
        let started = Instant::now();
        // The caller's time limit ends this loop.
        loop {
            let answer = self.call(&self.shared.settings.poll, ("reply", "")).await?;
            match self.read(&answer)? {
                PollState::Running => before = None,
                PollState::Terminal(status, output) => {
                    let shown = (status, output);
                    if before.as_ref() != Some(&shown) || started.elapsed() >= GRACE {
                        self.shown = Some(shown.clone());
                        let output = self.shared.redactor.apply(&shown.1).into_owned();
                        return Ok(SutReply::new(status, output));
                    }
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    fn read(&mut self, answer: &HttpAnswer) -> Result<PollState, SutError> {
        let shared = Arc::clone(&self.shared);
        let settings = &shared.settings;
        let body = answer.json().map_err(|error| SutError::failed(error.what))?;
        let word = body.pointer(&settings.status).and_then(Value::as_str).ok_or_else(|| {
            SutError::failed(format!(
                "{} answered without a status at {}; {}",
                answer.request,
                settings.status,
                describe_keys(&body)
            ))
        })?;
        let output = text_at(&body, &settings.output);
        let words = &settings.status_words;
        let is = |list: &[String]| list.iter().any(|known| known == word);
        if is(&words.running) {
            Ok(PollState::Running)
        } else if is(&words.error) {
            let why = text_at(&body, &settings.error).or(output);
            let output = why.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"));
            Ok(PollState::Terminal(TaskStatus::Error, output))
        } else if is(&words.complete) || is(&words.awaiting_response) {
            if output.is_none() && self.without_output.is_none() {
                self.without_output = Some(describe_keys(&body));
            }
            let complete = is(&words.complete);
            let status = if complete { TaskStatus::Complete } else { TaskStatus::AwaitingResponse };
            Ok(PollState::Terminal(status, output.unwrap_or_default()))
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
            if let Some(keys) = &self.without_output {
                let pointer = &self.shared.settings.output;
                evidence.notes.push(format!("no output at {pointer}; {keys}"));
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

/// Returns the text at a pointer; other values are formatted as JSON. Returns `None` if there is no
/// value.
fn text_at(body: &Value, pointer: &str) -> Option<String> {
    match body.pointer(pointer)? {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Lists the keys of a response, for a user who has to correct a pointer.
fn describe_keys(body: &Value) -> String {
    match body {
        Value::Object(members) => {
            let keys: Vec<&str> = members.keys().map(String::as_str).collect();
            format!("its keys are: {}", one_line(&keys.join(", "), 300))
        }
        _ => "it is no JSON object".to_owned(),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
}
