//! The table `weekly_reports` (docs/spec/session-grades.md#weekly_reports): one report for each
//! week, replaced when made anew.

use jiff::Timestamp;
use jiff::civil::Date;
use sqlx::AssertSqlSafe;

use super::insert::AnyQuery;
use super::row::{Columns, Rows, count, time};
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

const COLUMNS: &str = "week_start, week_end, generated_at, report_json";

fn select(rest: &str) -> AnyQuery<'static> {
    sqlx::query(AssertSqlSafe(format!("SELECT {COLUMNS} FROM weekly_reports {rest}")))
}

fn read(row: &Columns<'_>) -> Result<StoredReport, String> {
    Ok(StoredReport {
        week_start: row.date("week_start")?,
        week_end: row.date("week_end")?,
        generated_at: row.time("generated_at")?,
        report_json: row.text("report_json")?,
    })
}

impl Store {
    /// Keeps a report in place of that of the same week.
    pub async fn save_weekly_report(&self, report: &StoredReport) -> Result<(), StoreError> {
        if report.report_json.len() > bound::REPORT {
            return Err(StoreError::TooLarge {
                what: format!("the report of {}", report.week_start),
                bytes: report.report_json.len(),
                limit: bound::REPORT,
            });
        }
        let query = format!(
            "INSERT INTO weekly_reports ({COLUMNS}) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (week_start) DO UPDATE SET week_end = excluded.week_end, \
             generated_at = excluded.generated_at, report_json = excluded.report_json"
        );
        sqlx::query(AssertSqlSafe(query))
            .bind(report.week_start.to_string())
            .bind(report.week_end.to_string())
            .bind(time(report.generated_at))
            .bind(bound::text(&report.report_json, bound::REPORT))
            .execute(&self.pool)
            .await
            .map(drop)
            .map_err(|error| self.failed(error))
    }

    /// The report of the week that begins on that day.
    pub async fn weekly_report(
        &self,
        week_start: Date,
    ) -> Result<Option<StoredReport>, StoreError> {
        let query = select("WHERE week_start = $1").bind(week_start.to_string());
        self.fetch_one(query, || format!("the report of {week_start}"), read).await
    }

    /// The newest reports, at most `limit`, newest first.
    pub async fn weekly_reports(&self, limit: u64) -> Result<Rows<StoredReport>, StoreError> {
        let query = select("ORDER BY week_start DESC LIMIT $1").bind(count(limit));
        self.fetch(query, read).await
    }
}
