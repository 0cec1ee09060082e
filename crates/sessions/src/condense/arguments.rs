//! Formats the arguments of a call as text.

use std::borrow::Cow;

use serde_json::Value;

/// Formats arguments the way people would write them: just the command if there is one, otherwise
/// `name: value` pairs. Anything but a JSON object stays unchanged.
pub(super) fn format_arguments(json: &str) -> Cow<'_, str> {
    if !json.trim_start().starts_with('{') {
        return Cow::Borrowed(json);
    }
    let Ok(Value::Object(map)) = serde_json::from_str::<Value>(json) else {
        return Cow::Borrowed(json);
    };
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(Value::is_string) => {
            parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    };
    // With a path, `command` is only the name of an editor's action.
    let is_path = |key: &str| key.contains("path") || key.contains("file");
    if let Some(command) = map.get("command").or_else(|| map.get("cmd"))
        && !map.keys().any(|key| is_path(key))
    {
        return Cow::Owned(plain(command));
    }
    let pairs: Vec<String> =
        map.iter().map(|(key, value)| format!("{key}: {}", plain(value))).collect();
    Cow::Owned(pairs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_read_like_a_command() {
        for (json, shown) in [
            (r#"{"command":"cargo test","description":"run"}"#, "cargo test"),
            (r#"{"command":["bash","-lc","ls"],"workdir":"/x"}"#, "bash -lc ls"),
            (r#"{"cmd":"ls"}"#, "ls"),
            (r#"{"command":"view","path":"a.py"}"#, "command: view, path: a.py"),
            (r#"{"file_path":"a.rs","limit":3}"#, "file_path: a.rs, limit: 3"),
            (r#"{"command": "cut"#, r#"{"command": "cut"#),
            ("print(1)", "print(1)"),
        ] {
            assert_eq!(format_arguments(json), shown);
        }
    }
}
