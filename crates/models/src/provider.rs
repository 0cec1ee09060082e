//! The declaration of a model provider: its names, its variables, and how its models are built.
//!
//! Each provider declares itself in its own file. The table in `name.rs` lists the declarations.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::journaled::CallLog;
use super::locator::FetchObserver;
use super::model_settings::{ModelEnvironment, ModelSettings};
use super::name::ModelName;
use super::{ChatModel, ModelError};

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
