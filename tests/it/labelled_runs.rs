//! Outcomes of 118 runs of coding agents whose success hidden tests of benchmarks decided: the
//! table of `docs/recorded-sessions.md` follows from what the program said of each.
//!
//! The runs are in public repositories and not part of the project: only their names, what was
//! said of them and their results are. `docs/recorded-sessions.md` says how they were chosen and copied.

use std::fs;
use std::path::Path;

use selftest_grading::grade::{OutcomeSign, Proportion, TaskOutcome};

const RUNS: &str = include_str!("fixtures/labelled_runs.csv");

type Filter<'a> = &'a dyn Fn(&Run) -> bool;

struct Run {
    outcome: TaskOutcome,
    /// What the program found beside the agent's own word, joined by `+`.
    signs: &'static str,
    succeeded: bool,
}

fn runs() -> Vec<Run> {
    let run = |line: &'static str| {
        let [_, _, outcome, signs, succeeded] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let outcome = outcome.parse().unwrap();
        Run { outcome, signs, succeeded: succeeded == "1" }
    };
    RUNS.lines().skip(1).map(run).collect()
}

#[test]
fn the_table_of_outcomes_follows_from_the_runs() {
    let runs = runs();
    assert_eq!(runs.len(), 118);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recorded-sessions.md");
    let docs = fs::read_to_string(docs).unwrap();
    let build: &str = OutcomeSign::BuildPassed.into();
    let is_build_alone = |run: &Run| run.outcome == TaskOutcome::Claimed && run.signs == build;
    let of = |outcome| move |run: &Run| run.outcome == outcome;
    let rows: [(&str, Filter<'_>); 6] = [
        ("`checks_passed`", &of(TaskOutcome::ChecksPassed)),
        ("`contradicted`", &of(TaskOutcome::Contradicted)),
        ("`claimed`", &of(TaskOutcome::Claimed)),
        ("of them after a build that passed", &is_build_alone),
        ("`unknown`", &of(TaskOutcome::Unknown)),
        ("all", &|_| true),
    ];
    let mut missing = Vec::new();
    for (name, is) in rows {
        let own: Vec<&Run> = runs.iter().filter(|run| is(run)).collect();
        let succeeded = own.iter().filter(|run| run.succeeded).count();
        let share = Proportion::new(succeeded as u64, own.len() as u64);
        let (rate, interval) = share.rate.zip(share.interval).unwrap();
        let [rate, low, high] = [rate, interval.low, interval.high].map(|it| it * 100.0);
        let row = format!(
            "| {name} | {} | {succeeded} ({rate:.0} %, 95 % interval {low:.0} % to {high:.0} %) |",
            own.len()
        );
        eprintln!("{row}");
        missing.extend((!docs.contains(&row)).then_some(row));
        if name == "`checks_passed`" {
            assert!(succeeded * 10 >= own.len() * 8, "{succeeded} of {}", own.len());
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "rows that docs/recorded-sessions.md does not have");
}
