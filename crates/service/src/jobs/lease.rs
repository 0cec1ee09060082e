//! The lease that the worker of scheduled jobs holds. One that dies loses it when its heartbeats
//! stop.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::JobSettings;
use selftest_store::{Store, StoreError};

/// One lease for all scheduled jobs, because they run one after the other.
const NAME: &str = "schedule";

/// A held lease. Release it with [`ScheduleLease::release`]; otherwise other workers wait until the holder
/// counts as dead.
#[derive(Debug)]
pub(super) struct ScheduleLease<'a> {
    store: &'a Store,
    holder: &'a str,
    heartbeat: Duration,
    dead_after: Duration,
}

impl<'a> ScheduleLease<'a> {
    /// Acquires the lease; returns `None` while another worker has it.
    pub(super) async fn acquire(
        store: &'a Store,
        holder: &'a str,
        settings: &JobSettings,
    ) -> Result<Option<Self>, StoreError> {
        let (heartbeat, dead_after) = (settings.heartbeat(), settings.dead_after());
        let taken = store.take_lease(NAME, holder, dead_after).await?;
        Ok(taken.then_some(Self { store, holder, heartbeat, dead_after }))
    }

    /// Returns the current holder.
    pub(super) async fn holder(
        store: &Store,
        settings: &JobSettings,
    ) -> Result<Option<String>, StoreError> {
        store.lease_holder(NAME, settings.dead_after()).await
    }

    /// Runs `work` under the lease. Returns `None` and cancels the work if the lease is lost,
    /// because another worker may have started the same job.
    pub(super) async fn run_while_held<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            // Ends only if the lease is lost. The work is then dropped, because another worker
            // repeats it.
            () = self.send_heartbeats() => None,
        }
    }

    /// Sends heartbeats until the lease is lost.
    async fn send_heartbeats(&self) {
        let mut last = Instant::now();
        loop {
            sleep(self.heartbeat).await;
            match self.store.renew_lease(NAME, self.holder).await {
                Ok(true) => last = Instant::now(),
                // The database may only be restarting.
                Err(error) if last.elapsed() < self.dead_after => {
                    tracing::warn!("no heartbeat could be sent: {error}");
                }
                // After `dead_after` others may take the lease, whether the database answers here
                // or not.
                Ok(false) | Err(_) => return,
            }
        }
    }

    pub(super) async fn release(self) -> Result<(), StoreError> {
        Self::release_of(self.store, self.holder).await
    }

    /// Releases the lease if that holder has it.
    pub(super) async fn release_of(store: &Store, holder: &str) -> Result<(), StoreError> {
        store.release_lease(NAME, holder).await
    }
}
