//! Claims on grading a session with a model: at most one process holds a claim, across all
//! processes on the database.

use std::mem::take;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::QualityGrader;
use selftest_store::{Store, StoreError};
use selftest_text::digest;

/// Number of missed heartbeats after which a process counts as dead and others may grade the
/// session.
const MAX_MISSED: u32 = 3;

/// A held claim. Release it with [`GradingClaim::release`]. A dropped claim is released shortly after, and
/// one of a killed process expires when its heartbeats stop.
#[derive(Debug)]
pub(crate) struct GradingClaim {
    store: Store,
    name: String,
    holder: String,
    heart: JoinHandle<()>,
    is_held: bool,
}

/// Returns a unique holder name; process ids alone are reused.
pub(super) fn unique_holder() -> String {
    format!("grader-{}-{:016x}", std::process::id(), rand::random::<u64>())
}

impl QualityGrader {
    /// Claims a session; returns `None` while another process has it.
    pub(crate) async fn claim(
        &self,
        session_id: &str,
        heartbeat: Duration,
    ) -> Result<Option<GradingClaim>, StoreError> {
        let rubric = selftest_grading::grade::quality::rubric_version(&self.library);
        let about = format!("{}\0{rubric}\0{session_id}", self.model.id());
        // A digest has a fixed length, however long the ids are.
        let name = format!("grading {}", digest::sha256_hex(about.as_bytes()));
        if !self.store.take_lease(&name, &self.holder, MAX_MISSED * heartbeat).await? {
            return Ok(None);
        }
        let (store, holder) = (self.store.clone(), self.holder.clone());
        let heart =
            tokio::spawn(send_heartbeats(store.clone(), name.clone(), holder.clone(), heartbeat));
        Ok(Some(GradingClaim { store, name, holder, heart, is_held: true }))
    }

    /// Releases all claims of this grader after gradings were cancelled.
    pub async fn release_claims(&self) -> Result<(), StoreError> {
        self.store.release_leases_of(&self.holder).await
    }
}

impl GradingClaim {
    pub(crate) async fn release(mut self) -> Result<(), StoreError> {
        self.is_held = false;
        self.store.release_lease(&self.name, &self.holder).await
    }
}

impl Drop for GradingClaim {
    fn drop(&mut self) {
        self.heart.abort();
        if self.is_held
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (store, name, holder) =
                (self.store.clone(), take(&mut self.name), take(&mut self.holder));
            runtime.spawn(async move { store.release_lease(&name, &holder).await });
        }
    }
}

/// Sends heartbeats. If the database fails for longer than the timeout, the claim is lost; at worst
/// the session is graded twice and the second grade replaces the first.
async fn send_heartbeats(store: Store, name: String, holder: String, heartbeat: Duration) {
    loop {
        sleep(heartbeat).await;
        if let Err(error) = store.renew_lease(&name, &holder).await {
            tracing::warn!("no heartbeat could be sent: {error}");
        }
    }
}
