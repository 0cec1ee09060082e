//! The Test Anything Protocol, as Bats, prove, node-tap and others print it.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, number};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily =
    RunnerFamily { programs: &["prove", "tap", "tape", "bats"], read };

static PLAN: LazyLock<Regex> = LazyLock::new(|| english::regex(r"^1\.\.(\d+)(?:\s*#.*)?$"));
/// Only lines without indentation; nested ones belong to a subtest.
static POINT: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^(not )?ok (\d+)\b(?:.*# *(?i:(skip|todo)))?"));
static PROVE: LazyLock<Regex> = LazyLock::new(|| english::regex(r"^Files=\d+, Tests=(\d+),"));
static PROVE_FAILED: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^Failed \d+/\d+ test programs?\. (\d+)/\d+ subtests? failed")
});
static PROVE_RESULT: LazyLock<Regex> = LazyLock::new(|| english::regex(r"^Result: (PASS|FAIL)$"));

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    prove(output).or_else(|| points(output))
}

fn prove(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let total = number(&output.captures(&PROVE).last()?, 1);
    let result = output.captures(&PROVE_RESULT).last()?;
    let failed: u64 = output.captures(&PROVE_FAILED).map(|found| number(&found, 1)).sum();
    let failed = if &result[1] == "FAIL" { failed.max(1) } else { failed };
    Some(TestCounts { passed: total.saturating_sub(failed), failed, ..TestCounts::default() })
}

fn points(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    let mut seen = 0_u64;
    for found in output.captures(&POINT) {
        seen += 1;
        match (found.get(1).is_some(), found.get(3).is_some()) {
            (_, true) => counts.skipped += 1,
            (true, false) => counts.failed += 1,
            (false, false) => counts.passed += 1,
        }
    }
    let planned: u64 = output.captures(&PLAN).map(|found| number(&found, 1)).sum();
    if seen == 0 && planned == 0 {
        return None;
    }
    // Planned tests without a line did not end.
    if planned > seen && seen > 0 {
        counts.errors += planned - seen;
    }
    (seen > 0).then_some(counts)
}
