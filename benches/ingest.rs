//! How fast recorded sessions are read and graded: `cargo bench --bench ingest`.
//!
//! Generates sessions of the shape of recorded ones in a temporary folder, grades them with the
//! real binary, and compares that with merely parsing the same bytes and with a straightforward
//! program in Python. Each measurement is a process of its own, with all files in the page cache.
//! Ends with an error when a limit is passed or when Python comes to other totals.
//!
//! `SELFTEST_BENCH_MB` sets another size than 1000 MB, `SELFTEST_BENCH_FILES` another number of
//! small files than 100,000.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

#[path = "ingest/claude.rs"]
mod claude;
#[path = "ingest/codex.rs"]
mod codex;
#[path = "ingest/corpus.rs"]
mod corpus;
#[path = "ingest/hermes.rs"]
mod hermes;
#[path = "ingest/measure.rs"]
mod measure;
mod measurements;
#[path = "ingest/words.rs"]
mod words;

use std::path::Path;
use std::process::{Command, ExitCode};

use corpus::Pools;
use measure::{Cost, median, run};
use measurements::Measurements;
use serde_json::Value;

const SELFTEST: &str = env!("CARGO_BIN_EXE_selftest");
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ingest/python/ingest.py");

const RUNS: usize = 5;

/// The totals on which Python and the program must agree, and by how much they may differ. Of the
/// causes of errors the most frequent one is left out: a grade lists fifty kinds of errors, and most of
/// the others are of it.
const TOTALS: [(&str, f64); 19] = [
    ("sessions", 0.0),
    ("model_calls", 0.0),
    ("tool_calls", 0.0),
    ("errors", 0.0),
    ("mean_completed", 1e-9),
    ("mean_efficient", 1e-9),
    ("mean_quality", 1e-9),
    ("mean_recovered", 1e-9),
    ("checks_passed", 0.0),
    ("contradicted", 0.0),
    ("claimed", 0.0),
    ("unknown", 0.0),
    ("corrections", 0.0),
    ("cause_edit_mismatch", 0.0),
    ("cause_file_not_found", 0.0),
    ("cause_missing_dependency", 0.0),
    ("cause_network_error", 0.0),
    ("cause_not_read_yet", 0.0),
    ("cause_test_failure", 0.0),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, what, folder] = arguments.as_slice()
        && what == "parse"
    {
        measure::parse(folder.as_ref());
        return ExitCode::SUCCESS;
    }
    // For a look at the corpus, or at what a profiler says of it.
    if let [_, what, folder, megabytes] = arguments.as_slice()
        && what == "write"
    {
        corpus::write(folder.as_ref(), megabytes.parse::<u64>().unwrap() * 1_000_000);
        return ExitCode::SUCCESS;
    }
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |value| value.parse().unwrap())
    };
    let megabytes = number("SELFTEST_BENCH_MB", 1000);
    let rows = Measurements::of("ingest");
    let bench = Bench { folder: tempfile::tempdir().unwrap(), rows, are_same: true };
    bench.measure(megabytes, number("SELFTEST_BENCH_FILES", 100_000))
}

struct Bench {
    folder: tempfile::TempDir,
    rows: Measurements,
    /// True if Python came to the same totals.
    are_same: bool,
}

impl Bench {
    fn measure(mut self, megabytes: u64, small_files: u64) -> ExitCode {
        self.corpus(megabytes);
        self.huge(megabytes);
        self.unchanged(small_files);
        let finished = self.rows.finish();
        if self.are_same { finished } else { ExitCode::FAILURE }
    }

    /// Grades in a fresh database.
    fn grade(&self, source: &Path, pinned: bool, json: bool) -> (Vec<u8>, Cost) {
        let database = self.folder.path().join("grades.db");
        forget(&database);
        self.grade_into(&database, source, pinned, json)
    }

    fn grade_into(
        &self,
        database: &Path,
        source: &Path,
        pinned: bool,
        json: bool,
    ) -> (Vec<u8>, Cost) {
        let mut command = Command::new(if pinned { "taskset" } else { SELFTEST });
        if pinned {
            command.args(["-c", "0", SELFTEST]);
        }
        command
            .args(["grade", "latest", "100000000", "--source"])
            .arg(source)
            .arg("--db")
            .arg(database)
            .args(json.then_some("--json"))
            .current_dir(self.folder.path())
            .env("CI", "1")
            .stderr(std::process::Stdio::null());
        run(&mut command)
    }

    /// The corpus against the mere parser and against Python.
    fn corpus(&mut self, megabytes: u64) {
        let corpus = self.folder.path().join("corpus");
        let files = corpus::write(&corpus, megabytes * 1_000_000);
        println!("{megabytes} MB in {files} files; median of {RUNS} runs");
        let (mut parses, mut grades) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let this = std::env::current_exe().unwrap();
            parses.push(run(Command::new(this).arg("parse").arg(&corpus)).1);
            grades.push(self.grade(&corpus, false, false).1);
        }
        let (parse, grade) = (median(parses), median(grades));
        let ratio = grade.wall.as_secs_f64() / parse.wall.as_secs_f64();
        let cpu_ratio = grade.cpu.as_secs_f64() / parse.cpu.as_secs_f64();
        self.rows.add("parse only, two threads", parse.wall.as_secs_f64(), "s", ..);
        self.rows.add("read, grade, store", grade.wall.as_secs_f64(), "s", ..);
        self.rows.add("read, grade, store / parse only", ratio, "×", ..=3.0);
        self.rows.add("processor time", grade.cpu.as_secs_f64(), "s", ..);
        self.rows.add("processor time / parse only", cpu_ratio, "×", ..);
        self.rows.add("peak memory", mb(grade.peak_bytes), "MB", ..=200.0);

        let mut python = [Vec::new(), Vec::new()];
        let mut ours = [Vec::new(), Vec::new()];
        let mut totals = Value::Null;
        for _ in 0..RUNS.min(3) {
            for (place, processes) in ["1", "2"].into_iter().enumerate() {
                let mut command = Command::new("python3");
                let (said, cost) = run(command.arg(PYTHON).arg(processes).arg(&corpus));
                totals = serde_json::from_slice(&said).unwrap();
                python[place].push(cost);
                ours[place].push(self.grade(&corpus, place == 0, false).1);
            }
        }
        let [one, two] = python.map(|costs| median(costs).wall.as_secs_f64());
        let [thread, threads] = ours.map(|costs| median(costs).wall.as_secs_f64());
        // What a straightforward script does, against what this machine's cores do with ours.
        self.rows.add("Python, one process", one, "s", ..);
        self.rows.add("Python / selftest on two threads", one / threads, "×", 10.0..);
        self.rows.add("Python / selftest on one thread", one / thread, "×", ..);
        self.rows.add("Python in two processes / selftest on two threads", two / threads, "×", ..);
        self.compare(&totals, &corpus);
        std::fs::remove_dir_all(corpus).unwrap();
    }

    /// Whether both came to the same: else the comparison would say nothing.
    fn compare(&mut self, python: &Value, corpus: &Path) {
        let (said, _) = self.grade(corpus, false, true);
        let scan: Value = serde_json::from_slice(&said).unwrap();
        let ours = totals(scan["grades"].as_array().unwrap());
        for ((name, tolerance), ours) in TOTALS.into_iter().zip(ours) {
            let theirs = python[name].as_f64().unwrap();
            let same = (theirs - ours).abs() <= tolerance;
            self.are_same &= same;
            let verdict = if same { "" } else { "  NOT THE SAME" };
            println!("  {name:<24} Python {theirs:>12.4}, selftest {ours:>12.4}{verdict}");
        }
    }

    /// One file that is much larger than the memory that may be used.
    fn huge(&mut self, megabytes: u64) {
        println!("one file of {megabytes} MB");
        let (pools, bytes) = (Pools::new(), megabytes * 1_000_000);
        let folder = self.folder.path().join("huge");
        let writes: [(&str, &dyn Fn()); 4] = [
            ("JSON lines", &|| _ = corpus::claude(&pools, &folder, 1, bytes)),
            ("one document", &|| _ = hermes::write(&pools, &folder, 1, bytes)),
            ("one string in a document", &|| {
                hermes::write_one_string(&pools, &folder.join("session_giant.json"), bytes);
            }),
            ("one line of JSON lines", &|| {
                corpus::one_line(&pools, &folder.join("giant.jsonl"), bytes);
            }),
        ];
        for (name, write) in writes {
            write();
            let (said, cost) = self.grade(&folder, false, true);
            let scan: Value = serde_json::from_slice(&said).unwrap();
            let graded = scan["grades"].as_array().unwrap().len();
            assert_eq!(graded, 1, "{name}: {}", scan["skipped"]);
            self.rows.add(&format!("{name}: time"), cost.wall.as_secs_f64(), "s", ..);
            let name = format!("{name}: peak memory");
            self.rows.add(&name, mb(cost.peak_bytes), "MB", ..=200.0);
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }

    /// Many small files, and the same once more.
    fn unchanged(&mut self, files: u64) {
        let folder = self.folder.path().join("small");
        corpus::write_small(&folder, files);
        println!("{files} small files");
        let database = self.folder.path().join("small.db");
        let (_, first) = self.grade_into(&database, &folder, false, false);
        let again = (0..RUNS).map(|_| self.grade_into(&database, &folder, false, false).1);
        let again = median(again.collect());
        self.rows.add("small files, first time", first.wall.as_secs_f64(), "s", ..);
        self.rows.add("small files, unchanged", again.wall.as_secs_f64(), "s", ..=1.5);
        self.rows.add("small files, unchanged: peak memory", mb(again.peak_bytes), "MB", ..=100.0);
        self.rows.add("small files, first time: peak memory", mb(first.peak_bytes), "MB", ..);
    }
}

/// The totals of grades, in the order of [`TOTALS`].
#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 sessions")]
fn totals(grades: &[Value]) -> [f64; TOTALS.len()] {
    let sum = |value: &dyn Fn(&Value) -> f64| grades.iter().map(value).sum::<f64>();
    let flag = |value: &Value| f64::from(u8::from(value.as_bool().unwrap()));
    let number = |value: &Value| value.as_f64().unwrap();
    let ends = |outcome: &str| sum(&|grade| f64::from(u8::from(grade["outcome"] == outcome)));
    let cause = |cause: &str| {
        let is_it = |error: &&Value| error["cause"] == cause;
        sum(&|grade| {
            let errors = grade["details"]["errors"].as_array().unwrap();
            errors.iter().filter(is_it).map(|error| number(&error["count"])).sum()
        })
    };
    let count = grades.len() as f64;
    [
        count,
        sum(&|grade| number(&grade["total_api_calls"])),
        sum(&|grade| number(&grade["details"]["tool_calls"])),
        sum(&|grade| number(&grade["total_errors"])),
        sum(&|grade| flag(&grade["task_completed"])) / count,
        sum(&|grade| number(&grade["tool_calls_efficient"])) / count,
        sum(&|grade| number(&grade["response_quality"])) / count,
        sum(&|grade| flag(&grade["errors_recovered"])) / count,
        ends("checks_passed"),
        ends("contradicted"),
        ends("claimed"),
        ends("unknown"),
        sum(&|grade| number(&grade["details"]["corrections"])),
        cause("edit_mismatch"),
        cause("file_not_found"),
        cause("missing_dependency"),
        cause("network_error"),
        cause("not_read_yet"),
        cause("test_failure"),
    ]
}

/// Removes a database with what stands beside it.
fn forget(database: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", database.display()));
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]
fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
