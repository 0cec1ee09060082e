//! The command line itself: help, completions, man page, and the small commands.

use clap::CommandFactory as _;
use serde_json::Value;

use crate::model_server::{ModelServer, Role};
use crate::workspace::{CLEAR, NOBODY, Workspace, config, files};

/// The words of every command, those of the commands in it first.
fn commands(command: &clap::Command, words: &[&str], all: &mut Vec<Vec<String>>) {
    // A hidden command is another name of one that is shown.
    let shown = |one: &&clap::Command| one.get_name() != "help" && !one.is_hide_set();
    for one in command.get_subcommands().filter(shown) {
        commands(one, &[words, &[one.get_name()]].concat(), all);
    }
    all.push(words.iter().map(ToString::to_string).collect());
}

#[test]
fn help_of_every_command() {
    let mut all = Vec::new();
    commands(&selftest::cli::Cli::command(), &[], &mut all);
    assert!(all.len() > 50, "{all:?}");
    for command in all {
        let name = [&["help".to_owned()], &command[..]].concat().join("_");
        let run = Workspace::new().args(command.iter().map(String::as_str).chain(["--help"]));
        let _ = run.run().exit(0).snapshot(&name);
    }
}

/// The text between these marks, wherever it occurs.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> Vec<&'t str> {
    let rest = text.split(begin).skip(1);
    rest.filter_map(|rest| rest.split_once(end)).map(|(inside, _)| inside).collect()
}

/// The words of a command that a text names, with `x` for what stands for a value.
fn typed(command: &str) -> Vec<String> {
    let mut command = command.split(" > ").next().unwrap().to_owned();
    for (begin, end) in [("{{", "}}"), ("{", "}"), ("<", ">")] {
        while let Some((before, rest)) = command.split_once(begin) {
            let (_, after) = rest.split_once(end).unwrap_or((rest, ""));
            command = format!("{before}x{after}");
        }
    }
    command.split_whitespace().map(ToOwned::to_owned).collect()
}

#[test]
fn commands_that_texts_name_can_be_typed() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut named, mut wrong) = (0, Vec::new());
    for folder in ["src", "crates"] {
        for file in files(&root.join(folder)) {
            let text = std::fs::read_to_string(&file).unwrap();
            let mut lines: Vec<&str> = text.lines().collect();
            // Comments may name groups of commands.
            lines.retain(|line| !line.trim_start().starts_with("//"));
            let text = lines.join("\n").replace("\\\n", "");
            let mut commands = between(&text, "`selftest ", "`");
            commands.extend(between(&text, "<code>selftest ", "</code>"));
            for command in commands {
                let words = [vec!["selftest".to_owned()], typed(command)].concat();
                named += 1;
                if let Err(error) = selftest::cli::Cli::read(words) {
                    wrong.push(format!("{}: {command}: {error}", file.display()));
                }
            }
        }
    }
    assert!(named > 30, "{named}");
    assert_eq!(wrong, [""; 0], "{wrong:#?}");
}

#[test]
fn help_explains_exit_codes_and_every_flag_of_a_run() {
    let run = Workspace::new().args(["run", "--help"]).run().exit(0);
    for line in selftest::exit::TABLE.lines() {
        assert!(run.stdout.contains(line.trim()), "no `{line}` in {}", run.stdout);
    }
    for flag in [
        "--scenarios",
        "--suite",
        "--repeats",
        "--allow-commands",
        "--full",
        "--timeout",
        "--strictness",
        "--min-score",
        "--model",
        "--generator-model",
        "--judge-model",
        "--sut-model",
        "--concurrency",
        "--seed",
        "--config",
        "--exit-zero",
        "--format",
        "--offline",
        "--record",
        "-C",
        "-v",
    ] {
        assert!(run.stdout.contains(flag), "no `{flag}` in {}", run.stdout);
    }
}

#[test]
fn help_shows_commands_in_groups_on_one_screen() {
    let run = Workspace::new().args(["--help"]).run().exit(0);
    assert!(run.stdout.lines().count() <= 60, "{}", run.stdout);
    let command = selftest::cli::Cli::command();
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    assert!(names.len() <= 15, "{names:?}");
    for name in names {
        let line = format!("\n  {name} ");
        assert_eq!(run.stdout.matches(&line).count(), 1, "{name} in {}", run.stdout);
    }
    for heading in ["Test:", "Sessions:", "Operate:", "Options:"] {
        assert!(run.stdout.contains(heading), "no `{heading}` in {}", run.stdout);
    }
    // The short help is the same list.
    let short = Workspace::new().args(["-h"]).run().exit(0);
    assert!(short.stdout.contains("Operate:"), "{}", short.stdout);
}

#[test]
fn options_beside_a_command_that_has_none_are_refused() {
    for (words, said) in [
        (&["--scenarios=2", "doctor"][..], "`selftest run`"),
        (&["worker", "--once", "jobs"], "`selftest worker`"),
        (&["compare", "a", "b", "--seed=1"], "options of a run"),
    ] {
        let _ = Workspace::new().args(words).run().exit(2).stderr_contains(said);
    }
}

#[test]
fn version() {
    let run = Workspace::new().args(["--version"]).run().exit(0);
    assert_eq!(run.stdout, format!("selftest {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_unknown_flag_is_a_usage_error_with_a_suggestion() {
    let run = Workspace::new().args(["--scenario=2"]).run().exit(2);
    run.stderr_contains("--scenario").stderr_contains("--scenarios");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let kind = format!("--generate=complete-{shell}");
        let run = Workspace::new().args([kind]).run().exit(0);
        for word in ["doctor", "schema", "init", "scenarios", "freeze"] {
            assert!(run.stdout.contains(word), "no `{word}` for {shell}");
        }
    }
}

#[test]
fn the_man_page_renders() {
    let run = Workspace::new().args(["--generate=man"]).run().exit(0);
    for part in [".TH", "selftest", "scenarios", "doctor"] {
        assert!(run.stdout.contains(part), "no `{part}` in {}", run.stdout);
    }
}

#[test]
fn config_check_accepts_the_specified_yaml() {
    let workspace =
        Workspace::new().config(include_str!("../../crates/config/src/fixtures/specified.yaml"));
    let _ = workspace.args(["config", "check"]).run().exit(0);
}

#[test]
fn config_check_refuses_a_bad_file_without_any_model() {
    let run =
        Workspace::new().config("version: 1\nscenarois: []\n").args(["config", "check"]).run();
    run.exit(2).stderr_contains("scenarois").stderr_contains("selftest.yaml:2");
}

#[test]
fn config_show_says_where_each_value_comes_from() {
    let run = Workspace::new()
        .config("version: 1\nmin_score_to_pass: 0.65\nscenarios:\n".to_owned() + CLEAR)
        .env("SELFTEST_STRICTNESS", "0.25")
        .args(["config", "show", "--timeout=33"])
        .run()
        .exit(0);
    for (value, origin) in [
        ("min_score_to_pass: 0.65", "file, line 2"),
        ("strictness: 0.25", "SELFTEST_STRICTNESS"),
        ("timeout_seconds: 33", "flag, --timeout"),
        ("max_questions_allowed: 5", "default"),
    ] {
        let found = run.stdout.lines().any(|line| line.contains(value) && line.contains(origin));
        assert!(found, "no `{value}` from {origin} in {}", run.stdout);
    }
}

#[test]
fn flags_win_over_the_environment_which_wins_over_the_file() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server);
    let strictness = |workspace: Workspace| {
        let report = workspace.run().exit(0).stdout_report();
        report.0["config"]["strictness"].as_f64().unwrap()
    };
    let workspace = workspace.args(["--format=json"]);
    assert_eq!(strictness(workspace.clone()), 0.7);
    let workspace = workspace.env("SELFTEST_STRICTNESS", "0.5");
    assert_eq!(strictness(workspace.clone()), 0.5);
    assert_eq!(strictness(workspace.args(["--format=json", "--strictness=0.1"])), 0.1);
}

#[test]
fn schemas_are_json_schemas() {
    for kind in ["config", "report", "verdict", "suite"] {
        let run = Workspace::new().args(["config", "schema", kind]).run().exit(0);
        let schema: Value = serde_json::from_str(&run.stdout).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{kind}");
    }
}

#[test]
fn the_verdict_schema_is_what_the_judge_is_sent() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server);
    let _ = workspace.run().exit(0);
    let printed = workspace.args(["config", "schema", "verdict"]).run().exit(0).stdout;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let sent = server.calls(Role::Judge)[0].schema().unwrap()["properties"].clone();
    assert_eq!(printed["properties"], sent);
}

#[test]
fn the_committed_config_schema_is_the_printed_one() {
    let printed = Workspace::new().args(["config", "schema", "config"]).run().exit(0).stdout;
    let committed = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("config/schema.json");
    let committed = std::fs::read_to_string(committed).unwrap();
    assert!(committed == printed, "run `selftest config schema config > config/schema.json`");
}

#[test]
fn doctor_finds_nothing_wrong_with_a_good_server() {
    let server = ModelServer::start();
    let workspace = Workspace::simple(&server).args(["doctor"]);
    let run = workspace.run().exit(0);
    assert!(!server.all_calls().is_empty(), "no live probe:\n{}", run.stdout);
    let left = files(&workspace.project());
    assert_eq!(left, [workspace.path("config/selftest.yaml")], "a check leaves nothing behind");
}

#[test]
fn doctor_says_what_to_do_about_each_failure() {
    let workspace = Workspace::new()
        .config(config("ollama/qwen2.5:7b", CLEAR))
        .env("OLLAMA_HOST", NOBODY)
        .file("reports", "a file");
    let run = workspace.args(["doctor"]).run().exit(5);
    let text = run.stdout + run.stderr.as_str();
    for part in ["127.0.0.1:1", "ollama serve", "reports"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

#[test]
fn doctor_says_when_a_server_cannot_hold_a_model_to_the_schema() {
    let able = ModelServer::start();
    let unable = ModelServer::script().refuse_response_format().start();
    let says = |server: &ModelServer| {
        let run = Workspace::simple(server).args(["doctor"]).run().exit(0);
        let probe = run.stdout.lines().find(|line| line.contains("structured output"));
        probe.unwrap_or_else(|| panic!("no probe in {}", run.stdout)).to_owned()
    };
    assert!(says(&unable).contains("prompt"), "{}", says(&unable));
    assert!(!says(&able).contains("prompt"), "{}", says(&able));
}

#[test]
fn doctor_fails_when_the_judge_gives_no_verdict() {
    let server = ModelServer::script().judge(|_| "I like it.").start();
    let run = Workspace::simple(&server).args(["doctor"]).run().exit(5);
    run.says("structured output").says("hint:");
}

#[test]
fn models_are_listed() {
    let server = ModelServer::start();
    let run = Workspace::simple(&server).args(["judge", "model", "list"]).run().exit(0);
    run.stdout_contains("qwen2.5:7b");
}

#[test]
fn weights_that_are_not_here_are_said_to_be_missing() {
    let run = Workspace::new().args(["judge", "model", "path", "smollm2-135m"]).run().exit(5);
    run.one_error(&["smollm2-135m"]).stderr_contains("selftest judge model pull smollm2-135m");
}

#[test]
fn a_closed_stdout_is_no_panic() {
    let run = Workspace::new().within(["sh", "-c", "\"$@\" | true", "sh"]).args(["--help"]).run();
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
}
