//! Combines daily tallies into the patterns of a period (docs/spec/session-grades.md#patterns), and
//! keeps the tallies up to date.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use selftest_grading::grade::patterns::compute_score;
use selftest_grading::grade::{
    GradeOverride, GradePatterns, GradeRecord, PatternTally, TaskType, apply_overrides,
};
use selftest_grading::improve::recommend::{
    EvidenceTally, RoutingReport, TypeEvidence, recommendations,
};
use selftest_grading::improve::routing::{RoutingSettings, ScoredSessions, advise, trend_windows};
use selftest_store::{PatternDay, Store, StoreError};

/// Maximum number of tallies in memory at once.
const BATCH: u32 = 30;

/// Interval between checks for changed days.
const PAUSE: Duration = Duration::from_secs(10);

/// Returns the patterns of the sessions counted in `from..to`, with human corrections applied.
///
/// The sessions of a day are read if it has changed since its tally, or if only a part of it is
/// requested. Nothing is written, so that readers do not wait for writers.
pub async fn patterns(
    store: &Store,
    from: Timestamp,
    to: Timestamp,
) -> Result<GradePatterns, StoreError> {
    let made = store.overrides().await?.items;
    let mut foreign: BTreeMap<Date, Vec<GradeRecord>> = BTreeMap::new();
    for grade in store.foreign_grades(from, to, None).await? {
        let grade = apply_overrides(grade, &made);
        if let Some(at) = grade.started_at() {
            foreign.entry(day_of(at)).or_default().push(grade);
        }
    }
    let mut tally = PatternTally::default();
    let (first, mut last) = (day_of(from), day_of(to));
    loop {
        let days = store.pattern_days(first, last, BATCH).await?;
        let is_last = days.len() < BATCH as usize;
        // Oldest day covered by this batch; foreign rows are merged down to it.
        let end = if is_last { first } else { days.last().map_or(first, |day| day.day) };
        let mut days: BTreeMap<Date, Option<PatternTally>> =
            days.into_iter().map(|day| (day.day, day.tally)).collect();
        for day in foreign.range(end..=last).map(|(day, _)| *day) {
            // Tallies do not include rows of other programs.
            days.insert(day, None);
        }
        // Newest first, as `merge_earlier` requires.
        for (day, kept) in days.into_iter().rev() {
            let (start, end) = span(day);
            // A tally covers a whole day and cannot stand for a part of it.
            let kept = kept.filter(|_| from <= start && end <= to);
            let foreign = foreign.remove(&day).unwrap_or_default();
            tally.merge_earlier(match kept {
                Some(kept) => kept,
                None => read(store, start.max(from)..end.min(to), foreign, &made).await?,
            });
        }
        match end.yesterday() {
            Ok(before) if !is_last && before >= first => last = before,
            _ => return Ok(tally.patterns()),
        }
    }
}

/// Tallies the days that have changed and returns their number.
pub async fn tally_days(store: &Store) -> Result<u64, StoreError> {
    let days = store.days_to_tally().await?;
    for day in &days {
        tally_day(store, day).await?;
    }
    Ok(days.len() as u64)
}

async fn tally_day(store: &Store, day: &PatternDay) -> Result<(), StoreError> {
    let made = store.overrides().await?.items;
    let (start, end) = span(day.day);
    let tally = read(store, start..end, Vec::new(), &made).await?;
    store.save_tally(day, &tally).await
}

/// Updates tallies periodically until the future is dropped.
pub async fn keep_tallies_current(store: &Store) {
    loop {
        if let Err(error) = tally_days(store).await {
            // Without tallies, patterns are only slower.
            tracing::debug!("days are not tallied: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Tallies the sessions of a period, including foreign ones.
async fn read(
    store: &Store,
    span: std::ops::Range<Timestamp>,
    mut foreign: Vec<GradeRecord>,
    made: &[GradeOverride],
) -> Result<PatternTally, StoreError> {
    let mut tally = PatternTally::default();
    // Sorted oldest first, so that the newest can be popped from the end.
    foreign.sort_by(|a, b| newest_first_key(b).cmp(&newest_first_key(a)));
    store
        .for_each_grade(span.start, span.end, |grade| {
            let grade = apply_overrides(grade, made);
            while let Some(other) =
                foreign.pop_if(|other| newest_first_key(other) < newest_first_key(&grade))
            {
                tally.add(&other);
            }
            tally.add(&grade);
        })
        .await?;
    for other in foreign.iter().rev() {
        tally.add(other);
    }
    Ok(tally)
}

/// Returns the sort key of a session in a list with the newest first.
fn newest_first_key(grade: &GradeRecord) -> (std::cmp::Reverse<Option<Timestamp>>, &str) {
    (std::cmp::Reverse(grade.details.counts_at), &grade.session_id)
}

fn day_of(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// Returns the start of a day and that of the next one.
fn span(day: Date) -> (Timestamp, Timestamp) {
    let start = day.to_zoned(TimeZone::UTC).map_or(Timestamp::MIN, |start| start.timestamp());
    let end = start.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
    (start, end)
}

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
            tally.add(&apply_overrides(grade, &made));
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
    let apart = apart.into_iter().map(|grade| apply_overrides(grade, &made));
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

#[cfg(test)]
mod tests {
    use super::*;
    use selftest_grading::grade::GradeField;
    use selftest_store::{FileOutcome, FileRecord, FileResult};

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    /// A session that failed once; the tool is named after the day.
    fn failed(id: &str, time: &str) -> GradeRecord {
        let tool = &time[8..10];
        let error = serde_json::json!({
            "class": "timeout", "cause": "timeout", "template": format!("{tool} timed out"),
            "tool": tool, "count": 1, "first_event": 3, "example": id,
        });
        let record = serde_json::json!({
            "session_id": id, "session_file": "/s/all.json", "graded_at": time,
            "task_completed": true, "tool_calls_efficient": 3, "response_quality": 4,
            "errors_recovered": true, "total_api_calls": 1, "model": null, "platform": null,
            "session_start": time, "duration_seconds": 1.0, "task_summary": format!("do {id}"),
            "total_errors": 1, "error_types": ["timeout"], "tools_with_errors": [tool],
            "had_repeated_errors": false, "had_infinite_loop_risk": false,
            "had_user_clarification": false, "outcome": "checks_passed", "session_kind": "task",
            "details": {
                "agent": "pi", "task_type": "debugging", "counts_at": time, "messages": 4,
                "tool_calls": 1, "rejected_calls": 0, "pending_calls": 0,
                "tools": { tool: { "calls": 1, "errors": 1 } }, "errors": [error],
                "longest_error_run": 1, "tokens": { "input": 1, "output": 1, "cached": 0 },
                "evidence": [],
            },
        });
        serde_json::from_value(record).unwrap()
    }

    async fn save(store: &Store, grades: Vec<GradeRecord>) {
        let file = FileRecord {
            path: "/s/all.json".to_owned(),
            size: 1,
            modified_ns: 1,
            digest: String::new(),
            scanned_at: at("2026-11-22T10:00:00Z"),
            outcome: FileOutcome::Graded,
            reason: None,
            format: None,
            sessions: grades.len() as u64,
            graded: grades.len() as u64,
            notes_json: None,
            rules: None,
        };
        store.save(&[FileResult { file, grades }]).await.unwrap();
    }

    /// Held against what all records of the span say.
    async fn check(store: &Store, from: &str, to: &str) {
        let (from, to) = (at(from), at(to));
        let made = store.overrides().await.unwrap().items;
        let grades = store.grades_between(from, to, None).await.unwrap().items;
        let grades: Vec<GradeRecord> =
            grades.into_iter().map(|grade| apply_overrides(grade, &made)).collect();
        let found = patterns(store, from, to).await.unwrap();
        assert_eq!(found, GradePatterns::from_records(&grades), "{from} to {to}");
    }

    #[tokio::test]
    async fn days_say_together_what_their_sessions_say() {
        let store = Store::open(":memory:").await.unwrap();
        let grades = (0..90).map(|number| {
            let (day, hour) = (1 + number % 28, number % 24);
            failed(&format!("s{number:02}"), &format!("2026-10-{day:02}T{hour:02}:30:00Z"))
        });
        let mut grades: Vec<GradeRecord> = grades.collect();
        grades.extend((10..40).map(|day| {
            failed(
                &format!("d{day}"),
                &format!("2026-{:02}-{:02}T12:00:00Z", day / 10, day % 10 + 1),
            )
        }));
        save(&store, grades.clone()).await;
        let spans = [
            ("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"),
            ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
            ("2026-10-05T12:00:00Z", "2026-10-20T07:30:00Z"),
            ("2026-10-05T12:00:00Z", "2026-10-05T12:30:00Z"),
            ("2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z"),
        ];
        for (from, to) in spans {
            check(&store, from, to).await;
        }
        assert!(tally_days(&store).await.unwrap() > u64::from(BATCH));
        assert_eq!(tally_days(&store).await.unwrap(), 0);
        for (from, to) in spans {
            check(&store, from, to).await;
        }
        let word = GradeOverride {
            session_id: "s04".to_owned(),
            field: GradeField::TaskCompleted,
            rule_value: 1,
            human_value: 0,
            reason: "it is red".to_owned(),
            made_at: at("2026-11-21T10:00:00Z"),
        };
        store.add_override(&word).await.unwrap();
        check(&store, spans[0].0, spans[0].1).await;
        assert_eq!(tally_days(&store).await.unwrap(), 1);
        check(&store, spans[0].0, spans[0].1).await;
        grades.truncate(40);
        save(&store, grades).await;
        check(&store, spans[1].0, spans[1].1).await;
        tally_days(&store).await.unwrap();
        check(&store, spans[1].0, spans[1].1).await;
    }
}
