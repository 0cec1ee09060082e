//! Errors of the application: a message for people, its kind, and at most one hint.

use std::error::Error;
use std::fmt;

use selftest_config::ConfigErrors;
use selftest_harness::sut::SutError;
use selftest_models::ModelError;
use selftest_models::prompts::PromptError;
use selftest_service::grader::proposals::DecisionError;
use selftest_service::grader::quality::{QualityError, UnfitModelError};
use selftest_service::grader::skills::SkillChangeError;
use selftest_store::StoreError;
use selftest_text::error_chain;

/// Kind of an error; decides the exit code of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppErrorKind {
    /// The options or a file of the user are wrong.
    Usage,
    /// A model, the system under test, the database or a folder cannot be used.
    Setup,
    /// A model answered, and no grade follows from its answer.
    Undecided,
}

/// An error with its message, its kind and at most one hint.
#[derive(Debug)]
pub struct AppError {
    kind: AppErrorKind,
    words: Words,
}

#[derive(Debug)]
enum Words {
    Error { error: anyhow::Error, hint: Option<String> },
    Config(Box<ConfigErrors>),
}

impl AppError {
    /// Creates an error about a model, the system under test, the database or a folder.
    pub fn setup(error: anyhow::Error) -> Self {
        Self { kind: AppErrorKind::Setup, words: Words::Error { error, hint: None } }
    }

    /// Creates an error about the options or a file of the user.
    pub fn usage(error: anyhow::Error) -> Self {
        Self { kind: AppErrorKind::Usage, words: Words::Error { error, hint: None } }
    }

    /// Returns what the error is about.
    pub const fn kind(&self) -> AppErrorKind {
        self.kind
    }

    /// Adds one thing that the reader can do.
    #[must_use]
    pub fn hint(mut self, text: Option<impl Into<String>>) -> Self {
        if let Words::Error { hint, .. } = &mut self.words {
            *hint = text.map(Into::into);
        }
        self
    }

    /// Renders the message and the hint, ending in a line break.
    pub fn render(&self, colour: bool) -> String {
        match &self.words {
            Words::Config(errors) => errors.render(colour),
            Words::Error { error, hint } => {
                let hint = hint.as_ref().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
                format!("error: {}\n{hint}", error_chain(error.as_ref()))
            }
        }
    }
}

impl fmt::Display for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl Error for AppError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.words {
            Words::Error { error, .. } => error.source(),
            Words::Config(_) => None,
        }
    }
}

impl From<ConfigErrors> for AppError {
    fn from(errors: ConfigErrors) -> Self {
        Self { kind: AppErrorKind::Usage, words: Words::Config(Box::new(errors)) }
    }
}

impl From<ModelError> for AppError {
    fn from(error: ModelError) -> Self {
        let hint = error.hint();
        let is_usage = matches!(error, ModelError::InvalidName { .. });
        let error = anyhow::Error::new(error);
        if is_usage { Self::usage(error) } else { Self::setup(error) }.hint(hint)
    }
}

impl From<SutError> for AppError {
    fn from(error: SutError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::setup(anyhow::Error::new(error)).hint(hint)
    }
}

impl From<PromptError> for AppError {
    fn from(error: PromptError) -> Self {
        Self::usage(anyhow::Error::new(error))
    }
}

impl From<UnfitModelError> for AppError {
    fn from(error: UnfitModelError) -> Self {
        match error {
            UnfitModelError::Prompt(error) => error.into(),
            error @ UnfitModelError::Context { .. } => Self::setup(anyhow::Error::new(error)).hint(
                Some("take a model with a larger context, or lower grade.quality.max_tokens"),
            ),
        }
    }
}

impl From<QualityError> for AppError {
    fn from(fault: QualityError) -> Self {
        let lasting = fault.is_persistent();
        match fault {
            QualityError::Store(error) => error.into(),
            QualityError::Prompt(error) => error.into(),
            fault => {
                let hint = lasting.then_some("`selftest doctor` looks at the models");
                let mut failure = Self::setup(anyhow::Error::new(fault)).hint(hint);
                // Only this session has no grade; another one may get one with the same set-up.
                if !lasting {
                    failure.kind = AppErrorKind::Undecided;
                }
                failure
            }
        }
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::setup(anyhow::Error::new(error)).hint(hint)
    }
}

impl From<DecisionError> for AppError {
    fn from(fault: DecisionError) -> Self {
        let hint = match &fault {
            DecisionError::Store(_) => None,
            DecisionError::Unknown(_) => {
                Some("`selftest improve proposals list --all` shows their ids")
            }
            DecisionError::Decided { .. } => Some("a decision stays"),
            DecisionError::Exists(_) | DecisionError::Name(_) | DecisionError::Write { .. } => {
                Some("write it elsewhere with --output")
            }
        };
        match fault {
            DecisionError::Store(error) => error.into(),
            fault @ DecisionError::Write { .. } => {
                Self::setup(anyhow::Error::new(fault)).hint(hint)
            }
            fault => Self::usage(anyhow::Error::new(fault)).hint(hint),
        }
    }
}

impl From<SkillChangeError> for AppError {
    fn from(error: SkillChangeError) -> Self {
        match error {
            SkillChangeError::Store(error) => error.into(),
            error => {
                let hint = error.hint();
                Self::usage(anyhow::Error::new(error)).hint(hint)
            }
        }
    }
}
