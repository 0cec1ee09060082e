//! Skills as a small team could have them. All of it is made up, and so long ago that no page
//! depends on the day of the test.

use jiff::{SignedDuration, Timestamp};
use selftest::improve::disabling::Reason;
use selftest::improve::skill::{
    AuditAction, AuditEntry, ExecutionStatus, Reaction, SkillExecution,
};
use selftest::store::{NewSkill, SkillRecord, SkillRef, Store};

use super::demo::{GRADED, SCRIPT};

/// The version whose page is looked at.
pub(super) const DISABLED: &str = "3c1e2d4f-0000-8000-8000-00000000c0de";

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn entry(id: &str, action: AuditAction, time: Timestamp, reasons: Vec<Reason>) -> AuditEntry {
    let (skill_version_id, actor) = (id.to_owned(), "schedule".to_owned());
    AuditEntry { time, skill_version_id, action, reasons, actor }
}

async fn promote(store: &Store, name: &str, id: &str, time: &str) {
    let skill = NewSkill {
        id: id.to_owned(),
        user_id: "local".to_owned(),
        skill_name: name.to_owned(),
        version: None,
        content: format!("# {name}"),
    };
    let audit = entry(id, AuditAction::Promote, at(time), Vec::new());
    assert!(store.add_skill(&skill, &audit).await.unwrap());
}

fn execution(number: u32) -> SkillRecord {
    let failed = !number.is_multiple_of(4);
    let execution = SkillExecution {
        id: format!("execution-{number:02}"),
        skill_version_id: String::new(),
        user_id: "local".to_owned(),
        session_id: Some(GRADED.to_owned()),
        execution_status: match number % 4 {
            0 => ExecutionStatus::Success,
            1 => ExecutionStatus::Timeout,
            _ => ExecutionStatus::Error,
        },
        user_edited_output: number.is_multiple_of(5),
        user_sent_thank_you: false,
        user_repeated_request: false,
        user_was_frustrated: None,
        conversation_turns: Some(2 + number),
        execution_time_ms: Some(900 + 17_000 * number),
        error_message: failed.then(|| format!("the branch does not exist {SCRIPT}")),
        created_at: at("2025-11-20T09:00:00Z") + SignedDuration::from_mins((7 * number).into()),
    };
    let reaction = Reaction {
        gratitude: number == 4,
        repetition: Some(number == 3),
        frustration: number == 2,
        edited: false,
    };
    let skill = SkillRef::Told { skill: DISABLED.to_owned(), version: None };
    SkillRecord::Execution { skill, execution, reaction: (number < 5).then_some(reaction) }
}

/// Puts them into the database of a site.
pub(super) async fn fill(store: &Store) {
    promote(store, "release-notes", "5d1c0000-0000-8000-8000-00000000c0de", "2025-11-02T08:00:00Z")
        .await;
    promote(store, "open-pr", "2b1d0000-0000-8000-8000-00000000c0de", "2025-11-03T08:00:00Z").await;
    promote(store, "open-pr", DISABLED, "2025-11-10T08:00:00Z").await;
    promote(store, SCRIPT, "6e2f0000-0000-8000-8000-00000000c0de", "2025-11-11T08:00:00Z").await;
    let records: Vec<SkillRecord> = (0..14).map(execution).collect();
    store.record_skills(&records).await.unwrap();
    let scores = [
        ("5d1c0000-0000-8000-8000-00000000c0de".to_owned(), Some(0.91), 42),
        (DISABLED.to_owned(), Some(0.51), 14),
        ("6e2f0000-0000-8000-8000-00000000c0de".to_owned(), None, 3),
    ];
    store.save_skill_scores(&scores, at("2025-11-22T04:00:00Z")).await.unwrap();
    let reason = Reason::RareSuccess { successes: 1, executions: 14, upper: 0.314, limit: 0.5 };
    let time = at("2025-11-22T04:00:01Z");
    let audit = entry(DISABLED, AuditAction::AutoDisable, time, vec![reason]);
    assert!(store.disable_skill(&audit).await.unwrap());
    let words = "the refresh webhook failed: the server answered 500".to_owned();
    let audit = entry(DISABLED, AuditAction::RefreshFailed, time, vec![Reason::Words { words }]);
    store.add_skill_audit(&audit).await.unwrap();
}
