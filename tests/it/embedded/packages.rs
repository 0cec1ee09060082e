//! The wheel and the npm package: made of the tests' own binary, installed into an empty environment
//! without a registry, and used there for a first run in a fresh project.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{turn, with_cache};
use crate::model_server::{ModelServer, Role};
use crate::require::{self, Part};
use crate::workspace::{Workspace, files};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program that tests need, in the folder that a variable names or on `PATH`.
fn program(part: Part, name: &str) -> Option<PathBuf> {
    let own = std::env::var_os("SELFTEST_TEST_VENV").map(|venv| PathBuf::from(venv).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(std::env::split_paths(&path));
    let mut found = folders.map(|folder| folder.join(name));
    let why = format!("{name} is not installed; scripts/test installs it");
    require::part(part, found.find(|file| file.is_file()).ok_or(why))
}

#[track_caller]
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}\n{stderr}", output.status);
    stdout.into_owned()
}

/// The tests' own binary, without what only debuggers read: a third of it is left to be packed.
fn binary(folder: &Path) -> PathBuf {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_selftest"));
    let small = folder.join("selftest");
    let stripped = Command::new("strip").arg("-o").arg(&small).arg(&own).status();
    if stripped.is_ok_and(|status| status.success()) { small } else { own }
}

/// A fresh project in which only this program runs. Neither an agent nor a Python is on its `PATH`,
/// only what `links` names.
fn fresh(program: &Path, links: &[&str]) -> Workspace {
    let workspace = with_cache(Workspace::new()).file("README.md", "# Ferry\n\nIt leaves at 7.\n");
    let bin = workspace.folder().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for name in links {
        let found = std::env::split_paths(&path).map(|folder| folder.join(name));
        let found = found.into_iter().find(|file| file.is_file()).unwrap();
        std::os::unix::fs::symlink(found, bin.join(name)).unwrap();
    }
    workspace.env("PATH", bin).program(program)
}

/// The first minutes of somebody who has just installed it.
fn first_run(workspace: &Workspace) {
    let version = workspace.clone().args(["--version"]).run().exit(0).stdout;
    assert_eq!(version, format!("selftest {}\n", env!("CARGO_PKG_VERSION")));
    let run = workspace.clone().args(["init", "--yes"]).run().exit(0);
    let _ = run.stdout_contains("next: `selftest --suite config/suites/first.yaml`");

    let run = workspace.clone().args(["--scenarios=2", "--exit-zero", "--seed=1"]).run().exit(0);
    assert_eq!(run.report().counts()[0], 2);
    assert!(run.report().to_string().contains("embedded/smollm2-135m"), "{}", run.report());
    let first = run.stdout.lines().next().unwrap();
    assert!(first.contains("this run tests the example agent"), "{}", run.stdout);
    for note in ["> **Note:** this run tests the example agent", "so that rules alone decide"] {
        assert!(run.markdown().contains(note), "no `{note}` in {}", run.markdown());
    }

    // With a judge that can judge there is a verdict on each.
    let server = ModelServer::start();
    let judged = workspace.clone().server(&server).args(["--scenarios=clear_summary"]).run();
    assert!(!server.calls(Role::Judge).is_empty(), "{}", judged.stdout);
    assert_eq!(judged.exit(0).stdout.matches("PASS").count(), 1);
}

#[test]
fn the_wheel_in_an_empty_virtual_environment() {
    let Some(maturin) = program(Part::Venv, "maturin") else { return };
    let Some(python) = program(Part::Venv, "python3") else { return };
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::iter::once(maturin.parent().unwrap().to_owned()).chain(std::env::split_paths(&path));
    let mut make = Command::new(root().join("packaging/make-wheel"));
    make.arg(binary(folder.path())).arg(folder.path().join("wheels"));
    // What the machine that made it has is enough here.
    make.args(["--compatibility", "linux"]).env("PATH", std::env::join_paths(path).unwrap());
    done(&mut make);
    let [wheel] = &files(&folder.path().join("wheels"))[..] else { panic!("not one wheel") };
    let name = wheel.file_name().unwrap().to_str().unwrap();
    let start = format!("agent_selftest-{}-py3-none-", env!("CARGO_PKG_VERSION"));
    assert!(name.starts_with(&start), "{name}");

    let venv = folder.path().join("venv");
    done(Command::new(python).args(["-m", "venv"]).arg(&venv));
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"];
    done(Command::new(venv.join("bin/python3")).args(pip).arg(wheel));
    // Both names, and the bill of materials beside them.
    let version = done(Command::new(venv.join("bin/agent-selftest")).arg("--version"));
    assert_eq!(version, format!("selftest {}\n", env!("CARGO_PKG_VERSION")));
    let installed = files(&venv.join("lib"));
    assert!(installed.iter().any(|file| file.ends_with("sboms/selftest.cyclonedx.json")));
    python_grades(&venv.join("bin/python3"), folder.path());
    first_run(&fresh(&venv.join("bin/selftest"), &[]));
}

/// Uses the wheel's Python module as `docs/spec/session-grades.md#library` states it.
fn python_grades(python: &Path, folder: &Path) {
    let session = r#"{"session_start": "2026-11-20T10:00:00Z", "session_id": "s1", "messages": [
        {"role": "user", "content": "fix the login"},
        {"role": "assistant", "content": "Done: the login works again."}]}"#;
    fs::write(folder.join("s1.json"), session).unwrap();
    let script = r#"
import sys
from agent_selftest import SelfGrader, SelftestError

folder = sys.argv[1]
grader = SelfGrader([f"{folder}/s1.json"], database=f"{folder}/grades.db", project=folder)
grades = grader.grade_latest_sessions(5)
assert [grade["session_id"] for grade in grades] == ["s1"], grades
assert grades[0]["task_completed"] is True, grades
assert grader.grade_latest_sessions(5) == []
types = grader.identify_patterns(days=36500)["task_types"]
assert [(one["task_type"], one["sessions"]) for one in types] == [("debugging", 1)], types
assert grader.get_task_score("debugging", days=36500) == types[0]["score"] > 0
assert grader.get_task_score("research", days=36500) is None
assert grader.generate_weekly_report("2026-W47")["summary"]["sessions"] == 1
assert grader.generate_weekly_report("2020-W01") is None
assert grader.get_grades_summary(days=36500).startswith("1 session"), grader.get_grades_summary(36500)
for method in [SelfGrader, *(value for name, value in vars(SelfGrader).items() if name[0] != "_")]:
    assert method.__doc__, method
try:
    SelfGrader(program=f"{folder}/grades.db").get_grades_summary()
    raise AssertionError("a database is no program")
except OSError:
    pass
try:
    grader.generate_weekly_report("no week")
    raise AssertionError("no week is reported")
except SelftestError as error:
    assert error.exit_code == 2, error
"#;
    let mut run = Command::new(python);
    run.args(["-c", script]).arg(folder).env("SELFTEST_NOW", "2026-11-22T23:50:00Z");
    done(run.env_remove("DATABASE_URL").env_remove("SELFTEST_CONFIG"));
    let installed = files(&python.parent().unwrap().with_file_name("lib"));
    assert!(installed.iter().any(|file| file.ends_with("agent_selftest/py.typed")));
}

#[test]
fn the_npm_package_in_an_empty_folder() {
    let Some(npm) = program(Part::Npm, "npm") else { return };
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let (packed, empty) = (folder.path().join("packed"), folder.path().join("empty"));
    fs::create_dir_all(&empty).unwrap();
    let platform = match std::env::consts::ARCH {
        "x86_64" => "linux-x64",
        _ => "linux-arm64",
    };
    let built = format!("{platform}={}", binary(folder.path()).display());
    let build = root().join("packaging/npm/build.mjs");
    let said = done(Command::new("node").arg(build).arg(&packed).arg(built));
    let packages: Vec<&str> = said.lines().collect();
    assert_eq!(packages.len(), 2, "{said}");

    let cache = folder.path().join("cache");
    let mut install = Command::new(npm);
    install.args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"]);
    install.arg("--cache").arg(cache).args(&packages).current_dir(&empty);
    done(&mut install);
    let program = empty.join("node_modules/.bin/selftest");
    let workspace = fresh(&program, &["node", "python3"]);
    first_run(&workspace);
    // The exit code and the message are the program's own.
    let _ = workspace.args(["--nonsense"]).run().exit(2).stderr_contains("--nonsense");
}
