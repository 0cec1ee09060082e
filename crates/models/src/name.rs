//! The table of model providers, one entry each, and parsing of model names: `provider/model`, a
//! bare name, or `auto`. Help, schema and hints are made from the table.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::journaled::CallLog;
use super::locator::FetchObserver;
use super::model_settings::{ModelEnvironment, ModelSettings};
use super::{ChatModel, ModelError, cassette, embedded, ollama, openai};

#[cfg(test)]
use super::example;

/// A row of the table of providers.
pub(crate) struct Provider {
    /// The word before the slash.
    prefix: &'static str,
    /// The text of the row in docs/operate.md.
    #[cfg(test)]
    description: &'static str,
    pub(crate) entry: ProviderEntry,
    /// Creates the name of one of its models.
    named: fn(String) -> ModelName,
}

/// Defines the providers. An entry has a description, an identifier, the word before the slash in
/// names, and the provider's [`ProviderEntry`].
macro_rules! model_providers {
    ($(
        $(#[doc = $doc:literal])+
        $(#[cfg($($cfg:tt)+)])?
        $id:ident($prefix:literal) => $entry:path,
    )+) => {
        /// A model name as written in a configuration or flag.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum ModelName {
            /// `auto`: any available model, preferring local ones.
            Auto,
            $(
                $(#[doc = $doc])+
                $(#[cfg($($cfg)+)])?
                $id(String),
            )+
            /// A bare name, as in docs/spec/selftest.md: `gpt-4o-mini`, `qwen2.5:7b`.
            Bare(String),
        }

        /// All providers.
        static PROVIDERS: &[Provider] = &[
            $(
                $(#[cfg($($cfg)+)])?
                Provider {
                    prefix: $prefix,
                    #[cfg(test)]
                    description: concat!($($doc),+),
                    entry: $entry,
                    named: ModelName::$id,
                },
            )+
        ];

        impl ModelName {
            /// Returns the word before the slash and the text after it; `None` for `auto` and bare
            /// names.
            fn parts(&self) -> Option<(&'static str, &str)> {
                match self {
                    $(
                        $(#[cfg($($cfg)+)])?
                        Self::$id(model) => Some(($prefix, model)),
                    )+
                    Self::Auto | Self::Bare(_) => None,
                }
            }
        }
    };
}

model_providers! {
    /// A model of an Ollama server, through its native API with the schema in `format`.
    Ollama("ollama") => ollama::PROVIDER,
    /// A model of OpenAI, or of any server with its protocol.
    OpenAi("openai") => openai::PROVIDER,
    /// Weights that run in this process, on the CPU: of the catalogue, or with
    /// `embedded:/path/to.gguf` any GGUF file that llama.cpp reads.
    Embedded("embedded") => embedded::PROVIDER,
    /// Replies recorded with `--record DIR`, with the seed of the run and what was known of its
    /// judges: the same report again, without weights, server or `--seed`.
    Cassette("cassette") => cassette::PROVIDER,
    /// The example of docs/extending.md, in tests only.
    #[cfg(test)]
    Example("example") => example::PROVIDER,
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.parts()) {
            (_, Some((prefix, model))) => write!(f, "{prefix}/{model}"),
            (Self::Bare(name), None) => f.write_str(name),
            (_, None) => f.write_str("auto"),
        }
    }
}

impl ModelName {
    /// Returns the forms of names for help: `auto, ollama/NAME, …`.
    pub fn forms() -> String {
        let forms = PROVIDERS.iter().map(|it| format!("{}/{}", it.prefix, it.entry.placeholder));
        std::iter::once("auto".to_owned()).chain(forms).collect::<Vec<_>>().join(", ")
    }

    /// Returns an example of each form of names, for the schema: `auto`, `openai/gpt-4o-mini`, ….
    pub fn examples() -> Vec<String> {
        std::iter::once("auto".to_owned()).chain(Self::provider_examples()).collect()
    }

    /// Returns an example of each provider's names.
    pub(crate) fn provider_examples() -> Vec<String> {
        PROVIDERS.iter().map(Provider::example).collect()
    }

    /// Returns the environment variables with the addresses and keys of providers.
    pub fn variables() -> impl Iterator<Item = &'static str> {
        PROVIDERS.iter().flat_map(|it| [it.entry.address, it.entry.key]).flatten()
    }

    /// Returns the environment variables with the keys of providers.
    pub fn key_variables() -> impl Iterator<Item = &'static str> {
        PROVIDERS.iter().filter_map(|it| it.entry.key)
    }

    /// Returns the provider and the model's name at this provider; `None` for `auto` and bare
    /// names.
    pub(crate) fn provider(&self) -> Option<(&'static Provider, &str)> {
        let (prefix, model) = self.parts()?;
        Some((Provider::find(prefix)?, model))
    }
}

impl Provider {
    fn find(prefix: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.prefix == prefix)
    }

    fn example(&self) -> String {
        format!("{}/{}", self.prefix, self.entry.example)
    }

    /// Returns the row of docs/operate.md: an example, a description, the variables.
    #[cfg(test)]
    fn table_row(&self) -> String {
        let text = self.description.trim().trim_end_matches('.');
        let variables = [self.entry.address, self.entry.key].into_iter().flatten();
        let variables: Vec<String> = variables.map(|name| format!("`{name}`")).collect();
        let variables = if variables.is_empty() { "–".to_owned() } else { variables.join(", ") };
        format!("| `{}` | {text} | {variables} |", self.example())
    }
}

impl ModelName {
    /// Parses a name. An unknown provider before a slash is an error, so an Ollama name with a
    /// namespace must be written `ollama/namespace/name`.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let error =
            |why: &str| ModelError::InvalidName { name: text.to_owned(), why: why.to_owned() };
        let name = text.trim();
        if name.is_empty() {
            return Err(error("it is empty"));
        }
        if name == "auto" {
            return Ok(Self::Auto);
        }
        // Checked before the slash, because a path contains slashes.
        if let Some(path) = name.strip_prefix("embedded:") {
            return Ok(Self::Embedded(path.to_owned()));
        }
        match name.split_once('/') {
            Some((provider, "")) => Err(error(&format!("the part after `{provider}/` is missing"))),
            Some((prefix, model)) => match Provider::find(prefix) {
                Some(provider) => Ok((provider.named)(model.to_owned())),
                None => Err(error(&format!("there is no provider `{prefix}`"))),
            },
            None => Ok(Self::Bare(name.to_owned())),
        }
    }

    /// Returns true if a bare name belongs to one of OpenAI's model families.
    pub fn is_openai_family(name: &str) -> bool {
        // Such as `o4-mini`. Only Ollama writes a tag after a colon.
        let reasoning = name.strip_prefix('o').is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.contains(':')
        });
        name.starts_with("gpt-") && !name.starts_with("gpt-oss")
            || name.starts_with("chatgpt-")
            || reasoning
    }
}

/// Default concurrency if the server queues calls anyway.
const LOCAL_CALLS: u32 = 1;
/// Default concurrency for other servers.
pub(crate) const REMOTE_CALLS: u32 = 8;

/// A provider of models, as declared in its file.
pub(crate) struct ProviderEntry {
    /// The part of a name after the slash, as shown in help.
    pub(crate) placeholder: &'static str,
    /// An example of the part after the slash.
    pub(crate) example: &'static str,
    /// The variable with the server's address.
    pub(crate) address: Option<&'static str>,
    /// The variable with the key. Its value is redacted in everything that is written.
    pub(crate) key: Option<&'static str>,
    /// Maximum number of concurrent calls, unless the configuration sets it.
    pub(crate) concurrency: u32,
    /// Builds a model.
    pub(crate) build: BuildModel,
}

/// Builds a model without calling it; may download weights.
pub(crate) type BuildModel =
    for<'a> fn(ModelContext<'a>) -> BoxFuture<'a, Result<ProviderModel, ModelError>>;

impl ProviderEntry {
    /// Creates an entry without variables, for one call at a time.
    pub(crate) const fn new(build: BuildModel) -> Self {
        Self {
            placeholder: "NAME",
            example: "NAME",
            address: None,
            key: None,
            concurrency: LOCAL_CALLS,
            build,
        }
    }
}

/// The requested model, and what its provider may need to build it.
#[derive(Clone, Copy)]
pub(crate) struct ModelContext<'a> {
    /// The full name, as in reports.
    pub(crate) full_name: &'a ModelName,
    /// The part after the slash.
    pub(crate) name: &'a str,
    pub(crate) environment: &'a ModelEnvironment,
    pub(crate) settings: &'a ModelSettings,
    /// Base folder of relative paths.
    pub(crate) folder: &'a Path,
    /// Log of finished calls, if calls are stored.
    pub(crate) call_log: Option<&'a CallLog>,
    pub(crate) fetch: &'a dyn FetchObserver,
}

/// A model without retries, limits and recording.
pub(crate) struct ProviderModel {
    pub(crate) model: Arc<dyn ChatModel>,
    /// The server, for limits that its models share. `None` if calls never fail for reasons that
    /// pass, so that there is nothing to limit, to retry or to record.
    pub(crate) endpoint: Option<String>,
}

impl ProviderModel {
    /// Creates a model of an endpoint.
    pub(crate) fn new(model: Arc<dyn ChatModel>, endpoint: String) -> Self {
        Self { model, endpoint: Some(endpoint) }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names() {
        let parse = |text: &str| ModelName::parse(text).unwrap();
        assert_eq!(parse("auto"), ModelName::Auto);
        assert_eq!(parse("ollama/qwen2.5:7b"), ModelName::Ollama("qwen2.5:7b".into()));
        assert_eq!(parse("ollama/hf.co/a/b"), ModelName::Ollama("hf.co/a/b".into()));
        assert_eq!(parse("embedded:/m/x.gguf"), ModelName::Embedded("/m/x.gguf".into()));
        assert_eq!(parse("cassette/a/b"), ModelName::Cassette("a/b".into()));
        assert_eq!(parse("gpt-4o-mini"), ModelName::Bare("gpt-4o-mini".into()));
        assert!(ModelName::parse("").is_err());
        assert!(ModelName::parse("ollama/").is_err());
        let error = ModelName::parse("anthropic/claude").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`anthropic/claude` is not a model name: there is no provider `anthropic`"
        );
    }

    #[test]
    fn the_documents_have_a_row_for_each_provider() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate.md");
        let page = std::fs::read_to_string(page).unwrap();
        for provider in PROVIDERS.iter().filter(|provider| provider.prefix != "example") {
            let row = provider.table_row();
            assert!(page.contains(&row), "docs/operate.md lacks this row:\n{row}");
        }
    }

    #[test]
    fn help_lists_the_forms() {
        let forms = "auto, ollama/NAME, openai/NAME, embedded/NAME, cassette/DIR, example/NAME";
        assert_eq!(ModelName::forms(), forms);
        assert_eq!(ModelName::key_variables().collect::<Vec<_>>(), ["OPENAI_API_KEY"]);
        for name in ModelName::examples() {
            assert_eq!(ModelName::parse(&name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn openai_families() {
        for name in ["gpt-4o-mini", "o3", "o4-mini", "chatgpt-4o-latest"] {
            assert!(ModelName::is_openai_family(name), "{name}");
        }
        for name in ["qwen2.5:7b", "gpt-oss:20b", "olmo2:7b", "openchat"] {
            assert!(!ModelName::is_openai_family(name), "{name}");
        }
    }
}
