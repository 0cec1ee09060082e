//! `PHPUnit` and Pest.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, count_words, named_count, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily =
    RunnerFamily { programs: &["phpunit", "pest", "composer", "php", "artisan"], read };

static OK: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^OK \((\d+) tests?, \d+ assertions?\)$"));
static TESTS: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^Tests: (\d+), Assertions: \d+(.*)$"));
static PEST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^\s*Tests: +(\d+ [a-z]+(?:, \d+ [a-z]+)*) \(\d+ assertions?\)$")
});

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let ok = output
        .captures(&OK)
        .map(|found| TestCounts { passed: number(&found, 1), ..TestCounts::default() });
    let tests = output.captures(&TESTS).map(|found| {
        let list = &found[2];
        let (failed, errors) = (named_count(list, "Failures"), named_count(list, "Errors"));
        let skipped = named_count(list, "Skipped") + named_count(list, "Incomplete");
        let passed = number(&found, 1).saturating_sub(failed + errors + skipped);
        TestCounts { passed, failed, errors, skipped, deselected: 0 }
    });
    let pest = output.captures(&PEST).map(|found| count_words(&found[1]));
    sum(ok.chain(tests).chain(pest))
}
