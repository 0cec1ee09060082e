//! The clock: the only place that asks the system for the date.
//!
//! `SELFTEST_NOW` sets it, for tests and reproducible reports; it runs on from there. Durations are
//! measured with `Instant`; leases in a database go by the clock of the database, which all
//! processes share, and the ages of files by that of the file system.

use std::sync::OnceLock;

use jiff::{SignedDuration, Timestamp};

/// The variable with the time at which the process believes to start.
pub const VARIABLE: &str = "SELFTEST_NOW";

/// Characters of a wrong value in the message.
const MAX_SHOWN: usize = 60;

/// How far this clock is ahead of the system's.
static AHEAD: OnceLock<SignedDuration> = OnceLock::new();

/// The value of [`VARIABLE`] cannot be read as a time.
#[derive(Debug, thiserror::Error)]
#[error("{VARIABLE}={value:?} is not a valid time: {reason}")]
pub struct InvalidTime {
    value: String,
    reason: jiff::Error,
}

/// Sets the clock as [`VARIABLE`] says; to be called once, before anything asks for the time.
/// Without the variable, or where it is empty, the clock is the system's.
pub fn set_from_environment() -> Result<(), InvalidTime> {
    let value = std::env::var(VARIABLE).unwrap_or_default();
    if value.is_empty() {
        return Ok(());
    }
    match value.parse::<Timestamp>() {
        Ok(start) => {
            AHEAD.get_or_init(|| start.duration_since(system()));
            Ok(())
        }
        Err(reason) => {
            let value = value.chars().take(MAX_SHOWN).collect();
            Err(InvalidTime { value, reason })
        }
    }
}

/// The present time.
pub fn now() -> Timestamp {
    let now = system();
    AHEAD.get().and_then(|ahead| now.checked_add(*ahead).ok()).unwrap_or(now)
}

#[expect(clippy::disallowed_methods, reason = "the one place")]
fn system() -> Timestamp {
    Timestamp::now()
}
