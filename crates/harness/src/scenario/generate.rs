//! The generator: asks a model for a request about an excerpt together with facts about the right
//! answer. Rejects replies that are unsafe, useless, repeated, or not grounded in the excerpt.
//!
//! If no reply can be used, the request is built from a template, and a note says so. A case
//! remains without a prompt only if its model did not answer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::example::{self, PromptExample};
use super::ground::{BUILT_IN_PATH, ExcerptSources, SourceFile, SourcePassage, find_quote};
use super::rejection::{self, ExampleMark, PromptIndex, PromptMaterial, prompt_digest};
use super::{AnswerForm, GeneratorSettings, ScenarioKind, SeededDraw, settled, template};
use selftest_checks::scenario::{CaseGrounds, GeneratedCase, Scenario, TaskStatus};
use selftest_models::prompts::{PromptError, PromptLibrary, RenderedPrompt};
use selftest_models::{
    CallRecord, ChatModel, ChatReply, ChatRequest, FinishReason, ModelError, ReplySchema,
    SamplingParameters, ThinkingMode, call_and_record,
};
use selftest_text::words::fold;

/// Minimum similarity of near-duplicate prompts (docs/spec/skills-and-signals.md#repetition: over
/// 0.5).
const NEAR_DUPLICATE: f64 = 0.5;
/// Maximum length in characters of a generated prompt, and of its hints.
const MAX_FIELD: usize = 4000;
/// Maximum number of expectations of a generated case.
const MAX_EXPECTATIONS: usize = 4;
/// The template for scenarios that have none.
const GENERIC: &str = "generator/generic.md";

/// Generates cases from scenarios.
pub struct Generator {
    /// Absent if all cases are built from templates.
    writer: Option<PromptWriter>,
    material: GeneratorMaterial,
    earlier: Mutex<PromptIndex>,
}

/// The model that writes prompts.
struct PromptWriter {
    model: Arc<dyn ChatModel>,
    settings: GeneratorSettings,
    context_tokens: u32,
}

/// The material that cases are built from.
#[derive(Debug, Clone, Default)]
pub struct GeneratorMaterial {
    /// Names of files that prompts may refer to, for templates that list them.
    pub project_files: Vec<String>,
    /// The texts that cases are about.
    pub sources: ExcerptSources,
    /// Digests of the prompts of earlier runs, which are not repeated.
    pub asked_before: BTreeSet<String>,
}

/// No case could be generated.
#[derive(Debug, thiserror::Error)]
pub enum GeneratorError {
    /// The template of the prompt cannot be rendered.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The model gave no reply.
    #[error("{model}: {source}")]
    Model {
        /// Full name of the model.
        model: String,
        /// The model's error.
        source: ModelError,
    },
    /// The model wrote no usable prompt, and none can be built from the project.
    #[error("no template fits the project")]
    NoTemplate,
}

/// A reply is unusable. The next attempt quotes the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableReplyError(String);

impl UnusableReplyError {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// A generated case with notes on its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationOutput {
    /// The case.
    pub case: GeneratedCase,
    /// Notes for the reports.
    pub notes: Vec<String>,
}

/// One attempt of the generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerationAttempt {
    /// The call.
    pub call: CallRecord,
    /// The reason why the prompt was rejected. Absent for the prompt that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

impl GenerationOutput {
    fn new(case: GeneratedCase, why: Option<String>) -> Self {
        let mut notes: Vec<String> = why.into_iter().collect();
        if case.grounds.excerpts.iter().any(|excerpt| excerpt.path == BUILT_IN_PATH) {
            let built_in = "the project has no text to ask about: the case is about a built-in one";
            notes.push(built_in.to_owned());
        }
        Self { case, notes }
    }
}

#[derive(Serialize)]
struct GeneratorValues<'a> {
    description: &'a str,
    expected_status: &'a str,
    project_files: &'a [String],
    rejected: Option<&'a str>,
    path: &'a str,
    excerpt: &'a str,
    form: Option<String>,
    examples: &'a [PromptExample],
}

/// The subject of one attempt, chosen by seed and not by the model.
struct GenerationTry {
    kind: ScenarioKind,
    passage: SourcePassage,
    form: Option<AnswerForm>,
    examples: Vec<PromptExample>,
    seed: u64,
    /// The reason why the previous reply was rejected.
    rejected: Option<String>,
}

/// The outcome of one attempt.
enum TryOutcome {
    Usable(GeneratedCase),
    /// An unusable reply. The next attempt may succeed.
    Rejected(String),
    /// An error of the model, which ends the case.
    Failed(GeneratorError),
}

impl TryOutcome {
    fn rejection(&self) -> Option<String> {
        match self {
            Self::Usable(_) => None,
            Self::Rejected(why) => Some(why.clone()),
            Self::Failed(error) => Some(error.to_string()),
        }
    }
}

/// A reply of the generator. The field names sort into the order in which the fields are best
/// written, because some servers sort them: quotes first, then the request based on them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct GeneratedReply {
    /// Quotes from the excerpt.
    #[serde(default)]
    pub facts: Vec<String>,
    /// Hints for the judge.
    pub hints: String,
    /// The request.
    pub prompt: String,
    /// Yes/no criteria of a good answer.
    #[serde(default, rename = "requirements", alias = "expectations")]
    pub expectations: Vec<String>,
}

/// Returns the template for a scenario, or `None` if the harness builds the request itself. A
/// scenario's own template takes precedence.
fn template_name(library: &PromptLibrary, scenario: &Scenario) -> Option<String> {
    let own = own_template(scenario);
    if library.digests().contains_key(&own) {
        return Some(own);
    }
    (!ScenarioKind::of(scenario).is_constructed()).then(|| GENERIC.to_owned())
}

fn own_template(scenario: &Scenario) -> String {
    format!("generator/{}.md", scenario.id)
}

/// Loads the templates that these scenarios need.
pub fn load_templates(
    library: &mut PromptLibrary,
    scenarios: &[Scenario],
) -> Result<(), PromptError> {
    for scenario in scenarios {
        if !library.load(&own_template(scenario))? && !ScenarioKind::of(scenario).is_constructed() {
            library.load(GENERIC)?;
        }
    }
    Ok(())
}

/// Returns the schema of a generator's reply, with facts limited to these quotes.
pub fn reply_schema(quotes: &[String]) -> Value {
    json!({
        "type": "object",
        "properties": {
            "facts": {
                "type": "array",
                "items": { "enum": quotes },
                "minItems": 1,
                "maxItems": 2,
                "description": "sentences of the text, letter by letter",
            },
            "hints": {
                "type": "string",
                "maxLength": 200,
                "description": "what a good answer says",
            },
            "prompt": { "type": "string", "maxLength": 240, "description": "the request" },
            "requirements": {
                "type": "array",
                "items": { "type": "string", "maxLength": 120 },
                "minItems": 2,
                "maxItems": 3,
                "description": "statements that hold of a good answer",
            },
        },
        "required": ["facts", "hints", "prompt", "requirements"],
        "additionalProperties": false,
    })
}

impl Generator {
    /// Creates a generator. `context_tokens` is the context window.
    pub fn new(
        model: Arc<dyn ChatModel>,
        settings: GeneratorSettings,
        context_tokens: u32,
        material: GeneratorMaterial,
    ) -> Self {
        // Compiling the rules takes longer than a fast model needs to reply, so it starts early.
        std::thread::spawn(|| rejection::violations(""));
        let writer = Some(PromptWriter { model, settings, context_tokens });
        Self { writer, material, earlier: Mutex::default() }
    }

    /// Creates a generator without a model. It builds cases whose right answer the harness knows, and
    /// checks that settle them.
    pub fn of_templates(material: GeneratorMaterial) -> Self {
        Self { writer: None, material, earlier: Mutex::default() }
    }

    /// Asks the model until a prompt is usable, at most `max_attempts` times, and then falls back
    /// to a template. Each attempt is added to `attempts`. `own` are the user's grounds for the
    /// scenario; if they contain excerpts, the case is about one of these. `seed` gives the seed of
    /// an attempt; `on_rejected` receives each rejection.
    pub async fn generate(
        &self,
        library: &PromptLibrary,
        scenario: &Scenario,
        own: &CaseGrounds,
        attempts: &mut Vec<GenerationAttempt>,
        seed: impl Fn(u32) -> u64,
        on_rejected: impl Fn(u32, &str),
    ) -> Result<GenerationOutput, GeneratorError> {
        let named = own.excerpts.iter().cloned();
        let named =
            ExcerptSources::new(named.map(|one| SourceFile { path: one.path, text: one.text }));
        // A scenario that names files is about these, and about no other file of the project.
        let sources = if named.is_empty() { &self.material.sources } else { &named };
        let kind = ScenarioKind::of(scenario);
        let is_new = |prompt: &str| !self.is_repeated(prompt);
        let Some(writer) = &self.writer else {
            let mut draw = SeededDraw::new(seed(1));
            let case = settled::case(kind, sources, &mut draw, is_new);
            return self.built(case, None);
        };
        let mut last = None;
        let tries = writer.settings.max_attempts;
        if let Some(name) = template_name(library, scenario) {
            for number in 1..=tries {
                // The retry states why the last prompt was rejected.
                let attempt = GenerationTry::new(scenario, sources, seed(number), last.take());
                let (call, outcome) = self.ask(writer, library, &name, scenario, &attempt).await?;
                let rejected = outcome.rejection();
                attempts.push(GenerationAttempt { call, rejected });
                match outcome {
                    TryOutcome::Usable(case) => return Ok(GenerationOutput::new(case, None)),
                    TryOutcome::Failed(error) => return Err(error),
                    TryOutcome::Rejected(why) => {
                        on_rejected(number, &why);
                        last = Some(why);
                    }
                }
            }
        }
        // The next seed after those of the attempts.
        let mut draw = SeededDraw::new(seed(tries.saturating_add(1)));
        let case = template::case(kind, sources, &mut draw, is_new);
        let why = last.map(|last| {
            let last = selftest_text::one_line(&last, 160);
            let silent = match kind {
                ScenarioKind::Other(_) => "; it does not know the scenario's description",
                _ => "",
            };
            format!(
                "prompt from a template, because: none of {tries} from {} could be used, the last: \
                 {last}{silent}",
                writer.model.id()
            )
        });
        self.built(case, why)
    }

    /// Registers the prompt of a case that the harness built, with the reason why it did.
    fn built(
        &self,
        case: Option<GeneratedCase>,
        why: Option<String>,
    ) -> Result<GenerationOutput, GeneratorError> {
        let case = case.ok_or(GeneratorError::NoTemplate)?;
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        earlier.add(case.prompt.clone());
        drop(earlier);
        Ok(GenerationOutput::new(case, why))
    }

    /// Makes one attempt with this template. The error is one of the template.
    async fn ask(
        &self,
        writer: &PromptWriter,
        library: &PromptLibrary,
        name: &str,
        scenario: &Scenario,
        attempt: &GenerationTry,
    ) -> Result<(CallRecord, TryOutcome), GeneratorError> {
        let excerpt = &attempt.passage.excerpt;
        let values = GeneratorValues {
            description: &scenario.description,
            expected_status: scenario.expected_status.as_str(),
            project_files: &self.material.project_files,
            rejected: attempt.rejected.as_deref(),
            path: &excerpt.path,
            excerpt: &excerpt.text,
            form: attempt.form.map(AnswerForm::phrase),
            examples: &attempt.examples,
        };
        let rendered = library.render(name, &values)?;
        let told = PromptInstructions::new(&rendered, attempt);
        let GeneratorSettings { temperature, max_tokens, think, think_tokens, .. } =
            writer.settings;
        let sampling = SamplingParameters { temperature, max_tokens, seed: attempt.seed };
        let schema = ReplySchema {
            name: "generated_case",
            schema: Arc::new(reply_schema(&attempt.passage.quotes)),
        };
        let request = ChatRequest::structured(rendered, &schema, sampling, writer.context_tokens)
            .with_thinking(ThinkingMode::from_settings(think, think_tokens));
        let (call, reply) = call_and_record(&*writer.model, &request).await;
        // The transport has retried already.
        let outcome = match reply {
            Ok(reply) => match self.accept(&reply, attempt, &told) {
                Ok(case) => TryOutcome::Usable(case),
                Err(UnusableReplyError(why)) => TryOutcome::Rejected(why),
            },
            Err(error) => TryOutcome::Failed(GeneratorError::Model {
                model: writer.model.id().to_owned(),
                source: error,
            }),
        };
        Ok((call, outcome))
    }

    /// Parses a reply and checks it against the rules, the excerpt and the earlier prompts.
    fn accept(
        &self,
        reply: &ChatReply,
        attempt: &GenerationTry,
        told: &PromptInstructions,
    ) -> Result<GeneratedCase, UnusableReplyError> {
        let mut reply = match &reply.finish {
            FinishReason::Stop => read_reply(&reply.text)?,
            FinishReason::Length => {
                return Err(UnusableReplyError::new("the reply was cut by generator.max_tokens"));
            }
            FinishReason::Repeated => {
                return Err(UnusableReplyError::new("the reply repeated itself without end"));
            }
            FinishReason::UnfinishedThinking => {
                return Err(UnusableReplyError::new("the reply ended within its thinking"));
            }
            FinishReason::Refusal(words) => {
                return Err(UnusableReplyError(format!("the model refused: {words}")));
            }
            FinishReason::Other(word) => {
                return Err(UnusableReplyError(format!("the reply ended with `{word}`")));
            }
        };
        let shown = PromptMaterial { instructions: &told.instructions, examples: &told.marks };
        if let Some(why) = rejection::rejection_reason(&reply.prompt, &shown) {
            return Err(UnusableReplyError(why));
        }
        // The judge reads the hints: about another text they would fail a right answer.
        if let Some(mark) = rejection::find_copied_mark(&reply.hints, &told.marks) {
            return Err(UnusableReplyError(format!("the hints copy an example: {mark}")));
        }
        // Criteria copied from an example are dropped; the reply may still be usable.
        reply
            .expectations
            .retain(|written| rejection::find_copied_mark(written, &told.marks).is_none());
        if told.excerpt
            && let Some(name) =
                rejection::find_invented_name(&reply.prompt, &attempt.passage.excerpt)
        {
            return Err(UnusableReplyError(format!(
                "the prompt names `{name}`, which the excerpt does not have"
            )));
        }
        // Near-duplicates are detected in what the model wrote, without the wording added below.
        let asked = reply.prompt.clone();
        let case = if told.excerpt {
            attempt.grounded(reply)?
        } else {
            let GeneratedReply { prompt, hints, .. } = reply;
            GeneratedCase { prompt, hints, ..GeneratedCase::default() }
        };
        let broken = rejection::violations(&case.prompt);
        if !broken.is_empty() {
            return Err(UnusableReplyError(format!("unsafe prompt ({})", broken.join(", "))));
        }
        if self.material.asked_before.contains(&prompt_digest(&case.prompt)) {
            return Err(UnusableReplyError::new("an earlier run asked the same"));
        }
        // Compared and added under one lock, so that two concurrent twins cannot both pass.
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prompt) = earlier.near_duplicate(&asked, NEAR_DUPLICATE) {
            let prompt = selftest_text::one_line(prompt, 120);
            return Err(UnusableReplyError(format!("too similar to an earlier prompt: {prompt}")));
        }
        earlier.add(asked);
        Ok(case)
    }

    /// Registers prompts of cases that finished before the run was interrupted, so that they are
    /// not repeated.
    pub fn register_prompts<'a>(&self, prompts: impl IntoIterator<Item = &'a str>) {
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        prompts.into_iter().for_each(|prompt| earlier.add(prompt.to_owned()));
    }

    /// Returns true if the prompt was asked in this run or an earlier one.
    fn is_repeated(&self, prompt: &str) -> bool {
        let earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        self.material.asked_before.contains(&prompt_digest(prompt)) || earlier.contains(prompt)
    }
}

/// The instructions that the model received, for detecting leaks.
struct PromptInstructions {
    /// Everything except the excerpt and the wording of the form, which a request may repeat.
    instructions: String,
    marks: Vec<ExampleMark>,
    /// True if the prompt contained the excerpt; a project's own template may omit it.
    excerpt: bool,
}

impl PromptInstructions {
    fn new(rendered: &RenderedPrompt, attempt: &GenerationTry) -> Self {
        let all = format!("{}\n{}", rendered.system, rendered.user);
        let excerpt = &attempt.passage.excerpt.text;
        // A request may repeat words of the excerpt, but not those of the instructions.
        let (mut instructions, has_excerpt) = without(&all, excerpt);
        if let Some(form) = attempt.form {
            // The request should repeat the form it was given.
            instructions = instructions.replace(&form.phrase(), "\n");
        }
        // A project's own template may show no examples, and a project may share a topic with one
        // of them.
        let marks = attempt.examples.iter().flat_map(PromptExample::marks);
        let is_shown = |mark: &&str| memmem::find(all.as_bytes(), mark.as_bytes()).is_some();
        let marks = marks.filter(is_shown).map(ExampleMark::new);
        let mut marks: Vec<ExampleMark> = marks.collect();
        // A word that the excerpt has itself betrays no copy.
        while let Some(known) = rejection::find_copied_mark(excerpt, &marks).map(str::to_owned) {
            marks.retain(|mark| mark.text() != known);
        }
        Self { instructions, marks, excerpt: has_excerpt }
    }
}

/// Replaces each occurrence of a part with a line break, and returns true if the text contains it.
/// In long texts `memchr` takes a fraction of the time of `str`.
fn without(text: &str, part: &str) -> (String, bool) {
    let (mut rest, mut from) = (String::with_capacity(text.len()), 0);
    for at in memmem::find_iter(text.as_bytes(), part).filter(|_| !part.is_empty()) {
        rest.push_str(&text[from..at]);
        rest.push('\n');
        from = at + part.len();
    }
    rest.push_str(&text[from..]);
    (rest, part.is_empty() || from > 0)
}

impl GenerationTry {
    fn new(
        scenario: &Scenario,
        sources: &ExcerptSources,
        seed: u64,
        rejected: Option<String>,
    ) -> Self {
        let (kind, mut draw) = (ScenarioKind::of(scenario), SeededDraw::new(seed));
        let passage = sources.passage(&mut draw);
        let form = kind.form(&passage, &mut draw);
        let examples = example::examples(kind, form, &mut draw);
        Self { kind, passage, form, examples, seed, rejected }
    }

    /// Builds a case from a reply, with verified quotes and a request that names its subject.
    fn grounded(&self, reply: GeneratedReply) -> Result<GeneratedCase, UnusableReplyError> {
        let excerpt = &self.passage.excerpt;
        let quoted = |fact: &String| find_quote(&excerpt.text, fact);
        let mut facts: Vec<String> = Vec::new();
        for fact in reply.facts.iter().filter_map(quoted) {
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
        // Without a verified quote, the case would rest on the model's claims.
        if facts.is_empty() {
            return Err(UnusableReplyError(format!(
                "none of its facts is a quote from {}",
                excerpt.path
            )));
        }
        // A request that contains its own answer tests nothing.
        facts.retain(|fact| !rejection::contains_quote(&reply.prompt, fact));
        let Some(fact) = facts.first() else {
            return Err(UnusableReplyError::new("the prompt gives its facts away"));
        };
        let expectations = self.expectations(&reply, fact);
        let mut prompt = self.clear(reply.prompt)?;
        if self.kind.must_be_clear() || self.kind == ScenarioKind::Reorganization {
            template::attach_text(&mut prompt, &self.passage);
        }
        let excerpts = vec![excerpt.clone()];
        let mut grounds = CaseGrounds { expectations, facts, excerpts, ..CaseGrounds::default() };
        if let Some(form) = self.form {
            form.replace_with_check(&mut grounds);
        }
        Ok(GeneratedCase { prompt, hints: reply.hints, grounds })
    }

    /// Returns the expectations: the form, then the model's own, then the quote.
    fn expectations(&self, reply: &GeneratedReply, fact: &str) -> Vec<String> {
        let first = match self.kind {
            ScenarioKind::Reorganization
            | ScenarioKind::Ambiguous
            | ScenarioKind::Other(TaskStatus::AwaitingResponse) => {
                Some("The answer asks a question back.".to_owned())
            }
            ScenarioKind::Other(TaskStatus::Error) => {
                Some("The answer says that it cannot be done.".to_owned())
            }
            kind => {
                // The harness adds the form to the requests of its own scenarios, and leaves those
                // of users as written.
                let is_asked = |form: &AnswerForm| {
                    kind != ScenarioKind::Other(TaskStatus::Complete)
                        || form.is_requested_in(&reply.prompt)
                };
                self.form.filter(is_asked).map(AnswerForm::expectation)
            }
        };
        let last = self
            .kind
            .must_be_clear()
            .then(|| format!("The answer agrees with this line of the text: “{fact}”"));
        let room = MAX_EXPECTATIONS - usize::from(first.is_some()) - usize::from(last.is_some());
        let written = rejection::usable_criteria(&reply.expectations).into_iter().take(room);
        first.into_iter().chain(written).chain(last).collect()
    }

    /// Completes the prompt with the file, section and form if they are missing.
    fn clear(&self, mut prompt: String) -> Result<String, UnusableReplyError> {
        let source = template::source_wording(&self.passage);
        let folded = fold(&prompt);
        let names_file = folded.contains(&fold(&self.passage.excerpt.path));
        match self.kind {
            ScenarioKind::Summary => {
                let heading = self.passage.heading.as_ref();
                if !names_file || heading.is_some_and(|heading| !folded.contains(&fold(heading))) {
                    prompt +=
                        &format!(" This is about {}.", template::passage_wording(&self.passage));
                }
            }
            ScenarioKind::Evidence => prompt += &format!(" Use no other source than {source}."),
            ScenarioKind::Reorganization if !folded.contains("propos") => {
                prompt += " A proposal only; change nothing.";
            }
            ScenarioKind::Other(TaskStatus::Complete)
                if !names_file && !self.passage.is_built_in() =>
            {
                prompt += &format!(" This is about {source}.");
            }
            _ => {}
        }
        let states_form = matches!(self.kind, ScenarioKind::Summary | ScenarioKind::Evidence);
        if let Some(form) = self.form.filter(|_| states_form) {
            if !form.fits(&folded) {
                return Err(UnusableReplyError(format!(
                    "what the prompt asks cannot be answered {}",
                    form.phrase()
                )));
            }
            if !form.is_requested_in(&prompt) {
                prompt += &format!(" {}", form.instruction());
            }
        }
        Ok(prompt)
    }
}

/// Parses a reply, bare or in a code fence, or the `PROMPT:` / `HINTS:` text of
/// docs/spec/selftest.md#generator-prompts, which may end in `FACTS:` with one per line.
///
/// Unlike the judge's reader it is lenient: a misread prompt makes a useless case, never a false
/// verdict.
pub fn read_reply(reply: &str) -> Result<GeneratedReply, UnusableReplyError> {
    let trimmed = reply.trim();
    // Servers without support for schemas leave the model to wrap its JSON.
    let unfenced = trimmed
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .map_or(trimmed, |rest| rest.strip_prefix("json").unwrap_or(rest).trim());
    let read = match serde_json::from_str::<GeneratedReply>(unfenced) {
        Ok(read) => read,
        // A project's own template may ask for the text form.
        Err(_) => read_marked_text(trimmed).ok_or_else(|| {
            let start = selftest_text::one_line(reply, 120);
            UnusableReplyError(format!("not a prompt with hints: {start}"))
        })?,
    };
    let read = GeneratedReply {
        prompt: read.prompt.trim().to_owned(),
        hints: read.hints.trim().to_owned(),
        ..read
    };
    for (name, field) in [("prompt", &read.prompt), ("hints", &read.hints)] {
        if !field.chars().any(char::is_alphanumeric) {
            return Err(UnusableReplyError(format!("the {name} is empty")));
        }
        if field.chars().count() > MAX_FIELD {
            return Err(UnusableReplyError(format!("the {name} is over {MAX_FIELD} characters")));
        }
    }
    Ok(read)
}

fn read_marked_text(text: &str) -> Option<GeneratedReply> {
    let (_, rest) = text.split_once("PROMPT:")?;
    let (prompt, rest) = rest.split_once("HINTS:")?;
    let (hints, facts) = rest.split_once("FACTS:").unwrap_or((rest, ""));
    let facts = facts.lines().map(|line| line.trim().trim_start_matches("- ").to_owned());
    let facts = facts.filter(|fact| !fact.is_empty()).collect();
    let (prompt, hints) = (prompt.to_owned(), hints.to_owned());
    Some(GeneratedReply { facts, hints, prompt, expectations: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_text_is_taken_out() {
        for (text, part, rest, has) in [
            ("né a né b", "né", "\n a \n b", true),
            ("aaa", "aa", "\na", true),
            ("ab", "ba", "ab", false),
            ("é", "", "é", true),
        ] {
            assert_eq!(without(text, part), (rest.to_owned(), has), "{text}");
        }
    }
    use proptest::prelude::*;

    #[test]
    fn both_forms_are_read() {
        let (prompt, hints) = ("Do x".to_owned(), "Look for y".to_owned());
        let expected = GeneratedReply { hints, prompt, ..GeneratedReply::default() };
        for reply in [
            r#"{"prompt": "Do x", "hints": "Look for y"}"#,
            "```json\n{\"prompt\": \"Do x\", \"hints\": \"Look for y\"}\n```",
            "PROMPT: Do x\nHINTS: Look for y\n",
        ] {
            assert_eq!(read_reply(reply), Ok(expected.clone()), "{reply}");
        }
    }

    #[test]
    fn grounds_are_read_under_either_name() {
        let marked = "PROMPT: Do x\nHINTS: Look for y\nFACTS:\n- One.\nTwo.\n";
        assert_eq!(read_reply(marked).unwrap().facts, ["One.", "Two."]);
        for name in ["requirements", "expectations"] {
            let reply = format!(r#"{{"prompt": "Do x", "hints": "y", "{name}": ["It is so."]}}"#);
            assert_eq!(read_reply(&reply).unwrap().expectations, ["It is so."]);
        }
    }

    /// Servers that sort the keys write them in the order of the schema all the same.
    #[test]
    fn the_names_on_the_wire_are_sorted() {
        let schema = reply_schema(&["A quote.".to_owned()]);
        let names: Vec<&str> =
            schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(names.is_sorted() && names.first() == Some(&"facts"), "{names:?}");
        let prompt = names.iter().position(|name| *name == "prompt");
        assert!(prompt < names.iter().position(|name| *name == "requirements"));
    }

    fn attempt(id: &str, status: &str) -> GenerationTry {
        let scenario = json!({ "id": id, "description": "d", "expected_status": status });
        let text = "# Usage\n\n## Ports\n\nThe server listens on port 7700 by default.\n";
        let source = SourceFile { path: "docs/usage.md".to_owned(), text: text.to_owned() };
        let scenario = serde_json::from_value(scenario).unwrap();
        GenerationTry::new(&scenario, &ExcerptSources::new([source]), 2, None)
    }

    fn reply(prompt: &str, facts: &[&str]) -> GeneratedReply {
        GeneratedReply {
            facts: facts.iter().map(|&fact| fact.to_owned()).collect(),
            hints: "names 7700".to_owned(),
            prompt: prompt.to_owned(),
            expectations: vec!["The answer names the port 7700.".to_owned(), "Bad".to_owned()],
        }
    }

    #[test]
    fn facts_are_quotes_or_nothing() {
        let attempt = attempt("clear_summary", "COMPLETE");
        let fact = "The server listens on port 7700 by default.";
        let of = |facts: &[&str]| attempt.grounded(reply("Summarise the ports.", facts));
        let case = of(&["The server  listens on\nport 7700 by default.", fact, "It is invented."]);
        assert_eq!(case.unwrap().grounds.facts, [fact]);
        assert!(of(&["It is invented."]).unwrap_err().0.contains("docs/usage.md"));
        assert!(of(&[]).is_err());
        let away = format!("Is it right that {fact}");
        assert!(attempt.grounded(reply(&away, &[fact])).unwrap_err().0.contains("away"));
    }

    #[test]
    fn what_a_prompt_lacks_is_added() {
        let fact = "The server listens on port 7700 by default.";
        let summary = attempt("clear_summary", "COMPLETE");
        let case = summary.grounded(reply("Summarise it for me.", &[fact])).unwrap();
        assert!(case.prompt.contains("`docs/usage.md`") && case.prompt.contains("three lines"));
        assert_eq!(
            case.grounds.expectations,
            [
                "The answer names the port 7700.",
                &format!("The answer agrees with this line of the text: “{fact}”")
            ]
        );
        assert_eq!(case.grounds.checks, [AnswerForm::ThreeLines.check().unwrap()]);
        let own = attempt("mine", "AWAITING_RESPONSE");
        let case = own.grounded(reply("Make it better, will you?", &[fact])).unwrap();
        assert_eq!(case.prompt, "Make it better, will you?");
        assert_eq!(case.grounds.expectations[0], "The answer asks a question back.");
    }

    #[test]
    fn the_rest_is_not() {
        for reply in
            ["", "{}", "PROMPT: only", r#"{"prompt": "", "hints": "y"}"#, "HINTS: y PROMPT: x"]
        {
            assert!(read_reply(reply).is_err(), "{reply}");
        }
        let long = format!(r#"{{"prompt": "{}", "hints": "y"}}"#, "x".repeat(5000));
        assert!(read_reply(&long).is_err());
    }

    proptest! {
        #[test]
        fn never_panics(reply in ".*") {
            let _ = read_reply(&reply);
        }
    }
}
