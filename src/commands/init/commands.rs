//! Finds in the texts of a project how its agent is started: in code blocks of READMEs, scripts of
//! manifests, targets, images and process files. Pure; what a text holds is a stranger's, and only
//! plain command lines are taken.

use std::collections::BTreeMap;

use serde_json::Value;

/// Most lines of a text that are looked at.
const MAX_LINES: usize = 4_000;

/// Most bytes of a command that is quoted.
const MAX_QUOTE: usize = 120;

/// Most words of a command.
const MAX_WORDS: usize = 24;

/// Programs that run another program, which a project brings.
const RUNNERS: &[&str] = &[
    "python", "python3", "uv", "uvx", "poetry", "pipenv", "pdm", "hatch", "node", "npx", "npm",
    "pnpm", "yarn", "bun", "bunx", "deno", "tsx", "ts-node", "go", "cargo", "ruby", "bundle",
    "php", "java", "dotnet", "bash", "sh", "perl", "Rscript", "elixir", "swift",
];

/// Words of commands that do something else than answer.
const OTHER_WORK: &[&str] = &[
    "install",
    "test",
    "tests",
    "pytest",
    "lint",
    "build",
    "format",
    "fmt",
    "migrate",
    "deploy",
    "publish",
    "venv",
    "clippy",
    "check",
    "bench",
    "docs",
    "compose",
    "push",
    "pull",
    "login",
    "clean",
    "update",
    "upgrade",
    "add",
    "init",
    "setup",
    "coverage",
    "train",
    "eval",
    "evaluate",
    "pip",
    "pip3",
    "--version",
    "--help",
];

/// Programs that serve an application until they are stopped.
const SERVERS: &[&str] = &[
    "uvicorn",
    "gunicorn",
    "hypercorn",
    "daphne",
    "waitress-serve",
    "flask",
    "fastapi",
    "langgraph",
    "chainlit",
    "streamlit",
    "next",
];

/// Words in a command that speak for an agent.
const AGENT_WORDS: &[&str] =
    &["agent", "ask", "chat", "assistant", "bot", "answer", "query", "question", "cli", "prompt"];

/// Single words that stand for a request.
const STAND_INS: &[&str] =
    &["question", "prompt", "query", "message", "request", "hello", "hi", "your_question"];

/// Endings of programs that a project brings.
const SCRIPTS: &[&str] =
    &[".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".php", ".pl", ".jar", ".go"];

/// How a program takes its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestBy {
    Stdin,
    /// As the last argument, or where `{prompt}` stands.
    Argument,
}

/// A command that may start the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundCommand {
    pub(super) words: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) request: RequestBy,
    /// JSON Pointer to the answer, if the program prints JSON.
    pub(super) output: Option<String>,
    /// True if it writes into its folder.
    pub(super) writes: bool,
    /// True if it serves until it is stopped, and answers no request itself.
    pub(super) is_server: bool,
    /// What the text says, on one line.
    pub(super) line: String,
    /// File and line, such as `README.md:12`.
    pub(super) origin: String,
}

impl FoundCommand {
    /// Reads a command line as one would type it. `None` if it needs a shell, or does something else
    /// than answer.
    pub(super) fn parse(line: &str, origin: &str) -> Option<Self> {
        let line = line.trim().trim_start_matches(['$', '>', '%']).trim();
        let written = selftest_text::one_line(line, MAX_QUOTE);
        // A shell takes `#` for a comment only behind a space; `agent#2` is a word.
        let line = with_placeholders(line.split(" #").next()?.trim());
        // Of a pipe or a chain the last program answers.
        let is_fed = line.contains('|');
        let line = line.rsplit("&&").next()?.rsplit('|').next()?.trim();
        let line = line.split(" <").next()?.trim();
        // The program is started without a shell, which all of these need.
        if line.contains(['$', '`', '>', ';', '\\', '(', '*']) || line.is_empty() {
            return None;
        }
        let mut words = shlex::split(line)?;
        if words.len() > MAX_WORDS {
            return None;
        }
        let mut environment = BTreeMap::new();
        while let Some((name, value)) = words.first().and_then(|word| assignment(word)) {
            environment.insert(name, value);
            words.remove(0);
        }
        let does_else = words.iter().any(|word| OTHER_WORK.contains(&word.as_str()));
        if words.is_empty() || does_else {
            return None;
        }
        silence_package_manager(&mut words);
        let is_server = words.iter().any(|word| SERVERS.contains(&word.as_str()));
        // Asked in this order, so that the example goes also from a program that is fed by a pipe.
        let request = if take_request(&mut words) && !is_fed {
            RequestBy::Argument
        } else {
            RequestBy::Stdin
        };
        let found = Self {
            words,
            environment,
            request,
            output: None,
            writes: false,
            is_server,
            line: written,
            origin: origin.to_owned(),
        };
        found.starts_something().then_some(found)
    }

    /// Returns true if the command runs a program that a project brings.
    fn starts_something(&self) -> bool {
        let Some((first, rest)) = self.words.split_first() else { return false };
        let is_own = self.is_server
            || first.starts_with("./")
            || SCRIPTS.iter().any(|end| first.ends_with(end));
        is_own
            || RUNNERS.contains(&first.as_str()) && rest.iter().any(|word| !word.starts_with('-'))
    }

    /// Returns the files of the project that the command names.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        let words = self.words.iter().map(String::as_str);
        words.filter(|word| {
            let has_ending = SCRIPTS.iter().any(|end| word.ends_with(end));
            word.starts_with("./") || has_ending && !word.starts_with('-')
        })
    }

    /// Returns how much speaks for the command, the most likely highest.
    pub(super) fn rank(&self) -> usize {
        let line = self.words.join(" ").to_lowercase();
        let signs = AGENT_WORDS.iter().filter(|word| line.contains(**word)).count();
        // A name that sounds like an agent says more than an example of a request.
        2 * signs + usize::from(self.request == RequestBy::Argument)
    }
}

/// Writes a placeholder such as `<question>` as a word that is no redirection.
fn with_placeholders(line: &str) -> String {
    let (mut text, mut rest) = (String::new(), line);
    while let Some((before, behind)) = rest.split_once('<') {
        let inside = behind.split_once('>').filter(|(name, _)| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                && !name.starts_with(' ')
        });
        text += before;
        if let Some((_, after)) = inside {
            // Quoted, because `<name of a file>` is one argument.
            text += "'{prompt}'";
            rest = after;
        } else {
            text.push('<');
            rest = behind;
        }
    }
    text + rest
}

/// Adds `--silent` for package managers whose banner would repeat the request before the answer.
fn silence_package_manager(words: &mut Vec<String>) {
    const OTHER_COMMANDS: &[&str] = &["dlx", "exec", "node", "workspace", "workspaces"];
    let is_run = words.get(1).is_some_and(|word| word == "run");
    let at = match words[0].as_str() {
        "npm" | "pnpm" => 1,
        "yarn" if is_run => 2,
        // Only behind `run` does every version of Yarn take the flag.
        "yarn" if !OTHER_COMMANDS.contains(&words.get(1).map_or("", String::as_str)) => {
            words.insert(1, "run".to_owned());
            2
        }
        _ => return,
    };
    // What follows `--`, or the script's name for other managers than npm, is the script's.
    let is_name = |word: &str| words[0] != "npm" && word != "run" && !word.starts_with('-');
    let mut own = words.iter().skip(1).take_while(|word| *word != "--" && !is_name(word));
    if !own.any(|word| ["-s", "--silent"].contains(&word.as_str())) {
        words.insert(at, "--silent".to_owned());
    }
}

/// Returns the name of the program that `cargo run` starts, which is that of the package if it names
/// none. `None` for other commands.
pub(super) fn program_of_cargo_run<'a>(words: &'a [String], package: &'a str) -> Option<&'a str> {
    if words.first()? != "cargo" || !words.iter().any(|word| word == "run") {
        return None;
    }
    let own = || words.iter().take_while(|word| *word != "--");
    // The package of a workspace usually has the name of its program.
    let named = own().position(|word| ["--bin", "-p", "--package"].contains(&word.as_str()));
    Some(named.and_then(|at| words.get(at + 1)).map_or(package, String::as_str))
}

/// Returns the arguments that `cargo run` hands to its program.
pub(super) fn arguments_of_cargo_run(words: &[String]) -> Vec<String> {
    words.iter().skip_while(|word| *word != "--").skip(1).cloned().collect()
}

/// Reads `NAME=value` before a command.
fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Takes the example of a request out of a command: a sentence or a placeholder as the last argument
/// goes, behind a flag `{prompt}` stands for it. Returns true if there was one.
fn take_request(words: &mut Vec<String>) -> bool {
    let is_request = |word: &str| {
        let folded = word.to_lowercase();
        let placeholder = folded.starts_with(['<', '[', '{']) || folded == "..." || folded == "…";
        // `python agent.py "question"` has lost its quotes here.
        let is_stand_in = STAND_INS.contains(&folded.as_str());
        placeholder || is_stand_in || word.contains(' ') && !word.starts_with('-')
    };
    if words.len() < 2 {
        return false;
    }
    let last = words.len() - 1;
    let Some(at) = words.iter().skip(1).position(|word| is_request(word)).map(|at| at + 1) else {
        return false;
    };
    // The program appends the request as its last argument by itself.
    if at == last && !words[at - 1].starts_with('-') {
        words.pop();
    } else {
        "{prompt}".clone_into(&mut words[at]);
    }
    true
}

/// Returns the commands in the code blocks of a Markdown file, and in code within its sentences.
pub(super) fn of_markdown(file: &str, text: &str) -> Vec<FoundCommand> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for (line, number) in text.lines().take(MAX_LINES).zip(1..) {
        let origin = format!("{file}:{number}");
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
        // Four spaces are a code block as well.
        } else if fenced || line.starts_with("    ") {
            found.extend(FoundCommand::parse(line, &origin));
        } else {
            // Every second part lies between two backticks.
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.filter_map(|span| FoundCommand::parse(span, &origin)));
        }
    }
    found
}

/// Returns the commands of the scripts in a `package.json`, `composer.json` or `deno.json`, which
/// stand at this key.
pub(super) fn of_scripts(file: &str, key: &str, text: &str) -> Vec<FoundCommand> {
    let Ok(manifest) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let scripts = manifest.get(key).and_then(Value::as_object).into_iter().flatten();
    let command = |(name, script): (&String, &Value)| {
        let origin = format!("{file}: {key}.{}", selftest_text::one_line(name, 40));
        // Some have several commands, of which the last answers, and some a description.
        let script = script.get("command").unwrap_or(script);
        let script = script.as_array().and_then(|all| all.last()).unwrap_or(script);
        FoundCommand::parse(script.as_str().filter(|_| is_agent_task(name))?, &origin)
    };
    scripts.take(MAX_LINES).filter_map(command).collect()
}

/// Returns the commands of the tasks in a `Taskfile.yml` that are named like an agent.
pub(super) fn of_taskfile(file: &str, document: &Value) -> Vec<FoundCommand> {
    let tasks = document.get("tasks").and_then(Value::as_object).into_iter().flatten();
    let command = |(name, task): (&String, &Value)| {
        let line = [task, &task["cmd"], &task["cmds"]].into_iter().find_map(|place| {
            let last = place.as_array().and_then(|all| all.last()).unwrap_or(place);
            last.as_str().or_else(|| last.get("cmd")?.as_str())
        });
        let origin = format!("{file}: tasks.{}", selftest_text::one_line(name, 40));
        FoundCommand::parse(line.filter(|_| is_agent_task(name))?, &origin)
    };
    tasks.take(MAX_LINES).filter_map(command).collect()
}

/// Returns true if a script or a target is named like one that starts an agent: others build, lint or
/// test.
fn is_agent_task(name: &str) -> bool {
    ["run", "start"].contains(&name) || AGENT_WORDS.iter().any(|word| name.contains(word))
}

/// Returns the programs that a `pyproject.toml` installs, each as a call of its function.
pub(super) fn of_pyproject(text: &str) -> Vec<FoundCommand> {
    let mut in_scripts = false;
    let mut found = Vec::new();
    for (line, number) in text.lines().take(MAX_LINES).zip(1..) {
        let line = line.trim();
        if line.starts_with('[') {
            in_scripts = line == "[project.scripts]" || line == "[tool.poetry.scripts]";
        } else if in_scripts
            && let Some((_, target)) = line.split_once('=')
            && let Some((module, function)) =
                target.trim().trim_matches(['"', '\'']).split_once(':')
        {
            let is_plain = |text: &str| {
                !text.is_empty()
                    && text.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c))
            };
            // Both become Python code, so nothing but names is taken over.
            if is_plain(module) && is_plain(function) {
                // What pip would install as a script. The project may not be installed here.
                let call = format!("from {module} import {function}; {function}()");
                found.push(FoundCommand {
                    words: vec!["python3".to_owned(), "-c".to_owned(), call],
                    environment: BTreeMap::new(),
                    request: RequestBy::Stdin,
                    output: None,
                    writes: false,
                    is_server: false,
                    line: selftest_text::one_line(line, MAX_QUOTE),
                    origin: format!("pyproject.toml:{number}"),
                });
            }
        }
    }
    found
}

/// Returns the commands of targets in a `Makefile` or `justfile` that are named like an agent.
pub(super) fn of_targets(file: &str, text: &str) -> Vec<FoundCommand> {
    let (mut found, mut is_agent) = (Vec::new(), false);
    for (line, number) in text.lines().take(MAX_LINES).zip(1..) {
        if line.starts_with(['\t', ' ']) {
            // make's `@` hides a line and `-` ignores its exit code.
            let command = line.trim().trim_start_matches(['@', '-']);
            if is_agent {
                found.extend(FoundCommand::parse(command, &format!("{file}:{number}")));
            }
        } else if let Some((target, _)) = line.split_once(':') {
            let target = target.split_whitespace().next().unwrap_or_default();
            is_agent = is_agent_task(target);
        }
    }
    found
}

/// Returns the command that an image starts.
pub(super) fn of_dockerfile(file: &str, text: &str) -> Vec<FoundCommand> {
    let mut folder = String::new();
    let mut found = Vec::new();
    for (line, number) in text.lines().take(MAX_LINES).zip(1..) {
        let Some((word, rest)) = line.trim().split_once(' ') else { continue };
        match word.to_ascii_uppercase().as_str() {
            "WORKDIR" => rest.trim().trim_end_matches('/').clone_into(&mut folder),
            "CMD" | "ENTRYPOINT" => {
                let line = match serde_json::from_str::<Vec<String>>(rest) {
                    // The exec form, `["python3", "agent.py"]`. Anything else is the shell form.
                    Ok(words) => shlex::try_join(words.iter().map(String::as_str)).ok(),
                    Err(_) => Some(rest.to_owned()),
                };
                // Paths inside of the image start with its working folder, into which projects are
                // copied.
                let inside = format!("{folder}/");
                let line = line.map(|line| {
                    if folder.is_empty() { line } else { line.replace(inside.as_str(), "") }
                });
                let origin = format!("{file}:{number}");
                found.extend(line.and_then(|line| FoundCommand::parse(&line, &origin)));
            }
            _ => {}
        }
    }
    found
}

/// Returns the commands of the services in a compose file.
pub(super) fn of_compose(file: &str, document: &Value) -> Vec<FoundCommand> {
    let services = document.get("services").and_then(Value::as_object).into_iter().flatten();
    let command = |(name, service): (&String, &Value)| {
        let line = match service.get("command")? {
            Value::String(line) => line.clone(),
            Value::Array(words) => {
                let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
                shlex::try_join(words?).ok()?
            }
            _ => return None,
        };
        FoundCommand::parse(&line, &format!("{file}: {}", selftest_text::one_line(name, 40)))
    };
    services.take(MAX_LINES).filter_map(command).collect()
}

/// Returns the commands of a `Procfile`.
pub(super) fn of_procfile(text: &str) -> Vec<FoundCommand> {
    let lines = text.lines().take(MAX_LINES).zip(1..);
    let command = |(line, number): (&str, usize)| {
        FoundCommand::parse(line.split_once(':')?.1, &format!("Procfile:{number}"))
    };
    lines.filter_map(command).collect()
}

/// Returns the command for a script of the project that no text names.
pub(super) fn of_script(path: &str) -> Option<FoundCommand> {
    let runner = match path.rsplit_once('.')?.1 {
        "py" => "python3",
        "js" | "mjs" | "cjs" => "node",
        "rb" => "ruby",
        "sh" => "sh",
        _ => return None,
    };
    FoundCommand::parse(&format!("{runner} {path}"), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<(Vec<String>, RequestBy)> {
        FoundCommand::parse(line, "README.md:1").map(|found| (found.words, found.request))
    }

    fn words(line: &str) -> Vec<String> {
        parsed(line).map(|(words, _)| words).unwrap_or_default()
    }

    #[test]
    fn a_command_is_taken_without_its_example_of_a_request() {
        let stdin = |line| (parsed(line).unwrap().0.join(" "), parsed(line).unwrap().1);
        assert_eq!(stdin("$ python3 agent.py"), ("python3 agent.py".to_owned(), RequestBy::Stdin));
        assert_eq!(
            stdin("python agent.py \"What is the port?\""),
            ("python agent.py".to_owned(), RequestBy::Argument)
        );
        assert_eq!(
            stdin("node bin/ask.js --question \"Which port?\" --json"),
            ("node bin/ask.js --question {prompt} --json".to_owned(), RequestBy::Argument)
        );
        assert_eq!(
            stdin("echo \"Which port?\" | ./agent.sh --quiet"),
            ("./agent.sh --quiet".to_owned(), RequestBy::Stdin)
        );
        assert_eq!(
            stdin("cd tools && uv run agent.py <question>"),
            ("uv run agent.py".to_owned(), RequestBy::Argument)
        );
        assert_eq!(
            stdin("python3 agent.py \"question\""),
            ("python3 agent.py".to_owned(), RequestBy::Argument)
        );
        let found = FoundCommand::parse("MODE=plain python3 agent.py", "README.md:1").unwrap();
        assert_eq!(found.environment["MODE"], "plain");
    }

    #[test]
    fn what_installs_tests_or_needs_a_shell_is_left_out() {
        for line in [
            "pip install -r requirements.txt",
            "python3 -m pytest",
            "python -m venv .venv",
            "npm run build",
            "python3 agent.py > out.txt",
            "python3 agent.py $QUESTION; rm -rf x",
            "agent",
            "The agent is python.",
            "node",
            "python3 'unclosed",
            "",
        ] {
            assert_eq!(words(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn every_kind_of_file_names_one() {
        let markdown = "# A\n\n```sh\npip install .\npython3 agent.py\n```\n\nOr `./run-bot.sh`.\n";
        let found = of_markdown("README.md", markdown);
        let origins: Vec<&str> = found.iter().map(|found| found.origin.as_str()).collect();
        assert_eq!(origins, ["README.md:5", "README.md:8"]);
        let package = r#"{"scripts": {"chat": "node chat.js", "test": "node t.js", "n": 3}}"#;
        let scripts = of_scripts("package.json", "scripts", package);
        assert_eq!((scripts.len(), &*scripts[0].words[1]), (1, "chat.js"));
        let composer = r#"{"scripts": {"ask": ["@build", "php bin/console bot:ask"]}}"#;
        let scripts = of_scripts("composer.json", "scripts", composer);
        assert_eq!(scripts[0].words, ["php", "bin/console", "bot:ask"]);
        let tasks = serde_json::json!({"tasks": {
            "ask": {"cmds": ["echo hi", "deno run main.ts {{.CLI_ARGS}}"]}, "build": "go run x.go",
        }});
        let tasks = of_taskfile("Taskfile.yml", &tasks);
        assert_eq!((tasks.len(), tasks[0].request), (1, RequestBy::Argument));
        assert_eq!(tasks[0].words, ["deno", "run", "main.ts"]);
        let project = "[project.scripts]\nhelper = \"helper.cli:main\"\n[x]\na = \"b:c\"\n";
        assert_eq!(of_pyproject(project)[0].words[2], "from helper.cli import main; main()");
        let make = "all:\n\tcargo build\nask:\n\t@python3 ask.py\n";
        assert_eq!(of_targets("Makefile", make)[0].origin, "Makefile:4");
        let image = "FROM x\nWORKDIR /app\nCMD [\"python3\", \"/app/agent.py\"]\n";
        assert_eq!(of_dockerfile("Dockerfile", image)[0].words, ["python3", "agent.py"]);
        let compose =
            serde_json::json!({"services": {"bot": {"command": "node bot.js"}, "db": {}}});
        assert_eq!(of_compose("compose.yaml", &compose)[0].words, ["node", "bot.js"]);
        assert_eq!(of_procfile("worker: python3 bot.py\n")[0].words, ["python3", "bot.py"]);
        assert_eq!(of_script("agent.py").unwrap().words, ["python3", "agent.py"]);
        assert_eq!(of_script("agent.md"), None);
    }

    #[test]
    fn a_built_program_stands_for_the_build() {
        let words = |line: &str| FoundCommand::parse(line, "x").unwrap().words;
        for (line, name, arguments) in [
            ("cargo run --release -- --quiet", Some("ferry"), &["--quiet"][..]),
            ("cargo run --bin ask", Some("ask"), &[]),
            ("cargo run -p ask -- -q <question>", Some("ask"), &["-q", "{prompt}"]),
            ("node cargo run", None, &[]),
        ] {
            let words = words(line);
            assert_eq!(program_of_cargo_run(&words, "ferry"), name, "{line}");
            assert_eq!(arguments_of_cargo_run(&words), arguments, "{line}");
        }
    }

    #[test]
    fn a_server_is_told_from_an_agent() {
        let is_server = |line| FoundCommand::parse(line, "x").map(|found| found.is_server);
        for line in ["uvicorn app.main:app --port 8000", "uv run fastapi run", "langgraph dev"] {
            assert_eq!(is_server(line), Some(true), "{line}");
        }
        assert_eq!(is_server("python3 agent.py"), Some(false));
        assert_eq!(is_server("flask"), Some(true));
    }

    #[test]
    fn package_managers_print_no_banner() {
        let words = |line| FoundCommand::parse(line, "x").unwrap().words.join(" ");
        assert_eq!(words("npm run ask -- \"Which port?\""), "npm --silent run ask -- {prompt}");
        assert_eq!(words("pnpm ask \"Which port?\" --json"), "pnpm --silent ask {prompt} --json");
        assert_eq!(words("npm run --silent ask"), "npm run --silent ask");
        assert_eq!(words("npm -s run ask"), "npm -s run ask");
        assert_eq!(words("npm run ask -- -s"), "npm --silent run ask -- -s");
        assert_eq!(words("pnpm ask -s"), "pnpm --silent ask -s");
        assert_eq!(words("yarn ask"), "yarn run --silent ask");
        assert_eq!(words("yarn run ask"), "yarn run --silent ask");
        assert_eq!(words("yarn node ask.js"), "yarn node ask.js");
    }

    #[test]
    fn an_agent_ranks_before_a_server() {
        let rank = |line| FoundCommand::parse(line, "x").unwrap().rank();
        assert!(rank("python3 agent.py \"Which port is it?\"") > rank("python3 agent.py"));
        assert!(rank("python3 agent.py") > rank("python3 server.py"));
    }
}
