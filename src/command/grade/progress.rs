//! Progress of a scan: a bar on a terminal, on stderr.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use selftest_config::Environment;
use selftest_service::grader::ScanObserver;
use selftest_service::search::IndexObserver;
use selftest_store::FileResult;

/// Files below which a scan is over before a bar would help.
const WORTH_A_BAR: usize = 20;

pub(in crate::command) struct ScanBar {
    bar: ProgressBar,
    is_terminal: bool,
    graded: usize,
}

impl ScanBar {
    pub(in crate::command) fn new(environment: &Environment) -> Self {
        let is_terminal = std::io::stderr().is_terminal() && !environment.ci;
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, is_terminal, graded: 0 }
    }

    pub(in crate::command) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl ScanBar {
    fn begin(&mut self, to_read: usize) {
        if !self.is_terminal || to_read < WORTH_A_BAR {
            return;
        }
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} files  {msg}  {elapsed}");
        if let Ok(style) = style {
            self.bar.set_style(style);
        }
        self.bar.set_length(to_read as u64);
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
    }
}

impl ScanObserver for ScanBar {
    fn found(&mut self, to_read: usize) {
        self.begin(to_read);
    }

    fn read(&mut self, result: &FileResult) {
        self.graded += result.grades.len();
        self.bar.inc(1);
        self.bar.set_message(format!("{} sessions graded", self.graded));
    }
}

impl IndexObserver for ScanBar {
    fn files_found(&mut self, files: u64) {
        self.begin(usize::try_from(files).unwrap_or(usize::MAX));
        self.bar.set_message("to be searched");
    }

    fn file_read(&mut self) {
        self.bar.inc(1);
    }
}
