//! Suggests the model tier for each task type, and improvements for weak ones, from the grades in
//! the store (docs/spec/session-grades.md#routing).

use jiff::{SignedDuration, Timestamp};

use selftest_grading::grade::patterns::compute_score;
use selftest_grading::grade::{GradeRecord, TaskType, overrides};
use selftest_grading::improve::evidence::{EvidenceTally, TypeEvidence};
use selftest_grading::improve::recommend::{RoutingReport, recommendations};
use selftest_grading::improve::routing::{RoutingSettings, ScoredSessions, advise, trend_windows};
use selftest_store::{Store, StoreError};

/// Maximum number of gaps and proposals considered for recommendations.
const MAX_CANDIDATES: u64 = 1000;

/// Returns what was seen of each type of task in the days that a score covers, from the grades of
/// one agent or all. Human corrections take precedence.
pub async fn type_evidence(
    store: &Store,
    settings: &RoutingSettings,
    task_type: Option<TaskType>,
    agent: Option<&str>,
    now: Timestamp,
) -> Result<Vec<TypeEvidence>, StoreError> {
    let (from, _) = trend_windows(now, settings);
    let made = store.overrides().await?.items;
    let mut tally = EvidenceTally::default();
    let add = |grade: GradeRecord| {
        let is_wanted = agent.is_none_or(|agent| grade.details.agent == agent)
            && task_type.is_none_or(|wanted| grade.details.task_type == wanted);
        if is_wanted {
            tally.add(&overrides::apply(grade, &made));
        }
    };
    store.for_each_grade(from, ahead_of(now), add).await?;
    Ok(tally.finish())
}

/// Tolerates sessions from a machine whose clock is slightly ahead.
fn ahead_of(now: Timestamp) -> Timestamp {
    now.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX)
}

/// Returns advice for one task type or for all that occurred, from the grades of one agent or all.
/// Human corrections take precedence.
pub async fn routing(
    store: &Store,
    settings: &RoutingSettings,
    task_type: Option<TaskType>,
    agent: Option<&str>,
    now: Timestamp,
) -> Result<RoutingReport, StoreError> {
    let (from, earliest) = trend_windows(now, settings);
    let ahead = ahead_of(now);
    let counts = store.score_counts([earliest, from, ahead], agent).await?.items;
    let made = store.overrides().await?.items;
    let apart = store.uncountable_grades(earliest, ahead, agent).await?;
    let apart = apart.into_iter().map(|grade| overrides::apply(grade, &made));
    let mut scored: Vec<ScoredSessions> =
        apart.filter_map(|grade| ScoredSessions::from_grade(&grade, now, settings)).collect();
    scored.extend(counts.iter().flat_map(|count| {
        let of = |is_recent, sessions| ScoredSessions {
            task_type: count.task_type,
            is_recent,
            score: compute_score(count.efficiency, count.quality, count.task_completed),
            is_completed: count.task_completed,
            sessions,
        };
        [of(false, count.earlier), of(true, count.recent)].into_iter().filter(|it| it.sessions > 0)
    }));
    let items = advise(&scored, task_type, settings);
    let gaps = store.gaps(None, MAX_CANDIDATES).await?.items;
    let proposals = store.proposals(None, MAX_CANDIDATES).await?.items;
    let recommendations = recommendations(&items, &gaps, &proposals, settings);
    Ok(RoutingReport { from, to: now, items, recommendations })
}
