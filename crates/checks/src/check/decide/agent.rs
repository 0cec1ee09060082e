//! Checks on the agent's behaviour: status, turns, tokens, time and tool calls.

use serde_json::Value;

use super::answer::{counted, equal};
use super::{Statement, named, quoted};
use crate::check::{Bounds, Observation, Pattern, Seconds, Text, ToolCall, ToolCalled, Tools};
use crate::task_status::TaskStatus;
use selftest_text::wording::plural;

const TOOLS: &str = "calls of tools";

pub(super) fn status(wanted: TaskStatus, seen: &Observation<'_>) -> Statement {
    let Some(status) = seen.status else {
        return Statement::not_reported("how the task stands");
    };
    Statement::new(status == wanted, format!("the status is {status}"))
        .demanding(format!("{wanted} expected"))
}

pub(super) fn turns(bounds: Bounds, seen: &Observation<'_>) -> Statement {
    match seen.turns {
        Some(count) => counted(count, bounds, plural(count, "turn")),
        None => Statement::not_reported("turns"),
    }
}

pub(super) fn tokens(bounds: Bounds, seen: &Observation<'_>) -> Statement {
    match seen.tokens {
        Some(count) => counted(count, bounds, plural(count, "token")),
        None => Statement::not_reported("tokens"),
    }
}

pub(super) fn seconds(bounds: Seconds, seen: &Observation<'_>) -> Statement {
    let Some(duration) = seen.duration else {
        return Statement::not_reported("the time that a case took");
    };
    let seconds = duration.as_secs_f64();
    Statement::new(bounds.hold(seconds), format!("took {seconds:.1} s"))
        .demanding(format!("{bounds} expected"))
}

pub(super) fn transcript(pattern: &Pattern, seen: &Observation<'_>) -> Statement {
    let shown = named(pattern.as_str());
    let said = seen.answers.iter().copied().chain([seen.output]);
    if let Some(found) = said.into_iter().find_map(|answer| pattern.find(answer)) {
        return Statement::new(true, format!("an answer matches {shown} with {}", quoted(found)));
    }
    // Without the calls the transcript is incomplete, so a missing match proves nothing.
    let Some(calls) = seen.tool_calls else {
        return Statement::undecided(format!(
            "no answer matches {shown}, and the adapter does not report {TOOLS}"
        ));
    };
    let line = |call: &ToolCall| format!("{} {}", call.name, call.arguments);
    match calls.iter().find(|call| pattern.find(&line(call)).is_some()) {
        Some(call) => Statement::new(
            true,
            format!("a call of the tool {} matches {shown}", named(&call.name)),
        ),
        None => Statement::new(false, format!("nothing in the transcript matches {shown}")),
    }
}

pub(super) fn tool_called(wanted: &ToolCalled, seen: &Observation<'_>) -> Statement {
    let Some(calls) = seen.tool_calls else {
        return Statement::not_reported(TOOLS);
    };
    let name = named(wanted.name.as_str());
    let of_name = || calls.iter().filter(|call| call.name == wanted.name.as_str());
    let with = if wanted.arguments.is_empty() { "" } else { " with these arguments" };
    let count = of_name().filter(|call| fits(call, wanted)).count() as u64;
    let fact = match count {
        0 if of_name().next().is_some() => {
            let last =
                of_name().next_back().map(|call| call.arguments.to_string()).unwrap_or_default();
            format!("calls the tool {name}, but never{with}, last with {}", named(&last))
        }
        0 => format!("does not call the tool {name}"),
        1 => format!("calls the tool {name}{with}"),
        _ => format!("calls the tool {name} {}{with}", plural(count, "time")),
    };
    let statement = Statement::new(wanted.bounds.hold(count), fact);
    // The fact alone says it all.
    if wanted.bounds == Bounds::at_least(1) {
        statement
    } else {
        statement.demanding(format!("{} expected", wanted.bounds))
    }
}

fn fits(call: &ToolCall, wanted: &ToolCalled) -> bool {
    wanted.arguments.iter().all(|(key, wanted)| {
        let argument = call.arguments.get(key);
        argument.is_some_and(|argument| match (argument, wanted) {
            // A string also matches as part of a longer string in the call.
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            _ => equal(argument, wanted),
        })
    })
}

pub(super) fn tool_not_called(name: &Text, seen: &Observation<'_>) -> Statement {
    tool_called(&ToolCalled::once(name.clone()), seen).negated()
}

pub(super) fn tools_in_order(tools: &Tools, seen: &Observation<'_>) -> Statement {
    let Some(calls) = seen.tool_calls else {
        return Statement::not_reported(TOOLS);
    };
    let mut rest = calls.iter();
    for (at, wanted) in tools.names().iter().enumerate() {
        // `any` advances the iterator, so each search continues after the previous match.
        if rest.any(|call| call.name == wanted.as_str()) {
            continue;
        }
        let wanted = named(wanted.as_str());
        let fact = match at.checked_sub(1).and_then(|before| tools.names().get(before)) {
            Some(before) => {
                format!("does not call the tool {wanted} after {}", named(before.as_str()))
            }
            None => format!("does not call the tool {wanted}"),
        };
        return Statement::new(false, fact);
    }
    let names: Vec<String> = tools.names().iter().map(|name| named(name.as_str())).collect();
    Statement::new(true, format!("calls the tools in this order: {}", names.join(", ")))
}
