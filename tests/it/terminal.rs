//! The end of a run, on a terminal and elsewhere: what the run is not, what is behind failed
//! cases, what to do next, and links.

use crate::model_server::{ModelServer, verdict};
use crate::run::Run;
use crate::workspace::{CLEAR, OPENAI, Workspace, config};

const ASSISTANT: &str = "this run tested the built-in assistant, not your agent: name yours under";

/// The program on a terminal of its own, by `script` of util-linux, in which these lines are typed.
/// None where there is no such program.
pub(crate) fn on_a_terminal(workspace: Workspace, typed: &str) -> Option<Workspace> {
    if !std::path::Path::new("/usr/bin/script").exists() {
        crate::require::skip("tests on a terminal: there is no /usr/bin/script");
        return None;
    }
    let typed = format!("printf '{typed}' | /usr/bin/script -qec \"$*\" /dev/null");
    Some(workspace.within(["/bin/sh", "-c", &typed, "sh"]))
}

/// A server whose judge gives every answer this score.
fn judged(score: f64) -> ModelServer {
    ModelServer::script().judge(move |call| verdict(call, score)).start()
}

fn next_lines(run: &Run) -> Vec<&str> {
    run.stdout.lines().filter(|line| line.starts_with("next: ")).collect()
}

#[test]
fn a_run_of_the_built_in_assistant_says_so_first() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server);
    let run = workspace.run().exit(0);
    assert!(run.stdout.starts_with(ASSISTANT), "{}", run.stdout);
    let page = run.markdown();
    let note = page.lines().nth(2).unwrap();
    assert!(note.starts_with("> **Note:** this run tested the built-in assistant"), "{page}");
    assert_eq!(page.lines().nth(4).unwrap().get(..9), Some("**Date:**"), "{page}");
    // Whoever has a prompt of their own for it tests that.
    let template = "Answer.\n<!-- case -->\n{{ prompt }}\n";
    let own = workspace.file("prompts/sut/read_info.md", template).run();
    assert!(!own.stdout.contains("built-in assistant"), "{}", own.stdout);
}

#[test]
fn a_failed_first_run_says_once_what_to_do_next() {
    let server = judged(0.1);
    let workspace = Workspace::simple(&server);
    let first = workspace.run().exit(1);
    let [next] = next_lines(&first)[..] else { panic!("{}", first.stdout) };
    assert_eq!(
        next,
        "next: name your agent under `sut` in config/selftest.yaml, then run it again"
    );
    assert_eq!(first.stdout.lines().last(), Some(next));
    let second = workspace.run().exit(1);
    assert_eq!(next_lines(&second), [""; 0], "the second time it is known");
    let good = judged(0.9);
    assert_eq!(next_lines(&Workspace::simple(&good).run().exit(0)), [""; 0], "nothing to do");
    // Without a configuration there is a command that makes one.
    let bare = Workspace::new().server(&server);
    let bare = bare.args(["--model", OPENAI, "--scenarios=clear_summary"]).run().exit(1);
    assert!(next_lines(&bare)[0].starts_with("next: `selftest init`"), "{}", bare.stdout);
}

#[cfg(unix)]
#[test]
fn where_an_agent_is_tested_the_report_is_what_to_read() {
    let server = judged(0.1);
    let yaml = config(OPENAI, CLEAR).replace(
        &format!("sut: {{ chat: {{ model: \"{OPENAI}\" }} }}"),
        "sut: { command: { run: [\"/bin/cat\"], protocol: text } }",
    );
    let run = Workspace::new().config(yaml).server(&server).run().exit(1);
    let [next] = next_lines(&run)[..] else { panic!("{}", run.stdout) };
    let page = format!("docs/reports/selftest/{}.md says why", run.report().run_id());
    assert!(next.contains(&page) && next.contains("`selftest compare --replay latest`"), "{next}");
    assert!(!run.stdout.contains("built-in assistant") && !run.markdown().contains("**Note:**"));
}

#[test]
fn failed_cases_are_shown_with_what_is_behind_them() {
    let server = judged(0.1);
    let workspace = Workspace::simple(&server);
    let run = workspace.run().exit(1);
    for part in ["FAIL clear\n  prompt    ", "\n  answer    One line. Two lines.", "\n  judge     "]
    {
        assert!(run.stdout.contains(part), "no `{part}` in {}", run.stdout);
    }
    assert!(run.stdout.contains(", took "), "{}", run.stdout);

    let quiet = workspace.clone().args(["--quiet"]).run().exit(1);
    assert!(quiet.stdout.contains("FAIL clear: answer: overall 0.10"), "{}", quiet.stdout);
    assert!(!quiet.stdout.contains("  answer    ") && !quiet.stdout.contains("Threshold"));
    assert_eq!(quiet.stderr, "", "no progress");
    let json = workspace.args(["-q", "--format=json"]).run().exit(1);
    assert_eq!(json.stdout_report().counts(), [1, 0, 1, 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn links_are_for_terminals_that_have_them() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server).env("FORCE_HYPERLINK", "1").env("TERM", "xterm");
    let link = "\u{1b}]8;;file:///";
    assert!(!workspace.run().exit(0).stdout.contains(link), "not a terminal");
    let Some(workspace) = on_a_terminal(workspace, "") else { return };
    let run = workspace.run().exit(0);
    assert_eq!(run.stdout.matches(link).count(), 2, "{:?}", run.stdout);
    assert!(run.stdout.contains("/project/docs/reports/selftest/selftest-"), "{:?}", run.stdout);
    for (name, value) in [("CI", "true"), ("NO_COLOR", "1"), ("FORCE_HYPERLINK", "0")] {
        let run = workspace.clone().env(name, value).run().exit(0);
        assert!(!run.stdout.contains("\u{1b}]8"), "{name}: {:?}", run.stdout);
    }
}
