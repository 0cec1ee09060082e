//! Prepares a run: models, system under test, templates, and the paths hidden from it.
//!
//! If no system under test is named, that is the built-in assistant if a capable model is at hand,
//! else the example agent, which needs none.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use rand::RngExt as _;
use serde_json::json;

use super::project::Project;
use crate::error::AppError;
use crate::judges::measured_models;
use crate::judges::{TOGETHER, same_judge};
use crate::options::RunSettings;

use crate::run_start::EarlierState;
use crate::suite_file::SuiteFile;
use selftest_checks::scenario::NamedFileError;
use selftest_checks::scenario::{CaseGrounds, GeneratedCase, Scenario};
use selftest_config as config;
use selftest_config::{Config, ResolvedConfig};
use selftest_harness::calibration::JudgeCalibration;
use selftest_harness::event::{NO_GENERATOR, NO_JUDGE, RunModels};
use selftest_harness::journal::RunDigests;
use selftest_harness::judge::TEMPLATES as JUDGE_TEMPLATES;
use selftest_harness::judge::fitness::DecisionBand;
use selftest_harness::prompts::BUILT_IN;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::run::runner::{ProjectWatch, PromptPrefetch, Runner};
use selftest_harness::scenario::generate::{Generator, GeneratorMaterial, load_templates};
use selftest_harness::scenario::ground;
use selftest_harness::scenario::ground::{ExcerptSources, SourceFile};
use selftest_harness::scenario::rejection::prompt_digest;
use selftest_harness::sut::acp::AcpSut;
use selftest_harness::sut::chat::{ChatSut, TEMPLATE as CHAT_TEMPLATE};
use selftest_harness::sut::command::{CommandHost, CommandRunner, CommandSut};
use selftest_harness::sut::example::ExampleSut;
use selftest_harness::sut::http::HttpSut;
use selftest_harness::sut::project::ProjectFile;
use selftest_harness::sut::stored::StoredAnswers;
use selftest_harness::sut::sut_settings::{ChatSettings, ExampleSettings};
use selftest_harness::sut::{SystemUnderTest, project};
use selftest_models::ChatModel;
use selftest_models::cassette::{CassetteManifest, CassettePlace};
use selftest_models::guarded::Outages;
use selftest_models::locator::ModelLocator;
use selftest_models::name::ModelName;
use selftest_models::prompts::PromptLibrary;
use selftest_reports::RunArchive;
use selftest_reports::document::ReportDocument;
use selftest_text::digest;
use selftest_text::redact::Redactor;
use selftest_text::wording::plural;

/// Maximum number of file names given to the generator.
const MAX_NAMED_FILES: usize = 40;
/// Variables that name a build, the same in all of its jobs, in GitHub Actions, GitLab, Buildkite and
/// Jenkins.
const BUILD_VARIABLES: [&str; 4] =
    ["GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILDKITE_BUILD_ID", "BUILD_TAG"];
/// Number of tokens of project files to choose from, if no chat model is shown them.
const MAX_SHOWN_TOKENS: u32 = 40_000;
/// `EarlierState` runs whose prompts are not asked again.
const MAX_REMEMBERED_RUNS: usize = 30;

/// The parts of a run.
pub struct RunSetup<'a> {
    /// The project.
    pub project: &'a Project,
    /// Its configuration.
    pub resolved: &'a ResolvedConfig,
    /// Options of the run.
    pub args: &'a RunSettings,
    /// The suite; absent if cases are generated.
    pub suite: Option<&'a SuiteFile>,
    /// More paths that the system under test must not read.
    pub hidden: &'a [PathBuf],
    /// State from earlier starts of the run; absent without a journal.
    pub earlier: Option<&'a EarlierState<'a>>,
}

/// A run that can start: models and system under test have been checked.
pub struct PreparedRun {
    pub runner: Arc<Runner>,
    pub models: RunModels,
    /// Digest of the weights of the built-in assistant, where it is tested by a suite and known by more
    /// than its name.
    pub sut_weights: Option<String>,
    /// Calibration of the judge by labels.
    pub calibration: JudgeCalibration,
    pub capacity: usize,
}

impl PreparedRun {
    /// Digests of what is known once the models are.
    pub fn digests(&self, rubric: &str) -> RunDigests {
        let names = &self.models;
        let models = json!([names.generator, names.judge, names.judge_weights, names.sut]);
        // Bounds from known answers are left out: a certificate that is measured anew on another
        // machine sees fewer answers in its minute, and the run can be continued all the same.
        let fitness = names.judge_fitness.iter();
        let own: Vec<DecisionBand> = fitness
            .flat_map(|fitness| [fitness.with_reference, fitness.without_reference])
            .flatten()
            .filter(|band| band.is_own)
            .collect();
        BTreeMap::from([
            ("the models".to_owned(), digest::json_sha256_hex(models)),
            (
                "the prompts".to_owned(),
                digest::json_sha256_hex(json!(self.runner.library.digests())),
            ),
            ("the rubric".to_owned(), rubric.to_owned()),
            ("what your labels say of the judge".to_owned(), digest::json_sha256_hex(json!(own))),
        ])
    }
}

/// The roles of a run that need a model.
#[derive(Clone, Copy)]
struct NeededRoles {
    generator: bool,
    judge: bool,
    /// True if the built-in assistant is the system under test.
    assistant: bool,
}

/// The models of a run, found and checked.
struct RunModelSet {
    generator: Option<Arc<dyn ChatModel>>,
    /// Empty if checks alone decide.
    judges: Vec<Arc<dyn ChatModel>>,
    /// The built-in assistant, if it is the system under test.
    chat: Option<(Arc<dyn ChatModel>, ChatSettings)>,
    /// Which models `auto` chose, and why.
    chosen: Vec<String>,
    outages: Arc<Outages>,
    /// Cases at once that the models can serve.
    capacity: usize,
}

impl RunModelSet {
    /// All of them, in the order in which they are checked.
    fn all(&self) -> Vec<Arc<dyn ChatModel>> {
        let assistant = self.chat.iter().map(|(model, _)| model);
        self.generator.iter().chain(&self.judges).chain(assistant).map(Arc::clone).collect()
    }

    /// All judges in one line.
    fn judge_names(&self) -> String {
        if self.judges.is_empty() {
            return NO_JUDGE.to_owned();
        }
        self.judges.iter().map(|model| model.id()).collect::<Vec<_>>().join(TOGETHER)
    }

    fn names(&self) -> RunModels {
        let name = |model: &Arc<dyn ChatModel>| model.id().to_owned();
        RunModels {
            generator: self.generator.as_ref().map(name),
            judge: self.judge_names(),
            judge_fitness: None,
            judge_weights: None,
            judge_method: None,
            panel: Vec::new(),
            sut: self.chat.as_ref().map(|(model, _)| name(model)),
            chosen: self.chosen.clone(),
            weights: BTreeMap::new(),
        }
    }
}

impl RunSetup<'_> {
    /// Checks everything that a run needs, what needs no model call first.
    pub async fn prepare(&self, plan: &[PlannedCase]) -> Result<PreparedRun, AppError> {
        let config = &self.resolved.config;
        let redactor = Arc::new(self.project.redactor(self.resolved));
        let begun = self.earlier.and_then(|earlier| earlier.header);
        let replayed = self.replayed()?;
        // A resumed run keeps its seed, whatever the flags say: the calls in its journal were made
        // with it. A cassette answers only requests of its own seed.
        let seed = begun.map(|header| header.seed).or(self.args.trials.seed);
        let seed = seed.or(replayed.as_ref().map(|recorded| recorded.seed));
        let seed = seed.or_else(|| self.args.shard.map(|_| self.seed_of_shards()));
        // 53 bits: a report is JSON, and JavaScript (the pages, `jq`) rounds larger integers.
        let seed = seed.unwrap_or_else(|| rand::rng().random::<u64>() >> 11);
        let to_generate: Vec<Scenario> = plan
            .iter()
            .filter(|planned| planned.frozen.is_none())
            .map(|planned| planned.scenario.clone())
            .collect();
        let library = Arc::new(self.templates(&to_generate)?);
        let record = self.args.record.as_ref().map(|folder| self.project.path(folder));
        let hidden = self.hidden_paths(record.clone());
        let external = self.external_sut(&redactor, &hidden)?;
        if let Some(sut) = &external {
            sut.check().await?;
        }
        // Both refusals come before the first model call. Otherwise the run would pay for all
        // prompts and then fail at this case.
        if let Some(case) = plan.iter().find(|case| !case.setup_commands.is_empty())
            && !external.as_ref().is_some_and(|sut| sut.supports_fixtures())
        {
            let id = &case.scenario.id;
            return Err(AppError::usage(anyhow!(
                "case {id} has a set-up, and the system under test has no folder of its own"
            ))
            .hint(Some(self.hint_of_a_folder())));
        }
        let takes_fixtures = external.as_ref().is_some_and(|sut| sut.supports_fixtures());
        if let Some(case) = plan.iter().find(|case| !case.fixtures.is_empty())
            && !takes_fixtures
        {
            let (id, count) = (&case.scenario.id, plural(case.fixtures.len() as u64, "file"));
            return Err(AppError::usage(anyhow!(
                "case {id} brings {count}, and the system under test has no folder of its own"
            ))
            .hint(Some(self.hint_of_a_folder())));
        }
        let generates = !to_generate.is_empty();
        let asks_judge =
            |planned: &PlannedCase| planned.frozen.as_ref().is_none_or(GeneratedCase::needs_judge);
        let replays_templates = config.sut.example.is_some()
            && replayed.as_ref().is_some_and(|recorded| recorded.by_templates);
        let by_templates = generates && (needs_no_generator(config) || replays_templates);
        let wanted = NeededRoles {
            generator: generates && !by_templates,
            judge: plan.iter().any(asks_judge),
            assistant: external.is_none(),
        };
        let models = self.models(wanted, record.clone(), &redactor).await?;
        let all = models.all();
        // Models that report their own failure are not checked in advance.
        let may_begin = all.iter().all(|model| model.supports_lazy_check());
        if !may_begin {
            check_once(&all).await?;
        }
        let mut names = models.names();
        if by_templates {
            names.generator = Some(NO_GENERATOR.to_owned());
        }
        let (capacity, outages) = (models.capacity, Arc::clone(&models.outages));

        let context_tokens = config.models.context_tokens;
        // The generator speaks of files that the system under test can see.
        let budget =
            models.chat.as_ref().map_or(MAX_SHOWN_TOKENS, |(_, settings)| settings.project_tokens);
        let files = project::read_project_files(&self.project.folder, &hidden, budget, &redactor);
        let material = self.material(&files, replayed.is_some());
        // Only `--changed` needs the digest of the assistant's weights, and reading gigabytes for
        // nothing would delay every other run.
        let is_declared = self.suite.is_some() && config.sut.identity.is_some();
        let sut_weights = match models.chat.as_ref().filter(|_| is_declared) {
            Some((model, _)) => model.fingerprint().await,
            None => None,
        };
        let sut: Arc<dyn SystemUnderTest> = match (external, models.chat) {
            (Some(sut), _) => sut,
            (None, Some((model, settings))) => {
                let library = Arc::clone(&library);
                Arc::new(ChatSut::new(model, library, settings, context_tokens, files))
            }
            (None, None) => return Err(AppError::usage(anyhow!("`sut` names no adapter"))),
        };
        let finished = self.earlier.map(|earlier| earlier.cases).unwrap_or_default();
        let generator = match models.generator {
            Some(model) => {
                let settings = config.generator.clone();
                Some(Generator::new(model, settings, context_tokens, material))
            }
            None => by_templates.then(|| Generator::of_templates(material)),
        };
        let generator = generator.map(|generator| {
            // The generator refuses a prompt that it has written before. After a resumption it has
            // to know those of finished cases too, or it might write one again.
            let prompts = finished.iter().filter_map(|case| case.case.as_ref());
            generator.register_prompts(prompts.map(|case| case.prompt.as_str()));
            Arc::new(generator)
        });
        let ahead = match &generator {
            Some(generator) if may_begin => {
                let known: BTreeSet<usize> = finished.iter().map(|case| case.index).collect();
                let is_first =
                    |case: &&PlannedCase| case.frozen.is_none() && !known.contains(&case.index);
                let at_once = config.concurrency.map_or(capacity, |cases| cases as usize);
                // One place is left for the question of what the judge can do.
                let at_once = at_once.min(capacity).saturating_sub(1);
                let first = plan.iter().filter(is_first).take(at_once);
                PromptPrefetch::start(generator, &library, seed, first)
            }
            _ => PromptPrefetch::default(),
        };
        // The check, the first prompts and the questions about the judge run at the same time: each
        // is a round trip to a server that may have to load its model first.
        let check = async {
            if may_begin {
                check_once(&all).await?;
            }
            Ok(weights(&all).await)
        };
        let judging = self.judging(models.judges, &library, &mut names, (seed, replayed));
        let (weights, (judge, calibration)) = tokio::try_join!(check, judging)?;
        names.weights = weights;
        let watch = Some(Arc::new(self.watch(record)));
        let commands = Arc::new(CommandRunner::new(self.host(&redactor, &hidden)?));
        let runner = Runner {
            generator,
            prefetch: ahead,
            judge,
            sut,
            library,
            commands,
            redactor,
            outages,
            seed,
            watch,
        };
        Ok(PreparedRun {
            runner: Arc::new(runner),
            models: names,
            sut_weights,
            calibration,
            capacity,
        })
    }

    /// Prepares the judging of a run's answers again: of all models the judge alone.
    pub async fn prepare_rejudging(
        &self,
        plan: &[PlannedCase],
        report: &ReportDocument,
    ) -> Result<PreparedRun, AppError> {
        let redactor = Arc::new(self.project.redactor(self.resolved));
        let library = Arc::new(self.templates(&[])?);
        let record = self.args.record.as_ref().map(|folder| self.project.path(folder));
        let asks_judge =
            |planned: &PlannedCase| planned.frozen.as_ref().is_some_and(GeneratedCase::needs_judge);
        let judge = plan.iter().any(asks_judge);
        let wanted = NeededRoles { generator: false, judge, assistant: false };
        let hidden = self.hidden_paths(record.clone());
        let models = self.models(wanted, record, &redactor).await?;
        let all = models.all();
        check_once(&all).await?;
        let (generator, sut) = (report.models.generator.clone(), report.models.sut.clone());
        let weights = weights(&all).await;
        let mut names = RunModels { generator, sut, weights, ..models.names() };
        let (capacity, outages) = (models.capacity, Arc::clone(&models.outages));
        let seed = self
            .earlier
            .and_then(|earlier| earlier.header)
            .map(|begun| begun.seed)
            .or(self.args.trials.seed)
            .unwrap_or(report.seed);
        let recorded = (seed, self.replayed()?);
        let (judge, calibration) =
            self.judging(models.judges, &library, &mut names, recorded).await?;
        let runner = Runner {
            generator: None,
            prefetch: PromptPrefetch::default(),
            judge,
            sut: Arc::new(StoredAnswers {
                origin: report.sut.clone(),
                isolation: report.isolation.clone(),
            }),
            library,
            commands: Arc::new(CommandRunner::new(self.host(&redactor, &hidden)?)),
            redactor,
            outages,
            seed,
            // Nothing runs that could change the project.
            watch: None,
        };
        let sut_weights = None;
        Ok(PreparedRun {
            runner: Arc::new(runner),
            models: names,
            sut_weights,
            calibration,
            capacity,
        })
    }

    /// Returns the seed that all shards of a run share without knowing of each other: it depends on
    /// the cases, and in CI on the build.
    fn seed_of_shards(&self) -> u64 {
        let variables = &self.project.environment.variables;
        // The shards of one build have these in common, and the next build has others.
        let build: Vec<Option<&String>> =
            BUILD_VARIABLES.iter().map(|name| variables.get(*name)).collect();
        let suite = self.suite.map(|suite| suite.describe(self.args.repeats).digest);
        let scenarios = &self.resolved.config.scenarios;
        let digest = digest::json_sha256_hex(json!([build, suite, scenarios]));
        // As many bits as a seed has that is drawn.
        u64::from_str_radix(&digest[..16], 16).unwrap_or_default() >> 11
    }

    /// Returns the manifest of the cassette that is replayed, if there is one.
    fn replayed(&self) -> Result<Option<CassetteManifest>, AppError> {
        for folder in self.cassettes() {
            if let Some(manifest) = CassetteManifest::read(&folder)? {
                return Ok(Some(manifest));
            }
        }
        Ok(None)
    }

    /// The material of cases: the files that the system under test can see, and what was asked
    /// before. A given seed, a recording and its replay give the same cases again.
    fn material(&self, files: &[ProjectFile], is_replay: bool) -> GeneratorMaterial {
        let source = |file: &ProjectFile| SourceFile {
            path: file.path.clone(),
            text: file.own_text().to_owned(),
        };
        // Otherwise the reports of earlier runs would change what the same seed asks.
        let is_repeatable =
            self.args.trials.seed.is_some() || self.args.record.is_some() || is_replay;
        let asked_before = if is_repeatable {
            BTreeSet::new()
        } else {
            let (folder, _) = self.project.report_folders(self.resolved);
            let own = self.earlier.and_then(|earlier| earlier.header).map(|header| &header.run_id);
            let prompts = RunArchive::new(folder).recent_prompts(MAX_REMEMBERED_RUNS, own);
            prompts.iter().map(|prompt| prompt_digest(prompt)).collect()
        };
        GeneratorMaterial {
            project_files: files
                .iter()
                .take(MAX_NAMED_FILES)
                .map(|file| file.path.clone())
                .collect(),
            sources: ExcerptSources::new(files.iter().map(source)),
            asked_before,
        }
    }

    /// Reads the files that scenarios and cases name. Whatever is wrong with one is the fault of
    /// the file that names it.
    pub fn read_named_files(&self, plan: &mut [PlannedCase]) -> Result<(), AppError> {
        let redactor = self.project.redactor(self.resolved);
        let record = self.args.record.as_ref().map(|folder| self.project.path(folder));
        let hidden = self.hidden_paths(record);
        for planned in plan {
            let mut grounds = CaseGrounds::default();
            for path in &planned.scenario.files {
                let source =
                    project::read_named_file(&self.project.folder, &hidden, &[], path, &redactor)
                        .map_err(|why| self.unreadable(&planned.scenario, path, &why))?;
                grounds.excerpts.push(ground::file_excerpt(&source));
            }
            if let Some(frozen) = &mut planned.frozen {
                frozen.grounds.add(grounds);
            } else {
                planned.grounds.add(grounds);
            }
        }
        Ok(())
    }

    fn unreadable(&self, scenario: &Scenario, path: &str, why: &NamedFileError) -> AppError {
        let file = match self.suite {
            Some(suite) => suite.shown.display().to_string(),
            None => self
                .resolved
                .path
                .as_ref()
                .map_or_else(|| config::DEFAULT_PATH.to_owned(), |path| path.display().to_string()),
        };
        let (id, path) = (&scenario.id, selftest_text::one_line(path, 100));
        AppError::usage(anyhow!("{file}: `files` of `{id}`: `{path}`: {why}"))
            .hint(Some("name a text file of the project that holds no answers to the tests"))
    }

    /// Loads the templates of all roles; warns if they differ from those of the suite.
    fn templates(&self, to_generate: &[Scenario]) -> Result<PromptLibrary, AppError> {
        let mut library = PromptLibrary::new(&self.project.folder, BUILT_IN);
        load_templates(&mut library, to_generate)?;
        for name in JUDGE_TEMPLATES.into_iter().chain([CHAT_TEMPLATE]) {
            library.load(name)?;
        }
        let rubric_digest = self.resolved.rubric.digest();
        for warning in self.suite.iter().flat_map(|suite| suite.warnings(&rubric_digest, &library))
        {
            self.project.notify(&format!("warning: {warning}\n"));
        }
        Ok(library)
    }

    /// Paths that the system under test must not read. Recordings hold prompts and hints, and must
    /// not change what they record.
    fn hidden_paths(&self, record: Option<PathBuf>) -> Vec<PathBuf> {
        let mut hidden = self.project.protected(self.resolved);
        hidden.extend(record);
        hidden.extend(self.cassettes());
        hidden.extend(self.suite.iter().flat_map(|suite| suite.answer_keys.iter().cloned()));
        hidden.extend_from_slice(self.hidden);
        hidden
    }

    /// Finds the models of all roles.
    async fn models(
        &self,
        wanted: NeededRoles,
        record: Option<PathBuf>,
        redactor: &Arc<Redactor>,
    ) -> Result<RunModelSet, AppError> {
        let config = &self.resolved.config;
        let environment = &self.project.environment;
        let mut locator = ModelLocator::new(
            environment.models.clone(),
            config.models.clone(),
            &self.project.folder,
            record,
            Arc::clone(redactor),
        )
        .with_ranks(measured_models(&environment.models));
        if let Some(earlier) = self.earlier {
            locator = locator.with_call_log(Arc::clone(&earlier.log));
        }
        let fetch = self.project.frontend().fetch_observer();
        let generator = if wanted.generator {
            Some(locator.model(&config.generator.model, &*fetch).await?)
        } else {
            None
        };
        let mut judges: Vec<Arc<dyn ChatModel>> = Vec::new();
        let names = if wanted.judge { self.judge_names()? } else { Vec::new() };
        for name in &names {
            let judge = locator.model(name, &*fetch).await?;
            if judges.iter().any(|other| other.id() == judge.id()) {
                return Err(same_judge(&[judge.id().to_owned()]));
            }
            judges.push(judge);
        }
        let chat = match config.sut.assistant() {
            Some(settings) if wanted.assistant => {
                Some((locator.model(&settings.model, &*fetch).await?, settings))
            }
            _ => None,
        };
        for line in locator.resolutions() {
            self.project.notify(&format!("model {line}\n"));
        }
        // Waiting for a place at its model must not count as the assistant's time.
        let capacity = chat.as_ref().map_or_else(
            || locator.max_concurrency(),
            |(model, _)| locator.concurrency_of(&**model),
        );
        let (chosen, outages) = (locator.resolutions().to_vec(), locator.outages());
        Ok(RunModelSet { generator, judges, chat, chosen, outages, capacity })
    }

    /// Watches the project, but for the folders that a run itself writes to.
    fn watch(&self, record: Option<PathBuf>) -> ProjectWatch {
        let (json_folder, markdown_folder) = self.project.report_folders(self.resolved);
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let mut unwatched = vec![absolute(json_folder), absolute(markdown_folder)];
        unwatched.extend(record);
        ProjectWatch::new(&self.project.folder, &unwatched)
    }

    /// The folders of all cassettes that this run replays.
    fn cassettes(&self) -> Vec<PathBuf> {
        let config = &self.resolved.config;
        let chat = config.sut.assistant();
        let chat = chat.as_ref().map(|chat| &chat.model);
        let generator = self.suite.is_none().then_some(&config.generator.model);
        let named = generator.into_iter().chain(chat).map(String::as_str);
        let names = named.chain(config.judge.models());
        names
            .filter_map(|name| match ModelName::parse(name) {
                Ok(ModelName::Cassette(name)) => {
                    Some(CassettePlace::of(&self.project.folder, &name).folder)
                }
                _ => None,
            })
            .collect()
    }

    /// Where programs are run: those under test, and the commands of checks.
    fn host(
        &self,
        redactor: &Arc<Redactor>,
        protected: &[PathBuf],
    ) -> Result<CommandHost, AppError> {
        let harness = std::env::current_exe()
            .map_err(|error| AppError::setup(anyhow!("cannot find this program: {error}")))?;
        Ok(CommandHost {
            project: self.project.folder.clone(),
            protected: protected.to_vec(),
            scratch_root: std::env::temp_dir(),
            harness,
            environment: self.project.environment.variables.clone(),
            redactor: Arc::clone(redactor),
            sandbox: self.resolved.config.sut.sandbox.unwrap_or_default(),
            fail_on_attempts: self.resolved.config.sut.fail_on_attempts,
            facts: Arc::default(),
        })
    }

    /// The system under test, unless it is a chat model.
    pub fn external_sut(
        &self,
        redactor: &Arc<Redactor>,
        protected: &[PathBuf],
    ) -> Result<Option<Arc<dyn SystemUnderTest>>, AppError> {
        let settings = &self.resolved.config.sut;
        let environment = &self.project.environment;
        if let Some(command) = &settings.command {
            let host = self.host(redactor, protected)?;
            return Ok(Some(Arc::new(CommandSut::new(command.clone(), host))));
        }
        if settings.example.is_some() {
            let folder = &self.project.folder;
            let files = project::read_project_files(folder, protected, MAX_SHOWN_TOKENS, redactor);
            return Ok(Some(Arc::new(ExampleSut::new(&files))));
        }
        if let Some(acp) = &settings.acp {
            let host = self.host(redactor, protected)?;
            return Ok(Some(Arc::new(AcpSut::new(acp, host))));
        }
        if let Some(http) = &settings.http {
            let variable = http.token_variable.as_ref();
            let token = variable.and_then(|name| environment.variables.get(name));
            if let (Some(name), None) = (variable, token) {
                let error = anyhow!("sut.http.token_variable names {name}, which is not set");
                return Err(AppError::setup(error));
            }
            let token = token.cloned().map(Into::into);
            let sut = HttpSut::new(http.clone(), token, Arc::clone(redactor))?;
            return Ok(Some(Arc::new(sut)));
        }
        Ok(None)
    }

    /// Returns the hint for giving each case its own folder.
    fn hint_of_a_folder(&self) -> String {
        let section = self.resolved.config.sut.program_section();
        format!("set `{section}.work_folder: copy` in the config")
    }
}

/// Returns true if the harness itself builds the cases: beside the example agent, whose cases are
/// about what is certainly right, unless a generator is named.
pub(crate) fn needs_no_generator(config: &Config) -> bool {
    let generator = ModelName::parse(&config.generator.model);
    config.sut.example.is_some() && matches!(generator, Ok(ModelName::Auto))
}

/// Returns the known digests of the weights of these models.
async fn weights(models: &[Arc<dyn ChatModel>]) -> BTreeMap<String, String> {
    let mut weights = BTreeMap::new();
    for model in models {
        if !weights.contains_key(model.id())
            && let Some(digest) = model.fingerprint().await
        {
            weights.insert(model.id().to_owned(), selftest_text::one_line(&digest, 100));
        }
    }
    weights
}

/// Checks each model once, however many roles it has.
async fn check_once(models: &[Arc<dyn ChatModel>]) -> Result<(), AppError> {
    let mut seen = BTreeSet::new();
    for model in models {
        if seen.insert(model.id()) {
            model.check().await?;
        }
    }
    Ok(())
}

/// Returns the configuration with a system under test. `needs_model` is true if only the assistant
/// can be tested, because cases give it a skill.
pub(crate) async fn with_sut<'a>(
    project: &Project,
    resolved: &'a ResolvedConfig,
    needs_model: bool,
) -> Cow<'a, ResolvedConfig> {
    let sut = &resolved.config.sut;
    // `--model cassette/…` names the assistant as well.
    let is_replay = sut.chat.as_ref().is_some_and(|chat| replays_templates(project, &chat.model));
    if !sut.is_unnamed() && !is_replay {
        return Cow::Borrowed(resolved);
    }
    let mut named = resolved.clone();
    if is_replay || replays_templates(project, &resolved.config.generator.model) {
        (named.config.sut.chat, named.config.sut.example) =
            (None, Some(ExampleSettings::default()));
        return Cow::Owned(named);
    }
    let locator = ModelLocator::new(
        project.environment.models.clone(),
        resolved.config.models.clone(),
        &project.folder,
        None,
        Arc::new(project.redactor(resolved)),
    );
    if needs_model || locator.has_capable_model().await {
        named.config.sut.chat = Some(ChatSettings::default());
    } else {
        named.config.sut.example = Some(ExampleSettings::default());
    }
    Cow::Owned(named)
}

/// Returns true if the model is the recording of a run of the example agent. An unreadable one is
/// an error of the run that reads it.
fn replays_templates(project: &Project, model: &str) -> bool {
    let Ok(ModelName::Cassette(folder)) = ModelName::parse(model) else { return false };
    let manifest = CassetteManifest::read(&CassettePlace::of(&project.folder, &folder).folder);
    manifest.is_ok_and(|manifest| manifest.is_some_and(|recorded| recorded.by_templates))
}
