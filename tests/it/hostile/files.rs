//! Holes 5 and 6: answer keys in all their forms, and secrets.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use selftest_harness::sut::{SandboxState, SystemUnderTest as _};
use selftest_sandbox::AttemptKind;

use super::{has_namespaces, probe};
use crate::sut::world::World;

fn git(world: &World, arguments: &[&str]) {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(world.project())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// A project with an answer key in many forms.
fn world() -> World {
    let world = World::agent(&[]).protect("config/selftest.yaml").protect("config/suites");
    let suite = "version: 1\ncases:\n  - prompt: x\n    hints: the answer is 42\n";
    for path in ["config/suites/answers.yaml", "notes/copy-of-it.txt", "config/suites.bak/a.yaml"] {
        world.file(path, suite);
    }
    for path in ["config/selftest.yaml", "config/selftest.yaml.bak", "config/selftest.yaml~"] {
        world.file(path, "scenarios: []\n");
    }
    let recording = "{\"model\": \"m\", \"request\": {\"messages\": []}, \"reply\": \"42\"}";
    world.file("tapes/0123456789abcdef-1.json", recording);
    world
}

#[tokio::test]
async fn the_answer_key_cannot_be_read_in_any_form() {
    if !has_namespaces() {
        return;
    }
    let world = world();
    let paths = [
        "config/suites/answers.yaml",
        "notes/copy-of-it.txt",
        "config/suites.bak/a.yaml",
        "config/selftest.yaml",
        "config/selftest.yaml.bak",
        "config/selftest.yaml~",
        "tapes/0123456789abcdef-1.json",
        "reports/selftest/run.json",
        "./config/../config/suites/../selftest.yaml",
    ];
    let probed = probe(&world, &["reads"], &[("paths", &paths.join(":"))])
        .await
        .all_refused()
        .noted(&["read of the answer key", "config/suites/answers.yaml", "selftest.yaml~"]);
    let kinds = probed.sandbox.attempts.iter().map(|it| it.attempt.kind);
    assert_eq!(kinds.collect::<Vec<_>>(), [AttemptKind::AnswerKey; 8]);
    assert_eq!(probed.sandbox.forbidden.len(), 8, "{:?}", probed.sandbox);
}

#[tokio::test]
async fn git_does_not_remember_the_answers() {
    if !has_namespaces() {
        return;
    }
    let world = world();
    git(&world, &["init", "-q"]);
    git(&world, &["add", "-A"]);
    git(&world, &["commit", "-qm", "all"]);
    git(&world, &["pack-refs", "--all"]);
    probe(&world, &["git_show"], &[]).await.all_refused();
    // The names of hidden files are in there, and digests of their contents.
    let stores = [".git/index", ".git/packed-refs", ".git/logs/HEAD", ".git/COMMIT_EDITMSG"];
    for store in stores {
        assert!(world.project().join(store).exists(), "{store}");
    }
    probe(&world, &["reads"], &[("paths", &stores.join(":"))]).await.all_refused();
}

#[tokio::test]
async fn secrets_by_name_and_files_of_the_system_cannot_be_read() {
    if !has_namespaces() {
        return;
    }
    let world = World::agent(&[]);
    world.file(".env", "KEY=1");
    world.file("deploy/key.pem", "-----BEGIN PRIVATE KEY-----");
    let outside = world.outside("private.txt");
    std::fs::write(&outside, "private").unwrap();
    let harness = format!("/proc/{}/environ", std::process::id());
    let outside = outside.display().to_string();
    let paths = [".env", "deploy/key.pem", "/etc/shadow", "/etc/sudoers", &outside, &harness];
    probe(&world, &["reads"], &[("paths", &paths.join(":"))]).await.all_refused().noted(&[
        "read of a secret",
        ".env",
        "private.txt",
    ]);
    probe(&world, &["keyring", "add_key"], &[]).await.all_refused().noted(&["keyctl", "add_key"]);
}

#[tokio::test]
async fn what_root_alone_may_read_is_not_granted_to_root() {
    if !has_namespaces() || !rustix::process::geteuid().is_root() {
        return;
    }
    let file = tempfile::Builder::new().prefix("selftest-probe-").tempfile_in("/etc").unwrap();
    std::fs::write(file.path(), "key").unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    let path = file.path().display().to_string();
    let world = World::agent(&[]);
    probe(&world, &["reads"], &[("paths", &path)]).await.all_refused().noted(&["read of a secret"]);
}

#[tokio::test]
async fn descriptors_of_the_harness_do_not_reach_the_program() {
    if !has_namespaces() {
        return;
    }
    let world = World::agent(&[]);
    let secret = world.outside("secret");
    std::fs::write(&secret, "hint").unwrap();
    let file = std::fs::File::open(&secret).unwrap();
    // As a shell leaves one open: `selftest 9<secret`.
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    probe(&world, &["descriptors"], &[]).await.all_refused();
    drop(file);
}

#[tokio::test]
async fn ordinary_programs_are_clean() {
    if !has_namespaces() {
        return;
    }
    for run in [
        vec!["python3", "agent.py", "read", "README.md"],
        vec![
            "sh",
            "-c",
            "read task; cat README.md >/dev/null; ls . | sort >$TMPDIR/list; \
              echo '{\"type\":\"result\",\"status\":\"COMPLETE\",\"output\":\"ok\"}'",
        ],
    ] {
        let (reply, evidence) = World::run(&run).ask("go").await;
        let sandbox = evidence.sandbox.unwrap();
        assert!(reply.is_ok(), "{run:?}: {reply:?} {:?}", evidence.stderr);
        assert_eq!(sandbox.state, SandboxState::Clean, "{run:?}: {}", sandbox.summary());
    }
}

#[tokio::test]
async fn an_attempt_fails_its_case_where_it_is_told_to() {
    if !has_namespaces() {
        return;
    }
    let world = World::agent(&[]);
    world.file(".env", "KEY=1");
    let given = [("paths", ".env")];
    let told = probe(&world, &["reads"], &given).await;
    assert!(told.sandbox.forbidden.is_empty(), "{:?}", told.sandbox);
    let fails = probe(&world.fail_on_attempts(), &["reads"], &given).await;
    assert_eq!(fails.sandbox.forbidden.len(), 1, "{:?}", fails.sandbox);
}

#[test]
fn nothing_is_claimed_that_is_not_enforced() {
    if !has_namespaces() {
        return;
    }
    let isolation = World::agent(&[]).sut().isolation();
    let enforced = isolation.enforced.join("\n");
    assert!(enforced.contains("has no network at all"), "{enforced}");
    let ported = World::agent(&[]).set(|settings| settings.tcp_ports.push(443)).sut().isolation();
    assert!(!ported.enforced.join("\n").contains("no network at all"));
}
