//! One limit of calls at once per endpoint, shared by all models behind it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use super::{ChatModel, ChatReply, ChatRequest, ModelError};

/// A model whose calls wait for a free place at their endpoint.
pub struct Limited {
    inner: Arc<dyn ChatModel>,
    places: Arc<Semaphore>,
}

impl Limited {
    /// Models of one endpoint share `places`.
    pub fn new(inner: Arc<dyn ChatModel>, places: Arc<Semaphore>) -> Self {
        Self { inner, places }
    }
}

impl ChatModel for Limited {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let _place = self.places.acquire().await.map_err(|_| ModelError::Engine {
                what: "the queue of model calls is closed".to_owned(),
                hint: None,
            })?;
            self.inner.chat(request).await
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        self.inner.check()
    }

    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        self.inner.context_limit()
    }
}
