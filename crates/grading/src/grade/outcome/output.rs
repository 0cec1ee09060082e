//! Determines the result of a check: for tests by the counts that their runner printed, then by the
//! exit code if it belongs to the check; words decide nothing. Builds and linters print no counts,
//! so there the exit code decides, and known messages if it is unknown.

use std::sync::LazyLock;

use regex::RegexSet;

use super::TestCounts;
use super::runners::{RunnerOutput, could_not_run};
use crate::english;

/// Exit status of a command, as far as it reveals the result of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckExit {
    /// Exit code 0 of the check itself.
    Zero,
    /// A nonzero exit code.
    NonZero,
    /// No exit code, or that of another program.
    Unknown,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckVerdict {
    Passed(Option<TestCounts>),
    Failed(Option<TestCounts>),
    /// There was nothing to check.
    NoneRan(Option<TestCounts>),
    /// The check itself could not run, which says nothing about the work.
    CouldNotRun,
    /// The output and the exit code do not tell.
    Unclear,
}

/// Determines the result of tests.
pub(super) fn test_result(exit: CheckExit, program: &str, words: &str) -> CheckVerdict {
    let output = RunnerOutput::new(words);
    match output.counts(program) {
        // Files that did not even load, because something is missing.
        Some(counts)
            if counts.passed == 0
                && counts.failed == 0
                && counts.errors > 0
                && could_not_run(words) =>
        {
            CheckVerdict::CouldNotRun
        }
        Some(counts) if counts.failures() > 0 => CheckVerdict::Failed(Some(counts)),
        // All counted tests were skipped or deselected, which is no success.
        Some(counts) if counts.passed == 0 => CheckVerdict::NoneRan(Some(counts)),
        // Something beside the tests failed, such as a limit on coverage.
        // Go prints a line for each package and no summary: a pipe may have cut others away.
        Some(_)
            if exit == CheckExit::NonZero || (exit == CheckExit::Unknown && program == "go") =>
        {
            CheckVerdict::Unclear
        }
        Some(counts) => CheckVerdict::Passed(Some(counts)),
        // Before the exit code, which is 0 for some runners even if no test ran.
        None if output.says_none_ran() => CheckVerdict::NoneRan(None),
        None => match exit {
            CheckExit::Zero => CheckVerdict::Passed(None),
            CheckExit::NonZero | CheckExit::Unknown if could_not_run(words) => {
                CheckVerdict::CouldNotRun
            }
            CheckExit::NonZero => CheckVerdict::Failed(None),
            CheckExit::Unknown => CheckVerdict::Unclear,
        },
    }
}

/// Number of bytes examined at the end of the output of builds and linters.
const MAX_TAIL: usize = 4000;

const FAILS: &str = r"(?m)\b[1-9]\d* errors?\b|\bBUILD (?:FAILED|FAILURE)\b|^error(?:\[E\d+\])?: |\berror TS\d+|npm ERR!|could not compile|^make(?:\[\d+\])?: \*\*\* ";
const PASSES: &str = r"(?m)\bBUILD SUCCESS|\bAll checks passed|Success: no issues found|\b0 errors\b|^\s*Finished .*(?:dev|release|test|profile)|✓ built in|Compiled successfully|All matched files use";

static WORDS: LazyLock<RegexSet> = LazyLock::new(|| english::regex_set([FAILS, PASSES]));

/// Determines the result of a build or a linter.
pub(super) fn build_result(exit: CheckExit, words: &str) -> CheckVerdict {
    let tail = &words[words.ceil_char_boundary(words.len().saturating_sub(MAX_TAIL))..];
    let found = WORDS.matches(tail);
    match exit {
        CheckExit::Zero => CheckVerdict::Passed(None),
        CheckExit::NonZero | CheckExit::Unknown if found.matched(0) => CheckVerdict::Failed(None),
        CheckExit::NonZero if could_not_run(words) => CheckVerdict::CouldNotRun,
        CheckExit::NonZero => CheckVerdict::Failed(None),
        CheckExit::Unknown if found.matched(1) => CheckVerdict::Passed(None),
        CheckExit::Unknown => CheckVerdict::Unclear,
    }
}

static CI_LINES: LazyLock<RegexSet> = LazyLock::new(|| {
    english::regex_set([
        // `gh pr checks`: name, result, time, address.
        r"(?m)^[^\t\n]+\tfail\t|^(?:X|✗) |^Some checks were not successful|^\d+ failing, ",
        r"(?m)^[^\t\n]+\tpass\t|^✓ |^All checks were successful",
        r"(?m)^[^\t\n]+\tpending\t|^Some checks are still pending|^\* ",
        r"(?i)no checks reported|no pull requests found",
    ])
});

/// Determines the result of continuous integration from what `gh` and `glab` print.
pub(super) fn ci_result(exit: CheckExit, words: &str) -> CheckVerdict {
    let output = RunnerOutput::new(words).lines().collect::<Vec<_>>().join("\n");
    let found = CI_LINES.matches(&output);
    if found.matched(3) {
        return CheckVerdict::NoneRan(None);
    }
    match (found.matched(0), found.matched(1), found.matched(2)) {
        (true, ..) => CheckVerdict::Failed(None),
        (false, true, false) if exit != CheckExit::NonZero => CheckVerdict::Passed(None),
        // An exit code alone is that of the command, which ends before CI does.
        _ => CheckVerdict::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(verdict: CheckVerdict) -> String {
        match verdict {
            CheckVerdict::Passed(Some(counts)) => format!("passed: {counts}"),
            CheckVerdict::Failed(Some(counts)) => format!("failed: {counts}"),
            CheckVerdict::NoneRan(Some(counts)) => format!("none: {counts}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn counts_go_before_exit_codes_and_words_decide_nothing() {
        for (words, at_zero, unknown) in [
            ("1 failed, 4 passed in 0.2s", "failed: 4 of 5 passed, 1 failed", "same"),
            ("", "Passed(None)", "Unclear"),
            ("All tests passed!", "Passed(None)", "Unclear"),
            ("2 failed attempts are shown", "Passed(None)", "Unclear"),
            ("====== no tests ran in 0.01s ======", "none: 0 of 0 passed", "same"),
            ("ss\n2 skipped in 0.1s", "none: 0 of 2 passed, 2 skipped", "same"),
            ("3 tests collected in 0.01s", "none: 0 of 3 passed, 3 deselected", "same"),
            (
                "Ran 2 tests in 0.1s\n\nOK (expected failures=2)",
                "none: 0 of 2 passed, 2 skipped",
                "same",
            ),
            (
                "Ran 5 tests in 0.1s\n\nOK (expected failures=2)",
                "passed: 3 of 5 passed, 2 skipped",
                "same",
            ),
            ("make: 'test' is up to date.", "NoneRan(None)", "same"),
        ] {
            assert_eq!(shown(test_result(CheckExit::Zero, "pytest", words)), at_zero, "{words}");
            let expected = if unknown == "same" { at_zero } else { unknown };
            assert_eq!(shown(test_result(CheckExit::Unknown, "", words)), expected, "{words}");
        }
    }

    #[test]
    fn a_check_that_could_not_run_says_nothing() {
        use CheckVerdict::{CouldNotRun, Failed, Unclear};
        for (words, expected) in [
            ("bash: pytest: command not found", CouldNotRun),
            ("/usr/bin/python: No module named pytest", CouldNotRun),
            ("Command timed out after 2m", CouldNotRun),
            ("npm error Missing script: \"test\"", CouldNotRun),
            ("ERROR: JAVA_HOME is not set and no 'java' command could be found", CouldNotRun),
            ("/usr/bin/env: 'node': No such file or directory", CouldNotRun),
            ("make: *** No rule to make target 'test'.  Stop.", CouldNotRun),
            ("assertion `left == right` failed", Failed(None)),
            ("", Failed(None)),
            ("12 passed in 0.1s\nRequired test coverage of 90% not reached", Unclear),
        ] {
            assert_eq!(test_result(CheckExit::NonZero, "", words), expected, "{words}");
        }
        let collection = "E   ModuleNotFoundError: No module named 'numpy'\n1 error in 0.1s";
        assert_eq!(test_result(CheckExit::NonZero, "pytest", collection), CouldNotRun);
    }

    #[test]
    fn builds_go_by_their_exit_code() {
        use CheckVerdict::{Failed, Passed, Unclear};
        for (exit, words, expected) in [
            (CheckExit::Zero, "warning: 2 errors were ignored", Passed(None)),
            (CheckExit::NonZero, "", Failed(None)),
            (CheckExit::Unknown, "src/a.ts(3,1): error TS2304: x", Failed(None)),
            (CheckExit::Unknown, "    Finished `dev` profile in 1s", Passed(None)),
            (CheckExit::Unknown, "hello", Unclear),
        ] {
            assert_eq!(build_result(exit, words), expected, "{words}");
        }
    }

    #[test]
    fn ci_goes_by_the_lines_of_its_checks() {
        use CheckVerdict::{Failed, NoneRan, Passed, Unclear};
        for (words, expected) in [
            ("build\tpass\t1m2s\thttps://x\ntest\tpass\t3s\thttps://x", Passed(None)),
            ("build\tpass\t1m2s\thttps://x\ntest\tfail\t3s\thttps://x", Failed(None)),
            ("build\tpass\t1m2s\thttps://x\ntest\tpending\t0\thttps://x", Unclear),
            ("no checks reported on the 'x' branch", NoneRan(None)),
            ("", Unclear),
        ] {
            assert_eq!(ci_result(CheckExit::Zero, words), expected, "{words}");
        }
    }
}
