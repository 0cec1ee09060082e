//! `selftest grade`: grades recorded sessions by rules, shows grades, writes weekly reports.

mod quality;
mod weekly;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{ArgGroup, Args, Subcommand};
use selftest_app::{AppError, Project, find_grade, rubric_in_use};
use selftest_grading::grade::quality::combine_grades;
use selftest_grading::grade::{GradeField, GradeOverride, GradeRecord, TokenCost, apply_overrides};
use selftest_grading::report::grades;
use selftest_service::grader::{ScanSummary, SelfGrader};
use selftest_text::one_line;
use selftest_text::wording::plural;
use serde_json::json;

use crate::args::sessions::{database, nothing_found, options};
use crate::args::{DatabaseArgs, GlobalArgs, SessionArgs, StoreArgs, share};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{ScanBar, eprint, print};

/// Actions on grades.
#[derive(Debug, Subcommand)]
pub enum GradeAction {
    /// Grade the newest sessions that are new or have changed
    #[command(short_flag = 'g')]
    Latest {
        /// Maximum number of sessions, newest files first
        #[arg(default_value_t = 10, value_name = "N")]
        count: usize,
    },
    /// Grade new sessions and summarise the last days
    #[command(short_flag = 's')]
    Summary {
        /// Number of days
        #[arg(short, long, value_name = "N", default_value_t = 7,
            value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
        /// Do not scan; summarise existing grades
        #[arg(long)]
        no_scan: bool,
    },
    /// Grade new sessions and write the report of a week; with --agent only print it
    #[command(short_flag = 'r')]
    Weekly {
        /// ISO week, such as 2026-W47; default: the current one
        #[arg(long, value_name = "WEEK")]
        week: Option<String>,
        /// Do not scan; report existing grades
        #[arg(long)]
        no_scan: bool,
    },
    /// Grade these files or folders and show the grades
    #[command(short_flag = 'f')]
    File {
        /// Files or folders
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Grade sessions as they finish, until interrupted
    Watch {
        /// Time without a write after which a session counts as finished: seconds, or 30s, 2m
        #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::args::seconds)]
        quiet: f64,
        /// Time between scans: seconds, or 5s, 1m
        #[arg(long, value_name = "TIME", default_value = "5s", value_parser = crate::args::seconds)]
        interval: f64,
        /// Scan once and exit
        #[arg(long)]
        once: bool,
    },
    /// Let a model grade one session: problem solved, tests added, code clean, edge cases
    Session {
        /// Its id or id prefix; or a file, which without --model is graded by rules
        #[arg(value_name = "SESSION|FILE")]
        session: String,
        /// The model; default: grade.quality.model of the configuration
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
    /// Let a model grade sessions without a grade of this model, newest first
    Backfill {
        /// Number of sessions to grade per model, not counting failures
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        limit: Option<u64>,
        /// The models, separated by commas; default: grade.quality.model of the configuration
        #[arg(long = "model", value_name = "NAMES", value_delimiter = ',')]
        models: Vec<String>,
        /// Number of sessions graded at once; default: grade.quality.concurrency of the configuration
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
        concurrency: Option<u32>,
        /// Do not scan for new sessions first
        #[arg(long)]
        no_scan: bool,
        /// Queue them for workers; those that failed there come last
        #[arg(long, conflicts_with = "concurrency")]
        queue: bool,
    },
    /// List the newest grades by models
    Recent {
        /// Only those with at least this overall score
        #[arg(long, value_name = "SCORE", value_parser = share)]
        min_overall: Option<f64>,
        /// Maximum number of grades to list
        #[arg(long, value_name = "N", default_value_t = 20,
            value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Print the grade of a session with the evidence behind it
    Show {
        /// Its id or id prefix
        session: String,
    },
    /// Override a grade; both are kept, and yours counts
    Override(OverrideArgs),
    /// Compare the rules' grades with overrides and with graders by model; propose weights
    Agreement,
    /// Report how far rules, models and people differ, and flag differences above grade.discrepancy
    Calibration,
}

/// A person's grade of a session.
#[derive(Debug, Args)]
// Not the group of the struct itself, to which the session and the reason would belong too.
#[group(skip)]
#[command(group(ArgGroup::new("grades").required(true).multiple(true)))]
pub struct OverrideArgs {
    /// Its id or id prefix
    pub session: String,
    /// True if the task was completed
    #[arg(long, value_name = "true|false", group = "grades")]
    pub task_completed: Option<bool>,
    /// Efficiency of tool use
    #[arg(long, value_name = "1..5", group = "grades",
        value_parser = clap::value_parser!(u8).range(1..=5))]
    pub tool_calls_efficient: Option<u8>,
    /// Quality of the final response
    #[arg(long, value_name = "1..5", group = "grades",
        value_parser = clap::value_parser!(u8).range(1..=5))]
    pub response_quality: Option<u8>,
    /// True if errors were recovered from
    #[arg(long, value_name = "true|false", group = "grades")]
    pub errors_recovered: Option<bool>,
    /// Reason, for later readers
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

/// Skipped files that are named on a terminal.
const MAX_NAMED: usize = 10;

/// State of one action.
struct Setup<'a> {
    grader: SelfGrader,
    /// Which sessions.
    sessions: &'a SessionArgs,
    /// Print JSON instead of text.
    json: bool,
    database: &'a DatabaseArgs,
    project: Project,
    roots: Vec<PathBuf>,
    /// Folder of the weekly reports.
    weekly_folder: PathBuf,
    /// The session is named by its file.
    is_file: bool,
}

pub(super) async fn execute(
    action: &GradeAction,
    sessions: &SessionArgs,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let setup = Setup::new(action, sessions, store, global).await?;
    let result = act(action, &setup).await;
    // So that the file alone is the whole database: people copy it.
    setup.grader.store().clone().close().await;
    result
}

async fn act(action: &GradeAction, setup: &Setup<'_>) -> Result<Exit, AppError> {
    match action {
        GradeAction::Latest { count } => {
            let mut bar = ScanBar::new(&setup.project.environment);
            let scan = setup.grader.grade_latest_sessions(*count, &mut bar).await?;
            bar.finish();
            setup.show(&scan)
        }
        GradeAction::File { .. } => {
            let mut scan = setup.scan().await?;
            // A user who names a file wants its grades, new or old.
            if scan.unchanged > 0 {
                scan.grades = setup.grader.grades_of_sources().await?;
            }
            setup.show(&scan)
        }
        GradeAction::Summary { days, no_scan } => weekly::summary(setup, *days, *no_scan).await,
        GradeAction::Weekly { week, no_scan } => {
            weekly::report(setup, week.as_deref(), *no_scan).await
        }
        GradeAction::Watch { quiet, interval, once } => {
            weekly::watch(setup, *quiet, *interval, *once).await
        }
        GradeAction::Session { model: None, .. } if setup.is_file => setup.cards().await,
        GradeAction::Session { .. } | GradeAction::Backfill { .. } | GradeAction::Recent { .. } => {
            quality::act(action, setup).await
        }
        GradeAction::Show { session } => show(setup, session).await,
        GradeAction::Override(made) => add_override(setup, made).await,
        GradeAction::Agreement => {
            let agreement = setup.grader.agreement().await?;
            if setup.json {
                print(&format!("{:#}\n", json!(agreement)))?;
            } else {
                print(&grades::agreement(&agreement))?;
            }
            Ok(Exit::Passed)
        }
        GradeAction::Calibration => {
            let calibration = setup.grader.calibration().await?;
            if setup.json {
                print(&format!("{:#}\n", json!(calibration)))?;
            } else {
                print(&grades::calibration(&calibration))?;
            }
            Ok(Exit::Passed)
        }
    }
}

impl<'a> Setup<'a> {
    async fn new(
        action: &GradeAction,
        sessions: &'a SessionArgs,
        store: &'a StoreArgs,
        global: &GlobalArgs,
    ) -> Result<Self, AppError> {
        let project = ui::open(global)?;
        let mut options = options(&project, sessions)?;
        if let GradeAction::File { paths } = action {
            for path in paths {
                // A file that is named by itself has to exist; a missing source only finds nothing.
                project.path(path).symlink_metadata().map_err(|error| {
                    AppError::usage(anyhow!("cannot read {}: {error}", path.display()))
                })?;
            }
            options.sources = paths.iter().map(|path| project.path(path)).collect();
        }
        let file = match action {
            GradeAction::Session { session, .. } => Some(project.path(Path::new(session))),
            _ => None,
        };
        // A session is an id or a file, and a file wins.
        let file = file.filter(|path| path.is_file());
        let is_file = file.is_some();
        if let Some(path) = file {
            options.sources = vec![path];
        }
        let roots = options.sources.clone();
        let weekly_folder = project.shown_path(&options.settings.weekly_folder);
        let grader = SelfGrader::open(&database(&project, &store.database), options).await?;
        let grader = grader.with_rubric(rubric_in_use(&project)).await?;
        let StoreArgs { json, database } = store;
        Ok(Self { grader, sessions, json: *json, database, project, roots, weekly_folder, is_file })
    }

    /// Grades everything that is new.
    async fn scan(&self) -> Result<ScanSummary, AppError> {
        let mut bar = ScanBar::new(&self.project.environment);
        let scan = self.grader.grade_new_sessions(&mut bar).await?;
        bar.finish();
        Ok(scan)
    }

    /// Grades the named file by rules and shows all that was seen of each session.
    async fn cards(&self) -> Result<Exit, AppError> {
        let mut scan = self.scan().await?;
        if scan.unchanged > 0 {
            scan.grades = self.grader.grades_of_sources().await?;
        }
        // The database may hold the session by another file.
        if let (true, [path]) = (scan.grades.is_empty(), &self.roots[..]) {
            // The reader of database files has its own runtime.
            let read =
                std::thread::scope(|scope| scope.spawn(|| self.grader.grade_file(path)).join());
            let read = read.map_err(|_| AppError::usage(anyhow!("the reader has panicked")))?;
            let grades = read.map_err(|error| {
                AppError::usage(anyhow!("cannot grade {}: {error}", path.display()))
            })?;
            if !self.json {
                for grade in &grades {
                    let prices = &self.grader.options().prices;
                    let cost = TokenCost::of_session(&grade.details, prices);
                    print(&grades::card(grade, &[], &cost, None))?;
                }
                let nothing = grades.is_empty();
                return Ok(if nothing { Exit::NothingRan } else { Exit::Passed });
            }
            scan.grades = grades;
        }
        if self.json {
            return self.show(&scan);
        }
        for grade in &scan.grades {
            show(self, &grade.session_id).await?;
        }
        eprint(&coverage_words(&scan));
        Ok(Exit::Passed)
    }

    /// Shows what was graded now, and says what was not.
    fn show(&self, scan: &ScanSummary) -> Result<Exit, AppError> {
        if self.json {
            print(&format!("{:#}\n", json!(scan)))?;
        } else if !scan.grades.is_empty() {
            print(&grades::table(&scan.grades))?;
        }
        if scan.found == 0 {
            nothing_found(&self.roots);
            return Ok(Exit::NothingRan);
        }
        eprint(&coverage_words(scan));
        // Everything has its grade already: that is what was asked for.
        let nothing = scan.grades.is_empty() && scan.unchanged == 0;
        Ok(if nothing { Exit::NothingRan } else { Exit::Passed })
    }
}

/// Summary of a scan: found, read, graded, and skipped with the reasons.
fn coverage_words(scan: &ScanSummary) -> String {
    let mut text = format!(
        "{} found, {} unchanged, {} read: {} graded",
        plural(scan.found, "file"),
        scan.unchanged,
        scan.read,
        plural(scan.sessions, "session")
    );
    for (count, what) in [
        (scan.not_gradable, "with too little in it"),
        (scan.no_session, "without a session"),
        (scan.duplicate, "that repeat a session"),
        (scan.unreadable, "unreadable"),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text.push('\n');
    for (path, why) in scan.skipped.iter().take(MAX_NAMED) {
        text += &format!("  skipped {}: {why}\n", one_line(path, 400));
    }
    let more = scan.skipped.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        text += &format!("  and {more} more; --json names them\n");
    }
    for (path, what) in scan.damaged.iter().take(MAX_NAMED) {
        text += &format!("warning: {}: {}\n", one_line(path, 400), one_line(what, 200));
    }
    let more = scan.damaged.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        text += &format!("  and {more} more that could not be read whole; --json names them\n");
    }
    for problem in &scan.problems {
        text += &format!("warning: {}\n", one_line(problem, 400));
    }
    text
}

/// Returns the grade of the only session whose id starts with this prefix.
async fn find(setup: &Setup<'_>, session: &str) -> Result<GradeRecord, AppError> {
    find_grade(setup.grader.store(), session).await
}

async fn show(setup: &Setup<'_>, session: &str) -> Result<Exit, AppError> {
    let grade = find(setup, session).await?;
    let made = setup.grader.store().session_overrides(&grade.session_id).await?.items;
    let by_models = setup.grader.store().session_quality_grades(&grade.session_id).await?.items;
    let average = combine_grades(&by_models);
    let cost = TokenCost::of_session(&grade.details, &setup.grader.options().prices);
    if setup.json {
        // Both are shown: the rules' grade as it is, and the one that counts in summaries.
        let counts = apply_overrides(grade.clone(), &made);
        let json = json!({
            "by_rules": grade,
            "overrides": made,
            "counts": counts,
            "cost": cost,
            "by_models": by_models,
            "average_of_models": average,
        });
        print(&format!("{json:#}\n"))?;
    } else {
        let file = setup.grader.store().file(&grade.session_file).await?;
        let lost = file.and_then(|file| file.lost_parts());
        print(&grades::card(&grade, &made, &cost, lost.as_deref()))?;
        print(&selftest_grading::report::grades::quality_card(&by_models, average.as_ref()))?;
    }
    Ok(Exit::Passed)
}

async fn add_override(setup: &Setup<'_>, said: &OverrideArgs) -> Result<Exit, AppError> {
    let grade = find(setup, &said.session).await?;
    let reason = said.reason.trim();
    if reason.is_empty() {
        return Err(AppError::usage(anyhow!("--reason is empty, expected words")));
    }
    let values = [
        (GradeField::TaskCompleted, said.task_completed.map(u8::from)),
        (GradeField::ToolCallsEfficient, said.tool_calls_efficient),
        (GradeField::ResponseQuality, said.response_quality),
        (GradeField::ErrorsRecovered, said.errors_recovered.map(u8::from)),
    ];
    let mut made = Vec::new();
    for (field, value) in values {
        let Some(human_value) = value else { continue };
        let one = GradeOverride {
            session_id: grade.session_id.clone(),
            field,
            rule_value: field.value(&grade),
            human_value,
            reason: reason.to_owned(),
            made_at: selftest_clock::now(),
        };
        setup.grader.store().add_override(&one).await?;
        made.push(one);
    }
    if setup.json {
        print(&format!("{:#}\n", json!(made)))?;
    } else {
        for one in &made {
            print(&format!(
                "{}: {} is now {} (the rules say {})\n",
                one_line(&one.session_id, 80),
                one.field,
                one.field.words(one.human_value),
                one.field.words(one.rule_value)
            ))?;
        }
    }
    Ok(Exit::Passed)
}
