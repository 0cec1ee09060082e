//! Summaries of runners as they print them, and lines beside them that are no summary.

use super::*;

fn counts(program: &str, output: &str) -> String {
    RunnerOutput::new(output).counts(program).map_or("-".to_owned(), |counts| counts.to_string())
}

#[test]
fn each_runner_is_read_by_its_summary() {
    for (program, output, expected) in [
        ("pytest", "===== 5 passed, 1 warning in 0.2s =====", "5 of 5 passed"),
        (
            "behave",
            "7 scenarios passed, 1 failed, 2 skipped",
            "7 of 10 passed, 1 failed, 2 skipped",
        ),
        (
            "robot",
            "Suite A\n2 tests, 2 passed, 0 failed\n5 tests, 4 passed, 1 failed",
            "4 of 5 passed, 1 failed",
        ),
        (
            "forge",
            "Suite result: ok. 5 passed; 0 failed; 0 skipped; finished in 1ms\n\nRan 1 test suite in \
             2ms (1ms CPU time): 5 tests passed, 0 failed, 0 skipped (5 total tests)",
            "5 of 5 passed",
        ),
        ("terraform", "Failure! 4 passed, 1 failed.", "4 of 5 passed, 1 failed"),
        (
            "Rscript",
            "[ FAIL 1 | WARN 0 | SKIP 2 | PASS 15 ]",
            "15 of 18 passed, 1 failed, 2 skipped",
        ),
        ("bazel", "Executed 0 out of 3 tests: 3 tests pass.", "3 of 3 passed"),
        (
            "bazel",
            "Executed 2 out of 3 tests: 2 tests pass and 1 fails locally.",
            "2 of 3 passed, 1 failed",
        ),
        (
            "crystal",
            "5 examples, 1 failures, 0 errors, 1 pending",
            "3 of 5 passed, 1 failed, 1 skipped",
        ),
        ("zig", "Build Summary: 3/3 steps succeeded; 12/12 tests passed", "12 of 12 passed"),
        ("pytest", "12 passed, 1 xfailed in 75.30s (0:01:15)", "12 of 13 passed, 1 skipped"),
        ("pytest", "1 failed, 11 passed", "11 of 12 passed, 1 failed"),
        (
            "pytest",
            "collected 370 items / 369 deselected / 1 selected\n\ntests/test_d.py .\n\n====== 1 \
             passed, 369 deselected in 0.14s ======",
            "1 of 370 passed, 369 deselected",
        ),
        ("pytest", "=== 205 deselected in 0.50s ===", "0 of 205 passed, 205 deselected"),
        ("pytest", "=== 1 error in 0.5s ===", "0 of 1 passed, 1 errors"),
        ("python", "Ran 3 tests in 0.1s\n\nOK", "3 of 3 passed"),
        (
            "python",
            "Ran 3 tests in 0.1s\n\nFAILED (failures=1, errors=1)",
            "1 of 3 passed, 1 failed, 1 errors",
        ),
        ("python", "Ran 0 tests in 0.000s\n\nOK", "0 of 0 passed"),
        (
            "python",
            "Ran 4 tests in 0.1s\n\nFAILED (unexpected successes=1)",
            "3 of 4 passed, 1 failed",
        ),
        (
            "python",
            "tests finished: 10 passed, 2 skipped, in 1.20 seconds",
            "10 of 12 passed, 2 skipped",
        ),
        (
            "cargo",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out",
            "12 of 16 passed, 1 skipped, 3 deselected",
        ),
        (
            "cargo",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored",
            "0 of 0 passed",
        ),
        (
            "cargo",
            "     Summary [   0.3s] 12 tests run: 12 passed (1 slow, 1 flaky), 3 skipped",
            "12 of 15 passed, 3 skipped",
        ),
        (
            "cargo",
            "     Summary [   0.3s] 10/12 tests run: 8 passed, 1 failed, 1 timed out, 3 skipped",
            "8 of 13 passed, 2 failed, 3 skipped",
        ),
        (
            "go",
            "ok  \tgithub.com/a/b\t0.3s\n?   \tgithub.com/a/c\t[no test files]",
            "1 of 1 passed",
        ),
        ("go", "ok  \tgithub.com/a/b\t0.3s [no tests to run]", "0 of 0 passed"),
        ("go", "?   \tgithub.com/a/c\t[no test files]", "0 of 0 passed"),
        (
            "go",
            "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tgithub.com/a/b\t0.1s",
            "0 of 1 passed, 1 failed",
        ),
        (
            "go",
            "FAIL\tgithub.com/a/b [build failed]\nok  \tgithub.com/a/c\t(cached)",
            "1 of 2 passed, 1 errors",
        ),
        (
            "npm",
            "PASS src/failed-login.test.js\n  ✓ shows 2 failed attempts (3 ms)\n\nTest Suites: 1 passed, 1 total\nTests:       3 passed, 3 total",
            "3 of 3 passed",
        ),
        ("jest", "Test Suites: 1 failed, 1 total\nTests:       0 total", "0 of 1 passed, 1 errors"),
        ("jest", "Tests:       369 skipped, 1 passed, 370 total", "1 of 370 passed, 369 skipped"),
        (
            "vitest",
            " Test Files  1 passed (1)\n      Tests  1 failed | 3 passed | 2 skipped (6)",
            "3 of 6 passed, 1 failed, 2 skipped",
        ),
        (
            "npx",
            "  42 passing (1s)\n  1 pending\n  2 failing\n\n  1) a test",
            "42 of 45 passed, 2 failed, 1 skipped",
        ),
        ("node", "ℹ tests 4\nℹ pass 3\nℹ fail 1\nℹ skipped 0", "3 of 4 passed, 1 failed"),
        (
            "bun",
            " 3 pass\n 1 fail\n 5 expect() calls\nRan 4 tests across 1 file. [8.00ms]",
            "3 of 4 passed, 1 failed",
        ),
        ("deno", "ok | 3 passed | 0 failed (5ms)", "3 of 3 passed"),
        (
            "playwright",
            "  1 failed\n    a.spec.ts:3:1 › x\n  2 did not run\n  3 passed (1.2s)",
            "3 of 6 passed, 1 failed, 2 deselected",
        ),
        (
            "karma",
            "Chrome 1 (Linux): Executed 5 of 10 (1 FAILED) (0.1 secs / 0.05 secs)",
            "4 of 10 passed, 1 failed, 5 deselected",
        ),
        (
            "mvn",
            "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in a.B\n[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1",
            "4 of 5 passed, 1 skipped",
        ),
        ("gradlew", "5 tests completed, 1 failed, 2 skipped", "2 of 5 passed, 1 failed, 2 skipped"),
        ("gradlew", "ATest > a() PASSED\nATest > b() FAILED", "1 of 2 passed, 1 failed"),
        (
            "java",
            "[         3 tests successful      ]\n[         1 tests failed          ]",
            "3 of 4 passed, 1 failed",
        ),
        ("java", "OK (5 tests)", "5 of 5 passed"),
        ("sbt", "[info] Passed: Total 5, Failed 0, Errors 0, Passed 5", "5 of 5 passed"),
        (
            "dotnet",
            "Passed!  - Failed:     0, Passed:    12, Skipped:     1, Total:    13, Duration: 5 ms",
            "12 of 13 passed, 1 skipped",
        ),
        (
            "dotnet",
            "Test summary: total: 12, failed: 1, succeeded: 11, skipped: 0, duration: 1.0s",
            "11 of 12 passed, 1 failed",
        ),
        ("dotnet", "Total tests: 3\n     Passed: 2\n     Failed: 1", "2 of 3 passed, 1 failed"),
        ("rspec", "20 examples, 0 failures, 1 pending", "19 of 20 passed, 1 skipped"),
        (
            "rake",
            "5 runs, 10 assertions, 1 failures, 0 errors, 1 skips",
            "3 of 5 passed, 1 failed, 1 skipped",
        ),
        (
            "mix",
            "3 doctests, 5 tests, 1 failure, 2 excluded",
            "5 of 8 passed, 1 failed, 2 deselected",
        ),
        ("phpunit", "OK (5 tests, 9 assertions)", "5 of 5 passed"),
        (
            "phpunit",
            "Tests: 5, Assertions: 9, Failures: 1, Skipped: 2.",
            "2 of 5 passed, 1 failed, 2 skipped",
        ),
        ("pest", "  Tests:    1 failed, 3 passed (7 assertions)", "3 of 4 passed, 1 failed"),
        ("ctest", "92% tests passed, 1 tests failed out of 12", "11 of 12 passed, 1 failed"),
        (
            "x",
            "[  PASSED  ] 5 tests.\n[  FAILED  ] 1 test, listed below:",
            "5 of 6 passed, 1 failed",
        ),
        ("x", "All tests passed (10 assertions in 3 test cases)", "3 of 3 passed"),
        (
            "meson",
            "Ok:                 5   \nFail:               1   \nSkipped:            2",
            "5 of 8 passed, 1 failed, 2 skipped",
        ),
        (
            "swift",
            "\t Executed 5 tests, with 1 failure (0 unexpected) in 0.1 (0.2) seconds\n\t Executed 5 tests, with 1 failure (0 unexpected) in 0.1 (0.2) seconds",
            "4 of 5 passed, 1 failed",
        ),
        ("flutter", "00:05 +12 ~1 -1: Some tests failed.", "12 of 14 passed, 1 failed, 1 skipped"),
        ("bats", "1..3\nok 1 a\nnot ok 2 b\nok 3 c # skip", "1 of 3 passed, 1 failed, 1 skipped"),
        ("bats", "3 tests, 0 failures, 1 skipped", "2 of 3 passed, 1 skipped"),
        (
            "prove",
            "All tests successful.\nFiles=3, Tests=25,  1 wallclock secs\nResult: PASS",
            "25 of 25 passed",
        ),
        ("docker", "web-1  | ===== 5 passed in 0.2s =====", "5 of 5 passed"),
        ("gh", "test\tRun tests\t2026-11-20T09:00:25.0000000Z 5 passed in 0.2s", "5 of 5 passed"),
        (
            "pytest",
            "\u{1b}[32m\u{1b}[1m3 passed\u{1b}[0m\u{1b}[32m in 0.02s\u{1b}[0m",
            "3 of 3 passed",
        ),
    ] {
        assert_eq!(counts(program, output), expected, "{output}");
    }
}

#[test]
fn other_lines_are_no_summary() {
    for output in [
        "",
        "All tests passed!",
        "  ✓ shows 2 failed attempts (3 ms)",
        "test_2_failed_logins ... ok",
        "I ran it: 5 passed and 0 failed, as expected",
        "found 3 errors in the log",
        "Tests: see below",
        "OK",
        "BUILD SUCCESSFUL in 3s",
    ] {
        assert_eq!(counts("pytest", output), "-", "{output}");
    }
}

#[test]
fn files_that_the_runner_names_are_known() {
    let output = RunnerOutput::new(
        "tests/test_a.py ..                [100%]\ntests/test_b.py::test_x PASSED\nPASS src/c.test.js\n ✓ src/d.test.ts (3 tests)",
    );
    let found: Vec<&str> = output.test_files().collect();
    assert_eq!(found, ["test_a.py", "test_b.py", "c.test.js", "d.test.ts"]);
}

#[test]
fn huge_numbers_do_not_overflow() {
    let huge = "99999999999999999999999 passed in 1s";
    assert!(counts("pytest", huge).contains("passed"));
    let many = "18446744073709551615 passed, 18446744073709551615 failed in 1s";
    assert!(counts("pytest", many).contains("passed"));
}

#[test]
fn a_gradle_that_had_nothing_to_do_ran_nothing() {
    for (output, is_idle) in [
        ("> Task :test UP-TO-DATE\n\nBUILD SUCCESSFUL in 1s", true),
        ("> Task :app:testDebugUnitTest FROM-CACHE\n> Task :lib:test NO-SOURCE", true),
        ("> Task :compileTestJava NO-SOURCE\n> Task :test\n\nBUILD SUCCESSFUL in 3s", false),
        ("> Task :testClasses UP-TO-DATE\n\nBUILD SUCCESSFUL in 3s", false),
        ("> Task :a:test UP-TO-DATE\n> Task :b:test\n\nBUILD SUCCESSFUL in 3s", false),
    ] {
        assert_eq!(RunnerOutput::new(output).says_none_ran(), is_idle, "{output}");
    }
}
