//! Why a command could not do its work: words for people, and an exit code.

use crate::exit::Exit;
use selftest_config::ConfigErrors;
use selftest_harness::sut::SutError;
use selftest_models::ModelError;
use selftest_models::prompts::PromptError;

/// A failure in words, with an exit code and at most one hint.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    words: Words,
}

#[derive(Debug)]
enum Words {
    Error { error: anyhow::Error, hint: Option<String> },
    Config(Box<ConfigErrors>),
}

impl Failure {
    /// A model, the system under test or a folder cannot be used.
    pub(super) fn setup(error: anyhow::Error) -> Self {
        Self { exit: Exit::Setup, words: Words::Error { error, hint: None } }
    }

    /// The command line or a file of the user is wrong.
    pub(super) fn usage(error: anyhow::Error) -> Self {
        Self { exit: Exit::Usage, words: Words::Error { error, hint: None } }
    }

    /// Adds one thing that the reader can do.
    pub(super) fn hint(mut self, text: Option<impl Into<String>>) -> Self {
        if let Words::Error { hint, .. } = &mut self.words {
            *hint = text.map(Into::into);
        }
        self
    }

    /// The words, ending in a line break.
    pub(super) fn render(&self, colour: bool) -> String {
        match &self.words {
            Words::Config(errors) => errors.render(colour),
            Words::Error { error, hint } => {
                let hint = hint.as_ref().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
                format!("error: {error:#}\n{hint}")
            }
        }
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        Self { exit: Exit::Usage, words: Words::Config(Box::new(errors)) }
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let hint = error.hint();
        let is_usage = matches!(error, ModelError::InvalidName { .. });
        let error = anyhow::Error::new(error);
        if is_usage { Self::usage(error) } else { Self::setup(error) }.hint(hint)
    }
}

impl From<SutError> for Failure {
    fn from(error: SutError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::setup(anyhow::Error::new(error)).hint(hint)
    }
}

impl From<PromptError> for Failure {
    fn from(error: PromptError) -> Self {
        Self::usage(anyhow::Error::new(error))
    }
}
