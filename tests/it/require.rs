//! Parts of the machine that some tests need. Without one its tests skip and say so; where
//! `SELFTEST_REQUIRE` names the part (comma-separated), they fail. Finds no part itself.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::Context as _;

const VARIABLE: &str = "SELFTEST_REQUIRE";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// chromium and chromedriver in `PATH`.
    Chromium,
    /// The server of `SELFTEST_TEST_POSTGRES`.
    Postgres,
    /// Recorded sessions that are no part of the project: `SELFTEST_TEST_DATA`.
    SharedData,
    /// The Python programs of `SELFTEST_TEST_VENV`: schemathesis, mcp, maturin, junitparser, lxml,
    /// check-jsonschema, hadolint, openapi-spec-validator and openapi-python-client.
    Venv,
    /// Harbor, whose model defines ATIF, in the Python environment `SELFTEST_TEST_HARBOR`.
    Harbor,
    /// node and npm in `PATH`.
    Npm,
    /// The npm package pm-orchestrator-runner in `SELFTEST_TEST_NODE`.
    PmRunner,
    /// The npm packages @microsoft/jest-sarif, for the schema of SARIF, @ruby/prism, Ruby's parser,
    /// and axe-core, which looks at pages, in `SELFTEST_TEST_NODE`.
    NodeLinters,
    /// The npm package npm-groovy-lint in `SELFTEST_TEST_NODE`, and java.
    GroovyLint,
    /// The npm package @qwen-code/qwen-code in `SELFTEST_TEST_NODE`.
    Qwen,
    /// A build with the embedded engine. Where there is one, its tests always need the model.
    EmbeddedModel,
}

impl Part {
    const ALL: [Self; 11] = [
        Self::Chromium,
        Self::Postgres,
        Self::SharedData,
        Self::Venv,
        Self::Harbor,
        Self::Npm,
        Self::PmRunner,
        Self::NodeLinters,
        Self::GroovyLint,
        Self::Qwen,
        Self::EmbeddedModel,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Postgres => "postgres",
            Self::SharedData => "shared_data",
            Self::Venv => "venv",
            Self::Harbor => "harbor",
            Self::Npm => "npm",
            Self::PmRunner => "pm_runner",
            Self::NodeLinters => "node_linters",
            Self::GroovyLint => "groovy_lint",
            Self::Qwen => "qwen",
            Self::EmbeddedModel => "embedded_model",
        }
    }

    /// Whether tests of this build look for it.
    fn is_in_this_build(self) -> bool {
        match self {
            Self::Postgres => cfg!(feature = "postgres"),
            Self::EmbeddedModel => cfg!(feature = "embedded"),
            Self::Chromium
            | Self::SharedData
            | Self::Venv
            | Self::Harbor
            | Self::Npm
            | Self::PmRunner
            | Self::NodeLinters
            | Self::GroovyLint
            | Self::Qwen => true,
        }
    }
}

/// Returns the parts of a list.
fn parse(list: &str) -> anyhow::Result<BTreeSet<Part>> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let part = |name: &str| {
        let known = || Part::ALL.map(Part::name).join(", ");
        let part = Part::ALL.into_iter().find(|part| part.name() == name);
        part.with_context(|| format!("{VARIABLE} names {name:?}, expected some of: {}", known()))
    };
    names.map(part).collect()
}

fn required() -> &'static BTreeSet<Part> {
    static REQUIRED: OnceLock<BTreeSet<Part>> = OnceLock::new();
    REQUIRED.get_or_init(|| {
        let list = std::env::var(VARIABLE).unwrap_or_default();
        parse(&list).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The part as it was found. Where it is missing: `None`, and the test is to skip.
///
/// # Panics
/// Where the missing part is required.
#[track_caller]
pub(crate) fn part<T>(part: Part, found: Result<T, impl Display>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(why) if required().contains(&part) => {
            panic!("{VARIABLE} names {}, which is missing: {why}", part.name())
        }
        Err(why) => {
            skip(format!("tests that need {}: {why}", part.name()));
            None
        }
    }
}

/// The Python that has Harbor.
#[track_caller]
pub(crate) fn harbor() -> Option<PathBuf> {
    let find = || {
        let python = PathBuf::from(std::env::var_os("SELFTEST_TEST_HARBOR")?).join("bin/python");
        python.is_file().then_some(python)
    };
    let why = "no $SELFTEST_TEST_HARBOR/bin/python; scripts/test installs it with Python 3.12";
    part(Part::Harbor, find().ok_or(why))
}

/// A file of the npm packages that tests look into.
#[track_caller]
pub(crate) fn node_module(path: &str) -> Option<PathBuf> {
    let find = || {
        let modules = PathBuf::from(std::env::var_os("SELFTEST_TEST_NODE")?).join("node_modules");
        let file = modules.join(path);
        file.is_file().then_some(file)
    };
    let why = format!("no $SELFTEST_TEST_NODE/node_modules/{path}; scripts/test installs it");
    part(Part::NodeLinters, find().ok_or(why))
}

/// Says once that tests are skipped, and why.
pub(crate) fn skip(why: impl Into<String>) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let why = why.into();
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&why) {
        // Not by a macro, whose output is hidden as long as tests pass.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
        said.insert(why);
    }
}

#[test]
fn what_is_required_can_be_there() {
    let parts = required().iter();
    let missing: Vec<_> = parts.filter(|part| !part.is_in_this_build()).collect();
    assert!(missing.is_empty(), "{VARIABLE} names what this build is without: {missing:?}");
}

#[test]
fn a_name_that_is_unknown_is_an_error() {
    let parts = BTreeSet::from([Part::Venv, Part::SharedData]);
    assert_eq!(parse("venv, shared_data,").unwrap(), parts);
    assert_eq!(parse("").unwrap(), BTreeSet::new());
    let error = parse("chromium,chrome").unwrap_err().to_string();
    assert!(error.contains("\"chrome\", expected some of: chromium, postgres,"), "{error}");
}
