//! `selftest suite check`: lists what suites would run and what decides each case. Runs nothing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use selftest_app::{AppError, Project};
use selftest_checks::check;
use selftest_checks::check::Check;
use selftest_checks::evals::{
    CaseDemand, DemandCounts, DemandDecider, EvalCase, EvalsDialect, EvalsFile, folder,
};
use selftest_checks::suite::Suite;
use selftest_config::{self as config, ConfigErrors};
use selftest_text::escape::terminal;
use selftest_text::file::read_bounded_text;
use selftest_text::wording::plural;
use serde::Serialize;

use super::suggest::propose;
use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{FileProgress, eprint, print};

/// Options of `suite check`.
#[derive(Debug, Args)]
pub struct SuiteCheckArgs {
    /// A suite of selftest or of another program, or a folder: every suite in it. With -v, each
    /// sentence is listed with its check
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Print a JSON array with one object for each file
    #[arg(long)]
    pub json: bool,
    /// Propose checks by rules for what is left to the judge, as a diff to read and to apply; with
    /// --json, only their number
    #[arg(long)]
    pub suggest: bool,
}

/// Most lines of one sort for each file, without `--verbose`.
const MAX_LINES: usize = 5;
/// Maximum size of a suite of ours, in bytes.
const MAX_SUITE: u64 = 16 * 1024 * 1024;

/// Most bytes of a sentence.
const MAX_SENTENCE: usize = 100;

/// Result of checking one file, as it is printed.
#[derive(Debug, Serialize)]
struct FileCheck {
    path: String,
    dialect: EvalsDialect,
    cases: usize,
    routing: usize,
    without_checks: usize,
    checks: DemandCounts,
    /// Number of checks that `--suggest` proposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggested: Option<usize>,
    missing_files: Vec<String>,
    refused: Vec<String>,
    warnings: Vec<String>,
    /// For people; absent from JSON.
    #[serde(skip)]
    demands: Vec<EvalCase>,
    #[serde(skip)]
    unreadable: bool,
}

pub(super) fn execute(arguments: &SuiteCheckArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let mut files = Vec::new();
    for path in &arguments.paths {
        let shown = project.shown_path(path);
        if shown.is_dir() {
            files.extend(folder::find(&shown));
        } else if shown.is_file() {
            files.push(shown);
        } else {
            let error = anyhow!("there is no file or folder {}", shown.display());
            return Err(AppError::usage(error)
                .hint(Some("name an evals.json, a suite, or a folder of skills")));
        }
    }
    // A file may be named, and lie in a folder that is named as well, in another spelling.
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())));
    if arguments.suggest && !arguments.json {
        return suggest_checks(&files);
    }
    let progress = FileProgress::new(&project, files.len());
    let checked: Vec<FileCheck> = files
        .iter()
        .map(|file| {
            progress.step();
            check_file(&project, file, arguments.suggest)
        })
        .collect();
    progress.finish();
    if arguments.json {
        print(&format!("{:#}\n", serde_json::json!(checked)))?;
    } else {
        print(&text(&checked, global.verbose > 0))?;
    }
    // Reported after the table: the other files are still worth reading.
    if checked.iter().any(|file| file.unreadable) {
        return Ok(Exit::Usage);
    }
    if checked.iter().all(|file| file.cases + file.routing == 0) {
        eprint("there is nothing to run: no file here has a case\n");
        return Ok(Exit::NothingRan);
    }
    Ok(Exit::Passed)
}

/// Prints the proposals for all files as one diff, and on stderr how much they would decide.
fn suggest_checks(files: &[PathBuf]) -> Result<Exit, AppError> {
    let (mut all, mut decided, mut proposed) = (0, 0, 0);
    let mut is_unreadable = false;
    for path in files {
        let file = match folder::read_file(path) {
            Ok(file) => file,
            Err(error) => {
                eprint(&format!("{}: {error}\n", path.display()));
                is_unreadable = true;
                continue;
            }
        };
        let counts = file.counts();
        all += counts.typed + counts.rule + counts.judge + counts.unknown;
        decided += counts.typed + counts.rule;
        let found = propose(path, &file);
        proposed += found.proposed;
        print(&found.diff)?;
        if let Some(note) = found.note {
            eprint(&format!("{}: {note}\n", path.display()));
        }
    }
    eprint(&format!(
        "decided without a model: {decided} of {}, {} with these proposals\n\
         each is a guess by rules: read it, and apply the diff with `patch -p0`\n",
        plural(all as u64, "demand"),
        decided + proposed
    ));
    Ok(match (is_unreadable, all) {
        (true, _) => Exit::Usage,
        (false, 0) => Exit::NothingRan,
        (false, _) => Exit::Passed,
    })
}

fn check_file(project: &Project, path: &Path, with_suggestions: bool) -> FileCheck {
    let read = match own_suite(path) {
        Some(suite) => {
            suite.map(|suite| of_suite(project, &suite)).map_err(|errors| errors.render(false))
        }
        None => folder::read_file(path).map_err(|error| error.to_string()),
    };
    let suggested =
        read.as_ref().ok().filter(|_| with_suggestions).map(|file| propose(path, file).proposed);
    let path = path.display().to_string();
    match read {
        Ok(file) => FileCheck {
            path,
            dialect: file.dialect,
            cases: file.cases.len(),
            routing: file.routing.len(),
            without_checks: file.without_checks(),
            checks: file.counts(),
            suggested,
            missing_files: file.missing_files,
            refused: file.refused,
            warnings: file.warnings,
            demands: file.cases,
            unreadable: false,
        },
        Err(why) => FileCheck {
            path,
            dialect: EvalsDialect::Unknown,
            cases: 0,
            routing: 0,
            without_checks: 0,
            checks: DemandCounts::default(),
            suggested,
            missing_files: Vec::new(),
            refused: vec![why],
            warnings: Vec::new(),
            demands: Vec::new(),
            unreadable: true,
        },
    }
}

/// The suite in a file, where the file is one of ours.
fn own_suite(path: &Path) -> Option<Result<Suite, ConfigErrors>> {
    let extension = path.extension()?.to_str()?;
    if !["yaml", "yml"].contains(&extension) {
        return None;
    }
    // A file that cannot be read is left to the other reader, which says why.
    let text = read_bounded_text(path, MAX_SUITE).ok()?;
    let is_ours = config::suite::is_selftest_suite(path);
    is_ours.then(|| config::suite::parse(path, text))
}

/// A suite of ours, looked at like any other file of cases.
fn of_suite(project: &Project, suite: &Suite) -> EvalsFile {
    let mut file = EvalsFile {
        dialect: EvalsDialect::Suite,
        skill: None,
        cases: Vec::new(),
        routing: Vec::new(),
        missing_files: Vec::new(),
        refused: Vec::new(),
        warnings: Vec::new(),
    };
    for case in &suite.cases {
        let generated = case.generated();
        let grounds = generated.grounds;
        let id = case.scenario.id.clone();
        file.warnings.extend(
            check::warnings(&grounds.checks).into_iter().map(|words| format!("case {id}: {words}")),
        );
        for path in case.scenario.files.iter().chain(&case.files) {
            let there = project.path(Path::new(path)).exists();
            if !there && !file.missing_files.contains(path) {
                file.missing_files.push(path.clone());
            }
        }
        let checks = grounds
            .checks
            .into_iter()
            .map(|check| CaseDemand { text: label(&check), decider: DemandDecider::Typed(check) });
        // A case without expectations says in its hints what to look for.
        let sentences = if grounds.expectations.is_empty() {
            vec![generated.hints]
        } else {
            grounds.expectations
        };
        let judged =
            sentences.into_iter().map(|text| CaseDemand { text, decider: DemandDecider::Judge });
        let demands = checks.chain(judged).collect();
        file.cases.push(EvalCase { id, prompt: generated.prompt, demands, ..EvalCase::default() });
    }
    file
}

fn label(check: &Check) -> String {
    format!("{}: {}", check.kind.name(), check.kind.value())
}

fn text(files: &[FileCheck], verbose: bool) -> String {
    let mut text = String::new();
    for file in files {
        text += &format!("{}  {}\n", terminal(&file.path, 500), file.dialect.name());
        if !file.unreadable {
            text += &format!("  {}\n", numbers(file));
        }
        if verbose {
            for case in &file.demands {
                write_case(&mut text, case);
            }
        }
        for (word, lines) in [
            ("missing", &file.missing_files),
            ("refused", &file.refused),
            ("warning", &file.warnings),
        ] {
            let shown = if verbose { lines.len() } else { MAX_LINES };
            for line in lines.iter().take(shown) {
                text += &format!("  {word}: {}\n", indented(line));
            }
            if lines.len() > shown {
                text += &format!("  {word}: {} more, with -v\n", lines.len() - shown);
            }
        }
    }
    if files.len() > 1 {
        let sum = |number: fn(&FileCheck) -> usize| files.iter().map(number).sum::<usize>();
        text += &format!(
            "{}: {}, {}, {} typed, {} by rule, {} for the judge, {} unknown{}\n",
            plural(files.len() as u64, "file"),
            plural(sum(|file| file.cases) as u64, "case"),
            routing(sum(|file| file.routing)),
            sum(|file| file.checks.typed),
            sum(|file| file.checks.rule),
            sum(|file| file.checks.judge),
            sum(|file| file.checks.unknown),
            decided(
                sum(|file| file.checks.typed + file.checks.rule),
                sum(|file| {
                    let DemandCounts { typed, rule, judge, unknown } = file.checks;
                    typed + rule + judge + unknown
                }),
            ),
        );
    }
    text
}

/// Says how much needs no model.
fn decided(decided: usize, all: usize) -> String {
    if all == 0 {
        return String::new();
    }
    format!("; {decided} of {} decided without a model", plural(all as u64, "demand"))
}

fn routing(count: usize) -> String {
    format!("{} about loading the skill", plural(count as u64, "prompt"))
}

fn numbers(file: &FileCheck) -> String {
    let DemandCounts { typed, rule, judge, unknown } = file.checks;
    let mut numbers = plural(file.cases as u64, "case");
    if file.routing > 0 {
        numbers += &format!(", {}", routing(file.routing));
    }
    if file.cases > 0 {
        numbers += &format!(
            "; checks: {typed} typed, {rule} by rule, {judge} for the judge, {unknown} unknown"
        );
        numbers += &decided(typed + rule, typed + rule + judge + unknown);
    }
    if file.without_checks > 0 {
        numbers += &format!("; {} without a check", file.without_checks);
    }
    numbers
}

/// The lines of a message that has several, under its first.
fn indented(message: &str) -> String {
    let lines: Vec<String> =
        message.lines().map(|line| selftest_text::escape::block(line, 500)).collect();
    lines.join("\n    ")
}

fn write_case(text: &mut String, case: &EvalCase) {
    *text +=
        &format!("  case {}: {}\n", terminal(&case.id, 60), terminal(&case.prompt, MAX_SENTENCE));
    for demand in &case.demands {
        let word = match demand.decider {
            DemandDecider::Typed(_) => "typed",
            DemandDecider::Rule(_) => "by rule",
            DemandDecider::Judge => "judge",
            DemandDecider::Unknown { .. } => "unknown",
        };
        let sentence = terminal(&demand.text, MAX_SENTENCE);
        let beside = match &demand.decider {
            DemandDecider::Rule(check) => {
                format!("  =>  {}", terminal(&label(check), MAX_SENTENCE))
            }
            // Shown only if the check says something else than the text it was made from.
            DemandDecider::Typed(check) if label(check) != demand.text => {
                format!("  =>  {}", terminal(&label(check), MAX_SENTENCE))
            }
            DemandDecider::Unknown { why } => format!("  ({})", terminal(why, MAX_SENTENCE)),
            DemandDecider::Typed(_) | DemandDecider::Judge => String::new(),
        };
        *text += &format!("    {word:<8} {sentence}{beside}\n");
    }
}
