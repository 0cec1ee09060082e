//! The ways to end a call before its reply is complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{ModelError, Phase};

/// The ways to end a call early; asked between tokens and batches.
pub(super) struct Interrupt {
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) started: Instant,
    pub(super) limit: Duration,
    pub(super) name: String,
}

impl Interrupt {
    /// An error when the call was given up or its time is over.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(ModelError::engine("the call was given up".to_owned(), None));
        }
        if self.started.elapsed() > self.limit {
            return Err(ModelError::Timeout {
                endpoint: self.name.clone(),
                phase: Phase::Total,
                after: self.limit,
            });
        }
        Ok(())
    }
}
