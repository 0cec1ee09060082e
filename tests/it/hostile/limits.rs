//! Limits of all processes of a case together: by a control group where one can be made, by rlimits
//! elsewhere.

use selftest_harness::sut::SystemUnderTest as _;
use selftest_harness::sut::sut_settings::WorkFolder;
use selftest_sandbox::{AttemptKind, EnforcedLimits, RunGroup};

use super::{has_namespaces, probe};
use crate::require;
use crate::sut::world::{World, until};

/// The resources that control groups can limit on this machine; skips aloud where there are none.
fn groups() -> Option<EnforcedLimits> {
    match RunGroup::create() {
        Ok(group) => Some(group.enforced_limits()),
        Err(why) => {
            require::skip(format!("limits of control groups: {why}"));
            None
        }
    }
}

fn script(text: &str) -> World {
    let world = World::agent(&[]);
    world.file("script.py", &format!("import os, sys, time, json\nsys.stdin.readline()\n{text}\n"));
    world.set(|settings| settings.run = ["/usr/bin/python3", "script.py"].map(String::from).into())
}

const ANSWER: &str =
    "print(json.dumps({'type': 'result', 'status': 'COMPLETE', 'output': 'done'}), flush=True)";

#[tokio::test]
async fn a_program_sees_no_group_but_its_own_and_cannot_leave_it() {
    if !has_namespaces() || groups().is_none() {
        return;
    }
    let world = World::agent(&[]);
    let probed = probe(&world, &["group"], &[]).await;
    assert_eq!(probed.lines, ["group: done 0::/"]);
    probe(&world, &["leaves_group"], &[]).await.all_refused();
}

#[tokio::test]
async fn processor_time_is_counted_of_all_processes_together() {
    if !has_namespaces() || groups().is_none() {
        return;
    }
    // Each of them for itself would take ten times as long.
    let world = script(
        "for _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        while True: pass\n\
         while True: pass",
    );
    let world = world.set(|settings| {
        settings.limits.total_cpu_seconds = 1;
        settings.limits.cpu_seconds = 600;
    });
    let (error, evidence) = world.failure().await;
    assert!(error.contains("1 s of processor time"), "{error}");
    assert!(error.contains("sut.command.limits"), "{error}");
    let attempts = evidence.sandbox.unwrap().attempts;
    assert_eq!(attempts[0].attempt.kind, AttemptKind::Limit, "{attempts:?}");
}

#[tokio::test]
async fn memory_is_counted_of_all_processes_together() {
    if !has_namespaces() || !groups().is_some_and(|held| held.memory) {
        require::skip("the memory of a control group: none is handed on here");
        return;
    }
    let world = script(&format!(
        "for _ in range(10):\n    if os.fork() == 0:\n        \
         held = bytearray(os.urandom(1 << 20) * 30)\n        time.sleep(1000)\ntime.sleep(1000)\n{ANSWER}"
    ));
    let world = world.set(|settings| settings.limits.total_memory_mib = 100);
    let (error, evidence) = world.failure().await;
    assert!(error.contains("100 MiB of memory"), "{error} {evidence:?}");
    let one = script(&format!("held = bytearray(30 << 20)\n{ANSWER}"))
        .set(|settings| settings.limits.total_memory_mib = 100);
    assert_eq!(one.lines().await, ["done"]);
}

#[tokio::test]
async fn processes_are_counted_together() {
    if !has_namespaces() {
        return;
    }
    let is_grouped = groups().is_some_and(|held| held.processes);
    // The least that the kernel takes for root without control groups.
    let most: u32 = if is_grouped { 20 } else { 310 };
    let world = World::agent(&[]).set(|settings| settings.limits.processes = most);
    let more = (most + 1).to_string();
    let probed = probe(&world, &["forks"], &[("most", &more)]).await.all_refused();
    if is_grouped {
        probed.noted(&["use of more than 20 processes"]);
    }
}

/// Programs that use up what the kernel does not count, and the limit that ends each.
#[tokio::test]
async fn disk_files_and_shared_memory_are_watched() {
    if !has_namespaces() {
        return;
    }
    let megabytes = |words: &str| {
        format!(
            "home = os.environ['HOME']\nblock = bytes(1 << 20)\n\
             def fill(file, most):\n    for _ in range(most): file.write(block)\n    file.flush()\n\
             {words}\ntime.sleep(1000)"
        )
    };
    let many = "for i in range(40): fill(open(f'{home}/{i}', 'wb'), 4)";
    let deleted = "kept = []\nfor i in range(40):\n    kept.append(open(f'{home}/x', 'wb'))\n    \
                   os.unlink(f'{home}/x')\n    fill(kept[-1], 4)";
    let deep = "os.chdir(home)\nfor i in range(300):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)\n\
                fill(open('x', 'wb'), 120)";
    for words in [many, deleted, deep] {
        let world = script(&megabytes(words)).set(|settings| settings.limits.disk_mib = 100);
        let (error, evidence) = world.failure().await;
        assert!(error.contains("100 MiB of disk"), "{words}: {error} {evidence:?}");
        assert!(error.contains("sut.command.limits"), "{error}");
        let attempts = evidence.sandbox.unwrap().attempts;
        assert_eq!(attempts[0].attempt.kind, AttemptKind::Limit, "{attempts:?}");
    }
    let files = "for i in range(3000): open(f'{home}/{i}', 'w')";
    let world = script(&megabytes(files)).set(|settings| settings.limits.files = 2_000);
    let (error, _) = world.failure().await;
    assert!(error.contains("2000 files"), "{error}");

    let is_counted = RunGroup::create().is_ok_and(|group| group.enforced_limits().memory);
    let mapped =
        "import mmap\nheld = mmap.mmap(-1, 200 << 20)\nfor _ in range(200): held.write(block)";
    let file = "m = open(os.memfd_create('m'), 'wb')\nfill(m, 200)";
    for words in [mapped, file] {
        let world = script(&megabytes(words)).set(|settings| {
            settings.limits.memory_mib = 150;
            settings.limits.total_memory_mib = 150;
        });
        let (error, evidence) = world.failure().await;
        let expected = if is_counted { "150 MiB of memory" } else { "150 MiB of memory, of" };
        assert!(error.contains(expected), "{words}: {error} {evidence:?}");
    }
    // Below the limits nothing happens, with a copy of the project that is larger than they are.
    let world = script(&format!("time.sleep(1)\nopen(os.environ['HOME'] + '/x', 'w')\n{ANSWER}"));
    world.file("large", &"x".repeat(3 << 20));
    let world = world.set(|settings| {
        settings.work_folder = WorkFolder::Copy;
        settings.limits.disk_mib = 1;
        settings.limits.files = 3;
    });
    assert_eq!(world.lines().await, ["done"]);
}

#[tokio::test]
async fn nothing_is_left_of_a_group() {
    if !has_namespaces() || groups().is_none() {
        return;
    }
    let world = script(&format!(
        "for _ in range(5):\n    if os.fork() == 0:\n        os.setsid()\n        os.close(1)\n        \
         time.sleep(1000)\n{ANSWER}"
    ));
    let sut = world.sut();
    let said = sut.isolation().enforced.join("\n");
    assert!(said.contains("are ended as one (control group)"), "{said}");
    drop(sut);
    assert_eq!(world.lines().await, ["done"]);
    // Groups of other tests in this process are locked; those of this one are gone.
    until("no group is left", || !own_groups().iter().any(|group| is_unlocked(group)));
}

#[test]
fn what_a_dead_run_left_is_ended_and_removed_by_the_next() {
    use std::os::unix::process::ExitStatusExt as _;
    let Ok(run) = RunGroup::create() else {
        require::skip("groups of dead runs: there are no control groups here");
        return;
    };
    let own = own_groups().pop().unwrap();
    let above = std::path::Path::new(&own).parent().unwrap();
    // As a killed run leaves it: no process holds its lock.
    let dead = above.join(format!("selftest-run-4000000000-{}", std::process::id()));
    let case = dead.join("case-0");
    std::fs::create_dir_all(&case).unwrap();
    let mut left = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    std::fs::write(case.join("cgroup.procs"), left.id().to_string()).unwrap();
    let mine = above.join("selftest-run-of-somebody");
    std::fs::create_dir(&mine).unwrap();
    drop(run);
    let next = RunGroup::create().unwrap();
    assert_eq!(left.wait().unwrap().signal(), Some(9));
    assert!(!dead.exists() && mine.exists());
    std::fs::remove_dir(&mine).unwrap();
    drop(next);
}

fn is_unlocked(group: &str) -> bool {
    std::fs::File::open(group).is_ok_and(|group| group.try_lock().is_ok())
}

/// The groups that this process made.
fn own_groups() -> Vec<String> {
    let prefix = format!("selftest-run-{}-", std::process::id());
    let mut found = Vec::new();
    let mut waiting = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                found.push(entry.path().display().to_string());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
    found
}
