//! Parameters of the kinds of checks, each bounded when it is read.

use std::collections::BTreeMap;
use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Bounds;
use selftest_stats::score::Score;

/// Most characters of a text in a check.
pub(super) const MAX_TEXT: usize = 20_000;
/// Most characters of a text that answers are compared with letter by letter: the comparison
/// takes quadratic time.
const MAX_SIMILAR: usize = 5_000;
/// Most items of a list in a check.
pub(super) const MAX_ITEMS: usize = 100;
/// Most seconds of a command.
pub(super) const MAX_TIMEOUT: f64 = 3_600.0;
/// Seconds of a command that names no limit.
const DEFAULT_TIMEOUT: f64 = 10.0;

/// Text that is neither empty nor beyond all measure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Text(String);

impl Text {
    /// Refuses empty and very long text.
    pub fn new(text: impl Into<String>) -> Result<Self, String> {
        let text = text.into();
        if text.is_empty() {
            return Err("expected text that is not empty".to_owned());
        }
        if text.chars().count() > MAX_TEXT {
            return Err(format!("a text may have at most {MAX_TEXT} characters"));
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Text {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::new(text)
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0
    }
}

/// How close an answer must be to a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SimilarFields", into = "SimilarFields")]
pub struct Similar {
    /// The text.
    pub to: String,
    /// The least similarity: 1 less the normalised Levenshtein distance, by characters, white space
    /// around both left out.
    pub at_least: Score,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SimilarFields {
    to: String,
    at_least: Score,
}

impl TryFrom<SimilarFields> for Similar {
    type Error = String;

    fn try_from(SimilarFields { to, at_least }: SimilarFields) -> Result<Self, String> {
        if to.trim().is_empty() || to.chars().count() > MAX_SIMILAR {
            return Err(format!("`to` must have 1 to {MAX_SIMILAR} characters"));
        }
        Ok(Self { to, at_least })
    }
}

impl From<Similar> for SimilarFields {
    fn from(Similar { to, at_least }: Similar) -> Self {
        Self { to, at_least }
    }
}

/// How often a text must occur in an answer, without overlaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OccurrencesFields", into = "OccurrencesFields")]
pub struct Occurrences {
    /// The text.
    pub of: Text,
    /// How often.
    pub bounds: Bounds,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OccurrencesFields {
    of: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
}

impl TryFrom<OccurrencesFields> for Occurrences {
    type Error = String;

    fn try_from(OccurrencesFields { of, min, max }: OccurrencesFields) -> Result<Self, String> {
        let bounds = Bounds::new(min, max).map_err(|why| match (min, max) {
            (None, None) => "expected `min`, `max` or both beside `of`".to_owned(),
            _ => why,
        })?;
        Ok(Self { of, bounds })
    }
}

impl From<Occurrences> for OccurrencesFields {
    fn from(Occurrences { of, bounds }: Occurrences) -> Self {
        let (min, max) = bounds.limits();
        Self { of, min, max }
    }
}

/// A program that decides. It is run by somebody else, in the sandbox: without a shell, the
/// answer on stdin, the case in its environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandCheck {
    /// Program and arguments.
    pub run: ProgramLine,
    /// The exit code that holds.
    #[serde(default)]
    pub exit_code: u8,
    /// The first line that it must print, white space around it left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<String>,
    /// A text that must occur in what it prints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prints: Option<Text>,
    /// Seconds that it has.
    #[serde(default)]
    pub timeout_seconds: Timeout,
}

/// Program and arguments: at least the program, which is not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct ProgramLine(Vec<String>);

impl ProgramLine {
    /// Refuses a line without a program, and more words than a person would write.
    pub fn new(words: Vec<String>) -> Result<Self, String> {
        if words.first().is_none_or(String::is_empty) {
            return Err("`run` must begin with a program".to_owned());
        }
        if words.len() > MAX_ITEMS || words.iter().any(|word| word.len() > MAX_TEXT) {
            return Err(format!("`run` may have at most {MAX_ITEMS} words of {MAX_TEXT} bytes"));
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err("`run` holds a zero byte".to_owned());
        }
        Ok(Self(words))
    }

    /// The program.
    pub fn program(&self) -> &str {
        &self.0[0]
    }

    /// Program and arguments.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl TryFrom<Vec<String>> for ProgramLine {
    type Error = String;
    fn try_from(words: Vec<String>) -> Result<Self, String> {
        Self::new(words)
    }
}

impl From<ProgramLine> for Vec<String> {
    fn from(line: ProgramLine) -> Self {
        line.0
    }
}

/// Seconds that a command has: above 0, at most an hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Timeout(f64);

impl Timeout {
    /// The limit.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.0)
    }

    /// The limit in seconds.
    pub const fn seconds(self) -> f64 {
        self.0
    }
}

impl Default for Timeout {
    fn default() -> Self {
        Self(DEFAULT_TIMEOUT)
    }
}

impl TryFrom<f64> for Timeout {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        if seconds > 0.0 && seconds <= MAX_TIMEOUT {
            Ok(Self(seconds))
        } else {
            Err("`timeout_seconds` must be above 0 and at most 3600".to_owned())
        }
    }
}

impl From<Timeout> for f64 {
    fn from(timeout: Timeout) -> f64 {
        timeout.0
    }
}

/// Which calls of a tool there must be; in a file also its name alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct ToolCalled {
    /// The tool.
    pub name: Text,
    /// Arguments that a call must have to count; others may be there too. A text in a check is
    /// also found within a longer text of the call.
    pub arguments: BTreeMap<String, Value>,
    /// How many calls count: at least one where nothing else is said.
    pub bounds: Bounds,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCalledFields {
    name: Text,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    arguments: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
}

impl ToolCalled {
    /// At least one call of this tool.
    pub fn once(name: Text) -> Self {
        Self { name, arguments: BTreeMap::new(), bounds: Bounds::at_least(1) }
    }
}

impl TryFrom<Value> for ToolCalled {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if let Value::String(name) = value {
            return Ok(Self::once(Text::new(name)?));
        }
        if !value.is_object() {
            return Err("expected the name of a tool, or a mapping with `name`".to_owned());
        }
        let ToolCalledFields { name, arguments, min, max } =
            serde_json::from_value(value).map_err(|error| error.to_string())?;
        let min = if min.is_none() && max.is_none() { Some(1) } else { min };
        let bounds = Bounds::new(min, max)?;
        if bounds.limits().1 == Some(0) {
            return Err("no call at all is `tool_not_called`".to_owned());
        }
        Ok(Self { name, arguments, bounds })
    }
}

impl From<ToolCalled> for Value {
    fn from(called: ToolCalled) -> Value {
        if called == ToolCalled::once(called.name.clone()) {
            return Value::String(called.name.into());
        }
        let ToolCalled { name, arguments, bounds } = called;
        let (min, max) = bounds.limits();
        let fields = ToolCalledFields { name, arguments, min, max };
        serde_json::to_value(fields).unwrap_or_default()
    }
}

/// Names of tools: at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Text>", into = "Vec<Text>")]
pub struct Tools(Vec<Text>);

impl Tools {
    /// The names, in order.
    pub fn names(&self) -> &[Text] {
        &self.0
    }
}

impl TryFrom<Vec<Text>> for Tools {
    type Error = String;

    fn try_from(names: Vec<Text>) -> Result<Self, String> {
        if (1..=MAX_ITEMS).contains(&names.len()) {
            Ok(Self(names))
        } else {
            Err(format!("expected a list of 1 to {MAX_ITEMS} tools"))
        }
    }
}

impl From<Tools> for Vec<Text> {
    fn from(tools: Tools) -> Self {
        tools.0
    }
}

/// A text that a file must hold after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileContains {
    /// Path from the project's root.
    pub path: Text,
    /// The text.
    pub text: Text,
}

/// Paths and globs. `*` stays within a folder, `**` does not; a path alone also stands for all
/// that is in the folder of this name. An empty list is matched by nothing.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Globs {
    sources: Vec<String>,
    compiled: GlobSet,
}

impl Globs {
    /// Refuses what cannot be compiled.
    pub fn new(sources: Vec<String>) -> Result<Self, String> {
        if sources.len() > MAX_ITEMS {
            return Err(format!("expected at most {MAX_ITEMS} paths"));
        }
        let mut set = GlobSetBuilder::new();
        for source in &sources {
            let shown = selftest_text::one_line(source, 60);
            if source.is_empty() || source.len() > 1000 {
                return Err("a path must have 1 to 1000 bytes".to_owned());
            }
            let plain = source.trim_start_matches("./").trim_end_matches('/');
            for text in [plain.to_owned(), format!("{plain}/**")] {
                let glob = GlobBuilder::new(&text).literal_separator(true).build();
                set.add(glob.map_err(|error| format!("`{shown}`: {}", error.kind()))?);
            }
        }
        let compiled = set.build().map_err(|error| error.to_string())?;
        Ok(Self { sources, compiled })
    }

    /// Whether one of them matches a path.
    pub fn match_path(&self, path: &str) -> bool {
        self.compiled.is_match(path)
    }

    /// As they were written.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }
}

impl TryFrom<Vec<String>> for Globs {
    type Error = String;
    fn try_from(sources: Vec<String>) -> Result<Self, String> {
        Self::new(sources)
    }
}

impl From<Globs> for Vec<String> {
    fn from(globs: Globs) -> Self {
        globs.sources
    }
}

impl PartialEq for Globs {
    fn eq(&self, other: &Self) -> bool {
        self.sources == other.sources
    }
}

impl Eq for Globs {}

impl fmt::Debug for Globs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Globs").field(&self.sources).finish()
    }
}
