//! `selftest skills test`: the skills of a repository, without them, as on the other branch, and as
//! they are here.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::anyhow;
use clap::Args;
use selftest_app::{AppError, FinishedSkillTest, Project, SkillTest, SkillTestSettings};
use selftest_harness::run::plan::Shard;
use selftest_harness::skill_test::{SkillRule, SkillTestOptions};
use selftest_reports::TerminalStyle;
use selftest_reports::skill_test::{self, SkillTestOutcome, SkillTestReport};

use crate::args::{GlobalArgs, LimitArgs, TrialArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Options of a test of skills.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct SkillTestArgs {
    /// Skills, or folders that hold some; default: all skills of the project
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Test only skills that differ from the other branch
    #[arg(long, help_heading = "What to run")]
    pub changed: bool,
    /// The branch or commit to compare with; the skills of the last commit that both have are the
    /// second arm [default: that of the pull request, else origin/HEAD, main, master]
    #[arg(long, value_name = "BRANCH", help_heading = "What to run")]
    pub against: Option<String>,
    /// Number of times to run each case in each arm
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = "What to run"
    )]
    pub repeats: u32,
    /// Models of the agent to compare, comma-separated
    #[arg(long, value_name = "MODELS", value_delimiter = ',', help_heading = "Models")]
    pub models: Vec<String>,
    /// Run the branch's arm twice: a difference between the two is a false alarm
    #[arg(long, help_heading = "What to run")]
    pub aa: bool,
    /// Also test each skill without each of its siblings, to find those that make it worse
    #[arg(long, help_heading = "What to run")]
    pub interference: bool,
    /// Test the K-th of N parts of the skills, such as 1/4
    #[arg(long, value_name = "K/N", help_heading = "What to run")]
    pub shard: Option<Shard>,
    /// Limits of the whole test
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Print the plan and run nothing
    #[arg(long, help_heading = "What to run")]
    pub dry_run: bool,
    /// Resume an interrupted test: its id, or `latest`; its own options count
    #[arg(
        long,
        value_name = "TEST",
        conflicts_with_all = ["paths", "changed", "against", "models", "aa", "interference", "shard", "rule", "repeats", "scenarios"],
        help_heading = "What to run"
    )]
    pub resume: Option<String>,
    /// What the results must meet, comma-separated: `no_regression` (not worse than on the other branch,
    /// beyond chance), lift (better than without the skill, beyond chance)
    #[arg(
        long,
        value_name = "RULE",
        value_delimiter = ',',
        default_value = "no_regression",
        help_heading = "What passes"
    )]
    pub rule: Vec<SkillRule>,
    /// Write these reports, comma-separated or repeated: junit=PATH, html=PATH, md=PATH, json=PATH,
    /// comment=PATH (the body of a comment on a pull request)
    #[arg(long, value_name = "KIND=PATH", value_delimiter = ',', help_heading = "What to write")]
    pub report: Vec<SkillReportFile>,
    /// Key of the comment to replace, if a pull request has several
    #[arg(long, value_name = "KEY", default_value = "skills", help_heading = "What to write")]
    pub comment_key: String,
    /// Options of the arms
    #[command(flatten)]
    pub trials: TrialArgs,
}

/// A report that is written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillReportFile {
    kind: SkillReportKind,
    path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkillReportKind {
    Junit,
    Html,
    Markdown,
    Json,
    Comment,
}

/// A report is not written as `FORMAT=PATH`.
#[derive(Debug, thiserror::Error)]
#[error("expected junit=PATH, html=PATH, md=PATH, json=PATH or comment=PATH")]
pub struct SkillReportFileError;

impl FromStr for SkillReportFile {
    type Err = SkillReportFileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, path) = text.split_once('=').ok_or(SkillReportFileError)?;
        let kind = match kind.trim() {
            "junit" => SkillReportKind::Junit,
            "html" => SkillReportKind::Html,
            "md" => SkillReportKind::Markdown,
            "json" => SkillReportKind::Json,
            "comment" => SkillReportKind::Comment,
            _ => return Err(SkillReportFileError),
        };
        let path = path.trim();
        if path.is_empty() {
            return Err(SkillReportFileError);
        }
        Ok(Self { kind, path: path.into() })
    }
}

pub(super) const EXITS: &str = "\
Exit codes:
  0    every tested skill meets the rules; with --changed: or no skill has changed
  1    a skill misses a rule
  2    wrong usage or configuration, or a rule that these trials cannot meet
  3    no skill misses a rule, but one is blocked (the skill did not reach the agent, or reached
       the arm without it), undecided, refused or was not reached
  4    no skill has cases
  5    a model, the agent, git or a report could not be used
  130  interrupted";

pub(super) async fn execute(
    told: &SkillTestArgs,
    json: bool,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let settings = settings(told);
    let resolved = project.load(settings.run().flags())?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    // Before the trials: a path that cannot be written is found now and not after an hour.
    let files = open_files(&project, &told.report)?;
    let test = SkillTest::prepare(&project, &resolved, settings, told.resume.as_deref()).await?;
    if told.dry_run {
        return show_plan(&test);
    }
    if !test.is_empty() {
        eprint(&format!("test {}\n", test.id()));
    }
    let FinishedSkillTest { report, mut faults } = Box::pin(test.run()).await?;
    for (file, path) in files {
        let text = render(&report, file.kind, &told.comment_key)?;
        if let Err(error) = std::fs::write(&path, text) {
            // The remaining files are written all the same.
            faults.push(format!("cannot write {}: {error}", path.display()));
        }
    }
    if json {
        print(&format!("{:#}\n", serde_json::json!(report)))?;
    } else {
        let terminal = std::io::stdout().is_terminal();
        let colour = terminal && !project.environment.no_color;
        print(&skill_test::text(&report, TerminalStyle { terminal, colour }))?;
    }
    if !faults.is_empty() {
        return Err(AppError::setup(anyhow!(faults.join("\n"))));
    }
    if report.outcome == SkillTestOutcome::Interrupted {
        eprint(&format!("hint: `selftest skills test --resume {}` resumes the test\n", report.id));
    }
    Ok(match report.outcome {
        SkillTestOutcome::Passed | SkillTestOutcome::NothingChanged => Exit::Passed,
        SkillTestOutcome::Failed => Exit::Failed,
        SkillTestOutcome::Inconclusive => Exit::Inconclusive,
        SkillTestOutcome::NothingToTest => Exit::NothingRan,
        SkillTestOutcome::ModelUnavailable => Exit::Setup,
        SkillTestOutcome::Interrupted => Exit::Interrupted,
    })
}

fn settings(told: &SkillTestArgs) -> SkillTestSettings {
    SkillTestSettings {
        paths: told.paths.clone(),
        against: told.against.clone(),
        options: SkillTestOptions {
            changed: told.changed,
            repeats: told.repeats,
            again: told.aa,
            interference: told.interference,
            shard: told.shard,
            rules: told.rule.clone(),
        },
        models: told.models.clone(),
        trials: told.trials.settings(),
        limits: told.limits.limits(),
    }
}

/// Creates the folders and files of all reports, so that one that cannot be written fails before any
/// trial.
fn open_files<'a>(
    project: &Project,
    reports: &'a [SkillReportFile],
) -> Result<Vec<(&'a SkillReportFile, PathBuf)>, AppError> {
    let open = |file: &'a SkillReportFile| {
        let path = project.path(&file.path);
        let folder = path.parent().unwrap_or(Path::new("."));
        let opened = std::fs::create_dir_all(folder).and_then(|()| {
            // Appending leaves an earlier report as it is until the new one is written.
            std::fs::OpenOptions::new().append(true).create(true).open(&path).map(drop)
        });
        opened.map_err(|error| {
            AppError::setup(anyhow!("--report: cannot write {}: {error}", path.display()))
        })?;
        Ok((file, path))
    };
    reports.iter().map(open).collect()
}

fn render(report: &SkillTestReport, kind: SkillReportKind, key: &str) -> Result<String, AppError> {
    let failed = |error: anyhow::Error| AppError::setup(error);
    match kind {
        SkillReportKind::Junit => {
            skill_test::junit(report).map_err(|error| failed(anyhow!("the JUnit report: {error}")))
        }
        SkillReportKind::Html => {
            skill_test::html(report).map_err(|error| failed(anyhow!("the HTML report: {error}")))
        }
        SkillReportKind::Markdown => Ok(skill_test::markdown(report)),
        SkillReportKind::Json => Ok(format!("{:#}\n", serde_json::json!(report))),
        SkillReportKind::Comment => Ok(skill_test::comment(report, key)),
    }
}

/// Says what would be run.
fn show_plan(test: &SkillTest<'_>) -> Result<Exit, AppError> {
    for line in test.plan_lines() {
        print(&format!("{line}\n"))?;
    }
    for skill in test.not_tested() {
        print(&format!("not tested: {}: {}\n", skill.skill, skill.why))?;
    }
    for remark in test.remarks() {
        eprint(&format!("note: {remark}\n"));
    }
    Ok(Exit::Passed)
}
