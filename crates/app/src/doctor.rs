//! `selftest doctor`: checks everything that a run needs, with advice for each fault.

use super::greeting::TrialAnswer;
use super::setup::with_sut;
use crate::error::AppError;
use crate::judges::{FETCH_JUDGE, MeasuredJudge};
use crate::options::RunSettings;
use crate::project::Project;
use crate::setup::{RunSetup, needs_no_generator};
use selftest_checks::scenario::{GeneratedCase, TaskStatus};
use selftest_config::{Config, ResolvedConfig};
use selftest_harness::judge::ask::Judge;
use selftest_harness::judge::fitness::JudgeFitness;
use selftest_harness::judge::prompt::{JudgeEvidence, TEMPLATE as JUDGE_TEMPLATE};
use selftest_harness::judge::{TEMPLATES as JUDGE_TEMPLATES, Verdict};
use selftest_harness::scenario::generate::load_templates;
use selftest_harness::sut::SystemUnderTest;
use selftest_harness::sut::chat::{ChatSut, TEMPLATE as CHAT_TEMPLATE};
use selftest_harness::sut::namespace::RunId;
use selftest_models::locator::{FetchObserver, ModelLocator};
use selftest_models::prompts::PromptLibrary;
use selftest_models::structured::UnscoredReason;
use selftest_models::{ChatModel, ModelError, StructuredMode};
use selftest_reports::ReportFiles;
use selftest_sandbox::{SandboxLevel, SandboxSupport};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name of the finding about the built-in assistant's model.
const SUT_MODEL: &str = "SUT model";

/// Maximum time to wait for the answer to a trial question.
const MAX_ANSWER_TIME: Duration = Duration::from_mins(1);

/// A result of `selftest doctor`.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What was checked.
    pub what: &'static str,
    /// False if a run would fail for it.
    pub ok: bool,
    /// The result.
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Advice on how to fix it. With advice, a finding that is ok is a warning.
    pub advice: Option<String>,
}

/// Results of `selftest doctor`, in the order in which they were checked.
#[derive(Debug, Default)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    /// Returns true if nothing keeps a run from starting.
    pub fn is_healthy(&self) -> bool {
        self.0.iter().all(|finding| finding.ok)
    }

    /// Renders a line for each finding, with its advice below.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.0 {
            let mark = match (finding.ok, &finding.advice) {
                (true, None) => "ok   ",
                (true, Some(_)) => "WARN ",
                (false, _) => "FAIL ",
            };
            text += &format!("{mark}{:<18} {}\n", finding.what, finding.detail);
            if let Some(advice) = &finding.advice {
                text += &format!("     {:<18} hint: {advice}\n", "");
            }
        }
        text
    }

    fn good(&mut self, what: &'static str, detail: impl Into<String>) {
        self.0.push(Finding { what, ok: true, detail: detail.into(), advice: None });
    }

    /// Works, but may not be wanted.
    fn doubtful(&mut self, what: &'static str, detail: String, advice: &str) {
        let advice = Some(advice.to_owned());
        self.0.push(Finding { what, ok: true, detail, advice });
    }

    fn bad(&mut self, what: &'static str, detail: &dyn std::fmt::Display, advice: Option<String>) {
        self.0.push(Finding { what, ok: false, detail: detail.to_string(), advice });
    }
}

/// Checks everything that a run needs. A configuration that cannot be read is the error.
pub async fn check(project: &Project) -> Result<Findings, AppError> {
    let resolved = project.load(Vec::new())?;
    let resolved = with_sut(project, &resolved, false).await;
    let mut findings = Findings::default();
    let scenarios = resolved.config.scenarios.len();
    let path = resolved.path.as_ref().map(|path| path.display().to_string());
    let path = path.unwrap_or_else(|| "no file, defaults".to_owned());
    findings.good("configuration", format!("{path}: {scenarios} scenarios"));
    check_folders(project, &resolved, &mut findings);
    check_prompts(project, &resolved.config, &mut findings);
    let sut = check_sut(project, &resolved, &mut findings).await;
    if let Some(sut) = sut {
        check_answer(&*sut, &resolved.config, &mut findings).await;
    }
    check_models(project, &resolved, &mut findings).await;
    Ok(findings)
}

/// Checks what can be checked without a model; a broken configuration is a finding.
pub async fn check_without_models(project: &Project) -> Findings {
    let mut findings = Findings::default();
    match project.load(Vec::new()) {
        Ok(resolved) => {
            let resolved = with_sut(project, &resolved, false).await;
            findings.good("configuration", "valid");
            check_folders(project, &resolved, &mut findings);
            check_prompts(project, &resolved.config, &mut findings);
            let _ = check_sut(project, &resolved, &mut findings).await;
            // Missing enforcement is listed by the full check and by every report.
            findings.0.retain(|finding| finding.what != "isolation");
        }
        Err(failure) => {
            let words = failure.render(false);
            let first = words.lines().next().unwrap_or_default();
            // The list has one line per finding; the full text names every fault with its place.
            let first = first.strip_prefix("error: ").unwrap_or(first);
            let hint = "`selftest config check` shows every fault".to_owned();
            findings.bad("configuration", &first, Some(hint));
        }
    }
    findings
}

fn check_folders(project: &Project, resolved: &ResolvedConfig, findings: &mut Findings) {
    let (json, markdown) = project.report_folders(resolved);
    // Collected before they are created, from the inside out.
    let absent: Vec<&Path> = [&json, &markdown]
        .into_iter()
        .flat_map(|folder| folder.ancestors())
        .filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .collect();
    match ReportFiles::open(&json, &markdown, &RunId::fresh(selftest_clock::now())) {
        Ok(_) => findings.good("report folders", "writable"),
        Err(error) => findings.bad("report folders", &error, Some(error.hint().to_owned())),
    }
    // A look leaves nothing behind. Deepest first; a folder that is not empty stays.
    for folder in absent {
        let _ = std::fs::remove_dir(folder);
    }
}

fn check_prompts(project: &Project, config: &Config, findings: &mut Findings) {
    let mut library = PromptLibrary::new(&project.folder, selftest_harness::prompts::BUILT_IN);
    let loaded = load_templates(&mut library, &config.scenarios)
        .and_then(|()| library.load(JUDGE_TEMPLATE).map(drop));
    match loaded {
        Ok(()) => findings.good("prompts", format!("{} templates", library.digests().len())),
        Err(error) => findings.bad("prompts", &error, None),
    }
}

/// Checks that the system under test can be started. Returns it unless it is the built-in assistant,
/// whose model is checked later.
async fn check_sut(
    project: &Project,
    resolved: &ResolvedConfig,
    findings: &mut Findings,
) -> Option<Arc<dyn SystemUnderTest>> {
    let redactor = Arc::new(project.redactor(resolved));
    let args = RunSettings::default();
    let setup =
        RunSetup { project, resolved, args: &args, suite: None, hidden: &[], earlier: None };
    let what = "system under test";
    match setup.external_sut(&redactor, &project.protected(resolved)) {
        Ok(None) => findings.good(what, "chat: a model"),
        Ok(Some(sut)) => match sut.check().await {
            Ok(()) => {
                findings.good(what, sut.describe());
                if let Some(Ok(standing)) = setup.standing() {
                    check_sandbox(&standing, findings);
                }
                let isolation = sut.isolation();
                for line in isolation.enforced {
                    findings.good("isolation", format!("enforced: {line}"));
                }
                for line in isolation.not_enforced {
                    findings.good("isolation", format!("not enforced here: {line}"));
                }
                return Some(sut);
            }
            Err(error) => findings.bad(what, &error, error.hint().map(str::to_owned)),
        },
        Err(failure) => findings.bad(what, &failure.render(false).trim(), None),
    }
    None
}

/// Asks the system under test once, and reports what was seen.
async fn check_answer(sut: &dyn SystemUnderTest, config: &Config, findings: &mut Findings) {
    let what = "answer";
    // A case may take longer; here only the way to an answer is looked at.
    let limit = Duration::from_secs_f64(config.timeout_seconds).min(MAX_ANSWER_TIME);
    match TrialAnswer::ask(sut, limit).await {
        TrialAnswer::Answered(words) => findings.good(what, words),
        TrialAnswer::Empty => findings.doubtful(
            what,
            "answered with nothing".to_owned(),
            "an empty answer passes only a check that asks for one, such as `equals: \"\"`",
        ),
        TrialAnswer::Missing { why, hint } => findings.bad(what, &why, hint),
    }
}

/// Checks the sandbox of programs under test.
fn check_sandbox(standing: &SandboxSupport, findings: &mut Findings) {
    let what = "isolation";
    let landlock = match standing.landlock_abi {
        0 => "no Landlock".to_owned(),
        version => format!("Landlock {version}"),
    };
    let filter =
        if standing.filters_calls { "filter of system calls" } else { "no filter of calls" };
    match standing.level {
        SandboxLevel::Full => findings.good(
            what,
            format!("enforced: namespaces, a file system of its own, {landlock}, {filter}"),
        ),
        SandboxLevel::Inner => {
            let why = standing.missing_namespaces.as_deref().unwrap_or("this system has none");
            findings.doubtful(
                what,
                format!("best effort: {landlock}, {filter}; no namespaces: {why}"),
                "with sut.sandbox at enforce nothing runs here",
            );
        }
        SandboxLevel::Off => findings.doubtful(
            what,
            "UNSANDBOXED: the program may do whatever its user may do".to_owned(),
            "remove sut.sandbox from the configuration",
        ),
    }
}

async fn check_models(project: &Project, resolved: &ResolvedConfig, findings: &mut Findings) {
    let config = &resolved.config;
    let environment = &project.environment;
    let redactor = Arc::new(project.redactor(resolved));
    let mut locator = ModelLocator::new(
        environment.models.clone(),
        config.models.clone(),
        &project.folder,
        None,
        redactor,
    );
    let fetch = project.frontend().fetch_observer();
    let chat = config.sut.assistant();
    let chat = chat.as_ref().map(|chat| (SUT_MODEL, &chat.model));
    let generator = ("generator model", &config.generator.model);
    let roles = (!needs_no_generator(config)).then_some(generator).into_iter().chain(chat);
    for (what, name) in roles {
        match ready(&mut locator, name, &*fetch).await {
            Ok(model) => {
                findings.good(what, model.id());
                if what == SUT_MODEL {
                    check_assistant(project, config, model, findings).await;
                }
            }
            Err(error) => findings.bad(what, &error, error.hint()),
        }
    }
    // A panel has several, each of which must be ready.
    for name in config.judge.models() {
        match ready(&mut locator, name, &*fetch).await {
            Ok(model) => {
                findings.good("judge model", model.id());
                check_context(&*model, config, findings).await;
                probe(project, resolved, model, findings).await;
            }
            Err(error) => findings.bad("judge model", &error, error.hint()),
        }
    }
    for line in locator.resolutions() {
        findings.good("chosen", line.clone());
    }
}

/// Asks the built-in assistant once, without project files.
async fn check_assistant(
    project: &Project,
    config: &Config,
    model: Arc<dyn ChatModel>,
    findings: &mut Findings,
) {
    let mut library = PromptLibrary::new(&project.folder, selftest_harness::prompts::BUILT_IN);
    let Some(settings) = config.sut.chat.clone() else { return };
    if let Err(error) = library.load(CHAT_TEMPLATE) {
        return findings.bad("answer", &error, None);
    }
    let context = config.models.context_tokens;
    let sut = ChatSut::new(model, Arc::new(library), settings, context, Vec::new());
    check_answer(&sut, config, findings).await;
}

async fn ready(
    locator: &mut ModelLocator,
    name: &str,
    fetch: &dyn FetchObserver,
) -> Result<Arc<dyn ChatModel>, ModelError> {
    let model = locator.model(name, fetch).await?;
    model.check().await?;
    Ok(model)
}

async fn check_context(model: &dyn ChatModel, config: &Config, findings: &mut Findings) {
    let judge = &config.judge;
    // Thinking comes on top of the tokens of the reply.
    let thinking = if judge.think == Some(true) { judge.think_tokens } else { 0 };
    let answer = judge.max_tokens.saturating_add(thinking);
    let needed = judge.max_prompt_tokens.saturating_add(answer);
    let window = config.models.context_tokens;
    let what = "context";
    match model.context_limit().await {
        Some(limit) if limit < needed => findings.bad(
            what,
            &format!("{} takes {limit} tokens, the judge may need {needed}", model.id()),
            Some(format!(
                "lower judge.max_prompt_tokens to {}, or choose another judge",
                limit.saturating_sub(answer)
            )),
        ),
        _ if window < needed => findings.bad(
            what,
            &format!("models.context_tokens is {window}, the judge may need {needed}"),
            Some(format!("raise models.context_tokens to {needed}")),
        ),
        Some(limit) => findings.good(what, format!("{needed} of {limit} tokens may be needed")),
        None => findings.good(what, format!("{needed} tokens may be needed; the limit is unknown")),
    }
}

/// Reports how well the judge separates good answers from bad ones: as measured, else by a quick
/// check.
async fn judgement_of(
    project: &Project,
    resolved: &ResolvedConfig,
    library: &PromptLibrary,
    model: &dyn ChatModel,
    judge: &Judge,
    findings: &mut Findings,
) {
    let what = "judgement";
    let method = judge.method(library).await;
    let identity = MeasuredJudge::of(model, method, library, &resolved.rubric).await;
    match identity.fitness(&project.environment.models, &resolved.config) {
        Some(JudgeFitness { unfit: Some(why), .. }) => findings.doubtful(
            what,
            format!("{why}: what only a judge can decide stays unscored"),
            FETCH_JUDGE,
        ),
        Some(known) => findings.good(what, known.summary()),
        None => findings.good(
            what,
            "not measured; its first run measures it, or `selftest judge bench`".to_owned(),
        ),
    }
}

/// One real judgement: shows that the judge's replies are verdicts.
async fn probe(
    project: &Project,
    resolved: &ResolvedConfig,
    model: Arc<dyn ChatModel>,
    findings: &mut Findings,
) {
    let what = "structured output";
    let mut library = PromptLibrary::new(&project.folder, selftest_harness::prompts::BUILT_IN);
    // The prompts have a finding of their own.
    if JUDGE_TEMPLATES.iter().any(|name| library.load(name).is_err()) {
        return;
    }
    let config = &resolved.config;
    let judge = Judge::new(
        Arc::clone(&model),
        config.judge.for_measurement(),
        config.models.context_tokens,
        resolved.rubric.clone(),
    );
    // A question beyond doubt, so that only the form of the verdict can fail.
    let evidence = JudgeEvidence {
        case: GeneratedCase {
            prompt: "Name the capital of France in one word.".to_owned(),
            hints: "The answer is Paris, in one word.".to_owned(),
            ..GeneratedCase::default()
        },
        conversation: Vec::new(),
        reply: None,
        output: "Paris".to_owned(),
        tool_calls: Vec::new(),
        files: Vec::new(),
        scores_expectations: false,
        expected_status: TaskStatus::Complete,
        actual_status: TaskStatus::Complete,
        question_count: 0,
        max_questions_allowed: config.max_questions_allowed,
        allow_minor_format_deviation: config.allow_minor_format_deviation,
    };
    judgement_of(project, resolved, &library, &*model, &judge, findings).await;
    let started = Instant::now();
    let judgement = judge.judge(&library, &evidence, u64::from).await;
    let seconds = started.elapsed().as_secs_f64();
    let calls = judgement.calls.len();
    let held = judgement.calls.last().and_then(|call| call.structured).map(|mode| match mode {
        StructuredMode::Schema => "held by the schema",
        StructuredMode::JsonObject => "held to JSON, the server refuses a schema",
        StructuredMode::Prompt => "held by the prompt alone, the server refuses a schema",
    });
    match judgement.verdict {
        Verdict::Scored(card) => findings.good(
            what,
            format!(
                "a valid verdict in {seconds:.1} s and {calls} call(s), {}; overall {}",
                if card.questions.is_empty() {
                    held.unwrap_or_default()
                } else {
                    "read from the probabilities of yes and no"
                },
                card.overall
            ),
        ),
        // A valid reply all the same: what is looked at here is its form.
        Verdict::Unscored { reason: UnscoredReason::CantTell, .. } => findings.good(
            what,
            format!(
                "a valid verdict in {seconds:.1} s and {calls} call(s), {}; the judge could not \
                 tell whether Paris is the capital of France",
                held.unwrap_or_default()
            ),
        ),
        Verdict::Unscored { reason, detail, .. } => findings.bad(
            what,
            &format!("no verdict: {}: {detail}", reason.describe()),
            Some("choose a judge that follows a schema, such as ollama/qwen2.5:7b".to_owned()),
        ),
    }
}
