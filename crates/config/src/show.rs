//! Formats the resolved configuration as YAML with the origin of each value.

use std::fmt::Write as _;

use serde_json::Value;

use super::document::drop_nulls;
use super::layers::ResolvedConfig;
use super::variables::ValueOrigin;

/// Column of the origin comments, unless the value is longer.
const COMMENT_COLUMN: usize = 40;

/// Formats the settings as YAML that loads again to the same settings.
pub fn show(resolved: &ResolvedConfig) -> String {
    let mut document = serde_json::json!(resolved.config);
    drop_nulls(&mut document);
    let mut text = match &resolved.path {
        Some(path) => format!("# {}\n", selftest_text::one_line(&path.display().to_string(), 500)),
        None => "# no configuration file\n".to_owned(),
    };
    YamlWriter { resolved, text: &mut text }.members(&document, "", 0, 0);
    text
}

struct YamlWriter<'a> {
    resolved: &'a ResolvedConfig,
    text: &'a mut String,
}

impl YamlWriter<'_> {
    /// Writes the members of a mapping or list. The first `begun` columns of the first line are
    /// already written.
    fn members(&mut self, value: &Value, pointer: &str, indent: usize, mut begun: usize) {
        let mut start = |text: &mut String| {
            text.push_str(&" ".repeat(indent - begun));
            begun = 0;
        };
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    start(self.text);
                    let head = format!("{}:", quoted_key(key));
                    self.member(&head, member, &super::join(pointer, key), indent);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    start(self.text);
                    self.member("-", item, &format!("{pointer}/{index}"), indent);
                }
            }
            _ => {}
        }
    }

    fn member(&mut self, head: &str, value: &Value, pointer: &str, indent: usize) {
        let inner = indent + 2;
        match value {
            Value::Object(members) if !members.is_empty() => {
                if head == "-" {
                    self.text.push_str("- ");
                    self.members(value, pointer, inner, inner);
                } else {
                    let _ = writeln!(self.text, "{head}");
                    self.members(value, pointer, inner, 0);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                let _ = writeln!(self.text, "{head}");
                self.members(value, pointer, inner, 0);
            }
            _ => {
                let line = format!("{head} {}", scalar(value));
                let width = COMMENT_COLUMN.saturating_sub(indent);
                let origin = self.resolved.origins.get(pointer).unwrap_or(&ValueOrigin::Default);
                let _ = writeln!(self.text, "{line:<width$} # {origin}");
            }
        }
    }
}

/// Formats a scalar, or an empty mapping or list.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// Returns the key unquoted if every YAML reader takes it as text, else quoted.
fn quoted_key(key: &str) -> String {
    let plain = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&key);
    if plain { key.to_owned() } else { quoted(key) }
}

/// Returns text in double quotes with unusual characters escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // The remaining characters include invisible and bidirectional ones.
            ' '..='~' | '\u{a1}'..='\u{1fff}' | '\u{3041}'..='\u{d7ff}' => quoted.push(c),
            other => _ = write!(quoted, "\\U{:08X}", u32::from(other)),
        }
    }
    quoted.push('"');
    quoted
}
