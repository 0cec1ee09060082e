//! Errors of the values of checks. The message follows the key: "`lines`: expected …".

use super::bounds::{MAX, MAX_SECONDS};
use super::json::{MAX_SCHEMA, MAX_SCHEMA_DEPTH};
use super::parameters::{MAX_ITEMS, MAX_PATH, MAX_SIMILAR, MAX_TEXT, MAX_TIMEOUT};
use super::pattern::MAX_PATTERN;

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
