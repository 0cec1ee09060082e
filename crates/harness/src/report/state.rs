//! A run as told so far, folded from its events, and its texts at any moment. Opens no file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::case_view;
use super::document::{CaseDocument, Host, Rejudged, ReportDocument, RunEnd};
use super::markdown::{self, RunView};
use crate::calibration::{JudgeCalibration, RunCalibration};
use crate::event::{RunEvent, RunEventKind, RunHeader};
use crate::outcome::judge_samples::JudgeSamples;
use crate::outcome::panel::PanelAgreement;
use crate::outcome::rejudged::VerdictChanges;
use crate::outcome::usage::RunUsage;
use crate::outcome::{CaseResult, LoadingRates, SkillResult, Summary};

/// Bytes of a warning, and how many are kept.
const WARNING: usize = 1_000;
const WARNINGS: usize = 200;

/// The state of a run.
#[derive(Debug)]
pub(super) struct RunState {
    header: Option<Arc<RunHeader>>,
    cases: BTreeMap<usize, Finished>,
    summary: Summary,
    warnings: Vec<String>,
    end: Option<RunEnd>,
    host: Host,
}

#[derive(Debug)]
struct Finished {
    result: Arc<CaseResult>,
    /// The case's JSON, made once: the report is written again and again while it grows.
    json: String,
}

impl RunState {
    pub(super) fn new(host: Host) -> Self {
        Self {
            header: None,
            cases: BTreeMap::new(),
            summary: Summary::default(),
            warnings: Vec::new(),
            end: None,
            host,
        }
    }

    /// Takes in one event; tells whether the texts changed.
    pub(super) fn fold(&mut self, event: &RunEvent) -> serde_json::Result<bool> {
        match &event.kind {
            RunEventKind::RunStarted(header) => self.header = Some(Arc::clone(header)),
            RunEventKind::CaseFinished(result) | RunEventKind::CaseRunAgain(result) => {
                self.add(result)?;
            }
            RunEventKind::CasesRecalled(cases) => {
                for case in &**cases {
                    self.add(case)?;
                }
            }
            RunEventKind::Warning(warning) => {
                if self.warnings.len() < WARNINGS {
                    self.warnings.push(selftest_text::clip(warning, WARNING));
                }
            }
            RunEventKind::RunFinished { summary, outcome, at, changed_files, gate } => {
                self.summary = summary.clone();
                let changed_files = changed_files.clone();
                let gate = gate.clone();
                self.end = Some(RunEnd { outcome: *outcome, at: *at, changed_files, gate });
            }
            RunEventKind::PhaseStarted { .. } | RunEventKind::PromptRejected { .. } => {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn add(&mut self, result: &Arc<CaseResult>) -> serde_json::Result<()> {
        let header = self.header.as_ref();
        let categories = header.map_or(&[][..], |header| &header.rubric.categories);
        let prices = header.and_then(|header| header.prices.as_ref());
        let json = serde_json::to_string_pretty(&CaseDocument::new(result, categories, prices))?;
        // The lines of a pretty text hold no line feed of their own: strings escape theirs.
        let json = json.replace('\n', "\n    ");
        let finished = Finished { result: Arc::clone(result), json };
        if self.cases.insert(result.index, finished).is_none() {
            self.summary.add(result);
        }
        Ok(())
    }

    /// The JSON report: what `to_string_pretty` makes of the whole document, put together from
    /// the texts of the cases. `None` before the run has started.
    pub(super) fn json(&self) -> Option<serde_json::Result<String>> {
        let head = self.head()?;
        Some(serde_json::to_string_pretty(&head).map(|head| self.with_cases(head)))
    }

    /// The whole document. `None` before the run has started.
    pub(super) fn document(&self) -> Option<ReportDocument> {
        let head = self.head()?;
        let prices = self.header.as_ref().and_then(|header| header.prices.as_ref());
        let categories = &head.rubric.categories;
        let case = |case| CaseDocument::new(case, categories, prices);
        let cases = self.results().map(case).collect();
        Some(ReportDocument { cases, ..head })
    }

    /// The document without its cases.
    fn head(&self) -> Option<ReportDocument> {
        let header = self.header.as_ref()?;
        let end = self.end.as_ref();
        let host = self.host.clone();
        Some(ReportDocument {
            usage: RunUsage::of(self.results(), header.prices.as_ref()),
            repeats: case_view::repeats(self.cases.values().map(|case| &*case.result)),
            panel: PanelAgreement::of(self.cases.values().map(|case| &*case.result)),
            judge_samples: JudgeSamples::of(self.cases.values().map(|case| &*case.result)),
            calibration: self.calibration(header),
            rejudged: self.rejudged(header),
            skills: SkillResult::all(self.results()),
            loading: LoadingRates::of(self.results()),
            ..ReportDocument::head(header, &self.summary, &self.warnings(header), end, host)
        })
    }

    /// The run whose answers were judged again, and what became of its verdicts.
    fn rejudged(&self, header: &RunHeader) -> Option<Rejudged> {
        let run = header.rejudged.clone()?;
        let changes = VerdictChanges::of(self.cases.values().map(|case| &*case.result));
        Some(Rejudged { run, changes })
    }

    /// Warnings from before the run and from within it.
    fn warnings(&self, header: &RunHeader) -> Vec<String> {
        header.remarks.iter().chain(&self.warnings).cloned().collect()
    }

    /// The finished cases in the order of the plan.
    fn results(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.values().map(|case| &*case.result)
    }

    /// The pass rate as labels correct it.
    fn calibration(&self, header: &RunHeader) -> Option<RunCalibration> {
        if header.calibration == JudgeCalibration::None {
            return None;
        }
        let results = self.cases.values().map(|case| &*case.result);
        let judged: Vec<_> =
            results.map(|case| (case.name(), case.status().0, &case.steps[..])).collect();
        header.calibration.apply(header.run_id.as_str(), &judged)
    }

    fn with_cases(&self, mut text: String) -> String {
        // `cases` is the last field, and a head has none.
        const EMPTY: &str = "]\n}";
        if !self.cases.is_empty() && text.ends_with(EMPTY) {
            text.truncate(text.len() - EMPTY.len());
            let size: usize = self.cases.values().map(|case| case.json.len() + 6).sum();
            text.reserve(size + 8);
            let mut separator = "\n    ";
            for case in self.cases.values() {
                text.push_str(separator);
                text.push_str(&case.json);
                separator = ",\n    ";
            }
            text.push_str("\n  ]\n}");
        }
        text.push('\n');
        text
    }

    /// The Markdown report; `json_link` leads from it to the JSON report. `None` before the run
    /// has started.
    pub(super) fn markdown(&self, json_link: &str) -> Option<Result<String, askama::Error>> {
        let header = self.header.as_ref()?;
        Some(markdown::render(&RunView {
            header,
            cases: self.cases.values().map(|case| &*case.result).collect(),
            summary: &self.summary,
            warnings: &self.warnings(header),
            end: self.end.as_ref(),
            calibration: self.calibration(header),
            usage: RunUsage::of(self.results(), header.prices.as_ref()),
            json_link,
        }))
    }
}
