//! The tables `pattern_days` and `pattern_tallies`: of each day what its sessions say together, so
//! that patterns are put together without reading a session. Triggers note which days have changed,
//! whoever changed them; a tally counts as long as its day has not.

use jiff::civil::Date;

use super::row::{Columns, read_from};
use super::statement::{Value, params, stored_as};
use super::{Store, StoreError};
use selftest_grading::grade::PatternTally;

/// Of what is tallied, and how. Tallies of another version do not count.
const VERSION: u32 = 1;

/// A day of which there are, or were, sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct PatternDay {
    /// The day, in UTC.
    pub day: Date,
    /// How often it has changed. Read before its sessions are.
    pub changes: u64,
    /// Tally of its sessions; nothing where it has to be made anew.
    pub tally: Option<PatternTally>,
}

stored_as! { Text:
    // Names and numbers are plain data: writing cannot fail.
    PatternTally => |tally, _limit| serde_json::to_string(tally).unwrap_or_default(),
}
read_from! { |row, name| PatternTally => row.json(name) }

/// Days, each with its tally where that counts.
fn days() -> String {
    format!(
        "FROM pattern_days AS day LEFT JOIN pattern_tallies AS tally ON tally.day = day.day \
         AND tally.changes = day.changes AND tally.version = {VERSION}"
    )
}

fn read(row: &Columns<'_>) -> Result<PatternDay, String> {
    let (day, changes) = (row.get("day")?, row.get("changes")?);
    Ok(PatternDay { day, changes, tally: row.get("tally_json")? })
}

impl Store {
    /// The days with sessions from one day to another, both included, newest first: at most
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

    /// The days that have changed since they were tallied, newest first.
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

    /// Keeps what the sessions of a day say together. Where the day has changed since
    /// [`PatternDay::changes`] was read, it does not count.
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
        let mut writing = self.begin().await?;
        writing.execute(query, params![day.day, day.changes, VERSION, tally]).await?;
        writing.commit().await
    }
}
