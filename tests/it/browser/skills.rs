//! Skills as a small team could have them. All of it is made up.

use jiff::{SignedDuration, Timestamp};
use selftest_grading::improve::effectiveness::ChangeReason;
use selftest_grading::improve::skill::{
    AuditAction, AuditEntry, ExecutionStatus, SkillExecution, UserReaction,
};
use selftest_store::{NewSkill, SkillRecord, SkillRef, Store};

use super::demo::{GRADED, SCRIPT};

/// The version whose page is looked at.
pub(super) const DISABLED: &str = "3c1e2d4f-0000-8000-8000-00000000c0de";

const NOTES: &str = "5d1c0000-0000-8000-8000-00000000c0de";

fn entry(id: &str, action: AuditAction, time: Timestamp, reasons: Vec<ChangeReason>) -> AuditEntry {
    let (skill_version_id, actor) = (id.to_owned(), "schedule".to_owned());
    AuditEntry { time, skill_version_id, action, reasons, actor }
}

async fn promote(store: &Store, name: &str, id: &str, time: Timestamp) {
    let skill = NewSkill {
        id: id.to_owned(),
        user_id: "local".to_owned(),
        skill_name: name.to_owned(),
        version: None,
        content: format!("# {name}"),
    };
    let audit = entry(id, AuditAction::Promote, time, Vec::new());
    assert!(store.add_skill(&skill, &audit).await.unwrap());
}

fn failing(number: u32, now: Timestamp) -> SkillRecord {
    let failed = number != 4;
    let execution = SkillExecution {
        id: format!("execution-{number:02}"),
        skill_version_id: String::new(),
        user_id: "local".to_owned(),
        session_id: Some(GRADED.to_owned()),
        execution_status: match number % 4 {
            _ if !failed => ExecutionStatus::Success,
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
        created_at: now - SignedDuration::from_hours((19 + 17 * number).into()),
    };
    let reaction = UserReaction {
        gratitude: number == 4,
        repetition: Some(number == 3),
        frustration: number == 2,
        edited: false,
    };
    let skill = SkillRef::Named { skill: DISABLED.to_owned(), version: None };
    SkillRecord::Execution { skill, execution, reaction: (number < 5).then_some(reaction) }
}

/// One that ends well nearly always.
fn helping(number: u32, now: Timestamp) -> SkillRecord {
    let execution_status =
        if number % 13 == 9 { ExecutionStatus::Error } else { ExecutionStatus::Success };
    let execution = SkillExecution {
        id: format!("helping-{number:02}"),
        skill_version_id: String::new(),
        user_id: "local".to_owned(),
        session_id: None,
        execution_status,
        user_edited_output: false,
        user_sent_thank_you: false,
        user_repeated_request: false,
        user_was_frustrated: None,
        conversation_turns: Some(3),
        execution_time_ms: Some(4200),
        error_message: None,
        created_at: now - SignedDuration::from_hours((20 + 16 * number).into()),
    };
    let skill = SkillRef::Named { skill: NOTES.to_owned(), version: None };
    SkillRecord::Execution { skill, execution, reaction: None }
}

/// Puts them into the database of a site, as if that was the time.
pub(super) async fn fill(store: &Store, now: Timestamp) {
    let before = |days: i64| now - SignedDuration::from_hours(24 * days);
    promote(store, "release-notes", NOTES, before(40)).await;
    promote(store, "open-pr", "2b1d0000-0000-8000-8000-00000000c0de", before(39)).await;
    promote(store, "open-pr", DISABLED, before(12)).await;
    promote(store, SCRIPT, "6e2f0000-0000-8000-8000-00000000c0de", before(11)).await;
    let failing = (0..14).map(|number| failing(number, now));
    let records: Vec<SkillRecord> =
        failing.chain((0..42).map(|number| helping(number, now))).collect();
    store.record_skills(&records).await.unwrap();
    let scores = [
        (NOTES.to_owned(), Some(0.91), 42),
        (DISABLED.to_owned(), Some(0.42), 14),
        ("6e2f0000-0000-8000-8000-00000000c0de".to_owned(), None, 3),
    ];
    store.save_skill_scores(&scores, before(0)).await.unwrap();
    let reason =
        ChangeReason::RareSuccess { successes: 1, executions: 14, upper: 0.314, limit: 0.5 };
    let time = before(0);
    let audit = entry(DISABLED, AuditAction::AutoDisable, time, vec![reason]);
    assert!(store.disable_skill(&audit).await.unwrap());
    let words = "the refresh webhook failed: the server answered 500".to_owned();
    let audit =
        entry(DISABLED, AuditAction::RefreshFailed, time, vec![ChangeReason::Words { words }]);
    store.add_skill_audit(&audit).await.unwrap();
}
