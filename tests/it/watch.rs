//! `--watch`: a change runs it again, a mistake is shown and waited out, Ctrl-C is a good end.

use std::path::PathBuf;

use crate::ci::{AGENT, SUITE, project, suite};
use crate::workspace::{Workspace, files};

#[cfg(unix)]
#[test]
fn a_change_runs_it_again_and_a_mistake_is_waited_out() {
    let workspace = project();
    let path = workspace.path(SUITE);
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    let runs = || {
        let folder = workspace.path("reports/selftest");
        let is_report = |path: &PathBuf| path.extension().is_some_and(|it| it == "json");
        files(&folder).into_iter().filter(is_report).count()
    };
    let running = workspace.clone().args(["--watch", "--suite", SUITE]).spawn();
    let running = running.until_stdout("3 of 3 passed");
    write(&suite().replace("port 25", "port 26"));
    let running = running.until_stdout("2 of 3 passed");
    write("version: 1\ncasez: []\n");
    let running = running.until_stderr("unknown key `casez`");
    write(&suite().replace("port 25", "port 26").replace("port 53", "port 54"));
    let running = running.until_stdout("1 of 3 passed");
    // The agent itself, and a file beside it.
    std::fs::write(workspace.path("agent.py"), AGENT.replace("80", "81")).unwrap();
    let running = running.until_stdout("0 of 3 passed");
    std::fs::write(workspace.path("knowledge.txt"), "port 80\n").unwrap();
    let running = running.until("a run for the file beside the agent", || runs() == 5);
    let running = running.until_stderr("watching 4 files");
    let run = running.signal(rustix::process::Signal::INT).wait().exit(0);
    assert_eq!(runs(), 5, "what is not read is not run");
    let _ = run.stderr_contains("watching 3 files: a change runs it again, Ctrl-C ends it");
}

#[test]
fn it_is_a_flag_of_a_run() {
    let run = Workspace::new().args(["--watch", "doctor"]).run().exit(2);
    let _ = run.stderr_contains(
        "`--watch` is an option of `selftest run` and cannot be used with `doctor`",
    );
}
