//! Guards around every call of a provider: a limit of calls at once for each endpoint, retries of
//! transient failures, and no secrets in what comes back. Never retries a reply, however bad.

use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use super::{ChatModel, ChatReply, ChatRequest, ModelError};
use selftest_text::redact::Redactor;

/// Longest wait that a server's `Retry-After` can ask for.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// A provider's model behind its guards.
pub struct Guarded {
    pub(crate) inner: Arc<dyn ChatModel>,
    /// Shared by all models of one endpoint.
    pub(crate) places: Arc<Semaphore>,
    /// Further calls after the first.
    pub(crate) max_retries: u32,
    /// A server may repeat a key in its answer.
    pub(crate) redactor: Arc<Redactor>,
}

impl Guarded {
    fn redact(&self, error: ModelError) -> ModelError {
        error.map_words(|words| self.redactor.apply(&words).into_owned())
    }

    async fn call(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let mut reply = self.inner.chat(request).await.map_err(|error| self.redact(error))?;
        reply.text = self.redactor.apply(&reply.text).into_owned();
        Ok(reply)
    }
}

impl ChatModel for Guarded {
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
        Box::pin(async move {
            let closed = |_| ModelError::engine("the queue of model calls is closed".into(), None);
            let _place = self.places.acquire().await.map_err(closed)?;
            (|| self.call(request))
                .retry(backoff)
                .when(ModelError::is_transient)
                .adjust(|error, wait| {
                    wait.map(|wait| error.retry_after().unwrap_or(wait).min(MAX_WAIT))
                })
                .notify(|error, wait| {
                    tracing::warn!("{error}; trying again in {:.1} s", wait.as_secs_f64());
                })
                .await
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { self.inner.check().await.map_err(|error| self.redact(error)) })
    }

    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        self.inner.context_limit()
    }

    fn fingerprint(&self) -> BoxFuture<'_, Option<String>> {
        self.inner.fingerprint()
    }

    fn tells_probabilities(&self) -> BoxFuture<'_, bool> {
        self.inner.tells_probabilities()
    }
}
