//! Fills the templates of paths and bodies. Pure.
//!
//! Each template is scanned once, so that a value that looks like a placeholder is not replaced
//! again. Values are inserted into a body as JSON strings and into an address percent-encoded.

use std::fmt::Write as _;

use serde_json::Value;

/// Replaces each `{name}` with its value after applying `encode`.
fn fill(template: &str, values: &[(&str, &str)], encode: impl Fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let found = values.iter().find_map(|(name, value)| {
            Some((rest.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?, value))
        });
        if let Some((after, value)) = found {
            filled.push_str(&encode(value));
            rest = after;
        } else {
            // An unknown placeholder stays as it is.
            filled.push('{');
            rest = &rest[1..];
        }
    }
    filled.push_str(rest);
    filled
}

/// Fills a path. Values are percent-encoded except letters, digits and `-_.~`.
pub(super) fn path(template: &str, values: &[(&str, &str)]) -> String {
    fill(template, values, |value| {
        value.bytes().fold(String::new(), |mut encoded, byte| {
            if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
            encoded
        })
    })
}

/// Fills the strings of a body; keys are not changed. A string `{messages}` becomes the list of
/// messages.
pub(super) fn body(template: &Value, values: &[(&str, &str)], messages: &[Value]) -> Value {
    let body = |item| body(item, values, messages);
    match template {
        Value::String(text) if text == "{messages}" => Value::from(messages),
        Value::String(text) => Value::String(fill(text, values, ToOwned::to_owned)),
        Value::Array(items) => items.iter().map(body).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), body(value))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const VALUES: &[(&str, &str)] =
        &[("prompt", "say \"{task_id}\"\n"), ("task_id", "../a b?#é"), ("task_type", "READ_INFO")];

    #[test]
    fn bodies_are_json_whatever_the_values_hold() {
        assert_eq!(
            body(
                &json!({"{prompt}": ["{prompt}", 1, null], "t": {"x": "<{task_type}> {other} {"}}),
                VALUES,
                &[]
            ),
            json!({
                "{prompt}": ["say \"{task_id}\"\n", 1, null],
                "t": {"x": "<READ_INFO> {other} {"}
            })
        );
    }

    #[test]
    fn messages_are_a_list_and_not_templates() {
        let messages = [json!({"role": "user", "content": "say {prompt} and {messages}"})];
        assert_eq!(
            body(&json!({"m": "{messages}", "n": "x{messages}"}), VALUES, &messages),
            json!({"m": messages, "n": "x{messages}"})
        );
    }

    #[test]
    fn paths_are_encoded() {
        assert_eq!(
            path("/api/tasks/{task_id}/reply", VALUES),
            "/api/tasks/..%2Fa%20b%3F%23%C3%A9/reply"
        );
        assert_eq!(path("/t?type={task_type}&{x", VALUES), "/t?type=READ_INFO&{x");
    }
}
