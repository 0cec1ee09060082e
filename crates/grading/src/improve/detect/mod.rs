//! Detects gaps in the agent's skills from the grades of recent weeks: recurring tool errors,
//! unknown tools, low-scoring task types and repeated requests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::gap::{DetectedGap, GapEvidence, GapKind};
use super::gap_settings::GapSettings;
use crate::grade::patterns::session_score;
use crate::grade::share::rounded;
use crate::grade::{ErrorCause, GradeRecord, Proportion, TaskType};
use selftest_stats::mean;
use selftest_text::digest;
use selftest_text::one_line;
use selftest_text::words::WordSet;

/// Maximum number of gaps per detection; those with the most sessions are kept.
pub const MAX_GAPS: usize = 1000;
/// Maximum number of sessions kept as evidence.
pub const MAX_EVIDENCE: usize = 20;
/// Maximum length in bytes of an evidence text and of a gap's subject.
const MAX_WORDS: usize = 240;
/// Minimum similarity at which two requests count as the same, as in `signal`
/// (docs/spec/skills-and-signals.md#repetition).
const MIN_SIMILARITY: f64 = 0.5;
/// Maximum number of repeated requests to compare with each other; the newest are kept.
const MAX_REQUESTS: usize = 2000;

/// A message that repeats an earlier request of its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedRequest {
    /// ID of the session.
    pub session_id: String,
    /// Number of the event.
    pub event: u64,
    /// Time of the message.
    pub at: Timestamp,
    /// Start of the message, with secrets redacted.
    pub text: String,
}

/// A repeated request that is already a gap. Similar requests are assigned to that gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRequest {
    /// Key of the gap.
    pub key: String,
    /// Text of the request.
    pub text: String,
}

/// Detects the gaps in the records and requests, ordered by number of sessions, largest first.
///
/// Returns at most [`MAX_GAPS`], because tool names are untrusted input and could produce any
/// number of gaps.
pub fn detect(
    records: &[GradeRecord],
    requests: &[RepeatedRequest],
    known: &[KnownRequest],
    settings: &GapSettings,
) -> Vec<DetectedGap> {
    let is_counted = |record: &&GradeRecord| record.is_task() && record.started_at().is_some();
    let mut records: Vec<&GradeRecord> = records.iter().filter(is_counted).collect();
    // Newest first, so that the newest sessions are kept as evidence.
    records.sort_by_key(|record| (Reverse(record.details.counts_at), &record.session_id));
    let mut gaps = tool_errors(&records, settings);
    gaps.extend(low_task_types(&records, settings));
    gaps.extend(repeated_requests(&records, requests, known, settings));
    gaps.sort_by(|a, b| (Reverse(a.sessions), &a.key).cmp(&(Reverse(b.sessions), &b.key)));
    gaps.truncate(MAX_GAPS);
    gaps
}

/// Returns true if a closed gap has reappeared. The sessions after the closing must reach the gap's
/// minimum on their own, since the window still includes earlier ones.
pub fn has_reappeared(gap: &DetectedGap, closed_at: Timestamp, settings: &GapSettings) -> bool {
    let least = match gap.kind {
        GapKind::ToolError => settings.error_sessions,
        GapKind::UnknownTool => settings.unknown_tool_sessions,
        GapKind::LowTaskType => settings.task_sessions,
        GapKind::RepeatedRequest => settings.repeated_sessions,
    };
    let since = gap.evidence.iter().filter(|one| one.at > closed_at);
    let sessions: BTreeSet<&str> = since.map(|one| one.session_id.as_str()).collect();
    // Evidence is truncated to `MAX_EVIDENCE`, so a higher minimum could never be reached.
    sessions.len() as u64 >= least.min(MAX_EVIDENCE as u64)
}

fn tool_errors(newest_first: &[&GradeRecord], settings: &GapSettings) -> Vec<DetectedGap> {
    type ErrorOccurrences<'a> = Vec<(&'a GradeRecord, u64, GapEvidence)>;
    let mut groups: BTreeMap<(ErrorCause, &str), ErrorOccurrences<'_>> = BTreeMap::new();
    for record in newest_first {
        for error in record.details.errors.iter().filter(|error| error.count > 0) {
            let evidence = gap_evidence(record, Some(error.first_event), &error.example);
            let met = groups.entry((error.cause, &error.tool)).or_default();
            met.push((record, error.count, evidence));
        }
    }
    let gap = |((cause, tool), met): ((ErrorCause, &str), ErrorOccurrences<'_>)| {
        let sessions = count_sessions(met.iter().map(|(record, _, _)| *record));
        let is_unknown = cause == ErrorCause::ToolNotFound;
        let least =
            if is_unknown { settings.unknown_tool_sessions } else { settings.error_sessions };
        if sessions < least {
            return None;
        }
        let occurrences = met.iter().fold(0_u64, |sum, (_, count, _)| sum.saturating_add(*count));
        let shown = one_line(tool, MAX_WORDS);
        let (kind, key, description) = if is_unknown {
            let words = format!(
                "the tool {shown} does not exist and was called {occurrences} times in \
                 {sessions} sessions"
            );
            (GapKind::UnknownTool, format!("unknown_tool:{tool}"), words)
        } else {
            let words = match cause {
                ErrorCause::Unknown => format!(
                    "{shown} failed {occurrences} times in {sessions} sessions (unclassified)"
                ),
                _ => {
                    format!(
                        "{shown} failed with {cause} {occurrences} times in {sessions} sessions"
                    )
                }
            };
            (GapKind::ToolError, format!("tool_error:{cause}:{tool}"), words)
        };
        Some(DetectedGap {
            kind,
            key,
            subject: shown,
            detail: Some(cause.name().to_owned()),
            description,
            occurrences,
            sessions,
            task_types: task_types(met.iter().map(|(record, _, _)| *record)),
            evidence: met.into_iter().map(|(_, _, one)| one).take(MAX_EVIDENCE).collect(),
        })
    };
    groups.into_iter().filter_map(gap).collect()
}

fn low_task_types(newest_first: &[&GradeRecord], settings: &GapSettings) -> Vec<DetectedGap> {
    let gap = |task_type: TaskType| {
        let own: Vec<&GradeRecord> = newest_first
            .iter()
            .copied()
            .filter(|record| record.details.task_type == task_type)
            .collect();
        let sessions = own.len() as u64;
        if sessions < settings.task_sessions {
            return None;
        }
        let completed = own.iter().filter(|record| record.task_completed).count() as u64;
        let rate = Proportion::new(completed, sessions);
        let scores: Vec<f64> = own.iter().map(|record| session_score(record)).collect();
        // Rounded so that floating-point error does not push a mean of exactly the limit below it.
        let score = rounded(mean(&scores)?);
        // Judged by the upper end of the interval, so that a few unlucky sessions are not a gap.
        let rarely = rate.interval.is_some_and(|bounds| bounds.high < settings.completion_rate);
        if !rarely && score >= settings.task_score {
            return None;
        }
        let went_badly = |record: &&&GradeRecord| {
            !record.task_completed || session_score(record) < settings.task_score
        };
        let bad: Vec<&GradeRecord> = own.iter().filter(went_badly).copied().collect();
        let words = |record: &GradeRecord| {
            let done = if record.task_completed { "completed" } else { "not completed" };
            let request = record.task_summary.as_deref().unwrap_or("(no request)");
            gap_evidence(
                record,
                None,
                &format!("{done}, score {:.1}: {request}", session_score(record)),
            )
        };
        Some(DetectedGap {
            kind: GapKind::LowTaskType,
            key: format!("low_task_type:{task_type}"),
            subject: task_type.name().to_owned(),
            detail: None,
            description: format!(
                "{task_type}: {completed} of {sessions} sessions completed (at most {:.0} % with \
                 95 % confidence), mean score {score:.2} of 5",
                100.0 * rate.interval.map_or(1.0, |bounds| bounds.high)
            ),
            occurrences: bad.len() as u64,
            sessions,
            task_types: vec![task_type],
            evidence: bad.into_iter().take(MAX_EVIDENCE).map(words).collect(),
        })
    };
    TaskType::ALL.iter().copied().filter_map(gap).collect()
}

/// Similar requests, represented by the first one.
struct RequestCluster<'a> {
    key: String,
    text: String,
    words: WordSet,
    members: Vec<&'a RepeatedRequest>,
}

fn repeated_requests(
    records: &[&GradeRecord],
    requests: &[RepeatedRequest],
    known: &[KnownRequest],
    settings: &GapSettings,
) -> Vec<DetectedGap> {
    let mut requests: Vec<&RepeatedRequest> = requests.iter().collect();
    requests.sort_by_key(|one| (one.at, &one.session_id, one.event));
    let first = requests.len().saturating_sub(MAX_REQUESTS);
    let cluster = |key: String, text: &str| {
        let (words, text) = (WordSet::from_text(text), one_line(text, MAX_WORDS));
        RequestCluster { key, text, words, members: Vec::new() }
    };
    // Known gaps come first, so that similar requests are assigned to them.
    let mut clusters: Vec<RequestCluster<'_>> =
        known.iter().map(|one| cluster(one.key.clone(), &one.text)).collect();
    for request in &requests[first..] {
        let words = WordSet::from_text(&request.text);
        if words.jaccard(&words) == 0.0 {
            // A request without significant words resembles no other.
            continue;
        }
        let found =
            clusters.iter().position(|cluster| cluster.words.jaccard(&words) >= MIN_SIMILARITY);
        let at = found.unwrap_or_else(|| {
            let name = &digest::sha256_hex(request.text.as_bytes())[..12];
            clusters.push(cluster(format!("repeated_request:{name}"), &request.text));
            clusters.len() - 1
        });
        clusters[at].members.push(request);
    }
    let types: BTreeMap<&str, TaskType> = records
        .iter()
        .map(|record| (record.session_id.as_str(), record.details.task_type))
        .collect();
    let gap = |cluster: RequestCluster<'_>| {
        let ids: BTreeSet<&str> =
            cluster.members.iter().map(|one| one.session_id.as_str()).collect();
        let sessions = ids.len() as u64;
        if sessions < settings.repeated_sessions {
            return None;
        }
        let occurrences = cluster.members.len() as u64;
        let task_types: BTreeSet<TaskType> = cluster
            .members
            .iter()
            .map(|one| {
                let known = types.get(one.session_id.as_str()).copied();
                known.unwrap_or_else(|| TaskType::from_request(&one.text))
            })
            .collect();
        let newest_first = cluster.members.iter().rev().take(MAX_EVIDENCE);
        let evidence = newest_first.map(|one| GapEvidence {
            session_id: one.session_id.clone(),
            event: Some(one.event),
            at: one.at,
            words: one_line(&one.text, MAX_WORDS),
        });
        Some(DetectedGap {
            kind: GapKind::RepeatedRequest,
            key: cluster.key,
            detail: None,
            description: format!(
                "people had to repeat this request {occurrences} times in {sessions} sessions: {}",
                cluster.text
            ),
            subject: cluster.text,
            occurrences,
            sessions,
            task_types: task_types.into_iter().collect(),
            evidence: evidence.collect(),
        })
    };
    clusters.into_iter().filter_map(gap).collect()
}

fn gap_evidence(record: &GradeRecord, event: Option<u64>, words: &str) -> GapEvidence {
    GapEvidence {
        session_id: record.session_id.clone(),
        event,
        // Undated records are left out before.
        at: record.started_at().unwrap_or_default(),
        words: one_line(words, MAX_WORDS),
    }
}

/// Counts the distinct sessions of these records.
fn count_sessions<'a>(records: impl Iterator<Item = &'a GradeRecord>) -> u64 {
    records.map(|record| record.session_id.as_str()).collect::<BTreeSet<_>>().len() as u64
}

fn task_types<'a>(records: impl Iterator<Item = &'a GradeRecord>) -> Vec<TaskType> {
    let types: BTreeSet<TaskType> = records.map(|record| record.details.task_type).collect();
    types.into_iter().collect()
}

#[cfg(test)]
mod tests;
