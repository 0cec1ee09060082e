//! The table of model providers, one entry each, and parsing of model names: `provider/model`, a
//! bare name, or `auto`.

use std::fmt;

use super::ModelError;

/// Defines the providers. An entry has a description, an identifier, and the word before the slash
/// in names; `ModelLocator::build_model` makes the provider's models.
macro_rules! model_providers {
    ($(
        $(#[doc = $doc:literal])+
        $(#[cfg($($cfg:tt)+)])?
        $id:ident($prefix:literal),
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

        impl ModelName {
            /// Returns the name of a provider's model; `None` if no provider has this prefix.
            fn of_provider(prefix: &str, model: &str) -> Option<Self> {
                match prefix {
                    $(
                        $(#[cfg($($cfg)+)])?
                        $prefix => Some(Self::$id(model.to_owned())),
                    )+
                    _ => None,
                }
            }
        }

        impl fmt::Display for ModelName {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::Auto => f.write_str("auto"),
                    $(
                        $(#[cfg($($cfg)+)])?
                        Self::$id(model) => write!(f, "{}/{model}", $prefix),
                    )+
                    Self::Bare(name) => f.write_str(name),
                }
            }
        }
    };
}

model_providers! {
    /// `ollama/<name>`: a model of an Ollama server.
    Ollama("ollama"),
    /// `openai/<name>`: a model of OpenAI, or of a server with its protocol.
    OpenAi("openai"),
    /// `embedded/<name>` or `embedded:<path>`: weights that this process runs.
    Embedded("embedded"),
    /// `cassette/<folder>`: recorded replies.
    Cassette("cassette"),
    /// `example/<name>`: the example of docs/extending.md, in tests only.
    #[cfg(test)]
    Example("example"),
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
            Some((provider, model)) => Self::of_provider(provider, model)
                .ok_or_else(|| error(&format!("there is no provider `{provider}`"))),
            None => Ok(Self::Bare(name.to_owned())),
        }
    }

    /// Returns true if a bare name belongs to one of OpenAI's model families.
    pub fn is_openai_family(name: &str) -> bool {
        let reasoning = name.strip_prefix('o').is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.contains(':')
        });
        name.starts_with("gpt-") && !name.starts_with("gpt-oss")
            || name.starts_with("chatgpt-")
            || reasoning
    }
}

#[cfg(test)]
mod tests {
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
    fn openai_families() {
        for name in ["gpt-4o-mini", "o3", "o4-mini", "chatgpt-4o-latest"] {
            assert!(ModelName::is_openai_family(name), "{name}");
        }
        for name in ["qwen2.5:7b", "gpt-oss:20b", "olmo2:7b", "openchat"] {
            assert!(!ModelName::is_openai_family(name), "{name}");
        }
    }
}
