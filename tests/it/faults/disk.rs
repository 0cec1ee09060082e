//! Folders that go away, disks that fill up.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::leaves_nothing;
use crate::model_server::{ModelServer, Role};
use crate::run::{Run, Running};
use crate::workspace::{OPENAI, Workspace, config, files, scenarios};

fn slow() -> ModelServer {
    ModelServer::script().delay(Duration::from_millis(100)).start()
}

fn workspace(cases: usize, server: &ModelServer) -> Workspace {
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(cases))).server(server);
    workspace.args(["--concurrency=1"])
}

/// A run of which one case has ended.
fn begun(workspace: &Workspace, server: &ModelServer) -> Running {
    workspace.spawn().until("an answer", || server.calls(Role::Sut).len() == 2)
}

fn journal_in(folder: &Path) -> Option<PathBuf> {
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "journal");
    files(folder).into_iter().find(is_journal)
}

#[test]
fn folders_of_reports_that_go_away_are_made_again() {
    let server = slow();
    let workspace = workspace(5, &server);
    let running = begun(&workspace, &server);
    fs::remove_dir_all(workspace.path("reports")).unwrap();
    fs::remove_dir_all(workspace.path("docs")).unwrap();
    let run = running.wait().exit(0);
    assert_eq!(run.report().counts(), [5, 5, 0, 0]);
    assert!(run.markdown().contains("case-0"));
    let journal = journal_in(&workspace.path("reports")).expect("the journal is there again");
    let text = fs::read_to_string(journal).unwrap();
    assert_eq!(text.matches("{\"case\"").count(), 5);
    leaves_nothing(&run, &workspace);
}

#[test]
fn a_folder_that_cannot_be_made_again_loses_nothing_either() {
    let server = slow();
    let workspace = workspace(4, &server);
    let running = begun(&workspace, &server);
    fs::remove_dir_all(workspace.path("reports")).unwrap();
    fs::write(workspace.path("reports"), "in the way").unwrap();
    let run = running.wait().exit(5);
    let journal = journal_in(&workspace.folder().join("tmp")).expect("it is among temporary files");
    let shown = journal.display().to_string();
    let hint = format!("selftest --resume {shown}");
    let run = run.stderr_contains("cannot write").stderr_contains(&hint);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    fs::remove_file(workspace.path("reports")).unwrap();
    let calls = server.calls(Role::Sut).len();
    let run = workspace.clone().args(["--resume", &shown]).run().exit(0);
    assert_eq!(server.calls(Role::Sut).len(), calls, "no model is asked");
    assert_eq!(run.report().counts(), [4, 4, 0, 0]);
}

/// Runs a shell script on a disk of 2 MB in place of `reports`. `$@` is the command. Only where this
/// system lets us mount one.
#[cfg(target_os = "linux")]
fn on_a_small_disk(workspace: &Workspace, script: &str) -> Option<Run> {
    const NAMESPACE: [&str; 6] = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"];
    let probe = std::process::Command::new(NAMESPACE[0])
        .args(&NAMESPACE[1..])
        .arg("mount -t tmpfs none /mnt")
        .output();
    let script = format!("mkdir -p reports && mount -t tmpfs -o size=2m none reports && {script}");
    let wrapper = NAMESPACE.into_iter().chain([script.as_str(), "sh"]);
    probe.is_ok_and(|probe| probe.status.success()).then(|| workspace.clone().within(wrapper).run())
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_keeps_what_fitted_and_the_rest_is_run_once_there_is_room() {
    let server = ModelServer::start();
    let workspace = workspace(12, &server);
    // 100 kB are left, which is enough for the first cases; then the user makes room.
    let script = "head -c 2000000 /dev/zero > reports/full && { \"$@\" >&2; first=$?; } ; \
                  rm -f reports/full; echo \"the first exit code is $first\" >&2; \
                  \"$1\" --resume=latest --format=json";
    let Some(run) = on_a_small_disk(&workspace, script) else {
        crate::require::skip("a small disk cannot be mounted here");
        return;
    };
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    let run = run.exit(0).stderr_contains("the first exit code is 5").stderr_contains("space");
    assert_eq!(run.stdout_report().counts(), [12, 12, 0, 0]);
}

#[test]
fn temporary_files_of_killed_runs_are_removed_by_the_next_one() {
    let server = slow();
    let workspace = workspace(2, &server);
    let running = begun(&workspace, &server);
    let run = running.signal(Signal::KILL).wait().killed_by(9);
    let run_id = run.report().run_id();
    let left = [
        format!("reports/selftest/.{run_id}.json.{run_id}.tmp"),
        format!("docs/reports/selftest/.index.md.{run_id}.tmp"),
    ];
    let workspace = workspace.file(&left[0], "half").file(&left[1], "half");
    let run = workspace.run().exit(0);
    leaves_nothing(&run, &workspace);
}
