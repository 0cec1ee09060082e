//! Holes 1, 4 and 10: other processes, the harness among them; powers; modes of files.

use std::os::unix::fs::PermissionsExt as _;

use super::{has_namespaces, probe};
use crate::sut::world::World;

#[tokio::test]
async fn other_processes_cannot_be_limited_signalled_or_seen() {
    if !has_namespaces() {
        return;
    }
    let harness = std::process::id().to_string();
    let names =
        ["prlimit", "prlimit_parent", "signal_harness", "system_v", "processes", "siblings"];
    let world = World::agent(&[]);
    std::fs::create_dir_all(world.scratch().join("selftest-20260206-1234-other")).unwrap();
    probe(&world, &names, &[("harness", &harness)])
        .await
        .all_refused()
        .noted(&["prlimit64", "system call shmget"]);
}

#[tokio::test]
async fn there_are_no_powers_and_no_ways_to_them() {
    if !has_namespaces() {
        return;
    }
    let names = [
        "powers",
        "ptrace",
        "namespace",
        "clone_namespace",
        "io_uring",
        "bpf",
        "userfault",
        "mount",
        "keyring",
    ];
    probe(&World::agent(&[]), &names, &[]).await.all_refused().noted(&[
        "ptrace",
        "unshare",
        "clone into a namespace of its own",
        "bpf",
        "userfaultfd",
        "mount",
        "keyctl",
    ]);
}

#[tokio::test]
async fn modes_of_files_stay() {
    if !has_namespaces() {
        return;
    }
    let world = World::agent(&[]);
    let program = world.outside("program");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let reports = world.project().join("reports");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    let before = mode(&reports);
    let names = ["setuid", "setuid_own", "setuid_created", "reports_unwritable"];
    let given =
        [("program", program.display().to_string()), ("reports", reports.display().to_string())];
    let given = given.each_ref().map(|(name, path)| (*name, path.as_str()));
    probe(&world, &names, &given).await.all_refused().noted(&["the setuid bit"]);
    assert_eq!((mode(&program), mode(&reports)), (0o755, before));
}

#[tokio::test]
async fn a_bomb_of_processes_ends_with_its_case() {
    if !has_namespaces() {
        return;
    }
    let world = World::agent(&[]);
    world.file(
        "bomb.py",
        "import json, os, sys\n\
         sys.stdin.readline()\n\
         for chain in range(30):\n\
         \x20   if os.fork() == 0:\n\
         \x20       os.setsid()\n\
         \x20       os.close(1)\n\
         \x20       while os.fork() == 0:\n\
         \x20           pass\n\
         \x20       os._exit(0)\n\
         print(json.dumps({'type': 'result', 'status': 'COMPLETE', 'output': 'lit'}), flush=True)\n",
    );
    let world = world.set(|settings| {
        settings.run = vec!["/usr/bin/python3".to_owned(), "bomb.py".to_owned()];
    });
    // `ask` fails when any process of the case is left.
    let (reply, _) = world.ask("go").await;
    assert_eq!(reply.unwrap().output, "lit");
}

#[tokio::test]
async fn files_that_are_only_readable_cannot_be_leased_locked_or_marked() {
    if !has_namespaces() {
        return;
    }
    let world = World::agent(&[]);
    let marks = ["lease", "lease_system", "notifications", "hint", "fanotify", "allocated"];
    probe(&world, &marks, &[])
        .await
        .all_refused()
        .noted(&["fcntl that leases or marks a file", "fanotify_init"]);
    // In good faith programs do these, so they are no evidence.
    let locks = ["locked", "locked_slowly", "watches"];
    let probed = probe(&World::agent(&[]), &locks, &[]).await.all_refused();
    assert_eq!(probed.sandbox.attempts, [], "{:?}", probed.lines);
    let own = probe(&World::agent(&[]), &["locked_own"], &[]).await;
    assert_eq!(own.lines, ["locked_own: done locks its own files"]);
}
