//! Tables derived from grades: `pattern_days` and `pattern_tallies`, a summary of the sessions of each
//! day, so that patterns can be built without reading sessions; and `weekly_reports`
//! (docs/spec/session-grades.md#weekly_reports), one report per week, replaced when it is generated again.
//!
//! Triggers record the days changed by any process; a tally is valid until its day changes.

use jiff::Timestamp;
use jiff::civil::Date;

use super::row::{Columns, Record as _, Rows, read_from, record};
use super::statement::{Value, params, stored_as};
use super::{ColumnError, Store, StoreError, bound};
use selftest_grading::grade::PatternTally;

/// Version of the tally format and method. Tallies of other versions are ignored.
const VERSION: u32 = 1;

/// A day that has or had sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternDay {
    /// Day in UTC.
    pub day: Date,
    /// Change counter of the day, read before its sessions are.
    pub changes: u64,
    /// Tally of its sessions; `None` if it must be computed again.
    pub tally: Option<PatternTally>,
}

stored_as! { Text:
    // Contains only names and numbers, so serializing cannot fail.
    PatternTally => |tally, _limit| serde_json::to_string(tally).unwrap_or_default(),
}
read_from! { |row, name| PatternTally => row.json(name) }

/// Joins days with their valid tallies.
fn days() -> String {
    format!(
        "FROM pattern_days AS day LEFT JOIN pattern_tallies AS tally ON tally.day = day.day \
         AND tally.changes = day.changes AND tally.version = {VERSION}"
    )
}

fn read(row: &Columns<'_>) -> Result<PatternDay, ColumnError> {
    let (day, changes) = (row.get("day")?, row.get("changes")?);
    Ok(PatternDay { day, changes, tally: row.get("tally_json")? })
}

impl Store {
    /// Returns the days with sessions between `first` and `last`, inclusive, newest first, at most
    /// `limit`.
    pub async fn pattern_days(
        &self,
        first: Date,
        last: Date,
        limit: u32,
    ) -> Result<Vec<PatternDay>, StoreError> {
        let query = format!(
            "SELECT day.day AS day, day.changes AS changes, tally_json {} \
             WHERE day.day >= $1 AND day.day <= $2 ORDER BY day.day DESC LIMIT $3",
            days()
        );
        Ok(self.fetch(query, params![first, last, limit], read).await?.items)
    }

    /// Returns the days that have changed since their tally was computed, newest first.
    pub async fn days_to_tally(&self) -> Result<Vec<PatternDay>, StoreError> {
        let query = format!(
            "SELECT day.day AS day, day.changes AS changes {} \
             WHERE tally.day IS NULL ORDER BY day.day DESC",
            days()
        );
        let read = |row: &Columns<'_>| {
            Ok(PatternDay { day: row.get("day")?, changes: row.get("changes")?, tally: None })
        };
        Ok(self.fetch(query, [], read).await?.items)
    }

    /// Saves the tally of a day. It is ignored if the day has changed since [`PatternDay::changes`]
    /// was read.
    pub async fn save_tally(
        &self,
        day: &PatternDay,
        tally: &PatternTally,
    ) -> Result<(), StoreError> {
        let query = "INSERT INTO pattern_tallies (day, changes, version, tally_json) \
                     VALUES ($1, $2, $3, $4) ON CONFLICT (day) DO UPDATE SET \
                     changes = excluded.changes, version = excluded.version, \
                     tally_json = excluded.tally_json";
        let tally: Value = super::statement::ToValue::to_value(tally, 0);
        let mut writing = self.begin_write().await?;
        writing.execute(query, params![day.day, day.changes, VERSION, tally]).await?;
        writing.commit().await
    }
}

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
