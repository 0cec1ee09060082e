//! Settings of model calls, and what the environment says about models. Reads nothing itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// The `models` section of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// Seconds to open a connection.
    #[schemars(range(min = 0.1, max = 3600.0))]
    pub connect_seconds: f64,
    /// Seconds until the first byte of an answer. Answers are not streamed, so this covers the
    /// time that the server needs to generate.
    #[schemars(range(min = 0.1, max = 86400.0))]
    pub first_byte_seconds: f64,
    /// Seconds for one whole call, retries not included.
    #[schemars(range(min = 0.1, max = 86400.0))]
    pub total_seconds: f64,
    /// Retries after a broken connection, 408, 429 or 5xx.
    #[schemars(range(max = 20))]
    pub max_retries: u32,
    /// Seconds that a server which gives no answer is tried again for, whatever the number of
    /// retries, because it may be starting again. After that it is given up, and the run ends.
    #[schemars(range(min = 0.0, max = 3600.0))]
    pub restart_seconds: f64,
    /// Calls at once per endpoint. Absent: 1 for Ollama and the embedded engine, 8 otherwise.
    #[schemars(range(min = 1, max = 1024))]
    pub concurrency: Option<u32>,
    /// Context window in tokens, where it can be chosen: Ollama's `num_ctx` and the embedded
    /// engine.
    #[schemars(range(min = 512, max = 1_048_576))]
    pub context_tokens: u32,
    /// How long Ollama keeps a model loaded after a call.
    pub keep_alive: String,
    /// Other names under which a server may answer for a model, by the name that is asked for, such
    /// as `gpt-4o` or `openai/gpt-4o`. A reply under a name that is neither that, nor the same with a date
    /// or `:latest`, nor one of these, is no answer. `*` stands for any name, and for none.
    pub aliases: BTreeMap<String, Vec<String>>,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            connect_seconds: 5.0,
            first_byte_seconds: 120.0,
            total_seconds: 300.0,
            max_retries: 3,
            restart_seconds: 10.0,
            concurrency: None,
            context_tokens: 8192,
            keep_alive: "5m".to_owned(),
            aliases: BTreeMap::new(),
        }
    }
}

impl ModelSettings {
    /// [`ModelSettings::connect_seconds`].
    pub fn connect(&self) -> Duration {
        Duration::from_secs_f64(self.connect_seconds)
    }
    /// [`ModelSettings::first_byte_seconds`].
    pub fn first_byte(&self) -> Duration {
        Duration::from_secs_f64(self.first_byte_seconds)
    }
    /// [`ModelSettings::total_seconds`].
    pub fn total(&self) -> Duration {
        Duration::from_secs_f64(self.total_seconds)
    }
    /// [`ModelSettings::restart_seconds`].
    pub fn restart(&self) -> Duration {
        Duration::from_secs_f64(self.restart_seconds)
    }
}

/// Model settings of the process environment; gathered by the configuration.
#[derive(Debug, Clone, Default)]
pub struct ModelEnvironment {
    /// `OLLAMA_HOST`.
    pub ollama_host: Option<String>,
    /// `OPENAI_API_KEY`.
    pub openai_api_key: Option<SecretString>,
    /// `OPENAI_BASE_URL`.
    pub openai_base_url: Option<String>,
    /// `SELFTEST_MODEL_FILE`: the GGUF file of the default embedded model.
    pub model_file: Option<PathBuf>,
    /// Where fetched weights are kept.
    pub cache_folder: PathBuf,
    /// `HF_ENDPOINT`: base address for `hf:` names.
    pub hf_endpoint: Option<String>,
    /// Never fetch anything.
    pub offline: bool,
}
