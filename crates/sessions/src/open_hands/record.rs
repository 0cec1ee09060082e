//! Defines `OpenHands` events and evaluated runs.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess};
use serde_json::value::RawValue;

use crate::content::{ApiUsage, MessageContent};
use crate::event::Event;
use crate::feed::SessionFeed;
use crate::text::Text;
use crate::time::Moment;
use crate::wire::{
    AnyJson, AnyJsonSeed, JsonText, JsonValue, LenientFlag, LenientInt, LenientObject,
    deserialize_any_json,
};

/// An event, or an evaluated run with its events in `history`.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct OpenHandsRecord<'a> {
    pub(super) id: LenientInt,
    pub(super) timestamp: Moment,
    pub(super) source: Text<'a>,
    /// Text for the user interface.
    pub(super) message: Text<'a>,
    pub(super) action: Text<'a>,
    pub(super) observation: Text<'a>,
    pub(super) cause: LenientInt,
    pub(super) args: ActionArgs,
    pub(super) content: MessageContent<'a>,
    pub(super) extras: LenientObject<ObservationExtras<'a>>,
    pub(super) success: LenientFlag,
    pub(super) tool_call_metadata: LenientObject<ToolCallMetadata<'a>>,
    pub(super) llm_metrics: LenientObject<RunMetrics>,
    // Before 2025, arguments and results were top-level fields.
    pub(super) command: Text<'a>,
    pub(super) code: Text<'a>,
    pub(super) path: Text<'a>,
    pub(super) url: Text<'a>,
    pub(super) browser_actions: Text<'a>,
    pub(super) thought: Text<'a>,
    pub(super) exit_code: LenientInt,
    pub(super) wait_for_response: LenientFlag,
    // Fields of an evaluated run.
    pub(super) history: HistoryEntries<'a>,
    pub(super) instance_id: Text<'a>,
    pub(super) issue: LenientObject<IssueRef<'a>>,
    pub(super) error: Text<'a>,
    pub(super) metadata: JsonValue,
    pub(super) metrics: LenientObject<RunMetrics>,
}

impl OpenHandsRecord<'_> {
    /// Records the metadata of a run.
    pub(super) fn note_run(self, feed: &mut SessionFeed<'_>) {
        match (self.instance_id.is_empty(), self.issue.0) {
            (false, _) => feed.naming.name_run_of(&self.instance_id),
            (true, Some(issue)) => {
                feed.naming
                    .name_run_of(&format!("{}/{}#{}", issue.owner, issue.repo, issue.number));
            }
            (true, None) => {}
        }
        feed.head.add_model(&self.metadata.text("/llm_config/model"));
        if let Some(metrics) = self.metrics.0 {
            metrics.note(feed);
        }
        if !self.error.is_empty() {
            let text = format!("error: {}", self.error).into();
            feed.send(Event { text, ..Event::default() });
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct IssueRef<'a> {
    owner: Text<'a>,
    repo: Text<'a>,
    number: Text<'a>,
}

/// Running totals; the last ones are the session's.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct RunMetrics {
    accumulated_token_usage: LenientObject<ApiUsage>,
}

impl RunMetrics {
    pub(super) fn note(&self, feed: &mut SessionFeed<'_>) {
        let total = self.accumulated_token_usage.0.as_ref().and_then(ApiUsage::usage);
        feed.head.usage = total.or(feed.head.usage);
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ObservationExtras<'a> {
    pub(super) exit_code: LenientInt,
    pub(super) metadata: LenientObject<CommandMetadata<'a>>,
    /// For a browser action: true if the page failed to load.
    pub(super) error: LenientFlag,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct CommandMetadata<'a> {
    pub(super) exit_code: LenientInt,
    pub(super) working_dir: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ToolCallMetadata<'a> {
    pub(super) function_name: Text<'a>,
    pub(super) model_response: LenientObject<ModelResponse<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ModelResponse<'a> {
    pub(super) id: Text<'a>,
    pub(super) model: Text<'a>,
    pub(super) usage: LenientObject<ApiUsage>,
}

/// Arguments of an action: the tool's as JSON, and those of `OpenHands` itself.
#[derive(Default)]
pub(super) struct ActionArgs {
    /// A JSON object; empty without arguments.
    pub(super) of_tool: String,
    pub(super) content: Text<'static>,
    pub(super) thought: Text<'static>,
    pub(super) final_thought: Text<'static>,
    pub(super) summary: Text<'static>,
    pub(super) agent_state: Text<'static>,
}

deserialize_any_json!(ActionArgs);

impl<'de> AnyJson<'de> for ActionArgs {
    fn object<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            // Raw, so that the tool's arguments can be passed on as they are.
            let value = map.next_value::<Box<RawValue>>()?;
            let text = || match serde_json::from_str::<JsonText>(value.get()) {
                Ok(JsonText(text)) => text,
                Err(_) => Text::default(),
            };
            match key.as_str() {
                "thought" => self.thought = text(),
                "final_thought" => self.final_thought = text(),
                "summary" => self.summary = text(),
                "agent_state" => self.agent_state = text(),
                "outputs" => {
                    let outputs = serde_json::from_str::<Text<'_>>(value.get());
                    let outputs = outputs.map(Text::into_owned).unwrap_or_default();
                    if self.content.is_empty() {
                        self.content = outputs;
                    }
                }
                // How the harness handles the call, or the call in another form.
                "blocking"
                | "hidden"
                | "confirmation_state"
                | "keep_prompt"
                | "impl_source"
                | "security_risk"
                | "include_extra"
                | "kernel_init_code"
                | "translated_ipython_code" => {}
                key => {
                    if key == "content" {
                        self.content = text();
                    }
                    self.push(key, value.get());
                }
            }
        }
        if !self.of_tool.is_empty() {
            self.of_tool.push('}');
        }
        Ok(())
    }
}

impl ActionArgs {
    /// Adds an argument, unless it is null or false.
    fn push(&mut self, key: &str, value: &str) {
        const MAX_BYTES: usize = 256 * 1024;
        if matches!(value, "null" | "false") || self.of_tool.len() > MAX_BYTES {
            return;
        }
        self.of_tool.push(if self.of_tool.is_empty() { '{' } else { ',' });
        self.of_tool.push_str(&serde_json::Value::from(key).to_string());
        self.of_tool.push(':');
        self.of_tool.push_str(value);
    }
}

/// Records of a list. In older histories, each element is itself a list of an action and its
/// observation. Other values are dropped.
#[derive(Default)]
pub(super) struct HistoryEntries<'a>(pub(super) Vec<OpenHandsRecord<'a>>);

deserialize_any_json!(HistoryEntries<'a>);

impl<'de: 'a, 'a> AnyJson<'de> for HistoryEntries<'a> {
    fn list<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(AnyJsonSeed(self))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        self.0.push(OpenHandsRecord::deserialize(MapAccessDeserializer::new(map))?);
        Ok(())
    }
}
