//! Explains why a program gave no answer, from what it printed and left behind. Pure.
//!
//! A missing script, as of `python agent.py`, is found before the run: the program is there even if its
//! script is not, so that the first case would fail, and again every other one.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::sut::sut_settings::ProgramProtocol;
use selftest_sandbox::EXIT_NOT_STARTED;
use selftest_text::one_line;

/// Exit code of shells for a file that cannot be executed.
const EXIT_NOT_EXECUTABLE: i32 = 126;

/// The exit of a program that reports success.
const SUCCESS: &str = "exit code 0";

/// What a `json_lines` program should print.
const RESULT_SHAPE: &str =
    r#"print {"type": "result", "status": "COMPLETE", "output": "the answer"} on one line"#;

/// The start of a message of a `json_lines` program.
const MESSAGE: &str = "{\"type\"";

/// What to do about JSON that is not valid, or not on one line.
const ONE_LINE: &str =
    "its JSON is not valid, or not on one line: print each object on a line of its own";

/// Maximum length of quoted text in a hint, in bytes.
const MAX_QUOTE: usize = 80;

/// Maximum number of files that a hint names.
const MAX_FILES: usize = 3;

/// Messages of interpreters about their script.
static NO_SCRIPT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?m)can't open file '.*': \[Errno|Cannot find module '(?:/|[A-Za-z]:\\)|Unable to access jarfile|No such file or directory -- .*\(LoadError\)|Can't open perl script|Could not open input file|Module not found "file:|^(?:sh|bash|dash|zsh)(?:: \d+)?: (?:cannot open|can't open|.*\.(?:sh|bash): No such file)"#,
    )
    .expect("the pattern is a constant, and a test compiles it")
});

static WANTS_TERMINAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:\bnot|isn['’]t) a (?:tty|terminal)\b|\b(?:no|a|an interactive|real|controlling) (?:tty|terminal) (?:is )?(?:required|needed|present|available)|(?:requires?|needs?|wants?|must (?:be )?(?:run|have|be)(?: in| on| from| connected to)?) an? (?:real |interactive )?(?:tty|terminal)|inappropriate ioctl|raw mode is not supported|/dev/tty|setupterm|not (?:an )?interactive|isatty|(?:run|requires?|needs?|use|be) (?:it )?(?:an )?interactive(?:ly)?\b|error opening terminal|no controlling (?:tty|terminal)",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

static INPUT_ENDED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"EOFError|EOF when reading|(?i)unexpected end of (?:input|file)|end of input")
        .expect("the pattern is a constant, and a test compiles it")
});

static MISSING_MODULE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"ModuleNotFoundError|No module named|Cannot find (?:module|package) '|cannot load such file")
        .expect("the pattern is a constant, and a test compiles it")
});

/// Messages of programs that miss an argument.
static WANTS_ARGUMENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?im)^usage:|(?:missing|required) (?:required )?(?:arguments?|operand)|arguments? (?:is|are|was|were) (?:required|not provided)",
    )
    .expect("the pattern is a constant, and a test compiles it")
});

/// Names of variables with a key, in messages about one that is not there.
static KEY_VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET|PAT|CREDENTIALS)\b")
        .expect("the pattern is a constant, and a test compiles it")
});

/// A line of a `json_lines` program that is no usable result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OddLine {
    /// A result, without an answer or with wrong members.
    Result,
    /// A result whose answer ends within its thinking.
    Unfinished,
    /// JSON without a `type`.
    Untyped,
    /// The start of JSON, and no JSON.
    Broken,
    /// Plain text.
    Text,
}

impl OddLine {
    /// Classifies a line that is no message.
    pub(super) fn of(line: &str, value: Option<&serde_json::Value>) -> Self {
        match value {
            Some(value) if value.is_object() => Self::Untyped,
            None if line.trim_start().starts_with(['{', '[']) => Self::Broken,
            _ => Self::Text,
        }
    }
}

/// What is known of a program that gave no answer.
#[derive(Debug, Clone, Default)]
pub(super) struct ProgramTrace<'a> {
    /// Its protocol; `None` for an agent of the Agent Client Protocol.
    pub(super) protocol: Option<ProgramProtocol>,
    /// True if it gets its prompt as an argument.
    pub(super) is_prompt_argument: bool,
    /// The line that ended the turn of a `json_lines` program.
    pub(super) odd_line: Option<OddLine>,
    /// What it wrote to stdout that is no message.
    pub(super) printed: &'a str,
    /// Its stderr, bounded.
    pub(super) stderr: &'a str,
    /// Its exit, if it has ended by itself.
    pub(super) exit: Option<&'a str>,
    /// Files that it wrote.
    pub(super) files: &'a [String],
    /// Name of the section of its settings.
    pub(super) section: &'a str,
}

/// Returns true if a program ended because it could not be started at all: no case can succeed.
pub(super) fn could_not_start(code: Option<i32>, stderr: &str) -> bool {
    let by_code = [i32::from(EXIT_NOT_STARTED), EXIT_NOT_EXECUTABLE];
    code.is_some_and(|code| code != 0 && (by_code.contains(&code) || NO_SCRIPT.is_match(stderr)))
}

/// Returns one thing that the user can do.
pub(super) fn hint(trace: &ProgramTrace<'_>) -> Option<String> {
    let section = trace.section;
    let printed = trace.printed.trim();
    let is_text = trace.protocol == Some(ProgramProtocol::Text);
    let is_json = trace.protocol == Some(ProgramProtocol::JsonLines);
    let has_exited = trace.exit.is_some();
    let quote = || one_line(&last_line(trace.printed), MAX_QUOTE);
    // From the surest sign to the weakest: messages that name the cause come before what the
    // protocol and an empty output suggest.
    if [trace.stderr, trace.printed].iter().any(|text| WANTS_TERMINAL.is_match(text)) {
        return Some(format!(
            "it wants a terminal, and has none here: start it in its mode for scripts (often `-p`, \
             `exec` or `--print`) in {section}.run, or by the Agent Client Protocol (sut.acp)"
        ));
    }
    if MISSING_MODULE.is_match(trace.stderr) {
        return Some(
            "install what it imports where the sandbox can read it, or run it by the interpreter of \
             its own environment (.venv/bin/python)"
                .to_owned(),
        );
    }
    // Programs name their key only to say that it is not there, or not right.
    let key = [trace.stderr, trace.printed].iter().find_map(|text| KEY_VARIABLE.find(text));
    if let Some(key) = key.filter(|_| trace.exit.is_some_and(|exit| exit != SUCCESS)) {
        return Some(format!(
            "no variable reaches it but those of {section}.pass_environment: name {key} there, and \
             the server that it asks in {section}.addresses, as host:443",
            key = key.as_str()
        ));
    }
    match trace.odd_line {
        Some(OddLine::Result | OddLine::Untyped) => return Some(RESULT_SHAPE.to_owned()),
        Some(OddLine::Broken) => return Some(ONE_LINE.to_owned()),
        // The reason says it all.
        Some(OddLine::Unfinished) => return None,
        Some(OddLine::Text) | None => {}
    }
    if !trace.files.is_empty() && printed.is_empty() {
        let names: Vec<String> = trace
            .files
            .iter()
            .take(MAX_FILES)
            .map(|name| format!("`{}`", one_line(name, MAX_QUOTE)))
            .collect();
        return Some(format!(
            "it wrote {}, and nothing to stdout: let it print its answer, or test the file by checks \
             such as file_contains",
            names.join(", ")
        ));
    }
    // Of a program that has ended without success, its input may have ended first.
    let is_waiting = asks_for_input(trace.printed) && trace.exit != Some(SUCCESS);
    if INPUT_ENDED.is_match(trace.stderr) || is_waiting {
        let what = if printed.is_empty() {
            "it asks for more input after the prompt".to_owned()
        } else {
            format!("it printed `{}` and waits for more input", quote())
        };
        let way = match trace.protocol {
            Some(ProgramProtocol::JsonLines) => "; for plain text set sut.command.protocol: text",
            Some(ProgramProtocol::Text) if !trace.is_prompt_argument => {
                "; sut.command.prompt_input: argument hands it the prompt as an argument"
            }
            Some(ProgramProtocol::Text) | None => "",
        };
        return Some(format!("{what}: start it in its mode for a single question{way}"));
    }
    if is_json && !printed.is_empty() && !printed.starts_with(MESSAGE) {
        if printed.contains(MESSAGE) {
            return Some("it prints other lines beside its JSON: write them to stderr".to_owned());
        }
        return Some(format!(
            "it prints plain text (`{}`): set sut.command.protocol: text, or print one JSON object \
             per line",
            quote()
        ));
    }
    if is_text
        && has_exited
        && !trace.is_prompt_argument
        && [trace.stderr, trace.printed].iter().any(|text| WANTS_ARGUMENT.is_match(text))
    {
        return Some(
            "it wants arguments: sut.command.prompt_input: argument hands it the prompt as its last \
             one"
            .to_owned(),
        );
    }
    if is_text && has_exited && !printed.is_empty() {
        return Some(format!(
            "it had printed `{}`, which does not count, because its exit code is not 0",
            quote()
        ));
    }
    if is_text && trace.exit == Some(SUCCESS) && printed.is_empty() && !trace.stderr.is_empty() {
        return Some("it wrote to stderr alone: let it print its answer to stdout".to_owned());
    }
    if !has_exited && printed.is_empty() {
        return Some(match trace.protocol {
            Some(ProgramProtocol::Text) if trace.is_prompt_argument => {
                "it printed nothing: if it is slow, raise timeout_seconds".to_owned()
            }
            Some(ProgramProtocol::JsonLines) => "it printed nothing: if it reads its input to the \
                 end, or speaks plain text, set sut.command.protocol: text; if it is slow, raise \
                 timeout_seconds"
                .to_owned(),
            Some(ProgramProtocol::Text) => "it printed nothing: if it takes its prompt as an \
                 argument, set sut.command.prompt_input: argument; if it is slow, raise \
                 timeout_seconds"
                .to_owned(),
            None => format!(
                "it sent no message: is {section}.run its mode for the Agent Client Protocol? if it \
                 is slow, raise timeout_seconds"
            ),
        });
    }
    None
}

/// Returns true if a text ends like the prompt of a program that reads a line.
fn asks_for_input(printed: &str) -> bool {
    let last = last_line(printed);
    // A program that reads a line leaves the cursor behind its question. JSON is no question.
    !printed.ends_with('\n')
        && last.trim_end().ends_with(['>', ':', '?', '$', '#', '»', '❯', '›', '？', '：'])
        && !last.trim_start().starts_with('{')
}

fn last_line(text: &str) -> String {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned()
}

/// How an interpreter takes its script.
struct Interpreter {
    /// Names, without a version.
    names: &'static [&'static str],
    /// Options that take the next argument as their value.
    with_value: &'static [&'static str],
    /// Options after which there is no script.
    instead: &'static [&'static str],
    /// Endings that a script may leave out.
    endings: &'static [&'static str],
    /// True if an argument without an ending or a slash may be something else, such as a task.
    needs_ending: bool,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["python", "pypy"],
        with_value: &["-W", "-X", "--check-hash-based-pycs"],
        instead: &["-c", "-m", "-V", "--version", "-h", "--help"],
        endings: &[],
        needs_ending: false,
    },
    Interpreter {
        names: &["node", "nodejs", "tsx", "ts-node"],
        with_value: &["-r", "--require", "--import", "--loader", "-C", "--conditions"],
        instead: &["-e", "--eval", "-p", "--print", "-v", "--version", "--test", "--run"],
        endings: &[".js", ".mjs", ".cjs", ".ts", ".json", ".node"],
        needs_ending: false,
    },
    Interpreter {
        names: &["bun", "deno"],
        with_value: &["-r", "--preload", "--config", "-c", "--import-map"],
        instead: &["-e", "--eval", "-p", "--print", "x", "exec", "task", "eval", "repl", "test"],
        endings: &[],
        needs_ending: true,
    },
    Interpreter {
        names: &["ruby"],
        with_value: &["-I", "-r", "-E", "-C"],
        instead: &["-e", "-S", "-v", "--version"],
        endings: &[],
        needs_ending: false,
    },
    Interpreter {
        names: &["perl", "php", "Rscript", "lua", "julia"],
        with_value: &["-I", "-d", "-c"],
        instead: &["-e", "-E", "-r", "-v", "-S", "--version"],
        endings: &[],
        needs_ending: false,
    },
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh"],
        with_value: &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"],
        instead: &["-c", "-s"],
        endings: &[],
        needs_ending: true,
    },
    Interpreter {
        names: &["java"],
        with_value: &["-cp", "-classpath", "--class-path", "-p", "--module-path"],
        instead: &["-m", "--module", "-version", "--version"],
        endings: &[],
        needs_ending: true,
    },
];

/// Programs that start another one, with their own options and values before it.
const WRAPPERS: [&str; 16] = [
    "env", "nice", "nohup", "time", "timeout", "stdbuf", "uv", "poetry", "pdm", "pipenv", "rye",
    "hatch", "bundle", "npx", "bunx", "pnpx",
];

/// Endings of scripts.
const SCRIPT_ENDINGS: [&str; 17] = [
    ".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".rb", ".pl", ".php", ".sh",
    ".bash", ".lua", ".jl", ".jar", ".R",
];

/// Returns the script that a command line names and the project does not have, or `None` if there
/// is no script, or if it cannot be told.
pub(super) fn missing_script(run: &[String], project: &Path) -> Option<PathBuf> {
    let (script, endings) = script(run)?;
    let path = project.join(script);
    let exists = |ending: &&str| {
        let mut name = path.clone().into_os_string();
        name.push(ending);
        Path::new(&name).exists()
    };
    let is_there = path.exists() || endings.iter().any(exists);
    (!is_there).then_some(path)
}

/// Returns the script in a command line, with the endings that it may leave out.
fn script(run: &[String]) -> Option<(&str, &'static [&'static str])> {
    let (program, arguments) = run.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    if WRAPPERS.contains(&name) {
        return script_of_wrapped(arguments);
    }
    // Interpreters are installed under names with a version, such as `python3.12`.
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let interpreter = INTERPRETERS.iter().find(|it| it.names.contains(&bare))?;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let argument = argument.as_str();
        if interpreter.instead.contains(&argument) {
            return None;
        } else if interpreter.with_value.contains(&argument) {
            rest.next();
        } else if argument == "-jar" {
            return rest.next().map(|jar| (jar.as_str(), interpreter.endings));
        } else if argument == "-" {
            return None;
        } else if !argument.starts_with('-') {
            // The subcommand of bun and deno.
            if argument == "run" && interpreter.needs_ending {
                continue;
            }
            let is_script = !interpreter.needs_ending || has_ending(argument);
            // Placeholders, variables and patterns are resolved only when the program starts.
            let is_fixed = !argument.contains(['{', '$', '*']);
            return (is_script && is_fixed).then_some((argument, interpreter.endings));
        } else if argument.len() > 2
            && !argument.starts_with("--")
            && interpreter
                .instead
                .iter()
                .any(|option| argument.ends_with(&option[1..]) && option.len() == 2)
        {
            // Options written together, such as `sh -ec` or `perl -ne`.
            return None;
        }
    }
    None
}

/// Returns the script in the arguments of a wrapper.
fn script_of_wrapped(arguments: &[String]) -> Option<(&str, &'static [&'static str])> {
    // Besides options, `env` takes assignments, and `timeout 30` and `nice -n 5` take numbers.
    let is_own = |argument: &String| {
        argument.starts_with('-')
            || argument.contains('=')
            || ["run", "exec"].contains(&argument.as_str())
            || argument.starts_with(|c: char| c.is_ascii_digit())
    };
    let at = arguments.iter().position(|argument| !is_own(argument))?;
    let inner = &arguments[at..];
    if has_ending(&inner[0]) && !inner[0].contains(['{', '$', '*']) {
        return Some((&inner[0], &[]));
    }
    script(inner)
}

fn has_ending(argument: &str) -> bool {
    SCRIPT_ENDINGS.iter().any(|ending| argument.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_could_not_start_are_told_from_those_that_failed() {
        for (code, stderr, expected) in [
            (Some(127), "sh: agent: not found", true),
            (Some(126), "", true),
            (
                Some(2),
                "python3: can't open file '/p/agent.py': [Errno 2] No such file or directory",
                true,
            ),
            (Some(1), "Error: Cannot find module '/p/agent.js'", true),
            (Some(1), "Error: Unable to access jarfile agent.jar", true),
            (Some(2), "sh: 0: cannot open agent.sh: No such file", true),
            (Some(1), "Could not open input file: agent.php", true),
            (Some(1), "Error: Cannot find module 'express'", false),
            (Some(1), "ModuleNotFoundError: No module named 'x'", false),
            (Some(1), "FileNotFoundError: [Errno 2] No such file or directory: 'x'", false),
            (Some(0), "can't open file 'x': [Errno 2]", false),
            (None, "", false),
        ] {
            assert_eq!(could_not_start(code, stderr), expected, "{code:?} {stderr}");
        }
    }

    #[test]
    fn each_odd_program_gets_its_hint() {
        const JSON: Option<ProgramProtocol> = Some(ProgramProtocol::JsonLines);
        const TEXT: Option<ProgramProtocol> = Some(ProgramProtocol::Text);
        let wrote = ["answer.txt".to_owned()];
        let trace = |protocol, printed, stderr, exit| ProgramTrace {
            protocol,
            printed,
            stderr,
            exit,
            section: "sut.command",
            ..ProgramTrace::default()
        };
        let line =
            |odd_line| ProgramTrace { odd_line: Some(odd_line), ..trace(JSON, "{", "", None) };
        let argument = |trace| ProgramTrace { is_prompt_argument: true, ..trace };
        let failed = Some("exit code 1");
        for (trace, words) in [
            (trace(TEXT, "", "Error: stdin is not a terminal", failed), "it wants a terminal"),
            (trace(TEXT, "", "the input device is not a TTY", failed), "it wants a terminal"),
            (trace(TEXT, "", "this program requires a TTY", failed), "it wants a terminal"),
            (
                trace(JSON, "Raw mode is not supported on the current process.stdin", "", None),
                "it wants a terminal",
            ),
            (trace(TEXT, "", "open /dev/tty: no such device", failed), "it wants a terminal"),
            (trace(TEXT, "You: ", "", None), "printed `You:` and waits for more input"),
            (trace(TEXT, "", "EOFError: EOF when reading a line", failed), "asks for more input"),
            (trace(TEXT, "You: Hi.\nYou: ", "", Some("exit code 13")), "waits for more input"),
            (
                trace(TEXT, "", "Error: set the OPENAI_API_KEY environment variable", failed),
                "name OPENAI_API_KEY there",
            ),
            (trace(JSON, "", "KeyError: 'GITHUB_TOKEN'", failed), "name GITHUB_TOKEN there"),
            (trace(JSON, "You: ", "", None), "sut.command.protocol: text"),
            (
                trace(JSON, "Hello, I am an agent.\n", "", None),
                "it prints plain text (`Hello, I am",
            ),
            (trace(JSON, "starting{\"type\": \"result\"}", "", None), "beside its JSON"),
            (trace(TEXT, "half", "", Some("exit code 3")), "`half`, which does not count"),
            (trace(TEXT, "", "", None), "prompt_input: argument"),
            (trace(JSON, "", "", None), "it printed nothing"),
            (trace(None, "", "", None), "Agent Client Protocol"),
            (argument(trace(TEXT, "", "", None)), "it is slow"),
            (trace(TEXT, "", "usage: bot PROMPT", Some("exit code 2")), "it wants arguments"),
            (trace(TEXT, "", "At 9.", Some("exit code 0")), "to stderr alone"),
            (line(OddLine::Result), r#"{"type": "result""#),
            (line(OddLine::Untyped), r#"{"type": "result""#),
            (line(OddLine::Broken), "not on one line"),
            (line(OddLine::Text), "it prints plain text"),
            (trace(TEXT, "", "ModuleNotFoundError: No module named 'x'", failed), "install"),
            (
                ProgramTrace { files: &wrote, ..trace(TEXT, "", "", Some("exit code 0")) },
                "it wrote `answer.txt`, and nothing to stdout",
            ),
        ] {
            let hint = hint(&trace).unwrap_or_default();
            assert!(hint.contains(words), "{trace:?}: {hint}");
        }
        assert_eq!(hint(&trace(JSON, "", "cannot find my model", failed)), None);
        let usage = argument(trace(TEXT, "", "usage: bot", Some("exit code 2")));
        assert_eq!(hint(&usage), None, "it got its argument");
        let object = serde_json::json!({ "status": "COMPLETE" });
        assert_eq!(OddLine::of("{\"status\": …}", Some(&object)), OddLine::Untyped);
        assert_eq!(OddLine::of("{", None), OddLine::Broken);
        assert_eq!(OddLine::of("At 9.", None), OddLine::Text);
        assert_eq!(OddLine::of("9", Some(&serde_json::json!(9))), OddLine::Text);
    }

    fn found(line: &str) -> Option<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        script(&words).map(|(script, _)| script.to_owned())
    }

    #[test]
    fn scripts_are_found_behind_their_interpreters() {
        for (line, expected) in [
            ("python agent.py", Some("agent.py")),
            ("python3 -u agent.py --fast x.py", Some("agent.py")),
            ("/usr/bin/python3.12 -X dev -W ignore src/agent.py", Some("src/agent.py")),
            ("python agent", Some("agent")),
            ("python -m agent", None),
            ("python3 -c print(1)", None),
            ("python -", None),
            ("node agent.js", Some("agent.js")),
            ("node --require ./x.js dist/agent", Some("dist/agent")),
            ("node -e 1", None),
            ("deno run --allow-net agent.ts", Some("agent.ts")),
            ("bun run start", None),
            ("bash agent.sh", Some("agent.sh")),
            ("sh -c agent.sh", None),
            ("bash -ec agent.sh", None),
            ("ruby -Ilib agent.rb", Some("agent.rb")),
            ("perl -ne print agent.pl", None),
            ("java -jar agent.jar", Some("agent.jar")),
            ("java -cp lib com.example.Agent", None),
            ("env A=b python agent.py", Some("agent.py")),
            ("uv run agent.py", Some("agent.py")),
            ("uv run --quiet python agent.py", Some("agent.py")),
            ("poetry run python -m agent", None),
            ("timeout 10 node agent.mjs", Some("agent.mjs")),
            ("npx tsx agent.ts", Some("agent.ts")),
            ("npx some-agent", None),
            ("./agent.py", None),
            ("my-agent agent.py", None),
            ("python {prompt}", None),
        ] {
            assert_eq!(found(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn only_missing_scripts_are_named() {
        let project = tempfile::tempdir().unwrap();
        std::fs::write(project.path().join("agent.py"), "").unwrap();
        std::fs::write(project.path().join("agent.js"), "").unwrap();
        let missing = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            missing_script(&words, project.path())
        };
        assert_eq!(missing("python agent.py"), None);
        assert_eq!(missing("node agent"), None);
        assert_eq!(missing("node agent.mjs"), Some(project.path().join("agent.mjs")));
        assert_eq!(missing("python /nowhere/agent.py"), Some("/nowhere/agent.py".into()));
        assert_eq!(missing("cat x.py"), None);
    }
}
