//! `selftest improve gaps propose`, and the drafts of workers: a model drafts skills for gaps, an
//! experiment tries them, and they are proposed.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::watch;

use crate::cli::{ExperimentArgs, ProposeArgs, StoreArgs};
use crate::command::context::Project;
use crate::command::experiment::Experiment;
use crate::command::failure::Failure;
use crate::command::grade::database;
use crate::command::interruption::interruption;
use crate::command::model::FetchBar;
use crate::command::suite_file::SuiteFile;
use crate::command::{eprint, print};
use crate::exit::Exit;
use selftest_config::ResolvedConfig;
use selftest_grading::improve::draft::{SkillDraft, TEMPLATE};
use selftest_grading::improve::proposal::{SkillProposal, SkillTest};
use selftest_harness::sut::skill::Skill;
use selftest_models::locator::ModelLocator;
use selftest_models::prompts::PromptLibrary;
use selftest_service::grader::proposals::{
    BatchSummary, GenerationError, SkillGenerator, SkillTrial,
};
use selftest_service::jobs::FindGenerator;
use selftest_store::Store;
use selftest_text::one_line;
use selftest_text::redact::Redactor;

/// Drafts and tries skills as the configuration says.
struct Drafter {
    project: Arc<Project>,
    resolved: Arc<ResolvedConfig>,
}

/// A generator for workers, made when a gap asks for it.
pub(in crate::command) fn generator_on_request(
    project: &Arc<Project>,
    resolved: &Arc<ResolvedConfig>,
    store: &Store,
) -> Arc<FindGenerator> {
    let (project, resolved) = (Arc::clone(project), Arc::clone(resolved));
    let store = store.clone();
    Arc::new(move || {
        let drafter = Drafter { project: Arc::clone(&project), resolved: Arc::clone(&resolved) };
        let store = store.clone();
        let found = async move {
            let found = drafter.generator(&store, None).await;
            found.map_err(|failure| failure.render(false).trim_end().to_owned())
        };
        found.boxed()
    })
}

impl Drafter {
    /// A generator by the model of that name, or by that of the configuration.
    async fn generator(
        self,
        store: &Store,
        model: Option<&str>,
    ) -> Result<SkillGenerator, Failure> {
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
        let model = locator.model(name, &FetchBar::new(&project.environment)).await?;
        model.check().await?;
        for line in locator.resolutions() {
            eprint(&format!("model {line}\n"));
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
    async fn tried(&self, suite: PathBuf, draft: &SkillDraft) -> Result<SkillTest, Failure> {
        let repeats = self.resolved.config.gaps.repeats;
        let told = ExperimentArgs::of(draft.name.clone(), suite, repeats);
        let experiment = Experiment {
            project: &self.project,
            resolved: &self.resolved,
            told: &told,
            suite: SuiteFile::for_experiment(&self.project, &told.suite, &[])?,
            skill: Skill { name: draft.name.clone(), text: draft.render() },
            // It lies nowhere yet.
            hidden: Vec::new(),
            shows_progress: false,
            json: false,
            is_draft: true,
        };
        // Whoever is told to end drops all of it.
        let cancel = watch::channel(false).1;
        let Some(conducted) = experiment.conduct(None, cancel).await? else {
            return Ok(SkillTest::NotTested { reason: "the suite has no case".to_owned() });
        };
        for fault in &conducted.faults {
            eprint(&format!("warning: {fault}\n"));
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

pub(super) async fn execute(
    told: &ProposeArgs,
    project: Project,
    mut resolved: ResolvedConfig,
    args: &StoreArgs,
) -> Result<Exit, Failure> {
    let settings = &mut resolved.config.gaps;
    settings.repeats = told.repeats.unwrap_or(settings.repeats);
    settings.suite = told.suite.clone().or(settings.suite.take());
    let interrupted = interruption()?;
    let store = Store::open(&database(&project, &args.database)).await?;
    let drafter = Drafter { project: Arc::new(project), resolved: Arc::new(resolved) };
    let done = tokio::select! {
        done = propose(told, drafter, &store, args.json) => done,
        // What was proposed by then is kept.
        () = interrupted => Ok(Exit::Interrupted),
    };
    store.close().await;
    done
}

async fn propose(
    told: &ProposeArgs,
    drafter: Drafter,
    store: &Store,
    as_json: bool,
) -> Result<Exit, Failure> {
    let ids = &told.gaps;
    for id in ids {
        if store.gap(id).await?.is_none() {
            let fault = GenerationError::Unknown { id: one_line(id, 80) };
            return Err(Failure::usage(anyhow::Error::new(fault))
                .hint(Some("`selftest improve gaps list --all` shows their ids")));
        }
    }
    if ids.is_empty() && store.open_gaps().await?.items.is_empty() {
        eprint("no open gaps; `selftest improve gaps detect` looks for them\n");
        return Ok(Exit::NothingRan);
    }
    let generator = drafter.generator(store, told.model.as_deref()).await?;
    if ids.is_empty() {
        let (summary, generated) = generator.run_skill_generation_batch().await;
        for one in &generated {
            let fault = one.fault.as_deref();
            tell(&one.gap_id, one.proposal.as_ref(), fault.unwrap_or_default(), as_json)?;
        }
        if as_json {
            print(&format!("{:#}\n", json!({ "summary": summary, "gaps": generated })))?;
        }
        return Ok(match summary {
            BatchSummary::Completed { gaps_found, proposals_created, failures, .. } => {
                eprint(&format!(
                    "{gaps_found} open: {proposals_created} proposed, {failures} without a \
                     proposal\n"
                ));
                if proposals_created == 0 { Exit::Inconclusive } else { Exit::Passed }
            }
            BatchSummary::Failed { error, .. } => {
                return Err(Failure::setup(anyhow!("{error}")));
            }
        });
    }
    let mut proposals = Vec::new();
    for id in ids {
        match generator.generate_and_test_skill(id).await {
            Ok(proposal) => {
                tell(id, Some(&proposal), "", as_json)?;
                proposals.push(proposal);
            }
            Err(fault) => tell(id, None, &fault.to_string(), as_json)?,
        }
    }
    if as_json {
        print(&format!("{:#}\n", json!(proposals)))?;
    }
    Ok(if proposals.len() < ids.len() { Exit::Inconclusive } else { Exit::Passed })
}

/// Tells what became of a gap: a proposal on stdout, a fault on stderr.
fn tell(
    gap: &str,
    made: Option<&SkillProposal>,
    fault: &str,
    as_json: bool,
) -> Result<(), Failure> {
    match made {
        Some(_) if as_json => Ok(()),
        Some(one) => {
            let test = one.experiment.as_ref().map(SkillTest::describe).unwrap_or_default();
            let test = one_line(&test, 400);
            print(&format!("{}: {} is proposed for {gap}; {test}\n", one.id, one.skill_name))
        }
        None => {
            eprint(&format!("no proposal for {gap}: {}\n", one_line(fault, 600)));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use selftest_harness::experiment::Conclusion;

    #[test]
    fn conclusions_have_the_words_that_lists_of_proposals_look_for() {
        let all = [Conclusion::Helps, Conclusion::Harms, Conclusion::NotEnoughEvidence];
        assert_eq!(json!(all), json!(["helps", "harms", "not_enough_evidence"]));
    }
}
