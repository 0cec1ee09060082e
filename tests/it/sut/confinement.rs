//! The limits of a program under test. These need a Linux kernel with Landlock.
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::process::{Command, Stdio};

use selftest_harness::sut::SystemUnderTest as _;
use selftest_sandbox::limits::SandboxMode;
use selftest_sandbox::{SandboxLevel, SandboxSupport, landlock_abi};

use super::world::{World, hangs, processes, until};
use crate::require;

/// Whether this kernel enforces this version; said when a test cannot test anything.
fn enforces(abi: i32) -> bool {
    let enforces = landlock_abi() >= abi;
    if !enforces {
        require::skip(format!("needs Landlock ABI {abi}, this kernel has {}", landlock_abi()));
    }
    enforces
}

#[tokio::test]
async fn answers_secrets_and_strangers_cannot_be_read() {
    if !enforces(1) {
        return;
    }
    let harness = format!("/proc/{}/environ", std::process::id());
    let mut world = World::agent(&[]);
    let outside = world.outside("outside.txt");
    std::fs::write(&outside, "private").unwrap();
    std::fs::create_dir_all(world.scratch().join("other-case")).unwrap();
    std::fs::write(world.scratch().join("other-case/file"), "private").unwrap();
    std::os::unix::fs::symlink(&outside, world.project().join("link")).unwrap();
    std::os::unix::fs::symlink("reports/selftest/run.json", world.project().join("run")).unwrap();
    let other = world.scratch().join("other-case/file").display().to_string();
    let outside = outside.display().to_string();
    let paths = [
        "README.md",
        "reports/selftest/run.json",
        "run",
        "link",
        "/etc/shadow",
        &outside,
        &other,
        &harness,
    ];
    world = world.set(|settings| {
        settings.run.push("read".to_owned());
        settings.run.extend(paths.iter().map(|&path| path.to_owned()));
    });
    let lines = world.lines().await;
    assert_eq!(lines[..4], ["ok: # A project", "", "It measures widgets.", ""]);
    assert_eq!(lines[4..], ["denied: Permission denied"; 7]);

    // The program must be able to list the project; what it may not read has no name in there.
    let names = World::agent(&["list", "."]).lines().await;
    assert_eq!(names, ["README.md", "agent.py"]);
}

#[tokio::test]
async fn what_does_not_exist_yet_is_protected_too() {
    if !enforces(1) {
        return;
    }
    let world = World::agent(&["read", "prompts/judge/rubric.md"]);
    let sut = world.sut();
    world.file("prompts/judge/rubric.md", "the rubric");
    let mut session = sut.open(&world.task).await.unwrap();
    let reply = session.submit("go").await.unwrap();
    assert_eq!(reply.output, "denied: Permission denied");
    session.close().await;
}

#[tokio::test]
async fn scratch_folders_may_lie_beside_the_project() {
    let world = World::agent(&["read", "README.md"]).scratch_beside_the_project();
    assert_eq!(world.lines().await[0], "ok: # A project");
}

#[tokio::test]
async fn a_configured_path_can_be_read() {
    let world = World::agent(&["read"]);
    let path = world.outside("model.bin");
    std::fs::write(&path, "weights").unwrap();
    let world = world.set(|settings| {
        settings.run.push(path.display().to_string());
        settings.readable.push(path);
    });
    assert_eq!(world.lines().await, ["ok: weights"]);
}

#[tokio::test]
async fn only_the_scratch_folder_can_be_written() {
    if !enforces(3) {
        return;
    }
    let world = World::agent(&["write", "$HOME/a", "$TMPDIR/b", "README.md", "new", "/dev/null"]);
    let outside = world.outside("outside").display().to_string();
    let world = world.set(|settings| settings.run.push(outside));
    assert_eq!(
        world.lines().await,
        [
            "ok: 7",
            "ok: 7",
            "denied: Permission denied",
            "denied: Permission denied",
            "ok: 7",
            "denied: Permission denied"
        ]
    );
    assert!(world.sut().can_reach_project());
}

#[tokio::test]
async fn only_listed_ports_can_be_reached() {
    if !enforces(4) {
        return;
    }
    let open = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [&open, &closed].map(|listener| listener.local_addr().unwrap().port());
    let world = World::agent(&["connect", &ports[0].to_string(), &ports[1].to_string()])
        .set(|settings| settings.tcp_ports.push(ports[0]));
    assert_eq!(world.lines().await, ["ok: connected", "denied: Permission denied"]);
}

#[tokio::test]
async fn the_environment_is_an_allow_list() {
    let world = World::agent(&["environment"])
        .variable("OPENAI_API_KEY", "secret")
        .variable("MY_AGENT_MODE", "fast")
        .variable("LC_TIME", "C")
        .set(|settings| {
            settings.pass_environment.push("MY_AGENT_MODE".to_owned());
            settings.environment.insert("COLOUR".to_owned(), "blue".to_owned());
        });
    let variables: serde_json::Value = serde_json::from_str(&world.lines().await.join("")).unwrap();
    let scratch = world.scratch().join(world.task.session_id.as_str());
    assert_eq!(variables["MY_AGENT_MODE"], "fast");
    assert_eq!(variables["COLOUR"], "blue");
    assert_eq!(variables["LC_TIME"], "C");
    assert_eq!(variables["SELFTEST_SESSION_ID"], world.task.session_id.as_str());
    assert_eq!(variables["HOME"], variables["TMPDIR"]);
    assert!(variables["HOME"].as_str().unwrap().ends_with(&scratch.display().to_string()));
    assert_eq!(variables.get("OPENAI_API_KEY"), None);
    assert_eq!(variables.get("CARGO_MANIFEST_DIR"), None);
}

#[test]
fn what_is_enforced_is_what_the_kernel_enforces() {
    let isolation = World::agent(&[]).sandbox(SandboxMode::BestEffort).sut().isolation();
    let abi = landlock_abi();
    let enforced = isolation.enforced.join("\n");
    let not_enforced = isolation.not_enforced.join("\n");
    let harness = super::world::harness();
    let standing = SandboxSupport::detect(&harness, SandboxMode::BestEffort).unwrap();
    assert_eq!(standing.landlock_abi, abi);
    if standing.level == SandboxLevel::Full {
        assert!(enforced.contains("no TCP, no UDP"), "{enforced}");
        return;
    }
    for (least, rule) in
        [(1, "writes only to"), (4, "connects by TCP"), (9, "Unix sockets outside its")]
    {
        assert_eq!(enforced.contains(rule), abi >= least, "{rule}: {enforced}");
        assert_eq!(not_enforced.contains(rule), abi < least, "{rule}: {not_enforced}");
    }
}

/// Stands for a harness in the test below; does nothing when it is started otherwise.
#[tokio::test]
#[ignore = "started by a_killed_harness_takes_everything_along"]
async fn a_harness_that_will_be_killed() {
    if std::env::var_os("SELFTEST_TEST_HARNESS").is_none() {
        return;
    }
    let world = World::agent(&["hang"]);
    println!("session {}", world.task.session_id);
    let mut session = world.sut().open(&world.task).await.unwrap();
    let answer = session.submit("go").await;
    panic!("the program never answers, but: {answer:?}");
}

#[test]
fn a_killed_harness_takes_everything_along() {
    use std::io::{BufRead as _, BufReader};

    let mut harness = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sut::confinement::a_harness_that_will_be_killed"])
        .args(["--ignored", "--nocapture"])
        .env("SELFTEST_TEST_HARNESS", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let session = BufReader::new(harness.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("session ")?.1.trim().to_owned()))
        .unwrap();
    until("the whole tree runs", || hangs(&session));
    harness.kill().unwrap();
    harness.wait().unwrap();
    until("the whole tree is gone", || processes(&session).is_empty());
}
