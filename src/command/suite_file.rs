//! The cases of a run that were written down before: a suite of ours, or the file of cases of a
//! skill, with the files and the skill around it. Runs nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;

use super::context::Project;
use super::eprint;
use super::failure::Failure;
use super::skill_file::{FILE as SKILL_FILE, read_skill};
use crate::config;
use selftest_harness::evals::folder::{self, SkillFolder};
use selftest_harness::event::SuiteRun;
use selftest_harness::judge::prompt::TEMPLATE as JUDGE_TEMPLATE;
use selftest_harness::report::document::ReportDocument;
use selftest_harness::report::freeze::{Frozen, freeze};
use selftest_harness::scenario::suite::Suite;
use selftest_harness::sut::skill::Skill;
use selftest_harness::sut::{Fixture, FixtureSource};
use selftest_models::prompts::PromptLibrary;
use selftest_text::escape::terminal;

/// A suite with its file, which the system under test must not read.
pub(super) struct SuiteFile {
    pub(super) suite: Suite,
    /// Files that its cases need, by id.
    fixtures: BTreeMap<String, Arc<[Fixture]>>,
    /// The skill whose cases these are, with its file; none of a suite of ours.
    pub(super) skill: Option<(Skill, PathBuf)>,
    /// As the user named it.
    pub(super) shown: PathBuf,
    pub(super) path: PathBuf,
    /// Whether the cases are taken from the report of a run.
    replays: bool,
}

impl SuiteFile {
    /// Reads the suite of the command line.
    pub(super) fn load(project: &Project, path: &Path) -> Result<Self, Failure> {
        let (shown, path) = (path.to_owned(), project.path(path));
        if config::suite::is_ours(&path) {
            let suite = config::suite::load(&project.shown_path(&shown))?;
            let fixtures = BTreeMap::new();
            return Ok(Self { suite, fixtures, skill: None, shown, path, replays: false });
        }
        Self::import(shown, path)
    }

    /// Reads a file of cases in another format.
    fn import(shown: PathBuf, path: PathBuf) -> Result<Self, Failure> {
        let unreadable = |why: String| Failure::usage(anyhow!("{}: {why}", shown.display()));
        let file = folder::read_file(&path).map_err(|error| unreadable(error.to_string()))?;
        let around = SkillFolder::around(&path);
        let imported = file.suite();
        for line in file.warnings.iter().chain(&imported.left_out) {
            eprint(&format!("warning: {}: {}\n", shown.display(), terminal(line, 300)));
        }
        if imported.suite.cases.is_empty() {
            return Err(unreadable("there is no case that can be run".to_owned())
                .hint(Some("`selftest suite check FILE` says what is in it")));
        }
        let mut fixtures = BTreeMap::new();
        for (id, files) in imported.files {
            let found = files.into_iter().map(|file| {
                let text = file.content.map(FixtureSource::Text);
                let on_disk = file.place.and_then(|place| around.path(&file.path, place));
                let source = text.or(on_disk.map(FixtureSource::Disk)).ok_or_else(|| {
                    let path = terminal(&file.path, 100);
                    unreadable(format!("case {id} needs the file `{path}`, which is nowhere"))
                })?;
                Ok(Fixture { path: file.path, source })
            });
            let found: Result<Arc<[Fixture]>, Failure> = found.collect();
            fixtures.insert(id, found?);
        }
        let file = around.skill.join(SKILL_FILE);
        let skill = if file.is_file() { Some((read_skill(&file)?, file)) } else { None };
        Ok(Self { suite: imported.suite, fixtures, skill, shown, path, replays: false })
    }

    /// The cases of a run, from its report; with the files and the skill around them where they came
    /// from the file of cases of a skill.
    pub(super) fn replaying(
        project: &Project,
        report: &ReportDocument,
        file: PathBuf,
    ) -> Result<Self, Failure> {
        let Frozen { suite, left_out } = freeze(report);
        if !left_out.is_empty() {
            eprint(&format!("left out, since no prompt was generated: {}\n", left_out.join(", ")));
        }
        let around = match &report.suite {
            Some(then) if !then.replayed && !config::suite::is_ours(Path::new(&then.path)) => {
                let around = Self::load(project, Path::new(&then.path))?;
                if around.suite.digest() != then.digest {
                    let error = anyhow!(
                        "{} holds other cases now than in {}",
                        around.shown.display(),
                        report.run_id
                    );
                    return Err(Failure::usage(error).hint(Some(
                        "run it anew with --suite, and compare both runs with `selftest compare A B`",
                    )));
                }
                Some(around)
            }
            _ => None,
        };
        let (fixtures, skill) =
            around.map(|around| (around.fixtures, around.skill)).unwrap_or_default();
        let path = std::path::absolute(&file).unwrap_or_else(|_| file.clone());
        Ok(Self { suite, fixtures, skill, shown: file, path, replays: true })
    }

    /// The files that a case needs.
    pub(super) fn fixtures(&self, id: &str) -> Arc<[Fixture]> {
        self.fixtures.get(id).cloned().unwrap_or_else(|| Arc::new([]))
    }

    /// The suite as the report names it.
    pub(super) fn describe(&self, repeats: u32) -> SuiteRun {
        SuiteRun {
            path: selftest_text::one_line(&self.shown.display().to_string(), 500),
            digest: self.suite.digest(),
            run_id: self.suite.run_id.clone(),
            repeats,
            replayed: self.replays,
        }
    }

    /// Differences from the frozen run that change the meaning of scores.
    pub(super) fn warnings(&self, rubric_digest: &str, library: &PromptLibrary) -> Vec<String> {
        let mut warnings = Vec::new();
        let shown = self.shown.display();
        let differs = |then: Option<&String>, now: Option<&str>| {
            then.is_some_and(|then| now.is_some_and(|now| now != then))
        };
        if differs(self.suite.rubric_digest.as_ref(), Some(rubric_digest)) {
            warnings.push(format!(
                "{shown} was frozen under another rubric: scores cannot be compared with that run"
            ));
        }
        let now = library.digests().get(JUDGE_TEMPLATE).map(String::as_str);
        if differs(self.suite.prompt_digests.get(JUDGE_TEMPLATE), now) {
            warnings.push(format!(
                "prompts/{JUDGE_TEMPLATE} has changed since {shown} was frozen: scores may differ \
                 for that"
            ));
        }
        warnings
    }
}
