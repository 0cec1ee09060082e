//! Samples of OpenAI Evals: JSON lines with `input` messages and an `ideal` answer. How they are
//! compared is said elsewhere, so the judge compares.

use super::{DialectEntry, SuiteSource};
use crate::evals::case::CaseReader;
use crate::evals::dialect::EvalsDialect;

pub(super) const ENTRY: DialectEntry = DialectEntry {
    dialect: EvalsDialect::OpenAiEvals,
    title: "OpenAI Evals",
    files: "`*.jsonl` with `input` and `ideal`",
    yaml: None,
    carries: "requests of the user, ideal answers",
    refuses: "conversations with answers of the assistant",
    is_file_name: |_| false,
    marks: &[],
    recognises: |source| {
        let lines = source.text.value().as_array().filter(|_| source.is_lines);
        lines
            .and_then(|lines| lines.first())
            .is_some_and(|first| first.get("input").is_some() && first.get("ideal").is_some())
    },
    read: |source: &SuiteSource<'_>, reader: &mut CaseReader<'_>| {
        super::inspect::read_lines(source, "ideal", reader);
    },
};
