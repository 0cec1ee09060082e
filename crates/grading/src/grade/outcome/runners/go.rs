//! go test, gotestsum and Ginkgo. Without `-v`, `go test` counts packages only.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, count_words, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily =
    RunnerFamily { programs: &["go", "gotestsum", "ginkgo"], read };

static PACKAGE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(ok|FAIL|\?) {0,4}\s+(\S*[A-Za-z]\S*)(?:\s+(?:([0-9.]+s|\(cached\))|(\[[a-z ]+\])))(?:\s+(?:coverage:.*|\[no tests to run\]))?",
    )
});
static TEST: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^--- (PASS|FAIL|SKIP): \S+ \([0-9.]+s\)"));
static GOTESTSUM: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^DONE (?:\d+ runs, )?(\d+) tests?((?:, \d+ (?:skipped|failures?|errors?))*) in ",
    )
});
static GINKGO: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^(?:SUCCESS|FAIL)! -- (\d+ Passed \| \d+ Failed.*)$"));

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let total = output.captures(&GOTESTSUM).map(|found| {
        let counts = count_words(&found[2]);
        let passed = number(&found, 1).saturating_sub(counts.failed + counts.skipped);
        TestCounts { passed, ..counts }
    });
    let specs = output.captures(&GINKGO).map(|found| count_words(&found[1].to_ascii_lowercase()));
    sum(total.chain(specs)).or_else(|| of_go(output))
}

fn of_go(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let mut tests = TestCounts::default();
    for found in output.captures(&TEST) {
        match &found[1] {
            "PASS" => tests.passed += 1,
            "FAIL" => tests.failed += 1,
            _ => tests.skipped += 1,
        }
    }
    let mut packages = TestCounts::default();
    let mut has_packages = false;
    for found in output.captures(&PACKAGE) {
        has_packages = true;
        match &found[1] {
            "ok" if found[0].contains("[no tests to run]") => {}
            "ok" => packages.passed += 1,
            "FAIL" if found.get(4).is_some() => packages.errors += 1,
            "FAIL" => packages.failed += 1,
            _ => {}
        }
    }
    if !has_packages && tests == TestCounts::default() {
        return None;
    }
    Some(TestCounts {
        passed: if tests.passed > 0 { tests.passed } else { packages.passed },
        failed: if tests.failed > 0 { tests.failed } else { packages.failed },
        errors: packages.errors,
        skipped: tests.skipped,
        deselected: 0,
    })
}
