//! The project that a command works on: its folder, environment and configuration.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

use super::failure::Failure;
use crate::cli::GlobalArgs;
use crate::config::{self, Environment, Flag, Resolved};
use selftest_harness::gate::baseline;
use selftest_harness::report::ci::ReportRequest;
use selftest_harness::report::terminal::Detail;
use selftest_harness::sut::project::ANSWER_KEYS;
use selftest_text::redact::{Redactor, known};

/// A project folder with the environment of this process.
pub(super) struct Project {
    /// Absolute, without links.
    pub(super) folder: PathBuf,
    /// The folder as the user named it, for paths that people read; empty for the current one.
    shown: PathBuf,
    pub(super) environment: Environment,
    /// How much is told of a run.
    pub(super) detail: Detail,
    explicit_config: Option<PathBuf>,
}

impl Project {
    /// Finds the folder and reads the environment.
    pub(super) fn open(global: &GlobalArgs) -> Result<Self, Failure> {
        let shown = global.directory.clone().unwrap_or_default();
        let folder = Path::new(".")
            .join(&shown)
            .canonicalize()
            .with_context(|| format!("cannot use the folder {}", shown.display()))
            .map_err(Failure::usage)?;
        if !folder.is_dir() {
            return Err(Failure::usage(anyhow!("{} is not a folder", shown.display())));
        }
        let mut environment = Environment::from_process();
        let arguments: Vec<String> =
            std::env::args_os().filter_map(|argument| argument.into_string().ok()).collect();
        environment.add_secrets(known::of_arguments(&arguments));
        environment.add_secrets(config::secret_files::values(&folder, &environment.variables));
        environment.models.offline |= global.offline;
        // As with `make -C`: other paths of the command line count from that folder.
        let explicit_config = global.config.as_ref().map(|path| shown.join(path));
        let detail = if global.verbose > 0 { Detail::Full } else { Detail::Normal };
        Ok(Self { folder, shown, environment, detail, explicit_config })
    }

    /// Knows the secrets of this machine and those that the configuration gives to what is tested.
    pub(super) fn redactor(&self, resolved: &Resolved) -> Redactor {
        let sut = &resolved.config.sut;
        let mut secrets = self.environment.secret_values.clone();
        if let Some(command) = sut.program() {
            secrets.extend(known::of_arguments(&command.run));
            let variables = command.environment.iter();
            secrets.extend(variables.flat_map(|(name, value)| known::of_setting(name, value)));
        }
        Redactor::new(secrets)
    }

    /// Loads the configuration with these flags on top.
    pub(super) fn load(&self, flags: Vec<Flag>) -> Result<Resolved, Failure> {
        let explicit = self.explicit_config.as_deref();
        Ok(config::load(&self.shown, explicit, &self.environment, flags)?)
    }

    /// The file of the configuration, which need not be there.
    pub(super) fn config_file(&self) -> PathBuf {
        self.explicit_config.clone().unwrap_or_else(|| self.shown.join(config::DEFAULT_PATH))
    }

    /// Where the reports of this configuration go: JSON and Markdown.
    pub(super) fn report_folders(&self, resolved: &Resolved) -> (PathBuf, PathBuf) {
        let reports = &resolved.config.reports;
        (self.shown.join(&reports.json_folder), self.shown.join(&reports.markdown_folder))
    }

    /// The committed baseline of this configuration.
    pub(super) fn baseline_file(&self, resolved: &Resolved) -> PathBuf {
        match (&resolved.config.baseline, resolved.path.as_ref().and_then(|path| path.parent())) {
            (Some(path), _) => self.shown.join(path),
            (None, Some(folder)) => folder.join(baseline::FILE),
            (None, None) => self.shown.join(config::DEFAULT_PATH).with_file_name(baseline::FILE),
        }
    }

    /// The reports that this configuration asks for besides, with paths from the current folder.
    pub(super) fn report_requests(&self, resolved: &Resolved) -> Vec<ReportRequest> {
        let requests = resolved.config.reports.requests().into_iter();
        let from_here = |request| match request {
            ReportRequest::File(kind, path) => ReportRequest::File(kind, self.shown.join(path)),
            ReportRequest::Github | ReportRequest::Otlp(_) => request,
        };
        requests.map(from_here).collect()
    }

    /// Every path that holds an answer key.
    pub(super) fn protected(&self, resolved: &Resolved) -> Vec<PathBuf> {
        let (json, markdown) = self.report_folders(resolved);
        // The schema names the rubric's defaults.
        let fixed = ANSWER_KEYS.iter().chain(&["config/schema.json"]);
        let mut paths: Vec<PathBuf> = fixed.map(|path| self.folder.join(path)).collect();
        let weekly = self.shown.join(&resolved.config.grade.weekly_folder);
        // What is tested need not know what it is held against.
        let baseline = self.baseline_file(resolved);
        let requests = self.report_requests(resolved);
        let asked = requests.iter().filter_map(ReportRequest::path).map(Path::to_owned);
        let asked: Vec<PathBuf> = asked.collect();
        let shown =
            resolved.path.iter().chain([&json, &markdown, &weekly, &baseline]).chain(&asked);
        paths.extend(shown.filter_map(|path| std::path::absolute(path).ok()));
        paths.sort();
        paths.dedup();
        paths
    }

    /// A path of the configuration, as the user would name it.
    pub(super) fn shown_path(&self, path: &Path) -> PathBuf {
        self.shown.join(path)
    }

    /// A path of the command line.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}
