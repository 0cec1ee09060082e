//! The tables `job_runs` and `job_leases`: runs of the scheduled jobs, and the leases for running
//! them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::row::{Columns, Rows, record};
use super::statement::{ToValue as _, params};
use super::{Store, StoreError, bound};

/// One run of a scheduled job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRun {
    /// Job name.
    pub job: String,
    /// Time at which it was due or requested.
    pub slot: Timestamp,
    /// Worker that runs or ran it.
    pub worker: String,
    /// Attempt number, starting at 1. It is higher if earlier workers died during the run.
    pub attempt: u32,
    /// Time at which the worker started it.
    pub started_at: Timestamp,
    /// Time at which it finished; `None` while it runs and after its worker died.
    pub ended_at: Option<Timestamp>,
    /// Summary as JSON, not validated.
    pub summary_json: Option<String>,
}

record!(JobRun, "job_runs", {
    job,
    slot,
    worker,
    attempt,
    started_at,
    ended_at,
    summary_json,
});

impl Store {
    /// Records that a worker starts a job's run for a slot, and returns the number of the attempt.
    /// Returns `None` if that run has already finished.
    pub async fn start_job(
        &self,
        job: &str,
        slot: Timestamp,
        worker: &str,
        now: Timestamp,
    ) -> Result<Option<u32>, StoreError> {
        // Only an unfinished run is taken over. A finished one yields no row, hence `None`.
        let query = "INSERT INTO job_runs (job, slot, worker, attempt, started_at) \
                     VALUES ($1, $2, $3, 1, $4) ON CONFLICT (job, slot) DO UPDATE SET \
                     worker = excluded.worker, attempt = job_runs.attempt + 1, \
                     started_at = excluded.started_at WHERE job_runs.ended_at IS NULL \
                     RETURNING attempt";
        let values = params![job, slot, worker, now];
        self.fetch_one("the run of a job", query, values, |row| row.get("attempt")).await
    }

    /// Saves the result of a job run; `status` is the status in the summary.
    pub async fn finish_job(
        &self,
        job: &str,
        slot: Timestamp,
        now: Timestamp,
        status: &str,
        summary_json: &str,
    ) -> Result<(), StoreError> {
        let query = "UPDATE job_runs SET ended_at = $3, status = $4, summary_json = $5 \
                     WHERE job = $1 AND slot = $2";
        // A summary that is too long becomes null, because truncated JSON is invalid.
        let summary_json = bound::whole(Some(summary_json)).to_value(bound::JSON);
        self.execute(query, params![job, slot, now, status, summary_json]).await.map(drop)
    }

    /// Returns the latest finished slot of each job, up to `until`. The limit ignores runs of a
    /// machine whose clock was ahead, until their time has come.
    pub async fn finished_slots(
        &self,
        until: Timestamp,
    ) -> Result<BTreeMap<String, Timestamp>, StoreError> {
        let query = "SELECT job, MAX(slot) AS slot FROM job_runs \
                     WHERE ended_at IS NOT NULL AND slot <= $1 GROUP BY job";
        let read = |row: &Columns<'_>| Ok((row.get("job")?, row.get("slot")?));
        Ok(self.fetch(query, params![until], read).await?.items.into_iter().collect())
    }

    /// Returns the newest run of each job.
    pub async fn last_job_runs(&self) -> Result<Rows<JobRun>, StoreError> {
        let query = "WHERE slot = (SELECT MAX(slot) FROM job_runs AS newest \
                     WHERE newest.job = job_runs.job) ORDER BY job";
        self.find(query, []).await
    }

    /// Acquires or renews the lease of that name. Returns false if another holder sent a heartbeat
    /// within `dead_after`.
    pub async fn take_lease(
        &self,
        name: &str,
        holder: &str,
        dead_after: Duration,
    ) -> Result<bool, StoreError> {
        // The database's clock, because the clocks of machines differ.
        let now = self.engine.now_expression();
        let query = format!(
            "INSERT INTO job_leases (name, holder, seen) VALUES ($1, $2, {now}) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, seen = excluded.seen \
             WHERE job_leases.holder = excluded.holder OR job_leases.seen < excluded.seen - $3"
        );
        // Without a changed row, another live holder has the lease.
        Ok(self.execute(query, params![name, holder, dead_after.as_secs()]).await? > 0)
    }

    /// Sends a heartbeat for a lease. Returns false if another holder has taken it.
    pub async fn renew_lease(&self, name: &str, holder: &str) -> Result<bool, StoreError> {
        let now = self.engine.now_expression();
        let query = format!("UPDATE job_leases SET seen = {now} WHERE name = $1 AND holder = $2");
        Ok(self.execute(query, params![name, holder]).await? > 0)
    }

    /// Releases a lease; does nothing if another holder has it.
    pub async fn release_lease(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        let query = "DELETE FROM job_leases WHERE name = $1 AND holder = $2";
        self.execute(query, params![name, holder]).await.map(drop)
    }

    /// Releases all leases of a holder.
    pub async fn release_leases_of(&self, holder: &str) -> Result<(), StoreError> {
        let query = "DELETE FROM job_leases WHERE holder = $1";
        self.execute(query, params![holder]).await.map(drop)
    }

    /// Returns the holder of a lease if it sent a heartbeat within `dead_after`.
    pub async fn lease_holder(
        &self,
        name: &str,
        dead_after: Duration,
    ) -> Result<Option<String>, StoreError> {
        let now = self.engine.now_expression();
        let query = format!("SELECT holder FROM job_leases WHERE name = $1 AND seen >= {now} - $2");
        let values = params![name, dead_after.as_secs()];
        self.fetch_one("the lease", query, values, |row| row.get("holder")).await
    }
}
