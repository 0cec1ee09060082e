//! The terminal: notices, progress, colour and interrupts.

use crate::args::{Format, GlobalArgs};
use crate::exit::Exit;
use crate::progress::FetchBar;
use crate::progress::MeasurementBar;
use anyhow::anyhow;
use selftest_app::{AppError, FinishedRun, Frontend, Project, ProjectOptions};
use selftest_config::Environment;
use selftest_harness::event::Observer;
use selftest_models::locator::FetchObserver;
use selftest_reports::terminal::DetailLevel;
use selftest_reports::{ProgressObserver, TerminalStyle};
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use tokio::sync::watch;

pub(crate) use crate::streams::{
    Stderr, detect_build_log, eprint, print, print_build_log, print_bytes, printable_line,
};

/// Opens the project that the options name.
pub(crate) fn open(global: &GlobalArgs) -> Result<Project, AppError> {
    open_with(global, Terminal::new(global, false))
}

/// Opens the project that the options name, with this terminal as its frontend.
pub(crate) fn open_with(global: &GlobalArgs, terminal: Terminal) -> Result<Project, AppError> {
    let options = ProjectOptions {
        directory: global.directory.clone(),
        config: global.config.clone(),
        offline: global.offline,
    };
    Project::open(options, Arc::new(terminal))
}

/// Settings for notices, progress and results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Level of detail of a run.
    pub(crate) detail: DetailLevel,
    /// True for lines without movement.
    pub(crate) ci: bool,
    /// True for text without colour.
    pub(crate) no_color: bool,
}

impl Terminal {
    /// Reads the terminal's settings from the environment; `quiet` hides progress.
    pub(crate) fn new(global: &GlobalArgs, quiet: bool) -> Self {
        let environment = Environment::from_process();
        let detail = match (quiet, global.verbose) {
            (true, _) => DetailLevel::Brief,
            (false, 0) => DetailLevel::Normal,
            (false, _) => DetailLevel::Full,
        };
        Self { detail, ci: environment.ci, no_color: environment.no_color }
    }

    /// Prints the results of a run on stdout.
    pub(crate) fn print_run(self, run: &FinishedRun, format: Format) -> Result<(), AppError> {
        if format == Format::Json {
            return print(&run.json_text());
        }
        let is_terminal = std::io::stdout().is_terminal();
        let colour = is_terminal && !self.no_color;
        let has_links =
            colour && !self.ci && supports_hyperlinks::on(supports_hyperlinks::Stream::Stdout);
        let here = std::env::current_dir().ok();
        let style = TerminalStyle { terminal: is_terminal, colour };
        print(&run.text(style, self.detail, here.as_deref().filter(|_| has_links)))
    }
}

impl Frontend for Terminal {
    fn notify(&self, text: &str) {
        eprint(text);
    }

    fn command(&self, lines: &str) {
        // Not through the filter that would take the commands out.
        let _ = std::io::stderr().lock().write_all(lines.as_bytes());
    }

    fn run_observer(&self, label: Option<&'static str>) -> Option<Box<dyn Observer>> {
        if self.detail == DetailLevel::Brief {
            return None;
        }
        let is_terminal = std::io::stderr().is_terminal();
        let colour = is_terminal && !self.no_color;
        // The two arms of an experiment print lines in turn.
        let style = TerminalStyle { terminal: is_terminal && !self.ci && label.is_none(), colour };
        let progress = if style.terminal {
            ProgressObserver::with_bar(style)
        } else {
            ProgressObserver::with_lines(style, Box::new(Stderr))
        };
        Some(match label {
            Some(label) => Box::new(progress.labelled(label)),
            None => Box::new(progress),
        })
    }

    fn fetch_observer(&self) -> Box<dyn FetchObserver + Send + Sync> {
        Box::new(FetchBar::new(self.ci))
    }

    fn measurement_progress(&self, total: usize, what: &str) -> Box<dyn Fn() + Send + Sync> {
        let bar = MeasurementBar::new(total, what, self.ci);
        Box::new(move || bar.0.inc(1))
    }

    fn cancellation(&self) -> watch::Receiver<bool> {
        cancel_on_interrupt()
    }
}

/// Ends when somebody wants the process to end: Ctrl-C, SIGTERM, or SIGHUP, unless the process was
/// started to survive that (`nohup`).
#[cfg(unix)]
pub(crate) fn interruption() -> Result<impl Future<Output = ()>, AppError> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| AppError::setup(anyhow!(error)));
    let mut interrupted = listen(SignalKind::interrupt())?;
    let mut terminated = listen(SignalKind::terminate())?;
    let survives = survives_hangup();
    let mut hung_up = if survives { None } else { Some(listen(SignalKind::hangup())?) };
    Ok(async move {
        let hung_up = async {
            match &mut hung_up {
                Some(hung_up) => hung_up.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
            _ = hung_up => {}
        }
    })
}

/// Returns true if SIGHUP was ignored when the process started. Listening for it resets that, so it
/// is looked up only once.
#[cfg(unix)]
fn survives_hangup() -> bool {
    static SURVIVES: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *SURVIVES.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // Signal 1 is the lowest bit.
        ignored.is_some_and(|mask| mask & 1 == 1)
    })
}

/// Ends when somebody wants the process to end: Ctrl-C.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "on other systems it can fail")]
pub(crate) fn interruption() -> Result<impl Future<Output = ()>, AppError> {
    Ok(async {
        // Without signals nothing can interrupt the process.
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// Turns true at the first Ctrl-C, SIGTERM or SIGHUP; the second one ends the process at once.
pub(crate) fn cancel_on_interrupt() -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        let Ok(first) = interruption() else { return };
        first.await;
        eprint("\ninterrupted: closing what runs; once more to stop at once\n");
        // Without a receiver the run is over already.
        let _ = sender.send(true);
        let Ok(second) = interruption() else { return };
        second.await;
        #[expect(clippy::exit, reason = "the user asked twice; nothing is left to lose")]
        std::process::exit(Exit::Interrupted as i32);
    });
    receiver
}
