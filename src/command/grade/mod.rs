//! `selftest grade`: grades recorded sessions by rules, shows grades, writes weekly reports.

mod progress;
mod quality;
mod watch;
mod weekly;

use std::path::PathBuf;

use anyhow::anyhow;
use serde_json::json;

use super::since;
use super::sources::{nothing_found, roots};
use crate::cli::{
    self, DatabaseArgs, GlobalArgs, GradeAction, OverrideArgs, SessionArgs, StoreArgs,
};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};
pub(super) use progress::ScanBar;
use selftest_app::AppError;
use selftest_app::Project;
use selftest_app::rubric_in_use;
use selftest_grading::grade::heuristic::warm_up;
use selftest_grading::grade::quality::combine_grades;
use selftest_grading::grade::{GradeField, GradeOverride, GradeRecord, TokenCost, overrides};
use selftest_grading::report::grades;
use selftest_service::grader::{GraderOptions, ScanSummary, SelfGrader};
use selftest_store::Store;
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use selftest_text::wording::plural;

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
}

pub(super) async fn execute(
    action: &GradeAction,
    sessions: &SessionArgs,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    if reads_sessions(action) {
        std::thread::spawn(warm_up);
    }
    let setup = Setup::new(action, sessions, store, global).await?;
    let result = act(action, &setup).await;
    // So that the file alone is the whole database: people copy it.
    setup.grader.store().clone().close().await;
    result
}

/// Whether it may read many sessions.
fn reads_sessions(action: &GradeAction) -> bool {
    match action {
        GradeAction::Latest { .. } | GradeAction::File { .. } | GradeAction::Watch { .. } => true,
        GradeAction::Summary { no_scan, .. } | GradeAction::Weekly { no_scan, .. } => !no_scan,
        _ => false,
    }
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
            // Whoever names a file wants its grades, made now or before.
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
            watch::watch(setup, *quiet, *interval, *once).await
        }
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
                project.path(path).symlink_metadata().map_err(|error| {
                    AppError::usage(anyhow!("cannot read {}: {error}", path.display()))
                })?;
            }
            options.sources = paths.iter().map(|path| project.path(path)).collect();
        }
        let roots = options.sources.clone();
        let weekly_folder = project.shown_path(&options.settings.weekly_folder);
        let grader = SelfGrader::open(&database(&project, &store.database), options).await?;
        let grader = grader.with_rubric(rubric_in_use(&project)).await?;
        let StoreArgs { json, database } = store;
        Ok(Self { grader, sessions, json: *json, database, project, roots, weekly_folder })
    }

    /// Grades everything that is new.
    async fn scan(&self) -> Result<ScanSummary, AppError> {
        let mut bar = ScanBar::new(&self.project.environment);
        let scan = self.grader.grade_new_sessions(&mut bar).await?;
        bar.finish();
        Ok(scan)
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

/// Which sessions are graded, and how.
pub(super) fn options(project: &Project, args: &SessionArgs) -> Result<GraderOptions, AppError> {
    let config = project.load(Vec::new())?.config;
    let (settings, prices) = (config.grade, config.prices);
    let sources = roots(project, args)?;
    let now = selftest_clock::now();
    let since = args.since.as_ref().map(|text| since::moment(text, now)).transpose()?;
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    Ok(GraderOptions { sources, since, agent: args.agent.clone(), settings, prices, redactor })
}

/// An address as it is, a path below the project folder. A variable that is set to nothing is as
/// good as none.
pub(super) fn database(project: &Project, args: &DatabaseArgs) -> String {
    let db = if args.db.is_empty() { cli::DATABASE } else { &args.db };
    if db.contains(':') {
        return db.to_owned();
    }
    project.path(db.as_ref()).to_string_lossy().into_owned()
}

/// The one session with that id, or whose id begins so.
async fn find(setup: &Setup<'_>, session: &str) -> Result<GradeRecord, AppError> {
    one_grade(setup.grader.store(), session).await
}

/// The same of a database.
pub(super) async fn one_grade(store: &Store, session: &str) -> Result<GradeRecord, AppError> {
    if let Some(grade) = store.grade(session).await? {
        return Ok(grade);
    }
    let shown = one_line(session, 80);
    let mut found = store.find_grades(session).await?.items;
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(AppError::usage(anyhow!("no grade of a session whose id starts with {shown:?}"))
            .hint(Some("`selftest grade latest` grades sessions; its table shows their ids"))),
        count => Err(AppError::usage(anyhow!("{count} session ids start with {shown:?}"))
            .hint(Some("write more of the id"))),
    }
}

async fn show(setup: &Setup<'_>, session: &str) -> Result<Exit, AppError> {
    let grade = find(setup, session).await?;
    let made = setup.grader.store().session_overrides(&grade.session_id).await?.items;
    let by_models = setup.grader.store().session_quality_grades(&grade.session_id).await?.items;
    let average = combine_grades(&by_models);
    let cost = TokenCost::compute(&grade.details.spent, &setup.grader.options().prices);
    if setup.json {
        let counts = overrides::apply(grade.clone(), &made);
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
        print(&selftest_grading::report::quality::card(&by_models, average.as_ref()))?;
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
