//! Retries of transient failures with jittered backoff. Never retries a reply, however bad.

use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use futures_util::future::BoxFuture;

use super::{ChatModel, ChatReply, ChatRequest, ModelError};

/// Longest wait that a server's `Retry-After` can ask for.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A model whose transient failures are retried.
pub struct Retrying {
    inner: Arc<dyn ChatModel>,
    max_retries: u32,
}

impl Retrying {
    /// At most `max_retries` further calls after the first.
    pub fn new(inner: Arc<dyn ChatModel>, max_retries: u32) -> Self {
        Self { inner, max_retries }
    }
}

impl ChatModel for Retrying {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let backoff = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(Duration::from_millis(250))
            .with_max_delay(Duration::from_secs(20))
            .with_max_times(self.max_retries as usize);
        Box::pin(
            (move || self.inner.chat(request))
                .retry(backoff)
                .when(ModelError::is_transient)
                .adjust(|error, wait| {
                    wait.map(|wait| error.retry_after().unwrap_or(wait).min(LONGEST_WAIT))
                })
                .notify(|error, wait| {
                    tracing::warn!("{error}; trying again in {:.1} s", wait.as_secs_f64());
                }),
        )
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        self.inner.check()
    }

    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        self.inner.context_limit()
    }
}
