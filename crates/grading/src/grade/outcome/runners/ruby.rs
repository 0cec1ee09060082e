//! `RSpec`, Minitest, test-unit, Cucumber, and `ExUnit` and Bats, which print the same form.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, count_words, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily =
    RunnerFamily { programs: &["rspec", "rake", "rails", "ruby", "cucumber", "mix", "bats"], read };

static RSPEC: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?$",
    )
});
static MINITEST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors(?:, (\d+) (?:skips|pendings))?(?:, (\d+) omissions)?",
    )
});
/// `ExUnit` and Bats.
static TESTS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:(\d+) doctests?, )?(?:\d+ propert(?:y|ies), )?(\d+) tests?, (\d+) failures?(?:, (\d+) invalid)?((?:, \d+ (?:skipped|excluded))*)$",
    )
});
static CUCUMBER: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^(\d+) scenarios? \(([^)]*)\)$"));

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let rest = |total: u64, failed: u64, errors: u64, skipped: u64| {
        let passed = total.saturating_sub(failed.saturating_add(skipped));
        TestCounts { passed, failed, errors, skipped, deselected: 0 }
    };
    sum(output.captures(&RSPEC).map(|found| {
        rest(number(&found, 1), number(&found, 2), number(&found, 4), number(&found, 3))
    }))
    .or_else(|| {
        sum(output.captures(&MINITEST).map(|found| {
            let (failed, errors) = (number(&found, 2), number(&found, 3));
            let skipped = number(&found, 4) + number(&found, 5);
            let passed = number(&found, 1).saturating_sub(failed + errors + skipped);
            TestCounts { passed, failed, errors, skipped, deselected: 0 }
        }))
    })
    .or_else(|| {
        sum(output.captures(&TESTS).map(|found| {
            let more = count_words(&found[5]);
            let counts = rest(
                number(&found, 1) + number(&found, 2),
                number(&found, 3),
                number(&found, 4),
                more.skipped + more.deselected,
            );
            TestCounts { skipped: more.skipped, deselected: more.deselected, ..counts }
        }))
    })
    .or_else(|| {
        sum(output.captures(&CUCUMBER).map(|found| {
            let list = found[2].replace("undefined", "errors");
            count_words(&list)
        }))
    })
}
