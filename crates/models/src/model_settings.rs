//! Settings of model calls, and the environment variables for models. Reads nothing itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

/// The `models` section of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// Time limit in seconds to open a connection.
    #[schemars(range(min = 0.1, max = 3600.0))]
    pub connect_seconds: f64,
    /// Time limit in seconds until the first byte of a response. Responses are not streamed, so
    /// this includes the time to generate them.
    #[schemars(range(min = 0.1, max = 86400.0))]
    pub first_byte_seconds: f64,
    /// Time limit in seconds for one call, not including retries.
    #[schemars(range(min = 0.1, max = 86400.0))]
    pub total_seconds: f64,
    /// Maximum number of retries after a broken connection, 408, 429 or 5xx.
    #[schemars(range(max = 20))]
    pub max_retries: u32,
    /// Seconds to keep retrying an unresponsive server, which may be restarting, regardless of
    /// `max_retries`. After that the server is given up, and the run ends.
    #[schemars(range(min = 0.0, max = 3600.0))]
    pub restart_seconds: f64,
    /// Maximum concurrent calls per endpoint. Default: 1 for Ollama and the embedded engine, 8
    /// otherwise.
    #[schemars(range(min = 1, max = 1024))]
    pub concurrency: Option<u32>,
    /// Context window in tokens, for Ollama (`num_ctx`) and the embedded engine.
    #[schemars(range(min = 512, max = 1_048_576))]
    pub context_tokens: u32,
    /// Time that Ollama keeps a model loaded after a call.
    pub keep_alive: String,
    /// Other names under which a server may answer, by requested model name, such as `gpt-4o` or
    /// `openai/gpt-4o`. A reply is rejected unless its model name is the requested one, the same
    /// with a date or `:latest`, or one of these. `*` accepts any name, or none.
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
    /// Returns [`ModelSettings::connect_seconds`] as a duration.
    pub fn connect(&self) -> Duration {
        Duration::from_secs_f64(self.connect_seconds)
    }
    /// Returns [`ModelSettings::first_byte_seconds`] as a duration.
    pub fn first_byte(&self) -> Duration {
        Duration::from_secs_f64(self.first_byte_seconds)
    }
    /// Returns [`ModelSettings::total_seconds`] as a duration.
    pub fn total(&self) -> Duration {
        Duration::from_secs_f64(self.total_seconds)
    }
    /// Returns [`ModelSettings::restart_seconds`] as a duration.
    pub fn restart(&self) -> Duration {
        Duration::from_secs_f64(self.restart_seconds)
    }
}

/// Model settings from the process environment, collected by the configuration.
#[derive(Debug, Clone, Default)]
pub struct ModelEnvironment {
    /// Values of the [variables of providers](crate::name::ModelName::variables) that are set:
    /// addresses, which may contain a password, and keys.
    pub providers: BTreeMap<&'static str, SecretString>,
    /// `SELFTEST_MODEL_FILE`: the GGUF file of the default embedded model.
    pub model_file: Option<PathBuf>,
    /// Folder for downloaded weights.
    pub cache_folder: PathBuf,
    /// `HF_ENDPOINT`: base address for `hf:` names.
    pub hf_endpoint: Option<String>,
    /// True to forbid downloads.
    pub offline: bool,
}

impl ModelEnvironment {
    /// Returns the value of a provider's variable.
    pub fn secret(&self, variable: &str) -> Option<&SecretString> {
        self.providers.get(variable)
    }

    /// Returns the value of a provider's variable as text, such as an address.
    pub fn text(&self, variable: &str) -> Option<&str> {
        self.secret(variable).map(ExposeSecret::expose_secret)
    }
}
