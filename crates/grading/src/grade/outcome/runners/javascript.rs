//! Jest, Vitest, Mocha, AVA, Jasmine, Karma, Playwright, and the runners of Node, Bun and Deno.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, count_words, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily = RunnerFamily {
    programs: &[
        "jest",
        "vitest",
        "mocha",
        "ava",
        "karma",
        "jasmine",
        "playwright",
        "cypress",
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "deno",
        "node",
    ],
    read,
};

static JEST: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^Tests: +((?:\d+ [a-z]+, )*)(\d+) total$"));
/// Suites that do not even load are in no count of tests.
static JEST_SUITES: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^Test Suites: +(?:(\d+) failed, )?.*\d+ total$"));
static VITEST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^\s*Tests\s+((?:\d+ (?:failed|passed|skipped|todo)(?: \| )?)+) ?\(\d+\)$")
});
static VITEST_FILES: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^\s*Test Files\s+(?:(\d+) failed)?.*\(\d+\)$"));
static MOCHA: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^\s+(\d+ (?:passing|failing|pending))(?: \([0-9.]+ ?(?:ms|s|m|h)\))?$")
});
static AVA: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^\s+(\d+) (?:tests?|known failures?|uncaught exceptions?) ?(passed|failed|skipped|todo)$",
    )
});
static JASMINE: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^(\d+) specs?, (\d+) failures?(?:, (\d+) pending specs?)?"));
static KARMA: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"Executed (\d+) of (\d+)(?: \((\d+) FAILED\))?(?: \(skipped (\d+)\))?(?: .*(?:SUCCESS|secs).*)?$",
    )
});
/// Playwright prints one number a line; Bun too.
static PLAYWRIGHT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^\s+(\d+) (passed|failed|flaky|skipped|interrupted|did not run)(?: \([0-9.]+(?:ms|s|m|h)\))?$",
    )
});
static BUN: LazyLock<Regex> = LazyLock::new(|| english::regex(r"^\s*(\d+) (pass|fail|skip|todo)$"));
static BUN_RAN: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^Ran \d+ tests? across \d+ files?"));
static DENO: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^(?:ok|FAILED) \| (\d+ passed.* \| \d+ failed.*)$"));
static NODE: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^(?:ℹ|#) (pass|fail|cancelled|skipped|todo) (\d+)$"));

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let jest = sum(output.captures(&JEST).map(|found| count_words(&found[1])));
    let jest = jest.map(|counts| with_broken_files(counts, output, &JEST_SUITES));
    let vitest = sum(output.captures(&VITEST).map(|found| count_words(&found[1])));
    let vitest = vitest.map(|counts| with_broken_files(counts, output, &VITEST_FILES));
    jest.or(vitest)
        .or_else(|| sum(output.captures(&MOCHA).map(|found| count_words(&found[1]))))
        .or_else(|| {
            sum(output.captures(&JASMINE).map(|found| {
                // The number of specs includes the failed and the pending ones.
                let (failed, skipped) = (number(&found, 2), number(&found, 3));
                let passed = number(&found, 1).saturating_sub(failed + skipped);
                TestCounts { passed, failed, skipped, ..TestCounts::default() }
            }))
        })
        .or_else(|| {
            // Karma repeats this line as its tests progress, and the last one has the totals.
            let last = output.captures(&KARMA).last()?;
            let (ran, failed) = (number(&last, 1), number(&last, 3));
            let deselected = number(&last, 2).saturating_sub(ran);
            let passed = ran.saturating_sub(failed);
            Some(TestCounts { passed, failed, deselected, ..TestCounts::default() })
        })
        .or_else(|| sum(output.captures(&DENO).map(|found| count_words(&found[1]))))
        .or_else(|| bun(output))
        .or_else(|| node(output))
        .or_else(|| {
            sum(output
                .captures(&AVA)
                .map(|found| count_words(&format!("{} {}", &found[1], &found[2]))))
        })
        .or_else(|| {
            sum(output.captures(&PLAYWRIGHT).map(|found| match &found[2] {
                "did not run" => {
                    TestCounts { deselected: number(&found, 1), ..TestCounts::default() }
                }
                word => count_words(&format!("{} {word}", &found[1])),
            }))
        })
}

/// Counts files that failed without a failed test in them as errors.
fn with_broken_files(counts: TestCounts, output: &RunnerOutput<'_>, files: &Regex) -> TestCounts {
    let broken: u64 = output.captures(files).map(|found| number(&found, 1)).sum();
    let errors = if counts.failed == 0 { broken } else { counts.errors };
    TestCounts { errors, ..counts }
}

fn bun(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    if !output.has(&BUN_RAN) {
        return None;
    }
    sum(output.captures(&BUN).map(|found| {
        let word = match &found[2] {
            "skip" => "skipped",
            word => word,
        };
        count_words(&format!("{} {word}", &found[1]))
    }))
}

fn node(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    sum(output.captures(&NODE).map(|found| {
        let word = match &found[1] {
            // Node cancels subtests that outlive their parent, and treats them as failures.
            "cancelled" => "failed",
            word => word,
        };
        count_words(&format!("{} {word}", &found[2]))
    }))
}
