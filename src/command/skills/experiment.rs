//! `selftest skills experiment`: the same cases with and without a skill.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use jiff::Timestamp;

use crate::cli::{ExperimentArgs, GlobalArgs};
use crate::command::context::Project;
use crate::command::failure::Failure;
use crate::command::run::{cancel_on_interrupt, flags, planned};
use crate::command::setup::{Setup, SuiteFile};
use crate::command::{eprint, print};
use crate::event::{ExperimentRun, Observer};
use crate::exit::Exit;
use crate::improve::experiment::{Arm, Arms, Conclusion};
use crate::outcome::Outcome;
use crate::report::comparison::experiment::{LABELS, PlannedTrial, SkillExperiment, text};
use crate::report::document::ReportDocument;
use crate::report::{ProgressObserver, ReportFiles, ReportHandle, ReportObserver, Style};
use crate::run::arms::{ArmRun, execute_arms};
use crate::run::observe::{self, Carrier};
use crate::run::order::interleaved;
use crate::sut::namespace::RunId;
use crate::sut::skill::Skill;
use crate::text::one_line;

/// Most bytes of a skill's text.
const LONGEST: u64 = 1 << 18;
/// Name of a skill's file.
const FILE: &str = "SKILL.md";
/// Where skills are found by name.
const FOLDERS: [&str; 2] = [".claude/skills", "skills"];

pub(super) async fn execute(
    told: &ExperimentArgs,
    json: bool,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let args = told.run();
    let resolved = project.load(flags(&args))?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    let (skill, file) = find(&project, &told.skill)?;
    let suite = SuiteFile::load(&project, &told.suite)?;
    let plan = planned(&args, &resolved.config, Some(&suite))?;
    if plan.is_empty() {
        eprint("nothing to run: no case was selected\n");
        return Ok(Exit::NothingRan);
    }
    let now = Timestamp::now();
    let ids = Arms { control: RunId::fresh(now), treatment: RunId::fresh(now) };
    let (json_folder, markdown_folder) = project.report_folders(&resolved);
    let open = |id: &RunId| {
        ReportFiles::open(&json_folder, &markdown_folder, id)
            .map_err(|error| Failure::setup(anyhow!("{error}")).hint(Some(error.hint())))
    };
    let files = Arms { control: open(&ids.control)?, treatment: open(&ids.treatment)? };
    // Neither arm can read the skill where it lies: the one would have what it must do without.
    let hidden = [to_hide(&project, &file)];
    let setup = Setup {
        project: &project,
        resolved: &resolved,
        args: &args,
        suite: Some(&suite),
        hidden: &hidden,
    };
    let prepared = setup.prepare(&plan).await?;
    let with = prepared.runner.sut.with_skill(Arc::new(skill.clone()))?;
    let runners = Arms {
        control: Arc::clone(&prepared.runner),
        treatment: Arc::new(prepared.runner.with_sut(with)),
    };

    let style = Style {
        terminal: false,
        colour: std::io::stderr().is_terminal() && !project.environment.no_color,
    };
    let start = |arm: Arm, files: ReportFiles| {
        let mut header = setup.header(ids.of(arm).clone(), &plan, &prepared);
        header.experiment = Some(ExperimentRun {
            arm,
            other_run_id: ids.of(arm.other()).clone(),
            skill: skill.name.clone(),
            skill_digest: skill.digest(),
        });
        let report = ReportObserver::new(files);
        let handle = report.handle();
        let progress = ProgressObserver::new(style).labelled(LABELS.of(arm));
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(progress), Box::new(report)];
        let (events, carrier) = observe::carry(observers);
        let runner = Arc::clone(runners.of(arm));
        (ArmRun { runner, header: Arc::new(header), events }, Reporting { handle, carrier })
    };
    let (control, of_control) = start(Arm::Control, files.control);
    let (treatment, of_treatment) = start(Arm::Treatment, files.treatment);
    let arms = Arms { control, treatment };
    let cases = plan.len() / told.repeats as usize;
    let order = interleaved(cases, told.repeats, prepared.runner.seed);
    let executed = execute_arms(&arms, &plan, &order, cancel_on_interrupt()).await;
    drop(arms);

    let mut faults = Vec::new();
    let control = of_control.finish(&mut faults)?;
    let treatment = of_treatment.finish(&mut faults)?;
    let trials = order.iter().filter_map(|slot| {
        let planned = plan.get(slot.position(cases))?;
        let (case, repeat, arm) = (planned.scenario.id.clone(), slot.repeat, slot.arm);
        Some(PlannedTrial { case, repeat, arm })
    });
    let found = SkillExperiment::new(&control, &treatment, trials.collect());
    if json {
        print(&format!("{:#}\n", serde_json::json!(found)))?;
    } else {
        let style = Style {
            terminal: std::io::stdout().is_terminal(),
            colour: std::io::stdout().is_terminal() && !project.environment.no_color,
        };
        print(&text(&found, style))?;
    }
    if !faults.is_empty() {
        return Err(Failure::setup(anyhow!(faults.join("\n"))));
    }
    if [executed.control.2, executed.treatment.2].contains(&Outcome::Interrupted) {
        return Ok(Exit::Interrupted);
    }
    let worse = found.analysis.conclusion == Conclusion::Harms;
    Ok(if worse && told.fail_if_worse { Exit::Failed } else { Exit::Passed })
}

/// What becomes the report of an arm.
struct Reporting {
    handle: ReportHandle,
    carrier: Carrier,
}

impl Reporting {
    /// The report as `selftest compare` reads it.
    fn finish(self, faults: &mut Vec<String>) -> Result<ReportDocument, Failure> {
        faults.extend(tokio::task::block_in_place(|| self.carrier.finish()));
        serde_json::from_str(&self.handle.json_text().unwrap_or_default())
            .map_err(|error| Failure::setup(anyhow!("the report of an arm: {error}")))
    }
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
    let unreadable = |why: String| Failure::usage(anyhow!("cannot read {}: {why}", file.display()));
    let mut text = String::new();
    let read = std::fs::File::open(&file)
        .and_then(|open| open.take(LONGEST + 1).read_to_string(&mut text));
    read.map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(unreadable(format!("it is over {LONGEST} bytes")));
    }
    if text.trim().is_empty() {
        return Err(unreadable("it is empty".to_owned()));
    }
    Ok((Skill { name: shown, text }, file))
}

/// What to hide of a skill: its whole folder, which may hold more of it, unless the project lies
/// in that.
fn to_hide(project: &Project, file: &Path) -> PathBuf {
    let folder = file.parent().filter(|_| file.ends_with(FILE));
    let folder = folder.and_then(|folder| folder.canonicalize().ok());
    match folder.filter(|folder| !project.folder.starts_with(folder)) {
        Some(folder) => folder,
        None => file.to_owned(),
    }
}
