//! `CTest`, `GoogleTest`, Catch2, doctest, Meson, Zig, `XCTest`, Swift Testing, Dart and Flutter.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily = RunnerFamily {
    programs: &["ctest", "meson", "zig", "swift", "xcodebuild", "dart", "flutter", "ninja"],
    read,
};

static CTEST: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)"));
static GTEST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^\[ +(PASSED|FAILED|SKIPPED|DISABLED) +\] (\d+) tests?(?:\.|, listed below:)")
});
static CATCH_OK: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^All tests passed \(\d+ assertions? in (\d+) test cases?\)"));
static CASES: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:\[doctest\] )?test cases: +\d+ \|(?: +(\d+) passed)?(?: \|)?(?: +(\d+) failed)?(?: \| +(\d+) (?:skipped|failed as expected))?",
    )
});
static MESON: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout): +(\d+)\s*$")
});
static ZIG: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^(?:All (\d+) tests passed\.|(\d+) passed; (\d+) skipped; (\d+) failed\.)")
});
static XCTEST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^\s*Executed (\d+) tests?, with (?:(\d+) tests? skipped and )?(\d+) failures?")
});
static SWIFT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"Test run with (\d+) tests?(?: in \d+ suites?)? (passed|failed) after .*?(?:with (\d+) issues?)?\.?$",
    )
});
static DART: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^\d\d:\d\d \+(\d+)(?: ~(\d+))?(?: -(\d+))?: (?:All tests passed!|Some tests failed\.|No tests ran\.|All tests skipped\.)",
    )
});

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let rest = |total: u64, failed: u64, skipped: u64| TestCounts {
        passed: total.saturating_sub(failed.saturating_add(skipped)),
        failed,
        skipped,
        ..TestCounts::default()
    };
    sum(output.captures(&CTEST).map(|found| rest(number(&found, 2), number(&found, 1), 0)))
        .or_else(|| {
            sum(output.captures(&GTEST).map(|found| {
                let count = number(&found, 2);
                match &found[1] {
                    "PASSED" => rest(count, 0, 0),
                    "FAILED" => rest(count, count, 0),
                    _ => rest(count, 0, count),
                }
            }))
        })
        .or_else(|| sum(output.captures(&CATCH_OK).map(|found| rest(number(&found, 1), 0, 0))))
        .or_else(|| {
            sum(output.captures(&CASES).map(|found| TestCounts {
                passed: number(&found, 1),
                failed: number(&found, 2),
                skipped: number(&found, 3),
                ..TestCounts::default()
            }))
        })
        .or_else(|| meson(output))
        .or_else(|| {
            sum(output.captures(&ZIG).map(|found| TestCounts {
                passed: number(&found, 1) + number(&found, 2),
                failed: number(&found, 4),
                skipped: number(&found, 3),
                ..TestCounts::default()
            }))
        })
        .or_else(|| {
            // Each suite repeats the sum of those inside it; the last line is the outermost.
            let last = output.captures(&XCTEST).last()?;
            Some(rest(number(&last, 1), number(&last, 3), number(&last, 2)))
        })
        .or_else(|| {
            sum(output.captures(&SWIFT).map(|found| {
                // A line of a failed run may lack the number of issues.
                let failed = if &found[2] == "failed" { number(&found, 3).max(1) } else { 0 };
                rest(number(&found, 1), failed, 0)
            }))
        })
        .or_else(|| {
            let last = output.captures(&DART).last()?;
            Some(TestCounts {
                passed: number(&last, 1),
                skipped: number(&last, 2),
                failed: number(&last, 3),
                ..TestCounts::default()
            })
        })
}

fn meson(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let mut counts = None::<TestCounts>;
    for found in output.captures(&MESON) {
        let count = number(&found, 2);
        let counts = counts.get_or_insert_default();
        let kind = match &found[1] {
            "Ok" => &mut counts.passed,
            "Expected Fail" | "Skipped" => &mut counts.skipped,
            _ => &mut counts.failed,
        };
        *kind = kind.saturating_add(count);
    }
    counts
}
