//! `selftest improve skills experiment`: the same cases with and without a skill.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::cli::{ExperimentArgs, GlobalArgs};
use crate::command::compare::print_plan;
use crate::command::context::{Project, flags};
use crate::command::experiment::{Broken, Experiment};
use crate::command::failure::Failure;
use crate::command::interruption::cancel_on_interrupt;
use crate::command::named_run::report;
use crate::command::resume::{ExperimentRequest, Start};
use crate::command::run::planned;
use crate::command::skill_creator::{self, WITH_SKILL, WITHOUT_SKILL};
use crate::command::skill_file::{FILE, read_skill};
use crate::command::suite_file::SuiteFile;
use crate::command::{eprint, print};
use crate::exit::Exit;
use selftest_config::ResolvedConfig;
use selftest_harness::experiment::power::PowerPlan;
use selftest_harness::experiment::{Arm, Arms, Conclusion};
use selftest_harness::sut::skill::Skill;
use selftest_reports::comparison::experiment::text;
use selftest_reports::skill_creator::ArmConfiguration;
use selftest_reports::terminal::DetailLevel;
use selftest_reports::{TerminalStyle, comparison};
use selftest_text::one_line;

/// Where skills are found by name.
const FOLDERS: [&str; 2] = [".claude/skills", "skills"];

pub(super) async fn execute(
    told: &ExperimentArgs,
    json: bool,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    if !told.report.is_empty() {
        let error = anyhow!("--report names one file, and an experiment is two runs");
        return Err(Failure::usage(error).hint(Some(
            "write reports of either arm afterwards: `selftest report write RUN --report junit=PATH`",
        )));
    }
    let project = Project::open(global)?;
    let resolved = project.load(flags(&told.run()))?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    let parts = parts(&project, told, None)?;
    if told.power {
        return plan(&project, &resolved, told, json);
    }
    conclude(&project, &resolved, told, json, parts, None).await
}

/// Goes on with an experiment that was broken off.
pub(in crate::command) async fn go_on(
    project: &Project,
    resolved: &ResolvedConfig,
    begun: &ExperimentRequest,
    starts: Arms<Start>,
) -> Result<Exit, Failure> {
    let parts = parts(project, &begun.told, begun.drafted.as_deref())?;
    let broken = Broken { arms: begun.arms.clone(), starts };
    conclude(project, resolved, &begun.told, begun.json, parts, Some(broken)).await
}

/// The skill under trial and the suite that it is tried on.
struct Parts {
    suite: SuiteFile,
    skill: Skill,
    /// Where the skill lies; nowhere where it is a draft.
    file: Option<PathBuf>,
}

fn parts(
    project: &Project,
    told: &ExperimentArgs,
    drafted: Option<&str>,
) -> Result<Parts, Failure> {
    let mut suite = SuiteFile::for_experiment(project, &told.suite, &told.trials.allow_commands)?;
    let around = suite.skill.take();
    let (skill, file) = match (&told.skill, drafted, around) {
        (Some(name), Some(text), _) => (Skill { name: name.clone(), text: text.to_owned() }, None),
        (Some(named), None, _) => find(project, named).map(|(skill, file)| (skill, Some(file)))?,
        (None, _, Some((skill, file))) => (skill, Some(file)),
        (None, _, None) => {
            let error = anyhow!("{} lies in no skill, and none is named", told.suite.display());
            return Err(Failure::usage(error)
                .hint(Some("`selftest improve skills experiment SKILL --suite FILE` names one")));
        }
    };
    Ok(Parts { suite, skill, file })
}

/// Runs what is to be run, and says what was found.
async fn conclude(
    project: &Project,
    resolved: &ResolvedConfig,
    told: &ExperimentArgs,
    json: bool,
    parts: Parts,
    broken: Option<Broken>,
) -> Result<Exit, Failure> {
    let Parts { suite, skill, file } = parts;
    let experiment = Experiment {
        project,
        resolved,
        told,
        suite,
        skill,
        // The arm without it would have what it must do without.
        hidden: file.iter().map(|file| to_hide(project, file)).collect(),
        shows_progress: project.detail != DetailLevel::Brief,
        json,
        is_draft: file.is_none(),
    };
    let Some(conducted) = experiment.conduct(broken, cancel_on_interrupt()).await? else {
        eprint("nothing to run: no case was selected\n");
        return Ok(Exit::NothingRan);
    };
    let found = &conducted.found;
    if let Some(folder) = &told.skill_creator {
        let Arms { control, treatment } = &conducted.reports;
        let arms = [
            ArmConfiguration { name: WITH_SKILL, report: treatment },
            ArmConfiguration { name: WITHOUT_SKILL, report: control },
        ];
        skill_creator::write(project, folder, &found.skill, &arms)?;
    }
    if json {
        print(&format!("{:#}\n", serde_json::json!(found)))?;
    } else {
        let style = TerminalStyle {
            terminal: std::io::stdout().is_terminal(),
            colour: std::io::stdout().is_terminal() && !project.environment.no_color,
        };
        print(&text(found, style))?;
    }
    if !conducted.faults.is_empty() {
        return Err(Failure::setup(anyhow!(conducted.faults.join("\n"))));
    }
    if conducted.is_interrupted {
        return Ok(Exit::Interrupted);
    }
    if conducted.lacks_model {
        return Ok(Exit::Setup);
    }
    let worse = found.analysis.conclusion == Conclusion::Harms;
    Ok(if worse && told.fail_if_worse { Exit::Failed } else { Exit::Passed })
}

/// Says what the experiment can find, by the noise of the latest run.
fn plan(
    project: &Project,
    resolved: &ResolvedConfig,
    told: &ExperimentArgs,
    json: bool,
) -> Result<Exit, Failure> {
    let suite = SuiteFile::for_experiment(project, &told.suite, &told.trials.allow_commands)?;
    let plan = planned(&told.run(), &resolved.config, Some(&suite))?;
    let cases = plan.len() / told.repeats as usize;
    if cases == 0 {
        eprint("nothing to run: no case was selected\n");
        return Ok(Exit::NothingRan);
    }
    // Without any run the noise is assumed, and the plan says so.
    let latest = report(project, resolved, "latest").ok();
    let trials = latest.map(|report| comparison::trials(&report, Arm::Control));
    let cases = u32::try_from(cases).unwrap_or(u32::MAX);
    print_plan(&PowerPlan::new(cases, told.repeats, &trials.unwrap_or_default()), json)
}

/// The skill that the user names, and its file.
fn find(project: &Project, named: &str) -> Result<(Skill, PathBuf), Failure> {
    let by_name = FOLDERS.iter().map(|folder| Path::new(folder).join(named));
    let places = std::iter::once(PathBuf::from(named)).chain(by_name);
    let files = places.flat_map(|place| [place.join(FILE), place]).map(|file| project.path(&file));
    let shown = one_line(named, 200);
    let Some(file) = files.into_iter().find(|file| file.is_file()) else {
        return Err(Failure::usage(anyhow!("there is no skill `{shown}`")).hint(Some(format!(
            "name a {FILE}, a folder that holds one, or a folder in {}",
            FOLDERS.join(" or ")
        ))));
    };
    Ok((Skill { name: shown, ..read_skill(&file)? }, file))
}

/// The part of a skill to hide: its whole folder, which may hold more of it, unless the project lies
/// in that.
fn to_hide(project: &Project, file: &Path) -> PathBuf {
    let folder = file.parent().filter(|_| file.ends_with(FILE));
    let folder = folder.and_then(|folder| folder.canonicalize().ok());
    match folder.filter(|folder| !project.folder.starts_with(folder)) {
        Some(folder) => folder,
        None => file.to_owned(),
    }
}
