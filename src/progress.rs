//! Progress on stderr: bars on a terminal, lines or nothing elsewhere.

use std::io::IsTerminal as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use selftest_app::Project;
use selftest_config::Environment;
use selftest_models::locator::FetchObserver;
use selftest_models::model_files::TransferProgress;
use selftest_service::grader::ScanObserver;
use selftest_service::search::IndexObserver;
use selftest_store::FileResult;

use crate::ui::eprint;

/// The progress of a measurement; cleared when dropped.
pub(crate) struct MeasurementBar(pub(crate) ProgressBar);

impl MeasurementBar {
    pub(crate) fn new(total: usize, what: &str, ci: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden());
        if std::io::stderr().is_terminal() && !ci {
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}  {elapsed}")
            {
                bar.set_style(style);
            }
            bar.set_message(what.to_owned());
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        Self(bar)
    }
}

impl Drop for MeasurementBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Shows downloads: one line, and a bar on a terminal.
pub(crate) struct FetchBar {
    plain: bool,
    bar: OnceLock<ProgressBar>,
}

impl FetchBar {
    /// Creates a bar that appears with the first bytes; hidden in CI.
    pub(crate) fn new(ci: bool) -> Self {
        Self { plain: ci || !std::io::stderr().is_terminal(), bar: OnceLock::new() }
    }
}

impl FetchObserver for FetchBar {
    fn announce(&self, line: &str) {
        eprint(&format!("{line}\n"));
    }

    fn progress(&self, progress: TransferProgress) {
        if self.plain {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let bar = ProgressBar::with_draw_target(progress.total, ProgressDrawTarget::stderr());
            let style = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            bar.set_style(
                ProgressStyle::with_template(style)
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar
        });
        bar.set_position(progress.done);
    }
}

impl Drop for FetchBar {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// Files below which a scan is over before a bar would help.
const WORTH_A_BAR: usize = 20;

/// Time after which a bar appears.
const WORTH_A_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct ScanBar {
    bar: ProgressBar,
    is_terminal: bool,
    graded: usize,
}

impl ScanBar {
    pub(crate) fn new(environment: &Environment) -> Self {
        let is_terminal = std::io::stderr().is_terminal() && !environment.ci;
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, is_terminal, graded: 0 }
    }

    pub(crate) fn finish(&self) {
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

/// Shows progress on a terminal after a while.
pub(crate) struct FileProgress {
    bar: ProgressBar,
    started: Instant,
    is_terminal: bool,
}

impl FileProgress {
    pub(crate) fn new(project: &Project, files: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(files as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} files  {elapsed}") {
            bar.set_style(style);
        }
        let is_terminal = std::io::stderr().is_terminal() && !project.environment.ci;
        Self { bar, started: Instant::now(), is_terminal }
    }

    pub(crate) fn step(&self) {
        self.bar.inc(1);
        if self.is_terminal && self.bar.is_hidden() && self.started.elapsed() > WORTH_A_WAIT {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
