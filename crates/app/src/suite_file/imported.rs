//! One file of cases in a format of somebody else, with the files and the skill around it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::skill_file::{SKILL_FILE, SkillFileError, read_skill_text, skill_names};
use selftest_checks::check::CommandCheck;
use selftest_checks::evals::folder::SkillFolder;
use selftest_checks::evals::{EvalFile, EvalsReadError, ShellPermission, folder};
use selftest_checks::suite::SuiteCase;
use selftest_harness::sut::skill::Skill;
use selftest_harness::sut::{Fixture, FixtureSource};
use selftest_sandbox::limits::SandboxMode;
use selftest_sandbox::{SandboxLevel, SandboxSupport};
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

/// The least version of Landlock's interface under which strangers' lines are run where there are no
/// namespaces: with it a program is kept to its files and off the network.
const CONFINED: i32 = 4;

/// The skills and cases whose shell lines a person allowed.
pub(super) struct AllowedCommands {
    pub names: Vec<String>,
    /// True if this machine confines programs to their files and off the network.
    is_confined: bool,
    /// The skills and cases that have shell lines.
    seen: Mutex<BTreeSet<String>>,
}

impl AllowedCommands {
    pub(super) fn new(names: &[String]) -> Self {
        let (names, seen) = (names.to_vec(), Mutex::default());
        let is_confined = !names.is_empty() && can_confine();
        Self { names, is_confined, seen }
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the lines of the case with these names may run.
    pub(super) fn rule(&self, skill: &str, id: &str) -> ShellPermission {
        let names = [skill.to_owned(), id.to_owned(), format!("{skill}/{id}")];
        let is_allowed = names.iter().any(|name| self.names.contains(name));
        self.seen().extend(names);
        if !is_allowed {
            let name = terminal(skill, 80);
            let why = format!("shell lines are run only with --allow-commands {name}");
            ShellPermission::Denied(why)
        } else if !self.is_confined {
            let why = "allowed, and not run: this machine cannot confine it to files and network";
            ShellPermission::Denied(why.to_owned())
        } else {
            ShellPermission::Allowed
        }
    }

    /// The first name that stands for no shell line.
    pub(super) fn unused(&self) -> Option<&String> {
        let seen = self.seen();
        self.names.iter().find(|name| !seen.contains(*name))
    }
}

/// Whatever `sut.sandbox` says: these lines are a stranger's.
fn can_confine() -> bool {
    let harness = std::env::current_exe().ok();
    let standing =
        harness.and_then(|harness| SandboxSupport::detect(&harness, SandboxMode::BestEffort).ok());
    standing.is_some_and(|it| it.level == SandboxLevel::Full || it.landlock_abi >= CONFINED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(names: &[&str], is_confined: bool) -> AllowedCommands {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        AllowedCommands { names, is_confined, seen: Mutex::default() }
    }

    #[test]
    fn lines_are_run_only_by_name_and_only_confined() {
        for name in ["ferry", "3", "ferry/3"] {
            let allowed = allowed(&[name], true);
            assert_eq!(allowed.rule("ferry", "3"), ShellPermission::Allowed);
            assert_eq!(allowed.unused(), None);
        }
        let refused = |allowed: &AllowedCommands| match allowed.rule("ferry", "3") {
            ShellPermission::Denied(why) => why,
            ShellPermission::Allowed => panic!("it was allowed"),
        };
        let other = allowed(&["ferry/4", "harbour"], true);
        assert!(refused(&other).contains("--allow-commands ferry"));
        assert_eq!(other.unused().map(String::as_str), Some("ferry/4"));
        assert!(refused(&allowed(&["ferry"], false)).contains("cannot confine"));
    }
}
