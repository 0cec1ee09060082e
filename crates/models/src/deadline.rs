//! The time by which a caller needs an answer, for waits between attempts.
//!
//! The caller's own timeout would end a call that waits for a server in the middle of the wait, and
//! nothing would say why. A wait that ends too late is not begun instead.

use std::time::{Duration, Instant};

tokio::task_local! {
    static DEADLINE: Option<Instant>;
}

/// Runs a call that is dropped after `limit`.
pub async fn within<T>(limit: Duration, call: impl Future<Output = T>) -> T {
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
    use super::*;

    #[tokio::test]
    async fn the_time_is_that_of_the_innermost_call() {
        assert_eq!(time_left(), None);
        let hour = Duration::from_hours(1);
        within(hour, async {
            assert!(time_left().is_some_and(|left| left <= hour));
            let inner = within(Duration::ZERO, async { time_left() }).await;
            assert_eq!(inner, Some(Duration::ZERO));
        })
        .await;
        assert_eq!(within(Duration::MAX, async { time_left() }).await, None);
    }
}
