//! The streams of the process: results on stdout, everything else on stderr. In CI both are a build's
//! log, from which foreign text must not command anything.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::anyhow;
use selftest_app::AppError;
use selftest_config::Environment;
use selftest_text::build_log::CommandFilter;

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
