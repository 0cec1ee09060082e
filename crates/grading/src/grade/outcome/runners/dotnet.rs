//! dotnet test with `VSTest` and with Microsoft.Testing.Platform.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily = RunnerFamily { programs: &["dotnet"], read };

static VSTEST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^\s*(?:Passed|Failed|Skipped)! +- Failed: +(\d+), Passed: +(\d+), Skipped: +(\d+), Total: +\d+",
    )
});
static PLATFORM: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^\s*(?:Test summary|Test run summary): (?:.*)total: (\d+),? *failed: (\d+),? *(?:succeeded|passed): (\d+),? *skipped: (\d+)",
    )
});
static LINE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^\s*(Total tests|Passed|Failed|Skipped|total|failed|succeeded|skipped): +(\d+)$",
    )
});

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let counts =
        |passed, failed, skipped| TestCounts { passed, failed, skipped, ..Default::default() };
    let vstest = output.captures(&VSTEST);
    sum(vstest.map(|found| counts(number(&found, 2), number(&found, 1), number(&found, 3))))
        .or_else(|| {
            let summary = output.captures(&PLATFORM);
            sum(summary
                .map(|found| counts(number(&found, 3), number(&found, 2), number(&found, 4))))
        })
        .or_else(|| {
            // One number a line; the total makes it a summary.
            let lines: Vec<_> = output.captures(&LINE).collect();
            let of = |name: &str| {
                let own = lines.iter().filter(|found| found[1].eq_ignore_ascii_case(name));
                own.map(|found| number(found, 2)).sum::<u64>()
            };
            let has_total = lines.iter().any(|found| matches!(&found[1], "Total tests" | "total"));
            has_total.then(|| counts(of("passed") + of("succeeded"), of("failed"), of("skipped")))
        })
}
