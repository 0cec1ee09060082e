//! The judge: a model, its rubric and its settings, asked about one step.

use std::sync::Arc;

use super::judge_settings::JudgeSettings;
use super::prompt::{self, Evidence};
use super::verdict::{Reader, schema, schema_in_prompt};
use super::{Judgement, Verdict};
use crate::rubric::Rubric;
use selftest_models::fence::Nonce;
use selftest_models::prompts::PromptLibrary;
use selftest_models::structured::{self, AskError, Limits, UnscoredReason};
use selftest_models::{
    CallRecord, ChatModel, ChatRequest, ReplySchema, Sampling, Thinking, estimate_tokens,
};

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
        let schema = ReplySchema { name: "verdict", schema: Arc::new(schema(&rubric)) };
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
        calls: &mut Vec<CallRecord>,
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
        let JudgeSettings { temperature, max_tokens, think, think_tokens, max_reasks, .. } =
            self.settings;
        let sampling = Sampling { temperature, max_tokens, seed: seed(0) };
        let request =
            ChatRequest::structured(rendered, &self.schema, sampling, self.context_tokens)
                .fenced(&nonce)
                .thinking(Thinking::configured(think, think_tokens));
        let limits = Limits { max_reasks, max_tokens_key: "judge.max_tokens" };
        let read = |reply: &str| self.reader.read(reply);
        structured::ask(&*self.model, request, limits, seed, read, calls)
            .await
            .unwrap_or_else(|AskError { reason, detail, .. }| unscored(reason, &detail))
    }
}

fn unscored(reason: UnscoredReason, detail: &str) -> Verdict {
    Verdict::Unscored { reason, detail: selftest_text::one_line(detail, 600), partial: Vec::new() }
}
