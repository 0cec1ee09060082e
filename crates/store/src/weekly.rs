//! The table `weekly_reports` (docs/spec/session-grades.md#weekly_reports): one report per week,
//! replaced when it is generated again.

use jiff::Timestamp;
use jiff::civil::Date;

use super::row::{Record as _, Rows, record};
use super::statement::params;
use super::{Store, StoreError, bound};

/// A stored weekly report.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReport {
    /// First day of the week; unique.
    pub week_start: Date,
    /// Last day of the week.
    pub week_end: Date,
    /// Generation time.
    pub generated_at: Timestamp,
    /// Report as JSON, not validated.
    pub report_json: String,
}

record!(StoredReport, "weekly_reports", {
    week_start,
    week_end,
    generated_at,
    report_json [bound::REPORT],
});

impl Store {
    /// Saves a report, replacing the one for the same week.
    pub async fn save_weekly_report(&self, report: &StoredReport) -> Result<(), StoreError> {
        let what = || format!("the report of {}", report.week_start);
        StoreError::check_size(what, &report.report_json, bound::REPORT)?;
        self.execute(StoredReport::upsert("week_start"), report.values()).await.map(drop)
    }

    /// Returns the report of the week that starts on that day.
    pub async fn weekly_report(
        &self,
        week_start: Date,
    ) -> Result<Option<StoredReport>, StoreError> {
        let what = format!("the report of {week_start}");
        self.find_one(&what, "WHERE week_start = $1", params![week_start]).await
    }

    /// Returns up to `limit` reports, newest first.
    pub async fn weekly_reports(&self, limit: u64) -> Result<Rows<StoredReport>, StoreError> {
        self.find("ORDER BY week_start DESC LIMIT $1", params![limit]).await
    }
}
