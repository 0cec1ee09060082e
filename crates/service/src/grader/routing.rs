//! Which model a kind of task needs, and what could help with weak ones, from the grades in the
//! store (docs/spec/session-grades.md#routing).

use jiff::{SignedDuration, Timestamp};

use selftest_grading::grade::{GradeRecord, TaskType, overrides};
use selftest_grading::improve::recommend::{Routing, recommendations};
use selftest_grading::improve::routing::{RoutingSettings, advise, window};
use selftest_store::{Store, StoreError};

/// Gaps and proposals that recommendations are chosen from.
const MAX_CANDIDATES: u64 = 1000;

/// Advice for one type of task, or for all that occurred, from the grades of one agent or all. A
/// person's word counts.
pub async fn routing(
    store: &Store,
    settings: &RoutingSettings,
    task_type: Option<TaskType>,
    agent: Option<&str>,
    now: Timestamp,
) -> Result<Routing, StoreError> {
    let (from, earliest) = window(now, settings);
    // A recording machine whose clock runs ahead a little is no reason to lose its sessions.
    let ahead = now.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
    let grades = store.grades_between(earliest, ahead, agent).await?.items;
    let made = store.overrides().await?.items;
    let records: Vec<GradeRecord> =
        grades.into_iter().map(|grade| overrides::apply(grade, &made)).collect();
    let items = advise(&records, now, task_type, settings);
    let gaps = store.gaps(None, MAX_CANDIDATES).await?.items;
    let proposals = store.proposals(None, MAX_CANDIDATES).await?.items;
    let recommendations = recommendations(&items, &gaps, &proposals, settings);
    Ok(Routing { from, to: now, items, recommendations })
}
