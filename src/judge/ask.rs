//! Asking the judge: one call, and re-asks when the reply is malformed.

use std::sync::Arc;

use super::evidence::Nonce;
use super::prompt::{self, Evidence};
use super::settings::JudgeSettings;
use super::verdict::{Reader, Unreadable, schema, schema_in_prompt};
use super::{Judgement, UnscoredReason, Verdict};
use crate::model::{
    ChatModel, ChatRequest, Finish, Message, ReplySchema, Sampling, call, estimate_tokens,
};
use crate::prompts::PromptLibrary;
use crate::rubric::Rubric;
use crate::text;

/// A model that judges by a rubric.
pub struct Judge {
    model: Arc<dyn ChatModel>,
    settings: JudgeSettings,
    context_tokens: u32,
    reader: Reader,
    schema: ReplySchema,
    schema_text: String,
}

impl Judge {
    /// A judge by this rubric; `context_tokens` is the context window of every call.
    pub fn new(
        model: Arc<dyn ChatModel>,
        settings: JudgeSettings,
        context_tokens: u32,
        rubric: Rubric,
    ) -> Self {
        let schema_text = schema_in_prompt(&rubric).to_string();
        let schema = ReplySchema { name: "verdict", schema: Arc::new(schema(&rubric)), brief: 160 };
        Self { model, settings, context_tokens, reader: Reader::new(rubric), schema, schema_text }
    }

    /// Full name of the model.
    pub fn model_id(&self) -> &str {
        self.model.id()
    }

    /// Judges one step. `seed` gives the sampling seed of a call, counted from 0.
    pub async fn judge(
        &self,
        library: &PromptLibrary,
        evidence: &Evidence,
        seed: impl Fn(u32) -> u64,
    ) -> Judgement {
        let mut calls = Vec::new();
        let verdict = self.ask(library, evidence, seed, &mut calls).await;
        Judgement { verdict, question_count: evidence.question_count, calls }
    }

    async fn ask(
        &self,
        library: &PromptLibrary,
        evidence: &Evidence,
        seed: impl Fn(u32) -> u64,
        calls: &mut Vec<crate::model::CallRecord>,
    ) -> Verdict {
        let nonce = Nonce::fresh();
        let rubric = self.reader.rubric();
        let rendered = match prompt::render(library, rubric, &self.schema_text, evidence, &nonce) {
            Ok(rendered) => rendered,
            Err(error) => return unscored(UnscoredReason::Unavailable, &error.to_string()),
        };
        let tokens = estimate_tokens(&rendered.system) + estimate_tokens(&rendered.user);
        let limit = self.settings.max_prompt_tokens;
        if tokens > limit {
            let detail = format!(
                "the prompt takes about {tokens} tokens, judge.max_prompt_tokens is {limit}"
            );
            return unscored(UnscoredReason::Truncated, &detail);
        }
        let conversation = vec![Message::system(rendered.system), Message::user(rendered.user)];
        let mut request = ChatRequest {
            messages: conversation.clone(),
            schema: Some(self.schema.clone()),
            sampling: Sampling {
                temperature: self.settings.temperature,
                max_tokens: self.settings.max_tokens,
                seed: seed(0),
            },
            context_tokens: self.context_tokens,
            think: Some(self.settings.think.unwrap_or(false)),
            nonce: Some(nonce.as_str().to_owned()),
        };
        let mut ask_number = 0;
        loop {
            let (record, reply) = call(&*self.model, &request).await;
            calls.push(record);
            let reply = match reply {
                Ok(reply) => reply,
                Err(error) => return unscored(UnscoredReason::Unavailable, &error.to_string()),
            };
            if reply.prompt_was_cut(&request) {
                let detail =
                    "the server counted fewer tokens than the prompt has: it cut the prompt";
                return unscored(UnscoredReason::Truncated, detail);
            }
            let faults = match reply.finish {
                Finish::Length => {
                    let detail = format!(
                        "the reply ended at a limit (judge.max_tokens is {})",
                        self.settings.max_tokens
                    );
                    return unscored(UnscoredReason::Truncated, &detail);
                }
                Finish::Refusal(words) => return unscored(UnscoredReason::Refused, &words),
                Finish::Other(word) => vec![format!("the reply ended with `{word}`")],
                Finish::Stop => match self.reader.read(&reply.text) {
                    Ok(verdict) => return verdict,
                    Err(Unreadable::Refused(words)) => {
                        return unscored(UnscoredReason::Refused, &words);
                    }
                    Err(Unreadable::Malformed(faults)) => faults,
                },
            };
            if ask_number == self.settings.max_reasks {
                return unscored(UnscoredReason::Malformed, &faults.join("; "));
            }
            ask_number += 1;
            request.sampling.seed = seed(ask_number);
            request.messages.clone_from(&conversation);
            request.messages.push(Message::assistant(text::clip(&reply.text, 2000)));
            request.messages.push(Message::user(reask(&faults)));
        }
    }
}

/// What the judge is told of a malformed reply.
fn reask(faults: &[String]) -> String {
    let faults: Vec<String> = faults.iter().take(10).map(|fault| format!("- {fault}")).collect();
    format!(
        "That reply is not a valid verdict:\n{}\nReply again with one JSON object that satisfies the schema, and nothing else.",
        faults.join("\n")
    )
}

fn unscored(reason: UnscoredReason, detail: &str) -> Verdict {
    Verdict::Unscored { reason, detail: text::one_line(detail, 600), partial: Vec::new() }
}
