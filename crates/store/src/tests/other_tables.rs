//! Files, weekly reports, daily tallies, overrides, grades by a model, gaps and proposals
//! (docs/spec/skills-and-signals.md#gaps-and-proposals).

use jiff::civil::{Date, date};

use super::*;
use crate::statement::DatabaseEngine;
use crate::{FileOutcome, HumanDataPolicy, KnownFile, PatternDay, ProposalDecision, StoredReport};
use selftest_grading::grade::{GradeField, GradeOverride, PatternTally};
use selftest_grading::improve::gap::{
    DetectedGap, GapEvidence, GapKind, GapStatus, ProposalStatus, SkillProposal, SkillTest,
};

on_every_engine! {
    files_are_counted_by_outcome_and_time,
    an_unchanged_file_can_get_a_new_date,
    known_files_are_whatever_their_paths_and_however_many,
    a_mark_of_an_older_version_is_understood,
    a_week_has_one_report,
    overrides_are_added_never_replaced,
    grades_by_a_model_are_read,
    a_tally_counts_until_its_day_changes,
    a_session_that_moves_changes_two_days,
    a_tally_of_what_has_changed_meanwhile_does_not_count,
    grades_are_handed_over_newest_first,
    one_row_for_a_gap_over_weeks,
    a_gap_gets_one_proposal_and_a_decision,
    what_failed_often_comes_last,
    rows_of_others_are_skipped_and_counted,
    whatever_evidence_says_it_is_read_again,
    only_a_closed_gap_opens_again,
    a_lease_of_a_clock_that_was_ahead_runs_out,
}

async fn files_are_counted_by_outcome_and_time(on: &Databases) {
    let store = on.store().await;
    let (from, to) = (at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z"));
    let mut files = Vec::new();
    for (number, outcome) in
        <FileOutcome as strum::VariantArray>::VARIANTS.iter().copied().cycle().take(7).enumerate()
    {
        let mut one = file(&format!("/s/{number}.json"), vec![]);
        one.file.outcome = outcome;
        one.file.modified_ns = i64::try_from(from.as_nanosecond()).unwrap();
        files.push(one);
    }
    // At the end of the range, which is exclusive.
    files[6].file.modified_ns = i64::try_from(to.as_nanosecond()).unwrap();
    store.save(&files).await.unwrap();
    execute(&store, "UPDATE session_files SET outcome = 'eaten' WHERE path = '/s/4.json'").await;
    let counts = store.files_by_outcome(from, to).await.unwrap();
    let expected = [
        (FileOutcome::Graded, 2),
        (FileOutcome::NotGradable, 1),
        (FileOutcome::NoSession, 1),
        (FileOutcome::Unreadable, 1),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    let all = store.files_by_outcome(Timestamp::MIN, Timestamp::MAX).await.unwrap();
    assert_eq!(all.values().sum::<u64>(), 6);
}

async fn an_unchanged_file_can_get_a_new_date(on: &Databases) {
    let store = on.store().await;
    store.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    let digest = "cd".repeat(32);
    let now = KnownFile { size: 1000, modified_ns: 7, digest, by_these_rules: true };
    store.touch_files(&[("/s/a.json".to_owned(), now.clone())]).await.unwrap();
    assert_eq!(store.known_files(RULES).await.unwrap()["/s/a.json"], now);
    let by_others = KnownFile { by_these_rules: false, ..now };
    assert_eq!(store.known_files("rules of tomorrow").await.unwrap()["/s/a.json"], by_others);
}

async fn known_files_are_whatever_their_paths_and_however_many(on: &Databases) {
    let store = on.store().await;
    let mut files: Vec<_> = (0..11).map(|number| file(&format!("/s/ü {number}"), vec![])).collect();
    store.save(&files).await.unwrap();
    // Enough to need more than one row.
    execute(
        &store,
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1500) \
         INSERT INTO session_files SELECT path || n || ' x', n, n, digest, scanned_at, outcome, \
         reason, format, sessions, graded, notes_json, rules FROM session_files, n",
    )
    .await;
    let known = store.known_files(RULES).await.unwrap();
    assert_eq!(known.len(), 11 * 1501);
    assert_eq!((known["/s/ü 31500 x"].size, known["/s/ü 31500 x"].modified_ns), (1500, 1500));
    assert_eq!(known["/s/ü 10"].digest, files[0].file.digest);
    for odd in ["/s/two\nlines", "/s/x\n1 1 y"] {
        let mut odd_file = file(odd, vec![]);
        odd_file.file.digest = "cd".repeat(32);
        files.push(odd_file);
    }
    store.save(&files).await.unwrap();
    let again = store.known_files(RULES).await.unwrap();
    assert_eq!(again.len(), known.len() + 2);
    assert_eq!(again["/s/two\nlines"].digest, "cd".repeat(32));
    assert!(again.values().all(|known| known.by_these_rules));
    assert!(store.known_files("").await.unwrap().values().all(|known| !known.by_these_rules));
    if on.engine() == DatabaseEngine::Postgres {
        // PostgreSQL rejects text that is not UTF-8.
        return;
    }
    execute(&store, "UPDATE session_files SET path = CAST(x'2fff' AS TEXT) WHERE path = '/s/ü 1'")
        .await;
    assert_eq!(store.known_files(RULES).await.unwrap().len(), again.len() - 1);
}

async fn a_week_has_one_report(on: &Databases) {
    let store = on.store().await;
    let report = |day: &str, json: &str| StoredReport {
        week_start: day.parse().unwrap(),
        week_end: day
            .parse::<jiff::civil::Date>()
            .unwrap()
            .saturating_add(jiff::Span::new().days(6)),
        generated_at: at("2026-11-22T10:00:00Z"),
        report_json: json.to_owned(),
    };
    let [first, second, again] =
        [report("2026-11-09", "{}"), report("2026-11-16", "{}"), report("2026-11-09", "[1]")];
    for one in [&first, &second, &again] {
        store.save_weekly_report(one).await.unwrap();
    }
    assert_eq!(store.weekly_report(first.week_start).await.unwrap(), Some(again.clone()));
    assert_eq!(store.weekly_report("2026-11-10".parse().unwrap()).await.unwrap(), None);
    assert_eq!(store.weekly_reports(9).await.unwrap().items, [second.clone(), again]);
    assert_eq!(store.weekly_reports(1).await.unwrap().items, [second]);
    execute(&store, "UPDATE weekly_reports SET week_end = 'Sunday'").await;
    assert_eq!(store.weekly_reports(9).await.unwrap().unreadable, 2);
    let error = store.save_weekly_report(&report("2026-11-09", &" ".repeat(1 << 25))).await;
    assert!(error.unwrap_err().to_string().starts_with("the report of 2026-11-09 is too large"));
}

async fn overrides_are_added_never_replaced(on: &Databases) {
    let store = on.store().await;
    let made = |session_id: &str, value, time| GradeOverride {
        session_id: session_id.to_owned(),
        field: GradeField::ResponseQuality,
        rule_value: 2,
        human_value: value,
        reason: "it's right".to_owned(),
        made_at: at(time),
    };
    let late = made("a", 5, "2026-11-22T10:00:00Z");
    let early = made("a", 4, "2026-11-21T10:00:00Z");
    let other = made("b", 1, "2026-11-21T11:00:00Z");
    for one in [&late, &early, &other] {
        store.add_override(one).await.unwrap();
    }
    assert_eq!(store.session_overrides("a").await.unwrap().items, [early.clone(), late.clone()]);
    assert_eq!(store.overrides().await.unwrap().items, [early, other, late]);
    execute(&store, "UPDATE grade_overrides SET field = 'mood' WHERE session_id = 'b'").await;
    execute(&store, "UPDATE grade_overrides SET human_value = 300 WHERE human_value = 4").await;
    let left = store.overrides().await.unwrap();
    assert_eq!((left.items.len(), left.unreadable), (1, 2));
}

async fn grades_by_a_model_are_read(on: &Databases) {
    let store = on.store().await;
    execute(
        &store,
        "INSERT INTO session_quality_grades (session_id, grader_model, rubric_version, ts, \
         problem_solved, tests_added, code_clean, edge_cases, overall, reasoning, details_json) \
         VALUES ('a', 'some/model', 1, '2026-11-22T10:00:00Z', 0.5, NULL, 1, 0.25, 0.6, 'fine', \
         '{\"w\": 1}'), \
         ('a', 'other/model', 1, '2026-11-22T10:00:00Z', 1.5, NULL, NULL, NULL, NULL, NULL, NULL), \
         ('a', 'old/model', 0, '2026-11-22T10:00:00Z', NULL, NULL, NULL, NULL, 0.9, NULL, NULL), \
         ('b', 'some/model', 1, '2026-11-22T11:00:00', NULL, NULL, NULL, NULL, NULL, NULL, 'none')",
    )
    .await;
    let grades = store.quality_grades().await.unwrap();
    assert_eq!(grades.unreadable, 1);
    let [first, second] = &grades.items[..] else { panic!("{grades:?}") };
    assert_eq!(
        (first.problem_solved, first.tests_added, first.code_clean),
        (Some(0.5), None, Some(1.0))
    );
    assert_eq!(first.details, Some(serde_json::json!({"w": 1})));
    assert_eq!((second.overall, &second.details), (None, &None));
    assert_eq!(second.ts, at("2026-11-22T11:00:00Z"));
}

/// Older versions used a size of -1 to mark files to be read again.
async fn a_mark_of_an_older_version_is_understood(on: &Databases) {
    let store = on.store().await;
    store.save(&[session("/s/a.json", "a", 3)]).await.unwrap();
    execute(&store, "UPDATE session_files SET size = -1").await;
    assert!(store.known_files(RULES).await.unwrap().is_empty());
    assert_eq!(store.file("/s/a.json").await.unwrap().unwrap().size, 0);
}

const DAY: Date = date(2026, 11, 20);

async fn days(store: &Store) -> Vec<PatternDay> {
    store.pattern_days(date(2026, 1, 1), date(2026, 12, 31), 100).await.unwrap()
}

async fn to_tally(store: &Store) -> Vec<Date> {
    store.days_to_tally().await.unwrap().into_iter().map(|day| day.day).collect()
}

/// Tallies all days that have changed.
async fn tally(store: &Store) {
    for day in store.days_to_tally().await.unwrap() {
        store.save_tally(&day, &PatternTally::default()).await.unwrap();
    }
    assert!(to_tally(store).await.is_empty());
}

async fn with_one(on: &Databases) -> Store {
    let store = on.store().await;
    let one = file("/s/a.json", vec![grade_at("a", "2026-11-20T08:00:00Z")]);
    store.save(&[one]).await.unwrap();
    store
}

async fn a_tally_counts_until_its_day_changes(on: &Databases) {
    let store = with_one(on).await;
    assert_eq!(to_tally(&store).await, [DAY]);
    assert_eq!(days(&store).await[0].tally, None);
    let grade = grade_at("a", "2026-11-20T08:00:00Z");
    let made = PatternTally::from_records([&grade]);
    store.save_tally(&store.days_to_tally().await.unwrap()[0], &made).await.unwrap();
    assert_eq!(days(&store).await[0].tally.as_ref(), Some(&made));
    execute(&store, "UPDATE session_grades SET quality = 0.5, messages = NULL").await;
    assert!(to_tally(&store).await.is_empty(), "patterns show nothing of it");

    store.save(&[file("/s/a.json", vec![grade])]).await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY], "it was graded again");
    tally(&store).await;
    let word = GradeOverride {
        session_id: "a".to_owned(),
        field: GradeField::TaskCompleted,
        rule_value: 1,
        human_value: 0,
        reason: "it is red".to_owned(),
        made_at: at("2026-11-21T10:00:00Z"),
    };
    store.add_override(&word).await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY], "a person has spoken");
    tally(&store).await;
    execute(&store, "DELETE FROM grade_overrides").await;
    assert_eq!(to_tally(&store).await, [DAY], "and has taken it back");
    tally(&store).await;
    store.prune(at("2026-12-01T00:00:00Z"), HumanDataPolicy::Delete).await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY], "the session is gone");
}

async fn a_session_that_moves_changes_two_days(on: &Databases) {
    let store = with_one(on).await;
    tally(&store).await;
    let moved = file("/s/a.json", vec![grade_at("a", "2026-11-22T08:00:00Z")]);
    store.save(&[moved]).await.unwrap();
    assert_eq!(to_tally(&store).await, [date(2026, 11, 22), DAY]);
    let none = FileResult { grades: Vec::new(), ..file("/s/a.json", Vec::new()) };
    tally(&store).await;
    assert_eq!(none.file.outcome, FileOutcome::NoSession);
    store.save(&[none]).await.unwrap();
    assert_eq!(to_tally(&store).await, [date(2026, 11, 22)]);
}

async fn a_tally_of_what_has_changed_meanwhile_does_not_count(on: &Databases) {
    let store = with_one(on).await;
    let seen = store.days_to_tally().await.unwrap();
    let other = file("/s/b.json", vec![grade_at("b", "2026-11-20T23:59:59.9Z")]);
    store.save(&[other]).await.unwrap();
    store.save_tally(&seen[0], &PatternTally::default()).await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY]);
    tally(&store).await;
    execute(&store, "UPDATE pattern_tallies SET version = 0").await;
    assert_eq!(to_tally(&store).await, [DAY], "another version tallied it");
    tally(&store).await;
    execute(&store, "UPDATE pattern_tallies SET tally_json = '{'").await;
    assert_eq!(days(&store).await[0].tally, None, "it cannot be read");
}

async fn grades_are_handed_over_newest_first(on: &Databases) {
    let store = on.store().await;
    let times = ["2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z", "2026-11-20T08:00:00Z"];
    let grades = ["c", "b", "a"].iter().zip(times).map(|(id, time)| grade_at(id, time));
    store.save(&[file("/s/all.json", grades.collect())]).await.unwrap();
    let mut seen = Vec::new();
    let (from, to) = (at("2026-11-20T08:00:00Z"), at("2026-11-20T09:00:00.000000001Z"));
    store.for_each_grade(from, to, |grade| seen.push(grade.session_id)).await.unwrap();
    assert_eq!(seen, ["b", "a", "c"]);
    seen.clear();
    store.for_each_grade(from, at(times[1]), |grade| seen.push(grade.session_id)).await.unwrap();
    assert_eq!(seen, ["a", "c"]);
}

/// The original program replaces rows: the old row is deleted without firing a delete trigger.
#[tokio::test]
async fn a_row_that_another_program_replaces_changes_its_day() {
    let store = with_one(&Databases::sqlite()).await;
    tally(&store).await;
    execute(
        &store,
        "INSERT OR REPLACE INTO session_grades (session_id, session_file, graded_at, \
         task_completed, tool_calls_efficient, response_quality, errors_recovered, \
         total_api_calls, total_errors, had_repeated_errors, had_infinite_loop_risk, \
         had_user_clarification) \
         VALUES ('a', '/s/a.json', '2026-11-20T10:00:00', 1, 3, 3, 0, 1, 0, 0, 0, 0)",
    )
    .await;
    assert_eq!(to_tally(&store).await, [DAY]);
}

#[tokio::test]
async fn the_days_of_an_old_database_are_to_be_tallied() {
    let on = Databases::sqlite();
    let store = with_one(&on).await;
    for gone in [
        "session_grades_replaced",
        "session_grades_added",
        "session_grades_changed",
        "session_grades_gone",
        "grade_overrides_added",
        "grade_overrides_changed",
        "grade_overrides_gone",
    ] {
        execute(&store, &format!("DROP TRIGGER {gone}")).await;
    }
    execute(&store, "DROP TABLE pattern_days").await;
    execute(&store, "DROP TABLE pattern_tallies").await;
    execute(&store, "DELETE FROM selftest_migrations WHERE version = 18").await;
    store.migrate().await.unwrap();
    assert_eq!(to_tally(&store).await, [DAY]);
}

const MONDAY: &str = "2026-11-16T10:00:00Z";
const TUESDAY: &str = "2026-11-17T10:00:00Z";
const NEXT_WEEK: &str = "2026-11-24T10:00:00Z";

fn found(tool: &str, sessions: u64) -> DetectedGap {
    DetectedGap {
        kind: GapKind::ToolError,
        key: format!("tool_error:timeout:{tool}"),
        subject: tool.to_owned(),
        detail: Some("timeout".to_owned()),
        description: format!("{tool} failed in {sessions} sessions"),
        occurrences: 2 * sessions,
        sessions,
        task_types: vec![TaskType::Debugging],
        evidence: vec![GapEvidence {
            session_id: "s1".to_owned(),
            event: Some(3),
            at: at(MONDAY),
            words: "timed out".to_owned(),
        }],
    }
}

fn proposal(id: &str, gap: &DetectedGap) -> SkillProposal {
    SkillProposal {
        id: id.to_owned(),
        gap_id: gap.id(),
        skill_name: "wait-for-it".to_owned(),
        description: "when to wait".to_owned(),
        skill_md: "---\nname: wait-for-it\n---\n".to_owned(),
        status: ProposalStatus::Proposed,
        model: "openai/m".to_owned(),
        prompt_digest: "ab".repeat(32),
        experiment: Some(SkillTest::NotTested { reason: "no suite".to_owned() }),
        created_at: at(TUESDAY),
        decided_at: None,
        reason: None,
        file: None,
    }
}

/// docs/maintain-skills.md#skill-gaps: one row per gap with its evidence, de-duplicated over weeks.
async fn one_row_for_a_gap_over_weeks(on: &Databases) {
    let store = on.store().await;
    store.save_gaps(&[found("bash", 3)], &[], at(MONDAY)).await.unwrap();
    store.save_gaps(&[found("bash", 4)], &[], at(TUESDAY)).await.unwrap();
    store.save_gaps(&[found("bash", 7), found("read", 9)], &[], at(NEXT_WEEK)).await.unwrap();
    let gaps = store.gaps(None, 10).await.unwrap();
    assert_eq!((gaps.items.len(), gaps.unreadable), (2, 0));
    let subjects: Vec<&str> = gaps.items.iter().map(|gap| gap.subject.as_str()).collect();
    assert_eq!(subjects, ["read", "bash"], "most sessions first");
    let bash = store.gap(&found("bash", 0).id()).await.unwrap().unwrap();
    assert_eq!((bash.sessions, bash.occurrences, bash.weeks), (7, 14, 2));
    assert_eq!((bash.first_seen, bash.last_seen), (at(MONDAY), at(NEXT_WEEK)));
    assert_eq!(bash.evidence, found("bash", 7).evidence);
    assert_eq!((bash.task_types, bash.status), (vec![TaskType::Debugging], GapStatus::Open));
    assert_eq!(store.gap("gap-nothing").await.unwrap(), None);
}

/// docs/spec/skills-and-signals.md#skill-generation: gaps with a proposal are no longer open.
async fn a_gap_gets_one_proposal_and_a_decision(on: &Databases) {
    let store = on.store().await;
    let gap = found("bash", 3);
    store.save_gaps(&[gap.clone(), found("read", 5)], &[], at(MONDAY)).await.unwrap();
    assert!(store.add_proposal(&proposal("p1", &gap)).await.unwrap());
    assert!(!store.add_proposal(&proposal("p2", &gap)).await.unwrap(), "it has one");
    let kept = store.proposal("p1").await.unwrap().unwrap();
    assert_eq!(kept, proposal("p1", &gap));
    assert_eq!(store.proposal("p2").await.unwrap(), None);
    let open: Vec<String> =
        store.open_gaps().await.unwrap().items.into_iter().map(|gap| gap.subject).collect();
    assert_eq!(open, ["read"]);

    // Found again: the proposal still waits.
    store.save_gaps(std::slice::from_ref(&gap), &[], at(NEXT_WEEK)).await.unwrap();
    let status = async || store.gap(&gap.id()).await.unwrap().unwrap().status;
    assert_eq!(status().await, GapStatus::Proposed);

    let decision = ProposalDecision {
        status: ProposalStatus::Accepted,
        gap: GapStatus::Closed,
        reason: Some("good".to_owned()),
        file: Some("/skills/wait-for-it/SKILL.md".to_owned()),
        at: at(NEXT_WEEK),
    };
    assert!(store.decide_proposal("p1", &decision).await.unwrap());
    assert!(!store.decide_proposal("p1", &decision).await.unwrap(), "it is decided");
    assert_eq!(status().await, GapStatus::Closed);
    let accepted = store.proposals(Some(ProposalStatus::Accepted), 10).await.unwrap().items;
    assert_eq!(accepted[0].file.as_deref(), Some("/skills/wait-for-it/SKILL.md"));
    assert!(store.proposals(Some(ProposalStatus::Proposed), 10).await.unwrap().items.is_empty());

    store.save_gaps(std::slice::from_ref(&gap), &[gap.id()], at(NEXT_WEEK)).await.unwrap();
    assert_eq!(status().await, GapStatus::Open);
}

/// docs/spec/skills-and-signals.md#skill-generation: at most 3 gaps per run, and not always the
/// same three.
async fn what_failed_often_comes_last(on: &Databases) {
    let store = on.store().await;
    let (often, seldom) = (found("often", 9), found("seldom", 3));
    store.save_gaps(&[often.clone(), seldom.clone()], &[], at(MONDAY)).await.unwrap();
    store.record_gap_failure(&often.id(), "the model refused").await.unwrap();
    let open = store.open_gaps().await.unwrap().items;
    let subjects: Vec<&str> = open.iter().map(|gap| gap.subject.as_str()).collect();
    assert_eq!(subjects, ["seldom", "often"]);
    assert_eq!((open[1].attempts, open[1].last_fault.as_deref()), (1, Some("the model refused")));
}

async fn rows_of_others_are_skipped_and_counted(on: &Databases) {
    let store = on.store().await;
    store.save_gaps(&[found("bash", 3), found("read", 4)], &[], at(MONDAY)).await.unwrap();
    execute(&store, "UPDATE skill_gaps SET evidence_json = 'x' WHERE subject = 'bash'").await;
    let gaps = store.gaps(None, 10).await.unwrap();
    assert_eq!((gaps.items.len(), gaps.unreadable), (1, 1));
}

async fn whatever_evidence_says_it_is_read_again(on: &Databases) {
    let store = on.store().await;
    let mut gap = found("bash", 3);
    // A NUL, which PostgreSQL cannot store, and its JSON escape.
    gap.evidence[0].session_id = format!("s\0{}", "x".repeat(5000));
    gap.evidence[0].words = r#"tail \u0000 and " and \"#.to_owned();
    store.save_gaps(std::slice::from_ref(&gap), &[], at(MONDAY)).await.unwrap();
    let kept = store.gap(&gap.id()).await.unwrap().unwrap().evidence;
    assert_eq!(kept[0].words, gap.evidence[0].words);
    assert!(kept[0].session_id.len() < 600 && !kept[0].session_id.contains('\0'));
}

async fn only_a_closed_gap_opens_again(on: &Databases) {
    let store = on.store().await;
    let gap = found("bash", 3);
    store.save_gaps(std::slice::from_ref(&gap), &[], at(MONDAY)).await.unwrap();
    // Dismissed by a user during gap detection.
    execute(&store, "UPDATE skill_gaps SET status = 'dismissed'").await;
    store.save_gaps(std::slice::from_ref(&gap), &[gap.id()], at(TUESDAY)).await.unwrap();
    assert_eq!(store.gap(&gap.id()).await.unwrap().unwrap().status, GapStatus::Dismissed);
}

async fn a_lease_of_a_clock_that_was_ahead_runs_out(on: &Databases) {
    let store = on.store().await;
    let dead_after = std::time::Duration::from_mins(1);
    assert!(store.take_lease("schedule", "one", dead_after).await.unwrap());
    execute(&store, "UPDATE job_leases SET seen = seen + 100000000").await;
    // It may be alive: it has as long as any other to send the next heartbeat.
    assert!(!store.take_lease("schedule", "two", dead_after).await.unwrap());
    assert!(store.lease_holder("schedule", dead_after).await.unwrap().is_some());
    execute(&store, "UPDATE job_leases SET seen = seen - 61").await;
    assert!(store.take_lease("schedule", "two", dead_after).await.unwrap());
    assert!(!store.renew_lease("schedule", "one").await.unwrap());
}
