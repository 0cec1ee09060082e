//! Takes secrets out of what a provider says, before anybody else hears it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{ChatModel, ChatReply, ChatRequest, ModelError};
use selftest_text::redact::Redactor;

/// A model whose replies and errors hold no secrets: a server may say a key back.
pub struct Redacted {
    inner: Arc<dyn ChatModel>,
    redactor: Arc<Redactor>,
}

impl Redacted {
    /// Redacts everything that `inner` says.
    pub fn new(inner: Arc<dyn ChatModel>, redactor: Arc<Redactor>) -> Self {
        Self { inner, redactor }
    }

    fn error(&self, error: ModelError) -> ModelError {
        error.map_words(|words| self.redactor.apply(&words).into_owned())
    }
}

impl ChatModel for Redacted {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let mut reply = self.inner.chat(request).await.map_err(|error| self.error(error))?;
            reply.text = self.redactor.apply(&reply.text).into_owned();
            Ok(reply)
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { self.inner.check().await.map_err(|error| self.error(error)) })
    }

    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        self.inner.context_limit()
    }
}
