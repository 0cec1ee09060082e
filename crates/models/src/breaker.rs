//! Circuit breaker for a model endpoint: decides from the outcomes of calls when to give up on a
//! server.
//!
//! Makes no calls and reads no clock; callers pass the time in.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ModelError;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
