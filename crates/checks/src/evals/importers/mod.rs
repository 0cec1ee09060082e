//! The registry of dialects: one file for each, and one line in the table. An importer says how to
//! recognise its files, by which YAML they are written, what it carries over and what it refuses.

mod claude_plugin;
mod deepeval;
mod dotnet;
mod evals_json;
mod harbor;
mod inspect;
mod openai_evals;
mod promptfoo;
mod skill_up;
mod tessl;
mod uipath;

use super::case::CaseReader;
use super::dialect::EvalsDialect;
use super::source::SourceText;
use crate::yaml::YamlSchema;

pub(in crate::evals) use claude_plugin::front_matter;

/// The dialects. A file is of the first that recognises it, so specific ones come before general ones.
pub const DIALECTS: [&DialectEntry; 13] = [
    &claude_plugin::ENTRY,
    &harbor::ENTRY,
    &tessl::ENTRY,
    &skill_up::ENTRY,
    &dotnet::ENTRY,
    &uipath::ENTRY,
    &promptfoo::ENTRY,
    &deepeval::ENTRY,
    &openai_evals::REGISTRY,
    &openai_evals::SAMPLES,
    &inspect::ENTRY,
    &evals_json::TRIGGERS,
    &evals_json::ENTRY,
];

/// One dialect of suites.
pub struct DialectEntry {
    /// Its name for programs.
    pub dialect: EvalsDialect,
    /// The programs whose suites these are.
    pub title: &'static str,
    /// Its files.
    pub files: &'static str,
    /// The YAML by which those programs read; `None` if the files are not YAML.
    pub yaml: Option<YamlSchema>,
    /// What is carried over.
    pub carries: &'static str,
    /// What is refused, with its reason.
    pub refuses: &'static str,
    /// Returns true for the name of a file that is of this dialect.
    pub(super) is_file_name: fn(&str) -> bool,
    /// Texts that a YAML file of any name has if it may be of this dialect.
    pub(super) marks: &'static [&'static str],
    /// Returns true for a file of this dialect.
    pub(super) recognises: fn(&SuiteSource<'_>) -> bool,
    /// Reads the cases.
    pub(super) read: fn(&SuiteSource<'_>, &mut CaseReader<'_>),
}

/// A suite to be read.
pub(super) struct SuiteSource<'a> {
    /// Name of the file.
    pub(super) name: &'a str,
    /// The whole file.
    pub(super) whole: &'a str,
    /// The file, parsed: for JSON lines a list of those that are JSON.
    pub(super) text: &'a SourceText,
    /// True for JSON lines.
    pub(super) is_lines: bool,
}

/// Returns the dialect of a suite.
pub(super) fn recognise(source: &SuiteSource<'_>) -> &'static DialectEntry {
    let found = DIALECTS.into_iter().find(|entry| (entry.recognises)(source));
    found.unwrap_or(&evals_json::ENTRY)
}
