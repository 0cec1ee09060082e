//! The application without a command line: it reads a project, runs suites, experiments and
//! replays, resumes and rejudges runs, and measures judges. It never prints; a [`Frontend`]
//! receives notices and progress.
//!
//! ```no_run
//! # async fn example() -> Result<(), selftest_app::AppError> {
//! use std::sync::Arc;
//!
//! use selftest_app::{Project, ProjectOptions, SelfTest, SilentFrontend};
//!
//! let project = Project::open(ProjectOptions::default(), Arc::new(SilentFrontend))?;
//! let run = SelfTest::builder(&project).suite("config/suites/main.yaml").repeats(3).run().await?;
//! if let Some(run) = run {
//!     println!("{:?}", run.outcome());
//! }
//! # Ok(())
//! # }
//! ```

mod baseline;
mod calibration;
mod changed;
mod ci_reports;
mod default_sut;
pub mod doctor;
mod drafts;
mod error;
mod experiment;
mod find_run;
mod grading;
mod greeting;
mod header;
mod judges;
mod judging;
mod merge;
mod options;
mod otlp;
mod project;
mod rerun;
mod resume;
mod run;
mod selftest;
mod setup;
mod skill_file;
mod skill_test;
mod suite_file;
mod trial_answer;
mod unfinished_measurement;

pub use baseline::read_baseline;
pub use calibration::{CALIBRATION_FILE, OWN_SCORES_FILE, calibration_path, own_scores_path};
pub use ci_reports::{CiReports, case_sources, check_once};
pub use drafts::{Drafter, generator_on_request};
pub use error::{AppError, AppErrorKind};
pub use experiment::{
    ExperimentParts, FinishedExperiment, WITH_SKILL, WITHOUT_SKILL, find_parts, run_experiment,
    write_skill_creator,
};
pub use find_run::{LATEST, find_report, find_report_file, refuse_arm};
pub use grading::{
    GradersOnRequest, find_grade, grader_finder, quality_graders, reflection_grader, rubric_in_use,
    skill_tracker,
};
pub use greeting::{Greeting, GreetingError, HELLO, greet};
pub use judges::{FETCH_JUDGE, MeasuredJudge, QUICK_SUBSET, requirement};
pub use merge::merge_shards;
pub use options::{
    CasesOf, ComparisonFormat, ExperimentRequest, ExperimentSettings, GateSettings, RunPurpose,
    RunRequest, RunSettings, TrialSettings,
};
pub use project::{Frontend, Project, ProjectOptions, SilentFrontend};
pub use rerun::{Replay, rejudge_run, replay};
pub use resume::{ContinuedRun, continue_run};
pub use run::{FinishedRun, plan_cases};
pub use selftest::{SelfTest, SelfTestBuilder};
pub use setup::RunSetup;
pub use skill_file::{
    SKILL_FILE, SkillFileError, SkillFolderError, SkillTextError, front_matter, read_skill,
    read_skill_text,
};
pub use skill_test::inventory::{FoundSkill, RefusedSkill, SkillInventory};
pub use skill_test::{FinishedSkillTest, SkillTest, SkillTestSettings};
pub use suite_file::SuiteFile;
pub use unfinished_measurement::UnfinishedMeasurement;
