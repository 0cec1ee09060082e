//! Cancellation and time limit of a call to the embedded engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{ModelError, TimeoutPhase};

/// Cancellation flag and time limit of a call, checked between tokens and batches.
pub(super) struct CallInterrupt {
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) started: Instant,
    pub(super) limit: Duration,
    pub(super) name: String,
}

impl CallInterrupt {
    /// Returns an error if the call was cancelled or timed out.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(ModelError::engine("the call was given up".to_owned(), None));
        }
        if self.started.elapsed() > self.limit {
            return Err(ModelError::Timeout {
                endpoint: self.name.clone(),
                phase: TimeoutPhase::Total,
                after: self.limit,
            });
        }
        Ok(())
    }
}
