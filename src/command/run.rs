//! The main job: run the scenarios, write the reports, say how it went.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use jiff::Timestamp;
use rand::RngExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::context::Project;
use super::failure::Failure;
use super::model::FetchBar;
use super::{eprint, print};
use crate::cli::{Format, GlobalArgs, RunArgs};
use crate::config::{Config, Flag, Resolved};
use crate::event::{Observer, RunHeader, RunModels};
use crate::exit::Exit;
use crate::judge::ask::Judge;
use crate::judge::prompt::TEMPLATE as JUDGE_TEMPLATE;
use crate::model::ChatModel;
use crate::model::locate::Locator;
use crate::model::name::ModelName;
use crate::prompts::PromptLibrary;
use crate::redact::Redactor;
use crate::report::{ProgressObserver, ReportFiles, ReportObserver, Style, terminal};
use crate::run::execute::execute as execute_plan;
use crate::run::observe;
use crate::run::plan::{Defaults, PlannedCase, Selection, plan};
use crate::run::runner::{ProjectWatch, Runner};
use crate::scenario::generate::{Generator, load_templates};
use crate::score::Threshold;
use crate::sut::chat::{ChatSut, TEMPLATE as CHAT_TEMPLATE};
use crate::sut::command::CommandSut;
use crate::sut::http::HttpSut;
use crate::sut::namespace::{RunId, TaskGroupId};
use crate::sut::{SystemUnderTest, project};

/// Most file names that the generator hears of.
const NAMED_FILES: usize = 40;
/// Tokens of project files to choose those names from, where no chat model is shown them.
const SHOWN_TOKENS: u32 = 8000;

pub(super) async fn execute(args: &RunArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let resolved = project.load(flags(args))?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    let config = &resolved.config;
    let selection = match &args.scenarios {
        Some(text) => Selection::parse(text)
            .map_err(|why| Failure::usage(anyhow!("--scenarios `{text}`: {why}")))?,
        None => Selection::All,
    };
    let plan = plan(&config.scenarios, &selection, defaults(config))
        .map_err(|why| Failure::usage(anyhow!(why)))?;
    if plan.is_empty() {
        eprint("nothing to run: no scenario was selected\n");
        return Ok(Exit::NothingRan);
    }

    let run_id = RunId::fresh(Timestamp::now());
    let (json_folder, markdown_folder) = project.report_folders(&resolved);
    let files = ReportFiles::open(&json_folder, &markdown_folder, &run_id)
        .map_err(|error| Failure::setup(anyhow!("{error}")).hint(Some(error.hint())))?;

    let setup = Setup { project: &project, resolved: &resolved, args };
    let prepared = setup.prepare(&plan).await?;
    let header = Arc::new(setup.header(run_id, &plan, &prepared));

    let style = Style {
        terminal: std::io::stderr().is_terminal() && !project.environment.ci,
        colour: std::io::stderr().is_terminal() && !project.environment.no_color,
    };
    let report = ReportObserver::new(files);
    let document = report.handle();
    let observers: Vec<Box<dyn Observer>> =
        vec![Box::new(ProgressObserver::new(style)), Box::new(report)];
    let (events, carrier) = observe::carry(observers);
    let cancel = cancel_on_interrupt();
    let (cases, summary, outcome) =
        execute_plan(&prepared.runner, Arc::clone(&header), &plan, &events, cancel).await;
    drop(events);
    // The carrier only writes files; nothing else is left to do on this thread.
    let faults = tokio::task::block_in_place(|| carrier.finish());

    match args.format {
        Format::Json => print(&document.json_text().unwrap_or_default())?,
        Format::Human => {
            let style = Style {
                terminal: std::io::stdout().is_terminal(),
                colour: std::io::stdout().is_terminal() && !project.environment.no_color,
            };
            print(&terminal::closing(&header, &cases, &summary, outcome, document.paths(), style))?;
        }
    }
    if !faults.is_empty() {
        return Err(Failure::setup(anyhow!(faults.join("\n"))));
    }
    let exit = Exit::from(outcome);
    let gated = matches!(exit, Exit::Failed | Exit::Inconclusive);
    Ok(if args.exit_zero && gated { Exit::Passed } else { exit })
}

/// The flags that set a key of the configuration, in rising precedence.
pub(super) fn flags(args: &RunArgs) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut set = |pointer: &str, flag: &str, value: Option<Value>| {
        if let Some(value) = value {
            flags.push(Flag { pointer: pointer.to_owned(), flag: flag.to_owned(), value });
        }
    };
    for pointer in ["/generator/model", "/judge/model", "/sut/chat/model"] {
        set(pointer, "--model", args.model.as_ref().map(|model| json!(model)));
    }
    let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
    set("/generator/model", "--generator-model", text(&args.generator_model));
    set("/judge/model", "--judge-model", text(&args.judge_model));
    set("/sut/chat/model", "--sut-model", text(&args.sut_model));
    set("/strictness", "--strictness", args.strictness.map(|value| json!(value)));
    set("/min_score_to_pass", "--min-score", args.min_score.map(|value| json!(value)));
    set("/timeout_seconds", "--timeout", args.timeout.map(|value| json!(value)));
    set("/concurrency", "--concurrency", args.concurrency.map(|value| json!(value)));
    set("/models/concurrency", "--concurrency", args.concurrency.map(|value| json!(value)));
    flags
}

fn defaults(config: &Config) -> Defaults {
    Defaults {
        strictness: config.strictness,
        min_score_to_pass: config.min_score_to_pass,
        safety_floor: config.safety_floor,
        allow_minor_format_deviation: config.allow_minor_format_deviation,
        max_questions_allowed: config.max_questions_allowed,
        timeout: Duration::from_secs_f64(config.timeout_seconds),
    }
}

/// What a run is made of.
pub(super) struct Setup<'a> {
    pub(super) project: &'a Project,
    pub(super) resolved: &'a Resolved,
    pub(super) args: &'a RunArgs,
}

/// A run that can start: models and system under test have been checked.
struct Prepared {
    runner: Arc<Runner>,
    models: RunModels,
    capacity: usize,
}

impl Setup<'_> {
    async fn prepare(&self, plan: &[PlannedCase]) -> Result<Prepared, Failure> {
        let config = &self.resolved.config;
        let project = &self.project.folder;
        let environment = &self.project.environment;
        let redactor = Arc::new(Redactor::new(environment.secret_values.iter().cloned()));
        let protected = self.project.protected(self.resolved);
        let seed = self.args.seed.unwrap_or_else(|| rand::rng().random::<u64>() >> 11);

        let mut library = PromptLibrary::new(project);
        let scenarios: Vec<_> = plan.iter().map(|planned| planned.scenario.clone()).collect();
        load_templates(&mut library, &scenarios)?;
        for name in [JUDGE_TEMPLATE, CHAT_TEMPLATE] {
            library.load(name)?;
        }
        let library = Arc::new(library);

        let record = self.args.record.as_ref().map(|folder| self.project.path(folder));
        // Recordings hold prompts and hints, and must not change what they record.
        let mut hidden = protected.clone();
        hidden.extend(record.clone());
        hidden.extend(self.cassettes());
        let mut locator = Locator::new(
            environment.models.clone(),
            config.models.clone(),
            project,
            record,
            Arc::clone(&redactor),
        );

        // What is found missing without a model call is found first.
        let standing = self.standing_sut(&redactor, &hidden)?;
        if let Some(sut) = &standing {
            sut.check().await?;
        }
        let fetch = FetchBar::new(environment);
        let generator = locator.model(&config.generator.model, &fetch).await?;
        let judge = locator.model(&config.judge.model, &fetch).await?;
        let mut models = vec![Arc::clone(&generator), Arc::clone(&judge)];
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
            generator: generator.id().to_owned(),
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
                Arc::new(ChatSut::new(model, library, settings, context_tokens, seed, files))
            }
            (None, None) => return Err(Failure::usage(anyhow!("`sut` names no adapter"))),
        };
        let (json_folder, markdown_folder) = self.project.report_folders(self.resolved);
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let mut unwatched = vec![absolute(json_folder), absolute(markdown_folder)];
        unwatched.extend(self.args.record.as_ref().map(|folder| self.project.path(folder)));
        let runner = Arc::new(Runner {
            generator: Generator::new(generator, config.generator.clone(), context_tokens, names),
            judge: Judge::new(
                judge,
                config.judge.clone(),
                context_tokens,
                self.resolved.rubric.clone(),
            ),
            sut,
            library,
            redactor,
            seed,
            watch: ProjectWatch::new(project, &unwatched),
        });
        Ok(Prepared { runner, models: run_models, capacity })
    }

    /// The folders of all cassettes that this run replays.
    fn cassettes(&self) -> Vec<PathBuf> {
        let config = &self.resolved.config;
        let chat = config.sut.chat.as_ref().map(|chat| &chat.model);
        let names = [&config.generator.model, &config.judge.model].into_iter().chain(chat);
        names
            .filter_map(|name| match ModelName::parse(name) {
                Ok(ModelName::Cassette(folder)) => Some(self.project.path(&folder)),
                _ => None,
            })
            .collect()
    }

    /// The system under test, unless it is a chat model.
    pub(super) fn standing_sut(
        &self,
        redactor: &Arc<Redactor>,
        protected: &[PathBuf],
    ) -> Result<Option<Arc<dyn SystemUnderTest>>, Failure> {
        let settings = &self.resolved.config.sut;
        let environment = &self.project.environment;
        if let Some(command) = &settings.command {
            let harness = std::env::current_exe()
                .map_err(|error| Failure::setup(anyhow!("cannot find this program: {error}")))?;
            return Ok(Some(Arc::new(CommandSut::new(
                command.clone(),
                self.project.folder.clone(),
                protected.to_vec(),
                std::env::temp_dir(),
                harness,
                environment.variables.clone(),
                Arc::clone(redactor),
            ))));
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

    fn header(&self, run_id: RunId, plan: &[PlannedCase], prepared: &Prepared) -> RunHeader {
        let config = &self.resolved.config;
        let rubric = &self.resolved.rubric;
        let runner = &prepared.runner;
        let now = Timestamp::now();
        let started_at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        RunHeader {
            run_id,
            task_group_id: TaskGroupId::fresh(started_at),
            started_at,
            selftest_version: env!("CARGO_PKG_VERSION").to_owned(),
            strictness: config.strictness,
            min_score_to_pass: config.min_score_to_pass,
            effective_threshold: Threshold::effective(config.min_score_to_pass, config.strictness),
            safety_floor: config.safety_floor,
            allow_minor_format_deviation: config.allow_minor_format_deviation,
            max_questions_allowed: config.max_questions_allowed,
            timeout_seconds: config.timeout_seconds,
            seed: runner.seed,
            concurrency: config.concurrency.map_or(prepared.capacity, |cases| cases as usize),
            models: prepared.models.clone(),
            sut: runner.sut.describe(),
            isolation: runner.sut.isolation(),
            categories: rubric
                .categories()
                .iter()
                .map(|category| (category.id.clone(), category.weight.get()))
                .collect(),
            rubric_digest: rubric.digest(),
            prompt_digests: runner.library.digests().clone(),
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

/// Turns true at the first Ctrl-C or SIGTERM; the second one ends the process at once.
fn cancel_on_interrupt() -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        interrupt().await;
        eprint("\ninterrupted: closing what runs; once more to stop at once\n");
        // Without a receiver the run is over already.
        let _ = sender.send(true);
        interrupt().await;
        #[expect(clippy::exit, reason = "the user asked twice; nothing is left to lose")]
        std::process::exit(Exit::Interrupted as i32);
    });
    receiver
}

#[cfg(unix)]
pub(super) async fn interrupt() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
pub(super) async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
