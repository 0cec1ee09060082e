//! Finds which tests a command selects: the whole suite, or some files, names, packages or groups.
//!
//! What is not known to leave the suite whole counts as a selection, since a part that passed says
//! less.

use std::borrow::Cow;

use super::{base_name, program_name};

/// Arguments of one kind of runner.
struct RunnerArguments {
    programs: &'static [&'static str],
    /// Words after the program that belong to it: `test`, `run`.
    verbs: &'static [&'static str],
    /// Flags that select tests.
    selecting: &'static [&'static str],
    /// Flags whose value is the next word and selects nothing.
    with_values: &'static [&'static str],
}

const RUNNERS: [RunnerArguments; 11] = [
    RunnerArguments {
        programs: &["pytest", "py.test"],
        verbs: &[],
        selecting: &[
            "-k",
            "-m",
            "--lf",
            "--last-failed",
            "--ff",
            "--nf",
            "--sw",
            "--stepwise",
            "--deselect",
            "--ignore",
            "--ignore-glob",
            "--testmon",
            "--picked",
            "--pyargs",
        ],
        with_values: &[
            "-n",
            "-p",
            "-o",
            "-c",
            "-W",
            "-r",
            "--rootdir",
            "--maxfail",
            "--timeout",
            "--tb",
            "--durations",
            "--cov",
            "--color",
            "--junitxml",
            "--confcutdir",
            "--override-ini",
            "--dist",
            "--log-level",
            "--log-cli-level",
            "--import-mode",
        ],
    },
    RunnerArguments {
        programs: &["unittest", "nose2", "nose", "nosetests"],
        verbs: &["discover"],
        selecting: &["-k", "--attr", "-a"],
        with_values: &["-t", "--top-level-directory", "-s", "--start-directory"],
    },
    RunnerArguments {
        programs: &["manage.py", "setup.py", "runtests.py"],
        verbs: &["test"],
        selecting: &["-k", "--tag", "--exclude-tag", "--start-at", "--start-after", "-s"],
        with_values: &["-v", "--verbosity", "--settings", "--parallel", "-p", "--pythonpath"],
    },
    RunnerArguments {
        programs: &["cargo"],
        verbs: &["test", "t", "nextest", "run"],
        selecting: &[
            "-p",
            "--package",
            "--lib",
            "--bin",
            "--bins",
            "--test",
            "--tests",
            "--doc",
            "--example",
            "--examples",
            "--bench",
            "--exclude",
            "-E",
            "--filter-expr",
            "--filterset",
            "--skip",
            "--ignored",
            "--exact",
            "--run-ignored",
            "--partition",
        ],
        with_values: &[
            "--features",
            "-F",
            "--profile",
            "--target",
            "--target-dir",
            "--manifest-path",
            "-j",
            "--jobs",
            "--color",
            "--test-threads",
            "--retries",
            "--message-format",
            "--config",
            "-Z",
            "--status-level",
            "--final-status-level",
            "--failure-output",
        ],
    },
    RunnerArguments {
        programs: &["jest", "vitest", "mocha", "ava", "jasmine", "playwright", "cypress", "karma"],
        verbs: &["run", "test", "start"],
        selecting: &[
            "-t",
            "--testNamePattern",
            "--testPathPattern",
            "--testPathPatterns",
            "-g",
            "--grep",
            "-f",
            "--fgrep",
            "-m",
            "--match",
            "-o",
            "--onlyChanged",
            "--changedSince",
            "--changed",
            "--findRelatedTests",
            "--related",
            "--onlyFailures",
            "--selectProjects",
            "--project",
            "--shard",
            "--spec",
            "--dir",
            "--last-failed",
            "--filter",
            "--testIgnorePattern",
        ],
        with_values: &[
            "--config",
            "-c",
            "--reporter",
            "-r",
            "--require",
            "--timeout",
            "--maxWorkers",
            "-w",
            "--workers",
            "--root",
            "--environment",
            "--pool",
            "--retries",
        ],
    },
    RunnerArguments {
        programs: &["mvn", "mvnw", "gradle", "gradlew", "sbt", "bazel", "lein"],
        verbs: &[
            "clean",
            "test",
            "verify",
            "check",
            "install",
            "package",
            "build",
            "cleanTest",
            "compile",
        ],
        selecting: &[
            "--tests",
            "-pl",
            "--projects",
            "-rf",
            "-am",
            "--test_filter",
            "-P",
            "--include-build",
        ],
        with_values: &[
            "-f",
            "--file",
            "-s",
            "--settings",
            "-T",
            "--console",
            "--max-workers",
            "-I",
        ],
    },
    RunnerArguments {
        programs: &["dotnet"],
        verbs: &["test"],
        selecting: &["--filter", "--treenode-filter", "--filter-class", "--filter-method"],
        with_values: &[
            "-c",
            "--configuration",
            "-f",
            "--framework",
            "-v",
            "--verbosity",
            "-l",
            "--logger",
            "-r",
            "--results-directory",
            "-s",
            "--settings",
            "--collect",
        ],
    },
    RunnerArguments {
        programs: &["rspec", "rake", "rails", "ruby", "cucumber", "mix"],
        verbs: &["test", "spec", "exec"],
        selecting: &[
            "-e",
            "--example",
            "-t",
            "--tag",
            "--only-failures",
            "--next-failure",
            "-n",
            "--name",
            "--only",
            "--exclude",
            "--stale",
            "--failed",
            "-E",
            "--pattern",
            "-P",
        ],
        with_values: &["-f", "--format", "-r", "--require", "--seed", "--order", "-o", "-I"],
    },
    RunnerArguments {
        programs: &["phpunit", "pest", "artisan", "composer"],
        verbs: &["test"],
        selecting: &[
            "--filter",
            "--group",
            "--exclude-group",
            "--testsuite",
            "--covers",
            "--dirty",
        ],
        with_values: &["-c", "--configuration", "--bootstrap", "--log-junit", "--colors"],
    },
    RunnerArguments {
        programs: &["ctest", "meson", "ninja", "bats", "prove", "swift", "flutter", "dart", "zig"],
        verbs: &["test", "build", "check"],
        selecting: &[
            "-R",
            "-E",
            "-L",
            "-LE",
            "-I",
            "--tests-regex",
            "--exclude-regex",
            "--label-regex",
            "--rerun-failed",
            "--filter",
            "-f",
            "--filter-tags",
            "--suite",
            "--no-suite",
            "--plain-name",
            "--name",
            "--skip",
            "-n",
            "--state",
        ],
        with_values: &[
            "--test-dir",
            "-C",
            "-j",
            "--parallel",
            "--timeout",
            "-S",
            "--build-config",
            "-p",
            "--formatter",
            "--repeat",
            "--output-junit",
        ],
    },
    RunnerArguments {
        programs: &["tox", "nox", "make", "gmake", "just", "task"],
        verbs: &["test", "tests", "check", "verify", "test-all", "run"],
        selecting: &["-m", "-k", "--", "--posargs"],
        with_values: &["-C", "-f", "-j", "-c", "--directory", "--file", "--conf"],
    },
];

/// Names by which a suite is called as a whole.
const WHOLE: [&str; 15] = [
    ".",
    "./",
    "...",
    "./...",
    "//...",
    "all",
    "tests",
    "test",
    "spec",
    "specs",
    "__tests__",
    "t",
    "auto",
    "test/*.bats",
    "tests/*.bats",
];

/// Returns true if the arguments of a check select a part of the tests.
pub(super) fn selects_part(words: &[Cow<'_, str>]) -> bool {
    let program = program_name(words);
    let rest = words.get(1..).unwrap_or_default();
    match program {
        "go" => {
            // Without a pattern `go test` runs one package, that of the current folder.
            !rest.iter().any(|word| matches!(&**word, "./..." | "..." | "all"))
                || rest.iter().any(|word| {
                    let flag = word.trim_start_matches('-').split('=').next().unwrap_or_default();
                    word.starts_with('-')
                        && matches!(flag, "run" | "test.run" | "short" | "skip" | "list")
                })
        }
        name if name.starts_with("python") || matches!(name, "py" | "pypy3") => {
            // `python -m pytest …`, `python manage.py test …`
            match rest.iter().position(|word| word == "-m") {
                Some(at) => selects_part(rest.get(at + 1..).unwrap_or_default()),
                // The script after Python's own flags is looked up like a program.
                None => match rest.iter().position(|word| !word.starts_with('-')) {
                    Some(at) => selects_part(&rest[at..]),
                    None => false,
                },
            }
        }
        "npm" | "pnpm" | "yarn" | "bun" | "deno" => package_script_selects_part(rest),
        "node" => rest.iter().any(|word| {
            !word.starts_with('-')
                || word.starts_with("--test-name")
                || word.starts_with("--test-only")
        }),
        // The script is the first argument; what follows goes to it.
        "bash" | "sh" | "zsh" => rest.len() > 1,
        // The script is the first argument and is looked up like a program.
        "php" => selects_part(rest),
        name => match RUNNERS.iter().find(|runner| runner.programs.contains(&name)) {
            Some(runner) => runner.selects_part(rest),
            // A script or a runner without a row: any argument may select.
            None => rest.iter().any(|word| !is_number(word)),
        },
    }
}

impl RunnerArguments {
    fn selects_part(&self, words: &[Cow<'_, str>]) -> bool {
        let mut rest = words.iter().map(|word| &**word);
        while let Some(word) = rest.next() {
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) if word.starts_with('-') => (flag, Some(value)),
                _ => (word, None),
            };
            if self.selecting.contains(&flag) {
                return true;
            }
            if self.with_values.contains(&flag) {
                // `--config=x` has its value in the same word, `--config x` in the next.
                if value.is_none() {
                    rest.next();
                }
                continue;
            }
            // `-Dtest=Foo` of Maven.
            if flag.starts_with("-Dtest")
                || flag.starts_with("-Dit.test")
                || flag == "-DwildcardSuites"
            {
                return true;
            }
            if selects_by_variable(word) {
                return true;
            }
            let is_plain =
                // `+nightly` of cargo chooses a toolchain, and a bare number is the value of a flag
                // such as `-j`.
                !word.starts_with(['-', '+']) && !is_number(word) && !super::is_assignment(word);
            if is_plain && !self.verbs.contains(&word) && !is_whole(word) {
                return true;
            }
        }
        false
    }
}

/// Returns true if a script of package.json is one of several suites, or gets arguments.
fn package_script_selects_part(words: &[Cow<'_, str>]) -> bool {
    const FILTERS: [&str; 7] =
        ["-w", "--workspace", "--filter", "-F", "--scope", "-t", "--testNamePattern"];
    let jest = RUNNERS.iter().find(|runner| runner.programs.contains(&"jest"));
    let mut words = words.iter().map(|word| &**word);
    let mut is_named = false;
    while let Some(word) = words.next() {
        let flag = word.split('=').next().unwrap_or_default();
        // What follows the name goes to the runner, which is not known.
        let is_for_runner = is_named && jest.is_some_and(|jest| jest.selecting.contains(&flag));
        if FILTERS.contains(&flag) || word == "workspace" || is_for_runner {
            return true;
        }
        match word {
            "run" | "run-script" | "task" | "exec" | "--" if !is_named => {}
            // The folder of a package has its whole suite.
            "--prefix" | "--cwd" | "-C" | "--dir" => {
                words.next();
            }
            "jest" | "vitest" | "mocha" | "ava" if !is_named => {
                let rest: Vec<Cow<'_, str>> =
                    std::iter::once(word).chain(words).map(Cow::Borrowed).collect();
                return selects_part(&rest);
            }
            _ if word.starts_with('-') || is_number(word) => {}
            // In `run test run` the second is Vitest's.
            "run" | "--run" => {}
            "test" | "t" | "tst" | "tests" | "test:all" | "test:ci" | "test:run" | "test-all"
                if !is_named =>
            {
                is_named = true;
            }
            _ => return true,
        }
    }
    false
}

/// Returns true for a variable that selects tests: `TEST=test/a.rb`.
pub(super) fn selects_by_variable(word: &str) -> bool {
    const NAMES: [&str; 16] = [
        "TEST",
        "TESTS",
        "TESTFILES",
        "TEST_FILE",
        "TEST_FILES",
        "TESTARGS",
        "TEST_ARGS",
        "TESTOPTS",
        "SPEC",
        "SPECS",
        "SPEC_OPTS",
        "ARGS",
        "FILE",
        "FILES",
        "FILTER",
        "PYTEST_ADDOPTS",
    ];
    word.split_once('=').is_some_and(|(name, _)| NAMES.contains(&name))
}

fn is_whole(word: &str) -> bool {
    let bare = word.trim_end_matches('/');
    let bare = bare.strip_prefix("./").filter(|rest| !rest.is_empty()).unwrap_or(bare);
    // A solution has all projects.
    WHOLE.contains(&bare)
        || WHOLE.contains(&word)
        || word.ends_with(".sln")
        || word.ends_with(".slnx")
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Returns the files that a check is limited to. A script that is run directly is its own target.
pub(super) fn check_targets(words: &[Cow<'_, str>]) -> Vec<String> {
    const MAX: usize = 20;
    let is_file = |word: &&Cow<'_, str>| {
        // pytest selects single tests with `file.py::test`.
        let path = word.split("::").next().unwrap_or(word);
        !word.starts_with('-')
            && path.rsplit_once('.').is_some_and(|(stem, extension)| {
                !stem.is_empty() && (1..=4).contains(&extension.len()) && !extension.contains('/')
            })
    };
    let path = |word: &Cow<'_, str>| word.split("::").next().unwrap_or(word).to_owned();
    // A script in the project may be a test that the agent wrote; a wrapper of a runner is not.
    let own = words.first().filter(|word| word.contains('/') || word.ends_with(super::SCRIPT));
    let own = own.filter(|word| !KNOWN_WRAPPERS.contains(&base_name(word)));
    let files = words.iter().skip(1).filter(is_file);
    own.into_iter().chain(files).map(path).take(MAX).collect()
}

/// Programs that projects keep in their own folder and that are not the tests themselves.
const KNOWN_WRAPPERS: [&str; 12] = [
    "gradlew", "mvnw", "pytest", "python", "python3", "jest", "vitest", "mocha", "rspec",
    "phpunit", "pest", "rails",
];
