//! The terminal: notices, progress, colour and interrupts.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::io::{IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::anyhow;
use tokio::sync::watch;

use crate::args::{Format, GlobalArgs};
use crate::exit::Exit;
use crate::progress::{FetchBar, MeasurementBar};
use selftest_app::{AppError, FinishedRun, Frontend, Project, ProjectOptions};
use selftest_config::Environment;
use selftest_harness::event::Observer;
use selftest_models::locator::FetchObserver;
use selftest_reports::terminal::DetailLevel;
use selftest_reports::{ProgressObserver, TerminalStyle};
use selftest_text::build_log::CommandFilter;

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
        // Where stderr is no terminal, the notice at the start went past this reader.
        let is_announced = is_terminal && std::io::stderr().is_terminal();
        let links = here.as_deref().filter(|_| has_links);
        print(&run.text(style, self.detail, links, is_announced))
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

/// True if a CI system reads what this process prints.
static IS_BUILD_LOG: AtomicBool = AtomicBool::new(false);
static STDOUT: Mutex<CommandFilter> = Mutex::new(CommandFilter::new());
static STDERR: Mutex<CommandFilter> = Mutex::new(CommandFilter::new());

/// Variables besides `CI` by which systems are known that read commands from logs.
const READERS_OF_LOGS: [&str; 4] =
    ["GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", "BUILD_BUILDID"];

/// Takes commands out of what is printed from now on, if this process runs in CI.
pub(crate) fn detect_build_log() {
    let environment = Environment::from_process();
    let is_set =
        |name: &&str| environment.variables.get(*name).is_some_and(|value| !value.is_empty());
    if environment.ci || READERS_OF_LOGS.iter().any(is_set) {
        print_build_log();
    }
}

/// Takes commands out of what is printed from now on, panics included.
pub(crate) fn print_build_log() {
    if IS_BUILD_LOG.swap(true, Ordering::Relaxed) {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let trace = Backtrace::capture();
        let trace = match trace.status() {
            BacktraceStatus::Captured => format!("{trace}\n"),
            _ => String::new(),
        };
        eprint(&format!("{panic}\n{trace}"));
    }));
}

/// Returns the text as it can be written to the stream that the filter belongs to.
fn printable<'a>(text: &'a str, filter: &Mutex<CommandFilter>) -> Cow<'a, str> {
    if IS_BUILD_LOG.load(Ordering::Relaxed) {
        // A filter is whole after each character.
        filter.lock().unwrap_or_else(PoisonError::into_inner).apply(text).into()
    } else {
        text.into()
    }
}

/// Returns text of a result as [`print`] would print it.
pub(crate) fn printable_line(text: &str) -> Cow<'_, str> {
    if is_stdout_a_file() { text.into() } else { printable(text, &STDOUT) }
}

/// Standard error, for everything that writes lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        std::io::stderr().lock().write_all(printable(&text, &STDERR).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().lock().flush()
    }
}

/// Prints a result on stdout. A closed pipe is no error.
pub(crate) fn print(text: &str) -> Result<(), AppError> {
    print_bytes(printable_line(text).as_bytes())
}

/// Returns true if stdout is a file, which a later step reads and no CI system.
fn is_stdout_a_file() -> bool {
    static IS_FILE: OnceLock<bool> = OnceLock::new();
    *IS_FILE.get_or_init(|| {
        #[cfg(unix)]
        {
            use std::os::fd::AsFd as _;
            let stdout = std::io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from);
            stdout.and_then(|file| file.metadata()).is_ok_and(|found| found.is_file())
        }
        #[cfg(not(unix))]
        false
    })
}

/// Prints bytes without foreign text on stdout. A closed pipe is no error.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), AppError> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(AppError::setup(anyhow!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a message on stderr; if that fails as well, it is lost.
pub(crate) fn eprint(text: &str) {
    let _ = Stderr.write_all(text.as_bytes());
}

/// Prints an error of the command line, or the help that it asked for, and returns the exit code.
pub fn print_usage(error: &clap::Error) -> u8 {
    detect_build_log();
    if IS_BUILD_LOG.load(Ordering::Relaxed) {
        let text = error.render().to_string();
        if error.use_stderr() {
            eprint(&text);
        } else {
            // There is no other place to say that stdout is broken.
            let _ = print(&text);
        }
    } else {
        let _ = error.print();
    }
    u8::try_from(error.exit_code()).unwrap_or(2)
}
