//! The state of a run folded from its events, and its report texts at any point in time. Opens no
//! files.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::case_view;
use super::document::{CaseDocument, HostMachine, RejudgeResult, ReportDocument, RunEnd};
use super::markdown::{self, MarkdownView};
use selftest_harness::calibration::{JudgeCalibration, RunCalibration};
use selftest_harness::event::{RunEvent, RunEventKind, RunHeader};
use selftest_harness::outcome::agreement::{JudgeSamples, PanelAgreement, VerdictChanges};
use selftest_harness::outcome::usage::RunUsage;
use selftest_harness::outcome::{CaseResult, LoadingRates, RunSummary, SkillResult};

/// Maximum length of a warning in bytes, and maximum number of warnings kept.
const MAX_WARNING: usize = 1_000;
const MAX_WARNINGS: usize = 200;

/// The state of a run.
#[derive(Debug)]
pub(super) struct RunState {
    header: Option<Arc<RunHeader>>,
    cases: BTreeMap<usize, Arc<CaseResult>>,
    summary: RunSummary,
    warnings: Vec<String>,
    end: Option<RunEnd>,
    host: HostMachine,
}

/// The text of a JSON report around its cases.
pub(super) struct ReportFrame {
    pub(super) before: String,
    pub(super) after: &'static str,
}

/// Writer that indents a case's JSON as in the complete report. Strings escape their line feeds, so
/// a line feed at the end of a write is always between two lines.
struct IndentingWriter(Vec<u8>);

impl io::Write for IndentingWriter {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(part);
        if part.ends_with(b"\n") {
            self.0.extend_from_slice(b"    ");
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Separator before each case; the first one has no comma.
pub(super) const SEPARATOR: &str = ",\n    ";

impl RunState {
    pub(super) fn new(host: HostMachine) -> Self {
        Self {
            header: None,
            cases: BTreeMap::new(),
            summary: RunSummary::default(),
            warnings: Vec::new(),
            end: None,
            host,
        }
    }

    /// Applies one event; returns true if the texts changed.
    pub(super) fn fold(&mut self, event: &RunEvent) -> bool {
        match &event.kind {
            RunEventKind::RunStarted(header) => self.header = Some(Arc::clone(header)),
            RunEventKind::CaseFinished(result) | RunEventKind::CaseRunAgain(result) => {
                self.add(result);
            }
            RunEventKind::CasesRecalled(cases) => cases.iter().for_each(|case| self.add(case)),
            RunEventKind::Warning(warning) => {
                if self.warnings.len() < MAX_WARNINGS {
                    self.warnings.push(selftest_text::clip(warning, MAX_WARNING));
                }
            }
            RunEventKind::RunFinished { summary, outcome, at, changed_files, gate } => {
                self.summary = summary.clone();
                let changed_files = changed_files.clone();
                let gate = gate.clone();
                self.end = Some(RunEnd { outcome: *outcome, at: *at, changed_files, gate });
            }
            // Reports do not contain these.
            RunEventKind::PhaseStarted { .. } | RunEventKind::PromptRejected { .. } => {
                return false;
            }
        }
        true
    }

    fn add(&mut self, result: &Arc<CaseResult>) {
        // A retried case replaces its result and must not be counted twice.
        if self.cases.insert(result.index, Arc::clone(result)).is_none() {
            self.summary.add(result);
        }
    }

    /// Returns the JSON report, identical to `to_string_pretty` of the whole document but assembled
    /// from the texts of the cases. Returns `None` before the run has started.
    pub(super) fn json(&self) -> Option<serde_json::Result<String>> {
        Some(self.frame()?.and_then(|ReportFrame { before, after: behind }| {
            let mut text = before;
            for (number, case) in self.cases.values().enumerate() {
                // The first case has no comma before it.
                text.push_str(if number == 0 { &SEPARATOR[1..] } else { SEPARATOR });
                text.push_str(&self.case_text(case)?);
            }
            Ok(text + behind)
        }))
    }

    /// Returns the text of a case as in the JSON report.
    pub(super) fn case_text(&self, case: &CaseResult) -> serde_json::Result<String> {
        let header = self.header.as_ref();
        let categories = header.map_or(&[][..], |header| &header.rubric.categories);
        let prices = header.and_then(|header| header.prices.as_ref());
        let mut text = IndentingWriter(Vec::with_capacity(32 * 1024));
        serde_json::to_writer_pretty(&mut text, &CaseDocument::new(case, categories, prices))?;
        String::from_utf8(text.0).map_err(serde::ser::Error::custom)
    }

    /// Returns the text of the JSON report around its cases. Returns `None` before the run has
    /// started.
    pub(super) fn frame(&self) -> Option<serde_json::Result<ReportFrame>> {
        /// `cases` is the last field, and empty in the head.
        const EMPTY: &str = "]\n}";
        let head = self.head()?;
        Some(serde_json::to_string_pretty(&head).map(|mut before| {
            // Cut off the end of the empty list, to be written after the cases.
            before.truncate(before.len() - EMPTY.len());
            let behind = if self.cases.is_empty() { "]\n}\n" } else { "\n  ]\n}\n" };
            ReportFrame { before, after: behind }
        }))
    }

    /// Returns the whole document. Returns `None` before the run has started.
    pub(super) fn document(&self) -> Option<ReportDocument> {
        let head = self.head()?;
        let prices = self.header.as_ref().and_then(|header| header.prices.as_ref());
        let categories = &head.rubric.categories;
        let case = |case| CaseDocument::new(case, categories, prices);
        let cases = self.results().map(case).collect();
        Some(ReportDocument { cases, ..head })
    }

    /// Returns the document without its cases.
    fn head(&self) -> Option<ReportDocument> {
        let header = self.header.as_ref()?;
        let end = self.end.as_ref();
        let host = self.host.clone();
        Some(ReportDocument {
            usage: RunUsage::of(self.results(), header.prices.as_ref()),
            repeats: case_view::repeats(self.results()),
            panel: PanelAgreement::of(self.results()),
            judge_samples: JudgeSamples::of(self.results()),
            calibration: self.calibration(header),
            rejudged: self.rejudged(header),
            skills: SkillResult::all(self.results()),
            loading: LoadingRates::of(self.results()),
            ..ReportDocument::head(header, &self.summary, &self.warnings(header), end, host)
        })
    }

    /// Returns the rejudged run, and how its verdicts changed.
    fn rejudged(&self, header: &RunHeader) -> Option<RejudgeResult> {
        let run = header.rejudged.clone()?;
        let changes = VerdictChanges::of(self.results());
        Some(RejudgeResult { run, changes })
    }

    /// Returns the warnings from before and during the run.
    fn warnings(&self, header: &RunHeader) -> Vec<String> {
        header.remarks.iter().chain(&self.warnings).cloned().collect()
    }

    /// Returns the finished cases in plan order.
    fn results(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.values().map(|case| &**case)
    }

    /// Returns the pass rate corrected by labels.
    fn calibration(&self, header: &RunHeader) -> Option<RunCalibration> {
        if header.calibration == JudgeCalibration::None {
            return None;
        }
        let judged: Vec<_> =
            self.results().map(|case| (case.name(), case.status().0, &case.steps[..])).collect();
        header.calibration.apply(header.run_id.as_str(), &judged)
    }

    /// Renders the Markdown report; `json_link` leads from it to the JSON report. Returns `None`
    /// before the run has started.
    pub(super) fn markdown(&self, json_link: &str) -> Option<Result<String, askama::Error>> {
        let header = self.header.as_ref()?;
        Some(markdown::render(&MarkdownView {
            header,
            cases: self.results().collect(),
            summary: &self.summary,
            warnings: &self.warnings(header),
            end: self.end.as_ref(),
            calibration: self.calibration(header),
            usage: RunUsage::of(self.results(), header.prices.as_ref()),
            json_link,
        }))
    }
}
