//! Configurations and folders that cannot be used: one line that a reader can act on.

use std::time::Duration;

use crate::model_server::ModelServer;
use crate::run::Run;
use crate::workspace::{CLEAR, OPENAI, Workspace, config, scenarios};

/// Runs with this file as the configuration.
#[track_caller]
fn with_config(contents: impl AsRef<[u8]>) -> Run {
    let run = Workspace::new().config(contents).run().exit(2);
    assert!(run.elapsed < Duration::from_secs(10), "{:?}", run.elapsed);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    run.stderr_contains("config/selftest.yaml")
}

#[test]
fn without_a_configuration_the_defaults_run() {
    let server = ModelServer::start();
    let run = Workspace::new().server(&server).args(["--model", OPENAI, "--scenarios=2"]).run();
    assert_eq!(run.exit(0).report().counts(), [2, 2, 0, 0]);
}

#[test]
fn a_configuration_that_was_named_must_be_there() {
    let run = Workspace::new().args(["--config", "tests/mine.yaml"]).run().exit(2);
    run.stderr_contains("tests/mine.yaml").stderr_contains("selftest init");
}

#[test]
fn a_time_that_is_not_valid() {
    let workspace = Workspace::new().args(["config", "schema", "config"]);
    let run = workspace.clone().env("SELFTEST_NOW", "soon").run().exit(2);
    run.one_error(&["SELFTEST_NOW=\"soon\" is not a valid time"]);
    let _ = workspace.env("SELFTEST_NOW", "").run().exit(0);
}

#[test]
fn an_empty_configuration() {
    with_config("");
    with_config("   \n# only a comment\n");
}

#[test]
fn a_configuration_that_is_no_map() {
    with_config("[1, 2]");
    with_config("just words");
    with_config("version: 1\nscenarios: 7\n");
}

#[test]
fn a_configuration_that_is_not_utf_8() {
    with_config(b"version: 1\n# \xff\xfe\n").stderr_contains("UTF-8");
}

#[test]
fn a_configuration_that_is_binary() {
    with_config([0_u8, 159, 146, 150].repeat(1000));
}

#[test]
fn a_configuration_that_is_a_directory() {
    let workspace = Workspace::new().file("config/selftest.yaml/inner", "");
    workspace.run().exit(2).stderr_contains("config/selftest.yaml").stderr_contains("folder");
}

#[cfg(unix)]
#[test]
fn a_configuration_that_is_a_pipe() {
    let workspace = Workspace::new().file("config/README", "");
    let pipe = workspace.path("config/selftest.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    workspace.run().exit(2).stderr_contains("config/selftest.yaml").stderr_contains("pipe");
}

#[cfg(unix)]
#[test]
fn an_ignore_file_that_is_no_file_is_refused() {
    let commands: [&[&str]; 4] = [&[], &["doctor"], &["init", "--yes"], &["suite", "check", "."]];
    for words in commands {
        let workspace = Workspace::new();
        let pipe = workspace.path(".gitignore");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let run = workspace.args(words).run().exit(2);
        run.stderr_contains(".gitignore is not a regular file").stderr_contains("hint:");
    }
    let workspace = Workspace::new().file(".git/info/README", "");
    std::os::unix::fs::symlink("/dev/zero", workspace.path(".git/info/exclude")).unwrap();
    workspace.run().exit(2).stderr_contains("exclude is not a regular file");
    // Below the project, the folder is left out.
    let workspace = Workspace::new().file("data/README", "").file("other/README.md", "# Other");
    let pipe = workspace.path("data/.gitignore");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let check = workspace.clone().args(["suite", "check", "."]).run();
    assert!(!check.stderr.contains("panicked"), "{}", check.stderr);
    workspace.args(["--scenarios=1", "--exit-zero"]).run().exit(0);
}

#[cfg(unix)]
#[test]
fn lines_of_a_file_that_a_link_leads_to_are_not_shown() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "hushed: [1\n").unwrap();
    for (name, words) in [
        ("config/selftest.yaml", &["config", "check"][..]),
        ("config/selftest.yaml", &[]),
        ("evals/suite.yaml", &["suite", "check", "evals/suite.yaml"]),
        ("evals/suite.yaml", &["--suite=evals/suite.yaml"]),
    ] {
        let folder = name.split('/').next().unwrap();
        let workspace = Workspace::new().file(&format!("{folder}/README"), "");
        std::os::unix::fs::symlink(&secret, workspace.path(name)).unwrap();
        let run = workspace.args(words).run().exit(2);
        let shown = format!("{}{}", run.stdout, run.stderr);
        assert!(shown.contains("link") && !shown.contains("hushed"), "{words:?}: {shown}");
    }
}

#[test]
fn a_configuration_that_grows_without_end() {
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x, x]\n");
    bomb.extend("bcdefghijk".chars().zip("abcdefghij".chars()).map(|(name, of)| {
        let list = vec![format!("*{of}"); 10].join(", ");
        format!("{name}: &{name} [{list}]\n")
    }));
    with_config(bomb);
}

#[test]
fn a_configuration_that_is_nested_without_end() {
    with_config("[".repeat(200_000));
    with_config("a:\n ".repeat(20_000));
}

#[test]
fn a_configuration_that_is_huge() {
    with_config(format!("version: 1\n# {}\n", "x".repeat(50_000_000)));
}

#[test]
fn all_faults_are_shown_at_once_with_their_places() {
    let yaml = "\
version: 1
strictnes: 0.7
min_score_to_pass: 1.7
timeout_seconds: soon
scenarios:
  - id: twice
    description: \"One\"
    expected_status: COMPLETE
  - id: twice
    description: \"Two\"
    expected_status: DONE
";
    let run = with_config(yaml);
    for part in ["strictnes", "1.7", "soon", "twice", "DONE"] {
        assert!(run.stderr.contains(part), "no `{part}` in {}", run.stderr);
    }
    for place in ["selftest.yaml:2", "selftest.yaml:3", "selftest.yaml:4", "selftest.yaml:11"] {
        assert!(run.stderr.contains(place), "no `{place}` in {}", run.stderr);
    }
    let _ = run.snapshot_stderr("config_faults");
}

#[test]
fn weights_that_do_not_sum_to_one() {
    let yaml = format!(
        "{}rubric:\n  - {{ id: tone, weight: 0.5, description: \"Tone\", anchors: [] }}\n",
        config(OPENAI, CLEAR)
    );
    with_config(yaml).stderr_contains("sum");
}

#[test]
fn a_bad_flag_names_the_flag() {
    for flag in
        ["--strictness=2", "--min-score=NaN", "--timeout=-1", "--concurrency=0", "--format=xml"]
    {
        let name = flag.split('=').next().unwrap();
        let run = Workspace::new().config(config(OPENAI, CLEAR)).args([flag]).run().exit(2);
        let _ = run.stderr_contains(name);
    }
}

#[test]
fn a_model_name_that_is_none() {
    let run = Workspace::new().config(config("nonsense/x", CLEAR)).run();
    run.exit(2).stderr_contains("nonsense/x").stderr_contains("ollama/");
}

/// The report folder cannot be used: found before money is spent.
#[track_caller]
fn is_found_first(workspace: &Workspace, server: &ModelServer, parts: &[&str]) {
    let run = workspace.run().exit(5);
    run.one_error(parts);
    assert!(server.all_calls().is_empty(), "found only after model calls");
}

#[test]
fn a_file_in_place_of_the_report_folder() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server);
    is_found_first(&workspace.clone().file("reports", "a file"), &server, &["reports"]);
    let workspace = Workspace::simple(&server).file("docs/reports", "a file");
    is_found_first(&workspace, &server, &["docs/reports"]);
}

#[cfg(unix)]
#[test]
fn a_read_only_report_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    if rustix::process::geteuid().is_root() {
        crate::require::skip("root writes everywhere; a file in place of the folder is tested");
        return;
    }
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server).file("reports/selftest/keep", "");
    let folder = workspace.path("reports/selftest");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    is_found_first(&workspace, &server, &["reports/selftest"]);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs with `reports` on a file system of 64 kB, after `fill` was done in it. Only where this
/// system lets us mount one.
#[cfg(target_os = "linux")]
fn on_a_small_disk(workspace: &Workspace, fill: &str) -> Option<Run> {
    const NAMESPACE: [&str; 6] = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"];
    let probe = std::process::Command::new(NAMESPACE[0])
        .args(&NAMESPACE[1..])
        .arg("mount -t tmpfs none /mnt")
        .output();
    let script = format!(
        "mkdir -p reports && mount -t tmpfs -o size=64k none reports && {fill} && exec \"$@\""
    );
    let wrapper = NAMESPACE.into_iter().chain([script.as_str(), "sh"]);
    probe.is_ok_and(|probe| probe.status.success()).then(|| workspace.clone().within(wrapper).run())
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_found_before_the_first_model_call() {
    let server = ModelServer::start();
    let fill = "{ head -c 200000 /dev/zero > reports/full 2> /dev/null || true; }";
    let Some(run) = on_a_small_disk(&Workspace::simple(&server), fill) else {
        crate::require::skip("a small disk cannot be mounted here");
        return;
    };
    run.exit(5).one_error(&["reports", "space"]);
    assert!(server.all_calls().is_empty(), "found only after model calls");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_during_the_run_is_said() {
    let server = ModelServer::start();
    let yaml = config(OPENAI, &scenarios(60));
    let workspace = Workspace::new().config(yaml).server(&server);
    let Some(run) = on_a_small_disk(&workspace, "true") else {
        crate::require::skip("a small disk cannot be mounted here");
        return;
    };
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    run.exit(5).stderr_contains("space");
}
