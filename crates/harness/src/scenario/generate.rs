//! The generator: asks a model for a prompt and hints, and rejects what is unsafe or not new.
//!
//! Never replaces a case silently: after the last try the case has no prompt.

use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::generator_settings::GeneratorSettings;
use super::{GeneratedCase, Scenario, safety};
use selftest_models::prompts::{PromptError, PromptLibrary};
use selftest_models::{
    CallRecord, ChatModel, ChatReply, ChatRequest, Finish, ReplySchema, Sampling, Thinking, call,
};
use selftest_text::words::WordSet;

/// Prompts at least this alike are near-duplicates (docs/spec/skills-and-signals.md#repetition:
/// over 0.5).
const NEAR_DUPLICATE: f64 = 0.5;
/// Most characters of a generated prompt and of its hints.
const FIELD_LIMIT: usize = 4000;
/// Most characters of a prompt that are asked for: a string without a bound rambles.
const PROMPT_ASKED: usize = 1500;
/// Most characters of hints that are asked for.
const HINTS_ASKED: usize = 600;
/// The template for scenarios without one of their own.
const GENERIC: &str = "generator/generic.md";

/// Makes cases of scenarios.
pub struct Generator {
    model: Arc<dyn ChatModel>,
    settings: GeneratorSettings,
    context_tokens: u32,
    project_files: Vec<String>,
    schema: ReplySchema,
    earlier: Mutex<Vec<(String, WordSet)>>,
}

/// One try of the generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GenerationAttempt {
    /// The call.
    pub call: CallRecord,
    /// Why the prompt was not used; absent for the one that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

#[derive(Serialize)]
struct Values<'a> {
    description: &'a str,
    expected_status: &'a str,
    project_files: &'a [String],
    rejected: Option<&'a str>,
}

/// The template of a scenario: its own where there is one, else the generic one.
fn template(library: &PromptLibrary, scenario: &Scenario) -> String {
    let own = own_template(scenario);
    if library.digests().contains_key(&own) { own } else { GENERIC.to_owned() }
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
        if !library.load(&own_template(scenario))? {
            library.load(GENERIC)?;
        }
    }
    Ok(())
}

/// The schema of a generator's reply.
pub fn reply_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "prompt": {
                "type": "string",
                "maxLength": PROMPT_ASKED,
                "description": "the user request",
            },
            "hints": {
                "type": "string",
                "maxLength": HINTS_ASKED,
                "description": "what the judge should look for",
            },
        },
        "required": ["prompt", "hints"],
        "additionalProperties": false,
    })
}

impl Generator {
    /// `project_files` are names that prompts may refer to; `context_tokens` the context window.
    pub fn new(
        model: Arc<dyn ChatModel>,
        settings: GeneratorSettings,
        context_tokens: u32,
        project_files: Vec<String>,
    ) -> Self {
        let schema = ReplySchema { name: "generated_case", schema: Arc::new(reply_schema()) };
        // Compiling the rules takes longer than a fast model; it need not wait for the first one.
        std::thread::spawn(|| safety::violations(""));
        let earlier = Mutex::default();
        Self { model, settings, context_tokens, project_files, schema, earlier }
    }

    /// Full name of the model.
    pub fn model_id(&self) -> &str {
        self.model.id()
    }

    /// Tries until a prompt is usable, at most `max_attempts` times; each try is added to
    /// `attempts`. `seed` gives the sampling seed of a try; `on_rejected` hears of each rejection.
    pub async fn generate(
        &self,
        library: &PromptLibrary,
        scenario: &Scenario,
        attempts: &mut Vec<GenerationAttempt>,
        seed: impl Fn(u32) -> u64,
        on_rejected: impl Fn(u32, &str),
    ) -> Result<GeneratedCase, String> {
        let name = template(library, scenario);
        let mut last: Option<String> = None;
        for number in 1..=self.settings.max_attempts {
            let values = Values {
                description: &scenario.description,
                expected_status: scenario.expected_status.as_str(),
                project_files: &self.project_files,
                rejected: last.as_deref(),
            };
            let rendered = library.render(&name, &values).map_err(|error| error.to_string())?;
            let GeneratorSettings { temperature, max_tokens, think, think_tokens, .. } =
                self.settings;
            let sampling = Sampling { temperature, max_tokens, seed: seed(number) };
            let request =
                ChatRequest::structured(rendered, &self.schema, sampling, self.context_tokens)
                    .thinking(Thinking::configured(think, think_tokens));
            let (call, reply) = call(&*self.model, &request).await;
            let usable = match &reply {
                Ok(reply) => self.accept(reply),
                Err(error) => Err(format!("{}: {error}", self.model.id())),
            };
            let rejected = usable.as_ref().err().cloned();
            attempts.push(GenerationAttempt { call, rejected });
            match usable {
                Ok(case) => return Ok(case),
                // The transport has retried already.
                Err(why) if reply.is_err() => return Err(why),
                Err(why) => {
                    on_rejected(number, &why);
                    last = Some(why);
                }
            }
        }
        Err(format!(
            "no usable prompt in {} attempts; the last: {}",
            self.settings.max_attempts,
            last.unwrap_or_default()
        ))
    }

    /// Reads a reply, and holds it against the safety rules and the earlier prompts of the run.
    fn accept(&self, reply: &ChatReply) -> Result<GeneratedCase, String> {
        let case = match &reply.finish {
            Finish::Stop => read_reply(&reply.text)?,
            Finish::Length => return Err("the reply was cut by generator.max_tokens".to_owned()),
            Finish::Refusal(words) => return Err(format!("the model refused: {words}")),
            Finish::Other(word) => return Err(format!("the reply ended with `{word}`")),
        };
        let broken = safety::violations(&case.prompt);
        if !broken.is_empty() {
            return Err(format!("unsafe prompt ({})", broken.join(", ")));
        }
        let new = WordSet::of(&case.prompt);
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        let twin = earlier.iter().find(|(_, words)| words.jaccard(&new) > NEAR_DUPLICATE);
        if let Some((prompt, _)) = twin {
            let prompt = selftest_text::one_line(prompt, 120);
            return Err(format!("too similar to an earlier prompt: {prompt}"));
        }
        earlier.push((case.prompt.clone(), new));
        Ok(case)
    }
}

/// Reads `{prompt, hints}`, bare or in a code fence, or the `PROMPT:` / `HINTS:` text of
/// docs/spec/selftest.md#generator-prompts.
///
/// Lenient, unlike the judge's reader: a misread prompt makes a useless case, never a false verdict.
pub fn read_reply(reply: &str) -> Result<GeneratedCase, String> {
    let trimmed = reply.trim();
    let unfenced = trimmed
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .map_or(trimmed, |rest| rest.strip_prefix("json").unwrap_or(rest).trim());
    let case = match serde_json::from_str::<GeneratedCase>(unfenced) {
        Ok(case) => case,
        Err(_) => read_marked_text(trimmed).ok_or_else(|| {
            format!("not a prompt with hints: {}", selftest_text::one_line(reply, 120))
        })?,
    };
    let case = GeneratedCase {
        prompt: case.prompt.trim().to_owned(),
        hints: case.hints.trim().to_owned(),
        ..case
    };
    for (name, field) in [("prompt", &case.prompt), ("hints", &case.hints)] {
        if !field.chars().any(char::is_alphanumeric) {
            return Err(format!("the {name} is empty"));
        }
        if field.chars().count() > FIELD_LIMIT {
            return Err(format!("the {name} is over {FIELD_LIMIT} characters"));
        }
    }
    Ok(case)
}

fn read_marked_text(text: &str) -> Option<GeneratedCase> {
    let (_, rest) = text.split_once("PROMPT:")?;
    let (prompt, hints) = rest.split_once("HINTS:")?;
    let (prompt, hints) = (prompt.to_owned(), hints.to_owned());
    Some(GeneratedCase { prompt, hints, ..GeneratedCase::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_forms_are_read() {
        let (prompt, hints) = ("Do x".to_owned(), "Look for y".to_owned());
        let expected = GeneratedCase { prompt, hints, ..GeneratedCase::default() };
        for reply in [
            r#"{"prompt": "Do x", "hints": "Look for y"}"#,
            "```json\n{\"prompt\": \"Do x\", \"hints\": \"Look for y\"}\n```",
            "PROMPT: Do x\nHINTS: Look for y\n",
        ] {
            assert_eq!(read_reply(reply), Ok(expected.clone()), "{reply}");
        }
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
