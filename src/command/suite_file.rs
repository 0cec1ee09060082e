//! The cases of a run that were written down before: a suite of ours, the file of cases of a skill
//! with the files and the skill around it, or a folder of skills. Runs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::anyhow;

use super::context::Project;
use super::eprint;
use super::failure::Failure;
use super::skill_file::{self, FILE as SKILL_FILE, names};
use crate::config::{self, Config};
use selftest_harness::check::CommandCheck;
use selftest_harness::evals::folder::{self, SkillFolder};
use selftest_harness::evals::{EvalFile, MAX_CASES, ShellRule, free_id};
use selftest_harness::event::SuiteRun;
use selftest_harness::judge::prompt::TEMPLATE as JUDGE_TEMPLATE;
use selftest_harness::report::document::ReportDocument;
use selftest_harness::report::freeze::{Frozen, freeze};
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::scenario::suite::{SUITE_VERSION, Suite, SuiteCase};
use selftest_harness::sut::confine::landlock_abi;
use selftest_harness::sut::skill::Skill;
use selftest_harness::sut::sut_settings::{CommandSettings, Protocol, WorkFolder};
use selftest_harness::sut::{Fixture, FixtureSource};
use selftest_models::prompts::PromptLibrary;
use selftest_text::escape::terminal;
use selftest_text::wording::plural;

/// Where agents look for skills, within the folder that they work in.
const SKILLS: &str = ".claude/skills";
/// The folder of a skill that holds its cases.
const EVALS: &str = "evals";
/// Most warnings of one file of many; what is refused is always told.
const MAX_WARNINGS: usize = 5;
/// The least version of Landlock's interface under which strangers' lines are run: with it a program
/// is kept to its files and off the network.
const CONFINED: i32 = 4;
/// Most remarks of a run.
const MAX_REMARKS: usize = 1_000;

/// A suite with its file, which the system under test must not read.
pub(super) struct SuiteFile {
    pub(super) suite: Suite,
    /// What its cases need, by id.
    needs: BTreeMap<String, Needs>,
    /// The skill whose cases these are, with its file; none of a suite of ours or of many skills.
    pub(super) skill: Option<(Skill, PathBuf)>,
    /// The files that hold the cases.
    pub(super) answer_keys: Vec<PathBuf>,
    /// What is not run and what may not be meant, one line each.
    pub(super) remarks: Vec<String>,
    /// Whose shell lines may be run.
    allowed: AllowedCommands,
    /// Whether it is a folder of skills.
    pub(super) is_folder: bool,
    /// As the user named it.
    pub(super) shown: PathBuf,
    /// Whether the cases are taken from the report of a run.
    replays: bool,
}

/// What a case needs.
struct Needs {
    /// Its files.
    fixtures: Vec<Fixture>,
    /// Commands that make its folder ready.
    set_up: Arc<[CommandCheck]>,
    /// Name of the skill that it is of.
    skill: Option<String>,
    /// The skill that is handed over with it.
    handed: Option<Arc<Skill>>,
    /// The folder of the skill, for a case that asks whether it is loaded.
    skill_folder: Arc<[Fixture]>,
}

/// The skills and cases whose shell lines a person allowed.
struct AllowedCommands {
    names: Vec<String>,
    /// Version of the interface by which this kernel confines programs; 0 where it does not.
    confinement: i32,
    /// The skills and cases that have shell lines.
    seen: Mutex<BTreeSet<String>>,
}

impl AllowedCommands {
    fn new(names: &[String]) -> Self {
        let (names, seen) = (names.to_vec(), Mutex::default());
        Self { names, confinement: landlock_abi(), seen }
    }

    fn seen(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether those of a case may be run, which has these names.
    fn rule(&self, skill: &str, id: &str) -> ShellRule {
        let names = [skill.to_owned(), id.to_owned(), format!("{skill}/{id}")];
        let is_allowed = names.iter().any(|name| self.names.contains(name));
        self.seen().extend(names);
        if !is_allowed {
            let name = terminal(skill, 80);
            let why = format!("shell lines are run only with --allow-commands {name}");
            ShellRule::Refused(why)
        } else if self.confinement < CONFINED {
            let why = "allowed, and not run: this machine cannot confine it to files and network";
            ShellRule::Refused(why.to_owned())
        } else {
            ShellRule::Allowed
        }
    }

    /// The first name that stands for no shell line.
    fn unused(&self) -> Option<&String> {
        let seen = self.seen();
        self.names.iter().find(|name| !seen.contains(*name))
    }
}

/// The cases of one file of somebody else.
struct Imported {
    cases: Vec<(SuiteCase, Needs)>,
    /// Cases that need files which are nowhere, and why.
    incomplete: Vec<String>,
    skill: Option<(Skill, PathBuf)>,
    /// What is refused.
    left_out: Vec<String>,
    warnings: Vec<String>,
}

impl Imported {
    /// Reads a file of cases and what is around it. The error says why nothing of it can be used.
    fn read(path: &Path, allowed: &AllowedCommands) -> Result<Self, String> {
        let file = folder::read_file(path).map_err(|error| error.to_string())?;
        let around = SkillFolder::around(path);
        let skill_file = around.skill.join(SKILL_FILE);
        let skill = if skill_file.is_file() { Some(skill_file::read(&skill_file)?) } else { None };
        let lies = around.skill.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = skill.as_ref().map(|skill| skill.name.clone()).or(file.skill.clone()).or(lies);
        let rule = |id: &str| allowed.rule(name.as_deref().unwrap_or_default(), id);
        let mut imported = file.suite(&skill.as_ref().map(names).unwrap_or_default(), &rule);
        let handed = skill.clone().map(Arc::new);
        let skill_folder: Arc<[Fixture]> = match &skill {
            Some(skill) if !imported.loading.is_empty() => skill_fixtures(&around.skill, skill),
            _ => Arc::new([]),
        };
        let (mut cases, mut incomplete) = (Vec::new(), Vec::new());
        let mut files = imported.files;
        for case in imported.suite.cases {
            let id = &case.scenario.id;
            let fixtures = match fixtures(files.remove(id).unwrap_or_default(), &around) {
                Ok(fixtures) => fixtures,
                Err(missing) => {
                    let missing = terminal(&missing, 100);
                    incomplete
                        .push(format!("case {id} needs the file `{missing}`, which is nowhere"));
                    continue;
                }
            };
            let set_up = imported.set_up.remove(id).unwrap_or_default().into();
            let mut needs = Needs {
                fixtures,
                set_up,
                skill: name.clone(),
                handed: None,
                skill_folder: Arc::new([]),
            };
            // To hand a skill over would answer the question whether it is loaded.
            if imported.loading.contains(id) {
                needs.skill_folder = Arc::clone(&skill_folder);
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

/// The files of a case. The error is the path of one that is nowhere.
fn fixtures(files: Vec<EvalFile>, around: &SkillFolder) -> Result<Vec<Fixture>, String> {
    let found = files.into_iter().map(|file| {
        let text = file.content.map(FixtureSource::Text);
        let on_disk = file.place.and_then(|place| around.path(&file.path, place));
        match text.or(on_disk.map(FixtureSource::Disk)) {
            Some(source) => Ok(Fixture { path: file.path, source }),
            None => Err(file.path),
        }
    });
    found.collect()
}

/// The folder of a skill where agents look for it, without its cases.
fn skill_fixtures(folder: &Path, skill: &Skill) -> Arc<[Fixture]> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut fixtures: Vec<Fixture> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let path = format!("{SKILLS}/{}/{name}", skill.name);
            (name != EVALS && name != ".git")
                .then(|| Fixture { path, source: FixtureSource::Disk(entry.path()) })
        })
        .collect();
    fixtures.sort_by(|a, b| a.path.cmp(&b.path));
    fixtures.into()
}

impl SuiteFile {
    /// Without a case.
    fn empty(shown: PathBuf) -> Self {
        let suite = Suite {
            version: SUITE_VERSION,
            run_id: None,
            rubric_digest: None,
            prompt_digests: BTreeMap::new(),
            cases: Vec::new(),
        };
        Self {
            suite,
            needs: BTreeMap::new(),
            skill: None,
            answer_keys: Vec::new(),
            remarks: Vec::new(),
            allowed: AllowedCommands::new(&[]),
            is_folder: false,
            shown,
            replays: false,
        }
    }

    /// Reads the suite of the command line.
    pub(super) fn load(
        project: &Project,
        path: &Path,
        allowed: &[String],
    ) -> Result<Self, Failure> {
        let (shown, path) = (path.to_owned(), project.path(path));
        let mut file = Self::empty(shown);
        file.answer_keys.push(path.clone());
        file.allowed = AllowedCommands::new(allowed);
        file.is_folder = path.is_dir();
        if file.is_folder {
            file.add_folder(&path)?;
        } else if config::suite::is_ours(&path) {
            file.suite = config::suite::load(&project.shown_path(&file.shown))?;
            return file.with_all_allowed();
        } else {
            file.add_file(&path)?;
        }
        if file.suite.cases.is_empty() {
            let error = anyhow!("{}: there is no case that can be run", file.shown.display());
            return Err(
                Failure::usage(error).hint(Some("`selftest suite check PATH` says what is in it"))
            );
        }
        file.with_all_allowed()
    }

    /// Refuses names that allow nothing.
    fn with_all_allowed(self) -> Result<Self, Failure> {
        let Some(unused) = self.allowed.unused() else { return Ok(self) };
        let seen: Vec<String> =
            self.allowed.seen().iter().filter(|name| !name.contains('/')).cloned().collect();
        let name = terminal(unused, 100);
        let error = anyhow!(
            "--allow-commands {name}: {} has no skill or case of that name with shell lines",
            self.shown.display()
        );
        let known = match seen.as_slice() {
            [] => "nothing in it needs to be allowed".to_owned(),
            names => format!("these have some: {}", terminal(&names.join(", "), 300)),
        };
        Err(Failure::usage(error).hint(Some(known)))
    }

    /// The file of cases of one skill. Whatever it names must be there.
    fn add_file(&mut self, path: &Path) -> Result<(), Failure> {
        let unreadable = |why: &str| Failure::usage(anyhow!("{}: {why}", self.shown.display()));
        let imported = Imported::read(path, &self.allowed).map_err(|why| unreadable(&why))?;
        if let Some(why) = imported.incomplete.first() {
            return Err(unreadable(why));
        }
        self.answer_keys = folder::beside(path);
        self.skill = imported.skill;
        let shown = self.shown.clone();
        for line in imported.warnings.iter().chain(&imported.left_out) {
            self.remark(&shown, line);
        }
        for (case, needs) in imported.cases {
            self.needs.insert(case.scenario.id.clone(), needs);
            self.suite.cases.push(case);
        }
        Ok(())
    }

    /// The files of cases of all skills in a folder. What one of them cannot give is named, and the
    /// others are run.
    fn add_folder(&mut self, path: &Path) -> Result<(), Failure> {
        let files = folder::find(path);
        if files.is_empty() {
            let error = anyhow!("there is no evals.json below {}", self.shown.display());
            return Err(Failure::usage(error).hint(Some(
                "name a folder of skills that have an evals/evals.json each, or one such file",
            )));
        }
        self.answer_keys.clone_from(&files);
        // One name for each skill, and the ids that its files have used up.
        let mut skills: BTreeMap<PathBuf, (String, BTreeSet<String>)> = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for file in &files {
            let shown = file.strip_prefix(path).map_or(file.clone(), |rest| self.shown.join(rest));
            let imported = match Imported::read(file, &self.allowed) {
                Ok(imported) => imported,
                Err(why) => {
                    self.remark(&shown, &format!("nothing of it is run: {why}"));
                    continue;
                }
            };
            if imported.skill.is_none() {
                self.remark(&shown, "there is no SKILL.md around it: it is run without a skill");
            }
            for line in &imported.incomplete {
                self.remark(&shown, &format!("not run: {line}"));
            }
            for line in &imported.left_out {
                self.remark(&shown, line);
            }
            for line in imported.warnings.iter().take(MAX_WARNINGS) {
                self.remark(&shown, line);
            }
            if let Some(more) = imported.warnings.len().checked_sub(MAX_WARNINGS + 1) {
                let more = plural(more as u64 + 1, "more warning");
                self.remark(&shown, &format!("{more}: `selftest suite check FILE -v` says which"));
            }
            let around = SkillFolder::around(file).skill;
            let (name, ids) = skills.entry(around).or_insert_with(|| {
                let name = imported.cases.first().and_then(|(_, needs)| needs.skill.as_deref());
                (free_id(name.unwrap_or("skill"), &mut taken), BTreeSet::new())
            });
            for (mut case, mut needs) in imported.cases {
                let id = format!("{name}/{}", free_id(&case.scenario.id, ids));
                case.scenario.id.clone_from(&id);
                needs.skill = Some(name.clone());
                self.needs.insert(id, needs);
                self.suite.cases.push(case);
            }
        }
        if self.suite.cases.len() > MAX_CASES {
            let (count, shown) = (self.suite.cases.len(), self.shown.display());
            let error = anyhow!("{shown} holds {count} cases, more than {MAX_CASES}");
            return Err(Failure::usage(error).hint(Some("name a folder with fewer skills")));
        }
        Ok(())
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
                let around = Self::load(project, Path::new(&then.path), &then.allowed_commands)?;
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
        let path = std::path::absolute(&file).unwrap_or_else(|_| file.clone());
        let mut replayed = around.unwrap_or_else(|| Self::empty(file.clone()));
        replayed.suite = suite;
        replayed.shown = file;
        replayed.answer_keys.push(path);
        replayed.replays = true;
        Ok(replayed)
    }

    /// Says a thing on stderr, and keeps it for the report.
    fn remark(&mut self, shown: &Path, words: &str) {
        let line =
            format!("{}: {}", terminal(&shown.display().to_string(), 300), terminal(words, 300));
        eprint(&format!("warning: {line}\n"));
        match self.remarks.len() {
            count if count < MAX_REMARKS => self.remarks.push(line),
            MAX_REMARKS => {
                let shown = terminal(&self.shown.display().to_string(), 300);
                self.remarks
                    .push(format!("{shown}: and more; `selftest suite check PATH` names all"));
            }
            _ => {}
        }
    }

    /// Cases that ask only whether a skill is loaded.
    fn loading(&self) -> usize {
        self.suite.cases.iter().filter(|case| case.generated().should_load().is_some()).count()
    }

    /// Reads the suite of an experiment with one skill: without the cases that ask only whether it is
    /// loaded, since an experiment hands it over.
    pub(super) fn for_experiment(
        project: &Project,
        path: &Path,
        allowed: &[String],
    ) -> Result<Self, Failure> {
        let mut file = Self::load(project, path, allowed)?;
        if file.is_folder {
            let error = anyhow!("{} is a folder: an experiment tries one skill", path.display());
            return Err(Failure::usage(error).hint(Some("name the evals.json of that skill")));
        }
        file.leave_out_loading()?;
        Ok(file)
    }

    fn leave_out_loading(&mut self) -> Result<(), Failure> {
        let count = self.loading();
        if count == 0 {
            return Ok(());
        }
        let shown = self.shown.clone();
        if count == self.suite.cases.len() {
            let error = anyhow!("{} only asks whether a skill is loaded", shown.display());
            return Err(Failure::usage(error)
                .hint(Some("`selftest --suite FILE` measures that; an experiment hands it over")));
        }
        self.suite.cases.retain(|case| case.generated().should_load().is_none());
        let prompts = plural(count as u64, "prompt");
        self.remark(&shown, &format!("{prompts} about loading the skill are no part of it"));
        Ok(())
    }

    /// Says where a configuration cannot tell whether a skill is loaded.
    pub(super) fn check_loading(&mut self, config: &Config) {
        let count = self.loading();
        let command = config.sut.command.as_ref();
        let tells = command.is_some_and(|command| command.protocol == Protocol::JsonLines);
        if count == 0 || (tells && command.is_some_and(has_folder)) {
            return;
        }
        let (shown, prompts) = (self.shown.clone(), plural(count as u64, "prompt"));
        self.remark(
            &shown,
            &format!(
                "{prompts} about loading a skill: it is put into {SKILLS} of the folder of a case \
                 with `sut.command.work_folder: copy`, and a `json_lines` program says in \
                 `tool_calls` what it did; without them nobody knows"
            ),
        );
    }

    /// Gives a planned case what it needs.
    pub(super) fn equip(&self, case: &mut PlannedCase, config: &Config) {
        let Some(needs) = self.needs.get(&case.scenario.id) else { return };
        let mut fixtures = needs.fixtures.clone();
        if config.sut.command.as_ref().is_some_and(has_folder) {
            fixtures.extend(needs.skill_folder.iter().cloned());
        }
        case.fixtures = fixtures.into();
        case.set_up = Arc::clone(&needs.set_up);
        case.skill.clone_from(&needs.skill);
        case.handed.clone_from(&needs.handed);
    }

    /// The suite as the report names it.
    pub(super) fn describe(&self, repeats: u32) -> SuiteRun {
        SuiteRun {
            path: selftest_text::one_line(&self.shown.display().to_string(), 500),
            digest: self.suite.digest(),
            run_id: self.suite.run_id.clone(),
            repeats,
            replayed: self.replays,
            allowed_commands: self.allowed.names.clone(),
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

/// Whether each case has a folder of its own.
fn has_folder(command: &CommandSettings) -> bool {
    command.work_folder == WorkFolder::Copy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(names: &[&str], confinement: i32) -> AllowedCommands {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        AllowedCommands { names, confinement, seen: Mutex::default() }
    }

    #[test]
    fn lines_are_run_only_by_name_and_only_confined() {
        for name in ["ferry", "3", "ferry/3"] {
            let allowed = allowed(&[name], CONFINED);
            assert_eq!(allowed.rule("ferry", "3"), ShellRule::Allowed);
            assert_eq!(allowed.unused(), None);
        }
        let refused = |allowed: &AllowedCommands| match allowed.rule("ferry", "3") {
            ShellRule::Refused(why) => why,
            ShellRule::Allowed => panic!("it was allowed"),
        };
        let other = allowed(&["ferry/4", "harbour"], CONFINED);
        assert!(refused(&other).contains("--allow-commands ferry"));
        assert_eq!(other.unused().map(String::as_str), Some("ferry/4"));
        for unconfined in [0, CONFINED - 1] {
            assert!(refused(&allowed(&["ferry"], unconfined)).contains("cannot confine"));
        }
    }
}
