//! Tests of the skill tables (docs/spec/skills-and-signals.md#skill-effectiveness): columns, versions
//! and lists; executions with reactions and counts, also those derived from sessions.

use super::*;
use crate::{NewSkill, SkillRecord, SkillRecordCounts, SkillRef};
use selftest_grading::improve::effectiveness::{ChangeReason, ExecutionCounts};
use selftest_grading::improve::skill::{
    AuditAction, AuditEntry, ExecutionStatus, SkillExecution, SkillStatus, SkillVersion,
    UserReaction,
};

on_every_engine! {
    an_execution_is_kept_as_it_was_told,
    a_skill_is_found_by_id_or_name_and_an_unknown_one_is_counted,
    of_the_versions_of_a_skill_one_is_in_use,
    versions_are_numbered_and_no_name_is_given_twice,
    lists_are_paged,
    rows_of_other_programs_are_left_out_or_read_as_far_as_they_make_sense,
    the_next_message_updates_the_last_execution_once,
    executions_are_counted_since_a_moment,
    what_is_read_in_sessions_again_changes_nothing,
    what_is_seen_belongs_to_the_version_of_its_time,
}

pub(super) fn audit(id: &str, action: AuditAction, time: &str) -> AuditEntry {
    AuditEntry {
        time: at(time),
        skill_version_id: id.to_owned(),
        action,
        reasons: vec![ChangeReason::Words { words: format!("{action} at {time}") }],
        actor: "test".to_owned(),
    }
}

pub(super) fn new_skill(name: &str, version: Option<&str>) -> NewSkill {
    NewSkill {
        id: format!("{name}-{}", version.unwrap_or("next")),
        user_id: "me".to_owned(),
        skill_name: name.to_owned(),
        version: version.map(str::to_owned),
        content: format!("# {name}"),
    }
}

/// Promotes a version at that time.
pub(super) async fn promoted(store: &Store, name: &str, version: &str, time: &str) -> SkillVersion {
    let skill = new_skill(name, Some(version));
    let noted = audit(&skill.id, AuditAction::Promote, time);
    assert!(store.add_skill(&skill, &noted).await.unwrap());
    store.skill(&skill.id).await.unwrap().unwrap()
}

pub(super) fn execution(id: &str, session: &str, time: &str) -> SkillExecution {
    SkillExecution {
        id: id.to_owned(),
        skill_version_id: String::new(),
        user_id: "me".to_owned(),
        session_id: Some(session.to_owned()),
        execution_status: ExecutionStatus::Success,
        user_edited_output: false,
        user_sent_thank_you: false,
        user_repeated_request: false,
        user_was_frustrated: None,
        conversation_turns: Some(3),
        execution_time_ms: Some(1200),
        error_message: None,
        created_at: at(time),
    }
}

pub(super) fn used(skill: &str, execution: SkillExecution) -> SkillRecord {
    let skill = SkillRef::Named { skill: skill.to_owned(), version: None };
    SkillRecord::Execution { skill, execution, reaction: None }
}

pub(super) fn seen(skill: &str, execution: SkillExecution) -> SkillRecord {
    let skill = SkillRef::Observed { skill_name: skill.to_owned() };
    SkillRecord::Execution { skill, execution, reaction: None }
}

pub(super) fn said(session: &str, time: &str, reaction: UserReaction) -> SkillRecord {
    let (user_id, session_id) = ("me".to_owned(), session.to_owned());
    SkillRecord::Message { user_id, session_id, reaction, at: at(time) }
}

/// docs/spec/skills-and-signals.md#skill-tables: the columns, the check and both indexes.
#[tokio::test]
async fn the_tables_have_the_specified_columns() {
    let on = &Databases::sqlite();
    let store = on.store().await;
    let columns = |table: &'static str| {
        let query = format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid");
        let store = store.clone();
        async move { store.fetch(query, [], |row| row.get::<String>("name")).await.unwrap().items }
    };
    assert_eq!(
        columns("skill_executions").await,
        [
            "id",
            "skill_version_id",
            "user_id",
            "session_id",
            "execution_status",
            "user_edited_output",
            "user_sent_thank_you",
            "user_repeated_request",
            "conversation_turns",
            "execution_time_ms",
            "error_message",
            "created_at",
        ]
    );
    let versions = columns("skill_versions").await;
    assert_eq!(
        versions[versions.len() - 3..],
        ["effectiveness_score", "total_executions", "last_scored_at"]
    );
    let indexes = "SELECT name FROM sqlite_master WHERE type = 'index' AND name LIKE \
                   'idx_skill_executions_%' ORDER BY name";
    let indexes = store.fetch(indexes, [], |row| row.get::<String>("name")).await.unwrap();
    let [_, user, version] = &indexes.items[..] else { panic!("{indexes:?}") };
    assert_eq!(
        (user.as_str(), version.as_str()),
        ("idx_skill_executions_user", "idx_skill_executions_version")
    );
    promoted(&store, "pr", "1", "2026-11-01T00:00:00Z").await;
    store.record_skills(&[used("pr", execution("a", "s", "2026-11-02T00:00:00Z"))]).await.unwrap();
    for broken in [
        "UPDATE skill_executions SET execution_status = 'fine'",
        "UPDATE skill_executions SET execution_status = NULL",
        "UPDATE skill_executions SET user_id = NULL",
        "UPDATE skill_executions SET skill_version_id = 'nobody'",
    ] {
        assert!(sqlx::query(broken).execute(&store.pool).await.is_err(), "{broken}");
    }
    // ON DELETE CASCADE.
    execute(&store, "DELETE FROM skill_versions").await;
    let left = "SELECT COUNT(*) AS left_over FROM skill_executions";
    let left = store.fetch(left, [], |row| row.get::<i64>("left_over")).await.unwrap();
    assert_eq!(left.items, [0]);
}

/// docs/spec/skills-and-signals.md#recording-executions: reported values are stored unchanged.
async fn an_execution_is_kept_as_it_was_told(on: &Databases) {
    let store = on.store().await;
    let skill = promoted(&store, "pr", "1", "2026-11-01T00:00:00Z").await;
    let told = SkillExecution {
        execution_status: ExecutionStatus::Timeout,
        user_edited_output: true,
        user_sent_thank_you: true,
        user_repeated_request: true,
        conversation_turns: None,
        execution_time_ms: Some(u32::MAX),
        error_message: Some("too\0 late".to_owned()),
        ..execution("a", "s", "2026-11-02T00:00:00Z")
    };
    let recorded = store.record_skills(&[used("pr", told.clone())]).await.unwrap();
    assert_eq!(recorded, SkillRecordCounts { executions: 1, ..SkillRecordCounts::default() });
    let kept = store.skill_executions(&skill.id, 9, None).await.unwrap().items;
    let expected = SkillExecution {
        skill_version_id: skill.id,
        // Signed 32-bit integers, as specified; and no NUL, which PostgreSQL cannot store.
        execution_time_ms: Some(i32::MAX.cast_unsigned()),
        error_message: Some("too late".to_owned()),
        ..told
    };
    assert_eq!(kept, [expected]);
}

async fn a_skill_is_found_by_id_or_name_and_an_unknown_one_is_counted(on: &Databases) {
    let store = on.store().await;
    let old = promoted(&store, "pr", "1", "2026-11-01T00:00:00Z").await;
    let new = promoted(&store, "pr", "2", "2026-11-02T00:00:00Z").await;
    let told = |id: &str, skill: &str, version: Option<&str>, user: &str| {
        let (skill, version) = (skill.to_owned(), version.map(str::to_owned));
        let mut execution = execution(id, "s", "2026-11-03T00:00:00Z");
        user.clone_into(&mut execution.user_id);
        let skill = SkillRef::Named { skill, version };
        SkillRecord::Execution { skill, execution, reaction: None }
    };
    let records = [
        told("a", "pr", None, "me"),
        told("b", "pr", Some("1"), "me"),
        told("c", &old.id, None, "me"),
        told("d", "pr", Some("3"), "me"),
        told("e", "pr", None, "somebody else"),
        told("f", "nothing", None, "me"),
    ];
    let recorded = store.record_skills(&records).await.unwrap();
    assert_eq!((recorded.executions, recorded.unknown), (3, 3));
    let ids = async |skill: &SkillVersion| {
        let page = store.skill_executions(&skill.id, 9, None).await.unwrap();
        page.items.into_iter().map(|execution| execution.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&old).await, ["c", "b"]);
    assert_eq!(ids(&new).await, ["a"]);
}

async fn of_the_versions_of_a_skill_one_is_in_use(on: &Databases) {
    use SkillStatus::{Active, Disabled, Superseded};
    let store = on.store().await;
    let first = promoted(&store, "pr", "1", "2026-11-01T00:00:00Z").await;
    assert_eq!((first.status, first.promoted_at), (SkillStatus::Active, Some(first.created_at)));
    let second = promoted(&store, "pr", "2", "2026-11-02T00:00:00Z").await;
    let statuses = async || {
        let versions = store.skill_versions("me", "pr").await.unwrap();
        versions.into_iter().map(|one| (one.version, one.status)).collect::<Vec<_>>()
    };
    let is = |version: &str, status| (version.to_owned(), status);
    assert_eq!(statuses().await, [is("2", Active), is("1", Superseded)]);

    let out = audit(&second.id, AuditAction::Rollback, "2026-11-03T00:00:00Z");
    let back = audit(&first.id, AuditAction::Promote, "2026-11-03T00:00:00Z");
    assert!(store.replace_skill(&out, &first, &back).await.unwrap());
    assert_eq!(statuses().await, [is("1", Active), is("2", Disabled)]);
    assert!(!store.replace_skill(&out, &first, &back).await.unwrap(), "it is out already");
    assert!(!store.disable_skill(&out).await.unwrap());

    let again = audit(&second.id, AuditAction::Promote, "2026-11-04T00:00:00Z");
    store.activate_skill(&second, &again).await.unwrap();
    assert_eq!(statuses().await, [is("2", Active), is("1", Superseded)]);
    let disabled = audit(&second.id, AuditAction::AutoDisable, "2026-11-05T00:00:00Z");
    assert!(store.disable_skill(&disabled).await.unwrap());
    assert_eq!(statuses().await, [is("2", Disabled), is("1", Superseded)]);
    let second = store.skill(&second.id).await.unwrap().unwrap();
    assert_eq!(second.reasons, disabled.reasons);
    assert_eq!(second.disabled_at, Some(disabled.time));

    let actions: Vec<_> = store.skill_audit("me", "pr").await.unwrap().items;
    let actions: Vec<_> = actions.iter().map(|entry| entry.action.name()).collect();
    let expected = ["promote", "promote", "rollback", "promote", "promote", "auto_disable"];
    assert_eq!(actions, expected);
    // The database itself enforces it.
    let two = sqlx::query("UPDATE skill_versions SET is_active = 1").execute(&store.pool).await;
    assert!(two.is_err());
}

async fn versions_are_numbered_and_no_name_is_given_twice(on: &Databases) {
    let store = on.store().await;
    for (number, (version, added)) in
        [(None, true), (Some("7"), true), (None, true), (Some("beta"), true), (Some("7"), false)]
            .into_iter()
            .enumerate()
    {
        let skill = NewSkill { id: format!("id-{number}"), ..new_skill("pr", version) };
        let noted = audit(&skill.id, AuditAction::Promote, "2026-11-01T00:00:00Z");
        assert_eq!(store.add_skill(&skill, &noted).await.unwrap(), added, "{version:?}");
    }
    let mut versions: Vec<_> = store.skill_versions("me", "pr").await.unwrap();
    versions.sort_by(|a, b| a.id.cmp(&b.id));
    let versions: Vec<_> = versions.iter().map(|one| one.version.as_str()).collect();
    assert_eq!(versions, ["1", "7", "8", "beta"]);
    assert_eq!(store.skill_content("id-0").await.unwrap().as_deref(), Some("# pr"));
    let long = NewSkill { content: "x".repeat(1 << 19), ..new_skill("long", None) };
    let noted = audit(&long.id, AuditAction::Promote, "2026-11-01T00:00:00Z");
    let error = store.add_skill(&long, &noted).await.unwrap_err();
    assert!(error.to_string().starts_with("the skill long is too large"), "{error}");
}

async fn lists_are_paged(on: &Databases) {
    let store = on.store().await;
    for name in ["b", "a", "c"] {
        for version in ["1", "2"] {
            promoted(&store, name, version, &format!("2026-11-0{version}T00:00:00Z")).await;
        }
    }
    promoted(&store, "d", "1", "2026-11-01T00:00:00Z").await;
    for limit in 1..=8 {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store.skills("me", limit, after.as_ref()).await.unwrap();
            found.extend(page.items.into_iter().map(|one| one.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, ["a-2", "a-1", "b-2", "b-1", "c-2", "c-1", "d-1"], "{limit}");
    }
    assert_eq!(store.skills("nobody", 9, None).await.unwrap().items, []);

    let records: Vec<_> = (0..5)
        .map(|number: u8| used("d", execution(&number.to_string(), "s", "2026-11-02T00:00:00Z")))
        .collect();
    store.record_skills(&records).await.unwrap();
    let page = store.skill_executions("d-1", 3, None).await.unwrap();
    let rest = store.skill_executions("d-1", 3, page.next.as_ref()).await.unwrap();
    let ids = page.items.iter().chain(&rest.items).map(|one| one.id.as_str());
    assert_eq!(ids.collect::<Vec<_>>(), ["4", "3", "2", "1", "0"]);
    assert_eq!(rest.next, None);
}

async fn rows_of_other_programs_are_left_out_or_read_as_far_as_they_make_sense(on: &Databases) {
    let store = on.store().await;
    for version in ["1", "2", "3"] {
        promoted(&store, "pr", version, "2026-11-01T00:00:00Z").await;
    }
    store.record_skills(&[used("pr", execution("a", "s", "2026-11-02T00:00:00Z"))]).await.unwrap();
    execute(&store, "UPDATE skill_versions SET created_at = 'once' WHERE version = '1'").await;
    execute(
        &store,
        "UPDATE skill_versions SET effectiveness_score = 7, total_executions = NULL, \
         last_scored_at = 'never', disabled_at = '2026-11-03T00:00:00Z' WHERE version = '2'",
    )
    .await;
    execute(&store, "UPDATE skill_audit SET reasons_json = '[{\"rule\": \"mood\"}]'").await;
    execute(&store, "UPDATE skill_executions SET conversation_turns = -1").await;
    let page = store.skills("me", 9, None).await.unwrap();
    let [third, second] = &page.items[..] else { panic!("{page:?}") };
    assert_eq!((third.version.as_str(), second.status), ("3", SkillStatus::Disabled));
    assert_eq!((second.effectiveness_score, second.total_executions), (None, 0));
    assert_eq!((second.last_scored_at, &second.reasons[..]), (None, &[][..]));
    let kept = store.skill_executions(&third.id, 9, None).await.unwrap().items;
    assert_eq!(kept[0].conversation_turns, None);
    execute(&store, "UPDATE skill_audit SET action = 'dance' WHERE id = 1").await;
    let audit = store.skill_audit("me", "pr").await.unwrap();
    assert_eq!((audit.items.len(), audit.unreadable), (2, 1));
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
