//! The judges of a run: found, measured or taken from a recording, and bounded by the calibration of
//! labels.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::project::Project;
use crate::error::AppError;
use crate::judges::{FETCH_JUDGE, MeasuredJudge, TOGETHER, requirement, same_judge};
use crate::setup::RunSetup;
use selftest_config::ResolvedConfig;
use selftest_harness::calibration::fit::CALIBRATION_VERSION;
use selftest_harness::calibration::{
    CalibratedJudge, JudgeCalibration, LabelCalibration, MIN_OWN_LABELS, OwnScores,
};
use selftest_harness::event::{NO_GENERATOR, PanelMember, RunModels};
use selftest_harness::judge::JudgeCertificate;
use selftest_harness::judge::ask::Judge;
use selftest_harness::judge::fitness::{JudgeFitness, KnownScores};
use selftest_harness::judge::panel::JudgePanel;
use selftest_models::ChatModel;
use selftest_models::cassette::{CassetteManifest, CassettePlace, RecordedJudge};
use selftest_models::name::ModelName;
use selftest_models::prompts::PromptLibrary;
use selftest_reports::label_store::LABELS_FOLDER;
use selftest_text::file::read_bounded;

/// Maximum size of a stored calibration and of stored scores, in bytes.
const MAX_STORED: u64 = 64 * 1024 * 1024;

impl RunSetup<'_> {
    /// The judges and what labels say of them; what is known of them goes to their names. `seed` and
    /// what is known of the judge go to the manifest of a recording.
    pub(crate) async fn judging(
        &self,
        models: Vec<Arc<dyn ChatModel>>,
        library: &PromptLibrary,
        names: &mut RunModels,
        (seed, replayed): (u64, Option<CassetteManifest>),
    ) -> Result<(Option<Arc<JudgePanel>>, JudgeCalibration), AppError> {
        let (mut judges, mut members) = (Vec::new(), Vec::<PanelMember>::new());
        let known = |name: &str| match ModelName::parse(name) {
            Ok(ModelName::Cassette(name)) => {
                let place = CassettePlace::of(&self.project.folder, &name);
                let manifest = CassetteManifest::read(&place.folder).ok()??;
                manifest.judge(place.model)?.measurement.clone()
            }
            _ => replayed.as_ref()?.judge(None)?.measurement.clone(),
        };
        let mut recorded = Vec::new();
        let is_alone = models.len() == 1;
        for model in models {
            let name = model.id().to_owned();
            let asked = Arc::clone(&model);
            let known = known(&name);
            // A replay has the bounds of its recording, whatever was labelled since.
            let is_bound_by_labels = is_alone && known.is_none();
            let (mut judge, identity) = self.judge(model, library, known).await;
            // Labels of a panel's answers are about all of its judges together.
            let fitness = judge.fitness().filter(|_| is_bound_by_labels).cloned();
            if let Some(fitness) = fitness
                && let now = CalibratedJudge::new(
                    &names.judge,
                    Some(identity.weights()),
                    Some(identity.method()),
                    library.digests(),
                    &self.resolved.rubric.digest(),
                )
                && let Some(own) = own_scores(self.project, self.resolved, &now, &fitness)
            {
                let bar = requirement(&self.resolved.config);
                judge = judge.with_fitness(fitness.with_own_labels(bar, &own, MIN_OWN_LABELS));
            }
            if let Some(why) = judge.fitness().and_then(|fitness| fitness.unfit.as_ref()) {
                self.project.notify(&format!(
                    "warning: {name} cannot judge well enough ({why}): what only a judge can \
                     decide stays unscored\nhint: {FETCH_JUDGE}\n"
                ));
            }
            if self.args.record.is_some() {
                let measurement = identity.measurement(&self.project.environment.models);
                let weights = identity.weights();
                recorded.push(RecordedJudge::of(&*asked, weights, measurement).await);
            }
            let weights = identity.weights().to_owned();
            // By weights as well as by name: a server may serve one model under two names.
            if let Some(other) = members.iter().find(|member| member.weights == weights) {
                return Err(same_judge(&[other.model.clone(), name]));
            }
            let (method, fitness) = (identity.method(), judge.fitness().cloned());
            members.push(PanelMember { model: name, weights, method, fitness });
            judges.push(Arc::new(judge));
        }
        if let Some(folder) = &self.args.record {
            let by_templates = names.generator.as_deref() == Some(NO_GENERATOR)
                && self.resolved.config.sut.example.is_some();
            CassetteManifest::new(seed, by_templates, recorded)
                .write(&self.project.path(folder))?;
        }
        let rubric = &self.resolved.rubric;
        let Some(panel) = JudgePanel::new(judges, rubric.clone()) else {
            return Ok((None, JudgeCalibration::default()));
        };
        let weights: Vec<&str> = members.iter().map(|member| member.weights.as_str()).collect();
        let weights = weights.join(TOGETHER);
        let method = members.first().map(|member| member.method);
        // Of judges that are asked in different ways there is no one method.
        let method = method.filter(|one| members.iter().all(|member| member.method == *one));
        let calibrated = CalibratedJudge::new(
            &names.judge,
            Some(&weights),
            method,
            library.digests(),
            &rubric.digest(),
        );
        names.judge_weights = Some(weights);
        names.judge_method = method;
        if let [alone] = &members[..] {
            names.judge_fitness.clone_from(&alone.fitness);
        } else {
            names.panel = members;
        }
        let calibration = judge_calibration(self.project, self.resolved, &calibrated);
        Ok((Some(Arc::new(panel)), calibration))
    }

    /// The judge, with what is known of its judgement, and what makes it this one.
    async fn judge(
        &self,
        model: Arc<dyn ChatModel>,
        library: &PromptLibrary,
        recorded: Option<Value>,
    ) -> (Judge, MeasuredJudge) {
        let (config, rubric) = (&self.resolved.config, &self.resolved.rubric);
        let judge_by = |model: &Arc<dyn ChatModel>, settings| {
            let context_tokens = config.models.context_tokens;
            Judge::new(Arc::clone(model), settings, context_tokens, rubric.clone())
        };
        let judge = judge_by(&model, config.judge.clone());
        let method = judge.method(library).await;
        if config.judge.samples > 1 && method.takes_readings() {
            let (name, samples) = (model.id(), config.judge.samples);
            self.project.notify(&format!(
                "warning: judge.samples is {samples}, but {name} is asked for probabilities, which \
                 are the same each time: it is asked once\nhint: set judge.method: verdict\n"
            ));
        }
        let identity = MeasuredJudge::of(&*model, method, library, rubric).await;
        let environment = &self.project.environment.models;
        let recorded = recorded.and_then(|known| identity.recorded_fitness(known, config));
        let known = match recorded.or_else(|| identity.fitness(environment, config)) {
            Some(fitness) => Some(fitness),
            None if config.judge.certificate == JudgeCertificate::Auto
                && config.judge.min_auc > 0.0
                // A cassette holds the calls of its run alone.
                && !model.id().starts_with("cassette/") =>
            {
                let model = model.unrecorded().unwrap_or_else(|| Arc::clone(&model));
                let measured = judge_by(&model, config.judge.for_measurement()).with_all_readings();
                let certified = identity.certify(self.project, config, &measured, library);
                Some(Box::pin(certified).await)
            }
            None => None,
        };
        let Some(fitness) = known else { return (judge, identity) };
        (judge.with_fitness(fitness), identity)
    }

    /// The names of all judges. The recording of a panel stands for each of its judges.
    pub(crate) fn judge_names(&self) -> Result<Vec<String>, AppError> {
        let mut names = Vec::new();
        for name in self.resolved.config.judge.models() {
            let panel = match ModelName::parse(name) {
                Ok(ModelName::Cassette(cassette)) => self.recorded_panel(name, &cassette)?,
                _ => Vec::new(),
            };
            if panel.is_empty() {
                names.push(name.to_owned());
            } else {
                names.extend(panel);
            }
        }
        Ok(names)
    }

    fn recorded_panel(&self, name: &str, cassette: &str) -> Result<Vec<String>, AppError> {
        let place = CassettePlace::of(&self.project.folder, cassette);
        if place.model.is_some() {
            return Ok(Vec::new());
        }
        let manifest = CassetteManifest::read(&place.folder)?;
        Ok(manifest.map(|manifest| manifest.panel_names(name)).unwrap_or_default())
    }
}

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
    let found = match read_bounded(&path, MAX_STORED) {
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
    let Ok(text) = read_bounded(&path, MAX_STORED) else { return JudgeCalibration::None };
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
