//! One recorded model call, and which of the harness's roles made it.

use std::time::Instant;

use serde_json::Value;

use super::wire::HttpRequest;

/// The role that asks, as far as the schema of the reply shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Generator,
    Sut,
    Judge,
    /// Wants the probabilities of the first token.
    Question,
    /// Grades a recorded session.
    Grader,
    /// Drafts a skill.
    Drafter,
    /// No schema, or one of none of these: a probe.
    Other,
}

/// Which protocol a call came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    OpenAi,
    Ollama,
}

/// One chat call as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) role: Role,
    /// Position among the answered calls of the same role, from 0.
    pub(crate) number: usize,
    pub(crate) endpoint: Endpoint,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    pub(crate) at: Instant,
}

impl Call {
    pub(super) fn new(endpoint: Endpoint, request: &HttpRequest) -> Self {
        let body = serde_json::from_slice(&request.body).expect("the client sends JSON");
        let headers = request.headers.clone();
        let at = Instant::now();
        let mut call = Self { role: Role::Other, number: 0, endpoint, headers, body, at };
        call.role = call.guess_role();
        call
    }

    /// The schema that the reply must satisfy, if the request carries one.
    pub(crate) fn schema(&self) -> Option<&Value> {
        let schema = match self.endpoint {
            Endpoint::OpenAi => self.body.pointer("/response_format/json_schema/schema"),
            Endpoint::Ollama => self.body.get("format"),
        };
        schema.filter(|schema| schema.is_object())
    }

    /// All messages in one text.
    pub(crate) fn text(&self) -> String {
        let texts = self.messages().iter().filter_map(|message| message["content"].as_str());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// The last message.
    pub(crate) fn last_message(&self) -> &str {
        self.messages().last().and_then(|message| message["content"].as_str()).unwrap_or("")
    }

    /// Whether the model has not spoken in this conversation yet.
    pub(crate) fn is_first_answer(&self) -> bool {
        self.messages().iter().all(|message| message["role"] != "assistant")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Tokens of the prompt, as this server counts them.
    pub(super) fn prompt_tokens(&self) -> u64 {
        self.text().len() as u64 / 4 + 1
    }

    pub(super) fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    fn guess_role(&self) -> Role {
        // Where a server has refused the schema, the prompt states it.
        let named = |field: &str| match self.schema() {
            Some(schema) => schema["properties"].get(field).is_some(),
            None => self.text().contains(&format!("\"{field}\"")),
        };
        if self.body["logprobs"] == true {
            Role::Question
        } else if named("problem_solved") {
            Role::Grader
        } else if named("explanation") {
            Role::Judge
        } else if named("body") && named("description") {
            Role::Drafter
        } else if named("hints") {
            Role::Generator
        } else if named("status") && named("output") {
            Role::Sut
        } else {
            Role::Other
        }
    }
}
