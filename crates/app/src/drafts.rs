//! Drafts skills for gaps and tries them in experiments.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use selftest_config::ResolvedConfig;
use selftest_grading::improve::draft::{SkillDraft, TEMPLATE};
use selftest_grading::improve::gap::SkillTest;
use selftest_harness::sut::skill::Skill;
use selftest_models::locator::ModelLocator;
use selftest_models::prompts::PromptLibrary;
use selftest_service::grader::proposals::{SkillGenerator, SkillTrial};
use selftest_service::jobs::{FindGenerator, JobModelError};
use selftest_store::Store;
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use serde_json::json;
use tokio::sync::watch;

use crate::error::AppError;
use crate::experiment::Experiment;
use crate::options::ExperimentSettings;
use crate::project::Project;
use crate::suite_file::SuiteFile;

/// Drafts and tries skills as the configuration says.
pub struct Drafter {
    project: Arc<Project>,
    resolved: Arc<ResolvedConfig>,
}

/// A generator for workers, made when a gap asks for it.
pub fn generator_on_request(
    project: &Arc<Project>,
    resolved: &Arc<ResolvedConfig>,
    store: &Store,
) -> Arc<FindGenerator> {
    let (project, resolved) = (Arc::clone(project), Arc::clone(resolved));
    let store = store.clone();
    Arc::new(move || {
        let drafter = Drafter::new(Arc::clone(&project), Arc::clone(&resolved));
        let store = store.clone();
        let found = async move {
            let found = drafter.generator(&store, None).await;
            found.map_err(|error| JobModelError(error.to_string()))
        };
        found.boxed()
    })
}

impl Drafter {
    /// Creates a drafter for a project and its configuration.
    pub fn new(project: Arc<Project>, resolved: Arc<ResolvedConfig>) -> Self {
        Self { project, resolved }
    }

    /// A generator by the model of that name, or by that of the configuration.
    pub async fn generator(
        self,
        store: &Store,
        model: Option<&str>,
    ) -> Result<SkillGenerator, AppError> {
        let (project, config) = (&self.project, &self.resolved.config);
        let mut library = PromptLibrary::new(&project.folder, selftest_grading::prompts::BUILT_IN);
        library.load(TEMPLATE)?;
        let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
        let mut locator = ModelLocator::new(
            project.environment.models.clone(),
            config.models.clone(),
            &project.folder,
            None,
            Arc::new(redactor.clone()),
        );
        let name = model.unwrap_or(&config.generator.model);
        let model = locator.model(name, &*project.frontend().fetch_observer()).await?;
        model.check().await?;
        for line in locator.resolutions() {
            project.notify(&format!("model {line}\n"));
        }
        let wanted = config.models.context_tokens;
        let context_tokens = model.context_limit().await.map_or(wanted, |limit| limit.min(wanted));
        Ok(SkillGenerator {
            store: store.clone(),
            model,
            temperature: config.generator.temperature,
            context_tokens,
            settings: config.gaps.clone(),
            library: Arc::new(library),
            redactor,
            trial: Arc::new(self),
        })
    }

    /// Runs the cases of that suite without and with the skill.
    async fn tried(&self, suite: PathBuf, draft: &SkillDraft) -> Result<SkillTest, AppError> {
        let settings = ExperimentSettings {
            skill: Some(draft.name.clone()),
            suite,
            repeats: self.resolved.config.gaps.repeats,
            ..ExperimentSettings::default()
        };
        let experiment = Experiment {
            project: &self.project,
            resolved: &self.resolved,
            suite: SuiteFile::for_experiment(&self.project, &settings.suite, &[])?,
            settings: &settings,
            skill: Skill::of_text(draft.name.clone(), draft.render()),
            // A draft is in no file yet.
            hidden: Vec::new(),
            shows_progress: false,
            json: false,
            is_draft: true,
        };
        // Cancelling drops the whole experiment.
        let cancel = watch::channel(false).1;
        let Some(conducted) = experiment.execute(None, cancel).await? else {
            return Ok(SkillTest::NotTested { reason: "the suite has no case".to_owned() });
        };
        for fault in &conducted.faults {
            self.project.notify(&format!("warning: {fault}\n"));
        }
        if conducted.lacks_model {
            let reason = "a model server gave no answer, so that not all trials were run";
            return Ok(SkillTest::NotTested { reason: reason.to_owned() });
        }
        let found = conducted.found;
        let mut details = json!(found);
        if let Some(details) = details.as_object_mut() {
            // They grow with the suite, and stand in the reports of the two runs.
            details.remove("order");
            details.remove("cases");
        }
        Ok(SkillTest::Tested { conclusion: found.sentence, details })
    }
}

impl SkillTrial for Drafter {
    fn test<'a>(&'a self, draft: &'a SkillDraft) -> BoxFuture<'a, SkillTest> {
        let Some(suite) = self.resolved.config.gaps.suite.clone() else {
            let reason =
                "gaps.suite names no suite to try it on; `selftest suite freeze latest` makes one";
            return async { SkillTest::NotTested { reason: reason.to_owned() } }.boxed();
        };
        let tried = async {
            self.tried(suite, draft).await.unwrap_or_else(|failure| SkillTest::NotTested {
                reason: one_line(&failure.render(false), 600),
            })
        };
        tried.boxed()
    }
}
