//! A model that grades sessions, made from the configuration.

use std::sync::Arc;

use super::context::Project;
use super::eprint;
use super::failure::Failure;
use super::model::FetchBar;
use crate::config::Resolved;
use crate::grade::quality::TEMPLATE;
use crate::grader::quality::{QualityGrader, UnfitModel};
use crate::model::locate::Locator;
use crate::model::settings::ModelSettings;
use crate::prompts::PromptLibrary;
use crate::redact::Redactor;
use crate::store::Store;

/// Finds the models of these names and checks that they answer. Without a name, that of the
/// configuration.
pub(super) async fn quality_graders(
    project: &Project,
    resolved: &Resolved,
    store: &Store,
    names: &[String],
    concurrency: u32,
) -> Result<Vec<QualityGrader>, Failure> {
    let settings = &resolved.config.grade.quality;
    let environment = &project.environment;
    let mut library = PromptLibrary::new(&project.folder);
    library.load(TEMPLATE)?;
    let library = Arc::new(library);
    let wanted = QualityGrader::wanted_context(settings, &library)?;
    let models = ModelSettings {
        // A session takes more room than a case of a run.
        context_tokens: resolved.config.models.context_tokens.max(wanted),
        concurrency: resolved.config.models.concurrency.or(Some(concurrency)),
        ..resolved.config.models.clone()
    };
    let redactor = Redactor::new(environment.secret_values.iter().cloned());
    let mut locator = Locator::new(
        environment.models.clone(),
        models,
        &project.folder,
        None,
        Arc::new(redactor.clone()),
    );
    let fetch = FetchBar::new(environment);
    let configured = [settings.model.clone()];
    let mut graders: Vec<QualityGrader> = Vec::new();
    for name in if names.is_empty() { &configured[..] } else { names } {
        let model = locator.model(name, &fetch).await?;
        if graders.iter().any(|grader| grader.model_id() == model.id()) {
            continue;
        }
        model.check().await?;
        let (store, library) = (store.clone(), Arc::clone(&library));
        let grader = QualityGrader::new(store, model, settings.clone(), library, redactor.clone());
        graders.push(grader.await?);
    }
    for line in locator.chosen() {
        eprint(&format!("model {line}\n"));
    }
    Ok(graders)
}

impl From<UnfitModel> for Failure {
    fn from(error: UnfitModel) -> Self {
        match error {
            UnfitModel::Prompt(error) => error.into(),
            error @ UnfitModel::Context { .. } => Self::setup(anyhow::Error::new(error)).hint(
                Some("take a model with a larger context, or lower grade.quality.max_tokens"),
            ),
        }
    }
}
