//! The right to run scheduled jobs: one worker has it at a time, of all on a database. A worker
//! that dies loses it when its heartbeats are missing.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::job_settings::JobSettings;
use selftest_store::{Store, StoreError};

/// One lease for all scheduled jobs: they run one after the other, in their order.
const NAME: &str = "schedule";

/// The right, while it lasts. To be given back by [`Lease::release`]; otherwise others have to
/// wait until its holder counts as dead.
#[derive(Debug)]
pub(super) struct Lease<'a> {
    store: &'a Store,
    holder: &'a str,
    heartbeat: Duration,
    dead_after: Duration,
}

impl<'a> Lease<'a> {
    /// Takes the lease; `None` while another worker has it.
    pub(super) async fn take(
        store: &'a Store,
        holder: &'a str,
        settings: &JobSettings,
    ) -> Result<Option<Self>, StoreError> {
        let (heartbeat, dead_after) = (settings.heartbeat(), settings.dead_after());
        let taken = store.take_lease(NAME, holder, dead_after).await?;
        Ok(taken.then_some(Self { store, holder, heartbeat, dead_after }))
    }

    /// Who has it.
    pub(super) async fn holder(
        store: &Store,
        settings: &JobSettings,
    ) -> Result<Option<String>, StoreError> {
        store.lease_holder(NAME, settings.dead_after()).await
    }

    /// Works under the lease. `None`, and the work is broken off, when the lease was lost: after
    /// a silence another worker may have begun the same.
    pub(super) async fn hold<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.keep() => None,
        }
    }

    /// Sends heartbeats, and ends when the lease is lost.
    async fn keep(&self) {
        let mut last = Instant::now();
        loop {
            sleep(self.heartbeat).await;
            match self.store.renew_lease(NAME, self.holder).await {
                Ok(true) => last = Instant::now(),
                // A database that is started anew comes back.
                Err(error) if last.elapsed() < self.dead_after => {
                    tracing::warn!("no heartbeat could be sent: {error}");
                }
                Ok(false) | Err(_) => return,
            }
        }
    }

    pub(super) async fn release(self) -> Result<(), StoreError> {
        Self::release_of(self.store, self.holder).await
    }

    /// Gives back the lease of that holder, where it has it.
    pub(super) async fn release_of(store: &Store, holder: &str) -> Result<(), StoreError> {
        store.release_lease(NAME, holder).await
    }
}
