//! Nothing outlives a harness that is killed, whatever its programs have opened.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use selftest_sandbox::limits::SandboxMode;
use selftest_sandbox::{SUBCOMMAND, SandboxPolicy, SandboxSupport};

use crate::sut::world::{harness, processes};

/// Kills, as many as fit into the time.
const KILLS: usize = 300;
const TIME: Duration = Duration::from_secs(20);

/// Time after which a process that is still there outlives the harness. A dying one needs a processor
/// for a moment too, which takes more than a second if many others want it.
const LIMIT: Duration = Duration::from_mins(1);

/// Holds the read end of its own stderr, ignores what can be ignored, and leaves children in sessions
/// of their own.
const SURVIVOR: &str = "import os, signal, time\n\
    for number in range(1, 32):\n    \
        try: signal.signal(number, signal.SIG_IGN)\n    \
        except OSError: pass\n\
    held = [os.open('/proc/self/fd/2', os.O_RDWR), os.open('/proc/self/fd/1', os.O_RDWR)]\n\
    for _ in range(2):\n    \
        if os.fork() == 0:\n        os.setsid()\n        time.sleep(1000)\n\
    print('ready', flush=True)\n\
    time.sleep(1000)\n";

/// A process that stands for the harness: it starts the supervisor and waits.
fn start(policy: &SandboxPolicy, session: &str, folder: &Path) -> Child {
    let mut command = Command::new("/bin/sh");
    command
        .args([
            "-c",
            "program=$0 word=$1; shift; \"$program\" \"$word\" supervise $$ \"$@\" & wait",
        ])
        .arg(harness())
        .arg(SUBCOMMAND)
        .args(policy.to_arguments())
        .args(["/usr/bin/python3", "-c", SURVIVOR])
        .env("SELFTEST_SESSION_ID", session)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command.spawn().unwrap()
}

#[test]
fn nothing_outlives_a_kill() {
    let support = SandboxSupport::detect(&harness(), SandboxMode::BestEffort).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut policy = SandboxPolicy::for_project(folder.path(), None, None);
    policy.level = support.level;
    policy.write.push(folder.path().to_owned());
    let begun = Instant::now();
    let (mut killed, mut slowest) = (0, Duration::ZERO);
    while killed < KILLS && begun.elapsed() < TIME {
        let session = format!("selftest-life-{}-{killed}", std::process::id());
        let mut child = start(&policy, &session, folder.path());
        // Every third is killed at some moment of its start.
        if killed % 3 == 0 {
            std::thread::sleep(Duration::from_millis((killed as u64 * 7) % 60));
        } else {
            let mut line = String::new();
            let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
            let _ = stdout.read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n", "{session}");
        }
        let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(id, Signal::KILL).unwrap();
        child.wait().unwrap();
        let ended = Instant::now();
        loop {
            let left = processes(&session);
            if left.is_empty() {
                break;
            }
            assert!(ended.elapsed() < LIMIT, "{killed}: {left:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        slowest = slowest.max(ended.elapsed());
        killed += 1;
    }
    println!(
        "{killed} kills in {:.0} s, and nothing was left after {} ms",
        begun.elapsed().as_secs_f64(),
        slowest.as_millis()
    );
    assert!(killed > 20, "only {killed} kills");
}
