//! The table `weekly_reports` (docs/spec/session-grades.md#weekly_reports): one report for each
//! week, replaced when made anew.

use jiff::Timestamp;
use jiff::civil::Date;

use super::row::{Record as _, Rows, record};
use super::statement::params;
use super::{Store, StoreError, bound};

/// A weekly report as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReport {
    /// First day; unique.
    pub week_start: Date,
    /// Last day.
    pub week_end: Date,
    /// When it was made.
    pub generated_at: Timestamp,
    /// The report; whoever reads it checks it.
    pub report_json: String,
}

record!(StoredReport, "weekly_reports", {
    week_start,
    week_end,
    generated_at,
    report_json [bound::REPORT],
});

impl Store {
    /// Keeps a report in place of that of the same week.
    pub async fn save_weekly_report(&self, report: &StoredReport) -> Result<(), StoreError> {
        let what = || format!("the report of {}", report.week_start);
        StoreError::check_size(what, &report.report_json, bound::REPORT)?;
        self.execute(StoredReport::upsert("week_start"), report.values()).await.map(drop)
    }

    /// The report of the week that begins on that day.
    pub async fn weekly_report(
        &self,
        week_start: Date,
    ) -> Result<Option<StoredReport>, StoreError> {
        let what = format!("the report of {week_start}");
        self.find_one(&what, "WHERE week_start = $1", params![week_start]).await
    }

    /// The newest reports, at most `limit`, newest first.
    pub async fn weekly_reports(&self, limit: u64) -> Result<Rows<StoredReport>, StoreError> {
        self.find("ORDER BY week_start DESC LIMIT $1", params![limit]).await
    }
}
