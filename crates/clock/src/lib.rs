//! The clock: the only place that reads the system time.
//!
//! `SELFTEST_NOW` sets the start time for tests and reproducible reports, and the clock advances
//! from it. Durations are measured with `Instant`. Database leases use the database's clock, which
//! all processes share, and file ages use the file system's.

use std::sync::OnceLock;

use jiff::{SignedDuration, Timestamp};

/// Environment variable that sets the time at process start.
pub const NOW_VARIABLE: &str = "SELFTEST_NOW";

/// Maximum number of characters of an invalid value to show in the error.
const MAX_SHOWN: usize = 60;

/// Offset of this clock from the system clock.
static OFFSET: OnceLock<SignedDuration> = OnceLock::new();

/// Error for a [`NOW_VARIABLE`] that does not parse as a time.
#[derive(Debug, thiserror::Error)]
#[error("{NOW_VARIABLE}={value:?} is not a valid time: {reason}")]
pub struct InvalidTimeError {
    value: String,
    reason: jiff::Error,
}

/// Sets the clock from [`NOW_VARIABLE`]. Call this once, before anything reads the time.
///
/// If the variable is unset or empty, the system time is used.
pub fn set_from_environment() -> Result<(), InvalidTimeError> {
    let value = std::env::var(NOW_VARIABLE).unwrap_or_default();
    if value.is_empty() {
        return Ok(());
    }
    match value.parse::<Timestamp>() {
        Ok(start) => {
            OFFSET.get_or_init(|| start.duration_since(system()));
            Ok(())
        }
        Err(reason) => {
            let value = value.chars().take(MAX_SHOWN).collect();
            Err(InvalidTimeError { value, reason })
        }
    }
}

/// Maximum difference between the clocks of machines that share reports or a database.
const MAX_DIFFERENCE: SignedDuration = SignedDuration::from_hours(1);

/// Returns the latest time that another machine's clock may show at this time. A later one was written
/// by a clock that was wrong.
pub fn latest_elsewhere(now: Timestamp) -> Timestamp {
    now.checked_add(MAX_DIFFERENCE).unwrap_or(now)
}

/// Returns the current time.
pub fn now() -> Timestamp {
    let now = system();
    OFFSET.get().and_then(|ahead| now.checked_add(*ahead).ok()).unwrap_or(now)
}

#[expect(clippy::disallowed_methods, reason = "the one place")]
fn system() -> Timestamp {
    Timestamp::now()
}
