//! Progress of a run on stderr: a bar on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use super::case_view::CaseView;
use super::terminal::{StatusColour, TerminalStyle, colour};
use super::wording;
use selftest_harness::event::{
    CasePhase, Observer, ObserverError, RunEvent, RunEventKind, RunHeader,
};
use selftest_harness::outcome::{CaseResult, CaseStatus};
use selftest_text::escape;

/// Maximum number of running cases named by the bar.
const MAX_NAMED: usize = 2;
/// Maximum width of a case's ID, in columns.
const MAX_ID: usize = 40;
/// Maximum length of a reason or a warning, in bytes.
const MAX_REASON: usize = 160;

/// Displays the progress of a run.
pub struct ProgressObserver {
    style: TerminalStyle,
    output: ProgressOutput,
    /// Label that distinguishes parallel runs; empty for a single run.
    label: &'static str,
    planned: usize,
    /// Width of the longest ID, in columns.
    width: usize,
    passed: usize,
    failed: usize,
    unscored: usize,
    not_run: usize,
    /// Reason why the last case was not run, which is the same for all that follow.
    told: Option<String>,
    in_flight: BTreeMap<usize, (String, CasePhase)>,
}

enum ProgressOutput {
    Bar(ProgressBar),
    Lines(Box<dyn Write + Send>),
}

impl ProgressObserver {
    /// Displays a bar on the terminal of stderr.
    pub fn with_bar(style: TerminalStyle) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
            .with_finish(ProgressFinish::AndClear);
        Self::with_output(style, ProgressOutput::Bar(bar))
    }

    /// Writes plain lines to any writer.
    pub fn with_lines(style: TerminalStyle, lines: Box<dyn Write + Send>) -> Self {
        Self::with_output(style, ProgressOutput::Lines(lines))
    }

    /// Adds a label to each line, for several runs in parallel.
    #[must_use]
    pub fn labelled(self, label: &'static str) -> Self {
        Self { label, ..self }
    }

    fn with_output(style: TerminalStyle, output: ProgressOutput) -> Self {
        Self {
            style,
            output,
            label: "",
            planned: 0,
            width: 0,
            passed: 0,
            failed: 0,
            unscored: 0,
            not_run: 0,
            told: None,
            in_flight: BTreeMap::new(),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), ObserverError> {
        let labelled;
        let line = if self.label.is_empty() {
            line
        } else {
            labelled = format!("{}: {line}", self.label);
            &labelled
        };
        match &mut self.output {
            ProgressOutput::Bar(bar) => {
                bar.println(line);
                Ok(())
            }
            // A single write: each one would wake up the reader.
            ProgressOutput::Lines(lines) => lines
                .write_all(format!("{line}\n").as_bytes())
                .map_err(|cause| ObserverError(format!("cannot show the progress: {cause}"))),
        }
    }

    fn start(&mut self, header: &RunHeader) -> Result<(), ObserverError> {
        self.planned = header.scenario_ids.len();
        let longest = header.scenario_ids.iter().map(|id| id.chars().count()).max();
        // Repeats have a number after the ID.
        let number = header.suite.as_ref().map(|suite| suite.repeats).filter(|count| *count > 1);
        let number = number.map_or(0, |count| format!(" #{count}").len());
        self.width = longest.map_or(0, |longest| longest + number).min(MAX_ID);
        if let ProgressOutput::Bar(bar) = &self.output {
            bar.set_style(
                ProgressStyle::with_template("{bar:20} {pos}/{len}  {elapsed}  {wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar.set_length(self.planned as u64);
            // Keeps the elapsed time moving while no events arrive.
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let count = u32::try_from(self.planned).unwrap_or(u32::MAX);
        let mut judge = escape::terminal(&header.models.judge, MAX_REASON);
        if let Some(fitness) = &header.models.judge_fitness {
            judge += &format!(" ({})", fitness.summary());
        } else if header.models.judge_method.is_some() {
            judge += " (not measured)";
        }
        let sut = escape::terminal(&header.sut, MAX_REASON);
        let line = format!(
            "{}: {} against {sut}, {}",
            header.run_id,
            selftest_text::wording::cases(count),
            wording::judged(&judge)
        );
        self.line(&line)
    }

    fn phase_started(
        &mut self,
        index: usize,
        id: &str,
        phase: CasePhase,
    ) -> Result<(), ObserverError> {
        let id = escape::terminal(id, MAX_ID);
        // A case has several phases, and in a log one line for its start is enough.
        let is_new = self.in_flight.insert(index, (id.clone(), phase)).is_none();
        if is_new && matches!(self.output, ProgressOutput::Lines(_)) {
            return self.line(&format!("{id}: started"));
        }
        self.refresh();
        Ok(())
    }

    /// Counts cases that already had their line before the run was interrupted.
    fn cases_recalled(&mut self, cases: &[Arc<CaseResult>]) -> Result<(), ObserverError> {
        for case in cases {
            self.count(case.status().0);
        }
        self.refresh();
        let finished =
            selftest_text::wording::cases(u32::try_from(cases.len()).unwrap_or(u32::MAX));
        self.line(&format!("resumed: {finished} of {} finished before", self.planned))
    }

    fn count(&mut self, status: CaseStatus) {
        let counter = match status.pass() {
            Some(true) => &mut self.passed,
            Some(false) => &mut self.failed,
            None if status == CaseStatus::NotRun => &mut self.not_run,
            None => &mut self.unscored,
        };
        *counter += 1;
    }

    fn finish(&mut self, case: &CaseResult) -> Result<(), ObserverError> {
        self.in_flight.remove(&case.index);
        let reading = CaseView::new(case);
        self.count(reading.status);
        let done = self.done();
        let id = escape::terminal(reading.name(), MAX_ID);
        let mut line = format!(
            "[{done}/{}] {id:<width$}  {}  {}  {}",
            self.planned,
            self.style.paint(colour(reading.status), reading.status.label()),
            wording::score(reading.score()),
            match reading.unchanged_since() {
                Some(run_id) => format!("unchanged since {run_id}"),
                None => selftest_text::wording::duration(case.duration_ms),
            },
            width = self.width,
        );
        // After an interruption all remaining cases have the same reason; print it once.
        let is_news = reading.status != CaseStatus::NotRun || self.told != reading.reason;
        if let Some(reason) = reading.reason.as_ref().filter(|_| is_news) {
            let reason =
                self.style.paint(StatusColour::Faint, &escape::terminal(reason, MAX_REASON));
            line = format!("{line}  {reason}");
        }
        if reading.status == CaseStatus::NotRun {
            self.told.clone_from(&reading.reason);
        }
        self.line(&line)?;
        self.refresh();
        Ok(())
    }

    /// Reports a further trial of a finished case.
    fn case_rerun(&mut self, case: &CaseResult) -> Result<(), ObserverError> {
        let reading = CaseView::new(case);
        let id = escape::terminal(reading.name(), MAX_ID);
        // A rerun has an index of its own, so it is found by name.
        self.in_flight.retain(|_, (other, _)| *other != id);
        let Some(last) = case.reruns.last() else { return Ok(()) };
        let status = self.style.paint(colour(last.status), last.status.label());
        let line = format!(
            "run again ({}) {id:<width$}  {status}  {}  {}",
            case.reruns.len(),
            wording::score(last.overall),
            selftest_text::wording::duration(last.duration_ms),
            width = self.width,
        );
        self.line(&line)?;
        self.refresh();
        Ok(())
    }

    /// Returns the number of finished cases.
    fn done(&self) -> usize {
        self.passed + self.failed + self.unscored + self.not_run
    }

    fn refresh(&self) {
        if let ProgressOutput::Bar(bar) = &self.output {
            bar.set_position(self.done() as u64);
            bar.set_message(self.message());
        }
    }

    /// Formats the current counts and the running cases for the bar.
    fn message(&self) -> String {
        let mut parts = Vec::new();
        for (count, word) in [
            (self.passed, "passed"),
            (self.failed, "failed"),
            (self.unscored, "unscored"),
            (self.not_run, "not run"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        let named = self.in_flight.values().take(MAX_NAMED);
        parts.extend(named.map(|(id, phase)| format!("{phase} {id}")));
        if self.in_flight.len() > MAX_NAMED {
            parts.push(format!("{} more", self.in_flight.len() - MAX_NAMED));
        }
        parts.join(", ")
    }
}

impl Observer for ProgressObserver {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ObserverError> {
        match &event.kind {
            RunEventKind::RunStarted(header) => self.start(header),
            RunEventKind::CasesRecalled(cases) => self.cases_recalled(cases),
            RunEventKind::PhaseStarted { index, scenario_id, phase } => {
                self.phase_started(*index, scenario_id, *phase)
            }
            RunEventKind::PromptRejected { scenario_id, attempt, reason, .. } => {
                let id = escape::terminal(scenario_id, MAX_ID);
                let reason = escape::terminal(reason, MAX_REASON);
                self.line(&format!("{id}: prompt {attempt} rejected: {reason}"))
            }
            RunEventKind::CaseFinished(case) => self.finish(case),
            RunEventKind::CaseRunAgain(case) => self.case_rerun(case),
            RunEventKind::Warning(warning) => {
                let mark = self.style.paint(StatusColour::Unsure, "warning");
                self.line(&format!("{mark}: {}", escape::terminal(warning, 4 * MAX_REASON)))
            }
            RunEventKind::RunFinished { .. } => {
                if let ProgressOutput::Bar(bar) = &self.output {
                    bar.finish_and_clear();
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use std::io;

    use super::*;
    use crate::fixture;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(colour: bool) -> String {
        let shared = Shared::default();
        let style = TerminalStyle { terminal: false, colour };
        let mut progress = ProgressObserver::with_lines(style, Box::new(shared.clone()));
        for event in fixture::progress_events() {
            progress.on_event(&event).unwrap();
        }
        let bytes = shared.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn plain_lines() {
        let text = lines(false);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn colour_only_when_wanted() {
        assert!(lines(true).contains("\u{1b}[32mPASS\u{1b}[0m"));
    }

    #[test]
    fn the_bar_names_what_is_in_flight() {
        let style = TerminalStyle { terminal: true, colour: false };
        let mut progress =
            ProgressObserver::with_output(style, ProgressOutput::Bar(ProgressBar::hidden()));
        for event in fixture::progress_events() {
            progress.on_event(&event).unwrap();
        }
        for (index, id) in ["a", "b", "c"].into_iter().enumerate() {
            progress.phase_started(100 + index, id, CasePhase::Judging).unwrap();
        }
        let message = progress.message();
        assert_eq!(message, "1 passed, 7 failed, 7 unscored, judging a, judging b, 1 more");
    }

    #[test]
    fn a_closed_stream_is_an_error_and_no_panic() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let style = TerminalStyle { terminal: false, colour: false };
        let mut progress = ProgressObserver::with_lines(style, Box::new(Closed));
        let event = fixture::progress_events().remove(0);
        assert!(progress.on_event(&event).is_err());
    }
}
