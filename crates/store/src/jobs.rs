//! The tables `job_runs` and `job_leases`: what the scheduled jobs did, and who may run them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::row::{Columns, Rows, count, time};
use super::{Store, StoreError, bound};

/// One run of a scheduled job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRun {
    /// Name of the job.
    pub job: String,
    /// The time that it was due, or asked for.
    pub slot: Timestamp,
    /// Which worker runs it, or ran it.
    pub worker: String,
    /// From 1; more when earlier workers died in the middle.
    pub attempt: u32,
    /// When that worker began.
    pub started_at: Timestamp,
    /// When it ended; `None` while it runs and after its worker died.
    pub ended_at: Option<Timestamp>,
    /// The summary; whoever reads it checks it.
    pub summary_json: Option<String>,
}

fn read(row: &Columns<'_>) -> Result<JobRun, String> {
    Ok(JobRun {
        job: row.text("job")?,
        slot: row.time("slot")?,
        worker: row.text("worker")?,
        attempt: row.number("attempt")?,
        started_at: row.time("started_at")?,
        ended_at: row.optional_time("ended_at"),
        summary_json: row.optional_text("summary_json"),
    })
}

const COLUMNS: &str = "job, slot, worker, attempt, started_at, ended_at, summary_json";

impl Store {
    /// Notes that a worker begins the run of a job for that time: the number of the attempt.
    /// `None` when the run has ended already.
    pub async fn begin_job(
        &self,
        job: &str,
        slot: Timestamp,
        worker: &str,
        now: Timestamp,
    ) -> Result<Option<u32>, StoreError> {
        let query = "INSERT INTO job_runs (job, slot, worker, attempt, started_at) \
                     VALUES ($1, $2, $3, 1, $4) ON CONFLICT (job, slot) DO UPDATE SET \
                     worker = excluded.worker, attempt = job_runs.attempt + 1, \
                     started_at = excluded.started_at WHERE job_runs.ended_at IS NULL";
        let done = sqlx::query(query)
            .bind(bound::text(job, bound::NAME))
            .bind(time(slot))
            .bind(bound::text(worker, bound::NAME))
            .bind(time(now))
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        if done.rows_affected() == 0 {
            return Ok(None);
        }
        let query = sqlx::query("SELECT attempt FROM job_runs WHERE job = $1 AND slot = $2");
        let query = query.bind(bound::text(job, bound::NAME)).bind(time(slot));
        self.fetch_one(query, || format!("the run of {job}"), |row| row.number("attempt")).await
    }

    /// Keeps what the run of a job came to; `status` is that of the summary.
    pub async fn end_job(
        &self,
        job: &str,
        slot: Timestamp,
        now: Timestamp,
        status: &str,
        summary_json: &str,
    ) -> Result<(), StoreError> {
        let query = "UPDATE job_runs SET ended_at = $3, status = $4, summary_json = $5 \
                     WHERE job = $1 AND slot = $2";
        sqlx::query(query)
            .bind(bound::text(job, bound::NAME))
            .bind(time(slot))
            .bind(time(now))
            .bind(status.to_owned())
            .bind(bound::json(Some(summary_json)))
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|error| self.failed(error))
    }

    /// For each job the latest time for which it has run to its end.
    pub async fn jobs_ended(&self) -> Result<BTreeMap<String, Timestamp>, StoreError> {
        let query = "SELECT job, MAX(slot) AS slot FROM job_runs \
                     WHERE ended_at IS NOT NULL GROUP BY job";
        let rows =
            self.fetch(sqlx::query(query), |row| Ok((row.text("job")?, row.time("slot")?))).await?;
        Ok(rows.items.into_iter().collect())
    }

    /// The newest run of each job.
    pub async fn last_job_runs(&self) -> Result<Rows<JobRun>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM job_runs AS run WHERE slot = \
             (SELECT MAX(slot) FROM job_runs AS newest WHERE newest.job = run.job) ORDER BY job"
        );
        self.fetch(sqlx::query(sqlx::AssertSqlSafe(query)), read).await
    }

    /// Takes the lease of that name, or renews one's own: `false` when another holder has given
    /// a sign of life within `dead_after`.
    pub async fn take_lease(
        &self,
        name: &str,
        holder: &str,
        dead_after: Duration,
    ) -> Result<bool, StoreError> {
        let now = self.engine.clock();
        let query = format!(
            "INSERT INTO job_leases (name, holder, seen) VALUES ($1, $2, {now}) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, seen = excluded.seen \
             WHERE job_leases.holder = excluded.holder OR job_leases.seen < excluded.seen - $3"
        );
        let done = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(name.to_owned())
            .bind(bound::text(holder, bound::NAME))
            .bind(count(dead_after.as_secs()))
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(done.rows_affected() > 0)
    }

    /// A sign of life of the holder of a lease: `false` when it is another's by now.
    pub async fn renew_lease(&self, name: &str, holder: &str) -> Result<bool, StoreError> {
        let now = self.engine.clock();
        let query = format!("UPDATE job_leases SET seen = {now} WHERE name = $1 AND holder = $2");
        let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(name.to_owned());
        let done = query.bind(bound::text(holder, bound::NAME)).execute(&self.pool).await;
        Ok(done.map_err(|error| self.failed(error))?.rows_affected() > 0)
    }

    /// Gives a lease back; nothing where it is another's.
    pub async fn release_lease(&self, name: &str, holder: &str) -> Result<(), StoreError> {
        let query = sqlx::query("DELETE FROM job_leases WHERE name = $1 AND holder = $2");
        let query = query.bind(name.to_owned()).bind(bound::text(holder, bound::NAME));
        query.execute(&self.pool).await.map(drop).map_err(|error| self.failed(error))
    }

    /// Who holds the lease of that name, and has given a sign of life within `dead_after`.
    pub async fn lease_holder(
        &self,
        name: &str,
        dead_after: Duration,
    ) -> Result<Option<String>, StoreError> {
        let now = self.engine.clock();
        let query = format!("SELECT holder FROM job_leases WHERE name = $1 AND seen >= {now} - $2");
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(name.to_owned())
            .bind(count(dead_after.as_secs()));
        self.fetch_one(query, || "the lease".to_owned(), |row| row.text("holder")).await
    }
}
