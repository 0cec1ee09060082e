//! Creates models from names: resolves `auto` and bare names, shares engines, and wraps providers
//! with retries, limits and recording.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::cassette::{RecordingCounter, RecordingModel};
use super::guarded::{
    BreakerLimits, CircuitBreaker, EndpointGate, GuardedModel, Outages, RedactionCache,
};
use super::journaled::{CallLog, JournaledModel};
use super::model_settings::{ModelEnvironment, ModelSettings};
use super::name::{ModelContext, ModelName, ProviderModel};
use super::ollama::{self, OllamaServer};
use super::server_address::ServerAddress;
use super::{ChatModel, ModelError, model_files, openai};
use selftest_text::redact::Redactor;

/// Minimum size of a chat model that can be expected to answer questions about a project, in bytes:
/// about a billion parameters of four bits. Smaller ones answer one question in three sensibly.
const CAPABLE_BYTES: u64 = 700_000_000;
/// Time limit for `auto` to detect an Ollama server.
const PROBE: Duration = Duration::from_secs(2);

/// Receives download progress of weights.
pub trait FetchObserver: Send + Sync {
    /// Called once with a line that states what is downloaded, its size and its licence.
    fn announce(&self, line: &str);
    /// Called a few times a second with the progress.
    fn progress(&self, progress: model_files::TransferProgress);
}

/// Finds models by name and caches them, so that roles with the same name share one.
pub struct ModelLocator {
    environment: ModelEnvironment,
    settings: ModelSettings,
    /// Base folder of relative paths.
    folder: PathBuf,
    record: Option<PathBuf>,
    redactor: Arc<Redactor>,
    numbering: RecordingCounter,
    /// Log of finished calls; `None` if calls are not stored.
    call_log: Option<Arc<CallLog>>,
    models: HashMap<ModelName, Arc<dyn ChatModel>>,
    /// By endpoint.
    gates: HashMap<String, Arc<EndpointGate>>,
    outages: Arc<Outages>,
    /// By full model name.
    concurrency: HashMap<String, usize>,
    resolutions: Vec<String>,
    /// Judging quality by full model name, used by `auto`.
    ranks: HashMap<String, f64>,
}

impl ModelLocator {
    /// Creates a locator. `folder` is the base of relative paths, and `record` is the cassette to
    /// record to. The redactor contains the keys of all providers.
    pub fn new(
        environment: ModelEnvironment,
        settings: ModelSettings,
        folder: &Path,
        record: Option<PathBuf>,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self {
            environment,
            settings,
            folder: folder.to_owned(),
            record,
            redactor,
            numbering: RecordingCounter::default(),
            call_log: None,
            models: HashMap::new(),
            gates: HashMap::new(),
            outages: Arc::default(),
            concurrency: HashMap::new(),
            resolutions: Vec::new(),
            ranks: HashMap::new(),
        }
    }

    /// Makes `auto` choose the model with the highest rank. Ranks are by full name.
    #[must_use]
    pub fn with_ranks(self, ranks: HashMap<String, f64>) -> Self {
        Self { ranks, ..self }
    }

    /// Stores calls in this log, and answers calls from it.
    #[must_use]
    pub fn with_call_log(self, log: Arc<CallLog>) -> Self {
        Self {
            // What the journal answers is not recorded again; numbers continue after it.
            numbering: RecordingCounter::starting_at(log.answer_counts(None)),
            call_log: Some(log),
            ..self
        }
    }

    /// Returns how ambiguous names were resolved, one line each.
    pub fn resolutions(&self) -> &[String] {
        &self.resolutions
    }

    /// Returns the servers that were given up.
    pub fn outages(&self) -> Arc<Outages> {
        Arc::clone(&self.outages)
    }

    /// Returns the highest concurrency of the models in use; at least 1.
    pub fn max_concurrency(&self) -> usize {
        self.concurrency.values().copied().max().unwrap_or(1)
    }

    /// Returns the concurrency of this model; at least 1.
    pub fn concurrency_of(&self, model: &dyn ChatModel) -> usize {
        self.concurrency.get(model.id()).copied().unwrap_or(1)
    }

    /// Returns the model with this name. Missing weights are downloaded unless offline.
    pub async fn model(
        &mut self,
        name: &str,
        fetch: &dyn FetchObserver,
    ) -> Result<Arc<dyn ChatModel>, ModelError> {
        let written = ModelName::parse(name)?;
        if let Some(model) = self.models.get(&written) {
            return Ok(Arc::clone(model));
        }
        let (resolved, why) = self.resolve(&written).await?;
        if let Some(why) = why {
            self.resolutions.push(format!("{written}: {resolved} ({why})"));
        }
        let model = if let Some(model) = self.models.get(&resolved) {
            Arc::clone(model)
        } else {
            let model = self.build_model(&resolved, fetch).await?;
            match &self.call_log {
                // The outermost layer, so that a replayed call neither waits nor is recorded.
                Some(log) => Arc::new(JournaledModel::new(model, Arc::clone(log))),
                None => model,
            }
        };
        // Stored under both names, so that an alias does not load the model twice.
        self.models.insert(resolved, Arc::clone(&model));
        self.models.insert(written, Arc::clone(&model));
        Ok(model)
    }

    /// Returns the names of all models that can be used immediately: downloaded weights, and chat
    /// models that the Ollama server runs itself.
    pub async fn installed(&self) -> Vec<String> {
        let here =
            model_files::list(&self.environment).into_iter().filter(|listed| listed.is_present);
        let mut names: Vec<String> =
            here.map(|listed| format!("embedded/{}", listed.name)).collect();
        let served = self.ollama_models().await.unwrap_or_default();
        let own = served.iter().filter(|tag| tag.can_chat() && !tag.is_cloud());
        names.extend(own.map(|tag| format!("ollama/{}", tag.name)));
        names
    }

    /// Returns true if `auto` finds a model that can be expected to answer questions: a chat model of
    /// the Ollama server that is not tiny. A server that does not tell sizes is trusted.
    pub async fn has_capable_model(&self) -> bool {
        let served = self.ollama_models().await.unwrap_or_default();
        self.best_model(&served).is_some_and(|(tag, _)| tag.size == 0 || tag.size >= CAPABLE_BYTES)
    }

    /// Resolves a name, with the reason if there was a choice.
    async fn resolve(&self, name: &ModelName) -> Result<(ModelName, Option<String>), ModelError> {
        match name {
            ModelName::Auto => Ok(self.resolve_auto().await),
            ModelName::Bare(bare) => self.resolve_bare(bare).await,
            name => Ok((name.clone(), None)),
        }
    }

    async fn resolve_auto(&self) -> (ModelName, Option<String>) {
        let base = ollama::shown_address(&self.ollama_base());
        let why = match self.ollama_models().await {
            Ok(models) => {
                if let Some((tag, why)) = self.best_model(&models) {
                    let why = format!("{why} of the Ollama server at {base}");
                    return (ModelName::Ollama(tag.name.clone()), Some(why));
                }
                format!("the Ollama server at {base} has no chat model of its own")
            }
            Err(_) => format!("no Ollama server at {base}; a tiny model that needs no server"),
        };
        (ModelName::Embedded(model_files::DEFAULT_MODEL.to_owned()), Some(why))
    }

    /// Returns the best measured judge of a server, or the largest model if none was measured. Ties
    /// are broken by name, so that the result never depends on which model was downloaded last.
    fn best_model<'a>(
        &self,
        models: &'a [ollama::OllamaTag],
    ) -> Option<(&'a ollama::OllamaTag, &'static str)> {
        // Cloud models are only used by name.
        let own = || models.iter().filter(|tag| tag.can_chat() && !tag.is_cloud());
        let rank =
            |tag: &&ollama::OllamaTag| self.ranks.get(&format!("ollama/{}", tag.name)).copied();
        let measured = own().filter_map(|tag| Some((rank(&tag)?, tag)));
        // Of equals the first by name, so that each start chooses the same one.
        let best = measured.max_by(|(a, x), (b, y)| a.total_cmp(b).then(y.name.cmp(&x.name)));
        if let Some((_, tag)) = best {
            return Some((tag, "the best measured judge"));
        }
        let largest = own().max_by(|a, b| a.size.cmp(&b.size).then(b.name.cmp(&a.name)));
        largest.map(|tag| (tag, "the largest chat model"))
    }

    async fn resolve_bare(&self, name: &str) -> Result<(ModelName, Option<String>), ModelError> {
        let base = ollama::shown_address(&self.ollama_base());
        let models = self.ollama_models().await;
        if let Ok(models) = &models
            && let Some(tag) = OllamaServer::find_tag(models, name)
        {
            let why = format!("the Ollama server at {base} has it");
            return Ok((ModelName::Ollama(tag.name.clone()), Some(why)));
        }
        // The local server comes first: a name such as `gpt-oss:20b` is also a model of Ollama.
        let is_openai = ModelName::is_openai_family(name);
        let environment = &self.environment;
        let base_url = environment.text(openai::BASE_URL);
        if is_openai && (environment.secret(openai::API_KEY).is_some() || base_url.is_some()) {
            let base = base_url.unwrap_or(openai::DEFAULT_BASE);
            let shown = ServerAddress::parse_api(base);
            let shown = shown.map_or_else(|error| error.to_string(), |it| it.base().to_owned());
            let why = format!("an OpenAI name, at {shown}");
            return Ok((ModelName::OpenAi(name.to_owned()), Some(why)));
        }
        // An unreachable server has none to offer.
        let available: Vec<String> = models.iter().flatten().map(|tag| tag.name.clone()).collect();
        if is_openai {
            return Err(ModelError::Engine {
                what: format!(
                    "no provider for the model `{name}`: OPENAI_API_KEY is not set, and there is \
                     no Ollama model of that name at {base}"
                ),
                hint: Some(
                    "set OPENAI_API_KEY (or OPENAI_BASE_URL for a local server), or use \
                     --model auto, which needs neither"
                        .to_owned(),
                ),
            });
        }
        match models {
            Ok(_) => Err(ModelError::ModelNotFound {
                endpoint: base,
                model: name.to_owned(),
                available,
                hint: format!(
                    "fetch it with `ollama pull {name}`, or write openai/{name} for another server"
                ),
            }),
            Err(error) => Err(error),
        }
    }

    fn ollama_base(&self) -> String {
        ollama::base_address(&self.environment)
    }

    /// Returns the models of the Ollama server if it answers quickly.
    async fn ollama_models(&self) -> Result<Vec<ollama::OllamaTag>, ModelError> {
        // A probe must not make a run without Ollama wait for the timeouts of real calls.
        let seconds = PROBE.as_secs_f64();
        let settings = ModelSettings {
            connect_seconds: seconds.min(self.settings.connect_seconds),
            first_byte_seconds: seconds,
            total_seconds: seconds,
            ..self.settings.clone()
        };
        OllamaServer::new(&self.ollama_base(), &settings)?.models().await
    }

    async fn build_model(
        &mut self,
        name: &ModelName,
        fetch: &dyn FetchObserver,
    ) -> Result<Arc<dyn ChatModel>, ModelError> {
        let Some((provider, model)) = name.provider() else {
            return Err(ModelError::InvalidName {
                name: name.to_string(),
                why: "it was not resolved".to_owned(),
            });
        };
        let built = (provider.entry.build)(ModelContext {
            full_name: name,
            name: model,
            environment: &self.environment,
            settings: &self.settings,
            folder: &self.folder,
            call_log: self.call_log.as_deref(),
            fetch,
        });
        let ProviderModel { model, endpoint } = built.await?;
        let calls = provider.entry.concurrency;
        // Models without a server, such as recordings, need neither retries nor a limit.
        let Some(endpoint) = endpoint else {
            self.concurrency.insert(model.id().to_owned(), calls as usize);
            return Ok(model);
        };
        let calls = self.settings.concurrency.unwrap_or(calls) as usize;
        self.concurrency.insert(model.id().to_owned(), calls);
        let patience = BreakerLimits {
            max_retries: self.settings.max_retries,
            restart_time: self.settings.restart(),
            concurrency: calls,
        };
        let outages = &self.outages;
        // By endpoint and not by model: the models of one server share its memory and processors,
        // and Ollama swaps them if they do not fit together.
        let gate = self.gates.entry(endpoint).or_insert_with(|| {
            let breaker = CircuitBreaker::new(patience, Arc::clone(outages));
            Arc::new(EndpointGate { permits: Semaphore::new(calls), breaker })
        });
        let guarded = Arc::new(GuardedModel {
            inner: model,
            gate: Arc::clone(gate),
            redactor: Arc::clone(&self.redactor),
            redactions: RedactionCache::default(),
        });
        match &self.record {
            // Outside of the guards, so that only final replies are recorded.
            Some(folder) => Ok(Arc::new(RecordingModel::new(guarded, folder, &self.numbering)?)),
            None => Ok(guarded),
        }
    }
}
