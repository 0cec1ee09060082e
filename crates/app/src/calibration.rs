//! Finds the calibration of a judge by labels.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use selftest_config::ResolvedConfig;
use selftest_harness::calibration::fit::CALIBRATION_VERSION;
use selftest_harness::calibration::{
    CalibratedJudge, JudgeCalibration, LabelCalibration, OwnScores,
};
use selftest_harness::judge::fitness::{JudgeFitness, KnownScores};
use selftest_reports::label_store::LABELS_FOLDER;

use crate::project::Project;

/// Name of the calibration's file.
pub const CALIBRATION_FILE: &str = "calibration.json";

/// Name of the file with the judge's scores of labelled answers.
pub const OWN_SCORES_FILE: &str = "own-scores.json";

/// Returns the file with the judge's scores of labelled answers, in a folder of JSON reports.
pub fn own_scores_path(json_folder: &Path) -> PathBuf {
    json_folder.join(LABELS_FOLDER).join(OWN_SCORES_FILE)
}

/// Returns this judge's scores of labelled answers, if there are any. What cannot be read is said, and
/// scores of another judge or of other scales are left alone.
pub(crate) fn own_scores(
    project: &Project,
    resolved: &ResolvedConfig,
    now: &CalibratedJudge,
    fitness: &JudgeFitness,
) -> Option<KnownScores> {
    let path = own_scores_path(&project.report_folders(resolved).0);
    let found = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => Err(error.to_string()),
        Ok(text) => serde_json::from_slice::<OwnScores>(&text).map_err(|error| error.to_string()),
    };
    match found {
        Ok(found) => found.are_of(now, Some(fitness)).then_some(found.scores),
        Err(error) => {
            project.notify(&format!(
                "warning: {} is unreadable ({error}): the judge decides by known answers\nhint: \
                 write it anew: `selftest judge calibrate`\n",
                path.display()
            ));
            None
        }
    }
}

/// Returns the file of the calibration in a folder of JSON reports.
pub fn calibration_path(json_folder: &Path) -> PathBuf {
    json_folder.join(LABELS_FOLDER).join(CALIBRATION_FILE)
}

/// Returns the calibration of a judge. One of another judge is dropped with a warning.
pub(crate) fn judge_calibration(
    project: &Project,
    resolved: &ResolvedConfig,
    now: &CalibratedJudge,
) -> JudgeCalibration {
    let path = calibration_path(&project.report_folders(resolved).0);
    let Ok(text) = std::fs::read(&path) else { return JudgeCalibration::None };
    let dropped = |why: String| {
        let why = format!("{why}, so that the calibration of the judge is dropped");
        project.notify(&format!(
            "warning: {why}\nhint: label answers of this judge and run `selftest judge calibrate`\n"
        ));
        JudgeCalibration::OtherJudge(why)
    };
    match serde_json::from_slice::<LabelCalibration>(&text) {
        Ok(found) if found.version != CALIBRATION_VERSION => {
            dropped(format!("{} is of another version", path.display()))
        }
        Ok(found) => match found.judge.difference_from(now) {
            Some(what) => {
                dropped(format!("the judge has another {what} than when it was labelled"))
            }
            None => JudgeCalibration::Known(Arc::new(found)),
        },
        Err(error) => dropped(format!("{} is unreadable: {error}", path.display())),
    }
}
