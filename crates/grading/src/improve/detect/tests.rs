//! Gaps that are found, and those that are none.

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
    assert_eq!((gap.evidence[0].event, gap.evidence[0].words.as_str()), (Some(0), "no such file"));
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
            .map(|number| crate::grade::ErrorCount { tool: format!("t{number}"), ..error.clone() })
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
