//! Guards around provider calls: a concurrency limit per endpoint, retries of transient failures, a
//! circuit breaker, and redaction of secrets in replies. Replies are never retried, however bad.
//!
//! Texts that many calls share, such as instructions and files shown to an assistant, are redacted
//! once and cached.
//!
//! The breaker decides from the outcomes of calls when to give up on a server. It makes no calls and
//! reads no clock; callers pass the time in.
//!
//! A caller states the time by which it needs an answer with [`within_deadline`]. Its own timeout would
//! end a call in the middle of a wait for a server, and nothing would say why. A wait that would end too
//! late is not started instead.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use super::error::FailureScope;
use super::{ChatModel, ChatReply, ChatRequest, ModelError};
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
                // Asked often, so that a server that is back is soon found.
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
        let left = time_left();
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

/// Time after which one call may retry a server that was given up. Most runs have ended by then,
/// but a worker that runs for weeks needs its model back.
const OPEN_DURATION: Duration = Duration::from_mins(1);

/// Minimum number of consecutive unanswered calls before giving up on a reachable server: some
/// servers fail only on some requests.
const MIN_FAILURES: usize = 5;

/// Limits of a breaker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BreakerLimits {
    /// Maximum number of further calls after the first, regardless of how long they take.
    pub(crate) max_retries: u32,
    /// Time to wait for an unresponsive server, which may be restarting.
    pub(crate) restart_time: Duration,
    /// Number of concurrent calls. That many can fail at once by chance, so a reachable server is
    /// given up only after more consecutive failures than this, and at least five.
    pub(crate) concurrency: usize,
}

/// The circuit breaker of one endpoint.
#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    patience: BreakerLimits,
    state: Mutex<BreakerState>,
    outages: Arc<Outages>,
}

#[derive(Debug, Default)]
struct BreakerState {
    /// Time of the last answer of any kind.
    last_answer: Option<Instant>,
    /// Start of the current series of unanswered calls.
    failing_since: Option<Instant>,
    /// Number of consecutive calls that were given up.
    consecutive_failures: usize,
    /// Set after the server was given up: the reason, and when one call may retry it.
    open: Option<(String, Instant)>,
}

/// Endpoints that were given up.
#[derive(Debug, Default)]
pub struct Outages(Mutex<Option<String>>);

impl Outages {
    /// Returns the first endpoint that was given up, and the reason, on one line.
    pub fn first(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that something which every case needs gives no answer any more.
    pub fn record(&self, words: &str) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| words.to_owned());
    }
}

impl CircuitBreaker {
    pub(crate) fn new(patience: BreakerLimits, outages: Arc<Outages>) -> Self {
        Self { patience, state: Mutex::default(), outages }
    }

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a call may be made now.
    ///
    /// # Errors
    /// Fails with [`ModelError::CircuitOpen`] if the server was given up.
    pub(crate) fn admit(&self, now: Instant) -> Result<(), ModelError> {
        match &mut self.state().open {
            Some((why, until)) if now < *until => Err(ModelError::CircuitOpen { why: why.clone() }),
            // Moving the deadline lets only this one call through.
            Some((_, until)) => {
                *until = now + OPEN_DURATION;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Records that the server answered, even if with an error specific to the call.
    pub(crate) fn record_answer(&self, now: Instant) {
        // Closes an open breaker as well: the call that was let through found the server alive.
        *self.state() = BreakerState { last_answer: Some(now), ..BreakerState::default() };
    }

    /// Records an unanswered call; `since` is when this call first found the server unresponsive.
    pub(crate) fn record_failure(&self, since: Instant) {
        let mut state = self.state();
        // Concurrent calls can report out of order.
        let since = state.failing_since.map_or(since, |earlier| earlier.min(since));
        state.failing_since = Some(since);
    }

    /// Returns true if a call reported to [`CircuitBreaker::record_failure`] may be retried after this many
    /// retries.
    pub(crate) fn allows_retry(&self, since: Instant, retries: u32, now: Instant) -> bool {
        let state = self.state();
        if state.open.is_some() {
            return false;
        }
        // A server that answers other calls is not restarting, so that waiting for it would only
        // delay the verdict that this call fails.
        let serves_others = state.last_answer.is_some_and(|answered| answered > since);
        // While the server may be restarting, the number of retries is not limited.
        retries < self.patience.max_retries || (!serves_others && !self.has_waited(&state, now))
    }

    /// Returns true if a restarting server should have answered by now.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        let state = self.state();
        state.open.is_some() || self.has_waited(&state, now)
    }

    fn has_waited(&self, state: &BreakerState, now: Instant) -> bool {
        let since = state.failing_since.unwrap_or(now);
        now.saturating_duration_since(since) >= self.patience.restart_time
    }

    /// Gives up on a call. Also gives up on the server, unless it is reachable (`present`) and too
    /// few calls have failed to rule out a problem with single calls. `why` is the last error.
    pub(crate) fn give_up(&self, present: bool, why: &str, now: Instant) {
        let mut state = self.state();
        state.consecutive_failures += 1;
        // With eight calls in flight one hiccup fails eight in a row. Only the ninth is evidence.
        let enough = MIN_FAILURES.max(self.patience.concurrency + 1);
        if state.open.is_some() || (present && state.consecutive_failures < enough) {
            return;
        }
        let since = state.failing_since.unwrap_or(now);
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        let words = if present {
            format!(
                "{why}; given up after {} calls in a row without an answer",
                state.consecutive_failures
            )
        } else if seconds < 1.0 {
            format!("{why}; given up")
        } else {
            format!("{why}; given up after {seconds:.0} s")
        };
        // The run ends on the first recorded outage: what would be left are cases that all report
        // this same sentence.
        self.outages.record(&words);
        state.open = Some((words, now + OPEN_DURATION));
    }
}

tokio::task_local! {
    static DEADLINE: Option<Instant>;
}

/// Runs a call that is dropped after `limit`.
pub async fn within_deadline<T>(limit: Duration, call: impl Future<Output = T>) -> T {
    // A limit beyond the range of the clock is none.
    DEADLINE.scope(Instant::now().checked_add(limit), call).await
}

/// Returns the time that the current call has left, or `None` if it has no limit.
pub fn time_left() -> Option<Duration> {
    let deadline = DEADLINE.try_with(|deadline| *deadline).ok().flatten()?;
    Some(deadline.saturating_duration_since(Instant::now()))
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

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker(max_retries: u32, calls_at_once: usize) -> (CircuitBreaker, Arc<Outages>) {
        let outages = Arc::new(Outages::default());
        let patience =
            BreakerLimits { max_retries, restart_time: 10 * SECOND, concurrency: calls_at_once };
        (CircuitBreaker::new(patience, Arc::clone(&outages)), outages)
    }

    #[test]
    fn a_server_that_comes_back_in_time_loses_nothing() {
        let (breaker, outages) = breaker(0, 1);
        let start = Instant::now();
        breaker.record_failure(start);
        assert!(breaker.allows_retry(start, 50, start + 9 * SECOND));
        breaker.record_answer(start + 9 * SECOND);
        // The next failure starts a new series.
        let later = start + 20 * SECOND;
        breaker.record_failure(later);
        assert!(breaker.allows_retry(later, 0, later + 9 * SECOND));
        assert_eq!(outages.first(), None);
    }

    #[test]
    fn a_server_that_is_gone_is_given_up_when_both_time_and_retries_are_used_up() {
        let (breaker, outages) = breaker(3, 1);
        let start = Instant::now();
        breaker.record_failure(start);
        assert!(breaker.allows_retry(start, 3, start + 9 * SECOND), "time is left");
        assert!(breaker.allows_retry(start, 2, start + 60 * SECOND), "a retry is left");
        let end = start + 11 * SECOND;
        assert!(!breaker.allows_retry(start, 3, end));
        assert!(breaker.admit(end).is_ok(), "not given up yet");
        breaker.give_up(false, "cannot reach x", end);
        assert_eq!(outages.first().as_deref(), Some("cannot reach x; given up after 11 s"));
        let refused = breaker.admit(end).unwrap_err();
        assert_eq!(refused.to_string(), "cannot reach x; given up after 11 s");
        assert!(!breaker.allows_retry(end, 0, end), "calls that are under way end too");
    }

    #[test]
    fn one_call_without_an_answer_says_nothing_of_a_server_that_is_there() {
        let (breaker, outages) = breaker(0, 1);
        let start = Instant::now();
        for _ in 0..3 {
            breaker.record_failure(start);
            breaker.give_up(true, "x answered 500", start);
            assert!(breaker.admit(start).is_ok());
            breaker.record_answer(start);
        }
        (0..5).for_each(|_| breaker.give_up(true, "x answered 500", start));
        let words = outages.first().unwrap();
        assert_eq!(words, "x answered 500; given up after 5 calls in a row without an answer");
    }

    #[test]
    fn calls_that_were_under_way_together_count_as_one() {
        let (breaker, outages) = breaker(0, 8);
        let start = Instant::now();
        (0..8).for_each(|_| breaker.give_up(true, "x", start));
        assert_eq!(outages.first(), None);
        breaker.give_up(true, "x", start);
        assert!(outages.first().is_some());
    }

    #[test]
    fn a_server_that_answers_others_is_not_waited_for() {
        let (breaker, _) = breaker(1, 8);
        let start = Instant::now();
        breaker.record_failure(start);
        breaker.record_answer(start + SECOND);
        breaker.record_failure(start + SECOND);
        assert!(breaker.allows_retry(start, 0, start + 2 * SECOND));
        assert!(!breaker.allows_retry(start, 1, start + 2 * SECOND));
    }

    #[test]
    fn after_a_rest_one_call_tries_again() {
        let (breaker, outages) = breaker(3, 1);
        let start = Instant::now();
        breaker.give_up(false, "gone", start);
        let rested = start + OPEN_DURATION;
        assert!(breaker.admit(rested).is_ok());
        assert!(breaker.admit(rested).is_err(), "one only");
        breaker.record_failure(rested);
        assert!(!breaker.allows_retry(rested, 0, rested), "and once only");
        breaker.give_up(false, "gone", rested);
        let again = rested + OPEN_DURATION;
        assert!(breaker.admit(again).is_ok());
        breaker.record_answer(again);
        assert!(breaker.admit(again).is_ok() && breaker.admit(again).is_ok());
        assert_eq!(outages.first().as_deref(), Some("gone; given up"), "what happened stays");
    }

    #[test]
    fn silence_is_overdue_when_a_restart_would_be_done() {
        let (breaker, _) = breaker(3, 1);
        let start = Instant::now();
        breaker.record_failure(start);
        assert!(!breaker.is_overdue(start + 9 * SECOND));
        assert!(breaker.is_overdue(start + 10 * SECOND));
    }

    #[tokio::test]
    async fn the_time_is_that_of_the_innermost_call() {
        assert_eq!(time_left(), None);
        let hour = Duration::from_hours(1);
        within_deadline(hour, async {
            assert!(time_left().is_some_and(|left| left <= hour));
            let inner = within_deadline(Duration::ZERO, async { time_left() }).await;
            assert_eq!(inner, Some(Duration::ZERO));
        })
        .await;
        assert_eq!(within_deadline(Duration::MAX, async { time_left() }).await, None);
    }
}
