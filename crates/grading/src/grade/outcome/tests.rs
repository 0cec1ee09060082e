//! Outcomes of sessions made by hand: what decides, and what does not.

use super::super::grade_settings::GradeWeights;
use super::*;
use crate::grade::GradeRecord;
use crate::grade::heuristic::{GradingContext, GradingResult, RuleGrader};
use selftest_sessions::{
    Event, EventMark, EventOrigin, EventRole, SessionHead, SessionSink as _, Text, ToolCall,
    ToolOutcome, ToolResult,
};
use selftest_text::redact::Redactor;

/// A step of a session.
#[derive(Clone, Copy)]
enum Does {
    Says(&'static str),
    /// A person does.
    Asks(&'static str),
    /// A command that ends so and prints that.
    Runs(&'static str, ToolOutcome, &'static str),
    Edits(&'static str),
    Writes(&'static str),
    IsStopped,
    /// An editing tool whose result has these words.
    EditsWith(&'static str, ToolOutcome, &'static str),
    /// The program says that other hands changed this file.
    SeesEdit(&'static str),
    /// The person undoes the change of this file.
    Undoes(&'static str),
    /// A verifier says that it is done, or not.
    IsJudged(bool),
}

use Does::{Asks, Edits, EditsWith, IsJudged, IsStopped, Runs, Says, SeesEdit, Undoes, Writes};

fn grade(steps: &[Does]) -> GradeRecord {
    let redactor = Redactor::default();
    let at = jiff::Timestamp::UNIX_EPOCH;
    let context = GradingContext { session_file: "s.jsonl", graded_at: at };
    let mut heuristic = RuleGrader::new(context, GradeWeights::default(), &redactor);
    let mut number = 0;
    for step in steps {
        for mut event in events(*step, number) {
            event.number = number;
            number += 1;
            heuristic.event(event);
        }
    }
    heuristic.end(SessionHead {
        id: "s".to_owned(),
        agent: "test".to_owned(),
        ..SessionHead::default()
    });
    match heuristic.into_gradings().remove(0) {
        GradingResult::Graded(record) => *record,
        GradingResult::NotGradable { reason, .. } => panic!("{reason}"),
    }
}

fn events(step: Does, number: u64) -> Vec<Event<'static>> {
    let agent = |text: &'static str, calls| Event {
        role: EventRole::Assistant,
        origin: EventOrigin::Agent,
        text: Text::from(text),
        calls,
        ..Event::default()
    };
    let id = Text::from(format!("call {number}"));
    let call = |name: &'static str, arguments: String| ToolCall {
        id: id.clone(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let result = |outcome, text: &'static str| {
        let result =
            ToolResult { call_id: id.clone(), outcome, text: text.into(), ..ToolResult::default() };
        Event {
            role: EventRole::Tool,
            origin: EventOrigin::Agent,
            results: vec![result],
            ..Event::default()
        }
    };
    let edit = |tool, path: &str| call(tool, format!(r#"{{"file_path":"{path}","x":"y"}}"#));
    match step {
        Says(text) => vec![agent(text, Vec::new())],
        Asks(text) => vec![Event {
            role: EventRole::User,
            origin: EventOrigin::Human,
            text: text.into(),
            ..Event::default()
        }],
        Runs(command, outcome, output) => {
            let arguments = serde_json::json!({ "command": command }).to_string();
            vec![agent("", vec![call("Bash", arguments)]), result(outcome, output)]
        }
        Edits(path) => vec![agent("", vec![edit("Edit", path)]), result(ToolOutcome::Ok, "")],
        EditsWith(path, outcome, words) => {
            vec![agent("", vec![edit("Edit", path)]), result(outcome, words)]
        }
        SeesEdit(path) | Undoes(path) => {
            let is_undone = matches!(step, Undoes(_));
            let mark = if is_undone { EventMark::EditUndone } else { EventMark::FileEdited };
            vec![Event { mark: Some(mark), text: path.into(), ..Event::default() }]
        }
        Writes(path) => vec![agent("", vec![edit("Write", path)]), result(ToolOutcome::Ok, "")],
        IsJudged(passed) => vec![Event {
            mark: Some(if passed { EventMark::VerifierPassed } else { EventMark::VerifierFailed }),
            text: if passed { "reward: 1.0" } else { "reward: 0.0" }.into(),
            ..Event::default()
        }],
        IsStopped => vec![Event {
            role: EventRole::User,
            mark: Some(EventMark::Interrupted),
            text: "[Request interrupted by user]".into(),
            ..Event::default()
        }],
    }
}

fn outcome(steps: &[Does]) -> (TaskOutcome, Vec<OutcomeSign>) {
    let grade = grade(steps);
    (grade.outcome, grade.details.outcome_evidence.iter().map(|one| one.sign).collect())
}

fn state(steps: &[Does]) -> StateName {
    grade(steps).details.state.name()
}

const TASK: Does = Asks("fix the login");
const PASSES: Does = Runs("pytest -q", ToolOutcome::Ok, "12 passed in 0.4s");
const FAILS: Does = Runs("pytest -q", ToolOutcome::Failed, "1 failed, 11 passed");
const DONE: Does = Says("Done: the login is fixed and works again.");

#[test]
fn tests_after_the_last_change_verify() {
    let (found, signs) = outcome(&[TASK, FAILS, Edits("src/a.py"), PASSES, DONE]);
    assert_eq!(found, TaskOutcome::ChecksPassed);
    assert_eq!(signs, [OutcomeSign::TestsPassed, OutcomeSign::Claims]);
    let grade = grade(&[TASK, Edits("src/a.py"), PASSES, DONE]);
    let [passed, claims] = &grade.details.outcome_evidence[..] else { panic!("{grade:?}") };
    assert_eq!((passed.event, passed.words.as_str()), (4, "pytest -q"));
    assert_eq!(claims.event, 5);
    assert!(claims.words.contains("Done"), "{claims:?}");
}

#[test]
fn a_change_after_the_tests_leaves_the_claim() {
    let steps = [TASK, Edits("src/a.py"), PASSES, Edits("src/b.py"), DONE];
    assert_eq!(outcome(&steps), (TaskOutcome::Claimed, vec![OutcomeSign::Claims]));
    let by_shell =
        [TASK, Edits("a.py"), PASSES, Runs("sed -i s/a/b/ a.py", ToolOutcome::Ok, ""), DONE];
    assert_eq!(outcome(&by_shell).0, TaskOutcome::Claimed);
    let notes = [TASK, Edits("src/a.py"), PASSES, Writes("SUMMARY.md"), DONE];
    assert_eq!(outcome(&notes).0, TaskOutcome::ChecksPassed, "notes change no behaviour");
    let kept = [TASK, Edits("a.py"), Runs("pytest > result.txt", ToolOutcome::Ok, ""), DONE];
    assert_eq!(state(&kept), StateName::UncountedPassed, "a check's own output is no change");
    let scratch = Runs("cat > try.py <<'EOF'\nprint(1)\nEOF", ToolOutcome::Ok, "");
    let removed =
        [TASK, scratch, Edits("a.py"), PASSES, Runs("rm try.py", ToolOutcome::Ok, ""), DONE];
    assert_eq!(outcome(&removed).0, TaskOutcome::ChecksPassed, "its own scratch file");
}

#[test]
fn the_file_is_known_where_a_call_is_cut_or_names_it_twice() {
    let long = "a line of notes, and a \\\"word\\\"\\n".repeat(3000);
    for (arguments, path, is_whole) in [
        (format!(r#"{{"file_path":"/w/notes.md","content":"{long}"}}"#), "/w/notes.md", true),
        (format!(r#"{{"content":"{long}","path":"src/a.py"}}"#), "src/a.py", true),
        (r#"{"file_path":"/w/notes.md","path":"/w/notes.md"}"#.to_owned(), "/w/notes.md", true),
    ] {
        let text = Text::from(arguments);
        let mended = text.repaired_json();
        let work = tools::tool_effect("Write", mended.as_deref().unwrap_or(&text));
        assert_eq!(work, tools::ToolEffect::Edit { path: path.into(), is_whole });
    }
}

#[test]
fn what_does_not_verify() {
    for (why, steps) in [
        ("nothing was changed", &[TASK, PASSES, DONE][..]),
        (
            "a pipe hides the code",
            &[TASK, Edits("a.py"), Runs("pytest | tail", ToolOutcome::Ok, ""), DONE],
        ),
        (
            "nothing ran",
            &[TASK, Edits("a.py"), Runs("pytest", ToolOutcome::Ok, "no tests ran"), DONE],
        ),
        ("refused", &[TASK, Edits("a.py"), Runs("pytest", ToolOutcome::Rejected, ""), DONE]),
        (
            "its own test",
            &[
                TASK,
                Edits("a.py"),
                Writes("tests/test_new.py"),
                Runs("pytest tests/test_new.py", ToolOutcome::Ok, "1 passed"),
                DONE,
            ],
        ),
        ("a linter", &[TASK, Edits("a.py"), Runs("ruff check", ToolOutcome::Ok, ""), DONE]),
        (
            "a build",
            &[
                TASK,
                Runs("cargo build", ToolOutcome::Failed, "error: could not compile"),
                Edits("a.rs"),
                Runs("cargo build", ToolOutcome::Ok, "Finished `dev` profile"),
                DONE,
            ],
        ),
        (
            "another run failed",
            &[
                TASK,
                Edits("a.py"),
                FAILS,
                Runs("pytest tests/test_a.py", ToolOutcome::Ok, "3 passed"),
                DONE,
            ],
        ),
    ] {
        assert_eq!(outcome(steps).0, TaskOutcome::Claimed, "{why}");
    }
    assert_eq!(outcome(&[TASK, Says("I have looked at it.")]), (TaskOutcome::Unknown, vec![]));
}

#[test]
fn what_was_seen_is_said() {
    use StateName::*;
    let runs = |command, output| Runs(command, ToolOutcome::Ok, output);
    let fails = |command, output| Runs(command, ToolOutcome::Failed, output);
    for (step, expected) in [
        (runs("pytest -q", "12 passed in 0.4s"), WholeSuitePassed),
        (runs("pytest -q", ""), UncountedPassed),
        (runs("pytest tests/test_a.py", "12 passed in 0.4s"), PartPassed),
        (runs("pytest -q", "2 passed, 10 skipped in 0.4s"), PartPassed),
        (runs("pytest -q", "1 passed, 369 deselected in 0.4s"), PartPassed),
        (runs("pytest -q", "2 skipped in 0.1s"), NoneRan),
        (runs("pytest -q", "=== 205 deselected in 0.50s ==="), NoneRan),
        (runs("python tests/runtests.py x", "Ran 0 tests in 0.000s\n\nOK"), NoneRan),
        (runs("go test ./...", "?   \ta/b\t[no test files]"), NoneRan),
        (runs("npm test", "Tests:       3 passed, 3 total"), WholeSuitePassed),
        (runs("npm test", "All tests passed!"), UncountedPassed),
        (fails("./gradlew test", "ERROR: JAVA_HOME is not set and no 'java' command"), CouldNotRun),
        (
            fails(
                "mvn test",
                "The JAVA_HOME environment variable is not defined correctly\nJAVA_HOME is not set",
            ),
            CouldNotRun,
        ),
        (fails("pytest", "1 failed, 2 passed in 0.1s"), TestsFailed),
        (runs("pytest --collect-only", "3 tests collected in 0.01s"), Claimed),
    ] {
        assert_eq!(state(&[TASK, Edits("src/a.py"), step, DONE]), expected);
    }
    let written =
        [TASK, Writes("/w/test_system.sh"), runs("./test_system.sh", "All tests passed!"), DONE];
    assert_eq!(state(&written), OwnTestsPassed);
    let by_shell = [
        TASK,
        Edits("a.py"),
        runs(
            "cat > /tmp/test_a.py <<'EOF'\ndef test_a(): pass\nEOF\npytest /tmp/test_a.py",
            "1 passed in 0.1s",
        ),
        DONE,
    ];
    assert_eq!(state(&by_shell), OwnTestsPassed);
    let listed = [
        TASK,
        Writes("tests/test_new.py"),
        Edits("a.py"),
        runs("pytest", "tests/test_new.py ...   [100%]\n\n=== 3 passed in 0.1s ==="),
        DONE,
    ];
    assert_eq!(state(&listed), OwnTestsPassed, "the whole suite is its own");
    assert_eq!(state(&[TASK, Says("I have looked at it.")]), Unknown);
    assert_eq!(state(&[TASK, Edits("a.py"), PASSES, DONE, IsJudged(false)]), FailedElsewhere);
    let both = [TASK, DONE, IsJudged(true), IsJudged(false)];
    assert_eq!(state(&both), DisagreedElsewhere);
}

#[test]
fn what_verifies_beside_tests() {
    for steps in [
        [TASK, Edits("a.py"), Runs("gh pr merge 3 --squash", ToolOutcome::Ok, "merged"), DONE],
        [TASK, Edits("a.py"), Runs("pytest | tail -3", ToolOutcome::Ok, "4 passed in 1s"), DONE],
    ] {
        assert_eq!(outcome(&steps).0, TaskOutcome::ChecksPassed);
    }
}

#[test]
fn a_last_run_that_failed_contradicts() {
    let (found, signs) = outcome(&[TASK, Edits("a.py"), PASSES, FAILS, DONE]);
    assert_eq!(found, TaskOutcome::Contradicted);
    assert_eq!(signs, [OutcomeSign::TestsFailed, OutcomeSign::Claims]);
    let hidden = Runs("pytest -q", ToolOutcome::Unknown, "2 failed, 1 passed in 0.1s");
    let hidden = [TASK, FAILS, Edits("a.py"), hidden, DONE];
    assert_eq!(outcome(&hidden).0, TaskOutcome::Contradicted, "two instead of one");
    let old = [TASK, FAILS, Edits("a.py"), FAILS, DONE];
    assert_eq!(outcome(&old).0, TaskOutcome::Claimed, "it failed before the change as well");
    assert_eq!(state(&old), StateName::TestsFailed);
    let unknown = [TASK, Edits("a.py"), FAILS, DONE];
    assert_eq!(outcome(&unknown).0, TaskOutcome::Claimed, "it may have failed before");
    let missing = Runs("pytest", ToolOutcome::Failed, "bash: pytest: command not found");
    assert_eq!(outcome(&[TASK, Edits("a.py"), missing, DONE]).0, TaskOutcome::Claimed);
    let asked_for = [Asks("run the tests"), FAILS, Says("One test is red.")];
    assert_eq!(outcome(&asked_for).0, TaskOutcome::Unknown, "that was the task");
}

#[test]
fn the_person_has_the_last_word() {
    let done = [TASK, Edits("a.py"), PASSES, DONE];
    for (said, sign) in [
        ("still doesn't work", OutcomeSign::UserComplains),
        ("No, I meant the other form", OutcomeSign::UserCorrects),
        ("please revert that", OutcomeSign::UserReverts),
        ("fix the login!", OutcomeSign::UserAsksAgain),
    ] {
        let after = [&done[..], &[Asks(said), Says("I will look at it.")]].concat();
        let grade = grade(&after);
        assert_eq!(grade.outcome, TaskOutcome::Contradicted, "{said}");
        assert_eq!(grade.details.outcome_evidence[0].sign, sign, "{said}");
        assert_eq!(grade.details.corrections, 1);
        // Something else follows: it is settled.
        let after = [&after[..], &[Asks("now add a log"), Edits("a.py"), PASSES, DONE]].concat();
        assert_eq!(outcome(&after).0, TaskOutcome::ChecksPassed, "{said}");
    }
    let again = [&done[..], &[Asks("still broken"), Edits("a.py"), PASSES, DONE]].concat();
    assert_eq!(outcome(&again).0, TaskOutcome::Claimed, "the same tests passed before");
    let stopped = [TASK, Edits("a.py"), PASSES, IsStopped];
    let (found, signs) = outcome(&stopped);
    assert_eq!((found, signs), (TaskOutcome::Contradicted, vec![OutcomeSign::UserInterrupts]));
}

#[test]
fn only_the_refusal_of_a_person_makes_a_correction_of_what_follows() {
    for (text, corrections) in [
        ("The user doesn't want to proceed with this tool use.", 1),
        (r#"{"error":"blocked by policy","status":"blocked"}"#, 0),
        (r#"{"error":"off","status":"disabled"}"#, 0),
        (r#"{"output":null,"status":"approval_required"}"#, 0),
    ] {
        let refused = Runs("ls /", ToolOutcome::Rejected, text);
        let steps = [TASK, refused, Asks("look into the other folder first"), DONE];
        assert_eq!(grade(&steps).details.corrections, corrections, "{text}");
    }
}

#[test]
fn a_first_message_objects_to_nothing() {
    let (found, _) = outcome(&[Asks("wtf, the login is still broken. fix it"), DONE]);
    assert_eq!(found, TaskOutcome::Claimed);
}

#[test]
fn words_are_redacted_and_short() {
    let long = "pytest -q --".to_owned() + &"x".repeat(5000);
    let long: &'static str = Box::leak(long.into_boxed_str());
    let grade = grade(&[TASK, Edits("a.py"), Runs(long, ToolOutcome::Ok, "1 passed"), DONE]);
    assert!(grade.details.outcome_evidence.iter().all(|one| one.words.len() <= 300));
    assert_eq!(grade.outcome, TaskOutcome::ChecksPassed);
}

#[test]
fn names_are_those_of_serde() {
    for &outcome in TaskOutcome::ALL {
        assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
    }
    assert!(OutcomeSign::TestsPassed.words().contains("tests"));
}

#[test]
fn a_verifier_outranks_everything_else() {
    let (found, signs) = outcome(&[TASK, Edits("a.py"), FAILS, DONE, IsJudged(true)]);
    assert_eq!(found, TaskOutcome::ChecksPassed);
    assert_eq!(signs, [OutcomeSign::VerifierPassed, OutcomeSign::Claims]);
    let grade = grade(&[TASK, Edits("a.py"), PASSES, DONE, IsJudged(false)]);
    assert_eq!(grade.outcome, TaskOutcome::Contradicted);
    let [failed, claims] = &grade.details.outcome_evidence[..] else { panic!("{grade:?}") };
    assert_eq!((failed.event, failed.words.as_str()), (6, "reward: 0.0"));
    assert_eq!(claims.sign, OutcomeSign::Claims, "what the agent said last is still its word");
    let (found, signs) = outcome(&[TASK, DONE, IsJudged(true), IsJudged(false)]);
    assert_eq!(found, TaskOutcome::Contradicted, "one that failed is enough");
    assert_eq!(signs[..2], [OutcomeSign::VerifierPassed, OutcomeSign::VerifierFailed]);
}

/// A change of the agent's change decides nothing by itself.
#[test]
fn changes_by_other_hands_are_counted() {
    let foreign = |steps: &[Does]| grade(steps).details.foreign_edits;
    let steps = [TASK, Edits("src/a.py"), PASSES, DONE, SeesEdit("/w/src/a.py")];
    let (found, signs) = outcome(&steps);
    assert_eq!((foreign(&steps), found), (1, TaskOutcome::ChecksPassed));
    assert_eq!(signs.last(), Some(&OutcomeSign::Claims));
    assert!(signs.contains(&OutcomeSign::UserEdits), "{signs:?}");
    assert_eq!(
        foreign(&[TASK, Edits("src/a.py"), DONE, SeesEdit("/w/src/b.py")]),
        0,
        "not its file"
    );
    assert_eq!(foreign(&[TASK, SeesEdit("/w/src/a.py"), Edits("src/a.py"), DONE]), 0, "before it");

    let proposal = "The user made the following updates to your content:\n\n-a\n+b";
    assert_eq!(foreign(&[TASK, EditsWith("a.py", ToolOutcome::Unknown, proposal), DONE]), 1);
    let since = "File has been modified since read, either by the user or by a linter.";
    let failed = EditsWith("a.py", ToolOutcome::Failed, since);
    assert_eq!(foreign(&[TASK, Edits("a.py"), failed, DONE]), 1);
    assert_eq!(foreign(&[TASK, failed, DONE]), 0, "the agent had not changed it");
    let printed = Runs("cat notes", ToolOutcome::Ok, proposal);
    assert_eq!(foreign(&[TASK, printed, DONE]), 0, "no editing tool says so");
}

#[test]
fn an_undone_change_objects() {
    let (found, signs) = outcome(&[TASK, Edits("a.py"), PASSES, DONE, Undoes("a.py")]);
    assert_eq!((found, signs[0]), (TaskOutcome::Contradicted, OutcomeSign::UserReverts));
}
