//! Models that grade sessions and reflections, made from the configuration.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use tokio::sync::Mutex;

use crate::error::AppError;
use crate::project::Project;
use selftest_config::ResolvedConfig;
use selftest_grading::grade::quality::{FIRST_OWN_VERSION, TEMPLATE, rubric_name, rubric_version};
use selftest_grading::grade::reflection::{ReflectionRules, SchemaFileError};
use selftest_grading::grade::{GradeRecord, QualityGrade};
use selftest_grading::improve::skill::SkillSettings;
use selftest_models::locator::ModelLocator;
use selftest_models::model_files::CatalogueEntry;
use selftest_models::model_settings::ModelSettings;
use selftest_models::name::ModelName;
use selftest_models::ollama::{self, OllamaServer};
use selftest_models::prompts::PromptLibrary;
use selftest_service::grader::quality::{QualityError, QualityGrader};
use selftest_service::grader::reflection::ReflectionGrader;
use selftest_service::grader::skills::SkillTracker;
use selftest_service::jobs::{FindGrader, JobModelError};
use selftest_store::{Store, StoreError};
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Returns the rubric version that models of this project grade by. A prompt that cannot be read is
/// reported when a model grades; until then the built-in version counts.
pub fn rubric_in_use(project: &Project) -> u32 {
    let mut library = PromptLibrary::new(&project.folder, selftest_grading::prompts::BUILT_IN);
    // Grading reports this error.
    let _ = library.load(TEMPLATE);
    rubric_version(&library)
}

/// Finds the models of these names and checks that they answer; they take at most `concurrency`
/// calls at once. Without a name, that of the configuration.
pub async fn quality_graders(
    project: &Project,
    resolved: &ResolvedConfig,
    store: &Store,
    names: &[String],
    concurrency: u32,
) -> Result<Vec<QualityGrader>, AppError> {
    let settings = &resolved.config.grade.quality;
    let environment = &project.environment;
    let mut library = PromptLibrary::new(&project.folder, selftest_grading::prompts::BUILT_IN);
    library.load(TEMPLATE)?;
    let version = rubric_version(&library);
    if version >= FIRST_OWN_VERSION {
        let name = rubric_name(version);
        project.notify(&format!(
            "prompts/{TEMPLATE} is {name}: its grades are kept apart from others\n"
        ));
    }
    let library = Arc::new(library);
    let wanted = QualityGrader::required_context(settings, &library)?;
    let models = ModelSettings {
        // A session takes more room than a case of a run.
        context_tokens: resolved.config.models.context_tokens.max(wanted),
        // `None` is less than any number, so that `min` alone would take it for the smaller limit.
        concurrency: resolved
            .config
            .models
            .concurrency
            .or(Some(concurrency))
            .min(Some(concurrency)),
        ..resolved.config.models.clone()
    };
    let redactor = Redactor::new(environment.secret_values.iter().cloned());
    let mut locator = ModelLocator::new(
        environment.models.clone(),
        models,
        &project.folder,
        None,
        Arc::new(redactor.clone()),
    );
    let fetch = project.frontend().fetch_observer();
    let configured = [settings.model.clone()];
    let mut graders: Vec<QualityGrader> = Vec::new();
    for name in if names.is_empty() { &configured[..] } else { names } {
        let model = locator.model(name, &*fetch).await?;
        // Two names may stand for one model, such as `auto` and its own.
        if graders.iter().any(|grader| grader.model_id() == model.id()) {
            continue;
        }
        model.check().await?;
        let (store, library) = (store.clone(), Arc::clone(&library));
        let grader = QualityGrader::new(store, model, settings.clone(), library, redactor.clone());
        graders.push(grader.await?);
    }
    for line in locator.resolutions() {
        project.notify(&format!("model {line}\n"));
    }
    Ok(graders)
}

/// A session is not graded at the request of an agent. Messages are for the agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentGradingError {
    /// The model costs money or sends the session elsewhere, which only people may decide.
    #[error(
        "an agent may choose a local model, `ollama/…` or an embedded one of the catalogue, \
         `embedded/smollm2-135m`, or the configured {configured}: set grade.quality.model for \
         another"
    )]
    ModelNotAllowed {
        /// Name of the configured model.
        configured: String,
    },
    /// The session has no grade by rules.
    #[error("no grade by rules of this session: `selftest grade latest` makes one")]
    NotGraded,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] AppError),
    /// The model gave no grade.
    #[error(transparent)]
    Quality(#[from] QualityError),
}

/// Finds models on the first request and keeps them, so that a server starts before any model.
pub struct GradersOnRequest {
    project: Arc<Project>,
    resolved: Arc<ResolvedConfig>,
    store: Store,
    /// Model for requests that name none; the configured one if absent.
    default: Option<String>,
    found: Mutex<HashMap<Option<String>, QualityGrader>>,
}

impl GradersOnRequest {
    /// Creates a source of graders; `default` is the model for requests that name none.
    pub fn new(
        project: Arc<Project>,
        resolved: Arc<ResolvedConfig>,
        store: Store,
        default: Option<String>,
    ) -> Self {
        Self { project, resolved, store, default, found: Mutex::default() }
    }

    /// Returns the grader of a model.
    pub async fn grader(&self, model: Option<String>) -> Result<QualityGrader, AppError> {
        let name = model.or_else(|| self.default.clone());
        // Held while the model is found, so that two first requests do not load it twice.
        let mut found = self.found.lock().await;
        if let Some(grader) = found.get(&name) {
            return Ok(grader.clone());
        }
        let concurrency = self.resolved.config.grade.quality.concurrency;
        let names: Vec<String> = name.iter().cloned().collect();
        let graders =
            quality_graders(&self.project, &self.resolved, &self.store, &names, concurrency)
                .await?;
        // One name is one model.
        let grader = graders.into_iter().next();
        let grader = grader.ok_or_else(|| AppError::setup(anyhow!("no model is configured")))?;
        found.insert(name, grader.clone());
        Ok(grader)
    }
}

impl GradersOnRequest {
    /// Returns true if an agent may choose this model: the configured one, or a local one. Others cost
    /// money or send sessions elsewhere, which only people may decide.
    async fn may_be_named(&self, name: &str) -> bool {
        if name == self.resolved.config.grade.quality.model {
            return true;
        }
        if !names_local_model(name) {
            return false;
        }
        let Ok(ModelName::Ollama(tag)) = ModelName::parse(name) else { return true };
        // A copy of a cloud model can have any name: the server knows.
        let base = ollama::base_address(&self.project.environment.models);
        let models = match OllamaServer::new(&base, &self.resolved.config.models) {
            Ok(server) => server.models().await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        OllamaServer::find_tag(&models, &tag).is_none_or(|tag| !tag.is_cloud())
    }
}

/// Returns the graders as workers request them.
pub fn grader_finder(graders: GradersOnRequest) -> Arc<FindGrader> {
    let graders = Arc::new(graders);
    Arc::new(move |model| {
        let graders = Arc::clone(&graders);
        Box::pin(async move {
            graders.grader(model).await.map_err(|error| JobModelError(error.to_string()))
        })
    })
}

impl GradersOnRequest {
    /// Grades one session at the request of an agent, which may choose a local model only.
    pub async fn grade_session(
        &self,
        session_id: &str,
        model: Option<String>,
    ) -> Result<QualityGrade, AgentGradingError> {
        if let Some(name) = &model
            && !self.may_be_named(name).await
        {
            let configured = self.resolved.config.grade.quality.model.clone();
            return Err(AgentGradingError::ModelNotAllowed { configured });
        }
        let found = self.store.grade(session_id).await?.ok_or(AgentGradingError::NotGraded)?;
        let grader = self.grader(model).await?;
        Ok(grader.grade(&found.session_id, &found.session_file).await?)
    }
}

/// Whether that is the name of a local model. No path: it would tell which files there are, and
/// load any of them.
fn names_local_model(name: &str) -> bool {
    match ModelName::parse(name) {
        Ok(ModelName::Ollama(name)) => !ollama::is_cloud(&name),
        Ok(ModelName::Embedded(name)) => CatalogueEntry::find(&name).is_some(),
        _ => false,
    }
}

/// Returns the grade of the session whose id starts with these letters.
pub async fn find_grade(store: &Store, session: &str) -> Result<GradeRecord, AppError> {
    if let Some(grade) = store.grade(session).await? {
        return Ok(grade);
    }
    let shown = one_line(session, 80);
    let mut found = store.find_grades(session).await?.items;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(AppError::usage(anyhow!("no grade of a session whose id starts with {shown:?}"))
            .hint(Some("`selftest grade latest` grades sessions; its table shows their ids"))),
        count => Err(AppError::usage(anyhow!("{count} session ids start with {shown:?}"))
            .hint(Some("write more of the id"))),
    }
}

/// Opens the records of skills, with the settings of the configuration.
pub fn skill_tracker(project: &Project, settings: &SkillSettings, store: &Store) -> SkillTracker {
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    SkillTracker::new(store.clone(), settings.clone(), redactor)
}

/// Maximum size of a schema file, in bytes.
const MAX_SCHEMA_BYTES: u64 = 1024 * 1024;

/// Opens a grader of reflections by the criteria of the configuration, with the schemas that it names.
pub fn reflection_grader(
    project: &Project,
    resolved: &ResolvedConfig,
    store: Store,
) -> Result<ReflectionGrader, AppError> {
    let settings = resolved.config.grade.reflection.clone();
    let read = |path: &Path| {
        let text = selftest_text::file::read_bounded_text(&project.path(path), MAX_SCHEMA_BYTES)
            .map_err(|source| SchemaFileError::Unreadable { file: path.to_owned(), source })?;
        serde_json::from_str(&text)
            .map_err(|source| SchemaFileError::NotJson { file: path.to_owned(), source })
    };
    let rules = ReflectionRules::new(&settings, read).map_err(|faults| {
        let words: Vec<String> = faults.iter().map(ToString::to_string).collect();
        AppError::usage(anyhow!(words.join("; ")))
    })?;
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    Ok(ReflectionGrader::new(store, settings, rules, redactor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_models_are_told_by_their_names() {
        for name in ["ollama/qwen2.5:7b", "embedded/smollm2-135m"] {
            assert!(names_local_model(name), "{name}");
        }
        for name in [
            "openai/gpt-4o",
            "ollama/gpt-oss:20b-cloud",
            "gpt-4o-mini",
            "qwen2.5:7b",
            "cassette/x",
            "auto",
            "",
            "embedded:/etc/shadow",
            "embedded/../../etc/shadow",
            "embedded//etc/shadow",
            "embedded:model.gguf",
        ] {
            assert!(!names_local_model(name), "{name}");
        }
    }
}
