//! What a run tests if no system under test is named: the built-in assistant where a capable model is
//! at hand, else the example agent, which needs none.

use std::borrow::Cow;
use std::sync::Arc;

use crate::project::Project;
use selftest_config::ResolvedConfig;
use selftest_harness::sut::sut_settings::{ChatSettings, ExampleSettings};
use selftest_models::cassette::{CassetteManifest, CassettePlace};
use selftest_models::locator::ModelLocator;
use selftest_models::name::ModelName;

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
