//! Programs that cannot be started as they are, and what their errors tell.

use std::os::unix::fs::PermissionsExt as _;

use selftest_harness::sut::{SandboxState, SystemUnderTest as _};
use selftest_sandbox::limits::SandboxMode;

use super::has_namespaces;
use crate::sut::world::World;

fn executable(world: &World, path: &str, text: &str) {
    world.file(path, text);
    let path = world.project().join(path);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

const ANSWER: &str =
    "read task\necho '{\"type\":\"result\",\"status\":\"COMPLETE\",\"output\":\"ok\"}'\n";

#[tokio::test]
async fn relative_paths_and_links_are_programs() {
    if !has_namespaces() {
        return;
    }
    for run in ["./tools/agent", "tools/agent", "tools/link", "./linked/agent"] {
        let world = World::run(&[run]);
        executable(&world, "tools/agent", &format!("#!/bin/sh\n{ANSWER}"));
        std::os::unix::fs::symlink("agent", world.project().join("tools/link")).unwrap();
        std::os::unix::fs::symlink("tools", world.project().join("linked")).unwrap();
        assert_eq!(world.lines().await, ["ok"], "{run}");
    }
}

#[tokio::test]
async fn a_link_out_of_the_project_is_followed_to_the_program_alone() {
    if !has_namespaces() {
        return;
    }
    let world = World::run(&["./agent"]);
    let outside = world.outside("elsewhere/agent");
    std::fs::create_dir_all(outside.parent().unwrap()).unwrap();
    executable(&world, "../elsewhere/agent", &format!("#!/bin/sh\n{ANSWER}"));
    std::os::unix::fs::symlink(&outside, world.project().join("agent")).unwrap();
    assert_eq!(world.lines().await, ["ok"]);
}

#[tokio::test]
async fn a_script_without_its_first_line_says_what_is_missing() {
    if !has_namespaces() {
        return;
    }
    let world = World::run(&["./agent"]);
    executable(&world, "agent", ANSWER);
    let (error, _) = world.failure().await;
    assert!(error.contains("first line names its interpreter"), "{error}");
}

#[tokio::test]
async fn what_was_denied_is_named_with_the_key_that_grants_it() {
    if !has_namespaces() {
        return;
    }
    let world = World::run(&["./agent"]);
    let library = world.outside("library.sh");
    std::fs::write(&library, "answer=ok\n").unwrap();
    let script = format!(
        "#!/bin/sh\n. {}\nread task\n\
         echo \"{{\\\"type\\\":\\\"result\\\",\\\"status\\\":\\\"COMPLETE\\\",\\\"output\\\":\\\"$answer\\\"}}\"\n",
        library.display()
    );
    executable(&world, "agent", &script);
    let (error, evidence) = world.again().failure().await;
    assert!(error.contains(&library.display().to_string()), "{error}");
    assert!(error.contains("sut.command.readable"), "{error}");
    assert_eq!(evidence.sandbox.unwrap().state, SandboxState::BlockedAttempts);
    let granted = world.set(|settings| settings.readable.push(library));
    assert_eq!(granted.lines().await, ["ok"]);
}

#[tokio::test]
async fn an_interpreter_that_is_not_granted_is_named() {
    if !has_namespaces() {
        return;
    }
    let world = World::run(&["./agent"]);
    let interpreter = world.outside("opt/interpreter");
    executable(&world, "../opt/interpreter", "#!/bin/sh\nexec /bin/sh \"$@\"\n");
    executable(&world, "agent", &format!("#!{}\n{ANSWER}", interpreter.display()));
    let (error, _) = world.again().failure().await;
    assert!(error.contains("sut.command.readable"), "{error}");
    let granted = world.set(|settings| settings.readable.push(interpreter));
    assert_eq!(granted.lines().await, ["ok"]);
}

#[tokio::test]
async fn without_a_sandbox_it_is_said() {
    let world = World::agent(&["write", "new"]).sandbox(SandboxMode::Off);
    let isolation = world.sut().isolation();
    assert!(isolation.not_enforced.join("\n").contains("UNSANDBOXED"), "{isolation:?}");
    let (reply, evidence) = world.ask("go").await;
    assert_eq!(reply.unwrap().output, "ok: 7");
    assert_eq!(evidence.sandbox.unwrap().state, SandboxState::NotEnforced);
}
