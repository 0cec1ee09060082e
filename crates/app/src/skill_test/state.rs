//! What a test of skills has done, in a file of the report folder, so that it can be resumed and its
//! report read later.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{RunningArms, SkillTestSettings};
use crate::error::AppError;
use crate::find_run::LATEST;
use crate::project::Project;
use selftest_config::ResolvedConfig;
use selftest_harness::sut::namespace::RunId;
use selftest_harness::sut::skill::model_flag;
use selftest_harness::sut::sut_settings::ProgramSettings;
use selftest_reports::skill_test::{SkillTestReport, SkillTestResult};
use selftest_text::escape::terminal;
use selftest_text::file::{read_bounded_text, replace};

/// Folder of the files, below that of the JSON reports.
const FOLDER: &str = "skill-tests";
/// Version of the file.
const VERSION: u32 = 1;
/// Maximum size of a file.
const MAX_BYTES: u64 = 256 << 20;
/// Part of the names of temporary files.
const WRITER: &str = "skills";

/// The state of a test, and its file.
pub(super) struct SkillTestState {
    file: PathBuf,
    stored: StoredTest,
}

#[derive(Serialize, Deserialize)]
struct StoredTest {
    version: u32,
    id: String,
    started_at: Timestamp,
    settings: SkillTestSettings,
    /// Runs of the arms that have started, by skill.
    running: RunningArms,
    /// Results of the skills whose trials have all ended.
    finished: Vec<SkillTestResult>,
    /// The report, once there is one.
    report: Option<SkillTestReport>,
}

impl SkillTestState {
    /// The state of a new test. Its file is written when the first skill starts.
    pub(super) fn new(
        project: &Project,
        resolved: &ResolvedConfig,
        settings: &SkillTestSettings,
    ) -> Self {
        let now = selftest_clock::now();
        // In milliseconds, as it is written.
        let started_at = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        let id = RunId::fresh(now).to_string();
        let file = folder(project, resolved).join(format!("{id}.json"));
        let stored = StoredTest {
            version: VERSION,
            id,
            started_at,
            settings: settings.clone(),
            running: RunningArms::new(),
            finished: Vec::new(),
            report: None,
        };
        Self { file, stored }
    }

    /// Loads the state of a test: its id, or `latest`.
    pub(super) fn load(
        project: &Project,
        resolved: &ResolvedConfig,
        named: &str,
    ) -> Result<Self, AppError> {
        let folder = folder(project, resolved);
        let shown = terminal(named, 100);
        let missing = || {
            AppError::usage(anyhow!("there is no test of skills `{shown}` in {}", folder.display()))
                .hint(Some("name a test by its id, or `latest`"))
        };
        let file = match named {
            LATEST => latest(&folder).ok_or_else(missing)?,
            // An id, and no way to another folder.
            _ if named.contains(['/', '\\']) => return Err(missing()),
            _ => folder.join(format!("{named}.json")),
        };
        let text = read_bounded_text(&file, MAX_BYTES).map_err(|_| missing())?;
        let stored: StoredTest = serde_json::from_str(&text).map_err(|error| {
            AppError::usage(anyhow!("{} is not a test of skills: {error}", file.display()))
        })?;
        if stored.version != VERSION {
            let error = anyhow!("{} is in another format and cannot be resumed", file.display());
            return Err(AppError::usage(error).hint(Some("start a new test without --resume")));
        }
        Ok(Self { file, stored })
    }

    pub(super) fn id(&self) -> &str {
        &self.stored.id
    }

    pub(super) fn started_at(&self) -> Timestamp {
        self.stored.started_at
    }

    pub(super) fn settings(&self) -> SkillTestSettings {
        self.stored.settings.clone()
    }

    /// Returns the result of a skill, if it was tested and nothing has changed since.
    pub(super) fn finished(
        &self,
        skill: &str,
        model: Option<&str>,
        digest: &str,
    ) -> Option<SkillTestResult> {
        let is_it = |result: &&SkillTestResult| {
            result.skill == skill && result.model.as_deref() == model && result.digest == digest
        };
        self.stored.finished.iter().find(is_it).cloned()
    }

    /// Returns the runs of the arms of a skill that had started.
    pub(super) fn running(
        &self,
        skill: &str,
        model: Option<&str>,
        arms: usize,
    ) -> Option<Vec<RunId>> {
        let ids = self.stored.running.get(&key(skill, model))?;
        // If the number of arms differs, the plan has changed and the runs do not fit it.
        (ids.len() == arms).then(|| ids.clone())
    }

    /// Records that the arms of a skill start.
    pub(super) fn begin(
        &mut self,
        skill: &str,
        model: Option<&str>,
        ids: &[RunId],
    ) -> Result<(), AppError> {
        self.stored.running.insert(key(skill, model), ids.to_vec());
        self.write()
    }

    /// Records the result of a skill.
    pub(super) fn finish(&mut self, result: &SkillTestResult) -> Result<(), AppError> {
        self.stored.running.remove(&key(&result.skill, result.model.as_deref()));
        self.stored.finished.push(result.clone());
        self.write()
    }

    /// Records the report.
    pub(super) fn conclude(&mut self, report: &SkillTestReport) -> Result<(), AppError> {
        self.stored.report = Some(report.clone());
        self.write()
    }

    fn write(&self) -> Result<(), AppError> {
        let text = serde_json::to_string_pretty(&self.stored).unwrap_or_default();
        let folder = self.file.parent().map_or(Ok(()), std::fs::create_dir_all);
        // Replaced in one step: a test killed while it writes still finds its earlier state.
        folder.and_then(|()| replace(&self.file, WRITER, &text)).map_err(|error| {
            AppError::setup(anyhow!("cannot write {}: {error}", self.file.display()))
                .hint(Some("set reports.json_folder to a folder that you can write to"))
        })
    }
}

fn key(skill: &str, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("{skill} {model}"),
        None => skill.to_owned(),
    }
}

fn folder(project: &Project, resolved: &ResolvedConfig) -> PathBuf {
    project.report_folders(resolved).0.join(FOLDER)
}

/// The test that started last: ids begin with their time.
fn latest(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let files = entries.map(|entry| entry.path());
    files.filter(|file| file.extension().is_some_and(|end| end == "json")).max()
}

/// What stands for the model in a command line.
const PLACEHOLDER: &str = "{model}";

/// Returns the configuration with this model of the system under test.
pub(super) fn with_model(
    resolved: &ResolvedConfig,
    model: &str,
) -> Result<ResolvedConfig, AppError> {
    let mut named = resolved.clone();
    let sut = &mut named.config.sut;
    let section = sut.program_section();
    if let Some(chat) = &mut sut.chat {
        model.clone_into(&mut chat.model);
        return Ok(named);
    }
    let program = sut.command.as_mut().map(|command| &mut command.program).or(sut.acp.as_mut());
    let Some(program) = program else {
        return Err(AppError::usage(anyhow!("--models needs an agent whose model can be set"))
            .hint(Some("test a program (`sut.command`, `sut.acp`) or `sut.chat`")));
    };
    if tell(program, model) {
        return Ok(named);
    }
    let shown = terminal(&program.run.join(" "), 100);
    Err(AppError::usage(anyhow!("--models: no way is known to set the model of `{shown}`")).hint(
        Some(format!("write {{model}} in {section}.run or in a value of {section}.environment")),
    ))
}

/// Tells a program the model: where it says so itself, else by the flag of a known agent. Returns
/// false if neither is there.
fn tell(program: &mut ProgramSettings, model: &str) -> bool {
    let mut is_told = false;
    for text in program.run.iter_mut().chain(program.environment.values_mut()) {
        if text.contains(PLACEHOLDER) {
            *text = text.replace(PLACEHOLDER, model);
            is_told = true;
        }
    }
    if let (false, Some(flag)) = (is_told, model_flag(&program.run)) {
        program.run.extend([flag.to_owned(), model.to_owned()]);
        is_told = true;
    }
    is_told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(run: &[&str]) -> (bool, String) {
        let run = run.iter().map(|&word| word.to_owned()).collect();
        let mut program = ProgramSettings { run, ..ProgramSettings::default() };
        let is_told = tell(&mut program, "m-1");
        (is_told, program.run.join(" "))
    }

    #[test]
    fn agents_are_told_their_model() {
        assert_eq!(told(&["claude", "-p"]), (true, "claude -p --model m-1".to_owned()));
        let named = told(&["python3", "agent.py", "--brain={model}"]);
        assert_eq!(named, (true, "python3 agent.py --brain=m-1".to_owned()));
        assert!(!told(&["python3", "agent.py"]).0);
    }
}
