//! Answers for others, and before the question; and a run in which a program reads the answer key.

use selftest_harness::sut::{SandboxState, SystemUnderTest as _};

use crate::sut::world::World;

fn says(lines: &str) -> World {
    let world = World::agent(&[]);
    world.file("says.py", &format!("import json, sys\nsys.stdin.readline()\n{lines}\n"));
    world.set(|settings| settings.run = ["/usr/bin/python3", "says.py"].map(String::from).into())
}

#[tokio::test]
async fn an_answer_for_another_session_is_a_violation() {
    let world = says(
        "print(json.dumps({'type': 'result', 'status': 'COMPLETE', 'output': 'x', \
         'session_id': 'selftest-20260206-1234-other'}), flush=True)",
    );
    let (reply, evidence) = world.ask("go").await;
    assert!(reply.unwrap_err().to_string().contains("answered for the session"));
    let sandbox = evidence.sandbox.unwrap();
    assert_eq!((sandbox.state, sandbox.forbidden.len()), (SandboxState::Tainted, 1));
}

#[tokio::test]
async fn another_answer_after_the_answer_is_a_violation() {
    let world = says(
        "print(json.dumps({'type': 'result', 'status': 'COMPLETE', 'output': 'x'}), flush=True)\n\
         print(json.dumps({'type': 'result', 'status': 'COMPLETE', 'output': 'y', \
         'session_id': 'selftest-20260206-1234-other'}), flush=True)",
    );
    let (reply, evidence) = world.ask("go").await;
    assert_eq!(reply.unwrap().output, "x");
    let sandbox = evidence.sandbox.unwrap();
    assert_eq!(sandbox.state, SandboxState::Tainted);
    assert!(sandbox.forbidden[0].contains("answered for the session"), "{sandbox:?}");
}

#[tokio::test]
async fn its_own_session_may_be_named() {
    let world = says(
        "import os\nprint(json.dumps({'type': 'result', 'status': 'COMPLETE', 'output': 'x', \
         'session_id': os.environ['SELFTEST_SESSION_ID']}), flush=True)",
    );
    let (reply, evidence) = world.ask("go").await;
    assert_eq!(reply.unwrap().output, "x");
    assert!(evidence.sandbox.unwrap().forbidden.is_empty());
}

#[tokio::test]
async fn an_answer_before_the_question_is_a_violation() {
    let world = says(
        "for status in ['AWAITING_RESPONSE', 'COMPLETE']:\n    \
         print(json.dumps({'type': 'result', 'status': status, 'output': 'x'}), flush=True)\n\
         sys.stdin.readline()",
    );
    let mut session = world.sut().open(&world.task).await.unwrap();
    session.submit("go").await.unwrap();
    // Both lines were written at once: the second has arrived when the first is read, or soon after.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let early = session.reply("this one").await.unwrap_err();
    assert!(early.to_string().contains("before it was asked"), "{early}");
    let sandbox = session.close().await.sandbox.unwrap();
    assert_eq!((sandbox.state, sandbox.forbidden.len()), (SandboxState::Tainted, 1));
}
