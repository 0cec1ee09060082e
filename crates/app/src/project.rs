//! The project that a command works on: its folder, environment and configuration.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use tokio::sync::watch;

use crate::error::AppError;
use selftest_config::{self as config, Environment, FlagValue, ParsedFileCache, ResolvedConfig};
use selftest_harness::event::Observer;
use selftest_harness::gate::anchors::anchors_file;
use selftest_harness::gate::baseline;
use selftest_harness::sut::project::ANSWER_KEYS;
use selftest_models::locator::FetchObserver;
use selftest_models::model_files::TransferProgress;
use selftest_reports::ci::ReportRequest;
use selftest_text::redact::{Redactor, known};
use selftest_text::tree;

/// Options that every operation on a project shares.
#[derive(Debug, Clone, Default)]
pub struct ProjectOptions {
    /// The project folder instead of the current one.
    pub directory: Option<PathBuf>,
    /// Configuration instead of config/selftest.yaml, relative to the folder.
    pub config: Option<PathBuf>,
    /// True if nothing may be fetched.
    pub offline: bool,
}

/// A project folder with the environment of this process.
pub struct Project {
    /// Absolute, without links.
    pub folder: PathBuf,
    /// The folder as the user named it, for paths that people read; empty for the current one.
    shown: PathBuf,
    /// Environment of this process.
    pub environment: Environment,
    explicit_config: Option<PathBuf>,
    last_file: ParsedFileCache,
    frontend: Arc<dyn Frontend>,
}

impl Project {
    /// Returns the receiver of notices and progress.
    pub fn frontend(&self) -> &Arc<dyn Frontend> {
        &self.frontend
    }

    /// Sends a notice, ending in a line break, to the frontend.
    pub fn notify(&self, text: &str) {
        self.frontend.notify(text);
    }

    /// Opens a project folder and reads the environment of this process.
    pub fn open(options: ProjectOptions, frontend: Arc<dyn Frontend>) -> Result<Self, AppError> {
        let shown = options.directory.unwrap_or_default();
        // An empty path, which stands for the current folder, cannot be resolved by itself.
        let folder = Path::new(".")
            .join(&shown)
            .canonicalize()
            .with_context(|| format!("cannot use the folder {}", shown.display()))
            .map_err(AppError::usage)?;
        if !folder.is_dir() {
            return Err(AppError::usage(anyhow!("{} is not a folder", shown.display())));
        }
        if let Some(path) = tree::unsafe_ignore_file(&folder) {
            return Err(AppError::usage(anyhow!("{}", tree::ignore_file_error(&path)))
                .hint(Some("the files of the project are found by it; mend or remove it")));
        }
        let mut environment = Environment::from_process();
        let arguments: Vec<String> =
            std::env::args_os().filter_map(|argument| argument.into_string().ok()).collect();
        environment.add_secrets(known::secrets_in_arguments(&arguments));
        environment
            .add_secrets(config::environment::secrets_in_files(&folder, &environment.variables));
        environment.models.offline |= options.offline;
        // As with `make -C`: other paths of the command line count from that folder.
        let explicit_config = options.config.map(|path| shown.join(path));
        let last_file = ParsedFileCache::default();
        Ok(Self { folder, shown, environment, explicit_config, last_file, frontend })
    }

    /// Returns a redactor for the secrets of this machine and those configured for the system under
    /// test.
    pub fn redactor(&self, resolved: &ResolvedConfig) -> Redactor {
        let sut = &resolved.config.sut;
        let mut secrets = self.environment.secret_values.clone();
        if let Some(command) = sut.program() {
            secrets.extend(known::secrets_in_arguments(&command.run));
            let variables = command.environment.iter();
            secrets
                .extend(variables.flat_map(|(name, value)| known::secrets_in_setting(name, value)));
        }
        Redactor::new(secrets)
    }

    /// Loads the configuration with these flags on top.
    pub fn load(&self, flags: Vec<FlagValue>) -> Result<ResolvedConfig, AppError> {
        let explicit = self.explicit_config.as_deref();
        Ok(config::load(&self.shown, explicit, &self.environment, flags, &self.last_file)?)
    }

    /// Returns the file of the configuration, which may be missing.
    pub fn config_file(&self) -> PathBuf {
        self.explicit_config.clone().unwrap_or_else(|| self.shown.join(config::DEFAULT_PATH))
    }

    /// Returns the report folders of a configuration: JSON and Markdown.
    pub fn report_folders(&self, resolved: &ResolvedConfig) -> (PathBuf, PathBuf) {
        let reports = &resolved.config.reports;
        (self.shown.join(&reports.json_folder), self.shown.join(&reports.markdown_folder))
    }

    /// Returns the file of the committed baseline.
    pub fn baseline_file(&self, resolved: &ResolvedConfig) -> PathBuf {
        match (&resolved.config.baseline, resolved.path.as_ref().and_then(|path| path.parent())) {
            (Some(path), _) => self.shown.join(path),
            (None, Some(folder)) => folder.join(baseline::BASELINE_FILE),
            (None, None) => {
                self.shown.join(config::DEFAULT_PATH).with_file_name(baseline::BASELINE_FILE)
            }
        }
    }

    /// Returns the additional reports of a configuration, with paths from the current folder.
    pub fn report_requests(&self, resolved: &ResolvedConfig) -> Vec<ReportRequest> {
        let requests = resolved.config.reports.requests().into_iter();
        let from_here = |request| match request {
            ReportRequest::File(kind, path) => ReportRequest::File(kind, self.shown.join(path)),
            ReportRequest::Github | ReportRequest::Otlp(_) => request,
        };
        requests.map(from_here).collect()
    }

    /// Returns all paths that hold an answer key.
    pub fn protected(&self, resolved: &ResolvedConfig) -> Vec<PathBuf> {
        let (json, markdown) = self.report_folders(resolved);
        // The schema names the rubric's defaults.
        let fixed = ANSWER_KEYS.iter().chain(&["config/schema.json"]);
        let mut paths: Vec<PathBuf> = fixed.map(|path| self.folder.join(path)).collect();
        let weekly = self.shown.join(&resolved.config.grade.weekly_folder);
        // The system under test need not know what it is compared with.
        let baseline = self.baseline_file(resolved);
        let anchors = anchors_file(&baseline);
        let requests = self.report_requests(resolved);
        let asked = requests.iter().filter_map(ReportRequest::path).map(Path::to_owned);
        let asked: Vec<PathBuf> = asked.collect();
        let shown = resolved
            .path
            .iter()
            .chain([&json, &markdown, &weekly, &baseline, &anchors])
            .chain(&asked);
        paths.extend(shown.filter_map(|path| std::path::absolute(path).ok()));
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns a path of the configuration as the user would type it.
    pub fn shown_path(&self, path: &Path) -> PathBuf {
        self.shown.join(path)
    }

    /// Resolves a path of the command line.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

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
