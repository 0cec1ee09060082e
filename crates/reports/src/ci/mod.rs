//! Reports for CI systems: their kinds, how they are requested, the source locations of cases for
//! annotations, and the texts, all rendered from one view of a run's document, with each case's
//! status computed once. Opens no files and decides nothing.

mod ctrf;
#[cfg(test)]
mod example;
pub mod files;
mod formats;
pub mod github;
mod html;
mod junit;
pub mod otlp;
mod reward;
mod sarif;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::case_view::CaseView;
use super::contrast::Contrast;
use super::document::ReportDocument;
use super::{case_view, traces, wording};
use selftest_checks::check::CheckOutcome;
use selftest_harness::outcome::CaseResult;
use selftest_harness::outcome::usage::{ModelPrices, RunUsage, UsageByRole};
use selftest_text::escape::{block, terminal};

pub use files::{CiFileError, CiFiles};
pub use formats::{ReportFileKind, ReportRequest, ReportRequestError};

/// Context for a report, in addition to the document of its run.
#[derive(Debug, Clone, Copy)]
pub struct RenderContext<'a> {
    /// Source locations of the cases.
    pub sources: &'a CaseSources,
    /// Link from the report to the run's JSON report.
    pub json_link: &'a str,
}

/// An error in rendering a report.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// Error from a template.
    #[error("{0}")]
    Template(#[from] askama::Error),
    /// Error from XML serialisation.
    #[error("{0}")]
    Xml(#[from] quick_junit::SerializeError),
    /// Error from JSON serialisation.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// Renders a report.
pub fn render(
    kind: ReportFileKind,
    document: &ReportDocument,
    context: RenderContext<'_>,
) -> Result<String, RenderError> {
    kind.renderer()(&CiRunView::new(document, context.sources), context)
}

/// The file of the cases, with the line of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseSources {
    /// File name relative to the repository; absent unless a single file contains the cases.
    file: Option<String>,
    /// Lines, counted from 1, by scenario ID.
    lines: BTreeMap<String, u32>,
}

/// The source location of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseSource<'a> {
    /// The file.
    pub file: &'a str,
    /// The line, if known.
    pub line: Option<u32>,
}

impl CaseSources {
    /// Creates the locations of cases in one file.
    pub fn new(file: impl Into<String>, lines: BTreeMap<String, u32>) -> Self {
        Self { file: Some(file.into()), lines }
    }

    /// Returns the location of a scenario's case.
    pub fn of(&self, id: &str) -> Option<CaseSource<'_>> {
        let file = self.file.as_deref()?;
        Some(CaseSource { file, line: self.lines.get(id).copied() })
    }
}

/// A document and its cases as results.
struct CiRunView<'a> {
    document: &'a ReportDocument,
    results: Vec<CaseResult>,
    /// Usage of models, recomputed if an old report does not contain it.
    usage: Option<RunUsage>,
    sources: &'a CaseSources,
}

impl<'a> CiRunView<'a> {
    fn new(document: &'a ReportDocument, sources: &'a CaseSources) -> Self {
        let cases = document.cases.iter().enumerate();
        let results: Vec<CaseResult> = cases.map(|(index, case)| case.result(index)).collect();
        let count = || RunUsage::of(results.iter(), None);
        let usage = document.usage.clone().or_else(count);
        Self { document, results, usage, sources }
    }

    /// Returns the finished cases in plan order.
    fn cases(&self) -> Vec<CaseView<'_>> {
        self.results.iter().map(CaseView::new).collect()
    }

    /// Returns the usage of models for a case.
    fn usage(&self, case: &CaseView<'_>) -> UsageByRole {
        let prices = self.usage.as_ref().and_then(|usage| usage.prices.as_ref());
        UsageByRole::of(case.result, prices.unwrap_or(&ModelPrices::default()))
    }

    /// Returns the currency, if prices are configured.
    fn currency(&self) -> Option<&str> {
        self.usage.as_ref().and_then(RunUsage::currency)
    }

    /// Returns the source location of a case.
    fn source(&self, case: &CaseView<'_>) -> Option<CaseSource<'_>> {
        self.sources.of(&case.result.scenario.id)
    }

    /// Returns the IDs of planned cases without a result, because the run is in progress or was
    /// killed.
    fn missing(&self) -> Vec<&'a str> {
        let mut finished: BTreeMap<&str, usize> = BTreeMap::new();
        for case in &self.document.cases {
            *finished.entry(&case.id).or_default() += 1;
        }
        let is_missing = |id: &&'a str| match finished.get_mut(id) {
            // With repeats an ID is planned several times, so each result accounts for one of them.
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        self.document.scenarios.iter().map(String::as_str).filter(is_missing).collect()
    }

    /// Returns the duration of the run in milliseconds; `None` if it has not ended.
    fn wall_ms(&self) -> Option<u64> {
        let end = self.document.ended_at?;
        let passed = end.as_millisecond() - self.document.timestamp.as_millisecond();
        // Negative if the clock was set back during the run.
        u64::try_from(passed).ok()
    }

    /// Returns the group of a case: its skill, or else the file of its suite.
    fn group<'b>(&'b self, case: &CaseView<'b>) -> &'b str {
        case.result.skill.as_deref().unwrap_or_else(|| self.default_group())
    }

    /// Returns the group of cases without a skill.
    fn default_group(&self) -> &str {
        self.document.suite.as_ref().map_or("selftest", |suite| &suite.path)
    }
}

/// Reason why a planned case has no result.
const MISSING: &str = "not reached before the run ended";

/// Maximum length of a prompt, an answer or stderr, in bytes.
const MAX_TEXT: usize = 4_000;
/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 600;
/// Maximum number of questions.
const MAX_QUESTIONS: usize = 12;

/// Describes the case.
fn details(case: &CaseView<'_>) -> String {
    let mut text = String::new();
    let mut section = |heading: &str, body: &str| {
        if !body.trim().is_empty() {
            let body = block(body, MAX_TEXT);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{heading}:\n{}\n", body.trim_end());
        }
    };
    if let Some(generated) = &case.result.case {
        section("Prompt", &generated.prompt);
    }
    if let Some(step) = case.deciding_step() {
        // The first input usually is the prompt, which is already there.
        if case.result.case.as_ref().is_none_or(|generated| generated.prompt != step.input) {
            section("Said", &step.input);
        }
        if let Some(reply) = &step.reply {
            let heading = format!("Answer ({}, expected {})", reply.status, step.expected_status);
            section(&heading, &reply.output);
        }
        match Contrast::of(case.result) {
            Some(contrast) => {
                let forbidden = || contrast.forbidden().join("\n");
                section(contrast.heading, &contrast.lines().unwrap_or_else(forbidden));
            }
            None => section("Reference", traces::reference(case.result).unwrap_or_default()),
        }
        section("Checks", &checks(case));
        section("Questions, with the probability of yes", &questions(case));
        if let Some(card) = case_view::card(step) {
            section("Scores", &case_view::scores(card));
            section("Judge", &card.reasoning);
        }
    }
    section("Standard error", case.stderr().unwrap_or_default());
    text.truncate(text.trim_end().len());
    text
}

/// Lists the checks that failed or could not be decided.
fn checks(case: &CaseView<'_>) -> String {
    let open = case.result.checks.iter().filter(|it| it.finding.outcome != CheckOutcome::Held);
    let line = |check: &selftest_harness::outcome::CheckResult| {
        let words = format!("{}: {}", check.finding.outcome, check.describe());
        terminal(&words, MAX_LINE)
    };
    open.map(line).collect::<Vec<_>>().join("\n")
}

/// Lists the judge's yes/no questions, the least likely first.
fn questions(case: &CaseView<'_>) -> String {
    let step = case.deciding_step();
    let asked = step.map(case_view::questions).unwrap_or_default();
    let line = |asked: &&selftest_harness::judge::ScoredQuestion| {
        let probability = wording::score(Some(asked.probability));
        format!("{probability} {}", terminal(&asked.answer.question.text, MAX_LINE))
    };
    asked.iter().take(MAX_QUESTIONS).map(line).collect::<Vec<_>>().join("\n")
}
