//! One file of cases in a format of somebody else, with the files and the skill around it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::allowed::AllowedCommands;
use crate::skill_file::{SKILL_FILE, SkillFileError, read_skill_text, skill_names};
use selftest_checks::check::CommandCheck;
use selftest_checks::evals::folder::{self, SkillFolder};
use selftest_checks::evals::{EvalFile, EvalsReadError};
use selftest_checks::suite::SuiteCase;
use selftest_harness::sut::skill::Skill;
use selftest_harness::sut::{Fixture, FixtureSource};
use selftest_text::escape::terminal;

/// The needs of a case.
pub(super) struct CaseNeeds {
    /// Its files.
    pub fixtures: Vec<Fixture>,
    /// Commands that make its folder ready.
    pub set_up: Arc<[CommandCheck]>,
    /// Name of the skill that it is of.
    pub skill: Option<String>,
    /// The skill that is handed over with it.
    pub handed: Option<Arc<Skill>>,
    /// The skill that lies in the work folder, for a case that asks whether it is loaded.
    pub laid: Option<Arc<Skill>>,
}

/// Nothing of a file of cases can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImportError {
    #[error(transparent)]
    File(#[from] EvalsReadError),
    #[error(transparent)]
    Skill(#[from] SkillFileError),
}

/// The cases of one file of somebody else.
pub(super) struct ImportedSuite {
    pub cases: Vec<(SuiteCase, CaseNeeds)>,
    /// Cases that need files which are nowhere, and why.
    pub incomplete: Vec<String>,
    pub skill: Option<(Skill, PathBuf)>,
    /// Refused parts.
    pub left_out: Vec<String>,
    pub warnings: Vec<String>,
}

impl ImportedSuite {
    /// Reads a file of cases and what is around it.
    pub(super) fn read(path: &Path, allowed: &AllowedCommands) -> Result<Self, ImportError> {
        let file = folder::read_file(path)?;
        let around = SkillFolder::locate(path);
        let skill_file = around.skill.join(SKILL_FILE);
        let skill = if skill_file.is_file() { Some(read_skill_text(&skill_file)?) } else { None };
        let lies = around.skill.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = skill.as_ref().map(|skill| skill.name.clone()).or(file.skill.clone()).or(lies);
        let rule = |id: &str| allowed.rule(name.as_deref().unwrap_or_default(), id);
        let mut imported = file.suite(&skill.as_ref().map(skill_names).unwrap_or_default(), &rule);
        let handed = skill.clone().map(Arc::new);
        let (mut cases, mut incomplete) = (Vec::new(), Vec::new());
        let mut files = imported.files;
        for case in imported.suite.cases {
            let id = &case.scenario.id;
            let fixtures = match fixtures(files.remove(id).unwrap_or_default(), &around) {
                Ok(fixtures) => fixtures,
                Err(MissingFile(path)) => {
                    let missing = terminal(&path, 100);
                    incomplete
                        .push(format!("case {id} needs the file `{missing}`, which is nowhere"));
                    continue;
                }
            };
            let set_up = imported.set_up.remove(id).unwrap_or_default().into();
            let mut needs =
                CaseNeeds { fixtures, set_up, skill: name.clone(), handed: None, laid: None };
            // To hand a skill over would answer the question whether it is loaded.
            if imported.loading.contains(id) {
                needs.laid.clone_from(&handed);
            } else {
                needs.handed.clone_from(&handed);
            }
            cases.push((case, needs));
        }
        let skill = skill.map(|skill| (skill, skill_file));
        let left_out = imported.left_out;
        let mut warnings = file.warnings;
        warnings.retain(|line| !imported.allowed.contains(line));
        Ok(Self { cases, incomplete, skill, left_out, warnings })
    }
}

/// A file that a case needs and that is nowhere, by its path.
struct MissingFile(String);

/// The files of a case.
fn fixtures(files: Vec<EvalFile>, around: &SkillFolder) -> Result<Vec<Fixture>, MissingFile> {
    let found = files.into_iter().map(|file| {
        let text = file.content.map(FixtureSource::Text);
        let from = file.source.as_deref().unwrap_or(&file.path);
        let on_disk = file.place.and_then(|place| around.path(from, place));
        match text.or(on_disk.map(FixtureSource::Disk)) {
            Some(source) => Ok(Fixture { path: file.path, source }),
            None => Err(MissingFile(file.path)),
        }
    });
    found.collect()
}
