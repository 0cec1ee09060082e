//! The same probes as a user without rights, where these tests run as root; and machines that give
//! no namespaces, or let no process look into another's.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::has_namespaces;
use crate::require;

/// A user who owns nothing.
const NOBODY: &str = "65534";

/// This test program and the binary in a folder that all users may enter.
fn published(folder: &Path) -> (PathBuf, PathBuf) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let tests = folder.join("tests");
    let harness = folder.join("selftest");
    for (from, to) in [
        (std::env::current_exe().unwrap(), &tests),
        (PathBuf::from(env!("CARGO_BIN_EXE_selftest")), &harness),
    ] {
        // They are large: a second name is enough where it can be had.
        if std::fs::hard_link(&from, to).is_err() {
            std::fs::copy(from, to).unwrap();
        }
    }
    (tests, harness)
}

#[test]
fn as_an_ordinary_user() {
    if !has_namespaces() || !rustix::process::geteuid().is_root() {
        require::skip("hostile probes as an ordinary user: these tests do not run as root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (tests, harness) = published(folder.path());
    let room = folder.path().join("room");
    std::fs::create_dir(&room).unwrap();
    std::os::unix::fs::chown(&room, Some(65534), Some(65534)).unwrap();
    let done = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"])
        .arg(tests)
        .args([
            "hostile::",
            "sut::confinement",
            "--skip",
            "as_an_ordinary_user",
            "--skip",
            "user::",
        ])
        .args(["--skip", "killed_harness", "--test-threads", "2"])
        .env("SELFTEST_TEST_BINARY", harness)
        .env("TMPDIR", &room)
        .env("HOME", &room)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir(&room)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{words}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(!words.contains(" 0 passed"), "{words}");
}

/// A run of the binary where the kernel gives no namespaces, as in many containers.
fn without_namespaces(project: &Path, arguments: &str) -> Output {
    let script = format!(
        "echo 0 >/proc/sys/user/max_user_namespaces && \
         exec setpriv --bounding-set=-all --inh-caps=-all -- {} {arguments}",
        env!("CARGO_BIN_EXE_selftest")
    );
    Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", &script])
        .current_dir(project)
        .output()
        .unwrap()
}

const SUITE: &str = "version: 1\ncases:\n  - scenario: { id: a, description: d, expected_status: \
                     COMPLETE }\n    prompt: go\n    checks: [{ contains: fine }]\n";

fn project(sandbox: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "version: 1\nsut:\n  {sandbox}\n  command:\n    run: [\"/bin/sh\", \"-c\", \"echo fine\"]\n    \
         protocol: text\n"
    );
    std::fs::create_dir(folder.path().join("config")).unwrap();
    std::fs::write(folder.path().join("config/selftest.yaml"), config).unwrap();
    std::fs::write(folder.path().join("cases.yaml"), SUITE).unwrap();
    folder
}

#[test]
fn without_namespaces_nothing_runs_unless_it_was_said_to() {
    if !has_namespaces() {
        return;
    }
    let words = |done: &Output| {
        let (out, err) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        format!("{out}\n{err}")
    };
    let enforced = project("sandbox: enforce");
    let done = without_namespaces(enforced.path(), "--suite cases.yaml");
    assert_eq!(done.status.code(), Some(5), "{}", words(&done));
    let said = words(&done);
    assert!(said.contains("max_user_namespaces") && said.contains("hint:"), "{said}");
    assert!(said.contains("best_effort"), "{said}");

    let best = project("sandbox: best_effort");
    let done = without_namespaces(best.path(), "--suite cases.yaml");
    let said = words(&done);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("UNSANDBOXED: not the whole sandbox"), "{said}");

    let off = project("sandbox: off");
    let done = without_namespaces(off.path(), "--suite cases.yaml");
    let said = words(&done);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("UNSANDBOXED: sut.sandbox is off"), "{said}");
    let reports = off.path().join("reports/selftest");
    let report = std::fs::read_dir(reports).unwrap().flatten().map(|it| it.path());
    let mut report = report.filter(|it| it.extension().is_some_and(|it| it == "json"));
    let report = report.next().unwrap();
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("UNSANDBOXED") && report.contains("not_enforced"), "{report}");
}

#[test]
fn without_namespaces_a_list_of_addresses_holds_too() {
    if !has_namespaces() {
        return;
    }
    if selftest_sandbox::landlock_abi() < 4 {
        require::skip("a list of addresses without namespaces: needs Landlock 4");
        return;
    }
    let listed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listed.local_addr().unwrap().port();
    let other = std::net::TcpListener::bind(("127.0.0.2", port)).unwrap();
    let best = project("sandbox: best_effort");
    let config = best.path().join("config/selftest.yaml");
    let yaml = std::fs::read_to_string(&config).unwrap().replace(
        "run: [\"/bin/sh\", \"-c\", \"echo fine\"]",
        &format!(
            "run: [\"/usr/bin/python3\", \"connect.py\"]\n    addresses: [\"127.0.0.1:{port}\"]"
        ),
    );
    std::fs::write(&config, yaml).unwrap();
    let script = format!(
        "import socket\n\
         socket.create_connection((\"127.0.0.1\", {port}), timeout=20)\n\
         try:\n    socket.create_connection((\"127.0.0.2\", {port}), timeout=20)\n\
         except PermissionError:\n    print(\"fine\")\n"
    );
    std::fs::write(best.path().join("connect.py"), script).unwrap();
    let done = without_namespaces(best.path(), "--suite cases.yaml");
    let said = String::from_utf8_lossy(&done.stdout);
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}\n{error}");
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "somebody came");
    let reports = std::fs::read_dir(best.path().join("reports/selftest")).unwrap().flatten();
    let texts = reports.filter_map(|it| std::fs::read_to_string(it.path()).ok());
    let said: String = texts.collect();
    assert!(said.contains(&format!("only to these addresses: 127.0.0.1:{port}")), "{said}");
    assert!(said.contains(&format!("127.0.0.2:{port}")), "the attempt is told: {said}");
}

/// Exit code and output of a run of the binary where its supervisors may not look into programs.
fn blind(project: &Path) -> (Option<i32>, String) {
    let script = project.join("blind.py");
    std::fs::write(&script, include_str!("../fixtures/blind.py")).unwrap();
    let done = Command::new("/usr/bin/python3")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_selftest"))
        .args(["--suite", "cases.yaml"])
        .current_dir(project)
        .output()
        .unwrap();
    let said =
        [&done.stdout, &done.stderr].map(|words| String::from_utf8_lossy(words).into_owned());
    let folders = ["reports/selftest", "docs/reports/selftest"].map(|folder| project.join(folder));
    let reports = folders.iter().flat_map(std::fs::read_dir).flatten();
    let texts = reports.flatten().filter_map(|it| std::fs::read_to_string(it.path()).ok());
    (done.status.code(), said.into_iter().chain(texts).collect())
}

#[test]
fn where_nobody_may_look_nothing_of_a_list_is_reached_and_that_is_said() {
    if !has_namespaces() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (ip, port) = address.split_once(':').unwrap();
    let given = |sandbox: &str, granted: &str| {
        let project = project(&format!("sandbox: {sandbox}"));
        let config = project.path().join("config/selftest.yaml");
        let yaml = std::fs::read_to_string(&config).unwrap().replace(
            "run: [\"/bin/sh\", \"-c\", \"echo fine\"]",
            &format!("run: [\"/usr/bin/python3\", \"connect.py\"]{granted}"),
        );
        std::fs::write(&config, yaml).unwrap();
        let script = format!(
            "import socket\n\
             try:\n    socket.create_connection((\"{ip}\", {port}), timeout=20)\n\
             except OSError:\n    print(\"fine\")\n"
        );
        std::fs::write(project.path().join("connect.py"), script).unwrap();
        project
    };
    let listed = format!("\n    addresses: [\"{address}\"]");
    let (code, said) = blind(given("enforce", &listed).path());
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("sut.command.addresses can be reached in the sandbox"), "{said}");
    assert!(said.contains("keeps the supervisor from looking") && said.contains("hint:"), "{said}");

    let (code, said) = blind(given("best_effort", &listed).path());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("nothing of `addresses` can be reached here"), "{said}");
    assert!(said.contains("but not seen: the kernel keeps the supervisor"), "{said}");

    // Without any to connect to, all that the kernel holds to stands.
    let (code, said) = blind(given("enforce", "").path());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("has no network at all") && said.contains("NOT ENFORCED"), "{said}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody came");
}
