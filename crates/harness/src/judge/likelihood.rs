//! Judging by likelihood, for models that can score a given text as their reply.
//!
//! Even a small model that says yes to everything finds some texts likelier than others. In a
//! conversation in which the model seems to have given the answer itself, it is read how much likelier
//! each expectation is as a description of this answer than of a contentless one. All texts are
//! separate messages and cannot end them. No question is asked, so that nothing in an answer can be
//! mistaken for one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::json;

use super::probability::{
    CONTENTLESS, JudgeQuestion, QuestionAnswer, ReadingKind, failed, too_long, unusable,
};
use super::prompt::{JudgeEvidence, MAX_EXPECTATION};
use crate::rubric::Rubric;
use selftest_checks::scenario::{FileExcerpt, GeneratedCase};
use selftest_models::fence::neutralise;
use selftest_models::prompts::{PromptLibrary, RenderedPrompt};
use selftest_models::structured::{AskError, UnscoredReason};
use selftest_models::{
    CallRecord, ChatModel, ChatRequest, PromptMessage, ReplyLikelihood, call_and_record,
    estimate_tokens,
};
use selftest_stats::mean;
use selftest_text::digest;

/// Path of the conversation's template under `prompts/`.
pub const TEMPLATE: &str = "judge/likelihood.md";

/// Marker line of the template after which the user speaks again.
const MARK: &str = "<!-- describe -->\n";

/// Reads likelihoods of cases.
pub(super) struct LikelihoodProbe {
    /// The category under which readings are listed.
    category: Option<String>,
    /// Likelihoods after contentless answers, by case and expectations.
    anchors: Mutex<HashMap<String, Vec<f64>>>,
    context_tokens: u32,
    max_prompt_tokens: u32,
}

/// The conversation up to the answer, and the messages that follow it.
struct LikelihoodConversation {
    before: Vec<PromptMessage>,
    describe: PromptMessage,
}

#[derive(Serialize)]
struct LikelihoodValues {
    excerpts: Vec<FileExcerpt>,
    request: String,
}

/// Access to the model for one reading.
struct LikelihoodReader<'a> {
    model: &'a dyn ChatModel,
    calls: &'a mut Vec<CallRecord>,
    limits: &'a LikelihoodProbe,
}

impl LikelihoodProbe {
    pub(super) fn new(context_tokens: u32, max_prompt_tokens: u32, rubric: &Rubric) -> Self {
        let category = rubric.instruction_category().map(|category| category.id.clone());
        Self { category, anchors: Mutex::default(), context_tokens, max_prompt_tokens }
    }

    /// Reads how much likelier the answer makes each expectation as a description of it.
    pub(super) async fn read(
        &self,
        model: &dyn ChatModel,
        library: &PromptLibrary,
        evidence: &JudgeEvidence,
        calls: &mut Vec<CallRecord>,
    ) -> Result<Vec<QuestionAnswer>, AskError> {
        let Some(category) = &self.category else { return Ok(Vec::new()) };
        let mut answer = neutralise(evidence.output.trim());
        for file in &evidence.files {
            let path = selftest_text::one_line(&file.path, 200);
            answer += &format!("\n\n{path}:\n{}", neutralise(file.text.trim()));
        }
        // An empty answer counts as a contentless one.
        if answer.is_empty() {
            CONTENTLESS[0].clone_into(&mut answer);
        }
        let conversation = LikelihoodConversation::of(library, evidence)?;
        let mut reader = LikelihoodReader { model, calls, limits: self };
        let mut read = Vec::new();
        let expected = expected(&evidence.case);
        if !expected.is_empty() {
            let zeros = self.baselines(&mut reader, &conversation, &expected).await?;
            let found = reader.descriptions(&conversation, &answer, &expected).await?;
            for (((number, sentence), found), zero) in expected.into_iter().zip(found).zip(zeros) {
                let text = format!("Does the answer make this likelier? {sentence}");
                let (category, expectation) = (category.clone(), number);
                read.push(QuestionAnswer {
                    question: JudgeQuestion { category, expectation, text },
                    by: ReadingKind::Description,
                    raw: found.exp(),
                    neither: 0.0,
                    // Common sentences are likely after any answer, and only what this one adds
                    // counts.
                    relative: found - zero,
                });
            }
        }
        Ok(read)
    }

    /// Returns the likelihoods of the sentences after contentless answers; computed once per case.
    async fn baselines(
        &self,
        reader: &mut LikelihoodReader<'_>,
        conversation: &LikelihoodConversation,
        expected: &[(Option<u32>, String)],
    ) -> Result<Vec<f64>, AskError> {
        let before: Vec<&str> = conversation.before.iter().map(|message| &*message.text).collect();
        let key = digest::json_sha256_hex(json!([before, expected]));
        let known = self.anchors.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(zeros) = known {
            return Ok(zeros);
        }
        let mut found = vec![Vec::new(); expected.len()];
        for contentless in CONTENTLESS {
            let read = reader.descriptions(conversation, contentless, expected).await?;
            for (found, value) in found.iter_mut().zip(read) {
                found.push(value);
            }
        }
        let zeros: Vec<f64> = found.iter().map(|all| mean(all).unwrap_or_default()).collect();
        // Computed without the lock: two cases may both do it, and get the same values.
        let mut all = self.anchors.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key, zeros.clone());
        Ok(zeros)
    }
}

impl LikelihoodConversation {
    /// Builds the conversation as the assistant would see it: the files before the first request.
    fn of(library: &PromptLibrary, evidence: &JudgeEvidence) -> Result<Self, AskError> {
        let last = evidence.reply.as_ref().unwrap_or(&evidence.case.prompt);
        let said = evidence.conversation.iter().map(|exchange| &exchange.said).chain([last]);
        let mut said = said.map(|text| neutralise(text));
        let excerpts = evidence.case.grounds.excerpts.iter().map(|excerpt| FileExcerpt {
            path: selftest_text::one_line(&excerpt.path, 200),
            text: neutralise(&excerpt.text),
        });
        // The texts are inserted after rendering, so that nothing in them can be taken for a
        // marker.
        let values = LikelihoodValues { excerpts: excerpts.collect(), request: String::new() };
        let RenderedPrompt { system, user } =
            library.render(TEMPLATE, &values).map_err(|error| unusable(&error))?;
        // From the right: an excerpt may contain the mark, the template ends with it.
        let (files, describe) = user.rsplit_once(MARK).unwrap_or((&user, ""));
        let request = said.next().unwrap_or_default();
        let mut before =
            vec![PromptMessage::system(system), PromptMessage::user(format!("{files}{request}"))];
        for (exchange, next) in evidence.conversation.iter().zip(said) {
            before.push(PromptMessage::assistant(neutralise(&exchange.answered)));
            before.push(PromptMessage::user(next));
        }
        Ok(Self { before, describe: PromptMessage::user(describe.trim()) })
    }

    fn followed_by(&self, answer: &str, next: &PromptMessage) -> Vec<PromptMessage> {
        let mut messages = self.before.clone();
        messages.extend([PromptMessage::assistant(answer), next.clone()]);
        messages
    }
}

impl LikelihoodReader<'_> {
    /// Returns the likelihood of each sentence as a description of the answer.
    async fn descriptions(
        &mut self,
        conversation: &LikelihoodConversation,
        answer: &str,
        expected: &[(Option<u32>, String)],
    ) -> Result<Vec<f64>, AskError> {
        let mut found = Vec::with_capacity(expected.len());
        for (_, sentence) in expected {
            let messages = conversation.followed_by(answer, &conversation.describe);
            found.push(self.likelihood(messages, sentence).await?);
        }
        Ok(found)
    }

    /// Returns the mean log-probability per token of the reply, in nats.
    async fn likelihood(
        &mut self,
        messages: Vec<PromptMessage>,
        reply: &str,
    ) -> Result<f64, AskError> {
        let tokens: u32 = messages.iter().map(|message| estimate_tokens(&message.text)).sum();
        let (tokens, most) = (tokens + estimate_tokens(reply), self.limits.max_prompt_tokens);
        if tokens > most {
            return Err(too_long(tokens, most));
        }
        // The whole conversation is the same for every expectation, so that it is decoded once.
        let end = messages.last().map_or(0, |message| message.text.len());
        let context = self.limits.context_tokens;
        let request = ChatRequest::likelihood(messages, vec![end], reply.to_owned(), context);
        let (record, told) = call_and_record(self.model, &request).await;
        self.calls.push(record);
        let told =
            told.map_err(|error| failed(UnscoredReason::from_error(&error), error.to_string()))?;
        let value =
            told.likelihood.map(ReplyLikelihood::per_token).filter(|value| value.is_finite());
        value.ok_or_else(|| {
            let what = selftest_text::one_line(reply, 80);
            failed(UnscoredReason::CantTell, format!("no likelihood of `{what}`"))
        })
    }
}

/// Returns the expectations with their numbers; without expectations, the hints.
fn expected(case: &GeneratedCase) -> Vec<(Option<u32>, String)> {
    let line = |text: &str| selftest_text::one_line(&neutralise(text), MAX_EXPECTATION);
    let expected = case.grounds.expectations.iter().zip(1..);
    let mut all: Vec<_> = expected.map(|(text, number)| (Some(number), line(text))).collect();
    if all.is_empty() {
        all.push((None, line(&case.hints)));
    }
    all.retain(|(_, text)| !text.trim().is_empty());
    all
}
