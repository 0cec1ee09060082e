//! Files of a project that are no files: pipes, devices, files without end. No command may wait for
//! them or read them whole. The limit of every command of a test ends one that hangs.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::workspace::Workspace;

fn put(path: &Path, kind: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(path);
    match kind {
        "pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "device" => symlink("/dev/zero", path).unwrap(),
        "large" => std::fs::File::create(path).unwrap().set_len(3 << 30).unwrap(),
        other => unreachable!("{other}"),
    }
}

#[test]
fn the_common_folder_of_a_linked_working_tree_may_be_anything() {
    let workspace = Workspace::new();
    let data = workspace.path("data");
    let workspace = workspace.file(".git", format!("gitdir: {}\n", data.display()));
    for kind in ["pipe", "device", "large"] {
        put(&data.join("commondir"), kind);
        let run = workspace.clone().args(["suite", "check", "."]).run().exit(2);
        let _ = run.stderr_contains("commondir is not a regular file");
    }
}

/// A program may put a pipe in the place of its `.gitignore`, and the harness walks its copy after
/// the case.
#[test]
fn a_program_that_makes_its_ignore_rules_a_pipe_is_not_waited_for() {
    let agent = "rm -f .gitignore; mkfifo .gitignore; ln -s /dev/zero .ignore; echo made >made.txt; \
                 echo done\n";
    let workspace = Workspace::new()
        .file(".gitignore", "secret\n")
        .file("agent.sh", agent)
        .config(
            "version: 1\nsut:\n  command:\n    run: [sh, agent.sh]\n    protocol: text\n    \
             work_folder: copy\n",
        )
        .file(
            "suite.yaml",
            "version: 1\ncases:\n  - scenario: { id: one, description: d, expected_status: COMPLETE }\n    \
             prompt: Make a file\n    checks: [ { file_created: made.txt } ]\n",
        )
        .env("PATH", std::env::var_os("PATH").unwrap())
        .args(["--suite", "suite.yaml"]);
    let run = workspace.run().exit(0);
    assert_eq!(run.report().case().status(), "passed");
}
