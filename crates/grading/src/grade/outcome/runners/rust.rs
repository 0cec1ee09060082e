//! cargo test and cargo-nextest.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, count_words, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily = RunnerFamily { programs: &["cargo"], read };

static CARGO: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed(?:; (\d+) ignored)?(?:; \d+ measured)?(?:; (\d+) filtered out)?",
    )
});
static NEXTEST: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^\s*Summary \[[^\]]*\] +\d+(?:/\d+)? tests? run: (.*)$"));

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let cargo = output.captures(&CARGO).map(|found| TestCounts {
        passed: number(&found, 1),
        failed: number(&found, 2),
        errors: 0,
        skipped: number(&found, 3),
        deselected: number(&found, 4),
    });
    let nextest = output.captures(&NEXTEST).map(|found| {
        // In brackets is how tests passed: `(1 slow, 2 flaky)`.
        let list = found[1].replace(" timed out", " failed");
        let mut bare = String::new();
        let mut depth = 0_u32;
        for c in list.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                c if depth == 0 => bare.push(c),
                _ => {}
            }
        }
        count_words(&bare)
    });
    sum(cargo.chain(nextest))
}
