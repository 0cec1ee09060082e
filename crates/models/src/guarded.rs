//! Guards around provider calls: a concurrency limit per endpoint, retries of transient failures, a
//! circuit breaker, and redaction of secrets in replies. Replies are never retried, however bad.
//!
//! Texts that many calls share, such as instructions and files shown to an assistant, are redacted
//! once and cached.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use super::breaker::CircuitBreaker;
use super::error::FailureScope;
use super::{ChatModel, ChatReply, ChatRequest, ModelError, deadline};
use selftest_text::redact::Redactor;

/// Maximum wait that a server's `Retry-After` can request.
/// A minute is the window of most providers' limits of tokens and requests.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// Longest `Retry-After` after which a server is asked again at all.
const MAX_HONOURED: Duration = Duration::from_mins(5);
/// Maximum wait between attempts to reach a server that may be restarting.
const RESTART_WAIT: Duration = Duration::from_secs(2);
/// Time limit for a health check of a server that just failed to answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// State shared by all models of one endpoint.
pub(crate) struct EndpointGate {
    pub(crate) permits: Semaphore,
    pub(crate) breaker: CircuitBreaker,
}

/// A provider's model behind its guards.
pub struct GuardedModel {
    pub(crate) inner: Arc<dyn ChatModel>,
    pub(crate) gate: Arc<EndpointGate>,
    /// Needed because a server may repeat an API key in its response.
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) redactions: RedactionCache,
}

impl GuardedModel {
    fn redact_error(&self, error: ModelError) -> ModelError {
        error.map_message(|words| self.redactor.apply(&words).into_owned())
    }

    async fn call(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let mut reply = self.inner.chat(request).await.map_err(|error| self.redact_error(error))?;
        // The first token of a reply is no reply.
        if request.first_token.is_none() {
            reply.take_thinking_off();
        }
        reply.text = self.redactor.apply(&reply.text).into_owned();
        reply.raw_text = reply.raw_text.map(|raw| self.redactor.apply(&raw).into_owned());
        Ok(reply)
    }

    async fn call_with_retries(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let breaker = &self.gate.breaker;
        let mut waits = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(Duration::from_millis(250))
            .with_max_delay(Duration::from_secs(20))
            // The breaker limits the number of retries.
            .without_max_times()
            .build();
        let mut retries = 0;
        let mut failing_since = None;
        loop {
            let began = Instant::now();
            // Checked before each attempt, because other calls can open the breaker meanwhile.
            breaker.admit(began)?;
            let error = match self.call(request).await {
                Ok(reply) => {
                    breaker.record_answer(Instant::now());
                    return Ok(reply);
                }
                Err(error) => error,
            };
            // A silent server has been unresponsive since the call started.
            let since = *failing_since.get_or_insert(match error.scope() {
                FailureScope::NoAnswer => began,
                _ => Instant::now(),
            });
            if !self.should_retry(&error, since, retries).await {
                return Err(match (error.scope(), breaker.admit(Instant::now())) {
                    // The engine's message does not state that it is unusable.
                    (FailureScope::Engine, Err(refused)) => refused,
                    _ => error,
                });
            }
            let wait = waits.next().unwrap_or(RESTART_WAIT);
            let restarts =
                error.scope() != FailureScope::Request && !breaker.is_overdue(Instant::now());
            let wait = match error.retry_after() {
                Some(asked) => asked.min(MAX_WAIT),
                None if restarts => wait.min(RESTART_WAIT),
                None => wait,
            };
            if let Some(error) = self.wait_error(&error, wait) {
                return Err(error);
            }
            tracing::warn!("{error}; trying again in {:.1} s", wait.as_secs_f64());
            tokio::time::sleep(wait).await;
            retries += 1;
        }
    }

    /// Returns the error of a call whose next attempt would come too late.
    fn wait_error(&self, error: &ModelError, wait: Duration) -> Option<ModelError> {
        let asked = error.retry_after();
        // The deadline is that of the whole case. Sleeping into it would blame the model for a
        // timeout that the server had announced.
        let left = deadline::time_left();
        let is_late = left.is_some_and(|left| asked.unwrap_or(wait) >= left);
        let is_long = asked.is_some_and(|asked| asked > MAX_HONOURED);
        if !is_late && !is_long {
            return None;
        }
        let Some(asked) = asked else { return Some(error.clone()) };
        let limit = left.map_or(MAX_HONOURED, |left| left.min(MAX_HONOURED));
        let late = ModelError::WaitTooLong { why: error.to_string(), asked, limit };
        if is_long {
            // Other calls would be refused as well.
            self.give_up(false, &late);
        }
        Some(late)
    }

    /// Reports an error to the breaker. Returns true if the call may be retried.
    async fn should_retry(&self, error: &ModelError, since: Instant, retries: u32) -> bool {
        let breaker = &self.gate.breaker;
        match error.scope() {
            FailureScope::Request => {
                breaker.record_answer(Instant::now());
                // For example 429; waiting for a restart would be pointless.
                error.is_transient() && breaker.allows_retry(since, retries, Instant::now())
            }
            FailureScope::Connection => {
                breaker.record_failure(since);
                if breaker.allows_retry(since, retries, Instant::now()) {
                    return true;
                }
                self.give_up(self.is_reachable().await, error)
            }
            FailureScope::NoAnswer => {
                breaker.record_failure(since);
                let present = self.is_reachable().await;
                // A reachable server is slow and would time out again.
                if !present && !breaker.is_overdue(Instant::now()) {
                    return true;
                }
                self.give_up(present, error)
            }
            FailureScope::NotModelServer => {
                breaker.record_failure(since);
                self.give_up(true, error)
            }
            FailureScope::EveryRequest => {
                breaker.record_failure(since);
                self.give_up(false, error)
            }
            // A failed engine may still work for other prompts. If it does not even answer its own
            // check, every further call would fail alike, after minutes of computation.
            FailureScope::Engine => {
                if self.inner.check().await.is_err() {
                    self.give_up(false, error);
                }
                false
            }
        }
    }

    /// Reports the failure to the breaker. Always returns false: no retry.
    fn give_up(&self, present: bool, error: &ModelError) -> bool {
        self.gate.breaker.give_up(present, &error.to_string(), Instant::now());
        false
    }

    /// Returns true if the server answers a cheap request.
    async fn is_reachable(&self) -> bool {
        tokio::time::timeout(CHECK_TIMEOUT, self.inner.check())
            .await
            .is_ok_and(|answer| answer.is_ok())
    }
}

impl ChatModel for GuardedModel {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        Box::pin(async move {
            let closed = |_| ModelError::engine("the queue of model calls is closed".into(), None);
            // The permit is held through all retries: a waiting call that let others pass would
            // only give a struggling server more to do.
            let _place = self.gate.permits.acquire().await.map_err(closed)?;
            self.call_with_retries(request).await
        })
    }

    fn check(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        Box::pin(async { self.inner.check().await.map_err(|error| self.redact_error(error)) })
    }

    fn supports_lazy_check(&self) -> bool {
        self.inner.supports_lazy_check()
    }

    fn context_limit(&self) -> BoxFuture<'_, Option<u32>> {
        self.inner.context_limit()
    }

    fn fingerprint(&self) -> BoxFuture<'_, Option<String>> {
        self.inner.fingerprint()
    }

    fn supports_logprobs(&self) -> BoxFuture<'_, bool> {
        self.inner.supports_logprobs()
    }

    fn supports_decisions(&self) -> BoxFuture<'_, bool> {
        self.inner.supports_decisions()
    }

    fn supports_scoring(&self) -> bool {
        self.inner.supports_scoring()
    }

    fn redact(&self, text: &Arc<str>) -> Arc<str> {
        self.redactions.get_or_insert_with(text, |text| self.redactor.apply(text))
    }
}

/// Maximum number of cached texts; more than there are roles with instructions.
const MAX_ENTRIES: usize = 16;
/// Minimum length in bytes of a text to cache.
const MIN_BYTES: usize = 512;

/// Cached texts with their results, most recently used first.
#[derive(Default)]
pub(crate) struct RedactionCache(Mutex<VecDeque<(Arc<str>, Arc<str>)>>);

impl RedactionCache {
    /// Returns the result of `make` for a text, from the cache if possible.
    pub(crate) fn get_or_insert_with(
        &self,
        text: &Arc<str>,
        make: impl FnOnce(&str) -> Cow<'_, str>,
    ) -> Arc<str> {
        let make = || match make(text) {
            // Unchanged: the text is shared instead of copied.
            Cow::Borrowed(same) if same.len() == text.len() => Arc::clone(text),
            made => made.into(),
        };
        if text.len() < MIN_BYTES {
            return make();
        }
        if let Some(made) = self.get(text) {
            return made;
        }
        let made = make();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // `make` ran without the lock, so two tasks may both insert the same text. The second copy
        // drops out as the oldest entry; waiting for a redaction of megabytes would be worse.
        held.truncate(MAX_ENTRIES - 1);
        held.push_front((Arc::clone(text), Arc::clone(&made)));
        made
    }

    fn get(&self, text: &Arc<str>) -> Option<Arc<str>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = held.iter().position(|(known, _)| known == text)?;
        let found = held.remove(at)?;
        let made = Arc::clone(&found.1);
        held.push_front(found);
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn long(word: &str) -> Arc<str> {
        word.repeat(MIN_BYTES).into()
    }

    #[test]
    fn a_text_that_comes_again_is_made_once_and_shared() {
        let (texts, times) = (RedactionCache::default(), Cell::new(0));
        let made = |text: &Arc<str>| {
            texts.get_or_insert_with(text, |text| {
                times.set(times.get() + 1);
                if text.starts_with('s') { text.replace('s', "*").into() } else { text.into() }
            })
        };
        let (plain, secret) = (made(&long("a")), made(&long("s")));
        assert_eq!((&*plain, &*secret), (&*long("a"), &*long("*")));
        // Other texts come in between, once each.
        for word in ["b", "c", "d"] {
            made(&long(word));
            assert!(Arc::ptr_eq(&made(&long("a")), &plain));
            assert!(Arc::ptr_eq(&made(&long("s")), &secret));
        }
        assert_eq!(times.get(), 5);
        assert_eq!(made(&"s".into()), "*".into());
    }

    #[test]
    fn what_has_not_come_for_long_is_let_go() {
        let texts = RedactionCache::default();
        for number in 0..100 {
            texts.get_or_insert_with(&long(&number.to_string()), |text| text.into());
        }
        assert_eq!(texts.0.lock().unwrap().len(), MAX_ENTRIES);
    }
}
