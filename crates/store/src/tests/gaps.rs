//! Gaps and proposals (docs/spec/skills-and-signals.md#gaps-and-proposals).

use super::*;
use crate::ProposalDecision;
use selftest_grading::improve::gap::{DetectedGap, GapEvidence, GapKind, GapStatus};
use selftest_grading::improve::proposal::{ProposalStatus, SkillProposal, SkillTest};

on_every_engine! {
    one_row_for_a_gap_over_weeks,
    a_gap_gets_one_proposal_and_a_decision,
    what_failed_often_comes_last,
    rows_of_others_are_skipped_and_counted,
    whatever_evidence_says_it_is_read_again,
    only_a_closed_gap_opens_again,
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
