//! Parses checks from files, where each is a mapping with one kind. Every fault is reported with
//! its location.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value, json};

use super::{Check, CheckKind, CheckWeight, MAX_CHECKS, MAX_DEPTH};
use selftest_text::one_line;

/// Maximum length of a check's name, in characters.
pub(super) const MAX_NAME: usize = 200;

/// A fault in a check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", if .pointer.is_empty() { String::new() } else { format!("{}: ", .pointer) })]
pub struct CheckParseError {
    /// JSON Pointer to the fault, relative to the parsed value.
    pub pointer: String,
    /// True if the key is at fault rather than its value.
    pub at_key: bool,
    /// Description of the fault.
    pub message: String,
    /// One thing that the user can do.
    pub hint: Option<String>,
}

impl CheckParseError {
    fn new(pointer: &str, message: impl Into<String>) -> Self {
        Self { pointer: pointer.to_owned(), at_key: false, message: message.into(), hint: None }
    }

    fn at_key(pointer: &str, key: &str, message: impl Into<String>, hint: String) -> Self {
        let pointer = join(pointer, key);
        Self { pointer, at_key: true, message: message.into(), hint: Some(hint) }
    }
}

fn join(pointer: &str, key: &str) -> String {
    // RFC 6901 escapes; `~` must be replaced first.
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Parses the list under `checks`, reporting all faults, not only the first.
pub fn read_list(value: &Value) -> Result<Vec<Check>, Vec<CheckParseError>> {
    let mut reader = CheckParser::default();
    let checks = reader.list("", value, 0);
    reader.finish(checks)
}

/// Parses one check, reporting all faults, not only the first.
pub fn read(value: &Value) -> Result<Check, Vec<CheckParseError>> {
    let mut reader = CheckParser::default();
    let check = reader.check("", value, 0);
    reader.finish(check)
}

/// Says in plain words what a value should have been.
fn plain_types(why: &str) -> String {
    why.replace("expected f64", "expected a number")
        .replace("expected u64", "expected a whole number")
        .replace("expected u32", "expected a whole number")
        .replace("invalid type: string ", "found the text ")
        .replace("invalid type: ", "found ")
}

#[derive(Default)]
struct CheckParser {
    faults: Vec<CheckParseError>,
    count: usize,
}

impl CheckParser {
    fn finish<T>(self, read: Option<T>) -> Result<T, Vec<CheckParseError>> {
        match read {
            Some(read) if self.faults.is_empty() => Ok(read),
            _ => Err(self.faults),
        }
    }

    fn list(&mut self, pointer: &str, value: &Value, depth: usize) -> Option<Vec<Check>> {
        let Some(items) = value.as_array() else {
            self.faults.push(CheckParseError::new(pointer, "expected a list of checks"));
            return None;
        };
        let read = items.iter().enumerate();
        // Collecting straight into an `Option` would stop at the first fault.
        let read: Vec<_> =
            read.map(|(at, item)| self.check(&format!("{pointer}/{at}"), item, depth)).collect();
        read.into_iter().collect()
    }

    fn check(&mut self, pointer: &str, value: &Value, depth: usize) -> Option<Check> {
        self.count += 1;
        if self.count > MAX_CHECKS || depth > MAX_DEPTH {
            if self.count == MAX_CHECKS + 1 || depth == MAX_DEPTH + 1 {
                let message =
                    format!("more than {MAX_CHECKS} checks, or nested deeper than {MAX_DEPTH}");
                self.faults.push(CheckParseError::new(pointer, message));
            }
            return None;
        }
        let Some(members) = value.as_object() else {
            let mut fault =
                CheckParseError::new(pointer, "a check must be a mapping with one kind");
            fault.hint = Some("write it as `contains: some text`".to_owned());
            self.faults.push(fault);
            return None;
        };
        let name = self.name(pointer, members);
        let weight = self.weight(pointer, members);
        let mut kinds =
            members.iter().filter(|(key, _)| !matches!(key.as_str(), "name" | "weight"));
        let Some((key, inner)) = kinds.next() else {
            let mut fault = CheckParseError::new(pointer, "a check must have a kind");
            fault.hint = Some(known_kinds());
            self.faults.push(fault);
            return None;
        };
        for (extra, _) in kinds {
            let message = if CheckKind::NAMES.contains(&extra.as_str()) {
                format!(
                    "a check has one kind, and `{key}` is there already",
                    key = one_line(key, 60)
                )
            } else {
                format!("unknown key `{}` in a check", one_line(extra, 60))
            };
            let hint = "put the second one in a check of its own, with `- ` before it".to_owned();
            self.faults.push(CheckParseError::at_key(pointer, extra, message, hint));
        }
        let kind = self.kind(pointer, key, inner, depth)?;
        Some(Check { name: name?, weight: weight?, kind })
    }

    /// Returns the optional name; the outer `None` means that it is invalid.
    #[expect(clippy::option_option, reason = "the outer one says whether it could be read")]
    fn name(&mut self, pointer: &str, members: &Map<String, Value>) -> Option<Option<String>> {
        let Some(value) = members.get("name") else { return Some(None) };
        let fits = |name: &&str| (1..=MAX_NAME).contains(&name.chars().count());
        if let Some(name) = value.as_str().filter(fits) {
            return Some(Some(name.to_owned()));
        }
        let message = format!("`name` must be text of 1 to {MAX_NAME} characters");
        self.faults.push(CheckParseError::new(&join(pointer, "name"), message));
        None
    }

    fn weight(&mut self, pointer: &str, members: &Map<String, Value>) -> Option<CheckWeight> {
        let Some(value) = members.get("weight") else { return Some(CheckWeight::ONE) };
        let message = match value.as_f64().map(CheckWeight::new) {
            Some(Ok(weight)) => return Some(weight),
            Some(Err(error)) => error.to_string(),
            None => "`weight` must be a number".to_owned(),
        };
        self.faults.push(CheckParseError::new(&join(pointer, "weight"), message));
        None
    }

    fn kind(&mut self, at: &str, key: &str, value: &Value, depth: usize) -> Option<CheckKind> {
        let pointer = &join(at, key);
        match key {
            "all" | "any" => {
                let inner = self.list(pointer, value, depth + 1)?;
                if inner.is_empty() {
                    let message = format!("`{key}` must have at least one check");
                    self.faults.push(CheckParseError::new(pointer, message));
                    return None;
                }
                Some(if key == "all" { CheckKind::All(inner) } else { CheckKind::Any(inner) })
            }
            "not" => Some(CheckKind::Not(Box::new(self.check(pointer, value, depth + 1)?))),
            _ => match CheckKind::parse(key, value) {
                Some(Ok(kind)) => Some(kind),
                Some(Err(error)) => {
                    let why = error.to_string();
                    let message = format!("`{key}`: {}", one_line(&plain_types(&why), 300));
                    // YAML reads `contains: 80` as a number and `contains: true` as a boolean.
                    let unquoted = (value.is_number() || value.is_boolean())
                        && why.contains("expected a string");
                    let hint = unquoted.then(|| "put it in quotes".to_owned());
                    self.faults
                        .push(CheckParseError { hint, ..CheckParseError::new(pointer, message) });
                    None
                }
                None => {
                    let message = format!("unknown kind of check `{}`", one_line(key, 60));
                    let hint = match nearest_kind(key) {
                        Some(near) => format!("did you mean `{near}`? {}", known_kinds()),
                        None => known_kinds(),
                    };
                    self.faults.push(CheckParseError::at_key(at, key, message, hint));
                    None
                }
            },
        }
    }
}

/// Returns the kind closest to a misspelt one, if any is close.
fn nearest_kind(key: &str) -> Option<&'static str> {
    // The distance is quadratic in the length, and the key is untrusted.
    if key.len() > 40 {
        return None;
    }
    let distance = |name: &str| strsim::levenshtein(&key.to_lowercase(), name);
    let distances = CheckKind::NAMES.iter().map(|&name| (distance(name), name));
    let (distance, name) = distances.min()?;
    // Up to a third of the characters may differ.
    (distance <= (key.chars().count() / 3).max(1)).then_some(name)
}

fn known_kinds() -> String {
    let names: Vec<String> = CheckKind::NAMES.iter().map(|name| format!("`{name}`")).collect();
    format!("the kinds are {}", names.join(", "))
}

impl<'de> Deserialize<'de> for Check {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        read(&value).map_err(|faults| {
            let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
            de::Error::custom(all.join("; "))
        })
    }
}

impl Serialize for Check {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = Map::new();
        if let Some(name) = &self.name {
            members.insert("name".to_owned(), json!(name));
        }
        if self.weight != CheckWeight::ONE {
            members.insert("weight".to_owned(), json!(self.weight));
        }
        members.insert(self.kind.name().to_owned(), self.kind.value());
        members.serialize(serializer)
    }
}
