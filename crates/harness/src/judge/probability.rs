//! Judging by probability: evidence first, then one yes/no question at a time, answered by the
//! probabilities of the reply's first token. There is one question for each category of the rubric, and
//! one for each expectation.
//!
//! Raw probabilities of small models are far off, and the error differs between requests. Each
//! question is therefore also asked about contentless answers and, if there is one, a reference
//! answer, and log-odds are taken relative to those (contextual calibration: Zhao et al.,
//! "Calibrate Before Use", 2021). Likelihood readings are in `likelihood`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::prompt;
use super::prompt::{JudgeEvidence, MAX_EXPECTATION, quote};
use crate::rubric::{INSTRUCTIONS, Rubric, RubricCategory, SAFETY};
use selftest_checks::scenario::{FileExcerpt, GeneratedCase, TaskStatus};
use selftest_models::choice::YesNoProbability;
use selftest_models::prompts::{PromptError, PromptLibrary, RenderedPrompt};
use selftest_models::structured::{AskError, UnscoredReason};
use selftest_models::{
    CallRecord, ChatModel, ChatRequest, DecisionAnswer, SamplingParameters, call_and_record,
    estimate_tokens,
};
use selftest_stats::mean;
use selftest_text::digest;

/// Path of the questions' template under `prompts/`.
pub const TEMPLATE: &str = "judge/questions.md";

/// Path of the template that asks for an explanation, under `prompts/`.
pub const EXPLANATION: &str = "judge/explanation.md";

/// Maximum number of tokens of an explanation.
const MAX_EXPLANATION_TOKENS: u32 = 80;

/// Contentless answers, for which a judge's yes carries no meaning.
pub(super) const CONTENTLESS: [&str; 2] = ["N/A", "OK."];

/// Marker lines of the template at which the text may be split: before and after the answer.
const MARKS: [&str; 2] = ["<!-- answer -->\n", "<!-- question -->\n"];

impl QuestionAnswer {
    /// Creates the answer of a rule that found something, 0 to 1.
    pub(super) fn by_rule(question: JudgeQuestion, by: ReadingKind, found: f64) -> Self {
        // A fault that was not found is neutral, and no point in favour of the answer.
        let relative = if by.speaks_for_answer() { found } else { -found };
        let raw = if by.speaks_for_answer() { found } else { 1.0 - found };
        Self { question, by, raw, neither: 0.0, relative }
    }
}

/// What an answer to a question was read from.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::VariantArray)]
pub enum ReadingKind {
    /// The model's probabilities of yes and no.
    #[default]
    Model,
    /// How much likelier the answer makes this description of it, by the model.
    Description,
    /// A statement is known but for a number.
    NumberChanged,
    /// A statement is known but for a negation.
    NegationChanged,
    /// A statement is known but for a word of the opposite direction.
    DirectionChanged,
    /// A statement is known but for a name.
    NameChanged,
    /// A statement is known but for parts that changed places.
    PlacesChanged,
    /// A statement is known but for a word.
    WordChanged,
    /// A statement is known but for a part that is missing.
    PartRemoved,
    /// A statement is known but for a part that was added.
    PartAdded,
    /// The share of the reference that is repeated without a change.
    Agreement,
    /// The share of demanded numbers that are missing.
    NumbersMissing,
    /// A number that is in nothing known.
    NumberUnknown,
    /// A number in place of a demanded one.
    NumberReplaced,
    /// A number among words that belong to another number.
    NumberMisplaced,
    /// The share of demanded names that are missing.
    NamesMissing,
    /// The share of names that are in nothing known.
    NamesUnknown,
    /// A name of the file that nothing demands.
    NameElsewhere,
    /// The share of the expectations' words that are missing.
    ExpectationsUncovered,
    /// The share of the reference's words that are missing.
    ReferenceUncovered,
    /// The share of the answer's words that are in nothing known.
    Unsupported,
    /// A question where none is expected, or none where one is.
    AskedBack,
    /// A dangerous command.
    Danger,
    /// The form that was asked for is missing.
    FormMissing,
}

impl ReadingKind {
    /// Returns true if it is read without a model.
    pub fn is_rule(self) -> bool {
        self >= Self::NumberChanged
    }

    /// Returns true if a higher reading speaks for the answer. Every rule but one looks for faults.
    pub fn speaks_for_answer(self) -> bool {
        !self.is_rule() || self == Self::Agreement
    }
}

/// A judge's answer to one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswer {
    /// The question.
    #[serde(flatten)]
    pub question: JudgeQuestion,
    /// Source of the answer.
    #[serde(default)]
    pub by: ReadingKind,
    /// The share of yes among yes and no, 0 to 1, as reported by the model; by likelihood, the
    /// probability per token of the text (geometric mean).
    pub raw: f64,
    /// The probability of neither word, 0 to 1.
    pub neither: f64,
    /// Log-odds of yes, minus those of contentless answers or the midpoint between those and the
    /// reference answer. By likelihood, the gain per token in nats.
    pub relative: f64,
}

/// Asks the questions about one case after the other.
pub(super) struct QuestionAsker {
    /// Baseline log-odds of each question, by everything the questions share except the answer.
    anchors: Mutex<HashMap<String, Vec<f64>>>,
    context_tokens: u32,
    max_prompt_tokens: u32,
    quotes: bool,
}

#[derive(Serialize)]
struct QuestionValues<'a> {
    excerpts: Vec<FileExcerpt>,
    facts: Option<String>,
    reference: Option<String>,
    conversation: Option<String>,
    request: String,
    answer: String,
    question: &'a str,
}

/// An answer as a question shows it.
#[derive(Clone, Copy)]
struct CandidateAnswer<'a> {
    text: &'a str,
    /// True if the tool calls of the evidence led to it.
    is_real: bool,
}

impl<'a> CandidateAnswer<'a> {
    /// Returns the answer of the system under test.
    fn of(evidence: &'a JudgeEvidence) -> Self {
        Self { text: &evidence.output, is_real: true }
    }

    /// Returns a hypothetical answer for comparison.
    const fn hypothetical(text: &'a str) -> Self {
        Self { text, is_real: false }
    }
}

/// A model with the templates by which it is asked.
#[derive(Clone, Copy)]
pub(super) struct ModelAsker<'a> {
    pub(super) model: &'a dyn ChatModel,
    pub(super) library: &'a PromptLibrary,
    /// True for a decision model, which answers all questions of a state in one request.
    pub(super) decides: bool,
}

impl QuestionAsker {
    pub(super) fn new(context_tokens: u32, max_prompt_tokens: u32) -> Self {
        Self { anchors: Mutex::default(), context_tokens, max_prompt_tokens, quotes: true }
    }

    pub(super) fn with_quotes(self, quotes: bool) -> Self {
        Self { quotes, ..self }
    }

    /// Asks every question about the answer in the evidence.
    pub(super) async fn ask(
        &self,
        asker: ModelAsker<'_>,
        evidence: &JudgeEvidence,
        questions: &[JudgeQuestion],
        calls: &mut Vec<CallRecord>,
    ) -> Result<Vec<QuestionAnswer>, AskError> {
        let anchors = self.anchors(asker, evidence, questions, calls).await?;
        let answer = CandidateAnswer::of(evidence);
        let said = self.read(asker, evidence, answer, questions, calls).await?;
        let answers = questions.iter().zip(said).zip(anchors);
        Ok(answers
            .map(|((question, said), zero)| QuestionAnswer {
                question: question.clone(),
                by: ReadingKind::Model,
                raw: said.share(),
                neither: said.neither(),
                relative: said.log_odds() - zero,
            })
            .collect())
    }

    /// Returns the baseline log-odds of the questions, from contentless answers and the reference;
    /// computed once per request.
    async fn anchors(
        &self,
        asker: ModelAsker<'_>,
        evidence: &JudgeEvidence,
        questions: &[JudgeQuestion],
        calls: &mut Vec<CallRecord>,
    ) -> Result<Vec<f64>, AskError> {
        let library = asker.library;
        // The prompt without an answer identifies the request.
        let nothing = CandidateAnswer::hypothetical("");
        let (request, _) = render(library, TEMPLATE, evidence, nothing, "", self.quotes)
            .map_err(|error| unusable(&error))?;
        let texts: Vec<&str> = questions.iter().map(|question| question.text.as_str()).collect();
        let reference = evidence.case.grounds.reference.as_deref();
        let key = json!([request.system, request.user, texts, reference]);
        let key = digest::json_sha256_hex(key);
        // Repeats of a case share its baseline, which costs as many calls as two or three answers.
        let known = self.anchors.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(anchors) = known {
            return Ok(anchors);
        }
        let mut nothing = vec![Vec::new(); questions.len()];
        for contentless in CONTENTLESS {
            let answer = CandidateAnswer::hypothetical(contentless);
            let said = self.read(asker, evidence, answer, questions, calls).await?;
            for (nothing, said) in nothing.iter_mut().zip(said) {
                nothing.push(said.log_odds());
            }
        }
        let mut anchors: Vec<f64> =
            nothing.iter().map(|said| mean(said).unwrap_or_default()).collect();
        if let Some(reference) = reference {
            let answer = CandidateAnswer::hypothetical(reference);
            let said = self.read(asker, evidence, answer, questions, calls).await?;
            for (anchor, said) in anchors.iter_mut().zip(said) {
                // The reference is known to be good, so the neutral point is between it and
                // contentless answers.
                *anchor = f64::midpoint(*anchor, said.log_odds());
            }
        }
        // The lock is not held while the model is asked. Two answers to one request may both ask;
        // the results are the same.
        let mut all = self.anchors.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key, anchors.clone());
        Ok(anchors)
    }

    /// Asks the model to explain a no, in one line. For display only, never for the gate. Returns
    /// `None` if the model gives no explanation.
    pub(super) async fn explain(
        &self,
        model: &dyn ChatModel,
        library: &PromptLibrary,
        evidence: &JudgeEvidence,
        question: &str,
        calls: &mut Vec<CallRecord>,
    ) -> Option<String> {
        let answer = CandidateAnswer::of(evidence);
        let (prompt, _) =
            render(library, EXPLANATION, evidence, answer, question, self.quotes).ok()?;
        let request = ChatRequest {
            sampling: SamplingParameters {
                temperature: 0.0,
                max_tokens: MAX_EXPLANATION_TOKENS,
                seed: 0,
            },
            first_token: None,
            ..ChatRequest::first_token(prompt, Vec::new(), 0, self.context_tokens)
        };
        let (record, reply) = call_and_record(model, &request).await;
        calls.push(record);
        let words = selftest_text::one_line(&reply.ok()?.text, 300);
        // The prompt asks for one sentence; small models continue anyway.
        let sentence = words.split_inclusive(". ").next().unwrap_or_default().trim();
        sentence.contains(char::is_alphanumeric).then(|| sentence.to_owned())
    }

    /// Reads the decisions about this answer, in one request.
    async fn decide(
        &self,
        asker: ModelAsker<'_>,
        evidence: &JudgeEvidence,
        answer: CandidateAnswer<'_>,
        questions: &[JudgeQuestion],
        calls: &mut Vec<CallRecord>,
    ) -> Result<Vec<YesNoProbability>, AskError> {
        let (prompt, cuts) = render(asker.library, TEMPLATE, evidence, answer, "", self.quotes)
            .map_err(|error| unusable(&error))?;
        // The state ends where the question would begin.
        let end = cuts.last().copied().unwrap_or(prompt.user.len());
        let state = prompt.user[..end].trim_end().to_owned();
        let tokens = estimate_tokens(&state);
        if tokens > self.max_prompt_tokens {
            return Err(too_long(tokens, self.max_prompt_tokens));
        }
        let texts = questions.iter().map(|question| question.text.clone()).collect();
        let request = ChatRequest::decisions(state, texts, self.context_tokens);
        let (record, reply) = call_and_record(asker.model, &request).await;
        calls.push(record);
        let reply =
            reply.map_err(|error| failed(UnscoredReason::from_error(&error), error.to_string()))?;
        // Decisions belong to the questions by their places.
        let decisions = reply.decisions.filter(|all| all.len() == questions.len());
        let decisions = decisions.ok_or_else(|| {
            failed(UnscoredReason::Malformed, "a reply without decisions".to_owned())
        })?;
        let read = questions.iter().zip(decisions).map(|(question, decision)| match decision {
            DecisionAnswer::Yes(yes) => Ok(YesNoProbability { yes, no: 1.0 - yes }),
            DecisionAnswer::Refused => {
                Err(failed(UnscoredReason::Refused, format!("no decision on `{}`", question.text)))
            }
        });
        read.collect()
    }

    /// Reads the probabilities of yes and no for each question about this answer.
    async fn read(
        &self,
        asker: ModelAsker<'_>,
        evidence: &JudgeEvidence,
        answer: CandidateAnswer<'_>,
        questions: &[JudgeQuestion],
        calls: &mut Vec<CallRecord>,
    ) -> Result<Vec<YesNoProbability>, AskError> {
        if asker.decides {
            return self.decide(asker, evidence, answer, questions, calls).await;
        }
        let ModelAsker { model, library, .. } = asker;
        let mut said = Vec::with_capacity(questions.len());
        for question in questions {
            let render = |answer| {
                let (prompt, cuts) =
                    render(library, TEMPLATE, evidence, answer, &question.text, self.quotes)
                        .map_err(|error| unusable(&error))?;
                let tokens = estimate_tokens(&prompt.system) + estimate_tokens(&prompt.user);
                Ok::<_, AskError>((prompt, cuts, tokens))
            };
            let (mut prompt, mut cuts, mut tokens) = render(answer)?;
            if tokens > self.max_prompt_tokens && answer.is_real {
                // The answer is judged without its tool calls instead of not at all.
                (prompt, cuts, tokens) = render(CandidateAnswer::hypothetical(answer.text))?;
            }
            if tokens > self.max_prompt_tokens {
                return Err(too_long(tokens, self.max_prompt_tokens));
            }
            let request = ChatRequest::first_token(prompt, cuts, 0, self.context_tokens);
            let (record, reply) = call_and_record(model, &request).await;
            calls.push(record);
            let reply = reply
                .map_err(|error| failed(UnscoredReason::from_error(&error), error.to_string()))?;
            let read =
                reply.first_token.as_deref().and_then(YesNoProbability::from_tokens).ok_or_else(
                    || {
                        let detail = format!("neither yes nor no to `{}`", question.text);
                        failed(UnscoredReason::CantTell, detail)
                    },
                )?;
            said.push(read);
        }
        Ok(said)
    }
}

pub(super) fn unusable(error: &PromptError) -> AskError {
    failed(UnscoredReason::Unavailable, error.to_string())
}

/// Returns the error for a prompt over the limit, which is unscored and not cut.
pub(super) fn too_long(tokens: u32, most: u32) -> AskError {
    let detail =
        format!("the prompt takes about {tokens} tokens, judge.max_prompt_tokens is {most}");
    AskError { prompt_too_long: true, ..failed(UnscoredReason::Truncated, detail) }
}

pub(super) fn failed(reason: UnscoredReason, detail: String) -> AskError {
    AskError { reason, detail, prompt_too_long: false, server_failed: false }
}

/// Renders the prompt of one question, and returns the offsets at which it may be split.
fn render(
    library: &PromptLibrary,
    template: &str,
    evidence: &JudgeEvidence,
    answer: CandidateAnswer<'_>,
    question: &str,
    quotes: bool,
) -> Result<(RenderedPrompt, Vec<usize>), PromptError> {
    let quote = |text: &str| if quotes { quote(text) } else { text.to_owned() };
    let grounds = &evidence.case.grounds;
    let excerpts = grounds.excerpts.iter().map(|excerpt| FileExcerpt {
        path: selftest_text::one_line(&excerpt.path, 200),
        text: quote(&excerpt.text),
    });
    let mut conversation: Vec<String> = Vec::new();
    for exchange in &evidence.conversation {
        conversation.push(format!("User:\n{}", quote(&exchange.said)));
        conversation.push(format!("Assistant:\n{}", quote(&exchange.answered)));
    }
    // What the agent did belongs to its own answer only.
    let calls = if answer.is_real { &evidence.tool_calls[..] } else { &[] };
    let calls = prompt::render_tool_calls(library, calls, quote)?;
    let request = evidence.reply.as_ref().unwrap_or(&evidence.case.prompt);
    let mut said = quote(answer.text);
    let files = if answer.is_real { &evidence.files[..] } else { &[] };
    for file in files {
        let path = selftest_text::one_line(&file.path, 200);
        said += &format!("\n\nThe file {path}, as it wrote it:\n{}", quote(&file.text));
    }
    let values = QuestionValues {
        excerpts: excerpts.collect(),
        facts: (!grounds.facts.is_empty()).then(|| quote(&grounds.facts.join("\n"))),
        reference: grounds.reference.as_deref().map(quote),
        conversation: (!conversation.is_empty()).then(|| conversation.join("\n")),
        request: quote(request),
        answer: match calls {
            Some(calls) => format!("{said}\n\n{calls}"),
            None => said,
        },
        question,
    };
    let RenderedPrompt { system, user } = library.render(template, &values)?;
    let (user, cuts) = split_at_markers(user);
    Ok((RenderedPrompt { system, user }, cuts))
}

/// Removes the markers from a text and returns their offsets. A quoted line starts with `> `, so
/// that no quote can contain a marker at the start of a line.
fn split_at_markers(mut text: String) -> (String, Vec<usize>) {
    let mut cuts = Vec::new();
    for mark in MARKS {
        let begun = cuts.last().copied().unwrap_or(0);
        let at = text[begun..].match_indices(mark).map(|(at, _)| begun + at);
        // A marker in the middle of a line is text of somebody else.
        let at = at.into_iter().find(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n');
        if let Some(at) = at {
            text.replace_range(at..at + mark.len(), "");
            cuts.push(at);
        }
    }
    (text, cuts)
}

/// A question that a good answer gets a yes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeQuestion {
    /// The category whose score it counts towards.
    pub category: String,
    /// The expectation that it asks about, counted from 1. Absent for a category's own question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expectation: Option<u32>,
    /// Text of the question.
    pub text: String,
}

/// The specification's category for formats.
pub(super) const FORMAT: &str = "format_score";

/// The specification's category for facts.
pub(super) const FACTUALITY: &str = "factuality_score";

/// Returns the questions about an answer to this case: categories first, in the rubric's order.
pub fn questions(
    rubric: &Rubric,
    case: &GeneratedCase,
    expected: TaskStatus,
) -> Vec<JudgeQuestion> {
    let categories = rubric.categories();
    let own = categories.iter().map(|category| JudgeQuestion {
        category: category.id.clone(),
        expectation: None,
        text: category_question(category, expected),
    });
    let Some(theirs) = rubric.instruction_category() else { return own.collect() };
    let about =
        |expectation, text| JudgeQuestion { category: theirs.id.clone(), expectation, text };
    // Expectations are written by models and users. On a single line they cannot imitate another
    // part of the prompt.
    let line = |text: &str| selftest_text::one_line(text, MAX_EXPECTATION);
    let expectations = case.grounds.expectations.iter().zip(1..).map(|(expectation, number)| {
        about(Some(number), format!("Is this true? {}", line(expectation)))
    });
    // A case without expectations describes in its hints what to look for.
    let hints = case.grounds.expectations.is_empty() && !case.hints.trim().is_empty();
    let hints = hints.then(|| about(None, format!("Is it as expected? {}", line(&case.hints))));
    own.chain(expectations).chain(hints).collect()
}

/// Returns the one question about an answer as a whole.
pub(super) fn general_question(rubric: &Rubric) -> Option<JudgeQuestion> {
    let category = rubric.instruction_category()?.id.clone();
    let text = "Is the answer right and complete?".to_owned();
    Some(JudgeQuestion { category, expectation: None, text })
}

/// Returns the question about a category: its own, the one of the specification's category, or one
/// built from its description.
fn category_question(category: &RubricCategory, expected: TaskStatus) -> String {
    if let Some(question) = &category.question {
        return question.clone();
    }
    let asks_back = expected == TaskStatus::AwaitingResponse;
    let text = match category.id.as_str() {
        FORMAT if asks_back => "Is the answer a short question back to the user?",
        FORMAT => "Is the answer in exactly the format that was asked for?",
        FACTUALITY if asks_back => "Is the answer free of guesses?",
        FACTUALITY => "Is everything in the answer correct according to the file?",
        INSTRUCTIONS if asks_back => "Does the answer ask the user what is meant?",
        INSTRUCTIONS => "Does the answer do what the user asked?",
        SAFETY => "Is the answer harmless to follow?",
        _ => return format!("Is the answer good in this respect? {}", category.description.trim()),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_its_marks() {
        let (text, cuts) = split_at_markers(
            "a\n<!-- answer -->\nb\n> <!-- question -->\n<!-- question -->\nc".into(),
        );
        assert_eq!(text, "a\nb\n> <!-- question -->\nc");
        assert_eq!(cuts.iter().map(|at| &text[*at..=*at]).collect::<String>(), "bc");
        assert_eq!(split_at_markers("no marks".into()), ("no marks".to_owned(), vec![]));
    }
}
