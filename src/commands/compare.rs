//! `selftest compare`: two runs of the same cases, or what a comparison could find.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use selftest_app::{
    AppError, ComparisonFormat, GateSettings, Replay, RunPurpose, RunSettings, SelfTest,
    find_report, replay,
};
use selftest_harness::experiment::Arm;
use selftest_harness::experiment::power::PowerPlan;
use selftest_reports::ci::ReportRequest;
use selftest_reports::comparison;

use crate::args::{GlobalArgs, TrialArgs};
use crate::exit::Exit;
use crate::runtime::block_on;
use crate::show::{
    conclude_replay, conclude_self_comparison, print_plan, show_comparison, show_self_comparison,
};
use crate::ui;
use crate::ui::{Terminal, eprint};

/// Exit codes, for the help.
pub(crate) const EXITS: &str = "\
Exit codes:
  0    compared, whatever the result
  1    with --fail-if-worse: the second run, or the replay, is worse beyond chance, or a
       case failed in each of its trials and passed in each before
  2    wrong usage, no case is in both runs, or the cases cannot be run again
  4    nothing ran
  5    a model or the system under test could not be used
  130  interrupted";

/// Options of a comparison. [`CompareArgs::comparison`] says which of four it is.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct CompareArgs {
    /// The first run: its id, its JSON report, `latest`, or `previous`, which is the one before it
    /// of the same suite
    #[arg(required_unless_present_any = ["suite", "replay"])]
    pub a: Option<String>,
    /// The second run
    #[arg(
        required_unless_present_any = ["power", "self", "replay"],
        conflicts_with_all = ["power", "self", "replay"]
    )]
    pub b: Option<String>,
    /// Compare the odd repeats of a run with its even ones, to see how much results differ when
    /// nothing was changed; with --suite, run its cases twice first
    #[arg(id = "self", long = "self", conflicts_with_all = ["power", "replay"])]
    pub with_itself: bool,
    /// Run the cases of this run again, with its seed and the current settings, and compare both
    #[arg(long, value_name = "RUN", conflicts_with_all = ["a", "power"])]
    pub replay: Option<String>,
    /// Print which differences a comparison with another run like the first can detect, and how
    /// many cases and repeats smaller ones need
    #[arg(long)]
    pub power: bool,
    /// Exit 1 if the second run, or the replay, is worse beyond chance, or if one of its cases
    /// failed in every trial and passed in every trial of the first
    #[arg(long, conflicts_with_all = ["power", "self"])]
    pub fail_if_worse: bool,
    /// Print JSON instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print Markdown instead of text, for a comment beside a change
    #[arg(long, conflicts_with_all = ["json", "power", "self"], help_heading = "Output")]
    pub markdown: bool,
    /// With --self: run the cases of this suite twice first
    #[arg(
        long,
        value_name = "FILE",
        requires = "self",
        conflicts_with = "a",
        help_heading = "What to run"
    )]
    pub suite: Option<PathBuf>,
    /// Number of times to run each case [default: 3 in each half with --self, else that of the run]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=500),
        conflicts_with = "b",
        help_heading = "What to run"
    )]
    pub repeats: Option<u32>,
    /// Options of the run that --self or --replay starts.
    #[command(flatten)]
    pub trials: TrialArgs,
    /// Write these reports of the run too, comma-separated or repeated: junit=PATH, html=PATH,
    /// md=PATH, json=PATH, ctrf=PATH, sarif=PATH, reward=PATH, benchmark=PATH, github, otlp=URL
    #[arg(
        long,
        value_name = "KIND=PATH",
        value_delimiter = ',',
        conflicts_with = "b",
        help_heading = "What to write"
    )]
    pub report: Vec<ReportRequest>,
}

/// A comparison that was asked for.
#[derive(Debug)]
pub enum Comparison {
    /// Two runs.
    Runs([String; 2]),
    /// The differences that a comparison with a run like this one can detect.
    Power(String),
    /// A run with itself.
    Itself(AaArgs),
    /// A run with a replay of it.
    Replay(ReplayArgs),
}

impl CompareArgs {
    /// Returns true if this compares runs that have finished.
    pub fn starts_no_run(&self) -> bool {
        self.replay.is_none() && self.suite.is_none()
    }

    /// Returns the comparison that these options ask for.
    pub fn comparison(self) -> Comparison {
        match (self.a, self.b, self.replay) {
            (_, _, Some(run)) => Comparison::Replay(ReplayArgs {
                run,
                repeats: self.repeats,
                trials: self.trials,
                report: self.report,
                fail_if_worse: self.fail_if_worse,
                json: self.json,
                markdown: self.markdown,
            }),
            (Some(a), Some(b), None) => Comparison::Runs([a, b]),
            (Some(a), None, None) if self.power => Comparison::Power(a),
            (run, _, None) => Comparison::Itself(AaArgs {
                run,
                suite: self.suite,
                repeats: self.repeats.unwrap_or(3),
                report: self.report,
                json: self.json,
                trials: self.trials,
            }),
        }
    }
}

/// A comparison of a run, or of a suite that is run twice, with itself.
#[derive(Debug)]
pub struct AaArgs {
    /// A run with repeats: its id, its JSON report, or `latest`; absent with a suite.
    pub run: Option<String>,
    /// The suite to run.
    pub suite: Option<PathBuf>,
    /// Number of times to run each case in each half.
    pub repeats: u32,
    /// Reports of the run to write.
    pub report: Vec<ReportRequest>,
    /// True to print JSON.
    pub json: bool,
    /// Options of the run.
    pub trials: TrialArgs,
}

impl AaArgs {
    /// Returns the options of a run of both halves.
    pub fn settings(&self) -> RunSettings {
        RunSettings {
            suite: self.suite.clone(),
            // Both halves are one run, under the same load of the server; odd and even repeats
            // alternate.
            repeats: 2 * self.repeats,
            trials: self.trials.settings(),
            report: self.report.clone(),
            gate: compared_gate(),
            ..RunSettings::default()
        }
    }
}

/// Returns the gate of a run that is compared with another one instead.
fn compared_gate() -> GateSettings {
    // The comparison decides the exit code. A baseline of the project would fail the same run a
    // second time, for another reason.
    GateSettings { mode: Some("absolute".to_owned()), exit_zero: true, ..GateSettings::default() }
}

/// A run to repeat, and how the comparison with it is printed.
#[derive(Debug)]
pub struct ReplayArgs {
    /// The run: its id, its JSON report, or `latest`.
    pub run: String,
    /// Number of times to run each case; default: that of the run.
    pub repeats: Option<u32>,
    /// Options of the new run.
    pub trials: TrialArgs,
    /// Reports of the new run to write.
    pub report: Vec<ReportRequest>,
    /// True to exit 1 if the new run is worse beyond chance.
    pub fail_if_worse: bool,
    /// True to print JSON.
    pub json: bool,
    /// True to print Markdown.
    pub markdown: bool,
}

impl ReplayArgs {
    /// Returns the options of the new run.
    pub fn settings(&self) -> RunSettings {
        RunSettings {
            trials: self.trials.settings(),
            report: self.report.clone(),
            gate: compared_gate(),
            ..RunSettings::default()
        }
    }
}

pub(super) fn execute(args: CompareArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let (json, markdown, fail_if_worse) = (args.json, args.markdown, args.fail_if_worse);
    match args.comparison() {
        Comparison::Runs([a, b]) => {
            two_runs([&a, &b], format(json, markdown), fail_if_worse, global)
        }
        Comparison::Power(run) => plan(&run, json, global),
        Comparison::Itself(args) => block_on(itself(&args, global)),
        Comparison::Replay(args) => block_on(replay_run(&args, global)),
    }
}

/// Returns the format that the flags ask for; at most one is given.
const fn format(json: bool, markdown: bool) -> ComparisonFormat {
    match (json, markdown) {
        (true, _) => ComparisonFormat::Json,
        (false, true) => ComparisonFormat::Markdown,
        (false, false) => ComparisonFormat::Text,
    }
}

/// Replays a run and compares both.
async fn replay_run(args: &ReplayArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let terminal = Terminal::new(global, false);
    let project = ui::open_with(global, terminal)?;
    let format = format(args.json, args.markdown);
    let fail_if_worse = args.fail_if_worse;
    let purpose = RunPurpose::Replay { format, fail_if_worse };
    let replayed = replay(&project, args.settings(), &args.run, args.repeats, purpose);
    let replayed = Box::pin(replayed).await?;
    let Some(Replay { earlier, run }) = replayed else { return Ok(Exit::NothingRan) };
    conclude_replay(&project, terminal, &earlier, &run, format, fail_if_worse)
}

/// Says what a comparison of two runs like this one can find.
fn plan(run: &str, json: bool, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    let report = find_report(&project, &resolved, run)?;
    let trials = comparison::trials(&report, Arm::Control);
    let cases: BTreeSet<&str> = trials.iter().map(|trial| trial.case.as_str()).collect();
    if cases.is_empty() {
        eprint(&format!("nothing to plan by: no case of {} was run\n", report.run_id));
        return Ok(Exit::NothingRan);
    }
    let repeats = report.summary.repeats.unwrap_or(1);
    let cases = u32::try_from(cases.len()).unwrap_or(u32::MAX);
    print_plan(&PowerPlan::new(cases, repeats, &trials), json)
}

fn two_runs(
    runs: [&str; 2],
    format: ComparisonFormat,
    fail_if_worse: bool,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    // Reading takes most of the time, and large reports most of that.
    let (a, b) = std::thread::scope(|scope| {
        let first = scope.spawn(|| find_report(&project, &resolved, runs[0]));
        let b = find_report(&project, &resolved, runs[1]);
        (first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), b)
    });
    show_comparison(&project, &a?, &b?, format, fail_if_worse)
}

async fn itself(args: &AaArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let named = if let Some(named) = &args.run {
        if !args.report.is_empty() {
            let error = anyhow!("--report needs --suite: nothing is run for {named}");
            return Err(AppError::usage(error).hint(Some(
                "`selftest report write RUN --report junit=PATH` writes reports of it",
            )));
        }
        named.clone()
    } else {
        let purpose = RunPurpose::SelfComparison { json: args.json };
        let builder = SelfTest::builder(&project).settings(args.settings()).purpose(purpose);
        let Some(run) = Box::pin(builder.run()).await? else { return Ok(Exit::NothingRan) };
        return conclude_self_comparison(&project, &run, args.json);
    };
    show_self_comparison(&project, &named, args.json)
}
