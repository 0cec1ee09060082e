//! The embedded engine: llama.cpp in this process, on the CPU, with decoding constrained by the
//! JSON Schema of the reply.
//!
//! One thread owns a model and its context and handles one call at a time. This module does not
//! download weights.

#[cfg(feature = "embedded")]
mod conversation;
#[cfg(feature = "embedded")]
mod engine;
#[cfg(feature = "embedded")]
mod llama;
#[cfg(feature = "embedded")]
mod sampler;
#[cfg(feature = "embedded")]
mod worker;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::model_files::{self, CatalogueEntry, LocatedWeights, WeightsOrigin};
use crate::model_settings::ModelSettings;
use crate::name::{ModelContext, ProviderEntry, ProviderModel};
use crate::{ChatModel, ChatReply, ChatRequest, ModelError};

/// The entry in the table of providers.
pub(crate) const PROVIDER: ProviderEntry = ProviderEntry {
    example: "smollm2-135m",
    ..ProviderEntry::new(|context| Box::pin(build(context)))
};

/// Finds or downloads the weights.
async fn build(context: ModelContext<'_>) -> Result<ProviderModel, ModelError> {
    let ModelContext { name, environment, settings, fetch, .. } = context;
    let (id, cache) = (context.full_name.to_string(), &environment.cache_folder);
    // Checked before anything is downloaded for a missing engine.
    if !cfg!(feature = "embedded") {
        let model = EmbeddedModel::new(id.clone(), PathBuf::new(), cache, settings);
        model.check().await?;
    }
    if let LocatedWeights::NotFetched(entry) = model_files::locate(name, environment)?
        && !environment.offline
        && entry.is_fetched_on_use()
    {
        fetch.announce(&entry.announcement());
    }
    let progress = |progress| fetch.progress(progress);
    let file = model_files::locate_or_fetch(name, environment, &progress).await?;
    let endpoint = format!("embedded:{}", file.display());
    let is_other = match CatalogueEntry::find(name) {
        Some(entry) => entry.verify(&file, cache).await? == WeightsOrigin::Custom,
        // A file given by its path has no published digest.
        None => false,
    };
    // A user's own file must not appear in reports under the published name.
    let id = if is_other { endpoint.clone() } else { id };
    Ok(ProviderModel::new(EmbeddedModel::new(id, file, cache, settings), endpoint))
}

/// A GGUF file that runs in this process.
///
/// The file is loaded by the first [`ChatModel::check`] or [`ChatModel::chat`] and stays loaded
/// until the value is dropped. Concurrent calls are queued.
pub struct EmbeddedModel {
    id: String,
    file: PathBuf,
    /// Folder that caches the file's digest.
    #[cfg(feature = "embedded")]
    cache_folder: PathBuf,
    #[cfg(feature = "embedded")]
    worker: worker::EngineWorker,
}

impl EmbeddedModel {
    /// Creates a model for this file with the full name `id`. Performs no I/O.
    ///
    /// The setting `context_tokens` bounds prompt and reply together, as does the model's training
    /// context. `total_seconds` limits each call from the time it leaves the queue. The file's
    /// digest and the states of judge rubrics are cached in `cache_folder`.
    pub fn new(
        id: String,
        file: PathBuf,
        cache_folder: &Path,
        settings: &ModelSettings,
    ) -> Arc<Self> {
        #[cfg(not(feature = "embedded"))]
        let _ = (settings, cache_folder);
        Arc::new(Self {
            id,
            #[cfg(feature = "embedded")]
            cache_folder: cache_folder.to_owned(),
            #[cfg(feature = "embedded")]
            worker: worker::EngineWorker::new(file.clone(), cache_folder.to_owned(), settings),
            file,
        })
    }

    /// Returns the GGUF file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

#[cfg(feature = "embedded")]
impl ChatModel for EmbeddedModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(self.worker.chat(request.clone()))
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { self.worker.load().await.map(drop) })
    }

    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        Box::pin(async { self.worker.load().await.ok() })
    }

    fn supports_logprobs(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { true })
    }

    fn supports_scoring(&self) -> bool {
        true
    }

    fn fingerprint(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            crate::model_files::cached_sha256(&self.file, &self.cache_folder).await.ok()
        })
    }
}

#[cfg(not(feature = "embedded"))]
impl ChatModel for EmbeddedModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn chat<'a>(
        &'a self,
        _request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async { Err(absent()) })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { Err(absent()) })
    }
}

#[cfg(not(feature = "embedded"))]
fn absent() -> ModelError {
    ModelError::Engine {
        what: "this build has no embedded engine".to_owned(),
        hint: Some("build with default features, or name an ollama/ or openai/ model".to_owned()),
    }
}

#[cfg(all(test, not(feature = "embedded")))]
mod absent_tests {
    use super::*;

    #[tokio::test]
    async fn a_build_without_the_engine_says_so() {
        let settings = ModelSettings::default();
        let model =
            EmbeddedModel::new("embedded/x".to_owned(), "x.gguf".into(), Path::new("."), &settings);
        let error = model.check().await.unwrap_err();
        assert_eq!(error.to_string(), "this build has no embedded engine");
        assert!(error.hint().unwrap().contains("default features"));
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
