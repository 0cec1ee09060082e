//! JUnit's console, Maven, Gradle, sbt, `ScalaTest` and `TestNG`.

use std::sync::LazyLock;

use regex::Regex;

use super::{RunnerFamily, RunnerOutput, count_words, named_count, number, sum};
use crate::english;
use crate::grade::outcome::TestCounts;

pub(super) const FAMILY: RunnerFamily =
    RunnerFamily { programs: &["mvn", "mvnw", "gradle", "gradlew", "sbt", "java"], read };

/// Surefire: totals, and with a time those of one class.
static SUREFIRE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:\[\w+\] )?Tests run: +(\d+), +Failures: +(\d+)(?:, +Errors: +(\d+))?(?:, +Skipped: +(\d+))?(.*)$",
    )
});
static GRADLE: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^(\d+) tests? completed((?:, \d+ (?:failed|skipped))*)$"));
/// A line of Gradle's test logging: `FooTest > works() PASSED`.
static GRADLE_TEST: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^\S.* > .* (PASSED|FAILED|SKIPPED)$"));
static CONSOLE: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"^\[ +(\d+) tests (successful|failed|skipped|aborted) +\]$"));
static JUNIT4: LazyLock<Regex> = LazyLock::new(|| english::regex(r"^OK \((\d+) tests?\)$"));
static SBT: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^(?:\[\w+\] )?(?:Passed|Failed|Error): (Total \d+, Failed \d+.*)$")
});
static SCALATEST: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:\[\w+\] )?Tests: succeeded (\d+), failed (\d+), canceled (\d+), ignored (\d+), pending (\d+)",
    )
});
static TESTNG: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^Total tests run: (\d+),(?: Passes: \d+,)? Failures: (\d+), Skips: (\d+)")
});

fn read(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    surefire(output)
        .or_else(|| gradle(output))
        .or_else(|| {
            sum(output.captures(&CONSOLE).map(|found| match &found[2] {
                "aborted" => TestCounts { skipped: number(&found, 1), ..TestCounts::default() },
                word => count_words(&format!("{} {word}", &found[1])),
            }))
        })
        .or_else(|| {
            sum(output.captures(&TESTNG).map(|found| {
                rest_passed(number(&found, 1), number(&found, 2), 0, number(&found, 3))
            }))
        })
        .or_else(|| {
            sum(output.captures(&SCALATEST).map(|found| TestCounts {
                passed: number(&found, 1),
                failed: number(&found, 2),
                skipped: (3..=5).map(|group| number(&found, group)).sum(),
                ..TestCounts::default()
            }))
        })
        .or_else(|| sum(output.captures(&SBT).map(|found| sbt(&found[1]))))
        .or_else(|| {
            sum(output.captures(&JUNIT4).map(|found| rest_passed(number(&found, 1), 0, 0, 0)))
        })
}

fn surefire(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let counts = |of_class: bool| {
        let found = output
            .captures(&SUREFIRE)
            .filter(move |found| found[5].contains("Time elapsed") == of_class);
        sum(found.map(|found| {
            rest_passed(number(&found, 1), number(&found, 2), number(&found, 3), number(&found, 4))
        }))
    };
    // The totals repeat the classes, and only one of the two may be there.
    counts(false).or_else(|| counts(true))
}

fn gradle(output: &RunnerOutput<'_>) -> Option<TestCounts> {
    let total = sum(output.captures(&GRADLE).map(|found| {
        let counts = count_words(&found[2]);
        rest_passed(number(&found, 1), counts.failed, 0, counts.skipped)
    }));
    total.or_else(|| {
        sum(output
            .captures(&GRADLE_TEST)
            .map(|found| count_words(&format!("1 {}", found[1].to_ascii_lowercase()))))
    })
}

fn sbt(list: &str) -> TestCounts {
    // `Total 5, Failed 0, Errors 0, Passed 5`
    let list = list.replace(' ', "=").replace(",=", ", ");
    TestCounts {
        passed: named_count(&list, "Passed"),
        failed: named_count(&list, "Failed"),
        errors: named_count(&list, "Errors"),
        skipped: named_count(&list, "Ignored") + named_count(&list, "Skipped"),
        deselected: 0,
    }
}

fn rest_passed(total: u64, failed: u64, errors: u64, skipped: u64) -> TestCounts {
    let passed = total.saturating_sub(failed.saturating_add(errors).saturating_add(skipped));
    TestCounts { passed, failed, errors, skipped, deselected: 0 }
}
