//! Reads the counts that test runners print, one file per family of runners, and recognises output
//! of tests that could not run.
//!
//! Only summary lines are read. Names of tests, log lines and prose may contain any word, so they
//! decide nothing. Words without a count are not a result.

mod dotnet;
mod go;
mod javascript;
mod jvm;
mod native;
mod others;
mod php;
mod python;
mod ruby;
mod rust;
mod tap;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::TestCounts;
use crate::english;
use crate::english::EnglishPatterns;
use crate::grade::ErrorClass;

/// A family of test runners.
struct RunnerFamily {
    /// Programs that start runners of this family, as they are called in commands.
    programs: &'static [&'static str],
    /// Returns the sum of the counts in the output, or `None` without a summary of this family.
    read: fn(&RunnerOutput<'_>) -> Option<TestCounts>,
}

/// All families, in the order in which they are tried if the command does not name one. Strict
/// summary lines come first.
const FAMILIES: [RunnerFamily; 11] = [
    python::FAMILY,
    rust::FAMILY,
    go::FAMILY,
    javascript::FAMILY,
    jvm::FAMILY,
    dotnet::FAMILY,
    php::FAMILY,
    ruby::FAMILY,
    native::FAMILY,
    tap::FAMILY,
    others::FAMILY,
];

/// Numbers of bytes examined at the start and end of an output. The tail is longer because
/// summaries come last.
const MAX_HEAD: usize = 8 * 1024;
const MAX_TAIL: usize = 64 * 1024;

/// Output of a runner, as lines without colours and without the prefixes of containers and CI.
pub(super) struct RunnerOutput<'a> {
    lines: Vec<Cow<'a, str>>,
}

impl<'a> RunnerOutput<'a> {
    /// Splits an output into lines.
    pub(super) fn new(output: &'a str) -> Self {
        let (head, tail) = if output.len() <= MAX_HEAD + MAX_TAIL {
            (output, "")
        } else {
            let head = &output[..output.floor_char_boundary(MAX_HEAD)];
            (head, &output[output.ceil_char_boundary(output.len() - MAX_TAIL)..])
        };
        Self { lines: head.lines().chain(tail.lines()).map(clean_line).collect() }
    }

    pub(super) fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.iter().map(|line| &**line)
    }

    /// Returns the captures of each line that matches.
    fn captures<'r>(&'r self, pattern: &'r Regex) -> impl Iterator<Item = Captures<'r>> {
        self.lines().filter_map(|line| pattern.captures(line))
    }

    fn has(&self, pattern: &Regex) -> bool {
        self.lines().any(|line| pattern.is_match(line))
    }

    /// Returns the counts. `program` is the one that the command names, which decides if several
    /// families match.
    pub(super) fn counts(&self, program: &str) -> Option<TestCounts> {
        let is_named = |family: &&RunnerFamily| family.programs.contains(&program);
        let named = FAMILIES.iter().filter(is_named);
        let others = FAMILIES.iter().filter(|family| !is_named(family));
        if let Some(counts) = named.into_iter().find_map(|family| (family.read)(self)) {
            return Some(counts);
        }
        // `make test` may run several; what failed in one goes before what passed in another.
        let mut found = others.filter_map(|family| (family.read)(self));
        let first = found.next()?;
        if first.failures() > 0 {
            return Some(first);
        }
        Some(found.find(|counts| counts.failures() > 0).unwrap_or(first))
    }

    /// Returns true if a summary line says that no test ran, in a form without numbers.
    pub(super) fn says_none_ran(&self) -> bool {
        // Gradle says of each test task that it did nothing, and of another one that it ran.
        self.has(&NONE_RAN) || (self.has(&GRADLE_IDLE) && !self.has(&GRADLE_RAN))
    }

    /// Returns the base names of test files that the runner names with a result.
    pub(super) fn test_files(&self) -> impl Iterator<Item = &str> {
        let names = self.lines().filter_map(|line| {
            let found = TEST_FILE.captures(line)?;
            (1..=3).find_map(|group| found.get(group)).map(|name| name.as_str())
        });
        names.map(|path| path.rsplit(['/', '\\']).next().unwrap_or(path))
    }
}

/// Lines that say that nothing ran.
static NONE_RAN: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"(?i)^\W*(?:=+ )?no tests? (?:ran|found|to run|files? found|were (?:executed|found|run)|executed|collected|is available|matches|specified)\b|^\W*(?:\[\w+\] )*there are no tests to run|^collected 0 items|^NO TESTS RAN|^1\.\.0\b|^Result: NOTESTS|^make(?:\[\d+\])?: (?:Nothing to be done for|'\S+' is up to date)|^No test suite found|^error: no test target",
    )
});

/// A test task of Gradle that had nothing to do. Tasks that compile tests have names such as
/// `compileTestJava`.
static GRADLE_IDLE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^> Task :(?:\S+:)?(?:test|test\w*UnitTest|\w+Tests?) (?:NO-SOURCE|UP-TO-DATE|FROM-CACHE)$",
    )
});
static GRADLE_RAN: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"^> Task :(?:\S+:)?(?:test|test\w*UnitTest|\w+Tests?)(?: FAILED)?$")
});

/// A line that names a test file and its result: pytest, Jest, Vitest.
static TEST_FILE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:(\S+\.py)(?:::\S+)? (?:[.sFExX]+(?:\s|$)|PASSED|FAILED|ERROR|SKIPPED|XFAIL)|(?:PASS|FAIL) +(\S+\.[jt]sx?)\b|\s*(?:✓|✗|×|❯) (\S+\.(?:test|spec)\.[cm]?[jt]sx?)\b)",
    )
});

/// Prefixes that containers, build logs and CI put before each line.
static PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:[A-Za-z][\w.-]*(?:[-_]\d+ +|  +)\| |#\d+ \d+\.\d+ |[^\t]{1,80}\t[^\t]{1,80}\t\d{4}-\d\d-\d\dT[0-9:.]+Z |\d{4}-\d\d-\d\dT[0-9:.]+Z |\[\d\d:\d\d:\d\d\] )",
    )
});

/// Removes terminal colours and known prefixes.
fn clean_line(line: &str) -> Cow<'_, str> {
    let mut line = strip_colours(line);
    let cut = PREFIX.find(&line).map(|found| found.end());
    if let Some(end) = cut {
        line = match line {
            Cow::Borrowed(text) => Cow::Borrowed(&text[end..]),
            Cow::Owned(text) => Cow::Owned(text[end..].to_owned()),
        };
    }
    line
}

/// Removes escape sequences such as `ESC [ 32 m`, and text before a carriage return, which a
/// terminal overwrites.
fn strip_colours(line: &str) -> Cow<'_, str> {
    let line = line.trim_end();
    let line = line.rsplit('\r').next().unwrap_or(line);
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut bare = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        bare.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        rest = match escape.strip_prefix('[') {
            Some(inside) => {
                let end = inside.find(|c: char| c.is_ascii_alphabetic());
                end.map_or("", |end| &inside[end + 1..])
            }
            None => escape,
        };
    }
    bare.push_str(rest);
    Cow::Owned(bare.trim_end().to_owned())
}

/// Largest count that is read; sums of such counts cannot overflow.
const MAX_COUNT: u64 = u32::MAX as u64;

/// Reads a captured number. A missing group is 0.
fn number(found: &Captures<'_>, group: usize) -> u64 {
    found.get(group).map_or(0, |text| parse(text.as_str()))
}

fn parse(digits: &str) -> u64 {
    digits.parse().unwrap_or(MAX_COUNT).min(MAX_COUNT)
}

/// Adds counts in the form *3 passed, 1 failed*, by the word after each number. Unknown words are
/// ignored.
fn count_words(list: &str) -> TestCounts {
    let mut counts = TestCounts::default();
    let mut words =
        list.split(|c: char| c.is_whitespace() || matches!(c, ',' | '|' | ';' | '(' | ')'));
    let mut last = None;
    let mut next = || words.find(|word| !word.is_empty());
    while let Some(word) = next() {
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            last = Some(parse(word));
            continue;
        }
        let Some(count) = last else { continue };
        let kind = match word.trim_end_matches([':', '.']) {
            // Playwright calls a test flaky that failed first and passed when retried.
            "passed" | "pass" | "xpassed" | "successes" | "succeeded" | "successful" | "flaky"
            | "passing" => &mut counts.passed,
            "failed" | "fail" | "failing" | "failures" | "failure" | "timed" => &mut counts.failed,
            "error" | "errors" | "errored" | "exceptions" | "interrupted" => &mut counts.errors,
            "skipped" | "xfailed" | "todo" | "pending" | "ignored" | "incomplete" | "risky"
            | "skips" | "disabled" => &mut counts.skipped,
            "deselected" | "excluded" => &mut counts.deselected,
            // The number belongs to the unknown word, and must not go to the next one.
            _ => {
                last = None;
                continue;
            }
        };
        *kind = kind.saturating_add(count);
        last = None;
    }
    counts
}

/// Reads counts in the form *Failures: 1* or *failures=1* and returns the number after a name.
fn named_count(list: &str, name: &str) -> u64 {
    let mut rest = list;
    while let Some(at) = rest.find(name) {
        let behind = &rest[at + name.len()..];
        let is_whole =
            rest[..at].chars().next_back().is_none_or(|c| !c.is_alphabetic() && c != ' ')
                || rest[..at].trim_end().ends_with([',', '(', '-', '.', '!']);
        let value = behind.trim_start().strip_prefix([':', '=']).map(str::trim_start);
        if let Some(value) = value.filter(|_| is_whole || at == 0) {
            let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
            if end > 0 {
                return parse(&value[..end]);
            }
        }
        rest = behind;
    }
    0
}

/// Adds up counts; `None` without any.
fn sum(counts: impl IntoIterator<Item = TestCounts>) -> Option<TestCounts> {
    counts.into_iter().fold(None, |sum: Option<TestCounts>, more| {
        let mut sum = sum.unwrap_or_default();
        sum += more;
        Some(sum)
    })
}

/// Messages by which shells, interpreters, build tools and containers say that something is
/// missing.
const MISSING: [&str; 8] = [
    // Shells and launchers.
    r"(?im)command not found|: not found\s*$|is not recognized as (?:an internal|the name)|executable (?:file )?not found|No such file or directory\s*$|cannot execute(?: binary file|: required file not found)|bad interpreter|Exec format error|spawn \S+ ENOENT",
    // Java and its builds.
    r"(?im)JAVA_HOME is (?:not set|set to an invalid)|no 'java' command|Unable to locate a Java Runtime|No compiler is provided in this environment|Could not find (?:tools\.jar|or load main class org\.(?:gradle|apache\.maven))|Unsupported class file major version|Could not (?:resolve all|find) (?:files|dependencies|artifacts?)|Non-resolvable parent POM|Could not create service of type|No matching toolchains found|SDK location not found",
    // Python.
    r"(?im)No module named |ModuleNotFoundError|ImportError while (?:loading conftest|importing test module)|^ERROR: (?:file or directory )?not found|unrecognized arguments|^INTERNALERROR>|error: no such option|ERROR: usage:|django\.core\.exceptions\.ImproperlyConfigured",
    // JavaScript.
    r"(?im)Cannot find (?:module|package)|Missing script|missing script|ERR_MODULE_NOT_FOUND|npm ERR! enoent|Cannot find native binding|browserType\.launch: Executable doesn't exist|You must use Node|The engine .node. is incompatible|Couldn't find a script named|Command .\S+. not found",
    // Ruby, PHP, .NET, Rust, Go, C.
    r"(?im)Could not find (?:gem|\S+ in (?:any of the sources|locally))|bundler: failed to load|Could not open input file|You must install or update \.NET|A compatible .NET SDK was not found|framework .Microsoft\.\w+.*was not found|error: no such (?:sub)?command|is not installed for the toolchain|rustup could not choose|linker .\S+. not found|no required module provides|go: (?:cannot find main module|go\.mod file not found|download|updates to go\.mod)|CMake Error: The source directory|No CMAKE_\w+_COMPILER could be found",
    // make and its like.
    r"(?im)No rule to make target|No targets specified and no makefile found|Justfile does not contain recipe|No justfile found|Task \S+ not found|BUILD FILE NOT FOUND|no such target",
    // Containers and services.
    r"(?im)Cannot connect to the Docker daemon|Error response from daemon|docker: |No such (?:container|service|image)|permission denied while trying to connect to the docker|Connection refused|could not connect to server|ECONNREFUSED|Could not resolve host|Temporary failure in name resolution",
    // The machine.
    r"(?im)No space left on device|Cannot allocate memory|Operation timed out|timed out after",
];

static PATTERNS: LazyLock<EnglishPatterns> = LazyLock::new(|| EnglishPatterns::new(MISSING));

/// Number of bytes examined at each end.
const MAX_LOOKED_AT: usize = 4000;

/// Returns true if the output says that the check could not run. Meaningful only for a run without
/// a count of passed or failed tests.
pub(super) fn could_not_run(output: &str) -> bool {
    let head = &output[..output.floor_char_boundary(MAX_LOOKED_AT)];
    let tail = &output[output.ceil_char_boundary(output.len().saturating_sub(MAX_LOOKED_AT))..];
    let by_class = || {
        matches!(
            ErrorClass::classify(output, None),
            ErrorClass::ToolNotFound
                | ErrorClass::FileNotFound
                | ErrorClass::PermissionDenied
                | ErrorClass::Timeout
                | ErrorClass::NetworkError
        )
    };
    PATTERNS.first(head).is_some() || PATTERNS.first(tail).is_some() || by_class()
}
