//! Finds the script in a command line such as `python agent.py`. Pure.
//!
//! The program is there even if its script is not, so a missing script would be found only by the
//! first case, and again by every other one.

use std::path::{Path, PathBuf};

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
