//! Agents of the Agent Client Protocol that make the harness read for them, or speak for others.

use selftest_harness::sut::sut_settings::WorkFolder;
use selftest_harness::sut::{SandboxState, SutEvidence, SutReply, SystemUnderTest as _};

use super::has_namespaces;
use crate::sut::world::{PATIENCE, World};

async fn ask(mode: &str) -> (SutReply, SutEvidence) {
    let world = World::run(&["/usr/bin/python3", "acp_agent.py", mode]);
    world.file("acp_agent.py", include_str!("../fixtures/acp_agent.py"));
    let world = world.set(|settings| settings.work_folder = WorkFolder::Copy);
    let mut session = world.acp().open(&world.task).await.unwrap();
    let reply = tokio::time::timeout(PATIENCE, session.submit("Go.")).await.unwrap();
    let evidence = tokio::time::timeout(PATIENCE, session.close()).await.unwrap();
    world.assert_gone();
    (reply.unwrap(), evidence)
}

#[tokio::test]
async fn a_work_folder_that_is_swapped_leads_nowhere() {
    if !has_namespaces() {
        return;
    }
    let (reply, _) = ask("swap").await;
    let read: std::collections::BTreeMap<String, bool> =
        serde_json::from_str(&reply.output).unwrap();
    assert_eq!(read.len(), 5);
    assert!(read.values().all(|was_read| !was_read), "{read:?}");
}

#[tokio::test]
async fn what_is_for_another_session_is_no_part_of_the_answer() {
    if !has_namespaces() {
        return;
    }
    let (reply, evidence) = ask("foreign").await;
    assert_eq!(reply.output, "Done.");
    let sandbox = evidence.sandbox.unwrap();
    assert_eq!(sandbox.state, SandboxState::Tainted);
    assert!(sandbox.forbidden[0].contains("for the session `of-another`"), "{sandbox:?}");
}

#[tokio::test]
async fn what_comes_after_the_end_of_a_turn_taints_it() {
    if !has_namespaces() {
        return;
    }
    let (reply, evidence) = ask("late").await;
    assert_eq!(reply.output, "Done.");
    let sandbox = evidence.sandbox.unwrap();
    assert_eq!(sandbox.state, SandboxState::Tainted, "{sandbox:?}");
}
