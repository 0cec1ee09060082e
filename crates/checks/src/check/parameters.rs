//! Parameters of the kinds of checks, each bounded when it is parsed.

use std::collections::BTreeMap;
use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{CheckPattern, CheckValueError};
use selftest_stats::score::Score;

/// Maximum length of a text in a check, in characters.
pub(super) const MAX_TEXT: usize = 20_000;
/// Maximum length of a text for similarity checks, in characters. The comparison takes quadratic
/// time.
pub(super) const MAX_SIMILAR: usize = 5_000;
/// Maximum number of items of a list in a check.
pub(super) const MAX_ITEMS: usize = 100;
/// Maximum length of a path, in bytes.
pub(super) const MAX_PATH: usize = 1_000;
/// Maximum timeout of a command, in seconds.
pub(super) const MAX_TIMEOUT: f64 = 3_600.0;
/// Default timeout of a command, in seconds.
const DEFAULT_TIMEOUT: f64 = 10.0;

/// Text that is not empty and of bounded length.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CheckText(String);

impl CheckText {
    /// Creates a text; fails if it is empty or too long.
    pub fn new(text: impl Into<String>) -> Result<Self, CheckValueError> {
        let text = text.into();
        if text.is_empty() {
            return Err(CheckValueError::EmptyText);
        }
        if text.chars().count() > MAX_TEXT {
            return Err(CheckValueError::LongText);
        }
        Ok(Self(text))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CheckText {
    type Error = CheckValueError;
    fn try_from(text: String) -> Result<Self, CheckValueError> {
        Self::new(text)
    }
}

impl From<CheckText> for String {
    fn from(text: CheckText) -> String {
        text.0
    }
}

/// Similarity of an answer to a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SimilarFields", into = "SimilarFields")]
pub struct SimilarityCheck {
    /// The text.
    pub to: String,
    /// Minimum similarity: 1 minus the normalised Levenshtein distance by characters, ignoring
    /// surrounding whitespace.
    pub at_least: Score,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SimilarFields {
    to: String,
    at_least: Score,
}

impl TryFrom<SimilarFields> for SimilarityCheck {
    type Error = CheckValueError;

    fn try_from(SimilarFields { to, at_least }: SimilarFields) -> Result<Self, CheckValueError> {
        if to.trim().is_empty() || to.chars().count() > MAX_SIMILAR {
            return Err(CheckValueError::SimilarText);
        }
        Ok(Self { to, at_least })
    }
}

impl From<SimilarityCheck> for SimilarFields {
    fn from(SimilarityCheck { to, at_least }: SimilarityCheck) -> Self {
        Self { to, at_least }
    }
}

/// Number of non-overlapping occurrences of a text in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OccurrencesFields", into = "OccurrencesFields")]
pub struct OccurrenceBounds {
    /// The text.
    pub of: CheckText,
    /// Bounds on the number.
    pub bounds: CountBounds,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OccurrencesFields {
    of: CheckText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
}

impl TryFrom<OccurrencesFields> for OccurrenceBounds {
    type Error = CheckValueError;

    fn try_from(
        OccurrencesFields { of, min, max }: OccurrencesFields,
    ) -> Result<Self, CheckValueError> {
        let bounds = CountBounds::new(min, max).map_err(|why| match (min, max) {
            (None, None) => CheckValueError::NoOccurrenceBounds,
            _ => why,
        })?;
        Ok(Self { of, bounds })
    }
}

impl From<OccurrenceBounds> for OccurrencesFields {
    fn from(OccurrenceBounds { of, bounds }: OccurrenceBounds) -> Self {
        let (min, max) = bounds.limits();
        Self { of, min, max }
    }
}

/// A program that decides. The caller runs it in the sandbox, without a shell, with the answer on
/// stdin and the case in its environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandCheck {
    /// Program and arguments.
    pub run: CommandWords,
    /// Exit code that means success.
    #[serde(default)]
    pub exit_code: u8,
    /// First line that it must print, ignoring surrounding whitespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<String>,
    /// Text that its output must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prints: Option<CheckText>,
    /// Pattern that its output must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<CheckPattern>,
    /// Exit code by which the program says that it could not decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided_exit: Option<u8>,
    /// Maximum duration.
    #[serde(default)]
    pub timeout_seconds: CommandTimeout,
}

/// A program, which is not empty, and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct CommandWords(Vec<String>);

impl CommandWords {
    /// Creates a command line; fails if it has no program or is unreasonably long.
    pub fn new(words: Vec<String>) -> Result<Self, CheckValueError> {
        if words.first().is_none_or(String::is_empty) {
            return Err(CheckValueError::NoProgram);
        }
        if words.len() > MAX_ITEMS || words.iter().any(|word| word.len() > MAX_TEXT) {
            return Err(CheckValueError::LongCommand);
        }
        // The OS passes arguments as NUL-terminated strings.
        if words.iter().any(|word| word.contains('\0')) {
            return Err(CheckValueError::ZeroByte);
        }
        Ok(Self(words))
    }

    /// Returns the program.
    pub fn program(&self) -> &str {
        &self.0[0]
    }

    /// Returns the program and its arguments.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl TryFrom<Vec<String>> for CommandWords {
    type Error = CheckValueError;
    fn try_from(words: Vec<String>) -> Result<Self, CheckValueError> {
        Self::new(words)
    }
}

impl From<CommandWords> for Vec<String> {
    fn from(line: CommandWords) -> Self {
        line.0
    }
}

/// Timeout of a command: above 0, at most an hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct CommandTimeout(f64);

impl CommandTimeout {
    /// Returns the timeout as a duration.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.0)
    }

    /// Returns the timeout in seconds.
    pub const fn seconds(self) -> f64 {
        self.0
    }
}

impl Default for CommandTimeout {
    fn default() -> Self {
        Self(DEFAULT_TIMEOUT)
    }
}

impl TryFrom<f64> for CommandTimeout {
    type Error = CheckValueError;

    fn try_from(seconds: f64) -> Result<Self, CheckValueError> {
        if seconds > 0.0 && seconds <= MAX_TIMEOUT {
            Ok(Self(seconds))
        } else {
            Err(CheckValueError::Timeout)
        }
    }
}

impl From<CommandTimeout> for f64 {
    fn from(timeout: CommandTimeout) -> f64 {
        timeout.0
    }
}

/// Required calls of a tool. In a file, the tool's name alone is accepted too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct ToolCallCheck {
    /// Name of the tool.
    pub name: CheckText,
    /// Arguments that a call must have to count; it may have others. A string also matches as part
    /// of a longer string in the call.
    pub arguments: BTreeMap<String, Value>,
    /// Pattern that a call must match to count: in a text among its arguments, or in the arguments
    /// as JSON.
    pub matches: Option<CheckPattern>,
    /// Bounds on the number of matching calls, at least one by default.
    pub bounds: CountBounds,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCalledFields {
    name: CheckText,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    arguments: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    matches: Option<CheckPattern>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
}

impl ToolCallCheck {
    /// Requires at least one call of this tool.
    pub fn once(name: CheckText) -> Self {
        Self { name, arguments: BTreeMap::new(), matches: None, bounds: CountBounds::at_least(1) }
    }
}

impl TryFrom<Value> for ToolCallCheck {
    type Error = CheckValueError;

    fn try_from(value: Value) -> Result<Self, CheckValueError> {
        if let Value::String(name) = value {
            return Ok(Self::once(CheckText::new(name)?));
        }
        if !value.is_object() {
            return Err(CheckValueError::ToolShape);
        }
        let ToolCalledFields { name, arguments, matches, min, max } =
            serde_json::from_value(value)?;
        // Without bounds, one call is enough.
        let min = if min.is_none() && max.is_none() { Some(1) } else { min };
        let bounds = CountBounds::new(min, max)?;
        // There is a separate kind of check for that.
        if bounds.limits().1 == Some(0) && arguments.is_empty() && matches.is_none() {
            return Err(CheckValueError::NoCall);
        }
        Ok(Self { name, arguments, matches, bounds })
    }
}

impl From<ToolCallCheck> for Value {
    fn from(called: ToolCallCheck) -> Value {
        // The short form for a tool without further conditions.
        if called == ToolCallCheck::once(called.name.clone()) {
            return Value::String(called.name.into());
        }
        let ToolCallCheck { name, arguments, matches, bounds } = called;
        let (min, max) = bounds.limits();
        let fields = ToolCalledFields { name, arguments, matches, min, max };
        serde_json::to_value(fields).unwrap_or_default()
    }
}

/// Commands that an agent must run. In a file, the pattern alone is accepted too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct CommandRunCheck {
    /// Pattern that a command must match to count.
    pub matches: CheckPattern,
    /// Bounds on the number of matching commands, at least one by default.
    pub bounds: CountBounds,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandRunFields {
    matches: CheckPattern,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
}

impl TryFrom<Value> for CommandRunCheck {
    type Error = CheckValueError;

    fn try_from(value: Value) -> Result<Self, CheckValueError> {
        if let Value::String(pattern) = value {
            let matches = CheckPattern::new(&pattern)?;
            return Ok(Self { matches, bounds: CountBounds::at_least(1) });
        }
        if !value.is_object() {
            return Err(CheckValueError::CommandShape);
        }
        let CommandRunFields { matches, min, max } = serde_json::from_value(value)?;
        // Without bounds, one run is enough.
        let min = if min.is_none() && max.is_none() { Some(1) } else { min };
        Ok(Self { matches, bounds: CountBounds::new(min, max)? })
    }
}

impl From<CommandRunCheck> for Value {
    fn from(run: CommandRunCheck) -> Value {
        let CommandRunCheck { matches, bounds } = run;
        if bounds == CountBounds::at_least(1) {
            return Value::String(matches.into());
        }
        let (min, max) = bounds.limits();
        serde_json::to_value(CommandRunFields { matches, min, max }).unwrap_or_default()
    }
}

/// A non-empty list of tool names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<CheckText>", into = "Vec<CheckText>")]
pub struct ToolNames(Vec<CheckText>);

impl ToolNames {
    /// Returns the names in order.
    pub fn names(&self) -> &[CheckText] {
        &self.0
    }
}

impl TryFrom<Vec<CheckText>> for ToolNames {
    type Error = CheckValueError;

    fn try_from(names: Vec<CheckText>) -> Result<Self, CheckValueError> {
        if (1..=MAX_ITEMS).contains(&names.len()) {
            Ok(Self(names))
        } else {
            Err(CheckValueError::ToolCount)
        }
    }
}

impl From<ToolNames> for Vec<CheckText> {
    fn from(tools: ToolNames) -> Self {
        tools.0
    }
}

/// Calls whose first occurrences must come in this order. In a file, each is a tool's name or what
/// `tool_called` takes, without a number of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<ToolCallCheck>", into = "Vec<Value>")]
pub struct CallOrder(Vec<ToolCallCheck>);

impl CallOrder {
    /// Returns the calls in order.
    pub fn calls(&self) -> &[ToolCallCheck] {
        &self.0
    }
}

impl TryFrom<Vec<ToolCallCheck>> for CallOrder {
    type Error = CheckValueError;

    fn try_from(calls: Vec<ToolCallCheck>) -> Result<Self, CheckValueError> {
        if !(1..=MAX_ITEMS).contains(&calls.len()) {
            return Err(CheckValueError::ToolCount);
        }
        // Only the first call of each counts.
        if calls.iter().any(|call| call.bounds != CountBounds::at_least(1)) {
            return Err(CheckValueError::CallNumber);
        }
        Ok(Self(calls))
    }
}

impl From<CallOrder> for Vec<Value> {
    fn from(order: CallOrder) -> Self {
        let calls = order.0.into_iter().map(|call| {
            let mut call = Value::from(call);
            if let Value::Object(members) = &mut call {
                members.remove("min");
            }
            call
        });
        calls.collect()
    }
}

/// A text that a file must contain after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileTextCheck {
    /// Path relative to the project root. With `*`, one matching file is enough.
    pub path: CheckText,
    /// The text.
    pub text: CheckText,
}

/// Paths and globs. `*` stays within a folder, `**` does not; a path without either also covers
/// everything below a folder of that name. An empty list matches nothing.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct PathGlobs {
    sources: Vec<String>,
    compiled: GlobSet,
}

impl PathGlobs {
    /// Compiles the globs; fails if one is invalid.
    pub fn new(sources: Vec<String>) -> Result<Self, CheckValueError> {
        if sources.len() > MAX_ITEMS {
            return Err(CheckValueError::PathCount);
        }
        let mut set = GlobSetBuilder::new();
        for source in &sources {
            if source.is_empty() || source.len() > MAX_PATH {
                return Err(CheckValueError::PathLength);
            }
            let plain = source.trim_start_matches("./").trim_end_matches('/');
            // The second glob covers the contents, if the path is a folder.
            for text in [plain.to_owned(), format!("{plain}/**")] {
                // With literal separators, `*` does not cross folders.
                let glob = GlobBuilder::new(&text).literal_separator(true).build();
                set.add(glob.map_err(|error| CheckValueError::Glob {
                    glob: selftest_text::one_line(source, 60),
                    reason: error.kind().clone(),
                })?);
            }
        }
        let compiled = set.build()?;
        Ok(Self { sources, compiled })
    }

    /// Returns true if any of them matches the path.
    pub fn matches_path(&self, path: &str) -> bool {
        self.compiled.is_match(path)
    }

    /// Returns the globs as written.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }
}

impl TryFrom<Vec<String>> for PathGlobs {
    type Error = CheckValueError;
    fn try_from(sources: Vec<String>) -> Result<Self, CheckValueError> {
        Self::new(sources)
    }
}

impl From<PathGlobs> for Vec<String> {
    fn from(globs: PathGlobs) -> Self {
        globs.sources
    }
}

impl PartialEq for PathGlobs {
    fn eq(&self, other: &Self) -> bool {
        self.sources == other.sources
    }
}

impl Eq for PathGlobs {}

impl fmt::Debug for PathGlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Globs").field(&self.sources).finish()
    }
}

/// Largest value of a bound.
pub(super) const MAX: u64 = 1_000_000_000;

/// Bounds on a count. At least one limit is set, and `min` does not exceed `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct CountBounds {
    min: Option<u64>,
    max: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoundsFields<T> {
    min: Option<T>,
    max: Option<T>,
}

impl CountBounds {
    /// Creates bounds; fails if they limit nothing or if no count can satisfy them.
    pub fn new(min: Option<u64>, max: Option<u64>) -> Result<Self, CheckValueError> {
        match (min, max) {
            (None, None) => Err(CheckValueError::NoCount),
            (Some(min), Some(max)) if min > max => {
                Err(CheckValueError::EmptyRange { min: min.to_string(), max: max.to_string() })
            }
            // A bound that is absent is `None`, which is less than any number.
            _ if min.max(max) > Some(MAX) => Err(CheckValueError::LargeBound),
            _ => Ok(Self { min, max }),
        }
    }

    /// Returns bounds that allow exactly this count.
    pub fn exactly(count: u64) -> Self {
        // Clamped, because this constructor cannot fail.
        let count = Some(count.min(MAX));
        Self { min: count, max: count }
    }

    /// Returns bounds with only a minimum.
    pub fn at_least(count: u64) -> Self {
        Self { min: Some(count.min(MAX)), max: None }
    }

    /// Returns bounds with only a maximum.
    pub fn at_most(count: u64) -> Self {
        Self { min: None, max: Some(count.min(MAX)) }
    }

    /// Returns the minimum and the maximum.
    pub const fn limits(self) -> (Option<u64>, Option<u64>) {
        (self.min, self.max)
    }

    /// Returns true if the count is within the bounds.
    pub fn contains(self, count: u64) -> bool {
        self.min.is_none_or(|min| count >= min) && self.max.is_none_or(|max| count <= max)
    }

    /// Returns true if no count satisfies both.
    pub fn is_disjoint(self, other: Self) -> bool {
        let apart =
            // Two ranges have nothing in common if one ends before the other starts.
            |low: Self, high: Self| matches!((low.max, high.min), (Some(a), Some(b)) if a < b);
        apart(self, other) || apart(other, self)
    }
}

impl TryFrom<Value> for CountBounds {
    type Error = CheckValueError;

    fn try_from(value: Value) -> Result<Self, CheckValueError> {
        // A bare number is shorthand for an exact count.
        if let Some(count) = value.as_u64() {
            return Self::new(Some(count), Some(count));
        }
        if !value.is_object() {
            return Err(CheckValueError::CountShape);
        }
        let limits: BoundsFields<u64> = serde_json::from_value(value)?;
        Self::new(limits.min, limits.max)
    }
}

impl From<CountBounds> for Value {
    fn from(bounds: CountBounds) -> Value {
        match (bounds.min, bounds.max) {
            // The short form parses to the same bounds.
            (Some(min), Some(max)) if min == max => json!(min),
            (Some(min), Some(max)) => json!({"min": min, "max": max}),
            (Some(min), None) => json!({ "min": min }),
            (None, max) => json!({ "max": max }),
        }
    }
}

impl fmt::Display for CountBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => write!(f, "{min}"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "at least {min}"),
            (None, Some(max)) => write!(f, "at most {max}"),
            (None, None) => f.write_str("any number"),
        }
    }
}

/// Bounds on the duration of a case. A duration is never exact, so a bare number is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct DurationBounds {
    min: Option<f64>,
    max: Option<f64>,
}

/// One day.
pub(super) const MAX_SECONDS: f64 = 86_400.0;

impl DurationBounds {
    /// Creates bounds; fails if they limit nothing or if no duration can satisfy them.
    pub fn new(min: Option<f64>, max: Option<f64>) -> Result<Self, CheckValueError> {
        let in_range =
            |limit: Option<f64>| limit.is_none_or(|it| (0.0..=MAX_SECONDS).contains(&it));
        if !in_range(min) || !in_range(max) {
            return Err(CheckValueError::Seconds);
        }
        match (min, max) {
            (None, None) => Err(CheckValueError::NoBounds),
            (Some(min), Some(max)) if min > max => {
                Err(CheckValueError::EmptyRange { min: min.to_string(), max: max.to_string() })
            }
            _ => Ok(Self { min, max }),
        }
    }

    /// Returns true if the duration is within the bounds.
    pub fn contains(self, seconds: f64) -> bool {
        self.min.is_none_or(|min| seconds >= min) && self.max.is_none_or(|max| seconds <= max)
    }
}

impl TryFrom<Value> for DurationBounds {
    type Error = CheckValueError;

    fn try_from(value: Value) -> Result<Self, CheckValueError> {
        // A count can be exact, but no time is measured twice alike.
        if let Some(number) = value.as_f64() {
            return Err(CheckValueError::ExactDuration(number));
        }
        if !value.is_object() {
            return Err(CheckValueError::DurationShape);
        }
        let limits: BoundsFields<f64> = serde_json::from_value(value)?;
        Self::new(limits.min, limits.max)
    }
}

impl From<DurationBounds> for Value {
    fn from(seconds: DurationBounds) -> Value {
        match (seconds.min, seconds.max) {
            (Some(min), Some(max)) => json!({"min": min, "max": max}),
            (Some(min), None) => json!({ "min": min }),
            (None, max) => json!({ "max": max }),
        }
    }
}

impl fmt::Display for DurationBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, "{min} to {max} s"),
            (Some(min), None) => write!(f, "at least {min} s"),
            (None, Some(max)) => write!(f, "at most {max} s"),
            (None, None) => f.write_str("any time"),
        }
    }
}
