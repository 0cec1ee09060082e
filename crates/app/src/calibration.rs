//! Finds the calibration of a judge by labels.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use selftest_config::ResolvedConfig;
use selftest_harness::calibration::fit::CALIBRATION_VERSION;
use selftest_harness::calibration::{CalibratedJudge, JudgeCalibration, LabelCalibration};
use selftest_reports::label_store::LABELS_FOLDER;

use crate::project::Project;

/// Name of the calibration's file.
pub const CALIBRATION_FILE: &str = "calibration.json";

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
