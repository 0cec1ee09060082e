//! Judging by probability: evidence first, then one yes/no question at a time, answered by the
//! probabilities of the reply's first token.
//!
//! Raw probabilities of small models are far off, and differently so from request to request.
//! Each question is therefore also asked of answers that say nothing and, where there is one, of a
//! reference answer, and log-odds count relative to those (contextual calibration: Zhao et al.,
//! "Calibrate Before Use", 2021).
//!
//! A model that tells how likely a given text is ([`ChatModel::tells_likelihoods`]) is also asked
//! how likely it finds each expectation as a sentence about the answer. Small models that say yes
//! to everything tell more by this: an answer that holds what is expected makes it likelier.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::prompt::Evidence;
use super::question::{MAX_EXPECTATION, Question};
use super::quote::quote;
use super::tool_calls;
use crate::scenario::{Excerpt, GeneratedCase};
use selftest_models::choice::YesNo;
use selftest_models::prompts::{PromptError, PromptLibrary, Rendered};
use selftest_models::structured::{AskError, UnscoredReason};
use selftest_models::{
    CallRecord, ChatModel, ChatReply, ChatRequest, Likelihood, Sampling, call, estimate_tokens,
};
use selftest_stats::{Logistic, logistic, mean};
use selftest_text::digest;

/// The template of the questions, path under `prompts/`.
pub const TEMPLATE: &str = "judge/questions.md";

/// The template that asks why, path under `prompts/`.
pub const EXPLANATION: &str = "judge/explanation.md";

/// Most tokens of an explanation.
const EXPLANATION_TOKENS: u32 = 80;

/// Answers that say nothing, to which a judge's yes means nothing.
const CONTENTLESS: [&str; 2] = ["N/A", "OK."];

/// Lines of the template at which the text may be cut: before the answer, and behind it.
const MARKS: [&str; 2] = ["<!-- answer -->\n", "<!-- question -->\n"];

/// How what is read becomes a probability: `σ(slope · x + intercept)`, fitted on answers whose
/// worth is known (Platt, "Probabilistic outputs for support vector machines", 1999).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scale {
    /// Of log-odds of yes. Above 0 where the judge can tell good from bad.
    pub slope: f64,
    /// The log-odds of an answer that is no better than one that says nothing.
    pub intercept: f64,
    /// The same of likelihoods, where the model tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<LikelihoodScale>,
}

/// How a likelihood becomes a probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LikelihoodScale {
    /// For each nat per token.
    pub slope: f64,
    /// The log-odds of an answer that makes nothing likelier.
    pub intercept: f64,
}

impl Default for Scale {
    fn default() -> Self {
        Self { slope: 1.0, intercept: 0.0, likelihood: None }
    }
}

impl Default for LikelihoodScale {
    fn default() -> Self {
        Self { slope: 1.0, intercept: 0.0 }
    }
}

impl QuestionAnswer {
    /// The answer of a rule.
    pub(super) fn by_rule(question: Question, probability: f64) -> Self {
        let relative = (probability / (1.0 - probability)).ln();
        Self { question, by: AnsweredBy::Rule, raw: probability, neither: 0.0, relative }
    }

    /// The probability of yes, 0 to 1.
    pub fn probability(&self, scale: Scale) -> f64 {
        match self.by {
            AnsweredBy::Model | AnsweredBy::Likelihood => logistic_of(self.log_odds(scale)),
            AnsweredBy::Rule => self.raw,
        }
    }

    /// The log-odds of yes on the scale.
    pub fn log_odds(&self, scale: Scale) -> f64 {
        match self.by {
            AnsweredBy::Model => scale.slope * self.relative + scale.intercept,
            AnsweredBy::Likelihood => {
                let LikelihoodScale { slope, intercept } = scale.likelihood.unwrap_or_default();
                slope * self.relative + intercept
            }
            AnsweredBy::Rule => self.relative,
        }
    }
}

fn logistic_of(log_odds: f64) -> f64 {
    Logistic { slope: 1.0, intercept: 0.0 }.probability(log_odds)
}

impl Scale {
    /// The scale of answers whose worth is known: their mean log-odds of yes, and their mean
    /// likelihoods where there are any. `None` without both good and bad ones.
    pub fn fitted(yes_no: &[(f64, bool)], likelihoods: &[(f64, bool)]) -> Option<Self> {
        let Logistic { slope, intercept } = logistic(yes_no)?;
        let likelihood = logistic(likelihoods)
            .map(|Logistic { slope, intercept }| LikelihoodScale { slope, intercept });
        Some(Self { slope, intercept, likelihood })
    }
}

/// Who answered a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// The judge's model, by its probabilities of yes and no.
    #[default]
    Model,
    /// The judge's model, by how likely it finds the expected as a sentence about the answer.
    Likelihood,
    /// A rule, without any model: `raw` is the probability, on no scale.
    Rule,
}

/// A judge's answer to one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswer {
    /// The question.
    #[serde(flatten)]
    pub question: Question,
    /// Who answered.
    #[serde(default)]
    pub by: AnsweredBy,
    /// The share of yes among yes and no, 0 to 1, as the model says it; by likelihood the
    /// probability of a token of the sentence (geometric mean).
    pub raw: f64,
    /// The probability of neither word, 0 to 1.
    pub neither: f64,
    /// Log-odds of yes, or the log-probability of a token of the sentence in nats, less those of
    /// answers that say nothing, or the midpoint between those and the reference answer.
    pub relative: f64,
}

/// Asks the questions about one case after the other.
pub(super) struct Questioner {
    /// By what the questions have in common but the answer: for each what counts as 0.
    anchors: Mutex<HashMap<String, Vec<f64>>>,
    context_tokens: u32,
    max_prompt_tokens: u32,
    quotes: bool,
}

/// One thing that the model is asked about an answer.
struct Ask {
    question: Question,
    /// The sentence whose likelihood is read; absent where yes or no is.
    sentence: Option<String>,
}

/// What the model says to it.
struct Reading {
    /// Log-odds of yes, or nats of a token.
    value: f64,
    /// As in [`QuestionAnswer::raw`].
    raw: f64,
    neither: f64,
}

impl Ask {
    /// All that can be asked: each question by yes and no, and what is expected by likelihood.
    fn all(model: &dyn ChatModel, case: &GeneratedCase, questions: &[Question]) -> Vec<Self> {
        let yes_no = questions.iter().cloned().map(|question| Self { question, sentence: None });
        let sentences = if model.tells_likelihoods() { sentences(case) } else { Vec::new() };
        let by_likelihood = sentences.into_iter().filter_map(|(expectation, sentence)| {
            let text = format!("Does the answer make this likelier? {sentence}");
            // The last question is about an expectation, or the hints.
            let category = questions.last()?.category.clone();
            let question = Question { category, expectation, text };
            Some(Self { question, sentence: Some(sentence) })
        });
        yes_no.chain(by_likelihood).collect()
    }

    fn by(&self) -> AnsweredBy {
        if self.sentence.is_some() { AnsweredBy::Likelihood } else { AnsweredBy::Model }
    }
}

#[derive(Serialize)]
struct Values<'a> {
    excerpts: Vec<Excerpt>,
    facts: Option<String>,
    reference: Option<String>,
    conversation: Option<String>,
    request: String,
    answer: String,
    question: &'a str,
}

/// What is said of an answer.
#[derive(Clone, Copy)]
struct Answer<'a> {
    text: &'a str,
    /// Whether the calls of tools of the evidence led to it.
    is_real: bool,
}

impl<'a> Answer<'a> {
    /// That of the system under test.
    fn of(evidence: &'a Evidence) -> Self {
        Self { text: &evidence.output, is_real: true }
    }

    /// One to compare with.
    const fn supposed(text: &'a str) -> Self {
        Self { text, is_real: false }
    }
}

impl Questioner {
    pub(super) fn new(context_tokens: u32, max_prompt_tokens: u32) -> Self {
        Self { anchors: Mutex::default(), context_tokens, max_prompt_tokens, quotes: true }
    }

    pub(super) fn quoting(self, quotes: bool) -> Self {
        Self { quotes, ..self }
    }

    /// Asks every question about the answer in the evidence.
    pub(super) async fn ask(
        &self,
        model: &dyn ChatModel,
        library: &PromptLibrary,
        evidence: &Evidence,
        questions: &[Question],
        calls: &mut Vec<CallRecord>,
    ) -> Result<Vec<QuestionAnswer>, AskError> {
        let asks = Ask::all(model, &evidence.case, questions);
        let anchors = self.anchors(model, library, evidence, &asks, calls).await?;
        let answer = Answer::of(evidence);
        let said = self.read(model, library, evidence, answer, &asks, calls).await?;
        let answers = asks.into_iter().zip(said).zip(anchors);
        Ok(answers
            .map(|((ask, said), zero)| QuestionAnswer {
                by: ask.by(),
                question: ask.question,
                raw: said.raw,
                neither: said.neither,
                relative: said.value - zero,
            })
            .collect())
    }

    /// What is read of answers that say nothing, and of the reference; asked once for each request.
    async fn anchors(
        &self,
        model: &dyn ChatModel,
        library: &PromptLibrary,
        evidence: &Evidence,
        asks: &[Ask],
        calls: &mut Vec<CallRecord>,
    ) -> Result<Vec<f64>, AskError> {
        let nothing = Answer::supposed("");
        let (request, _) = render(library, TEMPLATE, evidence, nothing, "", self.quotes)
            .map_err(|error| unusable(&error))?;
        let texts: Vec<_> =
            asks.iter().map(|ask| (ask.question.text.as_str(), &ask.sentence)).collect();
        let reference = evidence.case.grounds.reference.as_deref();
        let key = json!([request.system, request.user, texts, reference]);
        let key = digest::of_json(key);
        let known = self.anchors.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(anchors) = known {
            return Ok(anchors);
        }
        let mut nothing = vec![Vec::new(); asks.len()];
        for contentless in CONTENTLESS {
            let answer = Answer::supposed(contentless);
            let said = self.read(model, library, evidence, answer, asks, calls).await?;
            for (nothing, said) in nothing.iter_mut().zip(said) {
                nothing.push(said.value);
            }
        }
        let mut anchors: Vec<f64> =
            nothing.iter().map(|said| mean(said).unwrap_or_default()).collect();
        if let Some(reference) = reference {
            let answer = Answer::supposed(reference);
            let said = self.read(model, library, evidence, answer, asks, calls).await?;
            for (anchor, said) in anchors.iter_mut().zip(said) {
                *anchor = f64::midpoint(*anchor, said.value);
            }
        }
        let mut all = self.anchors.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key, anchors.clone());
        Ok(anchors)
    }

    /// Why a question got a no, in the model's words on one line: for people, never for the gate.
    /// None where the model has nothing to say.
    pub(super) async fn explain(
        &self,
        model: &dyn ChatModel,
        library: &PromptLibrary,
        evidence: &Evidence,
        question: &str,
        calls: &mut Vec<CallRecord>,
    ) -> Option<String> {
        let answer = Answer::of(evidence);
        let (prompt, _) =
            render(library, EXPLANATION, evidence, answer, question, self.quotes).ok()?;
        let request = ChatRequest {
            sampling: Sampling { temperature: 0.0, max_tokens: EXPLANATION_TOKENS, seed: 0 },
            first_token: None,
            ..ChatRequest::first_token(prompt, Vec::new(), 0, self.context_tokens)
        };
        let (record, reply) = call(model, &request).await;
        calls.push(record);
        let words = selftest_text::one_line(&reply.ok()?.text, 300);
        // One sentence is asked for; small models go on.
        let sentence = words.split_inclusive(". ").next().unwrap_or_default().trim();
        sentence.contains(char::is_alphanumeric).then(|| sentence.to_owned())
    }

    /// What the model says to each of these about this answer.
    async fn read(
        &self,
        model: &dyn ChatModel,
        library: &PromptLibrary,
        evidence: &Evidence,
        answer: Answer<'_>,
        asks: &[Ask],
        calls: &mut Vec<CallRecord>,
    ) -> Result<Vec<Reading>, AskError> {
        let mut said = Vec::with_capacity(asks.len());
        for ask in asks {
            let question = if ask.sentence.is_some() { "" } else { ask.question.text.as_str() };
            let render = |answer| {
                let (prompt, cuts) =
                    render(library, TEMPLATE, evidence, answer, question, self.quotes)
                        .map_err(|error| unusable(&error))?;
                let tokens = estimate_tokens(&prompt.system) + estimate_tokens(&prompt.user);
                Ok::<_, AskError>((prompt, cuts, tokens))
            };
            let (mut prompt, mut cuts, mut tokens) = render(answer)?;
            if tokens > self.max_prompt_tokens && answer.is_real {
                // It is judged without its calls rather than not at all.
                (prompt, cuts, tokens) = render(Answer::supposed(answer.text))?;
            }
            if tokens > self.max_prompt_tokens {
                let detail = format!(
                    "the prompt takes about {tokens} tokens, judge.max_prompt_tokens is {}",
                    self.max_prompt_tokens
                );
                return Err(AskError {
                    prompt_too_long: true,
                    ..failed(UnscoredReason::Truncated, detail)
                });
            }
            let context = self.context_tokens;
            let request = match &ask.sentence {
                None => ChatRequest::first_token(prompt, cuts, 0, context),
                Some(sentence) => ChatRequest::likelihood(prompt, cuts, sentence.clone(), context),
            };
            let (record, reply) = call(model, &request).await;
            calls.push(record);
            let reply =
                reply.map_err(|error| failed(UnscoredReason::of(&error), error.to_string()))?;
            said.push(ask.reading(&reply)?);
        }
        Ok(said)
    }
}

impl Ask {
    fn reading(&self, reply: &ChatReply) -> Result<Reading, AskError> {
        let cannot_tell = |detail| failed(UnscoredReason::CantTell, detail);
        if self.sentence.is_some() {
            let likelihood = reply.likelihood.map(Likelihood::per_token);
            let value = likelihood
                .filter(|value| value.is_finite())
                .ok_or_else(|| cannot_tell(format!("no likelihood to `{}`", self.question.text)))?;
            return Ok(Reading { value, raw: value.exp(), neither: 0.0 });
        }
        let read = reply.first_token.as_deref().and_then(YesNo::of).ok_or_else(|| {
            cannot_tell(format!("neither yes nor no to `{}`", self.question.text))
        })?;
        Ok(Reading { value: read.log_odds(), raw: read.share(), neither: read.neither() })
    }
}

/// What a good answer makes likelier, with the number of the expectation.
fn sentences(case: &GeneratedCase) -> Vec<(Option<u32>, String)> {
    let grounds = &case.grounds;
    let line = |text: &str| selftest_text::one_line(text, MAX_EXPECTATION);
    let expected = grounds.expectations.iter().zip(1..);
    let mut all: Vec<_> = expected.map(|(text, number)| (Some(number), line(text))).collect();
    let others = if all.is_empty() { Some(case.hints.as_str()) } else { None };
    let others = others.into_iter().chain(grounds.reference.as_deref());
    all.extend(others.map(|text| (None, line(text))).filter(|(_, text)| !text.trim().is_empty()));
    all
}

fn unusable(error: &PromptError) -> AskError {
    failed(UnscoredReason::Unavailable, error.to_string())
}

fn failed(reason: UnscoredReason, detail: String) -> AskError {
    AskError { reason, detail, prompt_too_long: false, server_failed: false }
}

/// The prompt of one question, and the places where it may be cut.
fn render(
    library: &PromptLibrary,
    template: &str,
    evidence: &Evidence,
    answer: Answer<'_>,
    question: &str,
    quotes: bool,
) -> Result<(Rendered, Vec<usize>), PromptError> {
    let quote = |text: &str| if quotes { quote(text) } else { text.to_owned() };
    let grounds = &evidence.case.grounds;
    let excerpts = grounds.excerpts.iter().map(|excerpt| Excerpt {
        path: selftest_text::one_line(&excerpt.path, 200),
        text: quote(&excerpt.text),
    });
    let mut conversation: Vec<String> = Vec::new();
    for exchange in &evidence.conversation {
        conversation.push(format!("User:\n{}", quote(&exchange.said)));
        conversation.push(format!("Assistant:\n{}", quote(&exchange.answered)));
    }
    let calls = if answer.is_real { &evidence.tool_calls[..] } else { &[] };
    let calls = tool_calls::render(library, calls, quote)?;
    let request = evidence.reply.as_ref().unwrap_or(&evidence.case.prompt);
    let values = Values {
        excerpts: excerpts.collect(),
        facts: (!grounds.facts.is_empty()).then(|| quote(&grounds.facts.join("\n"))),
        reference: grounds.reference.as_deref().map(quote),
        conversation: (!conversation.is_empty()).then(|| conversation.join("\n")),
        request: quote(request),
        answer: match calls {
            Some(calls) => format!("{}\n\n{calls}", quote(answer.text)),
            None => quote(answer.text),
        },
        question,
    };
    let Rendered { system, user } = library.render(template, &values)?;
    let (user, cuts) = cut(user);
    Ok((Rendered { system, user }, cuts))
}

/// Takes the marks out of a text; the offsets where they stood. No quote can hold one at the
/// beginning of a line.
fn cut(mut text: String) -> (String, Vec<usize>) {
    let mut cuts = Vec::new();
    for mark in MARKS {
        let begun = cuts.last().copied().unwrap_or(0);
        let at = text[begun..].match_indices(mark).map(|(at, _)| begun + at);
        let at = at.into_iter().find(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n');
        if let Some(at) = at {
            text.replace_range(at..at + mark.len(), "");
            cuts.push(at);
        }
    }
    (text, cuts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_its_marks() {
        let (text, cuts) =
            cut("a\n<!-- answer -->\nb\n> <!-- question -->\n<!-- question -->\nc".into());
        assert_eq!(text, "a\nb\n> <!-- question -->\nc");
        assert_eq!(cuts.iter().map(|at| &text[*at..=*at]).collect::<String>(), "bc");
        assert_eq!(cut("no marks".into()), ("no marks".to_owned(), vec![]));
    }
}
