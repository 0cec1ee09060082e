//! Tests of skill executions (docs/spec/skills-and-signals.md#skill-effectiveness): reactions,
//! counts, and executions derived from sessions.

use super::skills::{audit, execution, promoted, said, seen, used};
use super::*;
use crate::{SkillRecord, SkillRef};
use selftest_grading::improve::effectiveness::ExecutionCounts;
use selftest_grading::improve::skill::{
    AuditAction, ExecutionStatus, SkillExecution, SkillStatus, SkillVersion, UserReaction,
};

on_every_engine! {
    the_next_message_updates_the_last_execution_once,
    executions_are_counted_since_a_moment,
    what_is_read_in_sessions_again_changes_nothing,
    what_is_seen_belongs_to_the_version_of_its_time,
}

const THANKS: UserReaction =
    UserReaction { gratitude: true, repetition: Some(false), frustration: false, edited: false };

/// docs/spec/skills-and-signals.md#next-message: the next message updates the execution before it,
/// later ones do not.
async fn the_next_message_updates_the_last_execution_once(on: &Databases) {
    let store = on.store().await;
    let skill = promoted(&store, "pr", "1", "2026-11-01T00:00:00Z").await;
    let repeated =
        UserReaction { repetition: Some(true), frustration: true, ..UserReaction::default() };
    let edited = UserReaction { edited: true, ..UserReaction::default() };
    let records = [
        used("pr", execution("a", "s", "2026-11-02T10:00:00Z")),
        used("pr", execution("b", "s", "2026-11-02T10:01:00Z")),
        used("pr", execution("other", "t", "2026-11-02T10:02:00Z")),
        said("s", "2026-11-02T10:03:00Z", repeated),
        // No longer the next message.
        said("s", "2026-11-02T10:04:00Z", THANKS),
        used("pr", execution("c", "s", "2026-11-02T10:05:00Z")),
        // Written before the execution.
        said("t", "2026-11-02T10:01:00Z", THANKS),
        said("s", "2026-11-02T10:06:00Z", edited),
        said("nowhere", "2026-11-02T10:06:00Z", THANKS),
    ];
    let recorded = store.record_skills(&records).await.unwrap();
    assert_eq!((recorded.messages, recorded.unrelated), (2, 3));
    let mut kept = store.skill_executions(&skill.id, 9, None).await.unwrap().items;
    kept.sort_by(|a, b| a.id.cmp(&b.id));
    let flags: Vec<_> = kept
        .iter()
        .map(|one| {
            let flags =
                [one.user_sent_thank_you, one.user_repeated_request, one.user_edited_output];
            (one.id.as_str(), flags, one.user_was_frustrated)
        })
        .collect();
    assert_eq!(
        flags,
        [
            ("a", [false, false, false], None),
            ("b", [false, true, false], Some(true)),
            ("c", [false, false, true], Some(false)),
            ("other", [false, false, false], None),
        ]
    );
}

/// docs/spec/skills-and-signals.md#effectiveness-score: counts of the lookback window.
async fn executions_are_counted_since_a_moment(on: &Databases) {
    let store = on.store().await;
    let skill = promoted(&store, "pr", "1", "2026-11-01T00:00:00Z").await;
    promoted(&store, "unused", "1", "2026-11-01T00:00:00Z").await;
    let gone = promoted(&store, "gone", "1", "2026-11-01T00:00:00Z").await;
    let noted = audit(&gone.id, AuditAction::Disable, "2026-11-02T00:00:00Z");
    assert!(store.disable_skill(&noted).await.unwrap());
    let mut records = vec![used("pr", execution("old", "s", "2026-11-01T23:59:59.999Z"))];
    for number in 0..4_u8 {
        let mut one = execution(&number.to_string(), "s", "2026-11-02T00:00:00Z");
        one.execution_status =
            if number == 0 { ExecutionStatus::Error } else { ExecutionStatus::Success };
        one.user_edited_output = number < 2;
        one.user_repeated_request = number < 3;
        one.user_sent_thank_you = true;
        records.push(used("pr", one));
    }
    records.push(used(&gone.id, execution("gone", "s", "2026-11-02T00:00:00Z")));
    store.record_skills(&records).await.unwrap();
    let expected =
        ExecutionCounts { executions: 4, successes: 3, edited: 2, repeated: 3, thanked: 4 };
    let since = at("2026-11-02T00:00:00Z");
    assert_eq!(store.skill_counts(&skill.id, since).await.unwrap(), expected);
    // A value left out by another program is not a signal.
    execute(&store, "UPDATE skill_executions SET user_edited_output = NULL").await;
    let active = store.active_skills("me", since).await.unwrap();
    let names: Vec<_> =
        active.iter().map(|(skill, counts)| (&*skill.skill_name, *counts)).collect();
    let unedited = ExecutionCounts { edited: 0, ..expected };
    assert_eq!(names, [("pr", unedited), ("unused", ExecutionCounts::default())]);

    store.save_skill_scores(&[(skill.id.clone(), Some(0.5), 4)], since).await.unwrap();
    let scored = store.skill(&skill.id).await.unwrap().unwrap();
    assert_eq!((scored.effectiveness_score, scored.total_executions), (Some(0.5), 4));
    assert_eq!(scored.last_scored_at, Some(since));

    let days = store.skill_days("me", at("2026-11-01T00:00:00Z")).await.unwrap();
    let days: Vec<_> = days
        .iter()
        .filter(|day| day.skill_version_id == skill.id)
        .map(|day| (day.day.to_string(), day.executions, day.successes))
        .collect();
    assert_eq!(days, [("2026-11-01".to_owned(), 1, 1), ("2026-11-02".to_owned(), 4, 3)]);
}

async fn what_is_read_in_sessions_again_changes_nothing(on: &Databases) {
    let store = on.store().await;
    let told = |turns, next: Option<UserReaction>| {
        let execution = SkillExecution {
            conversation_turns: Some(turns),
            ..execution("a", "s", "2026-11-02T00:00:00Z")
        };
        let skill = SkillRef::Observed { skill_name: "seen".to_owned() };
        SkillRecord::Execution { skill, execution, reaction: next }
    };
    let kept = async || {
        let [skill] = &store.skill_versions("me", "seen").await.unwrap()[..] else { panic!() };
        assert_eq!((skill.version.as_str(), skill.status), ("unversioned", SkillStatus::Active));
        assert_eq!(store.skill_content(&skill.id).await.unwrap(), None);
        store.skill_executions(&skill.id, 9, None).await.unwrap().items
    };
    store.record_skills(&[told(2, None)]).await.unwrap();
    let first = kept().await;
    store.record_skills(&[told(2, None)]).await.unwrap();
    assert_eq!(kept().await, first);
    // The session continued, and a copy of its start is read afterwards.
    store.record_skills(&[told(4, Some(THANKS)), told(2, None)]).await.unwrap();
    let [last] = &kept().await[..] else { panic!() };
    assert_eq!((last.conversation_turns, last.user_sent_thank_you), (Some(4), true));
}

async fn what_is_seen_belongs_to_the_version_of_its_time(on: &Databases) {
    let store = on.store().await;
    let first = promoted(&store, "pr", "1", "2026-11-10T00:00:00Z").await;
    let second = promoted(&store, "pr", "2", "2026-11-12T00:00:00Z").await;
    let out = audit(&second.id, AuditAction::Rollback, "2026-11-14T00:00:00Z");
    let back = audit(&first.id, AuditAction::Promote, "2026-11-14T00:00:00Z");
    assert!(store.replace_skill(&out, &first, &back).await.unwrap());
    let days = ["01", "10", "11", "12", "13", "14", "15"];
    let records =
        days.map(|day| seen("pr", execution(day, "s", &format!("2026-11-{day}T00:00:00Z"))));
    store.record_skills(&records).await.unwrap();
    let of = async |skill: &SkillVersion| {
        let page = store.skill_executions(&skill.id, 9, None).await.unwrap();
        page.items.into_iter().rev().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(of(&first).await, ["01", "10", "11", "14", "15"]);
    assert_eq!(of(&second).await, ["12", "13"]);
}
