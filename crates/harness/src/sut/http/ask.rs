//! Turns with an API that answers in one call: no task, nothing to poll.

use std::sync::Arc;

use serde_json::json;

use super::HttpSession;
use super::client::HttpAnswer;
use crate::sut::answer::SeenAnswer;
use crate::sut::sut_settings::{HttpCall, HttpSettings};
use crate::sut::{SutError, SutReply, status};
use selftest_checks::scenario::TaskStatus;
use selftest_text::redact::Redactor;
use serde_json::Value;

/// Checks that a reply continues the conversation.
///
/// # Errors
/// Fails if nothing in the call refers to the turns before: the agent would be blamed for not
/// remembering what it never got.
pub(super) fn check_continues(ask: &HttpCall) -> Result<(), SutError> {
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
    pub(super) async fn take_turn(
        &mut self,
        ask: &HttpCall,
        words: &str,
    ) -> Result<SutReply, SutError> {
        let shared = Arc::clone(&self.shared);
        self.messages.push(json!({ "role": "user", "content": words }));
        let answer = self.call(ask, ("prompt", words)).await?;
        let body = match shared.settings.output.as_str() {
            // The whole response: JSON or not.
            "" => None,
            _ => Some(self.json(ask, &answer)?),
        };
        self.is_known = true;
        let (seen, stated) = match body {
            Some((body, decoding)) => (
                SeenAnswer::at(&body, &shared.settings.output, &decoding),
                stated_status(&body, &shared.settings),
            ),
            None => (whole(&answer), None),
        };
        let reply = super::with_hint(seen, |seen| into_reply(seen, stated, &shared.redactor))?;
        self.messages.push(json!({ "role": "assistant", "content": reply.output }));
        Ok(reply)
    }
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
}

fn into_reply(
    seen: SeenAnswer,
    stated: Option<TaskStatus>,
    redactor: &Redactor,
) -> Result<SutReply, SutError> {
    let inferred = status::infer(seen.text()).unwrap_or((TaskStatus::Complete, status::EMPTY));
    let (status, rule) = match stated {
        Some(status) => (status, None),
        None => (inferred.0, Some(inferred.1.to_owned())),
    };
    Ok(SutReply { status_rule: rule, ..seen.into_reply(status, redactor)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_stated_or_inferred() {
        let settings = HttpSettings::default();
        for (body, status) in [
            (json!({"status": "COMPLETE"}), Some(TaskStatus::Complete)),
            (json!({"status": "ERROR"}), Some(TaskStatus::Error)),
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
