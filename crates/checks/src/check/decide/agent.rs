//! Checks on the agent's behaviour: status, turns, tokens, time and tool calls.

use serde_json::Value;

use super::answer::{compare_count, equal};
use super::{FactStatement, quote_name, quote_text};
use crate::check::{
    CallOrder, CheckObservation, CheckPattern, CheckText, CountBounds, DurationBounds,
    ObservedToolCall, PatternSearchError, TaskStatus, ToolCallCheck, ToolNames,
};
use selftest_text::wording::plural;

const TOOLS: &str = "calls of tools";

pub(in crate::check) fn status(wanted: TaskStatus, seen: &CheckObservation<'_>) -> FactStatement {
    let Some(status) = seen.status else {
        return FactStatement::not_reported("how the task stands");
    };
    FactStatement::new(status == wanted, format!("the status is {status}"))
        .with_demand(format!("{wanted} expected"))
}

pub(in crate::check) fn turns(bounds: &CountBounds, seen: &CheckObservation<'_>) -> FactStatement {
    match seen.turns {
        Some(count) => compare_count(count, *bounds, plural(count, "turn")),
        None => FactStatement::not_reported("turns"),
    }
}

pub(in crate::check) fn tokens(bounds: &CountBounds, seen: &CheckObservation<'_>) -> FactStatement {
    match seen.tokens {
        Some(count) => compare_count(count, *bounds, plural(count, "token")),
        None => FactStatement::not_reported("tokens"),
    }
}

pub(in crate::check) fn seconds(
    bounds: &DurationBounds,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let Some(duration) = seen.duration else {
        return FactStatement::not_reported("the time that a case took");
    };
    let seconds = duration.as_secs_f64();
    FactStatement::new(bounds.contains(seconds), format!("took {seconds:.1} s"))
        .with_demand(format!("{bounds} expected"))
}

pub(in crate::check) fn transcript(
    pattern: &CheckPattern,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let shown = quote_name(pattern.as_str());
    // Earlier answers are part of the transcript, though other checks look at the last one only.
    let said = seen.answers.iter().copied().chain([seen.output]);
    let answers = pattern.find_in(said);
    if let Ok(Some(found)) = answers {
        return FactStatement::new(
            true,
            format!("an answer matches {shown} with {}", quote_text(found)),
        );
    }
    // Without the calls the transcript is incomplete, so a missing match proves nothing.
    let Some(calls) = seen.tool_calls else {
        return FactStatement::undecided(format!(
            "no answer matches {shown}, and the adapter does not report {TOOLS}"
        ));
    };
    let mut searched = answers;
    for call in calls {
        match pattern.find(&format!("{} {}", call.name, call.arguments)) {
            Ok(Some(_)) => {
                let fact = format!("a call of the tool {} matches {shown}", quote_name(&call.name));
                return FactStatement::new(true, fact);
            }
            Ok(None) => {}
            // Another call may still match.
            Err(error) => searched = Err(error),
        }
    }
    match searched {
        Ok(_) => FactStatement::new(false, format!("nothing in the transcript matches {shown}")),
        Err(error) => FactStatement::undecided(format!("{shown}: {error}")),
    }
}

pub(in crate::check) fn tool_called(
    wanted: &ToolCallCheck,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let Some(calls) = seen.tool_calls else {
        return FactStatement::not_reported(TOOLS);
    };
    let name = quote_name(wanted.name.as_str());
    let of_name = || calls.iter().filter(|call| call.name == wanted.name.as_str());
    let is_any = wanted.arguments.is_empty() && wanted.matches.is_none();
    let with = if is_any { "" } else { " with these arguments" };
    let matching: Result<Vec<bool>, _> = of_name().map(|call| call_matches(call, wanted)).collect();
    let count = match matching {
        Ok(matching) => matching.into_iter().filter(|matches| *matches).count() as u64,
        Err(error) => {
            return FactStatement::undecided(format!("calls of the tool {name}: {error}"));
        }
    };
    let fact = match count {
        0 if of_name().next().is_some() => {
            let last =
                of_name().next_back().map(|call| call.arguments.to_string()).unwrap_or_default();
            format!("calls the tool {name}, but never{with}, last with {}", quote_name(&last))
        }
        0 => format!("does not call the tool {name}"),
        1 => format!("calls the tool {name}{with}"),
        _ => format!("calls the tool {name} {}{with}", plural(count, "time")),
    };
    let statement = FactStatement::new(wanted.bounds.contains(count), fact);
    // The fact alone says it all.
    if wanted.bounds == CountBounds::at_least(1) {
        statement
    } else {
        statement.with_demand(format!("{} expected", wanted.bounds))
    }
}

fn call_matches(
    call: &ObservedToolCall,
    wanted: &ToolCallCheck,
) -> Result<bool, PatternSearchError> {
    if let Some(pattern) = &wanted.matches {
        let whole = call.arguments.to_string();
        // The JSON text for patterns about keys, and each string without its escapes.
        let mut texts = vec![whole.as_str()];
        collect_texts(&call.arguments, 0, &mut texts);
        if pattern.find_in(texts)?.is_none() {
            return Ok(false);
        }
    }
    Ok(wanted.arguments.iter().all(|(key, wanted)| {
        let argument = call.arguments.get(key);
        argument.is_some_and(|argument| match (argument, wanted) {
            // A string also matches as part of a longer string in the call.
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            _ => equal(argument, wanted),
        })
    }))
}

/// Maximum nesting depth of searched arguments.
const MAX_DEPTH: usize = 8;

/// Collects the texts in the arguments of a call.
fn collect_texts<'v>(value: &'v Value, depth: usize, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) if depth < MAX_DEPTH => {
            for item in items {
                collect_texts(item, depth + 1, texts);
            }
        }
        Value::Object(members) if depth < MAX_DEPTH => {
            members.values().for_each(|member| collect_texts(member, depth + 1, texts));
        }
        _ => {}
    }
}

pub(in crate::check) fn first_calls(
    order: &CallOrder,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let Some(calls) = seen.tool_calls else {
        return FactStatement::not_reported(TOOLS);
    };
    let mut before: Option<(usize, String)> = None;
    for wanted in order.calls() {
        let shown = shown_call(wanted);
        let mut first = None;
        for (at, call) in calls.iter().enumerate() {
            if call.name != wanted.name.as_str() {
                continue;
            }
            match call_matches(call, wanted) {
                Ok(true) => {
                    first = Some(at);
                    break;
                }
                Ok(false) => {}
                Err(error) => return FactStatement::undecided(format!("{shown}: {error}")),
            }
        }
        let Some(at) = first else {
            return FactStatement::new(false, format!("does not call the tool {shown}"));
        };
        if let Some((_, earlier)) = before.filter(|(earlier, _)| at < *earlier) {
            let fact = format!("calls the tool {shown} before {earlier} at first");
            return FactStatement::new(false, fact);
        }
        before = Some((at, shown));
    }
    let names: Vec<String> = order.calls().iter().map(shown_call).collect();
    FactStatement::new(true, format!("first calls the tools in this order: {}", names.join(", ")))
}

fn shown_call(wanted: &ToolCallCheck) -> String {
    let name = quote_name(wanted.name.as_str());
    match &wanted.matches {
        Some(pattern) => format!("{name} with {}", quote_name(pattern.as_str())),
        None => name,
    }
}

pub(in crate::check) fn tool_not_called(
    name: &CheckText,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    tool_called(&ToolCallCheck::once(name.clone()), seen).negated()
}

pub(in crate::check) fn tools_in_order(
    tools: &ToolNames,
    seen: &CheckObservation<'_>,
) -> FactStatement {
    let Some(calls) = seen.tool_calls else {
        return FactStatement::not_reported(TOOLS);
    };
    let mut rest = calls.iter();
    for (at, wanted) in tools.names().iter().enumerate() {
        // `any` advances the iterator, so each search continues after the previous match.
        if rest.any(|call| call.name == wanted.as_str()) {
            continue;
        }
        let wanted = quote_name(wanted.as_str());
        let fact = match at.checked_sub(1).and_then(|before| tools.names().get(before)) {
            Some(before) => {
                format!("does not call the tool {wanted} after {}", quote_name(before.as_str()))
            }
            None => format!("does not call the tool {wanted}"),
        };
        return FactStatement::new(false, fact);
    }
    let names: Vec<String> = tools.names().iter().map(|name| quote_name(name.as_str())).collect();
    FactStatement::new(true, format!("calls the tools in this order: {}", names.join(", ")))
}
