//! The `chat` adapter: a small assistant that answers questions about the project in the current
//! folder.
//!
//! It receives project files read-only, and only those that contain no answer key. It has no tools.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::SeenAnswer;
use super::project::ProjectFile;
use super::skill::Skill;
use super::sut_settings::ChatSettings;
use super::{
    Isolation, SkillDelivery, SutError, SutEvidence, SutReply, SutSession, SutTask, SystemUnderTest,
};
use selftest_checks::check::FileChanges;
use selftest_checks::scenario::TaskStatus;
use selftest_models::prompts::PromptLibrary;
use selftest_models::{
    CallRecord, ChatModel, ChatReply, ChatRequest, FinishReason, ModelError, PromptMessage,
    ReplySchema, SamplingParameters, ThinkingMode, call_and_record,
};
use selftest_text::normal::{TextChange, readable_json};
use selftest_text::redact::Redactor;

/// Path of the assistant's template under `prompts/`.
pub const TEMPLATE: &str = "sut/read_info.md";

/// The `chat` system under test.
pub struct ChatSut {
    assistant: Arc<ChatAssistant>,
    skill: Option<Arc<Skill>>,
}

struct ChatAssistant {
    model: Arc<dyn ChatModel>,
    library: Arc<PromptLibrary>,
    settings: ChatSettings,
    context_tokens: u32,
    files: Vec<ProjectFile>,
    schema: ReplySchema,
}

/// Returns the schema of the assistant's reply. The output comes first, both in position and in
/// alphabetical order: a status written before it would be a guess. Its length is limited by the
/// call.
pub fn reply_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "output": { "type": "string", "description": "the answer, or the questions" },
            "status": { "enum": ["AWAITING_RESPONSE", "COMPLETE", "ERROR"] },
        },
        "required": ["output", "status"],
        "additionalProperties": false,
    })
}

struct AssistantAnswer {
    status: TaskStatus,
    output: SeenAnswer,
}

impl ChatSut {
    /// Creates the adapter. `files` are shown to the assistant; the library must have [`TEMPLATE`]
    /// loaded.
    pub fn new(
        model: Arc<dyn ChatModel>,
        library: Arc<PromptLibrary>,
        settings: ChatSettings,
        context_tokens: u32,
        files: Vec<ProjectFile>,
    ) -> Self {
        let schema = ReplySchema { name: "answer", schema: Arc::new(reply_schema()) };
        let assistant = ChatAssistant { model, library, settings, context_tokens, files, schema };
        Self { assistant: Arc::new(assistant), skill: None }
    }
}

impl SystemUnderTest for ChatSut {
    fn describe(&self) -> String {
        let assistant = &self.assistant;
        format!("chat with {}, shown {} project files", assistant.model.id(), assistant.files.len())
    }

    fn isolation(&self) -> Isolation {
        Isolation {
            enforced: vec![
                "the assistant has no tools: it can change nothing and call nothing".to_owned(),
                "it is shown project files without reports, prompts and configuration".to_owned(),
            ],
            not_enforced: Vec::new(),
        }
    }

    fn can_reach_project(&self) -> bool {
        false
    }

    /// The model is checked with the others, before the first case.
    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        Box::pin(async { Ok(()) })
    }

    fn check_model(&self) -> BoxFuture<'_, Result<(), SutError>> {
        Box::pin(async {
            let answer = self.assistant.model.check().await;
            answer.map_err(|error| SutError::Unavailable { what: error.to_string() })
        })
    }

    fn with_skill(&self, skill: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        Ok(Arc::new(Self { assistant: Arc::clone(&self.assistant), skill: Some(skill) }))
    }

    fn open<'a>(
        &'a self,
        task: &'a SutTask,
    ) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        Box::pin(async move {
            let session = ChatSession {
                assistant: Arc::clone(&self.assistant),
                skill: self.skill.clone(),
                seed: task.seed,
                conversation: Vec::new(),
                cut: None,
                failed: None,
            };
            Ok(Box::new(session) as Box<dyn SutSession>)
        })
    }
}

struct ChatSession {
    assistant: Arc<ChatAssistant>,
    skill: Option<Arc<Skill>>,
    seed: u64,
    conversation: Vec<PromptMessage>,
    /// The start of an answer that a limit cut.
    cut: Option<String>,
    /// The call that returned no answer.
    failed: Option<Box<CallRecord>>,
}

/// Maximum length in bytes of a cut answer in the report.
const MAX_CUT_ANSWER: usize = 2000;

impl ChatSession {
    async fn answer(&mut self) -> Result<SutReply, SutError> {
        let assistant = &self.assistant;
        let ChatSettings { temperature, max_tokens, think, think_tokens, .. } = assistant.settings;
        let sampling = SamplingParameters { temperature, max_tokens, seed: self.seed };
        let conversation = self.conversation.clone();
        let (schema, context_tokens) = (&assistant.schema, assistant.context_tokens);
        let request = ChatRequest::structured(conversation, schema, sampling, context_tokens)
            .with_thinking(ThinkingMode::from_settings(think, think_tokens));
        let (call, reply) = call_and_record(&*assistant.model, &request).await;
        match self.read(&request, reply) {
            Ok((answer, text)) => {
                self.conversation.push(PromptMessage::assistant(text));
                // Without tools the list of calls is known to be empty, so that checks on tools can
                // be decided.
                let tokens = call.usage.prompt_tokens.zip(call.usage.completion_tokens);
                // The model behind the reply has redacted it.
                let reply = answer.output.into_reply(answer.status, &Redactor::default());
                let reply = match reply {
                    Ok(reply) => reply,
                    Err(error) => {
                        // The call was made and paid for, and has no reply to be part of.
                        self.failed = Some(Box::new(call));
                        return Err(error);
                    }
                };
                let notes = call.notes.iter().chain(&reply.notes).cloned().collect();
                Ok(SutReply {
                    // A server may state any number.
                    tokens: tokens.map(|(prompt, completion)| prompt.saturating_add(completion)),
                    tool_calls: Some(Vec::new()),
                    call: Some(call),
                    notes,
                    ..reply
                })
            }
            Err(error) => {
                self.failed = Some(Box::new(call));
                Err(error)
            }
        }
    }

    /// Returns the answer in a reply, and the reply's text.
    fn read(
        &mut self,
        request: &ChatRequest,
        reply: Result<ChatReply, ModelError>,
    ) -> Result<(AssistantAnswer, String), SutError> {
        let reply = reply.map_err(|error| match error {
            // The harness made the prompt too long, by the files that it shows: no fault of the
            // model.
            ModelError::PromptTooLong { .. } => SutError::Cut { what: error.to_string() },
            error => SutError::of_model(&error),
        })?;
        // Some servers cut long prompts without an error.
        if reply.is_prompt_truncated(request) {
            let what = "the server cut the prompt: it counted fewer tokens than the prompt has";
            return Err(SutError::Cut { what: what.to_owned() });
        }
        match reply.finish {
            FinishReason::Stop => {}
            FinishReason::Length => {
                self.cut = Some(selftest_text::one_line(&reply.text, MAX_CUT_ANSWER));
                let limit = self.assistant.settings.max_tokens;
                let what = format!("the answer was cut by sut.chat.max_tokens ({limit})");
                return Err(SutError::Cut { what });
            }
            FinishReason::Repeated => {
                self.cut = Some(selftest_text::one_line(&reply.text, MAX_CUT_ANSWER));
                let what = "the model repeated itself without end, and was stopped".to_owned();
                return Err(SutError::Cut { what });
            }
            FinishReason::UnfinishedThinking => {
                self.cut = reply.raw_text.map(|raw| selftest_text::one_line(&raw, MAX_CUT_ANSWER));
                let what = "the model's reply ended within its thinking, before an answer; \
                            hint: raise sut.chat.max_tokens, or set sut.chat.think";
                return Err(SutError::Cut { what: what.to_owned() });
            }
            FinishReason::Refusal(words) => {
                return Err(SutError::failed(format!("the model refused: {words}")));
            }
            FinishReason::Other(word) => {
                return Err(SutError::failed(format!("the answer ended with `{word}`")));
            }
        }
        let answer = read_answer(&reply.text)?;
        Ok((answer, reply.text))
    }
}

/// Reads `{output, status}`.
fn read_answer(text: &str) -> Result<AssistantAnswer, SutError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Members {
        status: TaskStatus,
        #[serde(default, rename = "output")]
        _output: Option<String>,
    }
    let bare = without_fence(text);
    let mut readable = readable_json(bare.unwrap_or(text.trim()));
    if bare.is_some() {
        readable.changes.push(TextChange::CodeFence);
    }
    let unreadable = |error: serde_json::Error| {
        let what = match text.trim() {
            "" => "the model's reply is empty".to_owned(),
            text => {
                let start = selftest_text::one_line(text, 120);
                let why = if error.is_data() { format!("{error}: ") } else { String::new() };
                format!("the answer is not one JSON object {{output, status}}: {why}{start}")
            }
        };
        SutError::failed(what)
    };
    // Parsed as a whole first, so that errors name lines and columns.
    let Members { status, .. } = serde_json::from_str(&readable.text).map_err(unreadable)?;
    let whole: Value = serde_json::from_str(&readable.text).map_err(unreadable)?;
    let output = SeenAnswer::at(&whole, "/output", &readable.changes);
    Ok(AssistantAnswer { status, output })
}

/// Returns what is in the code fence that stands around a whole text: models without a schema often
/// write their JSON so.
fn without_fence(text: &str) -> Option<&str> {
    let (info, body) = text.trim().strip_prefix("```")?.strip_suffix("```")?.split_once('\n')?;
    // A fence of another language holds an example and no answer.
    matches!(info.trim(), "" | "json" | "JSON").then_some(body.trim())
}

/// The values of the template.
#[derive(Serialize)]
struct ChatValues<'a> {
    files: Vec<ShownFile<'a>>,
    prompt: &'a str,
}

#[derive(Serialize)]
struct ShownFile<'a> {
    path: &'a str,
    text: &'a str,
    cut: bool,
}

impl<'a> From<&'a ProjectFile> for ShownFile<'a> {
    fn from(file: &'a ProjectFile) -> Self {
        Self { path: &file.path, text: &file.text, cut: file.cut }
    }
}

impl SutSession for ChatSession {
    /// The assistant cannot change any files.
    fn files<'a>(&'a mut self, _named: &'a [String]) -> BoxFuture<'a, Option<FileChanges>> {
        Box::pin(async { Some(FileChanges::default()) })
    }

    fn submit<'a>(&'a mut self, prompt: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        Box::pin(async move {
            let files = self.assistant.files.iter().map(ShownFile::from).collect();
            let rendered = self
                .assistant
                .library
                .render(TEMPLATE, &ChatValues { files, prompt })
                .map_err(|error| SutError::failed(error.to_string()))?;
            let mut system = rendered.system;
            // Not in the template, because a project may have replaced it.
            if let Some(skill) = &self.skill {
                system += &format!("\n\n=== Skill: use it where it fits ===\n{}", skill.text);
            }
            self.conversation =
                vec![PromptMessage::system(system), PromptMessage::user(rendered.user)];
            self.answer().await
        })
    }

    fn reply<'a>(&'a mut self, reply: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        Box::pin(async move {
            self.conversation.push(PromptMessage::user(reply));
            self.answer().await
        })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, SutEvidence> {
        let notes = self.cut.map(|text| format!("what there is of the cut answer: {text}"));
        let notes = notes.into_iter().collect();
        let failed_call = self.failed;
        let skill = self
            .skill
            .map(|_| SkillDelivery { offered: "in the prompt".to_owned(), read: Some(true) });
        Box::pin(async { SutEvidence { notes, failed_call, skill, ..SutEvidence::default() } })
    }
}
