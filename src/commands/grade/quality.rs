//! `selftest grade session|backfill|recent`: grades by models.

use std::collections::HashSet;
use std::io::IsTerminal as _;

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use selftest_app::{AppError, quality_graders};
use selftest_config::Environment;
use selftest_grading::grade::QualityGrade;
use selftest_grading::report::grades;
use selftest_service::grader::quality::{BackfillObserver, BackfillResult, QualityError};
use selftest_service::jobs::{GradingJob, GradingQueue};
use selftest_text::one_line;
use selftest_text::wording::plural;
use serde_json::json;

use super::{Setup, find};
use crate::args::sessions::{database, moment};
use crate::commands::grade::{GradeAction, coverage_words};
use crate::exit::Exit;
use crate::ui::{eprint, print};

pub(super) async fn act(action: &GradeAction, setup: &Setup<'_>) -> Result<Exit, AppError> {
    match action {
        GradeAction::Session { session, model } => {
            one_session(setup, session, model.as_deref()).await
        }
        GradeAction::Backfill { limit, models, concurrency, no_scan, queue } => {
            if !no_scan {
                let scan = setup.scan().await?;
                eprint(&coverage_words(&scan));
            }
            let limit = limit.unwrap_or(u64::MAX);
            if *queue {
                enqueue(setup, limit, models).await
            } else {
                backfill(setup, limit, models, *concurrency).await
            }
        }
        GradeAction::Recent { min_overall, limit } => recent(setup, *min_overall, *limit).await,
        _ => Err(AppError::usage(anyhow!("not a grade by a model"))),
    }
}

async fn one_session(
    setup: &Setup<'_>,
    session: &str,
    model: Option<&str>,
) -> Result<Exit, AppError> {
    // A file is named instead of a session: it has one, or the id is needed.
    let mut of_file = None;
    if setup.is_file {
        setup.scan().await?;
        let grades = setup.grader.grades_of_sources().await?;
        let [grade] = &grades[..] else {
            return Err(AppError::usage(anyhow!(
                "{} has {}, expected one\nhint: name one by its id",
                one_line(session, 400),
                plural(grades.len() as u64, "session")
            )));
        };
        of_file = Some(grade.session_id.clone());
    }
    let session = of_file.as_deref().unwrap_or(session);
    // The session may be newer than the last scan.
    let found = if let Ok(found) = find(setup, session).await {
        found
    } else {
        setup.scan().await?;
        find(setup, session).await?
    };
    let resolved = setup.project.load(Vec::new())?;
    let names: Vec<String> = model.map(ToOwned::to_owned).into_iter().collect();
    let store = setup.grader.store();
    for grader in quality_graders(&setup.project, &resolved, store, &names, 1).await? {
        let grade = grader.grade(&found.session_id, &found.session_file);
        let grade = match interruptible(grade).await {
            None => return Ok(Exit::Interrupted),
            Some(Ok(grade)) => grade,
            Some(Err(fault)) => return Err(fault.into()),
        };
        if setup.json {
            print(&format!("{:#}\n", json!(grade)))?;
        } else {
            print(grades::quality_card(std::slice::from_ref(&grade), None).trim_start())?;
        }
    }
    Ok(Exit::Passed)
}

async fn backfill(
    setup: &Setup<'_>,
    limit: u64,
    names: &[String],
    concurrency: Option<u32>,
) -> Result<Exit, AppError> {
    let resolved = setup.project.load(Vec::new())?;
    let concurrency = concurrency.unwrap_or(resolved.config.grade.quality.concurrency);
    let store = setup.grader.store();
    if store.graded_sessions().await? == 0 {
        super::nothing_found(&setup.roots);
        return Ok(Exit::NothingRan);
    }
    let graders = quality_graders(&setup.project, &resolved, store, names, concurrency).await?;
    let (mut graded, mut skipped) = (0, 0);
    for grader in graders {
        let model = grader.model_id().to_owned();
        // All of them: for each that gets no grade, another one is taken.
        let waiting = ungraded(setup, &model).await?;
        if waiting.is_empty() {
            continue;
        }
        let mut bar = BackfillBar::new(&setup.project.environment, setup.json);
        let run = grader.backfill(waiting, limit, concurrency as usize, &mut bar);
        let done = interruptible(run).await;
        bar.bar.finish_and_clear();
        let Some(done) = done else {
            grader.release_claims().await?;
            eprint(&format!(
                "{model}: interrupted; {} kept. The same command continues\n",
                plural(bar.graded, "grade")
            ));
            return Ok(Exit::Interrupted);
        };
        eprint(&came_to(&model, &done));
        graded += done.graded;
        skipped += done.skipped;
        if let Some(fault) = done.stopped {
            // So that other processes need not wait for them. The fault that stopped it matters
            // more.
            let _ = grader.release_claims().await;
            eprint("finished grades are kept; the same command continues\n");
            return Err(fault.into());
        }
    }
    Ok(if skipped > 0 && graded == 0 { Exit::Inconclusive } else { Exit::Passed })
}

/// How many sessions have a grade now, and why others have none.
fn came_to(model: &str, done: &BackfillResult) -> String {
    let graded = plural(done.graded, "session");
    let mut text = format!("{model}: {graded} graded, {} without a grade", done.skipped);
    for (number, (kind, count)) in done.faults.iter().enumerate() {
        text += &format!("{} {kind} ({count})", if number == 0 { ":" } else { "," });
    }
    if done.left_to_others > 0 {
        text += &format!("; {} left to other processes", done.left_to_others);
    }
    text.push('\n');
    if done.is_unfit {
        text += "it gives hardly any grades: take a larger model\n";
    }
    text
}

/// Returns id and file of sessions that the model has not graded; prints a note if all are graded.
async fn ungraded(setup: &Setup<'_>, model: &str) -> Result<Vec<(String, String)>, AppError> {
    let now = selftest_clock::now();
    let since = setup.sessions.since.as_ref().map(|text| moment(text, now)).transpose()?;
    let (store, agent) = (setup.grader.store(), setup.sessions.agent.as_deref());
    let waiting = store.sessions_without_quality(model, since, agent).await?;
    if waiting.items.is_empty() {
        eprint(&format!("{model}: every session has its grade\n"));
    }
    Ok(waiting.items)
}

/// Leaves the sessions that have no grade yet to workers.
async fn enqueue(setup: &Setup<'_>, limit: u64, names: &[String]) -> Result<Exit, AppError> {
    let resolved = setup.project.load(Vec::new())?;
    let store = setup.grader.store();
    let address = database(&setup.project, setup.database);
    let queue = GradingQueue::open(&address, &resolved.config.jobs).await?;
    for grader in quality_graders(&setup.project, &resolved, store, names, 1).await? {
        let model = grader.model_id();
        let mut waiting = ungraded(setup, model).await?;
        // Without a name it is the workers' configuration that decides, as for requests on the
        // page: one session is not queued twice for the same model.
        let named = (!names.is_empty()).then_some(model);
        // What has failed comes last, so that a limit does not stop at it time after time.
        let failed = queue.failed(u32::MAX).await?.into_iter().map(|one| one.grading);
        let failed = failed.filter(|grading| grading.model.as_deref() == named);
        let failed: HashSet<String> = failed.map(|grading| grading.session_id).collect();
        waiting.sort_by_key(|(session_id, _)| failed.contains(session_id));
        waiting.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let gradings: Vec<GradingJob> =
            waiting.iter().map(|(session_id, _)| GradingJob::new(session_id, named)).collect();
        let added = queue.enqueue(&gradings).await?;
        let there = gradings.len() as u64 - added;
        print(&format!("{model}: {} queued, {there} waited already\n", plural(added, "session")))?;
    }
    queue.close().await;
    Ok(Exit::Passed)
}

async fn recent(setup: &Setup<'_>, min_overall: Option<f64>, limit: u32) -> Result<Exit, AppError> {
    let page = setup.grader.store().recent_quality(min_overall, limit, None).await?;
    if setup.json {
        print(&format!("{:#}\n", json!(page.items)))?;
    } else if page.items.is_empty() {
        eprint("no grades by models yet; `selftest grade backfill` makes them\n");
    } else {
        print(&grades::quality_table(&page.items))?;
    }
    Ok(Exit::Passed)
}

/// The result, or nothing on Ctrl-C.
async fn interruptible<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        result = work => Some(result),
        // Without signals nothing can interrupt it.
        Ok(()) = tokio::signal::ctrl_c() => None,
    }
}

/// Progress of a backfill: a bar on a terminal, and one line per grade on stdout.
struct BackfillBar {
    bar: ProgressBar,
    json: bool,
    headed: bool,
    graded: u64,
}

impl BackfillBar {
    fn new(environment: &Environment, json: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal() && !environment.ci;
        let target =
            if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        Self { bar, json, headed: json, graded: 0 }
    }

    fn tell(&self, text: &str) {
        // A reader that went away is no reason to lose grades.
        self.bar.suspend(|| drop(print(text)));
    }
}

impl BackfillObserver for BackfillBar {
    fn found(&mut self, sessions: u64) {
        let style = "{bar:30} {pos}/{len} sessions  {elapsed}, {eta} to go";
        if let Ok(style) = ProgressStyle::with_template(style) {
            self.bar.set_style(style);
        }
        self.bar.set_length(sessions);
        if !self.headed {
            self.headed = true;
            self.tell(&grades::quality_heading());
        }
    }

    fn graded(&mut self, grade: &QualityGrade) {
        self.graded += 1;
        self.bar.inc(1);
        let line =
            if self.json { format!("{}\n", json!(grade)) } else { grades::quality_line(grade) };
        self.tell(&line);
    }

    fn left_to_others(&mut self) {
        self.bar.inc(1);
    }

    fn skipped(&mut self, session_id: &str, fault: &QualityError) {
        self.bar.inc(1);
        let (id, why) = (one_line(session_id, 80), one_line(&fault.to_string(), 400));
        self.bar.suspend(|| eprint(&format!("no grade for {id}: {why}\n")));
    }
}
