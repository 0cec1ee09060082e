//! `selftest judge calibrate`: the judge held against the labels of people. Keeps the calibration beside
//! the reports, and finds it again for a run by the same judge.

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use selftest_app::{AppError, CALIBRATION_FILE, calibration_path, find_report};
use selftest_harness::calibration::{CalibratedJudge, JudgeCalibration, LabelledAnswer, calibrate};
use selftest_reports::document::ReportDocument;
use selftest_reports::label_store::{LABELS_FOLDER, LabelStore};
use selftest_reports::labelling::{answers, calibrated_judge, labelled_answers};
use selftest_reports::reliability;
use selftest_text::file;
use selftest_text::wording::plural;

use super::label;
use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Options of a calibration.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Runs whose labels to use, comma-separated [default: all runs with labels]
    #[arg(long, value_name = "RUNS", value_delimiter = ',')]
    pub runs: Vec<String>,
    /// Print the calibration as JSON
    #[arg(long)]
    pub json: bool,
}

/// The reliability curve, within the folder of the Markdown reports.
const PICTURE: &str = "calibration.svg";

pub(super) fn execute(args: &CalibrateArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    let (json_folder, markdown_folder) = project.report_folders(&resolved);
    let runs = runs(args, &json_folder)?;
    if runs.is_empty() {
        eprint(
            "nothing to calibrate on: no run has labels, `selftest judge label latest` gives some\n",
        );
        return Ok(Exit::NothingRan);
    }
    let (mut all, mut features, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    let mut of: Option<(CalibratedJudge, String)> = None;
    for run in &runs {
        let report = find_report(&project, &resolved, run)?;
        // A run that is named twice has its labels once.
        if reports.iter().any(|known: &ReportDocument| known.run_id == report.run_id) {
            continue;
        }
        let (found, names) = of_run(&report, &json_folder)?;
        let this = calibrated_judge(&report);
        match &of {
            Some((known, first)) => {
                if let Some(what) = known.difference_from(&this) {
                    let error =
                        anyhow!("{} was judged with another {what} than {first}", report.run_id);
                    return Err(AppError::usage(error).hint(Some(
                        "name runs by one judge: `selftest judge calibrate --runs RUN,RUN`",
                    )));
                }
            }
            None => of = Some((this, report.run_id.to_string())),
        }
        if !names.is_empty() {
            features = names;
        }
        all.extend(found);
        reports.push(report);
    }
    let Some((judge, _)) = of else { return Ok(Exit::NothingRan) };
    let found = calibrate(judge, features, &all).map_err(|error| {
        AppError::usage(anyhow!("{error}"))
            .hint(Some("label more answers, of other runs too: `selftest judge label RUN`"))
    })?;
    let picture = reliability::render(&found)
        .map_err(|error| AppError::setup(anyhow!("cannot render the curve: {error}")))?;
    let files = [
        (calibration_path(&json_folder), format!("{:#}\n", serde_json::json!(found))),
        (markdown_folder.join(PICTURE), picture),
    ];
    for (path, text) in &files {
        write(path, text)?;
    }
    if args.json {
        print(&format!("{:#}\n", serde_json::json!(found)))?;
    } else {
        let known = JudgeCalibration::Known(Arc::new(found.clone()));
        print(&found.text())?;
        for report in &reports {
            print(&of_report(&known, report))?;
        }
    }
    for (path, _) in &files {
        eprint(&format!("{}\n", path.display()));
    }
    Ok(Exit::Passed)
}

/// The runs that the user names, or every run with labels.
fn runs(args: &CalibrateArgs, json_folder: &Path) -> Result<Vec<String>, AppError> {
    if !args.runs.is_empty() {
        return Ok(args.runs.clone());
    }
    let folder = json_folder.join(LABELS_FOLDER);
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| {
            AppError::setup(anyhow!("cannot list {}: {error}", folder.display()))
        })?,
    };
    let names = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.strip_suffix(".json")
            .filter(|_| name != CALIBRATION_FILE && !name.starts_with('.'))
            .map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

/// The labelled answers of a run with what the judge said of them.
fn of_run(
    report: &ReportDocument,
    json_folder: &Path,
) -> Result<(Vec<LabelledAnswer>, Vec<String>), AppError> {
    let store = LabelStore::new(json_folder, &report.run_id);
    let labels = label::read(&store, &answers(report))?;
    let (found, names, unscored) = labelled_answers(report, &labels);
    if unscored > 0 {
        eprint(&format!(
            "note: {} of {} without a verdict of the judge, left out\n",
            plural(unscored as u64, "label"),
            report.run_id
        ));
    }
    Ok((found, names))
}

/// The pass rate of a labelled run as the calibration corrects it, in a line.
fn of_report(known: &JudgeCalibration, report: &ReportDocument) -> String {
    let cases: Vec<_> =
        report.cases.iter().map(|case| (case.name(), case.status, &case.steps[..])).collect();
    let sentence = known.apply(report.run_id.as_str(), &cases).map(|found| found.sentence());
    format!("{}: {}\n", report.run_id, sentence.unwrap_or_default())
}

fn write(path: &Path, text: &str) -> Result<(), AppError> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder
        .and_then(|()| file::replace(path, "calibrate", text))
        .map_err(|error| AppError::setup(anyhow!("cannot write {}: {error}", path.display())))
}
