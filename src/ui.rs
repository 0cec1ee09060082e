//! The terminal: notices, colour, interrupts, and progress on stderr: bars on a terminal, lines or
//! nothing elsewhere.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::io::{IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::watch;

use crate::args::{Format, GlobalArgs};
use crate::exit::Exit;
use selftest_app::{AppError, FinishedRun, Frontend, Project, ProjectOptions};
use selftest_config::Environment;
use selftest_harness::event::Observer;
use selftest_models::locator::FetchObserver;
use selftest_models::model_files::TransferProgress;
use selftest_reports::terminal::DetailLevel;
use selftest_reports::{ProgressObserver, TerminalStyle};
use selftest_service::grader::ScanObserver;
use selftest_service::search::IndexObserver;
use selftest_store::FileResult;
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
            // Logs of CI show the escape codes of links as text.
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
    // Under `nohup` the signal is ignored. Listening to it would undo that, and end the run with
    // the terminal.
    let survives = survives_hangup();
    let mut hung_up = if survives { None } else { Some(listen(SignalKind::hangup())?) };
    Ok(async move {
        let hung_up = async {
            match &mut hung_up {
                Some(hung_up) => hung_up.recv().await,
                // Never ready, so the other two decide.
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
    // These systems execute lines such as `::add-mask::` or `##vso[…]` in a log, and a model's
    // answer may hold one.
    if environment.ci || READERS_OF_LOGS.iter().any(is_set) {
        print_build_log();
    }
}

/// Takes commands out of what is printed from now on, panics included.
pub(crate) fn print_build_log() {
    if IS_BUILD_LOG.swap(true, Ordering::Relaxed) {
        return;
    }
    // The default hook writes past the filter, and a panic message may quote an answer.
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
    // A file is a report for programs and must stay byte for byte; nothing reads it as a log.
    if is_stdout_a_file() { text.into() } else { printable(text, &STDOUT) }
}

/// Standard error, for everything that writes lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // A write may end within a character, which then shows as a replacement; notices are
        // written whole.
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
        // `selftest … | head` closes the pipe early, which is no error.
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
        // The size of a file is only known with its first bytes.
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
        // Hidden until the number of files is known: most scans find nothing new.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Self { bar, is_terminal, graded: 0 }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

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
