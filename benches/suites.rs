//! `suite check` of 200 repositories of skills: `cargo bench --bench suites`.
//!
//! Each repository has five skills with an `evals.json` of 15 cases and 60 sentences, source files, and
//! YAML files that are looked into. Ends with an error when the limit is passed.

#![expect(clippy::print_stdout, reason = "the numbers are the result")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

mod measurements;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use measurements::Measurements;
use serde_json::{Value, json};

const SELFTEST: &str = env!("CARGO_BIN_EXE_selftest");

const REPOSITORIES: usize = 200;
const SKILLS: usize = 5;
const CASES: usize = 15;
const MAX_SECONDS: f64 = 10.0;

/// Sentences as they are in public suites: most are about meaning.
const SENTENCES: [&str; 8] = [
    "Explains why the eventual consistency of the cache is acceptable here",
    "Identifies that the `part deff` typo is a syntax error and corrects it",
    "A file named report.md exists under out/reports/",
    "Uses at least 3 credible sources, including available primary sources",
    "Does not suggest increasing lora_rank as the primary fix",
    "Mentions detect_fused_experts() and target_modules",
    "Runs scripts/doctor.py or the read-only --preflight check before it starts the stack",
    "The response is under 200 words",
];

fn main() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..REPOSITORIES {
        write_repository(&folder.path().join(format!("repository-{number}")), number);
    }
    let started = Instant::now();
    let checked = Command::new(SELFTEST)
        .args(["suite", "check", "--json", "."])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let seconds = started.elapsed().as_secs_f64();
    let files: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(files.as_array().map(Vec::len), Some(REPOSITORIES * SKILLS));
    let mut rows = Measurements::of("suites");
    let name = format!("`suite check` of {REPOSITORIES} repositories with {SKILLS} skills each");
    rows.add(&name, seconds, "s", ..=MAX_SECONDS);
    rows.finish()
}

fn write_repository(folder: &Path, number: usize) {
    fs::create_dir_all(folder.join(".git")).unwrap();
    fs::create_dir_all(folder.join("src")).unwrap();
    for file in 0..30 {
        fs::write(folder.join(format!("src/part{file}.py")), "x = 1\n".repeat(200)).unwrap();
    }
    for file in 0..10 {
        fs::write(folder.join(format!("ci{file}.yaml")), "a: 1\nb:\n  - c\n").unwrap();
    }
    for skill in 0..SKILLS {
        let name = format!("skill-{number}-{skill}");
        let skill = folder.join("skills").join(&name);
        fs::create_dir_all(skill.join("evals")).unwrap();
        let text =
            format!("---\nname: {name}\ndescription: Tells the times of ferries.\n---\nRead.\n");
        fs::write(skill.join("SKILL.md"), text).unwrap();
        let case = |id: usize| {
            let sentence = |at: usize| json!({"id": format!("a{at}"), "text": SENTENCES[(id + at) % SENTENCES.len()], "type": "boolean"});
            let assertions: Vec<Value> = (0..4).map(sentence).collect();
            json!({"id": id, "prompt": format!("Build part {id} of {name} and save it to out/plan.md."),
                "expected_output": "A plan with its steps, risks and owners.", "assertions": assertions})
        };
        let cases: Vec<Value> = (1..=CASES).map(case).collect();
        let suite = format!("{:#}", json!({"skill_name": name, "evals": cases}));
        fs::write(skill.join("evals/evals.json"), suite).unwrap();
    }
}
