//! Why a model gave no reply, in words that name the endpoint or file.

use std::time::Duration;

/// Which limit a call ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum Phase {
    /// Opening the connection.
    #[strum(to_string = "no connection")]
    Connect,
    /// Waiting for the first byte of the answer.
    #[strum(to_string = "no first byte")]
    FirstByte,
    /// The whole call.
    #[strum(to_string = "no complete answer")]
    Total,
}

/// Whose fault an error is, as far as other calls of the same server go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Of this call: the server is there and says so.
    OfCall,
    /// The connection, or an error of the server itself.
    Broken,
    /// The server did not answer in time.
    Silent,
    /// Something that is no model server answered.
    Garbled,
    /// The embedded engine: it may be unusable as a whole.
    Engine,
}

/// Why there is no reply. Messages name the endpoint or file; [`ModelError::hint`] says what to do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// The name is not of the form `provider/model`, or the provider is unknown.
    #[error("`{name}` is not a model name: {why}")]
    Name {
        /// As written.
        name: String,
        /// The mistake.
        why: String,
    },
    /// No connection.
    #[error("cannot reach {endpoint}: {why}")]
    Unreachable {
        /// Address.
        endpoint: String,
        /// The system's words.
        why: String,
        /// A remedy.
        hint: String,
    },
    /// The server is there, the model is not.
    #[error("{endpoint} has no model `{model}`; it has: {}", if available.is_empty() { "none".to_owned() } else { available.join(", ") })]
    Missing {
        /// Address.
        endpoint: String,
        /// The name asked for.
        model: String,
        /// The names that are there.
        available: Vec<String>,
        /// A remedy.
        hint: String,
    },
    /// The server answered with an error status.
    #[error("{endpoint} answered {status}: {body}")]
    Status {
        /// Address.
        endpoint: String,
        /// HTTP status.
        status: u16,
        /// Its body, bounded and without control characters.
        body: String,
        /// Value of `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// A time limit.
    #[error("{endpoint} gave {phase} within {} s", after.as_secs_f64())]
    Timeout {
        /// Address.
        endpoint: String,
        /// Which limit.
        phase: Phase,
        /// The limit.
        after: Duration,
    },
    /// The answer is not what the protocol says.
    #[error("{endpoint} answered with {what}")]
    Protocol {
        /// Address.
        endpoint: String,
        /// The answer instead.
        what: String,
        /// Whether the connection broke, so that another try may help.
        broken: bool,
    },
    /// An answer in good form that is not, or not only, that of the model which was asked.
    #[error("{endpoint} answered with {what}")]
    WrongReply {
        /// Address.
        endpoint: String,
        /// The answer instead.
        what: String,
        /// A remedy.
        hint: Option<String>,
    },
    /// The answer is not even JSON: something else than a model server speaks there.
    #[error("{endpoint} answered with {what}")]
    Garbled {
        /// Address.
        endpoint: String,
        /// The answer instead.
        what: String,
    },
    /// The server gave no answer to earlier calls and is not asked any more.
    #[error("{why}")]
    GivenUp {
        /// The last error, and how long it was tried.
        why: String,
    },
    /// A cassette has no such recording.
    #[error("no recording for this request in {folder}: {difference}")]
    NotRecorded {
        /// Folder of the cassette.
        folder: String,
        /// The difference from the nearest recording.
        difference: String,
    },
    /// The prompt does not fit the model's context; a shorter one would.
    #[error("{}", too_long(length.as_deref(), *limit))]
    PromptTooLong {
        /// With its unit: tokens, or bytes where these tell already. Absent where a server does
        /// not count.
        length: Option<String>,
        /// Tokens of the context, where they are known.
        limit: Option<usize>,
        /// Most tokens that the model's context can have, where that is known.
        most: Option<u32>,
    },
    /// The embedded engine or its weights.
    #[error("{what}")]
    Engine {
        /// The failure, naming the file.
        what: String,
        /// A remedy.
        hint: Option<String>,
    },
}

fn too_long(length: Option<&str>, limit: Option<usize>) -> String {
    let prompt = length.map_or_else(String::new, |length| format!(" of {length}"));
    match limit {
        Some(limit) => format!("the prompt{prompt} does not fit a context of {limit} tokens"),
        None => format!("the prompt{prompt} does not fit the model's context"),
    }
}

impl ModelError {
    /// An error of the embedded engine or its weights.
    pub(crate) fn engine(what: String, hint: Option<String>) -> Self {
        Self::Engine { what, hint }
    }

    /// Whether the same call may succeed a moment later: broken connections, 408, 429 and 5xx.
    pub fn is_transient(&self) -> bool {
        match self {
            ModelError::Unreachable { .. } => true,
            ModelError::Protocol { broken, .. } => *broken,
            ModelError::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            ModelError::Timeout { phase, .. } => *phase == Phase::Connect,
            _ => false,
        }
    }

    /// Whether it is the fault of the server or its connection, and not of what it was asked.
    pub fn is_outage(&self) -> bool {
        match self.fault() {
            Fault::Broken | Fault::Silent | Fault::Garbled => true,
            Fault::OfCall | Fault::Engine => {
                matches!(self, ModelError::GivenUp { .. } | ModelError::WrongReply { .. })
            }
        }
    }

    pub(crate) fn fault(&self) -> Fault {
        match self {
            ModelError::Unreachable { .. }
            | ModelError::Status { status: 500..=599, .. }
            | ModelError::Timeout { phase: Phase::Connect, .. }
            | ModelError::Protocol { broken: true, .. } => Fault::Broken,
            ModelError::Timeout { .. } => Fault::Silent,
            ModelError::Garbled { .. } => Fault::Garbled,
            ModelError::Engine { .. } => Fault::Engine,
            ModelError::Name { .. }
            | ModelError::Missing { .. }
            | ModelError::Status { .. }
            | ModelError::Protocol { .. }
            | ModelError::WrongReply { .. }
            | ModelError::GivenUp { .. }
            | ModelError::NotRecorded { .. }
            | ModelError::PromptTooLong { .. } => Fault::OfCall,
        }
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            ModelError::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The same error with the words of servers and systems changed.
    #[must_use]
    pub fn map_words(mut self, change: impl Fn(String) -> String) -> Self {
        let words = match &mut self {
            ModelError::Unreachable { why: words, .. }
            | ModelError::Status { body: words, .. }
            | ModelError::Protocol { what: words, .. }
            | ModelError::WrongReply { what: words, .. }
            | ModelError::Garbled { what: words, .. }
            | ModelError::GivenUp { why: words }
            | ModelError::Engine { what: words, .. } => words,
            ModelError::Name { .. }
            | ModelError::Missing { .. }
            | ModelError::Timeout { .. }
            | ModelError::PromptTooLong { .. }
            | ModelError::NotRecorded { .. } => return self,
        };
        *words = change(std::mem::take(words));
        self
    }

    /// One thing that the reader can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            ModelError::Unreachable { hint, .. } | ModelError::Missing { hint, .. } => {
                Some(hint.clone())
            }
            ModelError::Engine { hint, .. } | ModelError::WrongReply { hint, .. } => hint.clone(),
            ModelError::Name { .. } => Some(
                "write provider/model: ollama/qwen2.5:7b, openai/gpt-4o-mini, \
                 embedded/smollm2-135m, cassette/<dir>, or auto"
                    .to_owned(),
            ),
            ModelError::Status { status: 401 | 403, .. } => {
                Some("set OPENAI_API_KEY to a key that this server accepts".to_owned())
            }
            ModelError::Status { .. } => None,
            ModelError::Timeout { phase, .. } => Some(match phase {
                Phase::Connect => "is the address right and the server running?".to_owned(),
                Phase::FirstByte => "raise models.first_byte_seconds in the config".to_owned(),
                Phase::Total => "raise models.total_seconds in the config".to_owned(),
            }),
            ModelError::GivenUp { .. } => {
                Some("start the server again; `selftest doctor` says whether it answers".to_owned())
            }
            ModelError::Protocol { .. } | ModelError::Garbled { .. } => {
                Some("is this the address of a model server? see `selftest doctor`".to_owned())
            }
            ModelError::PromptTooLong { most: Some(most), .. } => Some(format!(
                "raise models.context_tokens (this model allows {most}) or shorten the prompt"
            )),
            ModelError::PromptTooLong { most: None, .. } => Some(
                "shorten the prompt, or start the server with a larger context for this model"
                    .to_owned(),
            ),
            ModelError::NotRecorded { .. } => Some("record again with --record <dir>".to_owned()),
        }
    }
}
