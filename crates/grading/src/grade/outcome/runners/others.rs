//! Behave, Robot Framework, Forge, Terraform, testthat, Bazel, Crystal, and the summary of Zig's
//! build.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{RunnerFamily, RunnerOutput, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily = RunnerFamily {
    programs: &["behave", "robot", "forge", "terraform", "tofu", "Rscript", "bazel", "crystal"],
    read,
};

/// How often a runner prints a summary: once, or once per suite and the total last.
#[derive(Clone, Copy)]
enum Summaries {
    Added,
    LastCounts,
}

/// A summary line with its counts in named groups.
struct SummaryLine {
    pattern: Regex,
    summaries: Summaries,
}

static LINES: LazyLock<Vec<SummaryLine>> = LazyLock::new(|| {
    let line = |summaries, pattern| SummaryLine { pattern: english::regex(pattern), summaries };
    vec![
        line(
            Summaries::Added,
            r"^(?<passed>\d+) scenarios? passed, (?<failed>\d+) failed(?:, (?<errors>\d+) error(?:ed)?)?, (?<skipped>\d+) skipped",
        ),
        line(
            Summaries::LastCounts,
            r"^\d+ tests?, (?<passed>\d+) passed, (?<failed>\d+) failed(?:, (?<skipped>\d+) skipped)?$",
        ),
        line(
            Summaries::Added,
            r"^Ran \d+ test suites?\b.*: (?<passed>\d+) tests? passed, (?<failed>\d+) failed, (?<skipped>\d+) skipped \(\d+ total tests?\)$",
        ),
        line(
            Summaries::Added,
            r"^(?:Success|Failure)! (?<passed>\d+) passed, (?<failed>\d+) failed(?:, (?<skipped>\d+) skipped)?\.$",
        ),
        line(
            Summaries::LastCounts,
            r"^\[ FAIL (?<failed>\d+) \| WARN \d+ \| SKIP (?<skipped>\d+) \| PASS (?<passed>\d+) \]$",
        ),
        line(
            Summaries::Added,
            r"^Executed \d+ out of \d+ tests?: (?:(?<passed>\d+) tests? pass(?:es)?)?(?:,? ?(?:and )?(?<failed>\d+) fails? (?:locally|remotely|to build))?(?:,? ?(?:and )?(?<skipped>\d+) (?:was|were) skipped)?\.$",
        ),
        line(
            Summaries::Added,
            r"^\d+ examples?, (?<failed>\d+) failures?, (?<errors>\d+) errors?, (?<skipped>\d+) pending$",
        ),
        line(
            Summaries::Added,
            r"^Build Summary: .*; (?<passed>\d+)/\d+ tests passed(?:; (?<skipped>\d+) skipped)?(?:; (?<failed>\d+) failed)?",
        ),
    ]
});

/// All examples of Crystal, whose summary has no number of those that passed.
static EXAMPLES: LazyLock<Regex> = LazyLock::new(|| english::regex(r"^(\d+) examples?, "));

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    LINES.iter().find_map(|line| {
        let mut found = output.captures(&line.pattern).map(|found| counts(&found));
        match line.summaries {
            Summaries::Added => sum(found),
            Summaries::LastCounts => found.by_ref().last(),
        }
    })
}

fn counts(found: &Captures<'_>) -> TestCounts {
    let named = |name: &str| found.name(name).map_or(0, |text| super::parse(text.as_str()));
    let counts = TestCounts {
        passed: named("passed"),
        failed: named("failed"),
        errors: named("errors"),
        skipped: named("skipped"),
        deselected: 0,
    };
    match EXAMPLES.captures(&found[0]) {
        Some(all) => {
            let rest = counts.failed + counts.errors + counts.skipped;
            TestCounts { passed: number(&all, 1).saturating_sub(rest), ..counts }
        }
        None => counts,
    }
}
