//! Detects gaps in the agent's skills from the grades of recent weeks: recurring tool errors,
//! unknown tools, low-scoring task types and repeated requests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::gap::{DetectedGap, GapEvidence, GapKind, GapSettings};
use crate::grade::patterns::session_score;
use crate::grade::share::rounded;
use crate::grade::{ErrorCause, GradeRecord, Proportion, TaskType};
use selftest_stats::mean;
use selftest_text::words::WordSet;
use selftest_text::{digest, one_line};

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
    // By key among equals, so that the same gaps are cut each time.
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
            // The key has the whole name; the shown one may be cut.
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
    // Each request is compared with every cluster, so only the newest are.
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
            // The first that is similar and not the most similar: known gaps stand first and keep
            // their requests.
            clusters.iter().position(|cluster| cluster.words.jaccard(&words) >= MIN_SIMILARITY);
        let at = found.unwrap_or_else(|| {
            // The key must stay the same as the cluster grows, so it comes from the first request.
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
mod tests {
    use super::*;
    use crate::grade::ErrorClass;
    use crate::grade::fixture::{record, two_months};

    fn found(records: &[GradeRecord]) -> Vec<DetectedGap> {
        detect(records, &[], &[], &GapSettings::default())
    }

    fn keys(gaps: &[DetectedGap]) -> Vec<&str> {
        gaps.iter().map(|gap| gap.key.as_str()).collect()
    }

    /// So many sessions in each of which a tool failed twice.
    fn failing(count: usize, tool: &str, class: ErrorClass) -> Vec<GradeRecord> {
        (0..count)
            .map(|number| {
                let at = format!("2026-11-{:02}T10:00:00Z", 10 + number);
                record(&format!("s{number}"), TaskType::General, true, 4, 4)
                    .failed(tool, class, 2, "no such file")
                    .at(&at)
            })
            .collect()
    }

    /// docs/maintain-skills.md#skill-gaps: recurring tool errors, in 3 sessions or more.
    #[test]
    fn recurring_tool_errors_in_three_sessions() {
        assert!(found(&failing(2, "read", ErrorClass::FileNotFound)).is_empty());
        let gaps = found(&failing(3, "read", ErrorClass::FileNotFound));
        assert_eq!(keys(&gaps), ["tool_error:file_not_found:read"]);
        let gap = &gaps[0];
        assert_eq!((gap.kind, gap.occurrences, gap.sessions), (GapKind::ToolError, 6, 3));
        assert_eq!(gap.description, "read failed with file_not_found 6 times in 3 sessions");
        let sessions: Vec<&str> = gap.evidence.iter().map(|one| one.session_id.as_str()).collect();
        assert_eq!(sessions, ["s2", "s1", "s0"], "newest first");
        assert_eq!(
            (gap.evidence[0].event, gap.evidence[0].words.as_str()),
            (Some(0), "no such file")
        );
        // Another class at the same tool is another gap.
        let mut mixed = failing(3, "read", ErrorClass::FileNotFound);
        mixed[0].details.errors[0].cause = ErrorCause::Timeout;
        assert!(found(&mixed).is_empty());
    }

    /// docs/maintain-skills.md#skill-gaps: unknown tools; the class is that of
    /// docs/spec/session-grades.md#error-classes.
    #[test]
    fn unknown_tools_in_two_sessions() {
        assert!(found(&failing(1, "browse", ErrorClass::ToolNotFound)).is_empty());
        let gaps = found(&failing(2, "browse", ErrorClass::ToolNotFound));
        assert_eq!(keys(&gaps), ["unknown_tool:browse"]);
        assert_eq!(gaps[0].kind, GapKind::UnknownTool);
    }

    /// docs/spec/session-grades.md#skill-recommendations: a score below 3 is a gap.
    #[test]
    fn task_types_below_a_score_of_three() {
        let sessions = |count: usize, quality: u8| -> Vec<GradeRecord> {
            (0..count)
                .map(|id| record(&id.to_string(), TaskType::Debugging, id != 0, 2, quality))
                .collect()
        };
        // (2 + 2 + 5) / 3 = 3.0 for completed ones, 1.67 for the first.
        let gaps = found(&sessions(5, 2));
        assert_eq!(keys(&gaps), ["low_task_type:debugging"]);
        assert_eq!((gaps[0].sessions, gaps[0].occurrences), (5, 1), "{:?}", gaps[0]);
        assert_eq!(gaps[0].task_types, [TaskType::Debugging]);
        assert!(found(&sessions(4, 2)).is_empty(), "too few");
        assert!(found(&sessions(5, 3)).is_empty(), "a mean of 3.07");
    }

    /// docs/spec/session-grades.md#skill-recommendations: a score below 3 is a gap, and 3 is not below
    /// 3.
    #[test]
    fn a_mean_of_three_is_not_below_three_by_a_bit() {
        // (1 + 3 + 11/3 + 11/3 + 11/3) / 5, which the sum of the fractions misses.
        let levels = [(false, 1), (true, 2), (true, 3), (true, 3), (true, 3)];
        let records: Vec<GradeRecord> = levels
            .iter()
            .zip(["a", "b", "c", "d", "e"])
            .map(|((done, level), id)| record(id, TaskType::Debugging, *done, *level, *level))
            .collect();
        assert!(found(&records).is_empty(), "{:?}", found(&records));
    }

    /// docs/spec/session-grades.md#routing with an interval: few sessions that fail are chance.
    #[test]
    fn task_types_that_are_rarely_completed() {
        let sessions = |count: usize, completed: usize| -> Vec<GradeRecord> {
            (0..count)
                .map(|id| record(&id.to_string(), TaskType::Testing, id < completed, 5, 5))
                .collect()
        };
        // The upper end of 4 of 10 is 69 %, of 5 of 10 it is 76 %; the scores are 3.67 and above.
        assert_eq!(keys(&found(&sessions(10, 4))), ["low_task_type:testing"]);
        assert!(found(&sessions(10, 5)).is_empty());
        assert!(found(&sessions(5, 2)).is_empty(), "the upper end of 2 of 5 is 77 %");
    }

    fn request(session: &str, event: u64, at: &str, text: &str) -> RepeatedRequest {
        RepeatedRequest {
            session_id: session.to_owned(),
            event,
            at: at.parse().unwrap(),
            text: text.to_owned(),
        }
    }

    /// docs/maintain-skills.md#skill-gaps: repeated requests; alike as in
    /// docs/spec/skills-and-signals.md#repetition.
    #[test]
    fn similar_requests_that_were_repeated() {
        let requests = [
            request("a", 4, "2026-11-10T10:00:00Z", "sort the export by date"),
            request("b", 6, "2026-11-11T10:00:00Z", "sort export by date please"),
            request("b", 8, "2026-11-11T10:01:00Z", "sort the export by date, newest"),
            request("c", 2, "2026-11-12T10:00:00Z", "the export: sort it by date"),
            request("d", 2, "2026-11-12T10:00:00Z", "deploy to the test server"),
            request("e", 2, "2026-11-12T10:00:00Z", "??"),
        ];
        let settings = GapSettings::default();
        let gaps = detect(&[], &requests, &[], &settings);
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        let gap = &gaps[0];
        assert_eq!((gap.kind, gap.occurrences, gap.sessions), (GapKind::RepeatedRequest, 4, 3));
        assert_eq!(gap.subject, "sort the export by date");
        assert_eq!(gap.evidence[0].session_id, "c");

        // Next week the first of them is out of the window: it is the same gap all the same.
        let known = [KnownRequest { key: gap.key.clone(), text: gap.subject.clone() }];
        let mut later = requests[1..].to_vec();
        later.push(request("f", 2, "2026-11-20T10:00:00Z", "sort the export by date"));
        let again = detect(&[], &later, &known, &settings);
        assert_eq!((again.len(), &again[0].key), (1, &gap.key));
    }

    /// docs/maintain-skills.md#skill-gaps: one row per gap with its evidence, de-duplicated over weeks.
    #[test]
    fn a_gap_keeps_its_id_and_its_evidence_is_bounded() {
        let first = found(&failing(3, "read", ErrorClass::FileNotFound));
        let next = found(&failing(15, "read", ErrorClass::FileNotFound));
        assert_eq!(first[0].id(), next[0].id());
        let many: Vec<GradeRecord> = (0..90)
            .map(|number| {
                record(&format!("m{number}"), TaskType::General, true, 4, 4).failed(
                    "read",
                    ErrorClass::FileNotFound,
                    1,
                    &"x".repeat(10_000),
                )
            })
            .collect();
        let gap = &found(&many)[0];
        assert_eq!((gap.sessions, gap.evidence.len()), (90, MAX_EVIDENCE));
        assert!(gap.evidence.iter().all(|one| one.words.len() < 300));
    }

    #[test]
    fn a_closed_gap_is_back_only_in_sessions_after_that() {
        let gaps = found(&failing(5, "read", ErrorClass::FileNotFound));
        let settings = GapSettings::default();
        // The sessions are of the 10th to the 14th.
        let back = |at: &str| has_reappeared(&gaps[0], at.parse().unwrap(), &settings);
        assert!(back("2026-11-11T12:00:00Z"));
        assert!(!back("2026-11-12T12:00:00Z"), "two sessions are too few");
    }

    #[test]
    fn what_goes_well_is_no_gap() {
        assert!(found(&[]).is_empty());
        let well: Vec<GradeRecord> =
            (0..30).map(|id| record(&id.to_string(), TaskType::ALL[id % 11], true, 5, 5)).collect();
        assert!(found(&well).is_empty());
        let keys: Vec<GapKind> = found(&two_months()).iter().map(|gap| gap.kind).collect();
        assert!(keys.contains(&GapKind::ToolError) && !keys.contains(&GapKind::UnknownTool));
    }

    #[test]
    fn tools_without_end_are_no_gaps_without_end() {
        let mut records = failing(3, "read", ErrorClass::FileNotFound);
        for record in &mut records {
            let error = record.details.errors[0].clone();
            record.details.errors = (0..2 * MAX_GAPS)
                .map(|number| crate::grade::ErrorCount {
                    tool: format!("t{number}"),
                    ..error.clone()
                })
                .collect();
        }
        assert_eq!(found(&records).len(), MAX_GAPS);
    }

    #[test]
    fn absurd_counts_do_not_overflow() {
        let mut records = failing(3, "read", ErrorClass::FileNotFound);
        for record in &mut records {
            record.details.errors[0].count = u64::MAX;
        }
        assert_eq!(found(&records)[0].occurrences, u64::MAX);
    }
}
