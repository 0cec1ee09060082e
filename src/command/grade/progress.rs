//! How a scan goes on: a bar on a terminal, nothing elsewhere. Prints on stderr only.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::config::Environment;
use selftest_service::grader::ScanObserver;
use selftest_store::FileResult;

/// Files below which a scan is over before a bar would help.
const WORTH_A_BAR: usize = 20;

pub(super) struct ScanBar {
    bar: ProgressBar,
    is_terminal: bool,
    graded: usize,
}

impl ScanBar {
    pub(super) fn new(environment: &Environment) -> Self {
        let is_terminal = std::io::stderr().is_terminal() && !environment.ci;
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, is_terminal, graded: 0 }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl ScanObserver for ScanBar {
    fn found(&mut self, to_read: usize) {
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

    fn read(&mut self, result: &FileResult) {
        self.graded += result.grades.len();
        self.bar.inc(1);
        self.bar.set_message(format!("{} sessions graded", self.graded));
    }
}
