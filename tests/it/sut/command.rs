//! The `command` adapter: both protocols, and every way to misbehave.

use std::time::{Duration, Instant};

use selftest_checks::scenario::TaskStatus;
use selftest_harness::sut::sut_settings::ProgramProtocol;
use selftest_harness::sut::{SutError, SystemUnderTest as _};

use super::world::{PATIENCE, World, hangs, processes, until};

#[tokio::test]
async fn a_task_and_a_reply() {
    let world = World::agent(&["talk"]);
    let sut = world.sut();
    sut.check().await.unwrap();
    assert_eq!(sut.describe(), "command python3 agent.py talk (json_lines)");
    let mut session = sut.open(&world.task).await.unwrap();
    let first = session.submit("A and B").await.unwrap();
    assert_eq!(first.status, TaskStatus::AwaitingResponse);
    assert_eq!(first.output, "READ_INFO selftest-: which of A and B?");
    let second = session.reply("ß\n\"both\"").await.unwrap();
    assert_eq!(second.status, TaskStatus::Complete);
    assert_eq!(second.output, "you said ß\n\"both\"");
    let evidence = session.close().await;
    // On a slow machine it may not have ended by itself in time.
    let exit = evidence.exit.unwrap();
    assert!(["exit code 0", "ended by the harness"].contains(&exit.as_str()), "{exit}");
    assert_eq!(evidence.stderr, None);
    assert_eq!(evidence.notes, ["1 lines of other types were read over"]);
    world.assert_gone();
}

#[tokio::test]
async fn a_text_program_is_told_the_conversation() {
    let world =
        World::run(&["sh", "-c", "cat; echo; echo 'Which one?'"]).speaks(ProgramProtocol::Text);
    let mut session = world.sut().open(&world.task).await.unwrap();
    let first = session.submit("hello").await.unwrap();
    assert_eq!(first.output, "hello\nWhich one?");
    assert_eq!(first.status, TaskStatus::AwaitingResponse);
    assert_eq!(first.status_rule.as_deref(), Some("ends in a question"));
    let second = session.reply("the second").await.unwrap();
    assert_eq!(
        second.output,
        "User: hello\n\nAssistant: hello\nWhich one?\n\nUser: the second\nWhich one?"
    );
    assert_eq!(session.close().await.exit.as_deref(), Some("exit code 0"));
    world.assert_gone();
}

#[tokio::test]
async fn a_text_program_takes_its_prompt_as_an_argument() {
    for (run, expected) in [
        (vec!["python3", "agent.py", "echo", "-p"], "-p\nwhat's\n\"this\" $HOME"),
        (vec!["python3", "agent.py", "echo", "<{prompt}>"], "<what's\n\"this\" $HOME>"),
    ] {
        let world = World::run(&run).speaks(ProgramProtocol::Text).prompted_by_argument();
        let (reply, _) = world.ask("what's\n\"this\" $HOME").await;
        assert_eq!(reply.unwrap().output, expected);
    }
}

#[tokio::test]
async fn a_text_program_must_answer_and_succeed() {
    for (script, expected) in [
        ("exit 0", "the program printed no answer"),
        ("echo half; echo why >&2; exit 3", "the program failed: exit code 3; its last words: why"),
        ("kill -9 $$", "the program failed: killed by signal 9"),
    ] {
        let world = World::run(&["sh", "-c", script]).speaks(ProgramProtocol::Text);
        assert_eq!(world.failure().await.0, expected);
    }
}

#[tokio::test]
async fn a_prompt_larger_than_a_pipe_needs_no_reader() {
    let prompt = "x".repeat(1 << 20);
    let world = World::agent(&["deaf"]);
    let (reply, _) = world.ask(&prompt).await;
    assert_eq!(reply.unwrap().output, "I never read");
    let world = World::run(&["wc", "-c"]).speaks(ProgramProtocol::Text);
    let (reply, _) = world.ask(&prompt).await;
    assert_eq!(reply.unwrap().output, "1048576");
}

#[tokio::test]
async fn a_program_that_ends_early_leaves_its_last_words() {
    let (error, evidence) = World::agent(&["die"]).failure().await;
    assert_eq!(
        error,
        "the program ended without an answer: exit code 1; its last words: cannot find my model"
    );
    assert_eq!(evidence.exit.as_deref(), Some("exit code 1"));
    assert_eq!(evidence.stderr.as_deref(), Some("cannot find my model\n"));

    let (error, evidence) = World::agent(&["exit"]).failure().await;
    assert_eq!(
        error,
        "the program ended without an answer: exit code 3; its last words: three it is, \
         password=[redacted]"
    );
    assert_eq!(evidence.stderr.as_deref(), Some("three it is, password=[redacted]\n"));

    let (error, _) = World::agent(&["killed"]).failure().await;
    assert_eq!(error, "the program ended without an answer: killed by signal 9");
}

#[tokio::test]
async fn a_hanging_program_is_ended_with_all_that_it_started() {
    let world = World::agent(&["hang"]);
    let session_id = world.task.session_id.as_str();
    let mut session = world.sut().open(&world.task).await.unwrap();
    {
        let mut answer = session.submit("go");
        let all_there = async {
            while !hangs(session_id) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            answer = &mut answer => panic!("{answer:?}"),
            there = tokio::time::timeout(PATIENCE, all_there) => there.unwrap(),
        }
    }
    let evidence = tokio::time::timeout(PATIENCE, session.close()).await.unwrap();
    assert_eq!(evidence.exit.as_deref(), Some("ended by the harness"));
    assert_eq!(evidence.stderr.as_deref(), Some("thinking\n"));
    world.assert_gone();
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_ended() {
    let world = World::agent(&["leave"]);
    assert_eq!(world.lines().await, ["left something behind"]);
}

#[tokio::test]
async fn a_session_that_is_dropped_is_ended_too() {
    let world = World::agent(&["hang"]);
    let session_id = world.task.session_id.as_str().to_owned();
    let mut session = world.sut().open(&world.task).await.unwrap();
    {
        let mut answer = session.submit("go");
        while !hangs(&session_id) {
            let pause = Duration::from_millis(20);
            assert!(tokio::time::timeout(pause, &mut answer).await.is_err());
        }
    }
    drop(session);
    let gone = move || until("all are gone", || processes(&session_id).is_empty());
    tokio::task::spawn_blocking(gone).await.unwrap();
    assert_eq!(std::fs::read_dir(world.scratch()).unwrap().count(), 0);
}

#[tokio::test]
async fn garbage_is_quoted() {
    let (error, _) = World::agent(&["garbage"]).failure().await;
    assert_eq!(
        error,
        "expected one JSON object with a `type` per line, got: <html>not what was asked for</html>"
    );
    let (error, _) = World::agent(&["wrong"]).failure().await;
    assert!(error.starts_with("the result is not as expected: unknown variant `MAYBE`"), "{error}");
}

#[tokio::test]
async fn endless_output_is_cut_short() {
    let started = Instant::now();
    let (error, _) = World::agent(&["flood"]).failure().await;
    assert_eq!(error, "the program wrote a line of more than 1048576 bytes");
    let (error, _) = World::agent(&["lines"]).failure().await;
    assert_eq!(error, "the program wrote more than 8388608 bytes in one session");
    let world = World::agent(&["flood"]).speaks(ProgramProtocol::Text);
    let (error, _) = world.failure().await;
    assert_eq!(error, "the program wrote an answer of more than 1048576 bytes");
    assert!(started.elapsed() < PATIENCE);
}

#[tokio::test]
async fn stderr_is_bounded() {
    let (reply, evidence) = World::agent(&["stderr-flood"]).ask("go").await;
    assert_eq!(reply.unwrap().output, "said a lot");
    let stderr = evidence.stderr.unwrap();
    assert!(stderr.len() < 40_000, "{}", stderr.len());
    assert!(stderr.contains("bytes left out"));
}

#[tokio::test]
async fn a_program_that_closes_its_output_is_not_waited_for() {
    let (error, _) = World::agent(&["silent"]).failure().await;
    assert_eq!(error, "the program closed its output without an answer and runs on");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_found_at_once() {
    for (run, expected) in [
        ("no-such-program-anywhere", "there is no program `no-such-program-anywhere` on PATH"),
        ("./agent.py", "is not executable"),
        ("./missing", "/project/missing"),
    ] {
        let error = World::run(&[run]).sut().check().await.unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
        assert!(matches!(error, SutError::NotStarted { hint: Some(_), .. }));
    }
}

#[tokio::test]
async fn a_scratch_folder_that_cannot_be_made_is_found_at_once() {
    let world = World::agent(&["talk"]);
    std::fs::write(world.scratch(), "a file in its place").unwrap();
    let error = world.sut().check().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot make the scratch folder "), "{error}");
}

#[tokio::test]
async fn the_json_lines_example() {
    let world = World::run(&["python3", "sut.py"]);
    world.file("sut.py", include_str!("../../../examples/sut_json_lines.py"));
    let mut session = world.sut().open(&world.task).await.unwrap();
    let reply = session.submit("tell me something").await.unwrap();
    assert_eq!(reply.status, TaskStatus::AwaitingResponse);
    let reply = session.reply("What does the project do with widgets?").await.unwrap();
    assert_eq!(reply.status, TaskStatus::Complete);
    assert_eq!(reply.output, "README.md says:\n- # A project");
    session.close().await;
    world.assert_gone();
}

#[tokio::test]
async fn the_text_example() {
    let world = World::run(&["sh", "sut.sh"]).speaks(ProgramProtocol::Text);
    world.file("sut.sh", include_str!("../../../examples/sut_text.sh"));
    let mut session = world.sut().open(&world.task).await.unwrap();
    let reply = session.submit("Do something.").await.unwrap();
    assert_eq!(reply.status, TaskStatus::AwaitingResponse);
    let reply = session.reply("The README.").await.unwrap();
    assert_eq!(reply.status, TaskStatus::Complete);
    assert_eq!(reply.output, "The README begins with: # A project\nIt has 3 entries at the top.");
    session.close().await;
    world.assert_gone();
}
