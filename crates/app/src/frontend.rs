//! The interface to the caller of the application: a terminal, a server, a test.

use std::fmt::Debug;

use selftest_harness::event::Observer;
use selftest_models::locator::FetchObserver;
use selftest_models::model_files::TransferProgress;
use tokio::sync::watch;

/// Receives notices and progress, and cancels runs.
///
/// The application prints nothing. [`SilentFrontend`] discards everything, for tests and servers.
pub trait Frontend: Debug + Send + Sync {
    /// Receives a notice for the user, ending in a line break.
    fn notify(&self, text: &str);

    /// Receives commands for the CI system that reads the log, such as annotations. Foreign text in
    /// them is escaped.
    fn command(&self, lines: &str);

    /// Returns an observer of a run's events beside its reports; `label` names the arm of an
    /// experiment.
    fn run_observer(&self, label: Option<&'static str>) -> Option<Box<dyn Observer>>;

    /// Returns an observer of downloads of model weights.
    fn fetch_observer(&self) -> Box<dyn FetchObserver + Send + Sync>;

    /// Starts the progress of a measurement with this many steps; each call of the result is one step,
    /// and dropping it ends the progress.
    fn measurement_progress(&self, total: usize, what: &str) -> Box<dyn Fn() + Send + Sync>;

    /// Returns a receiver that turns true when the user wants a run to end. A run asks for it once.
    fn cancellation(&self) -> watch::Receiver<bool>;
}

/// A frontend that discards notices, shows no progress and never cancels.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentFrontend;

impl Frontend for SilentFrontend {
    fn notify(&self, _text: &str) {}

    fn command(&self, _lines: &str) {}

    fn run_observer(&self, _label: Option<&'static str>) -> Option<Box<dyn Observer>> {
        None
    }

    fn fetch_observer(&self) -> Box<dyn FetchObserver + Send + Sync> {
        Box::new(SilentFetch)
    }

    fn measurement_progress(&self, _total: usize, _what: &str) -> Box<dyn Fn() + Send + Sync> {
        Box::new(|| {})
    }

    fn cancellation(&self) -> watch::Receiver<bool> {
        watch::channel(false).1
    }
}

struct SilentFetch;

impl FetchObserver for SilentFetch {
    fn announce(&self, _line: &str) {}

    fn progress(&self, _progress: TransferProgress) {}
}
