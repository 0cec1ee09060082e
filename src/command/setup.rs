//! What a run is made of: models, system under test, templates, and what is kept from it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use jiff::Timestamp;
use rand::RngExt as _;

use super::context::Project;
use super::eprint;
use super::failure::Failure;
use super::model::FetchBar;
use crate::cli::RunArgs;
use crate::config::{self, Resolved};
use selftest_harness::event::{RunConfig, RunHeader, RunModels, SuiteRun};
use selftest_harness::judge::ask::Judge;
use selftest_harness::judge::prompt::TEMPLATE as JUDGE_TEMPLATE;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::run::runner::{ProjectWatch, Runner};
use selftest_harness::scenario::generate::{Generator, load_templates};
use selftest_harness::scenario::suite::Suite;
use selftest_harness::sut::chat::{ChatSut, TEMPLATE as CHAT_TEMPLATE};
use selftest_harness::sut::command::{CommandHost, CommandSut};
use selftest_harness::sut::http::HttpSut;
use selftest_harness::sut::namespace::{RunId, TaskGroupId};
use selftest_harness::sut::{SystemUnderTest, project};
use selftest_models::ChatModel;
use selftest_models::locate::Locator;
use selftest_models::name::ModelName;
use selftest_models::prompts::PromptLibrary;
use selftest_stats::score::Threshold;
use selftest_text::redact::Redactor;

/// Most file names that the generator hears of.
const NAMED_FILES: usize = 40;
/// Tokens of project files to choose those names from, where no chat model is shown them.
const SHOWN_TOKENS: u32 = 8000;

/// A suite with its file, which the system under test must not read.
pub(super) struct SuiteFile {
    pub(super) suite: Suite,
    /// As the user named it.
    shown: PathBuf,
    path: PathBuf,
}

impl SuiteFile {
    /// Reads the suite of the command line.
    pub(super) fn load(project: &Project, path: &Path) -> Result<Self, Failure> {
        let suite = config::suite::load(&project.shown_path(path))?;
        Ok(Self { suite, shown: path.to_owned(), path: project.path(path) })
    }

    /// What the report says of it.
    fn describe(&self, repeats: u32) -> SuiteRun {
        SuiteRun {
            path: selftest_text::one_line(&self.shown.display().to_string(), 500),
            digest: self.suite.digest(),
            run_id: self.suite.run_id.clone(),
            repeats,
        }
    }

    /// What makes scores of this run mean something else than those of the run that it is of.
    fn warnings(&self, rubric_digest: &str, library: &PromptLibrary) -> Vec<String> {
        let mut warnings = Vec::new();
        let shown = self.shown.display();
        let differs = |then: Option<&String>, now: Option<&str>| {
            then.is_some_and(|then| now.is_some_and(|now| now != then))
        };
        if differs(self.suite.rubric_digest.as_ref(), Some(rubric_digest)) {
            warnings.push(format!(
                "{shown} was frozen under another rubric: scores cannot be compared with that run"
            ));
        }
        let now = library.digests().get(JUDGE_TEMPLATE).map(String::as_str);
        if differs(self.suite.prompt_digests.get(JUDGE_TEMPLATE), now) {
            warnings.push(format!(
                "prompts/{JUDGE_TEMPLATE} has changed since {shown} was frozen: scores may differ \
                 for that"
            ));
        }
        warnings
    }
}

/// What a run is made of.
pub(super) struct Setup<'a> {
    pub(super) project: &'a Project,
    pub(super) resolved: &'a Resolved,
    pub(super) args: &'a RunArgs,
    /// The suite; absent where a generator makes the cases.
    pub(super) suite: Option<&'a SuiteFile>,
    /// What else must not be read by what is tested.
    pub(super) hidden: &'a [PathBuf],
}

/// A run that can start: models and system under test have been checked.
pub(super) struct Prepared {
    pub(super) runner: Arc<Runner>,
    models: RunModels,
    capacity: usize,
}

impl Setup<'_> {
    pub(super) async fn prepare(&self, plan: &[PlannedCase]) -> Result<Prepared, Failure> {
        let config = &self.resolved.config;
        let project = &self.project.folder;
        let environment = &self.project.environment;
        let redactor = Arc::new(Redactor::new(environment.secret_values.iter().cloned()));
        let protected = self.project.protected(self.resolved);
        let seed = self.args.seed.unwrap_or_else(|| rand::rng().random::<u64>() >> 11);

        let mut library = PromptLibrary::new(project, selftest_harness::prompts::BUILT_IN);
        let to_generate = plan.iter().filter(|planned| planned.frozen.is_none());
        let to_generate: Vec<_> = to_generate.map(|planned| planned.scenario.clone()).collect();
        load_templates(&mut library, &to_generate)?;
        for name in [JUDGE_TEMPLATE, CHAT_TEMPLATE] {
            library.load(name)?;
        }
        let library = Arc::new(library);
        let rubric_digest = self.resolved.rubric.digest();
        for warning in self.suite.iter().flat_map(|suite| suite.warnings(&rubric_digest, &library))
        {
            eprint(&format!("warning: {warning}\n"));
        }

        let record = self.args.record.as_ref().map(|folder| self.project.path(folder));
        // Recordings hold prompts and hints, and must not change what they record.
        let mut hidden = protected.clone();
        hidden.extend(record.clone());
        hidden.extend(self.cassettes());
        hidden.extend(self.suite.map(|suite| suite.path.clone()));
        hidden.extend_from_slice(self.hidden);
        let mut locator = Locator::new(
            environment.models.clone(),
            config.models.clone(),
            project,
            record,
            Arc::clone(&redactor),
        );

        // What is found missing without a model call is found first.
        let standing = self.external_sut(&redactor, &hidden)?;
        if let Some(sut) = &standing {
            sut.check().await?;
        }
        let fetch = FetchBar::new(environment);
        let generator = if to_generate.is_empty() {
            None
        } else {
            Some(locator.model(&config.generator.model, &fetch).await?)
        };
        let judge = locator.model(&config.judge.model, &fetch).await?;
        let mut models: Vec<_> = generator.iter().chain([&judge]).map(Arc::clone).collect();
        let chat = match &config.sut.chat {
            Some(settings) if standing.is_none() => {
                let model = locator.model(&settings.model, &fetch).await?;
                models.push(Arc::clone(&model));
                Some((model, settings.clone()))
            }
            _ => None,
        };
        for line in locator.chosen() {
            eprint(&format!("model {line}\n"));
        }
        check_once(&models).await?;
        // Waiting for a place at its model must not count as the assistant's time.
        let capacity = chat
            .as_ref()
            .map_or_else(|| locator.capacity(), |(model, _)| locator.capacity_of(&**model));
        let run_models = RunModels {
            generator: generator.as_ref().map(|generator| generator.id().to_owned()),
            judge: judge.id().to_owned(),
            sut: chat.as_ref().map(|(model, _)| model.id().to_owned()),
            chosen: locator.chosen().to_vec(),
        };

        let context_tokens = config.models.context_tokens;
        // The generator speaks of files that the system under test can see.
        let budget = chat.as_ref().map_or(SHOWN_TOKENS, |(_, settings)| settings.project_tokens);
        let files = project::read(project, &hidden, budget, &redactor);
        let names = files.iter().take(NAMED_FILES).map(|file| file.path.clone()).collect();
        let sut: Arc<dyn SystemUnderTest> = match (standing, chat) {
            (Some(sut), _) => sut,
            (None, Some((model, settings))) => {
                let library = Arc::clone(&library);
                Arc::new(ChatSut::new(model, library, settings, context_tokens, files))
            }
            (None, None) => return Err(Failure::usage(anyhow!("`sut` names no adapter"))),
        };
        let (json_folder, markdown_folder) = self.project.report_folders(self.resolved);
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let mut unwatched = vec![absolute(json_folder), absolute(markdown_folder)];
        unwatched.extend(self.args.record.as_ref().map(|folder| self.project.path(folder)));
        let runner = Arc::new(Runner {
            generator: generator.map(|model| {
                Generator::new(model, config.generator.clone(), context_tokens, names)
            }),
            judge: Arc::new(Judge::new(
                judge,
                config.judge.clone(),
                context_tokens,
                self.resolved.rubric.clone(),
            )),
            sut,
            library,
            redactor,
            seed,
            watch: Arc::new(ProjectWatch::new(project, &unwatched)),
        });
        Ok(Prepared { runner, models: run_models, capacity })
    }

    /// The folders of all cassettes that this run replays.
    fn cassettes(&self) -> Vec<PathBuf> {
        let config = &self.resolved.config;
        let chat = config.sut.chat.as_ref().map(|chat| &chat.model);
        let generator = self.suite.is_none().then_some(&config.generator.model);
        let names = generator.into_iter().chain([&config.judge.model]).chain(chat);
        names
            .filter_map(|name| match ModelName::parse(name) {
                Ok(ModelName::Cassette(folder)) => Some(self.project.path(&folder)),
                _ => None,
            })
            .collect()
    }

    /// The system under test, unless it is a chat model.
    pub(super) fn external_sut(
        &self,
        redactor: &Arc<Redactor>,
        protected: &[PathBuf],
    ) -> Result<Option<Arc<dyn SystemUnderTest>>, Failure> {
        let settings = &self.resolved.config.sut;
        let environment = &self.project.environment;
        if let Some(command) = &settings.command {
            let harness = std::env::current_exe()
                .map_err(|error| Failure::setup(anyhow!("cannot find this program: {error}")))?;
            let host = CommandHost {
                project: self.project.folder.clone(),
                protected: protected.to_vec(),
                scratch_root: std::env::temp_dir(),
                harness,
                environment: environment.variables.clone(),
                redactor: Arc::clone(redactor),
            };
            return Ok(Some(Arc::new(CommandSut::new(command.clone(), host))));
        }
        if let Some(http) = &settings.http {
            let variable = http.token_variable.as_ref();
            let token = variable.and_then(|name| environment.variables.get(name));
            if let (Some(name), None) = (variable, token) {
                let error = anyhow!("sut.http.token_variable names {name}, which is not set");
                return Err(Failure::setup(error));
            }
            let token = token.cloned().map(Into::into);
            let sut = HttpSut::new(http.clone(), token, Arc::clone(redactor))?;
            return Ok(Some(Arc::new(sut)));
        }
        Ok(None)
    }

    pub(super) fn header(
        &self,
        run_id: RunId,
        plan: &[PlannedCase],
        prepared: &Prepared,
    ) -> RunHeader {
        let config = &self.resolved.config;
        let runner = &prepared.runner;
        let now = Timestamp::now();
        let started_at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        RunHeader {
            run_id,
            task_group_id: TaskGroupId::fresh(started_at),
            started_at,
            selftest_version: env!("CARGO_PKG_VERSION").to_owned(),
            config: RunConfig {
                strictness: config.strictness,
                min_score_to_pass: config.min_score_to_pass,
                effective_threshold: Threshold::effective(
                    config.min_score_to_pass,
                    config.strictness,
                ),
                safety_floor: config.safety_floor,
                allow_minor_format_deviation: config.allow_minor_format_deviation,
                max_questions_allowed: config.max_questions_allowed,
                timeout_seconds: config.timeout_seconds,
                concurrency: config.concurrency.map_or(prepared.capacity, |cases| cases as usize),
            },
            seed: runner.seed,
            models: prepared.models.clone(),
            sut: runner.sut.describe(),
            isolation: runner.sut.isolation(),
            rubric: (&self.resolved.rubric).into(),
            prompt_digests: runner.library.digests().clone(),
            suite: self.suite.map(|suite| suite.describe(self.args.repeats)),
            experiment: None,
            scenario_ids: plan.iter().map(|planned| planned.scenario.id.clone()).collect(),
        }
    }
}

/// Checks each model once, however many roles it has.
async fn check_once(models: &[Arc<dyn ChatModel>]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for model in models {
        if seen.insert(model.id()) {
            model.check().await?;
        }
    }
    Ok(())
}
