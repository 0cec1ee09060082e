//! `selftest judge label`: what people say of the answers of a run, kept beside its report.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use console::{Key, Term};
use selftest_app::{AppError, Project, find_report};
use selftest_harness::calibration::labels::AnswerId;
use selftest_harness::calibration::{Label, LabelFile};
use selftest_reports::document::ReportDocument;
use selftest_reports::label_store::{LabelStore, LabelStoreError};
use selftest_reports::labelling::{answers, render_sections};
use selftest_text::escape::terminal;
use selftest_text::file::{bounded_text, read_named_text};
use selftest_text::wording::plural;

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Options of labelling.
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// The run: its id, its JSON report, or `latest`
    pub run: String,
    /// Read labels from this JSON file instead of asking, - for stdin: a list of
    /// {"case": "…", "label": "good"}, or a label file
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Print the labels as JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) const KEYS: &str = "\
Keys, one for each answer:
  g    good
  b    bad
  s    skip; it is asked again next time
  q    quit; what was labelled is kept";

/// Most bytes of labels.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Name of stdin for `--from`.
const STDIN: &str = "-";

pub(super) fn execute(args: &LabelArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    let report = find_report(&project, &resolved, &args.run)?;
    let answers = answers(&report);
    if answers.is_empty() {
        eprint(&format!("nothing to label: {} has no answer\n", report.run_id));
        return Ok(Exit::NothingRan);
    }
    let store = LabelStore::new(&project.report_folders(&resolved).0, &report.run_id);
    let mut labels = read(&store, &answers)?;
    let before = labels.labels.len();
    match &args.from {
        Some(from) => {
            let named = from.display().to_string();
            let wrong =
                |error: &dyn std::fmt::Display| AppError::usage(anyhow!("{named}: {error}"));
            let text = given(&project, from).map_err(|error| wrong(&error))?;
            let found = LabelFile::parse(&text, report.run_id.as_str())
                .and_then(|found| found.bind(&answers))
                .map_err(|error| {
                    wrong(&error).hint(Some(
                        "name cases as the report does, `id` or with repeats `id #2`, each with \
                         \"label\": \"good\" or \"bad\"",
                    ))
                })?;
            let given: Vec<(&AnswerId, Label)> = found
                .labels
                .iter()
                .filter_map(|label| {
                    // Labels of other answers were refused above, so that none is passed over.
                    let answer = answers.iter().find(|answer| answer.case == label.case)?;
                    Some((answer, label.label))
                })
                .collect();
            labels = store.add(&answers, &given).map_err(|error| match error {
                LabelStoreError::Refused(fault) => wrong(&fault)
                    .hint(Some(format!("the label that is kept is in {}", store.file().display()))),
                other => unkept(&other),
            })?;
        }
        None => ask(&report, &answers, &mut labels, &store)?,
    }
    let (new, all) = (labels.labels.len() - before, labels.labels.len());
    eprint(&format!(
        "{} new, {all} of {} answers labelled: {}\n",
        plural(new as u64, "label"),
        answers.len(),
        store.file().display()
    ));
    if args.json {
        print(&format!("{:#}\n", serde_json::json!(labels)))?;
    }
    Ok(Exit::Passed)
}

/// The labels that are kept of a run, each of an answer that it has.
pub(super) fn read(store: &LabelStore, answers: &[AnswerId]) -> Result<LabelFile, AppError> {
    store.read(answers).map_err(|error| unkept(&error))
}

fn unkept(error: &LabelStoreError) -> AppError {
    let words = anyhow!("{error}");
    match error {
        LabelStoreError::Unreadable { .. } => AppError::usage(words)
            .hint(Some("correct the file, or remove it to label the run anew")),
        LabelStoreError::Refused(_) => AppError::usage(words),
        LabelStoreError::Unwritten { .. } => AppError::setup(words),
    }
}

fn given(project: &Project, from: &Path) -> std::io::Result<String> {
    if from == Path::new(STDIN) {
        bounded_text(std::io::stdin().lock(), MAX_BYTES)
    } else {
        read_named_text(&project.path(from), MAX_BYTES)
    }
}

/// Shows every answer without a label and waits for a key. Each label is kept at once.
fn ask(
    report: &ReportDocument,
    answers: &[AnswerId],
    labels: &mut LabelFile,
    store: &LabelStore,
) -> Result<(), AppError> {
    let open: Vec<&AnswerId> =
        answers.iter().filter(|answer| labels.of(&answer.case).is_none()).collect();
    if open.is_empty() {
        return Ok(());
    }
    // Keys are read without Enter, which only a terminal can do.
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(AppError::usage(anyhow!("labelling takes a terminal"))
            .hint(Some("hand labels over with --from FILE, or --from - for stdin")));
    }
    let term = Term::stdout();
    let failed = |error: std::io::Error| AppError::setup(anyhow!("the terminal: {error}"));
    for (position, answer) in open.iter().enumerate() {
        let Some(text) = render_sections(report, answer) else { continue };
        let done = answers.len() - open.len() + position + 1;
        print(&format!(
            "\n--- {done} of {}: {}\n{text}",
            answers.len(),
            terminal(&answer.case, 200)
        ))?;
        print("g good, b bad, s skip, q quit: ")?;
        let label = loop {
            match term.read_key().map_err(failed)? {
                Key::Char('g' | 'G') => break Some(Label::Good),
                Key::Char('b' | 'B') => break Some(Label::Bad),
                Key::Char('s' | 'S') => break None,
                Key::Char('q' | 'Q') | Key::Escape | Key::CtrlC => {
                    print("quit\n")?;
                    return Ok(());
                }
                _ => {}
            }
        };
        let word = match label {
            Some(Label::Good) => "good",
            Some(Label::Bad) => "bad",
            None => "skipped",
        };
        print(&format!("{word}\n"))?;
        if let Some(label) = label {
            // Stored one by one: the work of an hour must survive a closed terminal.
            *labels = store.add(answers, &[(answer, label)]).map_err(|error| unkept(&error))?;
        }
    }
    Ok(())
}
