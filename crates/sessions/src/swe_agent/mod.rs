//! Reads SWE-agent `.traj` files: one JSON object with the same run twice, as `trajectory` (steps
//! of action and observation) and as `history` (the messages that the model saw).
//!
//! If `trajectory` has steps, actions come only from there. It includes retried attempts, the last
//! observation, and observations without the surrounding template. `history` then contributes only
//! the messages before the first answer: the task. A file with nothing but `history` is read from
//! there. The prompts in each step (`query`, `messages`) repeat the history and are skipped;
//! demonstrations are dropped.
//!
//! Commands have no exit code in this format, so `observation` detects the outcome from the text.

mod history;
mod observation;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};

use super::SessionReadError;
use super::event::{Event, EventMark, EventOrigin, EventRole, TokenCounts, ToolCall, ToolResult};
use super::feed::SessionFeed;
use super::source::{DocumentReader, SessionSource, each_record};
use super::text::Text;
use super::wire::{JsonValue, LenientInt, LenientNumber, LenientObject, each};
use crate::chat::formats::has_role;
use crate::entry::FormatEntry;
use crate::outline::JsonOutline;
use crate::verified::{VerificationBasis, VerifiedVersion};
use history::{SweHistory, SweMessage};

/// The entry in the table of formats.
pub(crate) const FORMAT: FormatEntry = FormatEntry {
    json: |value| value.has("trajectory") || is_history(value.list("history")),
    verified: Some(VerifiedVersion {
        agent: "swe-agent",
        version: "1.1.0",
        basis: VerificationBasis::OwnFixture,
    }),
    ..FormatEntry::new(read)
};

/// Reads a trajectory.
fn read(source: &SessionSource, feed: &mut SessionFeed<'_>) -> Result<(), SessionReadError> {
    // The task comes after the steps in the file, so a first pass looks for it.
    let mut found = FirstPass::default();
    source.read_document(&mut found, feed)?;
    source.read_document(&mut SweTrajectory { found }, feed)
}

/// Returns true if this is a history, which names the agent in each message and has no other list
/// beside it.
fn is_history(messages: &[JsonOutline]) -> bool {
    let is_of_agent = |message: &JsonOutline| message.has("agent") && has_role(message);
    !messages.is_empty() && messages.iter().all(is_of_agent)
}

/// Findings of the first pass.
#[derive(Default)]
struct FirstPass {
    has_steps: bool,
    /// Messages before the first answer, at most [`history::MAX_OPENING`].
    opening: Vec<(EventRole, Text<'static>)>,
    demonstrations: u64,
}

impl DocumentReader for FirstPass {
    fn begin(&mut self, _feed: &mut SessionFeed<'_>) {
        *self = FirstPass::default();
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        _feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let FirstPass { has_steps, opening, demonstrations } = self;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "trajectory" => map.next_value_seed(each(|_: IgnoredAny| *has_steps = true))?,
                "history" => {
                    let mut answered = false;
                    map.next_value_seed(each(
                        |LenientObject(message): LenientObject<SweMessage<'de>>| {
                            let Some(message) = message else { return };
                            if message.is_demonstration() {
                                *demonstrations += 1;
                            } else if message.role() == EventRole::Assistant {
                                answered = true;
                            } else if !answered && opening.len() < history::MAX_OPENING {
                                opening.push((message.role(), message.content.0.into_owned()));
                            }
                        },
                    ))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct SweTrajectory {
    found: FirstPass,
}

impl DocumentReader for SweTrajectory {
    fn begin(&mut self, feed: &mut SessionFeed<'_>) {
        "swe-agent".clone_into(&mut feed.head.agent);
        feed.naming.name_run_by_stem();
        // Set here, because a second pass starts with empty notes.
        feed.notes.dropped_records = self.found.demonstrations;
        if self.found.has_steps {
            for (role, text) in &self.found.opening {
                let (role, text) = (*role, Text::new(text.as_str()));
                feed.send(Event { role, text, ..Event::default() });
            }
        }
    }

    fn object<'de, A: MapAccess<'de>>(
        &mut self,
        mut map: A,
        feed: &mut SessionFeed<'_>,
    ) -> Result<(), A::Error> {
        let has_steps = self.found.has_steps;
        let mut info = None;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match key.as_str() {
                "trajectory" if has_steps => {
                    let mut number = 0;
                    map.next_value_seed(each(
                        |LenientObject(step): LenientObject<SweStep<'de>>| {
                            number += 1;
                            match step {
                                Some(step) => step.send(number, feed),
                                None => feed.notes.bad_records += 1,
                            }
                        },
                    ))?;
                }
                "history" if !has_steps => {
                    let mut history = SweHistory::default();
                    map.next_value_seed(each_record(feed, |message: SweMessage<'de>, feed| {
                        history.send(message, feed);
                    }))?;
                }
                "info" => info = map.next_value::<LenientObject<SweInfo<'de>>>()?.0,
                "replay_config" => {
                    note_replay(&map.next_value()?, feed);
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
struct SweStep<'a> {
    action: Text<'a>,
    observation: Text<'a>,
    /// Thought and action as the model wrote them.
    response: Text<'a>,
    thought: Text<'a>,
    state: JsonValue,
}

impl SweStep<'_> {
    fn send(self, number: u64, feed: &mut SessionFeed<'_>) {
        if feed.head.cwd.is_none() {
            feed.head.cwd = self.state.text("/working_dir").line(400);
        }
        let is_written = !self.response.is_empty() || !self.thought.is_empty();
        let text = if self.thought.is_empty() { self.response } else { self.thought };
        let id = format!("step {number}");
        let call = call_of(&self.action, Text::new(id.as_str()));
        let is_call = call.is_some();
        if is_written || is_call {
            feed.send(Event {
                role: EventRole::Assistant,
                origin: EventOrigin::Agent,
                text,
                calls: call.into_iter().collect(),
                ..Event::default()
            });
        }
        if is_call {
            let result =
                ToolResult { call_id: id.into(), ..observation::result_of(self.observation) };
            feed.send_results(EventOrigin::Agent, vec![result], None);
        } else {
            // SWE-agent's comment on an answer without action, or on the end.
            feed.send(Event { text: self.observation, ..Event::default() });
        }
    }
}

/// Converts an action to a call; the first word is the tool's name.
fn call_of<'a>(action: &'a str, id: Text<'a>) -> Option<ToolCall<'a>> {
    let action = action.trim();
    let name = action.split_whitespace().next()?;
    // A path or an assignment at the start is an ordinary shell command.
    let is_name = name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let name = if is_name { name } else { "bash" };
    Some(ToolCall { id, name: name.into(), arguments: action.into() })
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct SweInfo<'a> {
    exit_status: Text<'a>,
    model_stats: LenientObject<ModelStats>,
    swe_agent_version: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ModelStats {
    tokens_sent: LenientInt,
    tokens_received: LenientInt,
    instance_cost: LenientNumber,
}

impl SweInfo<'_> {
    fn note(self, feed: &mut SessionFeed<'_>) {
        if let Some(stats) = self.model_stats.0 {
            feed.head.add_stated_cost(stats.instance_cost.0);
            let (input, output) = (stats.tokens_sent.count(), stats.tokens_received.count());
            feed.head.usage =
                (input + output > 0).then_some(TokenCounts { input, output, cached: 0 });
        }
        if let Some(version) = self.swe_agent_version.line(60) {
            feed.head.agent_version = Some(version);
        }
        if !self.exit_status.is_empty() {
            let status = selftest_text::one_line(&self.exit_status, 200);
            let mark = status.contains("exit_api").then_some(EventMark::ApiError);
            let text = Text::from(format!("exit status: {status}"));
            feed.send(Event { text, mark, ..Event::default() });
        }
    }
}

/// Records the settings that can repeat a run.
fn note_replay(replay: &JsonValue, feed: &mut SessionFeed<'_>) {
    feed.head.add_model(&replay.text("/agent/model/name"));
    feed.naming.name_run_of(&replay.text("/problem_statement/id"));
}
