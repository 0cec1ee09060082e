//! Runs that are broken off lose nothing that was finished, and `--resume` goes on with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::model_server::{Call, HINT_MARK, ModelServer, Reply, Role, Script, verdict, words};
use crate::report::Report;
use crate::run::Run;
use crate::workspace::{OPENAI, Workspace, config, files, scenarios};

/// The case that a generator is asked for: the number in its description.
fn asked_for(call: &Call) -> usize {
    let number = Regex::new(r"Request number (\d+)").unwrap();
    number.captures(&call.text()).map_or(0, |found| found[1].parse().unwrap())
}

/// The case that a prompt is of: each has words of its own.
fn case_of(call: &Call, cases: usize) -> usize {
    match call.role {
        Role::Generator => asked_for(call),
        _ => (0..cases).find(|case| call.text().contains(&words(*case))).unwrap(),
    }
}

/// A server whose replies depend on what is asked alone, so that runs can be compared. Every fifth
/// case fails.
fn by_content(cases: usize) -> Script {
    ModelServer::script()
        .generator(|call| {
            let case = asked_for(call);
            json!({
                "facts": crate::model_server::quotes(call),
                "hints": format!("{HINT_MARK} {case}"),
                "prompt": format!("Explain {} to a newcomer.", words(case)),
                "requirements": ["The answer is about the text.", "The answer is easy to read."],
            })
        })
        .sut(move |call| {
            json!({ "status": "COMPLETE", "output": format!("Case {}.\nDone.", case_of(call, cases)) })
        })
        .judge(move |call| {
            let is_bad = case_of(call, cases) % 5 == 4;
            verdict(call, if is_bad { 0.35 } else { 0.85 })
        })
}

/// The report of a run without what differs between two runs of the same: times, names, marks.
fn comparable(report: &Report) -> Value {
    fn strip(value: &mut Value, mark: &Regex) {
        match value {
            Value::Object(fields) => {
                for name in ["duration_ms", "model_ms", "run_id", "task_group_id", "session_id"] {
                    fields.shift_remove(name);
                }
                for name in ["timestamp", "ended_at", "warnings"] {
                    fields.shift_remove(name);
                }
                fields.values_mut().for_each(|field| strip(field, mark));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| strip(item, mark)),
            Value::String(text) => *text = mark.replace_all(text, "[mark]").into_owned(),
            _ => {}
        }
    }
    let mut value = report.0.clone();
    strip(&mut value, &Regex::new(r"\b[0-9a-f]{8}\b").unwrap());
    value
}

/// The calls about cases: not those that ask what a model can do.
fn about_cases(server: &ModelServer) -> Vec<Call> {
    let mut calls = server.all_calls();
    calls.retain(|call| [Role::Generator, Role::Sut, Role::Judge].contains(&call.role));
    calls
}

/// The report of an undisturbed run of these cases.
fn unbroken(cases: usize) -> Report {
    let server = by_content(cases).start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(cases))).server(&server);
    workspace.args(["--seed=7", "--concurrency=3", "--format=json"]).run().exit(1).stdout_report()
}

/// A small generator of random numbers, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Names of the cases that the progress said to be finished.
fn told_finished(stderr: &str) -> BTreeSet<String> {
    let line = Regex::new(r"(?m)^\[\d+/\d+\] (case-\d+) +(PASS|FAIL)").unwrap();
    line.captures_iter(stderr).map(|found| found[1].to_owned()).collect()
}

/// The roles that were asked about a case, in order.
fn calls_of(server: &ModelServer, cases: usize, case: &str) -> Vec<Role> {
    let own = about_cases(server).into_iter();
    let own = own.filter(|call| format!("case-{}", case_of(call, cases)) == case);
    own.map(|call| call.role).collect()
}

/// Kills runs `kills` times at random moments and resumes them until they end, and compares each of
/// them with an undisturbed run.
fn kill_often(kills: usize, seed: u64) {
    const CASES: usize = 12;
    let expected = comparable(&unbroken(CASES));
    let mut dice = Dice(seed);
    let mut killed = 0;
    let mut round = 0;
    while killed < kills {
        round += 1;
        let server = by_content(CASES).delay(Duration::from_millis(25)).start();
        let workspace = Workspace::new().config(config(OPENAI, &scenarios(CASES))).server(&server);
        let begin = ["--seed=7", "--concurrency=3", "--exit-zero"];
        let resume = ["--resume=latest", "--exit-zero", "--concurrency=3"];
        // Finished cases, with how many calls the server had seen of each.
        let mut finished = BTreeMap::<String, usize>::new();
        let mut has_begun = false;
        let run = loop {
            let args = if has_begun { &resume[..] } else { &begin[..] };
            let running = workspace.clone().args(args).spawn();
            if killed == kills {
                break running.wait();
            }
            std::thread::sleep(Duration::from_millis(dice.below(450)));
            let run = running.signal_if_running(Signal::KILL).wait();
            let name = format!("seed {seed}, kill {killed}");
            killed += 1;
            for case in told_finished(&run.stderr) {
                let calls = calls_of(&server, CASES, &case).len();
                finished.entry(case).or_insert(calls);
            }
            // What was reported as finished is kept.
            let journals = journals(&workspace);
            has_begun |= !journals.is_empty();
            let kept = journals.first().map(|path| fs::read_to_string(path).unwrap());
            let kept = kept.unwrap_or_default();
            for case in finished.keys() {
                let record = format!("\"id\":\"{case}\"");
                assert!(kept.contains(&record), "{name}: {case} was finished, and is lost");
            }
            // It may have been killed after its very last report.
            if run.ended_with(0) || run.ended_with(4) {
                break run;
            }
        };
        assert!(run.ended_with(0) || run.stderr.contains("is finished"), "{}", run.stderr);
        let name = format!("seed {seed}, round {round}");
        let report = run.report();
        assert_eq!(report.0["complete"], true, "{name}");
        pretty_assert(&comparable(&report), &expected, &name);
        // That a call was finished is known where the next one of its case came: then it was made no
        // more. At each kill only calls in flight are made again.
        for case in (0..CASES).map(|case| format!("case-{case}")) {
            let calls = calls_of(&server, CASES, &case);
            for (role, next) in [(Role::Generator, Role::Sut), (Role::Sut, Role::Judge)] {
                let next = calls.iter().position(|call| *call == next).unwrap();
                assert!(!calls[next..].contains(&role), "{name}: {case}: {calls:?}");
            }
            if let Some(then) = finished.get(&case) {
                assert_eq!(calls.len(), *then, "{name}: {case} was finished, and is asked again");
            }
        }
        let left: Vec<PathBuf> = files(&workspace.project())
            .into_iter()
            .filter(|path| path.to_string_lossy().ends_with(".tmp"))
            .collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

fn pretty_assert(found: &Value, expected: &Value, name: &str) {
    if found == expected {
        return;
    }
    let (found, expected) = (format!("{found:#}"), format!("{expected:#}"));
    let different = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    panic!("{name}: another report than that of an unbroken run: {different:?}");
}

fn journals(workspace: &Workspace) -> Vec<PathBuf> {
    let mut found = files(&workspace.path("reports/selftest"));
    found.retain(|path| path.extension().is_some_and(|extension| extension == "journal"));
    // One without a whole line was killed before it had begun.
    found.retain(|path| fs::read(path).is_ok_and(|journal| journal.contains(&b'\n')));
    found.sort();
    found
}

#[test]
fn twenty_kills_at_random_moments_lose_nothing_that_finished() {
    kill_often(20, 20_261_125);
}

/// Minutes: `cargo nextest run --run-ignored only -E 'test(three_hundred_kills)'`.
#[test]
#[ignore = "takes minutes; for nightly runs"]
fn three_hundred_kills_at_random_moments_lose_nothing_that_finished() {
    for seed in [1, 2, 3] {
        kill_often(100, seed);
    }
}

/// A run of three cases that is killed while the second one waits for its answer.
fn killed(arguments: &[&str]) -> (Workspace, ModelServer) {
    let server = by_content(3)
        .sut(|call| match case_of(call, 3) {
            0 => json!({ "status": "COMPLETE", "output": "Case 0.\nDone." }).into(),
            _ => Reply::Hang,
        })
        .start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(3))).server(&server);
    let args = ["--concurrency=1"].iter().chain(arguments);
    let running = workspace.clone().args(args).spawn();
    let running = running.until("the second case", || server.calls(Role::Sut).len() == 2);
    drop(running.signal(Signal::KILL).wait().killed_by(9));
    (workspace, server)
}

/// The killed run, with a server that answers everything.
fn mended(workspace: Workspace) -> (Workspace, ModelServer) {
    let server = by_content(3).start();
    (workspace.server(&server), server)
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let (workspace, first) = killed(&[]);
    let (workspace, server) = mended(workspace);
    let run = workspace.clone().args(["--resume", "latest"]).run().exit(0);
    run.stderr_contains("resumed: 1 case of 3 finished before");
    let ids: Vec<usize> = about_cases(&server).iter().map(|call| case_of(call, 3)).collect();
    assert!(!ids.contains(&0), "the first case was finished: {ids:?}");
    assert_eq!(server.calls(Role::Generator).len(), 1, "the second prompt was made before");
    assert_eq!(first.calls(Role::Generator).len(), 2);
    let run = workspace.clone().args(["--resume", "latest"]).run().exit(4);
    let run = run.stderr_contains("nothing to resume");
    assert_eq!(run.report().counts(), [3, 3, 0, 0]);
    let again = workspace.args(["--resume", &run.report().run_id()]).run();
    let _ = again.exit(4).stderr_contains("is finished");
}

#[test]
fn a_report_that_was_lost_is_written_from_the_journal() {
    let server = by_content(3).start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(3))).server(&server);
    let first = workspace.run().exit(0);
    let (report, markdown) = (first.report(), first.markdown());
    fs::remove_file(workspace.path(&format!("reports/selftest/{}.json", report.run_id()))).unwrap();
    fs::remove_dir_all(workspace.path("docs")).unwrap();
    let calls = about_cases(&server).len();
    let run = workspace.clone().args(["--resume", "latest"]).run().exit(0);
    assert_eq!(about_cases(&server).len(), calls, "no model is asked");
    assert_eq!(comparable(&run.report()), comparable(&report));
    let table = |text: &str| text.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(table(&run.markdown()), table(&markdown));
}

#[test]
fn what_was_changed_since_is_named() {
    let (workspace, _first) = killed(&[]);
    let (workspace, server) = mended(workspace);
    let resume = |workspace: &Workspace| workspace.clone().args(["--resume=latest"]).run();
    let yaml = config(OPENAI, &scenarios(3));
    for (yaml, what) in [
        (config(OPENAI, &scenarios(4)), "the cases are not as when the run"),
        (
            yaml.replace("judge: {", "judge: { temperature: 0.5,"),
            "`judge` in the config is not as when the run",
        ),
        (config("openai/other", &scenarios(3)), "are not as when the run"),
    ] {
        let run = resume(&workspace.clone().config(yaml)).exit(2);
        let run = run.stderr_contains("hint: put back what was changed");
        run.one_error(&[what, ".journal"]);
    }
    let run = resume(&workspace.clone().file("prompts/judge/rubric.md", "---\nversion: 9\n---\n"));
    assert!(!run.ended_with(0), "{}", run.stderr);
    fs::remove_dir_all(workspace.path("prompts")).unwrap();
    assert!(server.all_calls().len() <= 2, "only what was said to begin at once");
    // Folders, concurrency and retries change no result.
    let yaml = yaml.replace("max_retries: 0", "max_retries: 1");
    let _ = resume(&workspace.config(yaml)).exit(0);
}

#[test]
fn a_journal_that_cannot_be_used_says_why() {
    let (workspace, _first) = killed(&[]);
    let (workspace, server) = mended(workspace);
    let path = journals(&workspace).remove(0);
    let whole = fs::read(&path).unwrap();
    let resume = || workspace.clone().args(["--resume=latest"]).run();
    let first = whole.iter().position(|&byte| byte == b'\n').unwrap();
    let second = first + 1 + whole[first + 1..].iter().position(|&byte| byte == b'\n').unwrap();
    let mut damaged = whole.clone();
    damaged[first + 20] ^= 1;
    for (bytes, what, hint) in [
        (&b""[..], "ends before its first record", "start a new run"),
        (&whole[..first], "ends before its first record", "start a new run"),
        (b"hello\n", "is not the journal of a run", "name a run, its journal"),
        (&damaged, "damaged in line 2", "head -n"),
    ] {
        fs::write(&path, bytes).unwrap();
        let run = resume().exit(2).stderr_contains(hint);
        run.one_error(&[what, ".journal"]);
    }
    assert!(about_cases(&server).is_empty());
    // Cut in the middle of its second record.
    fs::write(&path, &whole[..second - 4]).unwrap();
    let run = resume().exit(0);
    let run = run.stderr_contains("note: ").stderr_contains("the last record is incomplete");
    assert_eq!(run.report().counts(), [3, 3, 0, 0]);
}

#[test]
fn only_runs_that_are_over_are_resumed_and_only_with_flags_that_change_no_result() {
    let server = by_content(3).sut(|_| Reply::Hang).start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(3))).server(&server);
    let resume = |named: &str| workspace.clone().args(["--resume", named]).run().exit(2);
    resume("latest").one_error(&["there is no journal of a run in"]);
    resume("selftest-20260206-1234-bcdfgh").one_error(&["selftest-20260206-1234-bcdfgh"]);
    let running = workspace.spawn();
    let running = running.until("a question", || !server.calls(Role::Sut).is_empty());
    resume("latest").one_error(&["is still in progress"]);
    drop(running.signal(Signal::KILL).wait());
    for flag in ["--seed=1", "--scenarios=2", "--judge-model=openai/x", "--strictness=1"] {
        let run = workspace.clone().args(["--resume=latest", flag]).run().exit(2);
        let _ = run
            .stderr_contains("cannot be used with")
            .stderr_contains("a resumed run has the options of its first start");
    }
    let other = workspace.clone().args(["--resume=latest", "--suite=x"]).run().exit(2);
    let _ = other
        .one_error(&["has generated cases, not those of x"])
        .stderr_contains("leave --suite out");
}

#[test]
fn an_interrupted_run_and_one_whose_server_was_lost_go_on() {
    let server = by_content(6).delay(Duration::from_millis(150)).start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(6))).server(&server);
    let running = workspace.clone().args(["--concurrency=2"]).spawn();
    let running = running.until("an answer", || server.calls(Role::Sut).len() >= 3);
    let _ = running.signal(Signal::INT).wait().exit(130);
    // The next start loses its server.
    let running = workspace.clone().args(["--resume=latest", "--concurrency=2"]).spawn();
    let calls = server.all_calls().len();
    let running = running.until("another call", || server.all_calls().len() > calls);
    drop(server);
    let run = running.wait().exit(5);
    assert_eq!(run.report().0["outcome"], "model_unavailable");
    let server = by_content(6).start();
    let run = workspace.server(&server).args(["--resume=latest"]).run().exit(1);
    assert_eq!(run.report().counts(), [6, 5, 1, 0]);
    assert_eq!(comparable(&run.report())["cases"], comparable_cases(6, &run));
}

/// The cases of an unbroken run with the seed of this one.
fn comparable_cases(cases: usize, run: &Run) -> Value {
    let seed = format!("--seed={}", run.report().0["seed"]);
    let server = by_content(cases).start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(cases))).server(&server);
    let report = workspace.args([seed.as_str(), "--format=json"]).run().exit(1).stdout_report();
    comparable(&report)["cases"].clone()
}

#[test]
fn a_suite_with_repeats_and_a_rerun_go_on_by_the_flags_of_their_beginning() {
    let server = by_content(5).start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(5))).server(&server);
    let first = workspace.run().exit(1).report();
    let suite = "config/suites/mine.yaml";
    let freeze = ["suite", "freeze", &first.run_id(), "--output", suite];
    let _ = workspace.clone().args(freeze).run().exit(0);
    let hangs = || {
        by_content(5).judge(|call| match call.number {
            0 | 1 => verdict(call, 0.85).into(),
            _ => Reply::Hang,
        })
    };
    for (arguments, counts, code) in [
        (&["--suite", suite, "--repeats=2"][..], [10, 8, 2, 0], 1),
        (&["--rerun-failed"], [1, 0, 1, 0], 1),
    ] {
        let server = hangs().start();
        let args = ["--concurrency=1"].iter().chain(arguments);
        let running = workspace.clone().server(&server).args(args).spawn();
        let wanted = counts[0].min(3);
        let running = running.until("judging", || {
            server.calls(Role::Judge).len() as u64 >= wanted || counts[0] == 1
        });
        drop(running.signal_if_running(Signal::KILL).wait());
        let server = by_content(5).start();
        let run =
            workspace.clone().server(&server).args(["--resume=latest", "--format=json"]).run();
        if counts[0] == 1 {
            continue;
        }
        let report = run.exit(code).stdout_report();
        assert_eq!(report.counts(), counts, "{arguments:?}");
        assert!(server.calls(Role::Judge).len() < 9, "two were judged before");
    }
}

#[test]
fn hangup_and_terminate_end_like_ctrl_c_and_nohup_is_respected() {
    for signal in [Signal::HUP, Signal::TERM] {
        let server = by_content(3).sut(|_| Reply::Hang).start();
        let workspace = Workspace::new().config(config(OPENAI, &scenarios(3))).server(&server);
        let running = workspace.spawn();
        let running = running.until("a question", || !server.calls(Role::Sut).is_empty());
        let run = running.signal(signal).wait().exit(130);
        assert_eq!(run.report().0["outcome"], "interrupted");
        let _ = run.markdown();
    }
    let server = by_content(3).delay(Duration::from_millis(200)).start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(3))).server(&server);
    let running = workspace.within(["nohup"]).spawn();
    let running = running.until("a question", || !server.calls(Role::Sut).is_empty());
    let run = running.signal(Signal::HUP).wait().exit(0);
    assert_eq!(run.report().counts(), [3, 3, 0, 0]);
}

#[test]
fn recordings_are_numbered_on() {
    let server = by_content(3).start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(3))).server(&server);
    let _ = workspace.clone().args(["--record=tape", "--seed=7"]).run().exit(0);
    let recorded = files(&workspace.path("tape")).len();
    // The journal of that run without its last case, as if it had been killed there.
    let path = journals(&workspace).remove(0);
    let text = fs::read_to_string(&path).unwrap();
    let kept: Vec<&str> = text.lines().filter(|line| !line.contains("{\"ended\"")).collect();
    let (last, first) = kept.split_last().unwrap();
    assert!(last.contains("{\"case\""), "{last:.60}");
    fs::write(&path, first.join("\n") + "\n").unwrap();
    let _ = workspace.clone().args(["--resume=latest"]).run().exit(0);
    assert_eq!(files(&workspace.path("tape")).len(), recorded, "nothing was asked again");
}

#[test]
fn the_journal_holds_no_secret() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server);
    let run = workspace.run().exit(0);
    assert_eq!(journals(&workspace).len(), 1);
    run.nowhere("sk-test-0123456789abcdef");
}
