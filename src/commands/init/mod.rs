//! `selftest init`: looks at what a project has, asks at most three questions, and writes a
//! configuration that tests it, a first suite and a CI workflow. Starts the chosen program once, in
//! its sandbox, and shows what came back. Replaces no file unless asked to, and never writes through
//! a link that leads out of the project.

mod commands;
mod found;
mod place;
mod questions;
mod skills;
mod target;
mod task_api;
mod texts;

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::print;
use found::Found;
use questions::Answers;
use selftest_app::{AppError, Greeting, Project, doctor, greet};
use selftest_config as config;
use selftest_harness::sut::answer::read_documents;
use selftest_sandbox::AttemptKind;
use selftest_text::escape::terminal;
use selftest_text::wording::plural;
use selftest_text::{file, one_line};
use target::Target;

/// Options of `selftest init`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct InitArgs {
    /// Take the likeliest answers without asking, as without a terminal
    #[arg(short, long)]
    pub yes: bool,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// Also write all prompt templates to prompts/, to edit them there
    #[arg(long)]
    pub prompts: bool,
}

/// Most bytes of a line that repeats what a project says.
const MAX_LINE: usize = 400;

pub(super) async fn execute(args: &InitArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let found = Found::look(&project.folder, &project.environment).await;
    let mut lines = String::new();
    for (word, line) in found.lines() {
        lines += &format!("{word:<6} {}\n", terminal(&line, MAX_LINE));
    }
    print(&lines)?;

    let mut answers = Answers::without_asking(&found);
    let may_ask = !args.yes
        && !project.environment.ci
        && std::io::stdin().is_terminal()
        && std::io::stdout().is_terminal();
    if may_ask {
        let asked = questions::questions(&found);
        for question in &asked {
            print(&question.text())?;
            let mut line = String::new();
            std::io::stdin()
                .read_line(&mut line)
                .context("cannot read an answer")
                .map_err(AppError::setup)?;
            question.answered(&line, &mut answers);
        }
    }

    let folder = Destination { root: &project.folder, replace: args.force };
    let mut lines = String::new();
    let mut is_own = false;
    for file in texts::files(&found, &answers, args.prompts) {
        let written = folder
            .write(&file.path, &file.text)
            .with_context(|| format!("cannot write {}", file.path))
            .map_err(AppError::setup)?;
        // A configuration that was kept may test something else than the answers say, so it is not
        // greeted.
        is_own |= file.path == config::DEFAULT_PATH && written != Written::Kept;
        lines += &written.line(&file.path, file.about.as_deref());
    }
    let ignored = folder
        .add_lines(texts::GITIGNORE, texts::IGNORED)
        .with_context(|| format!("cannot write {}", texts::GITIGNORE))
        .map_err(AppError::setup)?;
    lines += &ignored.line(texts::GITIGNORE, None);
    for line in answers.target.needs(&project.environment) {
        lines += &format!("note   {line}\n");
    }
    print(&lines)?;
    // What cannot be tried here is not held to be broken.
    let mut answers_hello = true;
    if is_own && answers.target.can_be_greeted(&project.environment) {
        answers_hello = say_hello(&project, &folder, &found, &mut answers).await?;
    }

    let findings = doctor::check_without_models(&project).await;
    print(&findings.text())?;
    let is_ready = answers_hello && findings.is_healthy();
    let next = match (&answers.target, &found.parts[..]) {
        // The example agent has nothing to do with the agents that are there.
        (Target::Assistant { model: None }, [part, ..]) => {
            format!("selftest -C {} init", part.path)
        }
        _ => next_command(is_ready, found.skills.is_repository()).to_owned(),
    };
    print(&format!("next: `{next}`\n"))?;
    Ok(Exit::Passed)
}

/// Says hello to the chosen program or server and shows what came back. A program that may not write
/// is started in a copy of the project; one whose way of taking a request is not known and that does
/// not answer gets the request as an argument too; in JSON, the answer is looked for. The
/// configuration keeps what works. Returns false if there is no answer.
async fn say_hello(
    project: &Project,
    folder: &Destination<'_>,
    found: &Found,
    answers: &mut Answers,
) -> Result<bool, AppError> {
    let Some(mut greeting) = greet(project).await? else { return Ok(true) };
    print(&greeting_lines(&greeting))?;
    if wants_to_write(&greeting, &project.folder)
        && let Some(writing) = answers.target.writing()
    {
        answers.target = writing;
        write_configuration(folder, found, answers)?;
        let Some(second) = greet(project).await? else { return Ok(false) };
        print("note   it writes into its folder: work_folder is copy\n")?;
        print(&greeting_lines(&second))?;
        greeting = second;
    }
    if !greeting.is_answered()
        && let Some(second) = greet_elsewhere(project, folder, found, answers).await?
    {
        greeting = second;
    }
    if !greeting.is_answered()
        // A program that waits for input and one that reads its arguments look alike from outside.
        && let Some(other) = answers.target.other_input()
    {
        let Some(second) = greet_as(project, folder, found, answers, other).await? else {
            print("note   it does not answer a request in an argument either\n")?;
            return Ok(false);
        };
        print("note   it answers a request that is its last argument: prompt_input is argument\n")?;
        print(&greeting_lines(&second))?;
        greeting = second;
    }
    let Some(printed) = greeting.answer.as_ref().ok().filter(|_| greeting.is_answered()) else {
        return Ok(false);
    };
    if let Some(reading) = answers.target.with_output(&printed.output)
        && let Some(second) = greet_as(project, folder, found, answers, reading).await?
    {
        let pointer = answers.target.output().unwrap_or_default();
        print(&format!(
            "note   it prints JSON with the answer at {pointer}: output is {pointer}\n"
        ))?;
        print(&greeting_lines(&second))?;
    } else if let Some(line) = log_line(&printed.output) {
        print(&format!(
            "note   it prints lines of a log before its answer (`{}`), which checks see too: let it\n       \
             log to stderr, or print JSON, in which sut.command.output names the answer\n",
            terminal(line, MAX_LINE)
        ))?;
    } else if let Some(mark) = prompt_mark(&printed.output) {
        print(&format!(
            "note   its answer ends in `{mark}`, as that of a program to type in: name one in \
             sut.command.run\n       that prints the answer and ends, so that checks see nothing else\n"
        ))?;
    }
    Ok(true)
}

/// Looks for the answer in the whole response of a server that has none at the described place, and
/// keeps in the configuration where it is.
async fn greet_elsewhere(
    project: &Project,
    folder: &Destination<'_>,
    found: &Found,
    answers: &mut Answers,
) -> Result<Option<Greeting>, AppError> {
    let described = answers.target.clone();
    let Some(whole) = described.with_whole_response() else { return Ok(None) };
    let Some(seen) = greet_as(project, folder, found, answers, whole).await? else {
        return Ok(None);
    };
    let text = seen.answer.as_ref().map_or("", |reply| &reply.output);
    if let Some(reading) = answers.target.with_output(text)
        && let Some(second) = greet_as(project, folder, found, answers, reading).await?
    {
        let pointer = answers.target.output().unwrap_or_default();
        print(&format!("note   its answer stands at {pointer}: output is {pointer}\n"))?;
        print(&greeting_lines(&second))?;
        return Ok(Some(second));
    }
    if read_documents(text).is_some_and(|all| all.is_empty()) {
        print("note   it answers with plain text: output is \"\"\n")?;
        print(&greeting_lines(&seen))?;
        return Ok(Some(seen));
    }
    answers.target = described;
    write_configuration(folder, found, answers)?;
    print("note   name the place of the answer in its response in sut.http.output\n")?;
    Ok(None)
}

/// Returns true if the sandbox refused that the program writes below its folder.
fn wants_to_write(greeting: &Greeting, project: &Path) -> bool {
    let attempts = greeting.evidence.sandbox.iter().flat_map(|sandbox| &sandbox.attempts);
    let is_below = |path: &str| Path::new(path).starts_with(project);
    !greeting.is_answered()
        && attempts
            .into_iter()
            .any(|one| one.attempt.kind == AttemptKind::Write && is_below(&one.attempt.what))
}

/// Returns the first line of an answer of several lines that looks like one of a log.
fn log_line(answer: &str) -> Option<&str> {
    let is_log = |line: &str| {
        let word = line.trim_start_matches('[').split([' ', ']', ':', ',', '|']).next();
        let word = word.unwrap_or_default().trim_end_matches(':');
        let is_level = ["DEBUG", "INFO", "WARN", "WARNING", "TRACE"].contains(&word);
        let is_date = word.len() >= 8
            && word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || "-/T.Z+".contains(c))
            && word.matches(['-', '/']).count() >= 2;
        is_level || is_date || line.starts_with("> Entering new ")
    };
    // The last line is the answer, or its end.
    let (before, _) = answer.trim().rsplit_once('\n')?;
    before.lines().map(str::trim).find(|line| is_log(line))
}

/// Says hello to another form of the target, and keeps it in the configuration if it answers.
async fn greet_as(
    project: &Project,
    folder: &Destination<'_>,
    found: &Found,
    answers: &mut Answers,
    other: Target,
) -> Result<Option<Greeting>, AppError> {
    let first = std::mem::replace(&mut answers.target, other);
    write_configuration(folder, found, answers)?;
    let greeting = greet(project).await?.filter(Greeting::is_answered);
    if greeting.is_none() {
        answers.target = first;
        write_configuration(folder, found, answers)?;
    }
    Ok(greeting)
}

/// Returns the mark at which a program waits for the next line, if an answer ends in one.
fn prompt_mark(answer: &str) -> Option<&str> {
    let last = answer.lines().last()?.trim();
    let (before, mark) = last.rsplit_once(char::is_whitespace).unwrap_or(("", last));
    // `20 $` is a price, and `« oui »` a quotation.
    let is_price = mark == "$" && before.trim_end().ends_with(|sign: char| sign.is_numeric());
    if is_price || mark == "»" && before.contains('«') {
        return None;
    }
    (["$", "»", "❯"].contains(&mark) || !mark.is_empty() && mark.chars().all(|c| c == '>'))
        .then_some(mark)
}

fn write_configuration(
    folder: &Destination<'_>,
    found: &Found,
    answers: &Answers,
) -> Result<(), AppError> {
    let text = texts::configuration(found, answers);
    // The file was written a moment ago by this command.
    let folder = Destination { replace: true, ..*folder };
    folder
        .write(config::DEFAULT_PATH, &text)
        .map(drop)
        .with_context(|| format!("cannot write {}", config::DEFAULT_PATH))
        .map_err(AppError::setup)
}

/// What came back, in a few lines.
fn greeting_lines(greeting: &Greeting) -> String {
    let mut lines = format!("hello  {}\n", terminal(&greeting.sut, MAX_LINE));
    let answer = match &greeting.answer {
        Ok(reply) if greeting.is_answered() => {
            format!("{}: {}", reply.status, one_line(&reply.output, MAX_LINE))
        }
        Ok(reply) => format!("{}, and nothing in it", reply.status),
        Err(why) => format!("no answer: {why}"),
    };
    lines += &format!("       {}\n", terminal(&answer, MAX_LINE));
    if greeting.is_answered() {
        return lines;
    }
    // What the program printed is the best hint at why it gave no answer.
    let traces = [&greeting.evidence.stderr, &greeting.evidence.exit];
    for trace in traces.into_iter().flatten() {
        lines += &format!("       {}\n", terminal(&one_line(trace, MAX_LINE), MAX_LINE));
    }
    if let Some(hint) = &greeting.evidence.hint {
        lines += &format!("hint   {}\n", terminal(hint, MAX_LINE));
    }
    lines
}

/// The one command that is worth typing now.
const fn next_command(is_ready: bool, tests_skills: bool) -> &'static str {
    match (is_ready, tests_skills) {
        (false, _) => "selftest doctor",
        (true, true) => "selftest skills test --dry-run",
        (true, false) => "selftest --suite config/suites/first.yaml",
    }
}

/// Part of the names of temporary files.
const WRITER: &str = "init";

/// Most bytes of a list of ignored files that is added to.
const MAX_LIST: u64 = 1 << 20;

/// The project that files are written to.
struct Destination<'a> {
    /// Absolute, without links.
    root: &'a Path,
    /// True to replace existing files.
    replace: bool,
}

/// The outcome for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    New,
    Replaced,
    /// It was there and stays.
    Kept,
    /// So many lines were added to what was there.
    Added(usize),
    /// All lines were there.
    Complete,
}

impl Written {
    /// One line for people, with what the file is about.
    fn line(self, path: &str, about: Option<&str>) -> String {
        let about = about.map(|words| format!(": {words}")).unwrap_or_default();
        match self {
            Self::New => format!("wrote  {path}{about}\n"),
            Self::Replaced => {
                format!("wrote  {path}{about} (it replaces the one that was there)\n")
            }
            Self::Kept => format!("kept   {path} (it exists; --force replaces it)\n"),
            Self::Added(count) => {
                format!("wrote  {path}: {} added\n", plural(count as u64, "line"))
            }
            Self::Complete => format!("kept   {path}\n"),
        }
    }
}

impl Destination<'_> {
    /// Writes a file, its folders before it.
    fn write(&self, path: &str, text: &str) -> io::Result<Written> {
        let path = self.prepared(path)?;
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => file.write_all(text.as_bytes()).map(|()| Written::New),
            // Replaced by renaming, so that a link in its place is replaced and not followed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.replace => {
                file::replace(&path, WRITER, text).map(|()| Written::Replaced)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Written::Kept),
            Err(error) => Err(error),
        }
    }

    /// Adds those of the lines that a file does not have, without touching the others.
    fn add_lines(&self, path: &str, lines: &[&str]) -> io::Result<Written> {
        let path = self.prepared(path)?;
        // Of the name itself: a link could lead out of the project.
        let text = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
            Ok(file) if !file.is_file() => {
                return Err(io::Error::other("it is a link or a folder, expected a file"));
            }
            Ok(_) => file::read_bounded_text(&path, MAX_LIST)?,
        };
        let is_there = |line: &&&str| {
            // `/reports/`, `reports/` and `reports` ignore the same folder at the root.
            let bare = line.trim_matches('/');
            text.lines().any(|own| own.trim().trim_matches('/') == bare)
        };
        let missing: Vec<&str> = lines.iter().filter(|line| !is_there(line)).copied().collect();
        if missing.is_empty() {
            return Ok(Written::Complete);
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let added = format!("{text}{gap}{}\n", missing.join("\n"));
        file::replace(&path, WRITER, &added)?;
        Ok(Written::Added(missing.len()))
    }

    /// Makes the folders of a file, and makes sure that they lie in the project.
    fn prepared(&self, path: &str) -> io::Result<PathBuf> {
        let path = self.root.join(path);
        let folder = path.parent().unwrap_or(self.root);
        // What is there is looked at before anything is made below it.
        let there = folder.ancestors().find(|folder| folder.symlink_metadata().is_ok());
        let real = there.unwrap_or(self.root).canonicalize()?;
        if !real.starts_with(self.root) {
            return Err(io::Error::other(format!(
                "{} leads out of the project",
                there.unwrap_or(self.root).display()
            )));
        }
        std::fs::create_dir_all(folder)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_log_are_told_from_those_of_an_answer() {
        for (answer, line) in [
            (
                "[2026-11-28 10:00:00][INFO]: working\nAt 9.",
                Some("[2026-11-28 10:00:00][INFO]: working"),
            ),
            ("INFO:root:started\n\nAt 9.", Some("INFO:root:started")),
            ("2026/11/28 10:00:00 started\nAt 9.", Some("2026/11/28 10:00:00 started")),
            (
                "> Entering new AgentExecutor chain...\nAt 9.",
                Some("> Entering new AgentExecutor chain..."),
            ),
            ("Open:\n- 2026-11-28: 9 to 5\n- later: closed", None),
            ("1. INFO is a level\n2. so is WARN", None),
            ("2026-11-28", None),
            ("INFO: At 9.", None),
        ] {
            assert_eq!(log_line(answer), line, "{answer}");
        }
    }
}
