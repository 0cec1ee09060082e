//! Determines if tests, a build or a linter passed, from the exit code if it belongs to the check,
//! and from the output.

use std::sync::LazyLock;

use regex::RegexSet;

use super::super::ErrorClass;
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
    Passed,
    Failed,
    /// The check did not run, or had nothing to check.
    DidNotRun,
}

/// Numbers of bytes examined at the start and end of an output. The tail is longer because
/// summaries come last.
const MAX_HEAD: usize = 1000;
const MAX_TAIL: usize = 4000;

const FAILS: &str = r"(?m)\b[1-9]\d* (?:tests? |specs? |suites? )?(?:failed|failing|failures?|errored|broken)\b|\b[1-9]\d* errors?\b|(?:failures|errors)=[1-9]|^(?:E  |FAIL(?:ED)?\b|--- FAIL)|test result: FAILED|\bBUILD (?:FAILED|FAILURE)|^error(?:\[E\d+\])?:|\berror TS\d+|npm ERR!|could not compile|^Traceback \(most recent call last\)|panicked at|✗|✕|\bTests: +[1-9]\d* failed";
const PASSES: &str = r"(?m)\b[1-9]\d* (?:tests? |specs? )?(?:passed|passing|ok|succeeded)\b|test result: ok\. [1-9]|^ok\s+\S+|^PASS\b|^OK(?: \([1-9]\d* tests?|$)|\bBUILD SUCCESS|\b[1-9]\d* (?:examples|runs|tests), .*\b0 failures|\bAll checks passed|Success: no issues found|\b0 errors\b|Found 0 errors|^\s*Finished .*(?:dev|release|test|profile)|✓ built in|Compiled successfully|All tests passed|\b100% tests passed|\bpassed in \d|All files pass|All matched files use";
const NOTHING: &str = r"(?mi)\bno tests? (?:ran|found|to run|files? found|were executed)|collected 0 items|\bran 0 tests|^0 tests|\bno test files\b|\b0 passed\b|\brunning 0 tests|missing script|unrecognized arguments|^usage:|no such option";

static WORDS: LazyLock<RegexSet> = LazyLock::new(|| english::regex_set([FAILS, PASSES, NOTHING]));

/// Determines the result of a check from its exit code and output.
pub(super) fn check_result(exit: CheckExit, words: &str) -> CheckVerdict {
    let looked_at: String = if words.len() <= MAX_HEAD + MAX_TAIL {
        words.to_owned()
    } else {
        let head = &words[..words.floor_char_boundary(MAX_HEAD)];
        format!("{head}\n{}", &words[words.ceil_char_boundary(words.len() - MAX_TAIL)..])
    };
    let found = WORDS.matches(&looked_at);
    let (fails, passes, nothing) = (found.matched(0), found.matched(1), found.matched(2));
    match exit {
        _ if fails && exit != CheckExit::NonZero && nothing && !passes => CheckVerdict::DidNotRun,
        CheckExit::Zero | CheckExit::Unknown if fails => CheckVerdict::Failed,
        CheckExit::Zero if nothing && !passes => CheckVerdict::DidNotRun,
        CheckExit::Zero => CheckVerdict::Passed,
        CheckExit::Unknown if passes => CheckVerdict::Passed,
        CheckExit::Unknown => CheckVerdict::DidNotRun,
        CheckExit::NonZero if nothing && !fails => CheckVerdict::DidNotRun,
        CheckExit::NonZero if !fails && did_not_run(words) => CheckVerdict::DidNotRun,
        CheckExit::NonZero => CheckVerdict::Failed,
    }
}

/// Returns true if the output shows that the check itself could not run, which says nothing about
/// the work.
fn did_not_run(words: &str) -> bool {
    matches!(
        ErrorClass::classify(words, None),
        ErrorClass::ToolNotFound
            | ErrorClass::FileNotFound
            | ErrorClass::PermissionDenied
            | ErrorClass::Timeout
            | ErrorClass::NetworkError
    ) || words.contains("command not found")
        || words.contains("No module named")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_runners() {
        use CheckVerdict::{DidNotRun, Failed, Passed};
        for (words, alone, at_zero) in [
            ("===== 5 passed, 1 warning in 0.2s =====", Passed, Passed),
            ("1 failed, 4 passed in 0.2s", Failed, Failed),
            ("12 passed, 1 xfailed in 2s", Passed, Passed),
            ("collected 0 items\n== no tests ran in 0.01s ==", DidNotRun, DidNotRun),
            ("test result: ok. 12 passed; 0 failed; 0 ignored", Passed, Passed),
            ("test result: FAILED. 3 passed; 1 failed", Failed, Failed),
            ("running 0 tests\n\ntest result: ok. 0 passed; 0 failed", DidNotRun, DidNotRun),
            ("ok  \tgithub.com/a/b\t0.3s", Passed, Passed),
            ("--- FAIL: TestX (0.00s)\nFAIL\tgithub.com/a/b", Failed, Failed),
            ("Ran 3 tests in 0.1s\n\nOK", Passed, Passed),
            ("Ran 3 tests in 0.1s\n\nFAILED (failures=1)", Failed, Failed),
            ("Tests:       1 failed, 9 passed, 10 total", Failed, Failed),
            ("Test Suites: 2 passed, 2 total", Passed, Passed),
            ("src/a.ts(3,1): error TS2304: Cannot find name 'x'.", Failed, Failed),
            ("error[E0308]: mismatched types", Failed, Failed),
            ("20 examples, 0 failures", Passed, Passed),
            ("All checks passed!", Passed, Passed),
            ("  42 passing (1s)\n  2 failing", Failed, Failed),
            ("", DidNotRun, Passed),
            ("hello", DidNotRun, Passed),
        ] {
            assert_eq!(check_result(CheckExit::Unknown, words), alone, "{words}");
            assert_eq!(check_result(CheckExit::Zero, words), at_zero, "{words}");
        }
    }

    #[test]
    fn a_check_that_could_not_run_says_nothing() {
        for (words, expected) in [
            ("bash: pytest: command not found", CheckVerdict::DidNotRun),
            ("/usr/bin/python: No module named pytest", CheckVerdict::DidNotRun),
            ("Command timed out after 2m", CheckVerdict::DidNotRun),
            ("npm error Missing script: \"test\"", CheckVerdict::DidNotRun),
            ("2 failed, 1 passed", CheckVerdict::Failed),
            ("assertion `left == right` failed", CheckVerdict::Failed),
            ("", CheckVerdict::Failed),
        ] {
            assert_eq!(check_result(CheckExit::NonZero, words), expected, "{words}");
        }
    }
}
