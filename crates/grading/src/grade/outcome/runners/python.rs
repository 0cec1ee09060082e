//! pytest, unittest with Django's and Twisted's runners, and sympy's own.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, count_words, named_count, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily = RunnerFamily {
    programs: &["pytest", "py.test", "python", "tox", "nox", "nosetests", "runtests.py", "trial"],
    read,
};

/// The last line of pytest, alone on its line: *1 failed, 2 passed in 0.1s*.
static PYTEST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^=* ?(\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|reruns?|rerun|subtests passed)(?:, \d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|reruns?|rerun|subtests passed))*)(?: in [0-9.]+ ?s(?:econds)?(?: \([0-9:]+\))?)? ?=*$",
    )
});
/// *no tests ran in 0.1s*, and what `--collect-only` prints.
static COLLECTED: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^=* ?(?:no tests (?:ran|collected)(?: \((\d+) deselected\))?|(\d+)(?:/\d+)? tests? collected(?: \((\d+) deselected\))?)\b",
    )
});
static DESELECTED: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^collected \d+ items?(?: / \d+ errors?)? / (\d+) deselected")
});
static RAN: LazyLock<Regex> = LazyLock::new(|| english::regex(r"^Ran (\d+) tests? in [0-9.]+"));
static ENDED: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^(OK|FAILED|PASSED|NO TESTS RAN)(?: \(([^)]*)\))?$"));
static SYMPY: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^=* ?tests finished: (.*), in [0-9.]+ seconds"));

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let pytest = sum(output.captures(&PYTEST).map(|found| count_words(&found[1])));
    let pytest = pytest.map(|counts| {
        // The line at the start says it even where a pipe has cut the end.
        let deselected = output.captures(&DESELECTED).map(|found| number(&found, 1)).sum();
        TestCounts { deselected: counts.deselected.max(deselected), ..counts }
    });
    let found = pytest.into_iter().chain(unittest(output));
    let found = sum(found.chain(output.captures(&SYMPY).map(|found| count_words(&found[1]))));
    found.filter(|counts| counts.total() > 0).or_else(|| collected(output)).or(found)
}

fn collected(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    sum(output.captures(&COLLECTED).map(|found| {
        let deselected = (1..=3).map(|group| number(&found, group)).sum();
        TestCounts { deselected, ..TestCounts::default() }
    }))
}

/// *Ran 3 tests in 0.1s*, and then *OK (skipped=1)* or *FAILED (failures=1)*.
fn unittest(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let mut sum = None::<TestCounts>;
    let mut ran = None;
    for line in output.lines() {
        if let Some(found) = RAN.captures(line) {
            ran = Some(number(&found, 1));
        } else if let (Some(count), Some(found)) = (ran, ENDED.captures(line)) {
            ran = None;
            let list = found.get(2).map_or("", |list| list.as_str());
            let failed = named_count(list, "failures") + named_count(list, "unexpected successes");
            let errors = named_count(list, "errors");
            let skipped = ["skipped", "skips", "expected failures", "todos"];
            let skipped = skipped.into_iter().map(|name| named_count(list, name)).sum::<u64>();
            // FAILED without a reason is still a failure.
            let failed = if &found[1] == "FAILED" && failed + errors == 0 { 1 } else { failed };
            let passed = count.saturating_sub(failed + errors + skipped);
            let counts = TestCounts { passed, failed, errors, skipped, deselected: 0 };
            *sum.get_or_insert_default() += counts;
        }
    }
    sum
}
