//! Parses shell commands for steps that affect the outcome: checks, file changes and merges. Output
//! is not considered.

mod search;
mod selection;

use std::borrow::Cow;
use std::ops::Range;

pub(super) use search::{ends_with_search, says_nothing_found};
use selection::{check_targets, selects_by_variable, selects_part};

/// Kind of check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShellCheckKind {
    Tests,
    Build,
    Lint,
    Ci,
}

/// A check run by a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellCheck {
    pub(super) kind: ShellCheckKind,
    /// Base name of the program that runs it, such as `pytest` or `npm`.
    pub(super) program: String,
    /// Files and folders to which the check is limited.
    pub(super) targets: Vec<String>,
    /// True if the command selects a part of the tests: by file, name, package or group.
    pub(super) is_part: bool,
    /// True if the command's exit code 0 means that the check passed. Not the case before a pipe,
    /// `;` or `||`.
    pub(super) exit_code_is_reliable: bool,
    /// True if a nonzero exit code can only be the check's: at most pipes follow.
    pub(super) is_last: bool,
}

/// A relevant step of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandStep {
    Check(ShellCheck),
    /// These files are written, wherever they are. A file of the project also is a change.
    Write(Vec<String>),
    /// These files are deleted, and nothing else is done to the project.
    Delete(Vec<String>),
    /// Files are changed.
    Change,
    /// The work is merged.
    Merge,
}

/// Operator between two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellOperator {
    And,
    Or,
    Pipe,
    Then,
}

/// A simple command and the operator after it.
struct SimpleCommand<'a> {
    words: Vec<Cow<'a, str>>,
    /// Files that its output is redirected to.
    outputs: Vec<Cow<'a, str>>,
    next: ShellOperator,
}

/// Maximum number of bytes of a command to parse.
const MAX_LOOKED_AT: usize = 8 * 1024;
/// Maximum number of simple commands to parse.
const MAX_SEGMENTS: usize = 64;
/// File extension of shell scripts.
const SCRIPT: &str = ".sh";

/// Returns the relevant steps of a command, in order.
pub(super) fn parse_steps(command: &str) -> Vec<CommandStep> {
    let command = &command[..command.floor_char_boundary(MAX_LOOKED_AT)];
    let segments = split_commands(command);
    let keeps_pipe_codes = command.contains("pipefail");
    let mut steps = Vec::new();
    // Saving the output of a check to a file does not count as a change.
    let mut is_printed = false;
    for (at, segment) in segments.iter().enumerate() {
        is_printed &= segments[at - usize::from(at > 0)].next == ShellOperator::Pipe;
        let words = without_wrappers(&segment.words);
        let later = &segments[at..segments.len() - 1];
        // The exit code survives `&&` and, with pipefail, a pipe.
        let behind = later.iter().all(|one| match one.next {
            ShellOperator::And => true,
            ShellOperator::Pipe => keeps_pipe_codes,
            ShellOperator::Or | ShellOperator::Then => false,
        });
        // After `||` the command may not have run at all.
        let is_alternative = at > 0 && segments[at - 1].next == ShellOperator::Or;
        if let Some(kind) = check_kind(words) {
            let variables = segment.words.iter().take_while(|word| is_assignment(word));
            steps.push(CommandStep::Check(ShellCheck {
                kind,
                program: program_name(words).to_owned(),
                targets: check_targets(words),
                is_part: selects_part(words)
                    || variables.clone().any(|word| selects_by_variable(word)),
                exit_code_is_reliable: behind && !is_alternative,
                is_last: later.iter().all(|one| one.next == ShellOperator::Pipe),
            }));
            is_printed = true;
        } else if is_merge(words) {
            if behind && !is_alternative {
                steps.push(CommandStep::Merge);
            }
        } else if !is_printed {
            let outputs = written_files(words, segment);
            if !outputs.is_empty() {
                steps.push(CommandStep::Write(outputs));
            }
            if let Some(deleted) = deleted_files(words) {
                if deleted.iter().any(|path| affects_tests(path)) {
                    steps.push(CommandStep::Delete(deleted));
                }
            } else if changes_files(words, &segment.words)
                || segment.outputs.iter().any(|path| affects_tests(path))
            {
                steps.push(CommandStep::Change);
            }
        }
    }
    steps
}

/// Returns the files that a command writes by redirecting its output, or with `tee` or `touch`.
fn written_files(words: &[Cow<'_, str>], segment: &SimpleCommand<'_>) -> Vec<String> {
    const MAX: usize = 20;
    let outputs = segment.outputs.iter();
    let is_writer = matches!(program_name(words), "tee" | "touch");
    let named = words.iter().skip(1).filter(|word| is_writer && !word.starts_with('-'));
    let is_file = |path: &&Cow<'_, str>| !path.is_empty() && !path.starts_with("/dev/");
    outputs.chain(named).filter(is_file).take(MAX).map(|path| path.clone().into_owned()).collect()
}

/// Returns the files that `rm` deletes, or `None` for any other command and for whole folders and
/// patterns.
fn deleted_files(words: &[Cow<'_, str>]) -> Option<Vec<String>> {
    let paths = || words.iter().skip(1).filter(|word| !word.starts_with('-'));
    let is_file = |path: &Cow<'_, str>| {
        !path.contains(['*', '?', '$']) && base_name(path).contains('.') && !path.ends_with('/')
    };
    (program_name(words) == "rm" && paths().next().is_some() && paths().all(is_file))
        .then(|| paths().map(|path| path.clone().into_owned()).collect())
}

/// Returns the base name of the program.
fn program_name<'w>(words: &'w [Cow<'_, str>]) -> &'w str {
    base_name(words.first().map_or("", |word| &**word)).trim_end_matches(".exe")
}

/// Returns true if changing this file can affect test results. Notes, logs and files outside the
/// project cannot.
pub(super) fn affects_tests(path: &str) -> bool {
    const ELSEWHERE: [&str; 5] = ["/dev/", "/tmp/", "/var/tmp/", "/private/tmp/", "/proc/"];
    const NOTES: [&str; 7] = ["md", "mdx", "rst", "adoc", "log", "out", "patch"];
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    !path.is_empty()
        && !path.starts_with('&')
        && !ELSEWHERE.iter().any(|beginning| path.starts_with(beginning))
        && !path.contains("/.claude/")
        && !NOTES.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

/// Splits a command at `&&`, `||`, `|`, `;` and newlines outside of quotes. Skips the text of
/// here-documents.
fn split_commands(command: &str) -> Vec<SimpleCommand<'_>> {
    let mut found = Vec::new();
    let mut now =
        SimpleCommand { words: Vec::new(), outputs: Vec::new(), next: ShellOperator::Then };
    let (mut word, mut has_word, mut quote) = (ShellWord::new(command), false, None::<char>);
    let mut redirects = false;
    let mut chars = CharCursor { text: command, at: 0 };
    let mut heredocs: Vec<String> = Vec::new();
    while let Some((at, c)) = chars.next() {
        if let Some(open) = quote {
            if c == open {
                quote = None;
            } else if c == '\\' && open == '"' {
                if let Some((at, _)) = chars.next() {
                    word.push(at..chars.at);
                }
            } else {
                chars.skip_while(|byte| byte != b'\\' && byte != b'"' && byte != b'\'');
                word.push(at..chars.at);
            }
            continue;
        }
        let link = match c {
            '\'' | '"' => {
                quote = Some(c);
                has_word = true;
                continue;
            }
            '\\' => {
                // A backslash before a newline continues the line.
                if let Some((at, escaped)) = chars.next()
                    && escaped != '\n'
                {
                    word.push(at..chars.at);
                    has_word = true;
                }
                continue;
            }
            // `#` starts a comment only at the start of a word.
            '#' if !has_word => {
                chars.skip_while(|byte| byte != b'\n');
                continue;
            }
            '<' if chars.rest().starts_with("<<") => {
                // A here-string; its text is parsed as an ordinary word.
                chars.at += 2;
                None
            }
            '<' if chars.rest().starts_with('<') && !is_arithmetic(&command[..at]) => {
                // The operator may be `<<-`, and the name may be quoted.
                let rest = command[at + 2..].trim_start_matches('-').trim_start();
                let end = rest.find(|c: char| c.is_whitespace() || ";|&)>".contains(c));
                let name = rest[..end.unwrap_or(rest.len())].trim_matches(['\'', '"', '\\']);
                heredocs.push(name.to_owned());
                chars.at = command.len() - rest.len() + end.unwrap_or(rest.len());
                continue;
            }
            '>' => {
                // Handles `2>&1` and `>>`.
                let before = word.take();
                // A number right before `>` is a file descriptor, not a word.
                if has_word && !before.bytes().all(|byte| byte.is_ascii_digit()) {
                    now.words.push(before);
                }
                has_word = false;
                chars.skip_while(|byte| byte == b'>' || byte == b'|');
                // `>&1` duplicates a descriptor, so there is no file.
                if chars.next_if('&') {
                    chars.skip_while(|byte| byte.is_ascii_digit() || byte == b'-');
                } else {
                    redirects = true;
                }
                continue;
            }
            '&' if chars.next_if('&') => Some(ShellOperator::And),
            // `&>` redirects both streams.
            '&' if chars.rest().starts_with('>') => continue,
            '|' if chars.next_if('|') => Some(ShellOperator::Or),
            '|' => Some(ShellOperator::Pipe),
            '&' | ';' | '\n' => Some(ShellOperator::Then),
            // Grouped commands are read as if they were not grouped.
            '(' | ')' | '{' | '}' if !has_word => None,
            c if c.is_whitespace() => None,
            _ => {
                chars.skip_while(is_plain);
                word.push(at..chars.at);
                has_word = true;
                continue;
            }
        };
        if has_word {
            let word = word.take();
            if std::mem::take(&mut redirects) {
                now.outputs.push(word);
            } else {
                now.words.push(word);
            }
            has_word = false;
        }
        // A here-document starts on the next line, after the rest of its command.
        if c == '\n' {
            for name in heredocs.drain(..) {
                skip_heredoc(&name, &mut chars);
            }
        }
        if let Some(link) = link
            && !(now.words.is_empty() && now.outputs.is_empty())
        {
            let next =
                SimpleCommand { words: Vec::new(), outputs: Vec::new(), next: ShellOperator::Then };
            found.push(SimpleCommand { next: link, ..std::mem::replace(&mut now, next) });
            if found.len() >= MAX_SEGMENTS {
                return found;
            }
        }
    }
    if has_word {
        let into = if redirects { &mut now.outputs } else { &mut now.words };
        into.push(word.take());
    }
    if !(now.words.is_empty() && now.outputs.is_empty()) {
        found.push(now);
    }
    found
}

/// Returns true inside `$((…))`, where `<<` is a shift operator.
fn is_arithmetic(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or(before);
    line.rfind("((") > line.rfind("))")
}

/// Cursor over the characters of a command.
struct CharCursor<'a> {
    text: &'a str,
    /// Byte offset of the next character.
    at: usize,
}

impl<'a> CharCursor<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<(usize, char)> {
        let (at, c) = (self.at, self.rest().chars().next()?);
        self.at += c.len_utf8();
        Some((at, c))
    }

    /// Skips the next character if it equals `c`.
    fn next_if(&mut self, c: char) -> bool {
        let is_next = self.rest().starts_with(c);
        self.at += usize::from(is_next);
        is_next
    }

    /// Skips bytes that match. To stay on character boundaries, the predicate must treat all
    /// non-ASCII bytes alike.
    fn skip_while(&mut self, skips: impl Fn(u8) -> bool) {
        self.at += self.rest().bytes().take_while(|byte| skips(*byte)).count();
    }
}

/// Returns true for a byte without special meaning to a shell.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(
            byte,
            b'\''
                | b'"'
                | b'\\'
                | b'#'
                | b'<'
                | b'>'
                | b'&'
                | b'|'
                | b';'
                | b'('
                | b')'
                | b'{'
                | b'}'
        )
}

/// A word being parsed. It borrows from the command unless quotes or escapes inside it force a
/// copy.
struct ShellWord<'a> {
    command: &'a str,
    from: usize,
    to: usize,
    /// Copy of the word, if it is not a contiguous part of the command.
    owned: Option<String>,
}

impl<'a> ShellWord<'a> {
    fn new(command: &'a str) -> Self {
        Self { command, from: 0, to: 0, owned: None }
    }

    /// Appends a range of the command.
    fn push(&mut self, part: Range<usize>) {
        if let Some(owned) = &mut self.owned {
            owned.push_str(&self.command[part]);
            return;
        }
        if self.from == self.to {
            self.from = part.start;
        } else if part.start != self.to {
            self.owned = Some([&self.command[self.from..self.to], &self.command[part]].concat());
            return;
        }
        self.to = part.end;
    }

    /// Returns the word and starts a new one.
    fn take(&mut self) -> Cow<'a, str> {
        let whole = std::mem::replace(self, Self::new(self.command));
        whole.owned.map_or(Cow::Borrowed(&whole.command[whole.from..whole.to]), Cow::Owned)
    }
}

/// Moves past the line that ends a here-document.
fn skip_heredoc(name: &str, chars: &mut CharCursor<'_>) {
    for line in chars.rest().split_inclusive('\n') {
        chars.at += line.len();
        // `<<-` allows tabs before the name at the end.
        if line.trim() == name {
            break;
        }
    }
}

/// Returns the words from the actual program on, skipping assignments and wrappers such as `sudo`
/// or `npx`.
fn without_wrappers<'w, 'a>(words: &'w [Cow<'a, str>]) -> &'w [Cow<'a, str>] {
    let mut words = words;
    loop {
        let first = words.first().map_or("", |word| &**word);
        let second = words.get(1).map_or("", |word| &**word);
        let skipped = match (base_name(first), second) {
            // A variable assignment before the command.
            _ if is_assignment(first) => 1,
            (
                "sudo" | "env" | "time" | "command" | "exec" | "nohup" | "xvfb-run" | "npx"
                | "bunx" | "if" | "then" | "do" | "!",
                _,
            ) => 1,
            ("poetry" | "uv" | "pipenv" | "hatch" | "rye" | "pdm" | "pixi", "run")
            | ("pnpm" | "npm" | "yarn", "exec" | "dlx")
            | ("bundle" | "mise", "exec") => 2,
            // Followed by flags and a duration or priority.
            ("timeout" | "nice" | "gtimeout", _) => {
                1 + words[1..]
                    .iter()
                    .take_while(|word| {
                        word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit())
                    })
                    .count()
            }
            // `docker exec FLAGS CONTAINER`, then the command.
            ("docker" | "podman", "exec") => 3 + container_flags(&words[2..]),
            // `docker compose FLAGS exec FLAGS SERVICE`, then the command.
            ("docker" | "podman", "compose") | ("docker-compose", _) => {
                let from = if first.ends_with("-compose") { 1 } else { 2 };
                let verb = from + container_flags(&words[from..]);
                if !words.get(verb).is_some_and(|word| matches!(&**word, "exec" | "run")) {
                    return words;
                }
                verb + 2 + container_flags(&words[verb + 1..])
            }
            _ => return words,
        };
        words = words.get(skipped..).unwrap_or_default();
        // Flags of the wrapper.
        while words.first().is_some_and(|word| word.starts_with('-')) {
            words = &words[1..];
        }
    }
}

/// Counts the leading words that are flags of Docker, including their values.
fn container_flags(words: &[Cow<'_, str>]) -> usize {
    const WITH_VALUES: [&str; 23] = [
        "-u",
        "-w",
        "-e",
        "-v",
        "-f",
        "-p",
        "-l",
        "--user",
        "--workdir",
        "--env",
        "--env-file",
        "--volume",
        "--file",
        "--project-name",
        "--project-directory",
        "--profile",
        "--publish",
        "--name",
        "--entrypoint",
        "--label",
        "--index",
        "--detach-keys",
        "--ansi",
    ];
    let mut count = 0;
    while let Some(flag) = words.get(count).filter(|word| word.starts_with('-')) {
        count += if WITH_VALUES.contains(&&**flag) { 2 } else { 1 };
    }
    count.min(words.len())
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the kind of check that a command runs.
fn check_kind(words: &[Cow<'_, str>]) -> Option<ShellCheckKind> {
    use ShellCheckKind::{Build, Ci, Lint, Tests};
    /// Flags that only print what would be run, or that never finish.
    const IDLE: [&str; 11] = [
        "--help",
        "-h",
        "--version",
        "-V",
        "--collect-only",
        "--co",
        "--list",
        "--dry-run",
        "--watch",
        "--list-tests",
        "--fixtures",
    ];
    let word = |at: usize| words.get(at).map_or("", |word| &**word);
    let has = |wanted: &str| words.iter().skip(1).any(|word| word == wanted);
    if words.iter().skip(1).any(|word| IDLE.contains(&&**word)) {
        return None;
    }
    let program = program_name(words);
    // The subcommand: the first word after the program that is not a flag.
    let verb = words.iter().skip(1).find(|word| !word.starts_with(['-', '+']));
    let verb = verb.map_or("", |word| &**word);
    let of_script = |script: &str| {
        let script = script.to_ascii_lowercase();
        let is = |beginning: &str| {
            script.split([':', '-', '_', '.']).any(|part| part.starts_with(beginning))
        };
        if is("test") || is("spec") || is("e2e") {
            Some(Tests)
        } else if is("lint") || is("format") {
            Some(Lint)
        } else if is("build")
            || is("compile")
            || is("typecheck")
            || is("check")
            || is("tsc")
            || is("type")
        {
            Some(Build)
        } else {
            None
        }
    };
    match program {
        "pytest" | "py.test" | "tox" | "nox" | "nosetests" | "nose2" | "trial" | "jest"
        | "mocha" | "ava" | "jasmine" | "rspec" | "phpunit" | "pest" | "ctest" | "bats"
        | "prove" | "runtests.py" | "behave" | "cucumber" | "busted" | "gotestsum" | "ginkgo"
        | "robot" => Some(Tests),
        "forge" | "hardhat" | "truffle" | "anchor" | "terraform" | "tofu" | "gleam" | "ng"
        | "hatch"
            if verb == "test" =>
        {
            Some(Tests)
        }
        "crystal" if verb == "spec" => Some(Tests),
        "rebar3" if matches!(verb, "eunit" | "ct" | "proper") => Some(Tests),
        "php" if base_name(verb) == "artisan" && has("test") => Some(Tests),
        "julia" | "Rscript" | "R" => {
            let calls = ["Pkg.test(", "runtests.jl", "test_dir(", "test_local(", "devtools::test("];
            words.iter().any(|word| calls.iter().any(|call| word.contains(call))).then_some(Tests)
        }
        // The targets of all projects of a repository.
        "nx" | "turbo" | "lerna" => {
            words.iter().skip(1).any(|word| has_test_target(word)).then_some(Tests)
        }
        "vitest" | "karma" if verb != "watch" => Some(Tests),
        "playwright" | "cypress" if matches!(verb, "test" | "run") => Some(Tests),
        name if name.starts_with("python") || matches!(name, "py" | "pypy3" | "coverage") => {
            let module = words.iter().position(|word| word == "-m").map(|at| word(at + 1));
            match module {
                Some("pytest" | "unittest" | "nose" | "nose2" | "doctest" | "tox" | "nox") => {
                    Some(Tests)
                }
                Some("mypy" | "flake8" | "ruff" | "pylint") => Some(Lint),
                Some("build") => Some(Build),
                Some(_) => None,
                None => match (base_name(verb), has("test")) {
                    ("manage.py" | "setup.py", true) | ("runtests.py", _) => Some(Tests),
                    _ => None,
                },
            }
        }
        "cargo" => match verb {
            "test" | "t" if !has("--no-run") => Some(Tests),
            "nextest" if has("run") && !has("--no-run") => Some(Tests),
            // `cargo test --no-run` only compiles.
            "build" | "b" | "check" | "c" | "test" => Some(Build),
            "clippy" => Some(Lint),
            "fmt" if has("--check") => Some(Lint),
            _ => None,
        },
        "go" => match verb {
            "test" => Some(Tests),
            "build" | "install" => Some(Build),
            "vet" => Some(Lint),
            _ => None,
        },
        "npm" | "pnpm" | "yarn" | "bun" | "deno" => {
            let rest = || words.iter().skip(1).filter(|word| !word.starts_with('-'));
            let runs = |word: &&Cow<'_, str>| matches!(&***word, "run" | "run-script" | "task");
            let script = match words.iter().position(|word| runs(&word)) {
                // Flags before it may have values: `pnpm --filter web run build`.
                Some(at) => words[at + 1..]
                    .iter()
                    .find(|word| !word.starts_with('-'))
                    .map_or("", |word| &**word),
                None if verb == "workspace" => rest().nth(2).map_or("", |word| &**word),
                None => verb,
            };
            match script {
                "t" | "tst" | "jest" | "vitest" | "mocha" => Some(Tests),
                "tsc" => Some(Build),
                "eslint" => Some(Lint),
                script => of_script(script),
            }
        }
        "node" if has("--test") => Some(Tests),
        "mvn" | "mvnw" | "gradle" | "gradlew" | "sbt" | "lein" | "mix" | "stack" | "cabal"
        | "swift" | "flutter" | "dart" | "bazel" | "dotnet" | "rake" | "rails" | "xcodebuild"
        | "composer" | "meson" | "dune" | "elm-test" | "zig" => {
            let has_goal = |goals: &[&str]| {
                words.iter().skip(1).any(|word| {
                    let goal = word.rsplit(':').next().unwrap_or(word);
                    goals.contains(&goal)
                })
            };
            // `-DskipTests` of Maven and `-x test` of Gradle.
            let skips = words.iter().any(|word| word.contains("skipTests") || word == "-x");
            if has_goal(&["test", "verify", "check", "spec", "runtest"]) && !skips {
                Some(Tests)
            } else if has_goal(&["build", "compile", "package", "assemble", "install", "publish"]) {
                Some(Build)
            } else if has_goal(&["analyze", "credo"]) {
                Some(Lint)
            } else {
                None
            }
        }
        "make" | "gmake" | "just" | "task" | "ninja" => {
            // Without a goal the first one runs, which by convention builds everything.
            if words.len() == 1 {
                return Some(Build);
            }
            let goal =
                words.iter().skip(1).find(|word| !word.starts_with('-') && !word.contains('='));
            let goal = goal.map_or("all", |word| &**word);
            let kind = if matches!(goal, "all" | "check") {
                // GNU's coding standards have `make check` run the tests, and `all` build.
                if goal == "check" { Tests } else { Build }
            } else {
                of_script(goal)?
            };
            Some(kind)
        }
        "cmake" if has("--build") => Some(Build),
        "tsc" | "gcc" | "g++" | "clang" | "clang++" | "javac" | "rustc" | "webpack" | "rollup" => {
            Some(Build)
        }
        "vite" | "next" | "nuxt" | "astro" if verb == "build" => Some(Build),
        "eslint" | "flake8" | "pylint" | "mypy" | "pyright" | "golangci-lint" | "rubocop"
        | "shellcheck" | "stylelint" | "biome" | "oxlint" | "ktlint" | "swiftlint" | "hadolint"
        | "markdownlint" | "ty" => Some(Lint),
        "ruff" if verb != "format" || has("--check") => Some(Lint),
        // Without `--check` these rewrite files.
        "black" | "isort" | "prettier" if has("--check") || has("-c") => Some(Lint),
        "pre-commit" if verb == "run" => Some(Lint),
        "gh" if (verb == "pr" && has("checks")) || (verb == "run" && has("watch")) => Some(Ci),
        "bash" | "sh" | "zsh" if words.len() <= 4 && verb.ends_with(SCRIPT) => {
            let kind = of_script(base_name(verb).strip_suffix(SCRIPT).unwrap_or(verb))?;
            (kind == Tests).then_some(kind)
        }
        name if words.len() <= 3 && (name.ends_with(SCRIPT) || word(0).contains('/')) => {
            let kind = of_script(name.strip_suffix(SCRIPT).unwrap_or(name))?;
            (kind == Tests).then_some(kind)
        }
        _ => None,
    }
}

/// Returns true for `test`, `app:test` and `--target=test`.
fn has_test_target(word: &str) -> bool {
    let target = word.rsplit([':', '=']).next().unwrap_or(word);
    target == "test" || target.strip_prefix("test").is_some_and(|rest| rest.starts_with(['-', ':']))
}

fn is_merge(words: &[Cow<'_, str>]) -> bool {
    let words: Vec<&str> = words.iter().map(|word| &**word).collect();
    match words.as_slice() {
        // `--auto` only schedules the merge.
        ["gh", "pr", "merge", rest @ ..] => !rest.contains(&"--auto"),
        ["glab", "mr", "merge", ..] => true,
        // A local `git merge` is the agent's own and not checked elsewhere.
        _ => false,
    }
}

/// Returns true if `git checkout` with these arguments overwrites single files. Otherwise it
/// switches to another branch, whose files belong to another state of the work.
fn checks_out_files(arguments: &[Cow<'_, str>]) -> bool {
    let creates =
        |word: &str| ["-b", "-B", "--orphan", "--detach", "-d", "-t", "--track"].contains(&word);
    let discards =
        |word: &str| ["--", "-f", "--force", "-p", "--patch", "--ours", "--theirs"].contains(&word);
    // Tags such as `v1.2` have no letters after the dot.
    let is_path = |word: &str| {
        word.starts_with('.')
            || word.ends_with('/')
            || word.starts_with(":/")
            || word.rsplit_once('.').is_some_and(|(stem, extension)| {
                !stem.is_empty()
                    && (1..=5).contains(&extension.len())
                    && extension.starts_with(|c: char| c.is_ascii_alphabetic())
            })
    };
    if arguments.iter().any(|word| creates(word)) {
        return false;
    }
    let mut names = arguments.iter().filter(|word| *word != "-" && !word.starts_with('-'));
    // A tree and paths, or a path alone.
    arguments.iter().any(|word| discards(word))
        || names.next().is_some_and(|first| is_path(first) || names.next().is_some())
}

/// Returns true if a command changes files of the project.
fn changes_files(words: &[Cow<'_, str>], all: &[Cow<'_, str>]) -> bool {
    let word = |at: usize| words.get(at).map_or("", |word| &**word);
    let has_flag = |flag: &str| words.iter().skip(1).any(|word| word.starts_with(flag));
    let paths = || words.iter().skip(1).filter(|word| !word.starts_with('-'));
    match base_name(word(0)) {
        "sed" | "gsed" => has_flag("-i") || has_flag("--in-place"),
        "perl" => words.iter().skip(1).any(|word| word.starts_with("-p") && word.contains('i')),
        "tee" | "touch" | "rm" | "mv" | "truncate" | "patch" => {
            paths().any(|path| affects_tests(path))
        }
        "cp" => paths().next_back().is_some_and(|path| affects_tests(path)),
        "apply_patch" => true,
        "git" => match word(1) {
            "apply" | "am" | "revert" | "cherry-pick" | "pull" | "rebase" | "rm" | "mv" => true,
            "checkout" => checks_out_files(&words[2..]),
            // Without `--worktree` this changes only the index.
            "restore" => !(has_flag("--staged") || has_flag("-S")) || has_flag("--worktree"),
            // The other modes move the branch and leave the files alone.
            "reset" => ["--hard", "--merge", "--keep"].into_iter().any(has_flag),
            // These read or drop what is stashed; all others write to the working tree.
            "stash" => !matches!(word(2), "list" | "show" | "drop" | "clear"),
            _ => false,
        },
        name if name.starts_with("python") || name == "node" || name == "ruby" => {
            all.iter().any(|word| {
                ["write_text(", ".write(", "writeFileSync", "File.write"]
                    .iter()
                    .any(|call| word.contains(call))
            })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
