//! Commands that run cases for more than their results: experiments, `aa` and `replay` are killed, and
//! `--resume` ends in what they would have said.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::model_server::{Call, ModelServer, Reply, Role, Script, verdict};
use crate::workspace::{OPENAI, Workspace, config, files, scenarios};

const SUITE: &str = "config/suites/mine.yaml";
const SKILL: &str = ".claude/skills/brevity/SKILL.md";
/// Stands in the skill and nowhere else.
const MARK: &str = "Answer with the word axolotl.";
const CASES: usize = 4;
const REPEATS: usize = 2;
const EXPERIMENT: [&str; 9] = [
    "improve",
    "skills",
    "experiment",
    "brevity",
    "--suite",
    SUITE,
    "--repeats=2",
    "--seed=7",
    "--concurrency=2",
];

/// A system under test that does what the skill says in half of the cases, so that the judge is asked the
/// same about the others in both arms; replies depend on what is asked alone.
fn half_obedient() -> Script {
    ModelServer::script()
        .sut(|call| {
            let obeys = call.text().contains(MARK) && call.text().len() % 2 == 0;
            let output = if obeys { "axolotl" } else { "a newt" };
            json!({ "status": "COMPLETE", "output": output })
        })
        .judge(|call| verdict(call, if call.text().contains("axolotl") { 0.9 } else { 0.5 }))
}

/// A project with a suite and a skill: the same cases each time.
fn project() -> Workspace {
    let server = ModelServer::start();
    let workspace = Workspace::new().config(config(OPENAI, &scenarios(CASES))).server(&server);
    let _ = workspace.clone().args(["--seed=7", "--concurrency=1"]).run().exit(0);
    let _ = workspace.clone().args(["suite", "freeze", "latest", "--output", SUITE]).run().exit(0);
    workspace.judged_only(SUITE).file(SKILL, format!("---\nname: brevity\n---\n{MARK}\n"))
}

/// The result of an experiment, without what differs between two experiments of the same.
fn comparable(stdout: &str) -> Value {
    let mut found: Value = serde_json::from_str(stdout).unwrap_or_else(|_| panic!("{stdout}"));
    let fields = found.as_object_mut().unwrap();
    for name in ["run_ids", "duration", "warnings"] {
        fields.remove(name);
    }
    // Each project froze a run of its own.
    for name in ["run_id", "digest"] {
        fields["suite"].as_object_mut().unwrap().remove(name);
    }
    strip(&mut found);
    found
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.contains("duration") && !name.contains("_ms"));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn journals(workspace: &Workspace) -> Vec<PathBuf> {
    let mut found = files(&workspace.path("reports/selftest"));
    found.retain(|path| path.extension().is_some_and(|extension| extension == "journal"));
    // One without a whole line was killed before it had begun.
    found.retain(|path| fs::read(path).is_ok_and(|journal| journal.contains(&b'\n')));
    found.sort();
    found
}

/// The trials that the progress said to be finished: arm, case and repeat.
fn told_finished(stderr: &str) -> BTreeSet<String> {
    let line = Regex::new(r"(?m)^(with|without): \[\d+/\d+\] (case-\d+\S*) +(PASS|FAIL)").unwrap();
    line.captures_iter(stderr).map(|found| format!("{} {}", &found[1], &found[2])).collect()
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

/// Kills experiments at random moments and resumes them until they end.
fn kill_often(kills: usize, seed: u64) {
    let base = project();
    let server = half_obedient().start();
    let args = EXPERIMENT.iter().copied().chain(["--json"]);
    let run = base.clone().server(&server).args(args).run().exit(0);
    let expected = comparable(&run.stdout);
    let trials = 2 * CASES * REPEATS;
    assert_eq!(server.calls(Role::Judge).len(), trials);
    let mut dice = Dice(seed);
    let mut killed = 0;
    while killed < kills {
        let workspace = project();
        let before = journals(&workspace).len();
        let server = half_obedient().delay(Duration::from_millis(25)).start();
        let workspace = workspace.server(&server);
        let begin: Vec<&str> = EXPERIMENT.iter().copied().chain(["--json"]).collect();
        let resume = ["--resume=latest", "--concurrency=2"];
        let mut finished = BTreeSet::new();
        let mut kills_here = 0;
        let run = loop {
            let has_begun = journals(&workspace).len() > before;
            let args = if has_begun { &resume[..] } else { &begin[..] };
            let running = workspace.clone().args(args).spawn();
            if killed >= kills {
                break running.wait();
            }
            std::thread::sleep(Duration::from_millis(100 + dice.below(600)));
            let run = running.signal_if_running(Signal::KILL).wait();
            killed += 1;
            kills_here += 1;
            for trial in told_finished(&run.stderr) {
                assert!(finished.insert(trial.clone()), "seed {seed}: {trial} was run again");
            }
            if run.ended_with(0) || run.ended_with(4) {
                break run;
            }
        };
        let name = format!("seed {seed}, after kill {killed}: {}", run.stderr);
        if run.ended_with(0) {
            assert_eq!(comparable(&run.stdout), expected, "{name}");
        } else {
            // It was killed after its very last report.
            assert!(run.stderr.contains("is finished"), "{name}");
        }
        for trial in told_finished(&run.stderr) {
            assert!(finished.insert(trial.clone()), "{name}: {trial} was run again");
        }
        // Calls in flight are made again, and those alone; none is answered by the other arm's.
        for role in [Role::Sut, Role::Judge] {
            let calls = server.calls(role).len();
            let most = trials + 2 * kills_here;
            assert!((trials..=most).contains(&calls), "{name}: {calls} calls of {role:?}");
        }
        let left: Vec<PathBuf> = files(&workspace.project())
            .into_iter()
            .filter(|path| path.to_string_lossy().ends_with(".tmp"))
            .collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

#[test]
fn six_kills_of_experiments_lose_nothing_that_finished() {
    kill_often(6, 20_261_124);
}

/// Minutes: `cargo nextest run --run-ignored only -E 'test(hundred_kills_of_experiments)'`.
#[test]
#[ignore = "takes minutes; for nightly runs"]
fn a_hundred_kills_of_experiments_lose_nothing_that_finished() {
    kill_often(100, 1);
}

/// A server that answers so many calls of the judge and then no more.
fn hangs_after(verdicts: usize) -> ModelServer {
    let hangs = move |call: &Call| match call.number {
        number if number < verdicts => verdict(call, 0.5).into(),
        _ => Reply::Hang,
    };
    half_obedient().judge(hangs).start()
}

/// Runs a command until its server hangs in the judge, and kills it there.
fn killed(workspace: &Workspace, args: &[&str], verdicts: usize) {
    let server = hangs_after(verdicts);
    let running = workspace.clone().server(&server).args(args).spawn();
    let running = running.until("a judgement", || server.calls(Role::Judge).len() > verdicts);
    drop(running.signal(Signal::KILL).wait().killed_by(9));
}

#[test]
fn an_experiment_goes_on_by_either_arm_and_with_its_own_flags_alone() {
    let workspace = project();
    let before = journals(&workspace);
    killed(&workspace, &EXPERIMENT, 3);
    let own: Vec<PathBuf> =
        journals(&workspace).into_iter().filter(|path| !before.contains(path)).collect();
    assert_eq!(own.len(), 2, "a journal for each arm");
    let server = half_obedient().start();
    let workspace = workspace.server(&server);
    let resume = |named: &str, more: &[&str]| {
        let args = ["--resume", named].into_iter().chain(more.iter().copied());
        workspace.clone().args(args).run()
    };
    for flag in ["--max-duration=1h", "--fail-fast", "--report=junit=x.xml", "--gate=both"] {
        resume("latest", &[flag]).exit(2).one_error(&["is an arm of an experiment", &flag[..6]]);
    }
    let skill = workspace.path(SKILL);
    let text = fs::read_to_string(&skill).unwrap();
    fs::write(&skill, format!("{text}More.\n")).unwrap();
    resume("latest", &[]).exit(2).one_error(&["the skill is not as when the run"]);
    fs::write(&skill, text).unwrap();
    assert!(server.calls(Role::Sut).is_empty());

    // Either journal names the other; the run that is gone on with is the same experiment.
    let ids: Vec<String> =
        own.iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    let run = resume(&ids[1], &["--format=json"]).exit(0);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    let found_ids: BTreeSet<&str> =
        ["control", "treatment"].map(|arm| found["run_ids"][arm].as_str().unwrap()).into();
    assert_eq!(found_ids, ids.iter().map(String::as_str).collect());
    assert_eq!(found["trials"], json!({ "control": 8, "treatment": 8 }));
    assert_eq!(server.calls(Role::Judge).len(), 2 * CASES * REPEATS - 3);
    let run = resume(&ids[0], &[]).exit(4);
    run.stderr_contains("nothing to resume: the experiment of ").stderr_contains("compare");
}

#[test]
fn an_arm_without_a_journal_is_run_anew() {
    let workspace = project();
    let before = journals(&workspace);
    killed(&workspace, &EXPERIMENT, 4);
    let own: Vec<PathBuf> =
        journals(&workspace).into_iter().filter(|path| !before.contains(path)).collect();
    fs::remove_file(&own[0]).unwrap();
    let server = half_obedient().start();
    let args = ["--resume=latest", "--format=json"];
    let run = workspace.server(&server).args(args).run().exit(0);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["trials"], json!({ "control": 8, "treatment": 8 }));
    assert!(own[0].is_file(), "it has one again");
}

/// A text without names of runs, durations, and the line that compares durations.
fn without_names(text: &str) -> String {
    let name = r"selftest-\d{8}-\d{4}-[a-z0-9]{6}|[\d.]+ (ms|s)\b|(?m)^(- )?time: .*$";
    let name = Regex::new(name).unwrap();
    name.replace_all(text, "[name]").into_owned()
}

#[test]
fn aa_and_replay_end_in_what_they_are_for() {
    let base = project();
    for args in [
        &["compare", "--self", "--suite", SUITE, "--repeats=2", "--seed=7", "--concurrency=1"][..],
        &["compare", "--replay", "latest", "--seed=7", "--concurrency=1", "--markdown"],
    ] {
        let server = half_obedient().start();
        let workspace = project();
        let whole = workspace.server(&server).args(args).run().exit(0);
        let workspace = project();
        killed(&workspace, args, 2);
        let server = half_obedient().start();
        let run = workspace.server(&server).args(["--resume=latest"]).run().exit(0);
        assert_eq!(without_names(&run.stdout), without_names(&whole.stdout), "{args:?}");
        assert!(!whole.stdout.is_empty());
    }
    drop(base);
}
