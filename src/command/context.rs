//! The project that a command works on: its folder, environment and configuration.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde_json::{Value, json};

use super::failure::Failure;
use crate::cli::{GlobalArgs, RunArgs};
use selftest_config::{self as config, Environment, FlagValue, ParsedFileCache, ResolvedConfig};
use selftest_harness::gate::baseline;
use selftest_harness::sut::project::ANSWER_KEYS;
use selftest_reports::ci::ReportRequest;
use selftest_reports::terminal::DetailLevel;
use selftest_text::redact::{Redactor, known};

/// A project folder with the environment of this process.
pub(super) struct Project {
    /// Absolute, without links.
    pub(super) folder: PathBuf,
    /// The folder as the user named it, for paths that people read; empty for the current one.
    shown: PathBuf,
    pub(super) environment: Environment,
    /// How much is told of a run.
    pub(super) detail: DetailLevel,
    explicit_config: Option<PathBuf>,
    last_file: ParsedFileCache,
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
        environment.add_secrets(known::secrets_in_arguments(&arguments));
        environment.add_secrets(config::secret_files::values(&folder, &environment.variables));
        environment.models.offline |= global.offline;
        // As with `make -C`: other paths of the command line count from that folder.
        let explicit_config = global.config.as_ref().map(|path| shown.join(path));
        let detail = if global.verbose > 0 { DetailLevel::Full } else { DetailLevel::Normal };
        let last_file = ParsedFileCache::default();
        Ok(Self { folder, shown, environment, detail, explicit_config, last_file })
    }

    /// Knows the secrets of this machine and those that the configuration gives to what is tested.
    pub(super) fn redactor(&self, resolved: &ResolvedConfig) -> Redactor {
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
    pub(super) fn load(&self, flags: Vec<FlagValue>) -> Result<ResolvedConfig, Failure> {
        let explicit = self.explicit_config.as_deref();
        Ok(config::load(&self.shown, explicit, &self.environment, flags, &self.last_file)?)
    }

    /// The file of the configuration, which need not be there.
    pub(super) fn config_file(&self) -> PathBuf {
        self.explicit_config.clone().unwrap_or_else(|| self.shown.join(config::DEFAULT_PATH))
    }

    /// Where the reports of this configuration go: JSON and Markdown.
    pub(super) fn report_folders(&self, resolved: &ResolvedConfig) -> (PathBuf, PathBuf) {
        let reports = &resolved.config.reports;
        (self.shown.join(&reports.json_folder), self.shown.join(&reports.markdown_folder))
    }

    /// The committed baseline of this configuration.
    pub(super) fn baseline_file(&self, resolved: &ResolvedConfig) -> PathBuf {
        match (&resolved.config.baseline, resolved.path.as_ref().and_then(|path| path.parent())) {
            (Some(path), _) => self.shown.join(path),
            (None, Some(folder)) => folder.join(baseline::BASELINE_FILE),
            (None, None) => {
                self.shown.join(config::DEFAULT_PATH).with_file_name(baseline::BASELINE_FILE)
            }
        }
    }

    /// The reports that this configuration asks for besides, with paths from the current folder.
    pub(super) fn report_requests(&self, resolved: &ResolvedConfig) -> Vec<ReportRequest> {
        let requests = resolved.config.reports.requests().into_iter();
        let from_here = |request| match request {
            ReportRequest::File(kind, path) => ReportRequest::File(kind, self.shown.join(path)),
            ReportRequest::Github | ReportRequest::Otlp(_) => request,
        };
        requests.map(from_here).collect()
    }

    /// Every path that holds an answer key.
    pub(super) fn protected(&self, resolved: &ResolvedConfig) -> Vec<PathBuf> {
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

/// The flags that set a key of the configuration, in rising precedence.
pub(super) fn flags(args: &RunArgs) -> Vec<FlagValue> {
    let mut flags = Vec::new();
    let mut set = |pointer: &str, flag: &str, value: Option<Value>| {
        if let Some(value) = value {
            flags.push(FlagValue { pointer: pointer.to_owned(), flag: flag.to_owned(), value });
        }
    };
    for pointer in ["/generator/model", "/judge/model", "/sut/chat/model"] {
        set(pointer, "--model", args.trials.model.as_ref().map(|model| json!(model)));
    }
    let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
    set("/generator/model", "--generator-model", text(&args.generator_model));
    set("/judge/model", "--judge-model", text(&args.trials.judge_model));
    set("/sut/chat/model", "--sut-model", text(&args.trials.sut_model));
    // Who is named on the command line judges alone.
    let alone = args.trials.judge_model.as_ref().map(|_| "--judge-model");
    if let Some(flag) = alone.or(args.trials.model.as_ref().map(|_| "--model")) {
        set("/judge/panel", flag, Some(json!([])));
    }
    for request in &args.report {
        let kind = request.kind();
        let (pointer, value) = match request {
            ReportRequest::File(_, path) => (format!("/reports/{kind}"), json!(path)),
            ReportRequest::Github => (format!("/reports/{kind}"), json!(true)),
            ReportRequest::Otlp(endpoint) => (format!("/reports/{kind}/endpoint"), json!(endpoint)),
        };
        set(&pointer, "--report", Some(value));
    }
    set("/strictness", "--strictness", args.strictness.map(|value| json!(value)));
    set("/min_score_to_pass", "--min-score", args.min_score.map(|value| json!(value)));
    set("/gate", "--gate", text(&args.gate.mode));
    set("/baseline", "--baseline", args.gate.baseline.as_ref().map(|path| json!(path)));
    set("/confirm", "--confirm", args.gate.confirm.map(|value| json!(value)));
    set("/timeout_seconds", "--timeout", args.trials.timeout.map(|value| json!(value)));
    set("/concurrency", "--concurrency", args.trials.concurrency.map(|value| json!(value)));
    set("/models/concurrency", "--concurrency", args.trials.concurrency.map(|value| json!(value)));
    flags
}
