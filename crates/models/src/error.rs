//! Errors of model calls. Messages name the endpoint or file.

use std::time::Duration;

use super::name::ModelName;

/// Time limit that a call exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum TimeoutPhase {
    /// Opening the connection.
    #[strum(to_string = "no connection")]
    Connect,
    /// Waiting for the first byte of the response.
    #[strum(to_string = "no first byte")]
    FirstByte,
    /// The whole call.
    #[strum(to_string = "no complete answer")]
    Total,
}

/// Cause of an error, which determines if other calls to the same server are affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureScope {
    /// Specific to this call: the server is up and reports the error.
    Request,
    /// Broken connection or internal server error.
    Connection,
    /// The server did not answer in time.
    NoAnswer,
    /// The response did not come from a model server.
    NotModelServer,
    /// The server refuses this account or address, whatever is asked.
    EveryRequest,
    /// The embedded engine failed and may be unusable.
    Engine,
}

/// Error of a model call. Messages name the endpoint or file; [`ModelError::hint`] returns what to
/// do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// The name is not of the form `provider/model`, or the provider is unknown.
    #[error("`{name}` is not a model name: {why}")]
    InvalidName {
        /// Name as written.
        name: String,
        /// Reason why it is invalid.
        why: String,
    },
    /// The connection failed.
    #[error("cannot reach {endpoint}: {why}")]
    Unreachable {
        /// Address.
        endpoint: String,
        /// Error message of the system.
        why: String,
        /// Suggested fix.
        hint: String,
    },
    /// The server does not have the model.
    #[error("{endpoint} has no model `{model}`; it has: {}", if available.is_empty() { "none".to_owned() } else { available.join(", ") })]
    ModelNotFound {
        /// Address.
        endpoint: String,
        /// Requested name.
        model: String,
        /// Available names.
        available: Vec<String>,
        /// Suggested fix.
        hint: String,
    },
    /// The server answered with an error status.
    #[error("{endpoint} answered {status}: {body}")]
    Status {
        /// Address.
        endpoint: String,
        /// HTTP status.
        status: u16,
        /// Response body, clipped and without control characters.
        body: String,
        /// Value of `Retry-After`.
        retry_after: Option<Duration>,
        /// The variable with the key, if the provider has one.
        key_variable: Option<&'static str>,
    },
    /// The server answered with a redirect to another address.
    #[error("{endpoint} answered {status}, a redirect to {location}, which is not followed")]
    Redirected {
        /// Address.
        endpoint: String,
        /// HTTP status.
        status: u16,
        /// Target, clipped and without credentials.
        location: String,
    },
    /// The account has no quota or credit left, so that waiting does not help.
    #[error("{endpoint} answered {status}: the quota is exhausted: {body}")]
    QuotaExhausted {
        /// Address.
        endpoint: String,
        /// HTTP status.
        status: u16,
        /// Response body, clipped and without control characters.
        body: String,
    },
    /// The server asks to wait longer than the call has time.
    #[error("{why}; it asks to wait {} s, and the limit is {:.0} s", asked.as_secs_f64(), limit.as_secs_f64())]
    WaitTooLong {
        /// The server's refusal.
        why: String,
        /// The requested wait.
        asked: Duration,
        /// The longest wait that is possible.
        limit: Duration,
    },
    /// A time limit was exceeded.
    #[error("{endpoint} gave {phase} within {} s", after.as_secs_f64())]
    Timeout {
        /// Address.
        endpoint: String,
        /// Exceeded limit.
        phase: TimeoutPhase,
        /// Value of the limit.
        after: Duration,
    },
    /// The response violates the protocol.
    #[error("{endpoint} answered with {what}")]
    Protocol {
        /// Address.
        endpoint: String,
        /// Description of the response.
        what: String,
        /// True if the connection broke, so that a retry may help.
        broken: bool,
    },
    /// A well-formed response that is not, or not only, from the requested model.
    #[error("{endpoint} answered with {what}")]
    WrongReply {
        /// Address.
        endpoint: String,
        /// Description of the response.
        what: String,
        /// Suggested fix.
        hint: Option<String>,
    },
    /// The response is not JSON, so the server is probably not a model server.
    #[error("{endpoint} answered with {what}")]
    NotJson {
        /// Address.
        endpoint: String,
        /// Description of the response.
        what: String,
    },
    /// The server did not answer earlier calls and is no longer used.
    #[error("{why}")]
    CircuitOpen {
        /// Last error, and for how long it was retried.
        why: String,
    },
    /// The cassette has no matching recording.
    #[error("no recording for this request in {folder}: {difference}")]
    NotRecorded {
        /// Folder of the cassette.
        folder: String,
        /// Difference from the nearest recording.
        difference: String,
    },
    /// The prompt does not fit the model's context; a shorter one would.
    #[error("{}", too_long(length.as_deref(), *limit))]
    PromptTooLong {
        /// Length with its unit: tokens, or bytes if those already exceed the limit. `None` if the
        /// server does not report it.
        length: Option<String>,
        /// Context size in tokens, if known.
        limit: Option<usize>,
        /// Maximum context size of the model in tokens, if known.
        most: Option<u32>,
    },
    /// The embedded engine or its weights failed.
    #[error("{what}")]
    Engine {
        /// Error message that names the file.
        what: String,
        /// Suggested fix.
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
    /// Creates an error of the embedded engine or its weights.
    pub(crate) fn engine(what: String, hint: Option<String>) -> Self {
        Self::Engine { what, hint }
    }

    /// Returns true if a retry may succeed: broken connections, 408, 429 and 5xx.
    pub fn is_transient(&self) -> bool {
        match self {
            ModelError::Unreachable { .. } => true,
            ModelError::Protocol { broken, .. } => *broken,
            ModelError::Status { status, .. } => matches!(status, 408 | 429 | 500..=599),
            // A call that timed out later would probably be as slow again.
            ModelError::Timeout { phase, .. } => *phase == TimeoutPhase::Connect,
            _ => false,
        }
    }

    /// Returns true if the server, the account or the connection is at fault, and not the request.
    pub fn is_outage(&self) -> bool {
        match self.scope() {
            FailureScope::Connection
            | FailureScope::NoAnswer
            | FailureScope::NotModelServer
            | FailureScope::EveryRequest => true,
            FailureScope::Request | FailureScope::Engine => match self {
                ModelError::CircuitOpen { .. }
                | ModelError::WrongReply { .. }
                | ModelError::ModelNotFound { .. }
                | ModelError::WaitTooLong { .. } => true,
                // What a client did wrong by its request says something about the request.
                ModelError::Status { status, .. } => !matches!(status, 400 | 413 | 422),
                _ => false,
            },
        }
    }

    pub(crate) fn scope(&self) -> FailureScope {
        match self {
            ModelError::Unreachable { .. }
            | ModelError::Status { status: 500..=599, .. }
            | ModelError::Timeout { phase: TimeoutPhase::Connect, .. }
            | ModelError::Protocol { broken: true, .. } => FailureScope::Connection,
            ModelError::Timeout { .. } => FailureScope::NoAnswer,
            ModelError::NotJson { .. } => FailureScope::NotModelServer,
            ModelError::Redirected { .. }
            | ModelError::QuotaExhausted { .. }
            // 403 and 404 are not here: servers use them for one model that this key may not use.
            | ModelError::Status { status: 401, .. } => FailureScope::EveryRequest,
            ModelError::Engine { .. } => FailureScope::Engine,
            ModelError::InvalidName { .. }
            | ModelError::ModelNotFound { .. }
            | ModelError::Status { .. }
            | ModelError::Protocol { .. }
            | ModelError::WrongReply { .. }
            | ModelError::CircuitOpen { .. }
            | ModelError::WaitTooLong { .. }
            | ModelError::NotRecorded { .. }
            | ModelError::PromptTooLong { .. } => FailureScope::Request,
        }
    }

    /// Returns how long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            ModelError::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Applies a function to the text that comes from servers and systems.
    #[must_use]
    pub fn map_message(mut self, change: impl Fn(String) -> String) -> Self {
        let words = match &mut self {
            ModelError::Unreachable { why: words, .. }
            | ModelError::Status { body: words, .. }
            | ModelError::QuotaExhausted { body: words, .. }
            | ModelError::Redirected { location: words, .. }
            | ModelError::WaitTooLong { why: words, .. }
            | ModelError::Protocol { what: words, .. }
            | ModelError::WrongReply { what: words, .. }
            | ModelError::NotJson { what: words, .. }
            | ModelError::CircuitOpen { why: words }
            | ModelError::Engine { what: words, .. } => words,
            ModelError::InvalidName { .. }
            | ModelError::ModelNotFound { .. }
            | ModelError::Timeout { .. }
            | ModelError::PromptTooLong { .. }
            | ModelError::NotRecorded { .. } => return self,
        };
        *words = change(std::mem::take(words));
        self
    }

    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            ModelError::Unreachable { hint, .. } | ModelError::ModelNotFound { hint, .. } => {
                Some(hint.clone())
            }
            ModelError::Engine { hint, .. } | ModelError::WrongReply { hint, .. } => hint.clone(),
            ModelError::InvalidName { .. } => {
                let examples = ModelName::provider_examples().join(", ");
                Some(format!("write provider/model: {examples}, or auto"))
            }
            ModelError::Status { status: 401 | 403, key_variable, .. } => {
                key_variable.map(|key| format!("set {key} to a key that this server accepts"))
            }
            ModelError::Status { status: 404, .. } => Some(
                "is the address right? that of most servers ends in /v1, without /chat/completions"
                    .to_owned(),
            ),
            ModelError::Status { .. } => None,
            ModelError::Redirected { location, .. } => {
                Some(format!("use the address that it leads to, if you trust it: {location}"))
            }
            ModelError::QuotaExhausted { .. } => {
                Some("add credit to the account, or use another key or model".to_owned())
            }
            ModelError::WaitTooLong { .. } => {
                Some("run again later, or with fewer calls at once (models.concurrency)".to_owned())
            }
            ModelError::Timeout { phase, .. } => Some(match phase {
                TimeoutPhase::Connect => "is the address right and the server running?".to_owned(),
                TimeoutPhase::FirstByte => {
                    "raise models.first_byte_seconds in the config".to_owned()
                }
                TimeoutPhase::Total => "raise models.total_seconds in the config".to_owned(),
            }),
            ModelError::CircuitOpen { .. } => {
                Some("start the server again; `selftest doctor` says whether it answers".to_owned())
            }
            ModelError::Protocol { .. } | ModelError::NotJson { .. } => {
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
