//! Programs under test that break what they are given, and limits of the process itself.

use rustix::process::Signal;

use super::leaves_nothing;
use crate::model_server::ModelServer;
use crate::run::Run;
use crate::sut::world::{hangs, processes, until};
use crate::workspace::{OPENAI, Workspace, config, scenarios};

/// One case for the fixture `agent.py` in this mode.
fn agent(server: &ModelServer, run: &[&str], settings: &str) -> Workspace {
    let run = serde_json::to_string(run).unwrap();
    let yaml = config(OPENAI, &scenarios(1)).replace(
        &format!("sut: {{ chat: {{ model: \"{OPENAI}\" }} }}"),
        &format!("sut: {{ command: {{ run: {run}{settings} }} }}"),
    );
    Workspace::new()
        .config(yaml)
        .file("agent.py", include_str!("../fixtures/agent.py"))
        .server(server)
        .args(["--timeout=20"])
}

#[track_caller]
fn ends_orderly(run: &Run, workspace: &Workspace, status: &str) {
    let report = run.report();
    assert_eq!(report.case().status(), status, "{report}");
    let session = report.case().0["session_id"].as_str().unwrap().to_owned();
    assert_eq!(processes(&session), [] as [String; 0]);
    leaves_nothing(run, workspace);
}

#[test]
fn a_program_that_removes_its_folder_has_answered_all_the_same() {
    let server = ModelServer::start();
    let script = "rm -rf \"$HOME\" 2>/dev/null; cat >/dev/null; echo 'One line.'";
    let workspace = agent(&server, &["sh", "-c", script], ", protocol: text");
    let run = workspace.run().exit(0);
    ends_orderly(&run, &workspace, "passed");
}

#[test]
fn a_program_that_fills_its_pipes_is_cut_off() {
    let server = ModelServer::start();
    for (script, status, code) in [
        ("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done", "sut_error", 1),
        ("head -c 30000000 /dev/zero | tr '\\0' x >&2; cat >/dev/null; echo Done.", "passed", 0),
        ("head -c 30000000 /dev/zero; echo", "sut_error", 1),
    ] {
        let workspace = agent(&server, &["sh", "-c", script], ", protocol: text");
        let run = workspace.run().exit(code);
        ends_orderly(&run, &workspace, status);
        assert!(run.stderr.len() < 20_000, "{script}: {} bytes", run.stderr.len());
        let report = run.report().to_string();
        assert!(report.len() < 400_000, "{script}: {} bytes", report.len());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn folders_of_a_killed_run_are_removed_by_the_next_one() {
    let server = ModelServer::start();
    let workspace = agent(&server, &["python3", "agent.py", "hang"], "");
    let scratch = workspace.folder().join("tmp");
    let folders = || -> Vec<String> {
        let entries = std::fs::read_dir(&scratch).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    let running = workspace.spawn();
    // Beside a folder lie the notes of its supervisor.
    let is_folder = |name: &String| name.starts_with("selftest-2") && !name.contains('.');
    let session = || folders().into_iter().find(is_folder);
    let running = running.until("a program that hangs", || session().is_some_and(|id| hangs(&id)));
    let session = session().unwrap();
    drop(running.signal(Signal::KILL).wait().killed_by(9));
    until("all its processes are gone", || processes(&session).is_empty());
    assert!(folders().iter().all(|name| name.starts_with(&session)), "{:?}", folders());
    let workspace = workspace.args(["--timeout=2"]);
    let run = workspace.run().exit(1);
    assert_eq!(folders(), [] as [String; 0]);
    assert_eq!(run.reports().len(), 2);
}

#[test]
fn too_few_descriptors_are_an_error_of_the_machine_and_no_panic() {
    let server = ModelServer::start();
    let mut ran = 0;
    for limit in [6, 7, 8, 12, 16, 20, 24, 32, 48] {
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let workspace = Workspace::new()
            .config(config(OPENAI, &scenarios(4)))
            .server(&server)
            .within(["sh", "-c", &script, "sh"]);
        let run = workspace.run();
        assert!(!run.stderr.contains("panicked"), "{limit}: {}", run.stderr);
        let is_orderly = [0, 3, 5].into_iter().any(|code| run.ended_with(code));
        assert!(is_orderly, "{limit}: {}", run.stderr);
        ran += usize::from(run.ended_with(0));
        for report in run.reports() {
            assert_eq!(report.summary()["failed"], 0, "{limit}: {report}");
        }
    }
    assert!(ran > 0, "48 descriptors are enough for a run");
}

/// Programs that fork and exit faster than /proc can be read.
#[cfg(target_os = "linux")]
#[test]
fn chains_of_processes_do_not_outrun_their_end() {
    let server = ModelServer::start();
    let workspace = agent(&server, &["python3", "agent.py", "chains", "30"], "");
    let run = workspace.run();
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    let report = run.report();
    let session = report.case().0["session_id"].as_str().unwrap().to_owned();
    // Processes that end are of no harm; those that go on would be there a moment later too.
    let left = processes(&session);
    assert!(left.is_empty(), "{left:?}: {report}");
    leaves_nothing(&run, &workspace);
}
