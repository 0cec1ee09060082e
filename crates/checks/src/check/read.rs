//! Parses checks from files, where each is a mapping with one kind. Every fault is reported with
//! its location, and checks of one case that cannot all hold are found.
//!
//! The message of a faulty value follows its key: "`lines`: expected …".

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value, json};

use super::data::{MAX_SCHEMA, MAX_SCHEMA_DEPTH};
use super::parameters::{
    MAX, MAX_ITEMS, MAX_PATH, MAX_SECONDS, MAX_SIMILAR, MAX_TEXT, MAX_TIMEOUT,
};
use super::pattern::MAX_PATTERN;
use super::{Check, CheckKind, CheckWeight, CountBounds, MAX_CHECKS, MAX_DEPTH};
use selftest_text::escape::terminal;
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
            // Reported once, and not for each of the thousands that may follow.
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
        // Only at the end, so that every fault of the check was found.
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

/// A value that a check cannot have.
#[derive(Debug, thiserror::Error)]
pub enum CheckValueError {
    /// The fields are unknown, missing or of another type.
    #[error(transparent)]
    Fields(#[from] serde_json::Error),
    /// An empty text.
    #[error("expected text that is not empty")]
    EmptyText,
    /// A text above the maximum length.
    #[error("a text may have at most {MAX_TEXT} characters")]
    LongText,
    /// The text to compare with is empty or too long to compare.
    #[error("`to` must have 1 to {MAX_SIMILAR} characters")]
    SimilarText,
    /// A bare number was expected, or bounds.
    #[error("expected a whole number, or `min`, `max` or both")]
    NoCount,
    /// Neither a number nor a mapping.
    #[error("expected a whole number, or a mapping with `min`, `max` or both")]
    CountShape,
    /// Both bounds are missing.
    #[error("expected `min`, `max` or both")]
    NoBounds,
    /// Both bounds of a number of occurrences are missing.
    #[error("expected `min`, `max` or both beside `of`")]
    NoOccurrenceBounds,
    /// Bounds that no value satisfies.
    #[error("`min` is {min}, above `max` {max}")]
    EmptyRange {
        /// The minimum.
        min: String,
        /// The maximum.
        max: String,
    },
    /// A bound above the maximum.
    #[error("a bound may be at most {MAX}")]
    LargeBound,
    /// An exact duration.
    #[error("no time is exact: write {{max: {0}}}")]
    ExactDuration(f64),
    /// A duration that is no mapping.
    #[error("expected a mapping with `min`, `max` or both")]
    DurationShape,
    /// A duration out of range.
    #[error("seconds must be from 0 to {MAX_SECONDS}")]
    Seconds,
    /// A weight out of range.
    #[error("a weight must be above 0 and at most {max}, got {0}", max = super::CheckWeight::MAX)]
    Weight(f64),
    /// A command line without a program.
    #[error("`run` must begin with a program")]
    NoProgram,
    /// A command line above the maximum length.
    #[error("`run` may have at most {MAX_ITEMS} words of {MAX_TEXT} bytes")]
    LongCommand,
    /// A word that cannot be passed to a program.
    #[error("`run` holds a zero byte")]
    ZeroByte,
    /// A timeout out of range.
    #[error("`timeout_seconds` must be above 0 and at most {MAX_TIMEOUT}")]
    Timeout,
    /// Neither a tool's name nor a mapping.
    #[error("expected the name of a tool, or a mapping with `name`")]
    ToolShape,
    /// Neither a pattern nor a mapping.
    #[error("expected a pattern, or a mapping with `matches`")]
    CommandShape,
    /// A call that must not happen, which is another kind of check.
    #[error("no call at all is `tool_not_called`")]
    NoCall,
    /// An empty or long list of tools.
    #[error("expected a list of 1 to {MAX_ITEMS} tools")]
    ToolCount,
    /// A number of calls where only the first counts.
    #[error("only the first call counts here: leave out `min` and `max`")]
    CallNumber,
    /// A long list of paths.
    #[error("expected at most {MAX_ITEMS} paths")]
    PathCount,
    /// A path that is empty or too long.
    #[error("a path must have 1 to {MAX_PATH} bytes")]
    PathLength,
    /// An invalid glob.
    #[error("`{glob}`: {reason}")]
    Glob {
        /// The glob, shortened.
        glob: String,
        /// The reason.
        reason: globset::ErrorKind,
    },
    /// Globs that cannot be compiled together.
    #[error(transparent)]
    Globs(#[from] globset::Error),
    /// An empty regular expression.
    #[error("an empty pattern matches everything")]
    EmptyPattern,
    /// A regular expression above the maximum length.
    #[error("a pattern may have at most {MAX_PATTERN} characters")]
    LongPattern,
    /// A regular expression that is invalid, or too big when compiled.
    #[error("{}", describe_pattern(.0))]
    Pattern(regex::Error),
    /// A file whose name does not say what is in it.
    #[error(
        "expected `format`, because the path does not end with .json, .jsonl, .yaml, .toml, .csv or .tsv"
    )]
    DataFormat,
    /// A value that must not be there, with requirements on it or without a place.
    #[error("`absent` needs `pointer`, and nothing else beside it")]
    AbsentValue,
    /// A text that is no JSON Pointer.
    #[error("`pointer` must be a JSON pointer such as `/{0}`")]
    JsonPointer(String),
    /// A schema that is no mapping.
    #[error("`schema` must be a mapping")]
    SchemaShape,
    /// A schema above the maximum size.
    #[error("`schema` may have at most {MAX_SCHEMA} bytes")]
    LargeSchema,
    /// A schema that refers to itself for the same value.
    #[error("`schema` refers to itself without reading on")]
    CircularSchema,
    /// A value that is no JSON Schema.
    #[error("`schema` is not a JSON Schema: {0}")]
    Schema(String),
    /// A schema above the maximum depth.
    #[error("`schema` is nested deeper than {MAX_SCHEMA_DEPTH}")]
    DeepSchema,
    /// A reference to another document.
    #[error("`schema` refers outside, to `{0}`")]
    ExternalReference(String),
    /// An `$id` below the root.
    #[error("`schema` has an `$id` within, which changes what references mean")]
    NestedId,
}

/// Returns the message of a pattern's error on one line.
fn describe_pattern(error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(_) = error {
        return "the pattern is too big when compiled".to_owned();
    }
    // The error is multi-line with a caret diagram; its last line is the message.
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    selftest_text::one_line(last.trim_start_matches("error: "), 200)
}

/// Returns one line per pair of contradictory checks. Looks into `all` and `not`; alternatives in
/// `any` may well exclude each other.
pub fn warnings(checks: &[Check]) -> Vec<String> {
    let mut demands = Vec::new();
    for check in checks {
        collect(check, true, &mut demands);
    }
    let mut found = Vec::new();
    for (at, one) in demands.iter().enumerate() {
        for other in &demands[at + 1..] {
            if contradict(one, other) {
                found.push(format!("{} and {} cannot both hold", shown(one), shown(other)));
            }
        }
    }
    found
}

/// A kind of check, and whether it must hold or must not.
type WantedKind<'a> = (&'a CheckKind, bool);

fn collect<'a>(check: &'a Check, wanted: bool, demands: &mut Vec<WantedKind<'a>>) {
    match &check.kind {
        CheckKind::All(inner) if wanted => {
            for check in inner {
                collect(check, true, demands);
            }
        }
        // By De Morgan: `not any` means that each is negated.
        CheckKind::Any(inner) if !wanted => {
            for check in inner {
                collect(check, false, demands);
            }
        }
        CheckKind::Not(inner) => collect(inner, !wanted, demands),
        kind => demands.push((kind, wanted)),
    }
}

fn contradict(&(one, wanted): &WantedKind<'_>, &(other, other_wanted): &WantedKind<'_>) -> bool {
    use CheckKind as K;
    if one == other {
        return wanted != other_wanted;
    }
    let both = wanted && other_wanted;
    match (one, other) {
        (K::Contains(a), K::NotContains(b)) | (K::NotContains(b), K::Contains(a)) => {
            // A text that contains the longer string also contains the shorter one.
            (both && a.as_str().contains(b.as_str())) || (!wanted && !other_wanted && a == b)
        }
        (K::Regex(a), K::NotRegex(b)) | (K::NotRegex(b), K::Regex(a)) => {
            a == b && wanted == other_wanted
        }
        (K::ToolCalled(a), K::ToolNotCalled(b)) | (K::ToolNotCalled(b), K::ToolCalled(a)) => {
            both && a.name == *b && a.bounds.limits().0 > Some(0)
        }
        (K::ToolsInOrder(a), K::ToolNotCalled(b)) | (K::ToolNotCalled(b), K::ToolsInOrder(a)) => {
            both && a.names().contains(b)
        }
        (K::Equals(a), K::Equals(b)) => both && a.trim() != b.trim(),
        (K::Equals(a), K::Contains(b)) | (K::Contains(b), K::Equals(a)) => {
            both && !a.contains(b.as_str())
        }
        (K::Equals(a), K::NotContains(b)) | (K::NotContains(b), K::Equals(a)) => {
            both && a.trim().contains(b.as_str())
        }
        // Equal checks were handled above, so these are different statuses.
        (K::Status(_), K::Status(_)) => both,
        (K::Lines(a), K::Lines(b))
        | (K::Items(a), K::Items(b))
        | (K::Words(a), K::Words(b))
        | (K::Questions(a), K::Questions(b))
        | (K::Characters(a), K::Characters(b))
        | (K::Turns(a), K::Turns(b))
        | (K::Tokens(a), K::Tokens(b)) => both && CountBounds::is_disjoint(*a, *b),
        (K::Occurrences(a), K::Occurrences(b)) => {
            both && a.of == b.of && CountBounds::is_disjoint(a.bounds, b.bounds)
        }
        _ => both && files_contradict(one, other),
    }
}

/// Returns true if the checks require different outcomes for the same file.
fn files_contradict(one: &CheckKind, other: &CheckKind) -> bool {
    let fate = |kind: &CheckKind| match kind {
        CheckKind::FileCreated(path) => Some((path.clone(), "created")),
        CheckKind::FileChanged(path) => Some((path.clone(), "changed")),
        CheckKind::FileDeleted(path) => Some((path.clone(), "deleted")),
        CheckKind::FileUnchanged(path) => Some((path.clone(), "unchanged")),
        CheckKind::FileExists(path) => Some((path.clone(), "exists")),
        CheckKind::FileContains(wanted) => Some((wanted.path.clone(), "exists")),
        _ => None,
    };
    let (Some((path, one)), Some((other_path, other))) = (fate(one), fate(other)) else {
        return false;
    };
    let exists = |fate| fate == "exists";
    let gone = |fate| fate == "deleted";
    // What was created, changed or left alone exists, too. Otherwise a file has one fate only.
    path == other_path
        && if exists(one) || exists(other) { gone(one) || gone(other) } else { one != other }
}

fn shown(&(kind, wanted): &WantedKind<'_>) -> String {
    let not = if wanted { "" } else { "not " };
    let value = terminal(&kind.value().to_string(), 80).replace('`', "'");
    format!("`{not}{}: {value}`", kind.name())
}
