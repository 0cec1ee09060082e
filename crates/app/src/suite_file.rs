//! The cases of a run that were written down before: a suite of ours, a file of cases in a foreign
//! format with the files and the skill around it, or a folder of skills. Runs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::anyhow;

use super::skill_file::{SKILL_FILE, SkillFileError, read_skill_text, skill_names};
use crate::error::AppError;
use crate::project::{Frontend, Project};
use selftest_checks::check::{Check, CommandCheck};
use selftest_checks::evals::folder::SkillFolder;
use selftest_checks::evals::{
    EvalFile, EvalsReadError, MAX_CASES, ShellPermission, folder, unique_id,
};
use selftest_checks::scenario::should_load;
use selftest_checks::suite::{SUITE_VERSION, Suite, SuiteCase};
use selftest_config as config;
use selftest_config::Config;
use selftest_harness::event::SuiteRun;
use selftest_harness::judge::TEMPLATES as JUDGE_TEMPLATES;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::sut::namespace::RunId;
use selftest_harness::sut::skill::Skill;
use selftest_harness::sut::sut_settings::{ProgramSettings, WorkFolder};
use selftest_harness::sut::{Fixture, FixtureSource};
use selftest_models::prompts::PromptLibrary;
use selftest_reports::document::ReportDocument;
use selftest_reports::rerun::{FrozenSuite, freeze};
use selftest_sandbox::limits::SandboxMode;
use selftest_sandbox::{SandboxLevel, SandboxSupport};
use selftest_text::escape::terminal;
use selftest_text::wording::plural;

/// Maximum number of warnings per file of many; refusals are always shown.
const MAX_WARNINGS: usize = 5;
/// Maximum number of files of a folder that are looked at for a suite to name.
const MAX_LISTED: usize = 200;
/// Maximum number of remarks of a run.
const MAX_REMARKS: usize = 1_000;

/// A suite with its file, which the system under test must not read.
pub struct SuiteFile {
    /// The cases.
    pub suite: Suite,
    /// The needs of its cases, by id.
    needs: BTreeMap<String, CaseNeeds>,
    /// The skill whose cases these are, with its file; none of a suite of ours or of many skills.
    pub skill: Option<(Skill, PathBuf)>,
    /// The files that hold the cases.
    pub answer_keys: Vec<PathBuf>,
    /// `ExperimentParts` that are not run or may not be meant, one line each.
    pub remarks: Vec<String>,
    /// Files and cases that cannot be run, with the reason.
    pub lost: Vec<String>,
    /// Whose shell lines may be run.
    allowed: AllowedCommands,
    /// True for a folder of skills.
    pub is_folder: bool,
    /// As the user named it.
    pub shown: PathBuf,
    /// True if the cases come from the report of a run.
    replays: bool,
    /// Scenarios of the configuration that are run beside the cases, and generated anew.
    pub to_generate: Vec<String>,
    /// Receives warnings about the cases.
    frontend: Arc<dyn Frontend>,
}

impl SuiteFile {
    /// Without a case.
    fn empty(shown: PathBuf, frontend: &Arc<dyn Frontend>) -> Self {
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
            lost: Vec::new(),
            allowed: AllowedCommands::new(&[]),
            is_folder: false,
            shown,
            replays: false,
            to_generate: Vec::new(),
            frontend: Arc::clone(frontend),
        }
    }

    /// Reads the suite of the command line.
    pub fn load(project: &Project, path: &Path, allowed: &[String]) -> Result<Self, AppError> {
        Self::read(project, path, allowed)?.with_all_allowed()
    }

    /// Reads a suite; names that allow nothing in it may be meant for others.
    fn read(project: &Project, path: &Path, allowed: &[String]) -> Result<Self, AppError> {
        let (shown, path) = (path.to_owned(), project.path(path));
        let mut file = Self::empty(shown, project.frontend());
        // Hidden from the agent from here on, even if reading it fails below.
        file.answer_keys.push(path.clone());
        file.allowed = AllowedCommands::new(allowed);
        file.is_folder = path.is_dir();
        if file.is_folder {
            file.add_folder(&path)?;
        } else if config::suite::is_selftest_suite(&path) {
            file.suite = config::suite::load(&project.shown_path(&file.shown))?;
            return Ok(file);
        } else {
            file.add_file(&path)?;
        }
        if file.suite.cases.is_empty() {
            let error = anyhow!("{}: there is no case that can be run", file.shown.display());
            return Err(
                AppError::usage(error).hint(Some("`selftest suite check PATH` says what is in it"))
            );
        }
        Ok(file)
    }

    /// Refuses names that allow nothing.
    fn with_all_allowed(self) -> Result<Self, AppError> {
        let Some(unused) = self.allowed.unused() else { return Ok(self) };
        // `skill/case` also allows the lines, but the short name is what one types.
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
        Err(AppError::usage(error).hint(Some(known)))
    }

    /// The file of cases of one skill. Whatever it names must be there.
    fn add_file(&mut self, path: &Path) -> Result<(), AppError> {
        let unreadable = |why: &str| AppError::usage(anyhow!("{}: {why}", self.shown.display()));
        let imported = ImportedSuite::read(path, &self.allowed)
            .map_err(|error| unreadable(&error.to_string()))?;
        // A single file was named by the user, so a case that cannot be run is an error. In a
        // folder the others still run.
        if let Some(why) = imported.incomplete.first() {
            return Err(unreadable(why));
        }
        self.answer_keys = folder::answer_keys(path);
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
    fn add_folder(&mut self, path: &Path) -> Result<(), AppError> {
        let files = folder::find(path);
        if files.is_empty() {
            let error = anyhow!("there is no evals.json below {}", self.shown.display());
            let hint = match own_suite_below(path) {
                Some(suite) => {
                    format!("name one suite, such as {}", self.shown.join(suite).display())
                }
                None => "name a folder of skills that have an evals/evals.json each, or one such \
                         file"
                    .to_owned(),
            };
            return Err(AppError::usage(error).hint(Some(hint)));
        }
        self.answer_keys = files.iter().flat_map(|file| folder::answer_keys(file)).collect();
        // One name for each skill, and the ids that its files have used up.
        let mut skills: BTreeMap<PathBuf, (String, BTreeSet<String>)> = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for file in &files {
            let shown = file.strip_prefix(path).map_or(file.clone(), |rest| self.shown.join(rest));
            let imported = match ImportedSuite::read(file, &self.allowed) {
                Ok(imported) => imported,
                Err(why) => {
                    self.lost.push(format!("{}: {why}", shown.display()));
                    self.remark(&shown, &format!("nothing of it is run: {why}"));
                    continue;
                }
            };
            if imported.skill.is_none() {
                self.remark(&shown, "there is no SKILL.md around it: it is run without a skill");
            }
            for line in &imported.incomplete {
                self.lost.push(line.clone());
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
            // By its folder and not by its name: two skills of a repository may have the same name
            // in their SKILL.md.
            let around = SkillFolder::locate(file).skill;
            let (name, ids) = skills.entry(around).or_insert_with(|| {
                let name = imported.cases.first().and_then(|(_, needs)| needs.skill.as_deref());
                (unique_id(name.unwrap_or("skill"), &mut taken), BTreeSet::new())
            });
            for (mut case, mut needs) in imported.cases {
                let id = format!("{name}/{}", unique_id(&case.scenario.id, ids));
                case.scenario.id.clone_from(&id);
                needs.skill = Some(name.clone());
                self.needs.insert(id, needs);
                self.suite.cases.push(case);
            }
        }
        if self.suite.cases.len() > MAX_CASES {
            let (count, shown) = (self.suite.cases.len(), self.shown.display());
            let error = anyhow!("{shown} holds {count} cases, more than {MAX_CASES}");
            return Err(AppError::usage(error).hint(Some("name a folder with fewer skills")));
        }
        Ok(())
    }

    /// The cases of a run, from its report; with the files and the skill around them where they came
    /// from the file of cases of a skill. Its shell lines are allowed anew: a report allows nothing.
    pub fn of_run(
        project: &Project,
        report: &ReportDocument,
        file: PathBuf,
        allowed: &[String],
    ) -> Result<Self, AppError> {
        let FrozenSuite { suite, left_out } = freeze(report);
        if !left_out.is_empty() {
            project.notify(&format!(
                "left out, because no prompt was generated: {}\n",
                left_out.join(", ")
            ));
        }
        let then = report.suite.as_ref().filter(|then| !then.replayed);
        let then = then
            // Our own suites have no files around them, so the report alone is enough to run them
            // again.
            .filter(|then| !config::suite::is_selftest_suite(&project.path(Path::new(&then.path))));
        let around = match then {
            Some(then) => Some(Self::around(project, then, &report.run_id, allowed)?),
            None => None,
        };
        let path = std::path::absolute(&file).unwrap_or_else(|_| file.clone());
        let mut replayed = around.unwrap_or_else(|| Self::empty(file.clone(), project.frontend()));
        replayed.suite = suite;
        replayed.shown = file;
        // The report of the earlier run holds expectations and verdicts, so that it is hidden from
        // the agent as well.
        replayed.answer_keys.push(path);
        replayed.replays = true;
        Ok(replayed)
    }

    /// Loads the files and the skill around the cases of a run; fails if they have changed.
    fn around(
        project: &Project,
        then: &SuiteRun,
        run_id: &RunId,
        allowed: &[String],
    ) -> Result<Self, AppError> {
        // An earlier consent does not carry over: the lines may have changed since, and replaying
        // would run them without anyone having read them.
        if let Some(name) = then.allowed_commands.iter().find(|name| !allowed.contains(*name)) {
            let name = terminal(name, 100);
            let error = anyhow!("the shell lines of {name} were allowed in {run_id}");
            let hint = format!("read them, and allow them again: --allow-commands {name}");
            return Err(AppError::usage(error).hint(Some(hint)));
        }
        let around = Self::load(project, Path::new(&then.path), allowed)?;
        // The report has the prompts, but not the files beside them. With other files, the old
        // prompts would ask about something that is not there.
        if around.suite.digest() != then.digest {
            let error =
                anyhow!("{} holds other cases now than in {run_id}", around.shown.display());
            return Err(AppError::usage(error).hint(Some(
                "run it anew with --suite, and compare both runs with `selftest compare A B`",
            )));
        }
        Ok(around)
    }

    /// Reports a warning and keeps it for the report.
    fn remark(&mut self, shown: &Path, words: &str) {
        let line =
            format!("{}: {}", terminal(&shown.display().to_string(), 300), terminal(words, 300));
        self.frontend.notify(&format!("warning: {line}\n"));
        match self.remarks.len() {
            count if count < MAX_REMARKS => self.remarks.push(line),
            // Only the first remark too many adds this line; the list is longer afterwards.
            MAX_REMARKS => {
                let shown = terminal(&self.shown.display().to_string(), 300);
                self.remarks
                    .push(format!("{shown}: and more; `selftest suite check PATH` names all"));
            }
            _ => {}
        }
    }

    /// Returns true if the cases are some of a run's, so that others may exist.
    pub const fn replays(&self) -> bool {
        self.replays
    }

    /// Cases that ask only whether a skill is loaded.
    fn loading(&self) -> usize {
        self.suite.cases.iter().filter(|case| case.generated().should_load().is_some()).count()
    }

    /// Reads the suite of an experiment with one skill: without the cases that ask only whether it is
    /// loaded, since an experiment hands it over.
    pub fn for_experiment(
        project: &Project,
        path: &Path,
        allowed: &[String],
    ) -> Result<Self, AppError> {
        let mut file = Self::load(project, path, allowed)?;
        if file.is_folder {
            let error = anyhow!("{} is a folder: an experiment tries one skill", path.display());
            return Err(AppError::usage(error).hint(Some("name the evals.json of that skill")));
        }
        file.leave_out_loading()?;
        Ok(file)
    }

    /// Reads the cases of one skill, for a test in several arms: each arm lays the skill for itself, and
    /// prompts that ask only whether it is loaded are kept.
    pub(crate) fn for_skill_test(
        project: &Project,
        folder: &Path,
        allowed: &[String],
    ) -> Result<Self, AppError> {
        let mut file = Self::read(project, folder, allowed)?;
        for needs in file.needs.values_mut() {
            // Each arm of the test lays its own version of the skill, or none.
            (needs.handed, needs.laid) = (None, None);
        }
        // No arm without the skill can pass a task that demands that it is loaded.
        let mut dropped = 0;
        for case in file.suite.cases.iter_mut().filter(|case| !asks_only_loading(case)) {
            dropped += drop_loading_checks(case);
        }
        file.remark_left_out(dropped, "check");
        Ok(file)
    }

    /// Leaves out what asks whether a skill is loaded: the arm without it could never load it.
    fn leave_out_loading(&mut self) -> Result<(), AppError> {
        let shown = self.shown.clone();
        let all = self.suite.cases.len();
        // An experiment hands the skill over, so that every case would pass such a check.
        self.suite.cases.retain(|case| !asks_only_loading(case));
        let count = all - self.suite.cases.len();
        if count > 0 && count == all {
            let error = anyhow!("{} only asks whether a skill is loaded", shown.display());
            return Err(AppError::usage(error)
                .hint(Some("`selftest --suite FILE` measures that; an experiment hands it over")));
        }
        let dropped = self.suite.cases.iter_mut().map(drop_loading_checks).sum();
        self.remark_left_out(count, "prompt");
        self.remark_left_out(dropped, "check");
        Ok(())
    }

    fn remark_left_out(&mut self, count: usize, what: &str) {
        if count > 0 {
            let (shown, what) = (self.shown.clone(), plural(count as u64, what));
            self.remark(&shown, &format!("{what} about loading the skill left out"));
        }
    }

    /// Warns if the configuration cannot show whether a skill is loaded.
    pub fn check_loading(&mut self, config: &Config) {
        let count = self.loading();
        let has_folder = config.sut.program().is_some_and(has_folder);
        if count == 0 || (config.sut.reports_tool_calls() && has_folder) {
            return;
        }
        let (shown, prompts) = (self.shown.clone(), plural(count as u64, "prompt"));
        let section = config.sut.program_section();
        self.remark(
            &shown,
            &format!(
                "{prompts} about loading a skill: it is put where the agent looks for skills in the \
                 folder of a case with `{section}.work_folder: copy`, and a `json_lines` program \
                 says in `tool_calls` what it did; without them the result is unknown"
            ),
        );
    }

    /// Gives a planned case what it needs.
    pub fn equip(&self, case: &mut PlannedCase, config: &Config) {
        let Some(needs) = self.needs.get(&case.scenario.id) else { return };
        let mut fixtures = needs.fixtures.clone();
        if let Some(program) = config.sut.program().filter(|program| has_folder(program)) {
            fixtures.extend(needs.laid.iter().flat_map(|skill| skill.laid_for(&program.run)));
        }
        case.fixtures = fixtures.into();
        case.setup_commands = Arc::clone(&needs.set_up);
        case.skill.clone_from(&needs.skill);
        case.given_skill.clone_from(&needs.handed);
    }

    /// The suite as the report names it.
    pub fn describe(&self, repeats: u32) -> SuiteRun {
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
    pub fn warnings(&self, rubric_digest: &str, library: &PromptLibrary) -> Vec<String> {
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
        for name in JUDGE_TEMPLATES {
            let now = library.digests().get(name).map(String::as_str);
            if differs(self.suite.prompt_digests.get(name), now) {
                warnings.push(format!(
                    "prompts/{name} has changed since {shown} was frozen: scores may differ for that"
                ));
            }
        }
        warnings
    }
}

fn is_loading_check(check: &Check) -> bool {
    should_load(check).is_some()
}

/// Returns true for a case that asks only whether skills are loaded.
fn asks_only_loading(case: &SuiteCase) -> bool {
    let case = case.generated();
    !case.needs_judge() && case.grounds.checks.iter().all(is_loading_check)
}

/// Drops the checks of a case that ask whether a skill is loaded, and returns their number.
fn drop_loading_checks(case: &mut SuiteCase) -> usize {
    let mut dropped = 0;
    for checks in [&mut case.checks, &mut case.scenario.checks] {
        let before = checks.len();
        checks.retain(|check| !is_loading_check(check));
        dropped += before - checks.len();
    }
    dropped
}

/// Returns true if each case has its own folder.
fn has_folder(program: &ProgramSettings) -> bool {
    program.work_folder == WorkFolder::Copy
}

/// Returns the first suite in a folder or in its folder `suites`, from the folder.
fn own_suite_below(folder: &Path) -> Option<PathBuf> {
    ["", "suites"].iter().find_map(|below| {
        let entries = std::fs::read_dir(folder.join(below)).ok()?.flatten().take(MAX_LISTED);
        let names = entries.map(|entry| Path::new(below).join(entry.file_name()));
        let mut suites: Vec<PathBuf> = names
            .filter(|name| {
                let is_yaml = name.extension().is_some_and(|end| end == "yaml" || end == "yml");
                is_yaml && config::suite::is_selftest_suite(&folder.join(name))
            })
            .collect();
        suites.sort();
        suites.into_iter().next()
    })
}

/// The needs of a case.
struct CaseNeeds {
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
enum ImportError {
    #[error(transparent)]
    File(#[from] EvalsReadError),
    #[error(transparent)]
    Skill(#[from] SkillFileError),
}

/// The cases of one file of somebody else.
struct ImportedSuite {
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
    fn read(path: &Path, allowed: &AllowedCommands) -> Result<Self, ImportError> {
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

/// Returns the names of the skill around a suite of another program, if there is one.
pub fn skill_around(suite: &Path) -> Vec<String> {
    let file = SkillFolder::locate(suite).skill.join(SKILL_FILE);
    let skill = file.is_file().then(|| read_skill_text(&file).ok()).flatten();
    skill.as_ref().map(skill_names).unwrap_or_default()
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
struct AllowedCommands {
    pub names: Vec<String>,
    /// True if this machine confines programs to their files and off the network.
    is_confined: bool,
    /// The skills and cases that have shell lines.
    seen: Mutex<BTreeSet<String>>,
}

impl AllowedCommands {
    fn new(names: &[String]) -> Self {
        let (names, seen) = (names.to_vec(), Mutex::default());
        // Detection starts a process, which is in vain if nothing is allowed.
        let is_confined = !names.is_empty() && can_confine();
        Self { names, is_confined, seen }
    }

    fn seen(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the lines of the case with these names may run.
    fn rule(&self, skill: &str, id: &str) -> ShellPermission {
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
    fn unused(&self) -> Option<&String> {
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
