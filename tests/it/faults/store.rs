//! A disk that fills up below a running server: what it has accepted is stored once there is room,
//! what it cannot store it says, and it goes on by itself.

use std::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::site::Site;
use crate::workspace::Workspace;

const WRITTEN: &str = "selftest_skill_executions_written_total";
const REFUSED: &str = "selftest_skill_executions_dropped_total{reason=\"failing\"}";

fn metric(site: &Site, name: &str) -> u64 {
    let text = site.get("/metrics").status(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Tells of an execution; the status of the answer.
fn tell(site: &Site) -> u16 {
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
