//! SWE-agent `.traj`: one JSON object with the same run told twice, as `trajectory` (steps of
//! action and observation) and as `history` (the messages that the model saw).
//!
//! What was done is taken from `trajectory` alone where it has steps: it keeps the attempts that
//! were asked for again, the last observation, and observations without the template around
//! them. From `history` come then only the messages before the first answer: the task. A file
//! with nothing but `history` is read from there. The prompts in each step (`query`, `messages`)
//! repeat the history and are skipped; demonstrations are dropped.
//!
//! No command has an exit code here: `observation` reads the outcome from the text.

mod history;
mod observation;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess};

use super::ReadError;
use super::event::{Event, Mark, Origin, Role, ToolCall, ToolResult, Usage};
use super::feed::Feed;
use super::source::{Document, Source};
use super::text::Text;
use super::wire::{AnyJson, Int, Json, Object, each};
use history::{History, Message};

/// Reads a trajectory.
pub(super) fn read(source: &Source, feed: &mut Feed<'_>) -> Result<(), ReadError> {
    // The task stands behind the steps, so the file is looked through for it first.
    let mut found = Found::default();
    source.document(&mut found, feed)?;
    source.document(&mut Trajectory { found }, feed)
}

/// What the first look finds.
#[derive(Default)]
struct Found {
    has_steps: bool,
    /// Messages before the first answer, at most [`history::MOST_OPENING`].
    opening: Vec<(Role, Text<'static>)>,
    demonstrations: u64,
}

impl Document for Found {
    fn begin(&mut self, _feed: &mut Feed<'_>) {
        *self = Found::default();
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        _feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        let Found { has_steps, opening, demonstrations } = self;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "trajectory" => map.next_value_seed(each(|_: IgnoredAny| *has_steps = true))?,
                "history" => {
                    let mut answered = false;
                    map.next_value_seed(each(|Object(message): Object<Message<'de>>| {
                        let Some(message) = message else { return };
                        if message.is_demonstration() {
                            *demonstrations += 1;
                        } else if message.role() == Role::Assistant {
                            answered = true;
                        } else if !answered && opening.len() < history::MOST_OPENING {
                            opening.push((message.role(), message.content.0.into_owned()));
                        }
                    }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Trajectory {
    found: Found,
}

impl Document for Trajectory {
    fn begin(&mut self, feed: &mut Feed<'_>) {
        "swe-agent".clone_into(&mut feed.head.agent);
        feed.call_run();
        feed.notes.dropped_records = self.found.demonstrations;
        if self.found.has_steps {
            for (role, text) in &self.found.opening {
                let (role, text) = (*role, Text::new(text.as_str()));
                feed.event(Event { role, text, ..Event::default() });
            }
        }
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut Feed<'_>,
    ) -> Result<(), A::Error> {
        let has_steps = self.found.has_steps;
        let mut info = None;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "trajectory" if has_steps => {
                    let mut number = 0;
                    map.next_value_seed(each(|Object(step): Object<Step<'de>>| {
                        number += 1;
                        match step {
                            Some(step) => step.send(number, feed),
                            None => feed.notes.bad_records += 1,
                        }
                    }))?;
                }
                "history" if !has_steps => {
                    let mut history = History::default();
                    map.next_value_seed(each(
                        |Object(message): Object<Message<'de>>| match message {
                            Some(message) => history.send(message, feed),
                            None => feed.notes.bad_records += 1,
                        },
                    ))?;
                }
                "info" => info = map.next_value::<Object<Info<'de>>>()?.0,
                "replay_config" => {
                    if let Nested(Some(replay)) = map.next_value::<Nested<Replay>>()? {
                        replay.note(feed);
                    }
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if let Some(info) = info {
            info.note(feed);
        }
        Ok(())
    }
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Step<'a> {
    action: Text<'a>,
    observation: Text<'a>,
    /// Thought and action as the model wrote them.
    response: Text<'a>,
    thought: Text<'a>,
    state: Nested<State>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct State {
    working_dir: Json,
}

impl Step<'_> {
    fn send(self, number: u64, feed: &mut Feed<'_>) {
        if let Some(state) = self.state.0
            && feed.head.cwd.is_none()
            && !state.working_dir.0.is_empty()
        {
            feed.head.cwd = Some(selftest_text::one_line(&state.working_dir.0, 400));
        }
        let is_written = !self.response.is_empty() || !self.thought.is_empty();
        let text = if self.thought.is_empty() { self.response } else { self.thought };
        let id = format!("step {number}");
        let call = call_of(&self.action, Text::new(id.as_str()));
        let is_call = call.is_some();
        if is_written || is_call {
            feed.event(Event {
                role: Role::Assistant,
                origin: Origin::Agent,
                text,
                calls: call.into_iter().collect(),
                ..Event::default()
            });
        }
        if is_call {
            let result =
                ToolResult { call_id: id.into(), ..observation::result_of(self.observation) };
            let (role, origin) = (Role::Tool, Origin::Agent);
            feed.event(Event { role, origin, results: vec![result], ..Event::default() });
        } else {
            // What SWE-agent says of an answer without action, or of the end.
            feed.event(Event { text: self.observation, ..Event::default() });
        }
    }
}

/// The call that an action is: its first word names the tool.
fn call_of<'a>(action: &'a str, id: Text<'a>) -> Option<ToolCall<'a>> {
    let action = action.trim();
    let name = action.split_whitespace().next()?;
    // A path or an assignment at the beginning is a shell command like any other.
    let is_name = name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let name = if is_name { name } else { "bash" };
    Some(ToolCall { id, name: name.into(), arguments: action.into() })
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Info<'a> {
    exit_status: Text<'a>,
    model_stats: Object<Stats>,
    swe_agent_version: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Stats {
    tokens_sent: Int,
    tokens_received: Int,
}

impl Info<'_> {
    fn note(self, feed: &mut Feed<'_>) {
        if let Some(stats) = self.model_stats.0 {
            let (input, output) = (stats.tokens_sent.count(), stats.tokens_received.count());
            feed.head.usage = (input + output > 0).then_some(Usage { input, output, cached: 0 });
        }
        if !self.swe_agent_version.is_empty() {
            feed.head.agent_version = Some(selftest_text::one_line(&self.swe_agent_version, 60));
        }
        if !self.exit_status.is_empty() {
            let status = selftest_text::one_line(&self.exit_status, 200);
            let mark = status.contains("exit_api").then_some(Mark::ApiError);
            let text = Text::from(format!("exit status: {status}"));
            feed.event(Event { text, mark, ..Event::default() });
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Replay {
    agent: Object<Agent>,
    problem_statement: Object<Problem>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Agent {
    model: Object<Model>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Model {
    name: Json,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Problem {
    id: Json,
}

impl Replay {
    fn note(self, feed: &mut Feed<'_>) {
        if let Some(model) = self.agent.0.and_then(|agent| agent.model.0) {
            feed.head.model(&model.name.0);
        }
        if let Some(problem) = self.problem_statement.0 {
            feed.call_run_of(&problem.id.0);
        }
    }
}

/// An object, or the JSON of one in a string, as older versions wrote it.
struct Nested<T>(Option<T>);

impl<T> Default for Nested<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Nested<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(deserializer)
    }
}

impl<'de, T: DeserializeOwned> AnyJson<'de> for Nested<T> {
    fn string(&mut self, json: Cow<'de, str>) {
        self.0 = serde_json::from_str(&json).ok();
    }

    fn object<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error> {
        self.0 = Some(T::deserialize(MapAccessDeserializer::new(map))?);
        Ok(())
    }
}
