//! `selftest init`: what it finds in a project, what it writes, and what it leaves alone.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use crate::model_server::ModelServer;
use crate::run::Run;
use crate::task_server::{TaskAnswer, TaskServer};
#[cfg(target_os = "linux")]
use crate::terminal::on_a_terminal;
use crate::workspace::{Workspace, files};

const CONFIG: &str = "config/selftest.yaml";
const SUITE: &str = "config/suites/first.yaml";

/// A project on a machine without any agent: programs are looked for in `bin` alone.
fn project() -> Workspace {
    let workspace = Workspace::new().file("README.md", "# Ferry\n\nTimes of the ferry.\n");
    let bin = workspace.path("bin");
    fs::create_dir_all(&bin).unwrap();
    workspace.env("PATH", bin)
}

#[cfg(unix)]
fn program(workspace: Workspace, path: &str, text: &str) -> Workspace {
    use std::os::unix::fs::PermissionsExt as _;
    let workspace = workspace.file(path, text);
    fs::set_permissions(workspace.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    workspace
}

#[track_caller]
fn init(workspace: &Workspace, arguments: &[&str]) -> Run {
    workspace.clone().args(["init"].iter().chain(arguments)).run()
}

/// The written files are valid, whatever was found.
#[track_caller]
fn written(workspace: &Workspace, found: &[&str]) -> Run {
    let mut run = init(workspace, &["--yes"]).exit(0);
    for part in found {
        run = run.stdout_contains(part);
    }
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    let _ = workspace.clone().args(["config", "check"]).run().exit(0);
    let _ = workspace.clone().args(["suite", "check", SUITE]).run().exit(0);
    run
}

#[test]
fn a_project_with_nothing_is_tested_by_the_example_agent() {
    let run = written(&project(), &["the example agent stands in", "next: `selftest --suite"]);
    for file in [CONFIG, SUITE, ".github/workflows/selftest.yml", ".gitignore"] {
        assert!(run.stdout.contains(&format!("wrote  {file}")), "{}", run.stdout);
    }
    assert_eq!(run.stdout.matches("next:").count(), 1);
    assert!(run.read(SUITE).contains("expect:"));
    let workflow = run.read(".github/workflows/selftest.yml");
    assert!(workflow.contains("cargo install --locked --git https://github.com/"), "{workflow}");
    assert!(run.read(".gitignore").contains("/reports/selftest/"));
}

/// An API as `FastAPI` describes it: one call whose response is the answer.
#[test]
fn an_api_that_answers_in_one_call_is_tested() {
    let api = r#"{"openapi": "3.1.0", "paths": {"/chat": {"post": {
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "\#/components/schemas/Ask"}}}},
        "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "\#/components/schemas/Said"}}}}}}}},
        "components": {"schemas": {"Ask": {"properties": {"message": {}, "session_id": {}}},
        "Said": {"properties": {"answer": {}}}}}}"#
        .replace("\\#", "#");
    let server = TaskServer::start(
        vec![TaskAnswer::json(r#"{"answer": "Ferry weighs widgets. It opens at 9."}"#)],
        vec![TaskAnswer::status(404)],
    );
    let api = api.replace(
        "\"paths\"",
        &format!(
            "\"servers\": [{{\"url\": \"{}\"}}], \"paths\"",
            server.url().replace("127.0.0.1", "localhost")
        ),
    );
    let workspace = project().file("openapi.json", api);
    let run =
        written(&workspace, &["openapi.json: answers by POST /chat", "ok   system under test"]);
    let yaml = run.read(CONFIG);
    for line in ["ask: {", "\"session_id\":\"{session_id}\"", "output: /answer"] {
        assert!(yaml.contains(line), "{line} is not in {yaml}");
    }
}

/// A description says nothing of a stream, and often not where the answer stands.
#[test]
fn a_server_is_said_hello_and_its_answer_is_looked_for() {
    let described = r#"{"paths": {"/chat": {"post": {
        "requestBody": {"content": {"application/json": {"schema": {"properties": {"message": {}}}}}},
        "responses": {"200": {"description": "ok"}}}}}}"#;
    let stream = "data: {\"delta\": \"I am \"}\n\ndata: {\"delta\": \"Ferry.\"}\n\n";
    let kind = |kind: &str| vec![("content-type", kind.to_owned())];
    for (headers, body, output, said) in [
        (kind("text/event-stream"), stream, "output: /delta", "I am Ferry."),
        (kind("application/json"), r#"{"data": {"reply": "I am Ferry."}}"#, "/data/reply", "I am"),
        (kind("text/plain"), "I am Ferry.", "output: \"\"", "output is \"\""),
        (kind("application/json"), r#"{"detail": [1]}"#, "output: /output", "name the place"),
    ] {
        let answer = TaskAnswer::Http(200, headers, body.to_owned());
        let server = TaskServer::start(vec![answer], vec![TaskAnswer::status(404)]);
        let url = server.url().replace("127.0.0.1", "localhost");
        let api = described.replacen('{', &format!("{{\"servers\": [{{\"url\": \"{url}\"}}], "), 1);
        let run = written(&project().file("openapi.json", api), &["hello  http", said]);
        assert!(run.read(CONFIG).contains(output), "{body}: {}", run.read(CONFIG));
    }
}

/// Servers without a description of their API often have an example in the README.
#[test]
fn the_example_of_a_request_in_a_readme_is_tested() {
    let answer = TaskAnswer::json(r#"{"choices": [{"message": {"content": "I am Ferry."}}]}"#);
    let server = TaskServer::start(vec![answer], vec![TaskAnswer::status(404)]);
    let url = server.url();
    let readme = format!(
        "# Ferry\n\n```\nflask run\n```\n\n```\ncurl -X POST {url}/chat \\\n  \
         -d '{{\"user\": \"demo\", \"messages\": [{{\"role\": \"user\", \"content\": \"hi\"}}]}}'\n```\n"
    );
    let found = ["found  README.md: answers by POST /chat", "COMPLETE: I am Ferry."];
    let yaml = written(&project().file("README.md", readme), &found).read(CONFIG);
    for part in [r#"{"user":"demo","messages":"{messages}"}"#, "output: /choices/0/message/content"]
    {
        assert!(yaml.contains(part), "{part}: {yaml}");
    }
}

/// A newcomer who finds nothing offered has to know what was seen.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_started_is_named_with_the_reason() {
    let readme = "# Ferry\n\n```\njava -jar target/ferry.jar\nuvicorn app.main:app\n\
                  cargo run --release -- \"Which harbour?\"\n```\n";
    let tasks = "tasks:\n  ask:\n    cmds: [\"deno run main.ts {{.CLI_ARGS}}\"]\n";
    let workspace = project()
        .file("README.md", readme)
        .file("Taskfile.yml", tasks)
        .file("main.ts", "")
        .file("Cargo.toml", "[package]\nname = \"ferry\"\n");
    let _ = written(
        &workspace,
        &[
            "unused README.md:4: `java -jar target/ferry.jar`: there is no target/ferry.jar here",
            "unused README.md:5: `uvicorn app.main:app`: it serves: start it",
            "unused README.md:6: `cargo run --release -- \"Which harbour?\"`: build it first",
            "unused Taskfile.yml: tasks.ask: `deno run main.ts {{.CLI_ARGS}}`: deno is not on PATH",
        ],
    );
    let agent = "#!/bin/sh\necho \"You said $1.\"\n";
    let workspace = program(workspace, "target/debug/ferry", agent);
    let run = init(&workspace, &["--yes", "--force"]).exit(0).stdout_contains("You said hello.");
    assert!(run.read(CONFIG).contains("[\"./target/debug/ferry\""), "{}", run.read(CONFIG));
}

#[cfg(target_os = "linux")]
#[test]
fn agents_in_the_folders_of_a_repository_are_named() {
    let agent = "#!/bin/sh\necho 'I am billing.'\n";
    let workspace =
        program(program(project(), "agents/billing/agent.sh", agent), "web/x.sh", agent)
            .env("PATH", "/usr/bin:/bin");
    let found = "found  agents/billing: `sh agent.sh`; `selftest -C agents/billing init` tests it";
    let _ = written(&workspace, &[found, "next: `selftest -C agents/billing init`"]);
    let _ = init(&workspace, &["--yes", "-C", "agents/billing"]).exit(0).stdout_contains("I am b");
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_writes_works_in_a_copy() {
    let agent = "#!/bin/sh\necho started > agent.log || exit 1\necho 'I am Ferry.'\n";
    let workspace = program(project(), "agent.sh", agent)
        .env("PATH", "/usr/bin:/bin")
        .file("README.md", "# Ferry\n\nStart it: `./agent.sh`\n");
    let run = written(&workspace, &["work_folder is copy", "COMPLETE: I am Ferry."]);
    assert!(run.read(CONFIG).contains("work_folder: copy"), "{}", run.read(CONFIG));
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_misses_its_key_says_where_to_name_it() {
    let agent =
        "#!/bin/sh\n[ -n \"$FERRY_API_KEY\" ] || { echo 'set FERRY_API_KEY' >&2; exit 1; }\n";
    let workspace = program(project(), "agent.sh", agent)
        .env("PATH", "/usr/bin:/bin")
        .file("README.md", "# Ferry\n\nStart it: `./agent.sh`\n");
    let hint = "those of sut.command.pass_environment: name FERRY_API_KEY there";
    let _ = written(&workspace, &[hint, "next: `selftest doctor`"]);
}

/// A server that states no length and ends each connection, as simple ones do.
#[test]
fn a_server_on_a_port_that_the_project_names_is_asked_for_its_api() {
    let described = r#"{"paths": {"/chat": {"post": {
        "requestBody": {"content": {"application/json": {"schema": {"properties": {"message": {}}}}}},
        "responses": {"200": {"content": {"application/json": {"schema":
            {"properties": {"answer": {}}}}}}}}}}}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _server = std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines =
                BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let Some(first) = lines.next() else { continue };
            let _ = lines.take_while(|line| !line.is_empty()).count();
            let body = if first.contains("/openapi.json") { described } else { "{}" };
            let head = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n";
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    let readme = format!("# Ferry\n\nIt listens on http://localhost:{port}.\n");
    let found = format!("port {port}: a server listens");
    let workspace = project().file("README.md", readme);
    let run = written(&workspace, &[&found, "openapi.json: answers by POST /chat"]);
    assert!(run.read(CONFIG).contains(&format!("127.0.0.1:{port}")), "{}", run.read(CONFIG));
}

#[cfg(unix)]
#[test]
fn the_program_of_a_package_is_tested_and_the_first_suite_runs() {
    let answers = "#!/bin/sh\nread -r line\ncase $line in\n\
                   *'other one'*) echo 'Which one do you mean?' ;;\n\
                   *) echo 'This project is called ferry.' ;;\nesac\n";
    let server = ModelServer::start();
    let package = r#"{"name": "@harbour/ferry", "bin": {"ferry": "./tool/ferry"}}"#;
    let workspace = program(Workspace::new(), "tool/ferry", answers)
        .file("package.json", package)
        .server(&server);
    let _ = written(&workspace, &["package.json: the program ferry (tool/ferry)", "Ollama at"]);
    let run = workspace.clone().args(["--suite", SUITE]).run().exit(0);
    assert_eq!(run.report().counts(), [2, 2, 0, 0]);
    assert!(run.report().0["sut"].to_string().contains("tool/ferry"), "{}", run.report());
}

#[cfg(target_os = "linux")]
#[test]
fn the_command_in_a_readme_is_started_once_and_shown() {
    let agent = "#!/bin/sh\ncase $1 in\n*'other one'*) echo 'Which one do you mean?' ;;\n\
                 hello) echo 'Hello, I am Ferry.' ;;\n*) echo 'This is ferry.' ;;\nesac\n";
    let readme = "# Ferry\n\nThe ferry takes at most 20 passengers on each trip.\n\n\
                  ```sh\n./ask.sh \"Which harbour is next?\"\n```\n";
    let workspace = program(Workspace::new(), "ask.sh", agent)
        .file("README.md", readme)
        .file("package.json", "{\"name\": \"ferry\"}");
    let run = written(&workspace, &["found  README.md:6: `./ask.sh`", "Hello, I am Ferry."]);
    assert!(run.read(CONFIG).contains("prompt_input: argument"), "{}", run.read(CONFIG));
    let suite = run.read(SUITE);
    assert_eq!(suite.matches("- id: ").count(), 3, "{suite}");
    let run = workspace.clone().args(["--suite", SUITE]).run().exit(1);
    // It does not know its own README: the newcomer's first red.
    assert_eq!(run.report().counts(), [3, 2, 1, 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_reads_no_stdin_gets_its_request_as_an_argument() {
    let agent = "#!/bin/sh\n[ -n \"$1\" ] || { echo 'usage: agent.sh QUESTION' >&2; exit 2; }\n\
                 echo \"You said $1.\"\n";
    let workspace = program(Workspace::new(), "agent.sh", agent)
        .file("README.md", "# Ferry\n\nStart it: `./agent.sh`\n");
    let run = written(&workspace, &["usage: agent.sh QUESTION", "You said hello."]);
    assert!(run.read(CONFIG).contains("prompt_input: argument"), "{}", run.read(CONFIG));
}

#[cfg(target_os = "linux")]
#[test]
fn of_a_program_that_prints_json_the_answer_in_it_counts() {
    let agent = "#!/bin/sh\necho 'loading…'\n\
                 echo '{\"model\": \"m\", \"answer\": \"This is ferry.\", \"sources\": []}'\n";
    let workspace = program(Workspace::new(), "ask.sh", agent)
        .file("README.md", "# Ferry\n\nAsk it: `./ask.sh \"Which harbour is next?\" --json`\n")
        .file("package.json", "{\"name\": \"ferry\"}");
    let run = written(&workspace, &["output is /answer", "COMPLETE: This is ferry."]);
    assert!(run.read(CONFIG).contains("output: \"/answer\""), "{}", run.read(CONFIG));
    let report = workspace.clone().args(["--suite", SUITE]).run().exit(1).report();
    let case = report.case_of("names_the_project");
    assert_eq!(case.0["output"], "This is ferry.", "{case}");
    // A program that stops to print it has given no answer.
    let workspace = workspace.file("ask.sh", "#!/bin/sh\necho 'busy, try again'\n");
    let run = workspace.args(["--suite", SUITE]).run().exit(1);
    let _ = run.stdout_contains("no answer seen: no JSON to look for /answer in");
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_to_type_in_is_told_apart_from_one_that_answers() {
    let agent = "#!/bin/sh\necho 'Welcome!'\nwhile printf '> ' && read -r line; do\n\
                 echo 'I am Ferry.'\ndone\n";
    let workspace = program(Workspace::new(), "bot.sh", agent)
        .file("README.md", "# Ferry\n\nRun `./bot.sh` and type.\n");
    let _ = written(&workspace, &["its answer ends in `>`, as that of a program to type in"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_does_not_answer_is_shown_with_what_to_do() {
    let agent = "#!/bin/sh\necho 'Error: stdin is not a terminal' >&2\nexit 1\n";
    let readme = "# Ferry\n\nStart it: `./agent.sh`, or `go run . \"Which harbour is next?\"`\n";
    let workspace = program(project(), "agent.sh", agent).file("README.md", readme);
    let run = written(&workspace, &["hint   it wants a terminal"]);
    let _ = run.stdout_contains("next: `selftest doctor`").stdout_contains(
        "unused README.md:3: `go run . \"Which harbour is next?\"`: go is not on PATH",
    );
}

#[test]
fn a_task_api_is_tested_on_this_machine() {
    let api = "openapi: 3.1.0\nservers: [{url: 'https://api.example.org'}]\npaths:\n  \
               /runs:\n    post:\n      requestBody: {content: {application/json: {schema: \
               {properties: {message: {type: string}}}}}}\n      responses: {}\n  \
               '/runs/{id}': {get: {responses: {}}}\n";
    let run = written(&project().file("openapi.yaml", api), &["openapi.yaml: tasks by POST /runs"]);
    let yaml = run.read(CONFIG);
    assert!(yaml.contains("base_url: \"http://127.0.0.1:8000\""), "{yaml}");
    assert!(yaml.contains("# The description names https://api.example.org"), "{yaml}");
    // Nobody listens there: the one thing to do next is to look at that.
    run.stdout_contains("FAIL system under test").stdout_contains("next: `selftest doctor`");
    let other = project().file("openapi.json", "{\"paths\": {\"/ships\": {\"get\": {}}}}");
    let _ = written(&other, &["openapi.json: no call that takes a prompt"]);
}

#[cfg(unix)]
#[test]
fn an_agent_is_found_by_its_name_and_never_started() {
    let started = project();
    let mark = started.path("started");
    let text = format!("#!/bin/sh\ntouch {}\n", mark.display());
    let workspace = program(program(started, "bin/claude", &text), "bin/goose", &text)
        .file(".claude/skills/times/SKILL.md", "---\nname: times\n---\nTimes.\n")
        .file("AGENTS.md", "Be brief.\n")
        .file("bin/codex", "not executable");
    let found = ["on PATH: claude, goose\n", "found  AGENTS.md", ".claude/skills: 1 skill\n"];
    let run = written(&workspace, &found);
    assert!(!mark.exists(), "nothing is started");
    let yaml = run.read(CONFIG);
    assert!(yaml.contains("run: [\"claude\",\"-p\",\"{prompt}\"]"), "{yaml}");
    assert!(yaml.contains("`selftest skills test` tests the skills"), "{yaml}");
    run.stdout_contains("set ANTHROPIC_API_KEY");
    // A folder that the project chooses is none that programs are taken from.
    let relative = workspace.clone().env("PATH", "bin").args(["init", "--yes", "--force"]);
    assert!(!relative.run().exit(0).stdout.contains("on PATH"));
}

#[test]
fn files_that_are_there_stay_unless_they_are_to_be_replaced() {
    let workspace = project().config("mine: yes\n").file(".gitignore", "target\nreports/selftest");
    let run = init(&workspace, &["--yes"]).exit(0);
    assert_eq!(run.read(CONFIG), "mine: yes\n");
    let run = run
        .stdout_contains("kept   config/selftest.yaml (it exists; --force replaces it)")
        .stdout_contains("FAIL configuration")
        .stdout_contains("next: `selftest doctor`");
    let ignored = run.read(".gitignore");
    let lines = "target\nreports/selftest\n/.selftest/\n";
    assert_eq!(ignored, lines, "what is there in other words is not added");
    let run = init(&workspace, &["--yes", "--force"]).exit(0);
    assert!(run.read(CONFIG).starts_with("# yaml-language-server"));
    assert_eq!(run.read(".gitignore"), lines);
    let _ = workspace.args(["config", "check"]).run().exit(0);
}

#[test]
fn prompts_are_written_where_they_are_asked_for() {
    let workspace = project();
    let _ = init(&workspace, &["--yes"]).exit(0);
    assert!(!workspace.path("prompts").exists());
    let _ = init(&workspace, &["--yes", "--prompts"]).exit(0);
    assert!(workspace.path("prompts/judge/rubric.md").is_file());
}

#[cfg(unix)]
#[test]
fn hostile_projects_are_told_and_get_a_configuration() {
    use std::os::unix::fs::symlink;
    let nested = "[".repeat(200_000);
    for (name, text, said) in [
        ("package.json", " ".repeat(3 << 20), "package.json: it has more than 2 MB"),
        ("package.json", nested.clone(), "package.json: not JSON"),
        ("package.json", r#"{"bin": "../../outside"}"#.to_owned(), "found  no agent"),
        ("package.json", r#"{"bin": "absent.js"}"#.to_owned(), "there is no absent.js yet"),
        ("openapi.yaml", "a: [\n\tb: {{".to_owned(), "openapi.yaml: cannot be read"),
        ("openapi.yaml", "a: &a [*a, *a]\n".to_owned(), "openapi.yaml"),
        ("openapi.json", nested, "openapi.json: cannot be read"),
        ("package.json", r#"{"name": "\u001b[31m`x\u202e"}"#.to_owned(), "found  no agent"),
    ] {
        let run = written(&project().file(name, &text), &[said]);
        assert!(!run.stdout.contains('\u{1b}'), "{name}: {:?}", run.stdout);
    }
    // Links that lead out of the project are neither read nor written through.
    let workspace = project();
    let outside = workspace.folder().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("package.json"), r#"{"name": "secret"}"#).unwrap();
    symlink(outside.join("package.json"), workspace.path("package.json")).unwrap();
    symlink(&outside, workspace.path(".github")).unwrap();
    let run = init(&workspace, &["--yes"]).exit(5);
    run.one_error(&[".github/workflows/selftest.yml", "leads out of the project"])
        .stdout_contains("package.json: it leads out of the project");
    assert_eq!(files(&outside).len(), 1);
    fs::remove_file(workspace.path(".github")).unwrap();
    symlink(outside.join("ignored"), workspace.path(".gitignore")).unwrap();
    let _ = init(&workspace, &["--yes"]).exit(5).one_error(&[".gitignore", "expected a file"]);
    assert_eq!(files(&outside).len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let workspace = project();
    let path = workspace.path("openapi.json");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let _ = written(&workspace, &["openapi.json: it is no file"]);
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    let run = init(&project(), &[]).exit(0);
    assert!(!run.stdout.contains("[1]:") && !run.stdout.contains("[Y/n]"), "{}", run.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_at_a_terminal_is_asked_at_most_three_times() {
    let server = ModelServer::start();
    let workspace = program(project().server(&server), "bin/aider", "#!/bin/sh\n");
    let path = format!("{}:/usr/bin:/bin", workspace.path("bin").display());
    let asked = workspace.clone().env("PATH", path);
    let Some(asked) = on_a_terminal(asked, "2\\n\\nn\\n") else { return };
    let run = asked.args(["init"]).run().exit(0);
    for part in ["What should be tested?", "Which model should judge?", "GitHub Actions? [Y/n]"] {
        assert!(run.stdout.contains(part), "no `{part}` in {}", run.stdout);
    }
    // The second choice is the assistant with the model of the server; no workflow is wanted.
    assert!(run.read(CONFIG).contains("sut:\n  chat: { model: \"ollama/"), "{}", run.read(CONFIG));
    assert!(!workspace.path(".github").exists());
}

#[test]
fn a_second_time_changes_nothing() {
    let contents = |workspace: &Workspace| {
        let mut paths = files(&workspace.project());
        paths.sort();
        paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let workspace = project();
    let _ = init(&workspace, &["--yes"]).exit(0);
    let before = contents(&workspace);
    let _ = init(&workspace, &["--yes"]).exit(0);
    assert_eq!(contents(&workspace), before);
}
