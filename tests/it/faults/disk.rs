//! Folders that go away and disks that fill up, below a run and below a server: what a server has
//! accepted is stored once there is room, what it cannot store it says, and it recovers by itself.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::leaves_nothing;
use crate::model_server::{ModelServer, Role};
use crate::run::{Run, Running};
use crate::server::site::Site;
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
    // The run may write a file, or make the folder again, at any moment between the two.
    until("the file in the way", || {
        let _ = fs::remove_dir_all(workspace.path("reports"));
        fs::write(workspace.path("reports"), "in the way").is_ok()
    });
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

pub(super) const WRITTEN: &str = "selftest_skill_executions_written_total";
pub(super) const REFUSED: &str = "selftest_skill_executions_dropped_total{reason=\"failing\"}";

pub(super) fn metric(site: &Site, name: &str) -> u64 {
    let text = site.get("/metrics").status(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

#[track_caller]
pub(super) fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Tells of an execution; the status of the answer.
pub(super) fn tell(site: &Site) -> u16 {
    let body = json!({
        "skill": "pr", "execution_status": "error", "error_message": "x".repeat(4000),
    });
    site.post_json("/api/skills/executions", &body.to_string()).status
}

fn submit(site: &Site, number: usize) -> u16 {
    let body = json!({ "goal": format!("goal {number}"), "summary": "s".repeat(20_000) });
    site.post_json("/api/reflections/p", &body.to_string()).status
}

/// A server whose database can, and then cannot, and then can grow.
fn goes_on_by_itself(site: &Site, fill: impl FnOnce(&Site), make_room: impl FnOnce(&Site)) {
    assert_eq!(tell(site), 202);
    until("a record", || metric(site, WRITTEN) == 1);
    site.get("/readyz").status(200);
    fill(site);
    // More failures than the pool has connections: none of them may stay behind.
    let refused: Vec<u16> = (0..8).map(|number| submit(site, number)).collect();
    assert!(refused.iter().all(|status| *status == 507), "{refused:?}");
    let accepted = Cell::new(1);
    until("a refusal", || {
        let status = tell(site);
        assert!([202, 503].contains(&status), "{status}");
        accepted.set(accepted.get() + u64::from(status == 202));
        status == 503
    });
    let accepted = accepted.get();
    assert!(accepted > 1, "the first record after the fault is accepted");
    assert!(metric(site, REFUSED) > 0);
    let detail = site.get("/readyz").problem(503);
    assert_eq!(detail, "the database takes no records");
    site.get("/healthz").status(200);
    // What is there can be read.
    site.get("/api/skills").status(200);
    assert_eq!(metric(site, WRITTEN), 1);
    make_room(site);
    until("what was accepted is written", || metric(site, WRITTEN) == accepted);
    site.get("/readyz").status(200);
    assert_eq!(tell(site), 202);
    for number in 0..8 {
        assert_eq!(submit(site, number), 201);
    }
    until("the next record", || metric(site, WRITTEN) == accepted + 1);
    let stored = site.get("/api/skills").json()["items"][0]["id"].as_str().unwrap().to_owned();
    let page = site.get(&format!("/api/skills/{stored}?limit=500")).json();
    let stored = page["executions"]["items"].as_array().unwrap().len() as u64;
    assert_eq!(stored, accepted + 1, "every record once");
}

/// A limit for the size of files, set and lifted while the server runs.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_may_not_grow_loses_nothing() {
    use rustix::process::{Resource, Rlimit, prlimit};
    // Else the first write beyond the limit would end the process.
    let survives = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];
    let site = Site::start(Workspace::new().promoted("pr", "# PR").within(survives));
    let limit = |site: &Site, bytes| {
        let maximum = rustix::process::getrlimit(Resource::Fsize).maximum;
        prlimit(Some(site.pid()), Resource::Fsize, Rlimit { current: bytes, maximum }).unwrap();
    };
    goes_on_by_itself(&site, |site| limit(site, Some(4096)), |site| limit(site, None));
}

/// A disk of 2 MB, where this system lets us mount one.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_nothing() {
    let namespace = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"];
    let probe = std::process::Command::new(namespace[0])
        .args(&namespace[1..])
        .arg("mount -t tmpfs none /mnt")
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        crate::require::skip("a small disk cannot be mounted here");
        return;
    }
    // Nobody outside sees the disk: who fills it is in there too, and ends with the server.
    let script = "mkdir disk && mount -t tmpfs -o size=2m none disk && cp .selftest/* disk && \
        own=$$ && { while kill -0 $own; do sleep 0.02; \
        [ -e fill ] && cat /dev/zero > disk/full; [ -e fill ] && mv fill filled; \
        [ -e clear ] && rm disk/full; [ -e clear ] && mv clear cleared; done 2> /dev/null & } && \
        exec \"$@\"";
    let workspace = Workspace::new().promoted("pr", "# PR");
    let wrapper = namespace.into_iter().chain([script, "sh"]);
    let site = Site::with(workspace.within(wrapper), &["--db", "disk/selftest.db"]);
    let ask = |site: &Site, order: &str, done: &str| {
        fs::write(site.workspace.path(order), "").unwrap();
        until(done, || site.workspace.path(done).exists());
    };
    goes_on_by_itself(
        &site,
        |site| ask(site, "fill", "filled"),
        |site| ask(site, "clear", "cleared"),
    );
}
