//! `selftest judge calibrate`: the judge held against the labels of people. Keeps the calibration beside
//! the reports, and finds it again for a run by the same judge.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use selftest_app::{
    AppError, CALIBRATION_FILE, OWN_SCORES_FILE, calibration_path, find_report, own_scores_path,
    requirement,
};
use selftest_harness::calibration::{
    CalibratedJudge, JudgeCalibration, LabelCalibration, LabelledAnswer, MIN_OWN_LABELS, OwnScores,
    calibrate,
};
use selftest_harness::judge::fitness::{
    DecisionBand, FitnessRequirement, JudgeFitness, ScoreSource,
};
use selftest_reports::document::ReportDocument;
use selftest_reports::label_store::{LABELS_FOLDER, LabelStore};
use selftest_reports::labelling::{add_own_scores, answers, calibrated_judge, labelled_answers};
use selftest_reports::reliability;
use selftest_text::file;
use selftest_text::wording::plural;
use serde::Serialize;

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
    let mut own: Option<OwnScores> = None;
    let mut labelled = BTreeSet::new();
    for run in &runs {
        let report = find_report(&project, &resolved, run)?;
        // A run that is named twice has its labels once.
        if reports.iter().any(|known: &ReportDocument| known.run_id == report.run_id) {
            continue;
        }
        let this = calibrated_judge(&report);
        let fitness = report.models.judge_fitness.as_ref();
        // The first run decides which judge and scales the scores belong to.
        let own = own.get_or_insert_with(|| OwnScores::new(this.clone(), fitness));
        // Scores on other scales are other numbers.
        let own = own.are_of(&this, fitness).then_some(own);
        match &of {
            Some((known, first)) => {
                // Two judges have two error rates, and the mean of both is that of neither.
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
        let (found, names) = of_run(&report, &json_folder, own, &mut labelled)?;
        if !names.is_empty() {
            features = names;
        }
        all.extend(found);
        reports.push(report);
    }
    let Some(((judge, _), own)) = of.zip(own) else { return Ok(Exit::NothingRan) };
    let fitness = reports.iter().find_map(|report| report.models.judge_fitness.as_ref());
    let bounds = OwnBounds::choose(&own, fitness, requirement(&resolved.config));
    if own.are_enough() {
        let path = own_scores_path(&json_folder);
        write(&path, &format!("{:#}\n", serde_json::json!(own)))?;
        eprint(&format!("{}\n", path.display()));
    }
    let found = match calibrate(judge, features, &all) {
        Ok(found) => found,
        // A judge that leaves most answers undecided has few verdicts to calibrate, but has bounds.
        Err(error) if own.are_enough() => {
            if args.json {
                print(&format!("{:#}\n", serde_json::json!({ "bounds": bounds })))?;
            } else {
                print(&bounds.text())?;
            }
            eprint(&format!("note: no calibration of verdicts: {error}\n"));
            return Ok(Exit::Passed);
        }
        Err(error) => {
            return Err(AppError::usage(anyhow!("{error}"))
                .hint(Some("label more answers, of other runs too: `selftest judge label RUN`")));
        }
    };
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
        print(&format!("{:#}\n", with_bounds(&found, &bounds)))?;
    } else {
        print(&bounds.text())?;
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
    // The folder comes with the first label.
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| {
            AppError::setup(anyhow!("cannot list {}: {error}", folder.display()))
        })?,
    };
    let names = entries.filter_map(|entry| {
        // Earlier calibrations lie beside the labels, and files that are still being written have a
        // dot.
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.strip_suffix(".json")
            .filter(|_| {
                ![CALIBRATION_FILE, OWN_SCORES_FILE].contains(&&*name) && !name.starts_with('.')
            })
            .map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    // In the order of the ids, which start with the time of the run.
    names.sort();
    Ok(names)
}

/// The bounds by labelled answers, where there are enough of them.
#[derive(Debug, Serialize)]
struct OwnBounds {
    #[serde(skip_serializing_if = "Option::is_none")]
    with_reference: Option<DecisionBand>,
    #[serde(skip_serializing_if = "Option::is_none")]
    without_reference: Option<DecisionBand>,
}

impl OwnBounds {
    fn choose(own: &OwnScores, fitness: Option<&JudgeFitness>, bar: FitnessRequirement) -> Self {
        let of = |has_reference| {
            let labelled = own.scores.of(has_reference);
            let source = fitness.map(|fitness| fitness.score_source(has_reference));
            let source = source.unwrap_or(ScoreSource::Model);
            DecisionBand::of_own_labels(labelled, source, bar, MIN_OWN_LABELS)
        };
        Self { with_reference: of(true), without_reference: of(false) }
    }

    fn text(&self) -> String {
        let each =
            [("with a reference", self.with_reference), ("without one", self.without_reference)];
        let line = |(what, band): (&str, Option<DecisionBand>)| {
            let band = band?;
            let why = if band.decides_anything() {
                band.sentence()
            } else {
                format!("on {} labelled answers too many of its verdicts are wrong", band.of)
            };
            Some(format!("{what}, the judge {}: {why}\n", band.promise()))
        };
        each.into_iter().filter_map(line).collect()
    }
}

/// The calibration as JSON, with the bounds beside it.
fn with_bounds(found: &LabelCalibration, bounds: &OwnBounds) -> serde_json::Value {
    let mut document = serde_json::json!(found);
    if bounds.with_reference.or(bounds.without_reference).is_some() {
        document["bounds"] = serde_json::json!(bounds);
    }
    document
}

/// The labelled answers of a run with what the judge said of them.
fn of_run(
    report: &ReportDocument,
    json_folder: &Path,
    own: Option<&mut OwnScores>,
    known: &mut BTreeSet<(String, String)>,
) -> Result<(Vec<LabelledAnswer>, Vec<String>), AppError> {
    let store = LabelStore::new(json_folder, &report.run_id);
    let labels = label::read(&store, &answers(report))?;
    if let Some(own) = own {
        add_own_scores(report, &labels, known, own);
    }
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
