//! Who answers what: closures by role, with defaults under which every case passes.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::ModelServer;
use super::call::{Call, Endpoint, Role};
use super::reply::Reply;

/// Words of a generated prompt or of its scenario's description that make the default system
/// under test ask back.
const ASK_BACK: &str = "ask me back";

/// Words of requests that the harness has made vague, at which it asks back too.
const VAGUE: [&str; 5] =
    ["that section", "that part", "part from before", "the other page", "the one there"];

/// Words that stand in all default hints and nowhere else.
pub(crate) const HINT_MARK: &str = "the answer key says";

type Answer = Box<dyn Fn(&Call) -> Reply + Send + Sync>;

/// Answers the path and the body of a request to a decision model with a status and a body.
type Decide = Box<dyn Fn(&str, &Value) -> (u16, Value) + Send + Sync>;

/// The behaviour of a server; see [`Script::start`].
#[must_use]
pub(crate) struct Script {
    generator: Answer,
    sut: Answer,
    judge: Answer,
    grader: Answer,
    drafter: Answer,
    question: Answer,
    /// The model's thinking before it replies, unless the request disables it, and whether it does even
    /// then.
    thoughts: Option<(String, bool)>,
    /// Most alternatives that the OpenAI side returns for a token; 0: it refuses to.
    pub(super) top_logprobs: u64,
    pub(super) refuses_unknown_fields: bool,
    pub(super) delay: Duration,
    pub(super) refuses_schema: bool,
    pub(super) refuses_json_object: bool,
    pub(super) ollama_version: String,
    pub(super) models: Vec<String>,
    pub(super) catalogue: Option<Reply>,
    pub(super) decide: Option<Decide>,
    pub(super) prefix: &'static str,
    pub(super) address: &'static str,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            generator: Box::new(|call| generated(call).into()),
            sut: Box::new(|call| answered(call).into()),
            judge: Box::new(|call| verdict(call, 0.9).into()),
            grader: Box::new(|call| quality(call, [Some(0.9), Some(0.5), Some(0.7), None]).into()),
            drafter: Box::new(|call| drafted(call).into()),
            question: Box::new(|_| "Yes".into()),
            thoughts: None,
            top_logprobs: 20,
            refuses_unknown_fields: false,
            delay: Duration::ZERO,
            refuses_schema: false,
            refuses_json_object: false,
            ollama_version: "0.12.6".to_owned(),
            models: vec!["nomic-embed-text:latest".to_owned(), "qwen2.5:7b".to_owned()],
            catalogue: None,
            decide: None,
            prefix: "",
            address: "127.0.0.1:0",
        }
    }
}

impl Script {
    pub(crate) fn generator<R: Into<Reply>>(
        mut self,
        answer: impl Fn(&Call) -> R + Send + Sync + 'static,
    ) -> Self {
        self.generator = Box::new(move |call| answer(call).into());
        self
    }

    pub(crate) fn sut<R: Into<Reply>>(
        mut self,
        answer: impl Fn(&Call) -> R + Send + Sync + 'static,
    ) -> Self {
        self.sut = Box::new(move |call| answer(call).into());
        self
    }

    pub(crate) fn judge<R: Into<Reply>>(
        mut self,
        answer: impl Fn(&Call) -> R + Send + Sync + 'static,
    ) -> Self {
        self.judge = Box::new(move |call| answer(call).into());
        self
    }

    pub(crate) fn grader<R: Into<Reply>>(
        mut self,
        answer: impl Fn(&Call) -> R + Send + Sync + 'static,
    ) -> Self {
        self.grader = Box::new(move |call| answer(call).into());
        self
    }

    pub(crate) fn drafter<R: Into<Reply>>(
        mut self,
        answer: impl Fn(&Call) -> R + Send + Sync + 'static,
    ) -> Self {
        self.drafter = Box::new(move |call| answer(call).into());
        self
    }

    /// Calls for the probabilities of the first token. Without it the server returns none.
    pub(crate) fn question<R: Into<Reply>>(
        mut self,
        answer: impl Fn(&Call) -> R + Send + Sync + 'static,
    ) -> Self {
        self.question = Box::new(move |call| answer(call).into());
        self
    }

    /// A model that thinks this unless the request disables it, at the cost of its reply's tokens.
    pub(crate) fn thinks(mut self, thoughts: &str) -> Self {
        self.thoughts = Some((thoughts.to_owned(), false));
        self
    }

    /// A model that thinks this in any case.
    pub(crate) fn always_thinks(mut self, thoughts: &str) -> Self {
        self.thoughts = Some((thoughts.to_owned(), true));
        self
    }

    /// The OpenAI side returns at most this number of alternatives for a token; 0: it refuses to.
    pub(crate) fn top_logprobs(mut self, most: u64) -> Self {
        self.top_logprobs = most;
        self
    }

    /// The OpenAI side answers 400 to keys that OpenAI's own server does not know.
    pub(crate) fn refuse_unknown_fields(mut self) -> Self {
        self.refuses_unknown_fields = true;
        self
    }

    /// The same misbehaviour for every role.
    pub(crate) fn always(self, reply: Reply) -> Self {
        let [second, third, fourth, fifth, sixth] = [(); 5].map(|()| reply.clone());
        self.generator(move |_| reply.clone())
            .sut(move |_| second.clone())
            .judge(move |_| third.clone())
            .grader(move |_| fourth.clone())
            .drafter(move |_| fifth.clone())
            .question(move |_| sixth.clone())
    }

    /// Every chat call takes this long.
    pub(crate) fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// `response_format: json_schema` is answered with 400.
    pub(crate) fn refuse_schema(mut self) -> Self {
        self.refuses_schema = true;
        self
    }

    /// Any `response_format` is answered with 400.
    pub(crate) fn refuse_response_format(mut self) -> Self {
        self.refuses_schema = true;
        self.refuses_json_object = true;
        self
    }

    /// Before 0.5.0 a schema in `format` is refused, as it was.
    pub(crate) fn ollama_version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.ollama_version);
        self
    }

    /// The installed models, in the order of the list. A name with `embed` only embeds.
    pub(crate) fn models(mut self, models: &[&str]) -> Self {
        self.models = models.iter().map(|&model| model.to_owned()).collect();
        self
    }

    /// The models are decision models: this answers the body of a request to `/v1/systemone` or
    /// `/v1/decisions` with a status and a body.
    pub(crate) fn decisions(
        mut self,
        decide: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        self.decide = Some(Box::new(decide));
        self
    }

    /// Misbehaves on everything that is not a chat call too.
    pub(crate) fn catalogue(mut self, reply: Reply) -> Self {
        self.catalogue = Some(reply);
        self
    }

    /// Every path starts with this, as behind a proxy.
    pub(crate) fn prefix(mut self, prefix: &'static str) -> Self {
        self.prefix = prefix;
        self
    }

    /// Listens here and not on a free port of 127.0.0.1.
    pub(crate) fn address(mut self, address: &'static str) -> Self {
        self.address = address;
        self
    }

    /// Listens until the server is dropped.
    #[track_caller]
    pub(crate) fn start(self) -> ModelServer {
        self.try_start().unwrap()
    }

    /// As [`Script::start`], for addresses that this machine may not have.
    pub(crate) fn try_start(self) -> std::io::Result<ModelServer> {
        ModelServer::listen(self)
    }

    /// Whether the model can think.
    pub(super) fn can_think(&self) -> bool {
        self.thoughts.is_some()
    }

    /// Whether this version of Ollama is at least that.
    pub(super) fn is_ollama_since(&self, wanted: [u32; 3]) -> bool {
        let parts = self.ollama_version.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
        parts.take(3).collect::<Vec<u32>>() >= wanted.to_vec()
    }

    pub(super) fn answer(&self, call: &Call) -> Reply {
        let reply = self.reply_of(call);
        let old = call.endpoint == Endpoint::Ollama && !self.is_ollama_since([0, 12, 11]);
        let reply = match reply {
            Reply::FirstToken(tokens) if old => {
                Reply::Truncated(tokens.first().map_or("", |(text, _)| *text).to_owned())
            }
            reply => reply,
        };
        let Some((thoughts, always)) = &self.thoughts else { return reply };
        let told_not_to = match call.endpoint {
            Endpoint::Ollama => call.body["think"] == false,
            Endpoint::OpenAi => {
                call.body.pointer("/chat_template_kwargs/enable_thinking") == Some(&json!(false))
            }
        };
        if told_not_to && !always {
            return reply;
        }
        let most = match call.endpoint {
            Endpoint::Ollama => &call.body["options"]["num_predict"],
            Endpoint::OpenAi => &call.body["max_tokens"],
        };
        if most.as_u64().is_some_and(|most| thoughts.len() as u64 / 4 >= most) {
            return Reply::OnlyThoughts(thoughts.clone());
        }
        match reply {
            Reply::Text(text) => Reply::Thinking { thinking: thoughts.clone(), text },
            Reply::Json(value) => {
                Reply::Thinking { thinking: thoughts.clone(), text: value.to_string() }
            }
            reply => reply,
        }
    }

    fn reply_of(&self, call: &Call) -> Reply {
        match call.role {
            Role::Question => (self.question)(call),
            Role::Generator => (self.generator)(call),
            Role::Sut => (self.sut)(call),
            Role::Judge => (self.judge)(call),
            Role::Grader => (self.grader)(call),
            Role::Drafter => (self.drafter)(call),
            Role::Other => call.schema().map_or("ok".into(), |schema| sample(schema).into()),
        }
    }
}

/// A grade of a session with these scores: problem solved, tests added, code clean, edge cases.
/// Each is supported by what the person said first.
pub(crate) fn quality(call: &Call, scores: [Option<f64>; 4]) -> Value {
    let text = call.text();
    let said = text.lines().find_map(|line| Some(line.split_once(" user] ")?.1));
    let quote: String = said.unwrap_or("nobody said a word").chars().take(60).collect();
    let names = ["problem_solved", "tests_added", "code_clean", "edge_cases_handled"];
    let mut grade = Map::new();
    for (name, score) in names.into_iter().zip(scores) {
        let reasoning = format!("why {name}");
        grade.insert(
            name.to_owned(),
            json!({ "evidence": quote, "reasoning": reasoning, "score": score }),
        );
    }
    grade.insert("summary".to_owned(), json!("The parser was mended and one test was run."));
    Value::Object(grade)
}

/// A skill of a name that no other call gets.
pub(crate) fn drafted(call: &Call) -> Value {
    json!({
        "name": format!("check-first-{}", call.number),
        "description": "Look whether a thing is there before it is used.",
        "body": "# Check first\n\n1. List the folder.\n2. Then read the file.\n",
    })
}

/// A prompt like no other, with hints. It asks for no form: a drawn form would then be counted in
/// some runs and not in others.
pub(crate) fn generated(call: &Call) -> Value {
    let text = call.text();
    let asks = [ASK_BACK, "vague", "reorgani"].iter().any(|sign| text.contains(sign));
    let please = if asks { format!(" Please {ASK_BACK} first.") } else { String::new() };
    grounded(call, &format!("Explain {} to a newcomer.{please}", words(call.number)))
}

/// A reply with this prompt, and with a quote from the text that the call shows.
pub(crate) fn grounded(call: &Call, prompt: &str) -> Value {
    json!({
        "facts": quotes(call),
        "hints": format!("{HINT_MARK} {}", call.number),
        "prompt": prompt,
        "requirements": ["The answer is about the text.", "The answer is easy to read."],
    })
}

/// The quotes that a generator may choose from.
pub(crate) fn quotes(call: &Call) -> Vec<String> {
    // Without a schema, as a model does it: a line of the text itself.
    let text = call.text();
    let excerpt = text.rsplit("File `").next().unwrap_or_default();
    let lines = excerpt.split("Now ask").next().unwrap_or_default().lines().skip(1);
    let stated = lines.filter(|line| line.split(' ').count() > 4).take(1).map(str::to_owned);
    let schema = call.schema().and_then(|schema| schema.pointer("/properties/facts/items/enum"));
    let quotes = schema.map(|quotes| serde_json::from_value(quotes.clone()).unwrap());
    quotes.unwrap_or_else(|| stated.collect())
}

/// The answer of a system under test that asks back on request.
pub(crate) fn answered(call: &Call) -> Value {
    let asks = |said: &str| VAGUE.iter().chain([&ASK_BACK]).any(|sign| said.contains(*sign));
    if call.is_first_answer() && asks(call.last_message()) {
        json!({ "status": "AWAITING_RESPONSE", "output": "Which part do you mean?" })
    } else {
        json!({ "status": "COMPLETE", "output": formed(call) })
    }
}

/// An answer of the form that a request asks for.
fn formed(call: &Call) -> String {
    let asks = |words: &str| call.last_message().contains(words);
    let lines = ["One line.", "Two lines.", "Three lines."];
    if asks("table of two columns") {
        "| A | B |\n|---|---|\n| 1 | 2 |".to_owned()
    } else if asks("number only") {
        // A rule compares the number with the reference, whatever the judge says.
        number_in_gap(call).unwrap_or_else(|| "80".to_owned())
    } else if asks("bullet list of 2") {
        format!("- {}", lines[..2].join("\n- "))
    } else if asks("bullet list of 3") {
        format!("- {}", lines.join("\n- "))
    } else {
        lines.join("\n")
    }
}

/// The number that a file shown to the system under test has in the gap of `“before…after”`.
fn number_in_gap(call: &Call) -> Option<String> {
    let (_, gap) = call.last_message().split_once('“')?;
    let (before, after) = gap.split_once('”')?.0.split_once('…')?;
    call.text().split(before).skip(1).find_map(|rest| {
        let digits = rest.find(|sign: char| !sign.is_ascii_digit())?;
        let (number, rest) = rest.split_at(digits);
        (digits > 0 && rest.starts_with(after)).then(|| number.to_owned())
    })
}

/// A verdict with the same score in every category that the call asks for.
pub(crate) fn verdict(call: &Call, score: f64) -> Value {
    const SPECIFIED: [&str; 4] =
        ["format_score", "factuality_score", "instruction_following_score", "safety_score"];
    let properties = call.schema().and_then(|schema| schema["properties"].as_object());
    let mut fields: Vec<&str> =
        properties.map_or(SPECIFIED.to_vec(), |fields| fields.keys().map(String::as_str).collect());
    fields.retain(|&field| field != "explanation");
    let mut verdict =
        Map::from_iter([("explanation".to_owned(), "It does what was asked.".into())]);
    verdict.extend(fields.into_iter().map(|field| (field.to_owned(), score.into())));
    verdict.into()
}

/// A first token that says yes with this probability and no with the rest, in several spellings.
pub(crate) fn yes_or_no(yes: f64) -> Reply {
    let token = |text, probability: f64| (text, json!(probability.ln()));
    let mut tokens = vec![
        token("Yes", yes * 0.8),
        token("No", (1.0 - yes) * 0.9),
        token(" yes", yes * 0.2),
        token("NO", (1.0 - yes) * 0.1),
    ];
    tokens.sort_by(|a, b| b.1.as_f64().partial_cmp(&a.1.as_f64()).unwrap());
    Reply::FirstToken(tokens)
}

/// Eight words that no other number gets. Only some consonants, so that none of them can be a
/// word that a safety rule looks for.
pub(crate) fn words(number: usize) -> String {
    let mut state = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5e1f;
    let mut word = || -> String {
        let mut next = |letters: &'static str| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let position = usize::try_from(state >> 33).unwrap() % letters.len();
            &letters[position..=position]
        };
        (0..4).map(|_| [next("bdgklmnpz"), next("aeiou")].concat()).collect()
    };
    (0..8).map(|_| word()).collect::<Vec<_>>().join(" ")
}

/// Some value that a schema allows, as far as probes need it.
fn sample(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0).or(schema.get("const")) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            fields.map(|(name, field)| (name.clone(), sample(field))).collect::<Map<_, _>>().into()
        }
        Some("array") => json!([]),
        Some("boolean") => json!(true),
        Some("integer" | "number") => json!(1),
        _ => json!("ok"),
    }
}
