//! Writes a session as an ATIF trajectory. Data without a field in the format goes into `extra`,
//! and [`super`] reads it back.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::event::{Event, EventOrigin, EventRole, TokenCounts, ToolCall, ToolOutcome, ToolResult};
use crate::{Session, Text};

/// Version written to the file: the first one whose results have an `extra`.
const VERSION: &str = "ATIF-v1.7";

/// Converts a session to a trajectory.
pub fn to_atif(session: &Session) -> Value {
    let head = &session.head;
    let mut steps = StepWriter::default();
    session.events.iter().for_each(|event| steps.add(event));
    if steps.all.is_empty() {
        // The format requires a step.
        steps.all.push(json!({ "step_id": 1, "source": "system", "message": "" }));
    }
    let mut agent = json!({
        "name": head.agent,
        "version": head.agent_version.as_deref().unwrap_or("unknown"),
    });
    if let Some(model) = head.models.first() {
        agent["model_name"] = json!(model);
    }
    if head.models.len() > 1 {
        agent["extra"] = json!({ "models": head.models });
    }
    let mut metrics = Map::new();
    if let Some(usage) = head.usage {
        metrics.insert("total_prompt_tokens".to_owned(), json!(prompt_tokens(usage)));
        metrics.insert("total_completion_tokens".to_owned(), json!(usage.output));
        metrics.insert("total_cached_tokens".to_owned(), json!(usage.cached));
    }
    metrics.insert("total_steps".to_owned(), json!(steps.all.len()));
    let extra = present_fields([
        ("cwd", head.cwd.as_ref().map(|cwd| json!(cwd))),
        ("platform", head.platform.as_ref().map(|platform| json!(platform))),
        ("parent", head.parent.as_ref().map(|parent| json!(parent))),
        ("events_left_out", (session.left_out > 0).then(|| json!(session.left_out))),
    ]);
    let mut trajectory = json!({
        "schema_version": VERSION,
        "session_id": head.id,
        "agent": agent,
        "steps": steps.all,
        "final_metrics": metrics,
    });
    if !extra.is_empty() {
        trajectory["extra"] = Value::Object(extra);
    }
    trajectory
}

/// Returns the prompt tokens, which include cached ones.
fn prompt_tokens(usage: TokenCounts) -> u64 {
    usage.input.saturating_add(usage.cached)
}

fn present_fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    present.collect()
}

/// A call that waits for its result.
struct OpenCall {
    step: usize,
    /// Id of the call as written to the step.
    id: String,
    tool: String,
}

/// The steps so far. A result is added to the step of its call.
#[derive(Default)]
struct StepWriter {
    all: Vec<Value>,
    open: HashMap<String, OpenCall>,
    /// Calls without an id. Their results have no id either.
    nameless: Vec<OpenCall>,
}

impl StepWriter {
    fn add(&mut self, event: &Event<'_>) {
        let has_results = !event.results.is_empty();
        let says_more = !event.text.is_empty() || event.mark.is_some() || event.usage.is_some();
        // An event with nothing but results needs no step of its own.
        if event.role != EventRole::Tool || !has_results || says_more {
            self.step(event);
        }
        for result in &event.results {
            // A missing result needs no entry: a reader detects it.
            if result.outcome != ToolOutcome::Pending {
                self.result(result, event);
            }
        }
    }

    fn step(&mut self, event: &Event<'_>) {
        // Only steps of the agent may have these, also if another party spoke.
        let is_of_agent =
            !event.calls.is_empty() || !event.reasoning.is_empty() || event.usage.is_some();
        let source = match (event.role, event.origin) {
            (EventRole::Assistant, _) => "agent",
            _ if is_of_agent => "agent",
            (EventRole::User, EventOrigin::Human | EventOrigin::Subagent) => "user",
            _ => "system",
        };
        let mut step = self.empty_step(source, event);
        step["message"] = json!(event.text.as_str());
        if !event.reasoning.is_empty() {
            step["reasoning_content"] = json!(event.reasoning.as_str());
        }
        if let Some(usage) = event.usage {
            step["metrics"] = json!({
                "prompt_tokens": prompt_tokens(usage),
                "completion_tokens": usage.output,
                "cached_tokens": usage.cached,
            });
        }
        let calls: Vec<Value> =
            event.calls.iter().enumerate().map(|(at, call)| self.call(call, event, at)).collect();
        if !calls.is_empty() {
            step["tool_calls"] = Value::Array(calls);
        }
        self.all.push(step);
    }

    fn empty_step(&self, source: &str, event: &Event<'_>) -> Value {
        // Role and origin are written only if a reader could not infer them from the source.
        let is_usual = match source {
            "agent" => event.role == EventRole::Assistant && event.origin == EventOrigin::Agent,
            "user" => event.role == EventRole::User && event.origin == EventOrigin::Human,
            _ => event.role == EventRole::System && event.origin == EventOrigin::Harness,
        };
        let extra = present_fields([
            ("role", (!is_usual).then(|| json!(event.role))),
            ("origin", (!is_usual).then(|| json!(event.origin))),
            ("mark", event.mark.map(|mark| json!(mark))),
            ("continues", event.continues.then(|| json!(true))),
        ]);
        let mut step = json!({ "step_id": self.all.len() + 1, "source": source, "message": "" });
        if let Some(time) = event.time {
            step["timestamp"] = json!(time.to_string());
        }
        if !extra.is_empty() {
            step["extra"] = Value::Object(extra);
        }
        step
    }

    fn call(&mut self, call: &ToolCall<'_>, event: &Event<'_>, at: usize) -> Value {
        let is_nameless = call.id.is_empty();
        let id = if is_nameless {
            // The format requires an id.
            format!("call-{}-{}", event.number, at + 1)
        } else {
            call.id.as_str().to_owned()
        };
        let tool = call.name.as_str().to_owned();
        let open = OpenCall { step: self.all.len(), id: id.clone(), tool };
        if is_nameless {
            self.nameless.push(open);
        } else {
            self.open.insert(id.clone(), open);
        }
        // The format requires an object.
        let arguments = match serde_json::from_str(&call.arguments) {
            Ok(Value::Object(arguments)) => Value::Object(arguments),
            _ if call.arguments.is_empty() => json!({}),
            _ => json!({ "input": call.arguments.as_str() }),
        };
        let name = call.name.as_str();
        json!({ "tool_call_id": id, "function_name": name, "arguments": arguments })
    }

    fn result(&mut self, result: &ToolResult<'_>, event: &Event<'_>) {
        // A result without an id belongs to the first open call of its tool, as long as there is
        // one.
        let open = if result.call_id.is_empty() {
            let is_of =
                |open: &OpenCall| result.tool.is_empty() || open.tool == result.tool.as_str();
            self.nameless.iter().position(is_of).map(|at| self.nameless.remove(at))
        } else {
            self.open.remove(result.call_id.as_str())
        };
        let words = |text: &Text<'_>| (!text.is_empty()).then(|| json!(text.as_str()));
        let is_error = match result.outcome {
            ToolOutcome::Ok => Some(false),
            ToolOutcome::Failed => Some(true),
            // Other programs would count a refusal as an error of the tool.
            ToolOutcome::Rejected | ToolOutcome::Pending | ToolOutcome::Unknown => None,
        };
        let is_alone = open.is_none() && !result.call_id.is_empty();
        let extra = present_fields([
            // In the format a result refers only to a call of its step.
            ("call_id", is_alone.then(|| json!(result.call_id.as_str()))),
            ("outcome", Some(json!(result.outcome))),
            ("is_error", is_error.map(|is_error| json!(is_error))),
            ("exit_code", result.exit_code.map(|code| json!(code))),
            ("error", words(&result.error)),
            ("tool", words(&result.tool)),
        ]);
        // So that programs that know nothing of `extra` show the error at all.
        let content = if result.text.is_empty() { &result.error } else { &result.text };
        let mut given = json!({ "content": content.as_str(), "extra": extra });
        let at = if let Some(open) = open {
            given["source_call_id"] = json!(open.id);
            open.step
        } else {
            // The format has no results outside of a step.
            let step = self.empty_step("system", event);
            self.all.push(step);
            self.all.len() - 1
        };
        let results = &mut self.all[at]["observation"]["results"];
        match results {
            Value::Array(results) => results.push(given),
            _ => *results = json!([given]),
        }
    }
}
