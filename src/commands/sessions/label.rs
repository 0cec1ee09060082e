//! `selftest sessions label`: whether the tasks of sessions truly succeeded, by a person or from a
//! file; `estimate`: what follows from it for sessions without a label; `outcomes`: how often
//! labelled tasks had succeeded by what was seen of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;

use crate::args::DatabaseArgs;
use crate::args::sessions::database;
use crate::commands::sessions::{EstimateArgs, SessionLabelArgs};
use crate::exit::Exit;
use crate::ui::{eprint, print};
use selftest_app::{AppError, Project, find_grade};
use selftest_grading::grade::beside::session_names;
use selftest_grading::grade::estimate::{LabelledGrade, SuccessEstimate, estimate};
use selftest_grading::grade::session_label::{OutcomeTable, SourceKey, by_source, outcome_table};
use selftest_grading::grade::{
    GradeField, GradeRecord, LabelSource, SessionLabel, read_labels, session_label,
};
use selftest_grading::report::outcomes::{render_estimate, render_outcomes};
use selftest_store::Store;
use selftest_text::file::read_named_text;
use selftest_text::one_line;
use selftest_text::redact::Redactor;
use selftest_text::wording::plural;

pub(super) async fn label(
    project: &Project,
    args: &SessionLabelArgs,
    as_json: bool,
) -> Result<Exit, AppError> {
    let store = Store::open(&database(project, &args.database)).await?;
    let labels = match &args.labels {
        Some(file) => from_file(project, file, args.least_reward, &store).await?,
        None => by_hand(args, &store).await?,
    };
    store.add_labels(&labels).await?;
    let mut ungraded = 0_usize;
    for label in &labels {
        // Labels are stored also without a grade, since files of rewards are often older than a
        // scan.
        ungraded += usize::from(store.grade(&label.session_id).await?.is_none());
    }
    store.close().await;
    if as_json {
        print(&format!("{:#}\n", json!({ "labels": labels, "without_grade": ungraded })))?;
    } else {
        let successes = labels.iter().filter(|label| label.success).count();
        print(&format!("{}, {successes} of success\n", plural(labels.len() as u64, "label")))?;
    }
    if ungraded > 0 {
        eprint(&format!(
            "warning: {ungraded} of {} are of sessions without a grade; they count once `selftest \
             grade latest` has graded them\n",
            plural(labels.len() as u64, "label")
        ));
    }
    Ok(Exit::Passed)
}

/// Reads a file of labels. Those that name several sessions are left out, which is said.
pub(super) async fn from_file(
    project: &Project,
    file: &Path,
    least_reward: f64,
    store: &Store,
) -> Result<Vec<SessionLabel>, AppError> {
    let shown = file.display();
    let text = read_named_text(&project.path(file), session_label::MAX_FILE)
        .map_err(|error| AppError::usage(anyhow!("cannot read {shown}: {error}")))?;
    // Before it is parsed: tasks and notes of the file are kept in the database.
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    let labels = read_labels(&redactor.apply(&text), least_reward, selftest_clock::now())
        .map_err(|why| AppError::usage(anyhow!("{shown}: {why}")))?;
    let (labels, unclear) = matched(labels, store).await?;
    if unclear > 0 {
        eprint(&format!(
            "warning: {unclear} labels name several sessions, and none was labelled by them\n\
             hint: name each session by its id\n"
        ));
    }
    Ok(labels)
}

/// Replaces the names of sessions in labels by their ids: a label may name a session by its file or
/// by a folder around it, such as the instance of a benchmark. Returns the labels and the number of
/// those that name several sessions.
async fn matched(
    labels: Vec<SessionLabel>,
    store: &Store,
) -> Result<(Vec<SessionLabel>, usize), AppError> {
    let wanted: BTreeSet<&str> = labels.iter().map(|label| label.session_id.as_str()).collect();
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // Undated sessions too, as most runs of benchmarks are.
    for grade in store.latest_grades(u64::from(u32::MAX), None).await?.items {
        for name in session_names(&grade.session_id, &grade.session_file) {
            if wanted.contains(name.as_str()) {
                known.entry(name).or_default().insert(grade.session_id.clone());
            }
        }
    }
    let mut unclear = 0;
    let mut kept = Vec::new();
    for label in labels {
        match known.get(&label.session_id) {
            // An id outranks the same name of a folder.
            Some(ids) if ids.len() > 1 && !ids.contains(&label.session_id) => unclear += 1,
            Some(ids) if !ids.contains(&label.session_id) => {
                let session_id = ids.first().cloned().unwrap_or_default();
                // Sessions of the same task stay together where labels are held out.
                let task = label.task.clone().or_else(|| Some(label.session_id.clone()));
                kept.push(SessionLabel { session_id, task, ..label });
            }
            _ => kept.push(label),
        }
    }
    Ok((kept, unclear))
}

async fn by_hand(args: &SessionLabelArgs, store: &Store) -> Result<Vec<SessionLabel>, AppError> {
    let mut labels = Vec::new();
    for session in &args.sessions {
        labels.push(SessionLabel {
            session_id: find_grade(store, session).await?.session_id,
            success: args.success,
            source: LabelSource::Person,
            task: args.task.clone(),
            note: args.note.clone(),
            labelled_at: selftest_clock::now(),
        });
    }
    Ok(labels)
}

/// The estimate of a project, and the sessions without a label that it says most of.
#[derive(Serialize)]
struct OfProject<'a> {
    project: Option<&'a str>,
    estimate: SuccessEstimate,
    /// Success by what was seen of each session.
    seen: OutcomeTable,
    /// The least probable successes first.
    doubtful: Vec<Doubtful<'a>>,
}

#[derive(Serialize)]
struct Doubtful<'a> {
    session_id: &'a str,
    title: &'a str,
    probability: f64,
}

pub(super) async fn estimates(
    project: &Project,
    args: &EstimateArgs,
    as_json: bool,
) -> Result<Exit, AppError> {
    let store = Store::open(&database(project, &args.database)).await?;
    let grades = store.latest_grades(u64::from(u32::MAX), None).await?.items;
    let labels = stored(&store).await?;
    store.close().await;
    let mut projects: BTreeMap<Option<&str>, Vec<&GradeRecord>> = BTreeMap::new();
    for grade in grades.iter().filter(|grade| grade.is_task()) {
        projects.entry(grade.details.project.as_deref()).or_default().push(grade);
    }
    if let Some(wanted) = &args.project {
        projects.retain(|name, _| name.is_some_and(|name| name == wanted));
        if projects.is_empty() {
            return Err(AppError::usage(anyhow!("no graded session is of the project {wanted}"))
                .hint(Some("`selftest sessions estimate` without --project names them")));
        }
    }
    let all = projects.into_iter().map(|(name, grades)| of_project(name, &grades, &labels, args));
    // Projects without labels are left out, unless no project has any.
    let labelled = |one: &OfProject<'_>| match &one.estimate {
        SuccessEstimate::NotEnoughLabels { labels, .. } => *labels > 0,
        SuccessEstimate::Fitted(_) => true,
    };
    let (shown, unlabelled): (Vec<_>, Vec<_>) = all.partition(labelled);
    if as_json {
        print(&format!("{:#}\n", json!(shown)))?;
        return Ok(Exit::Passed);
    }
    if shown.is_empty() {
        print(&format!("no labels; {} without one\n", plural(unlabelled.len() as u64, "project")))?;
        eprint(
            "hint: `selftest sessions label ID --success`, with `--failure`, or with `--labels FILE`\n",
        );
        return Ok(Exit::Passed);
    }
    for one in &shown {
        let doubtful = one.doubtful.iter();
        let doubtful: Vec<_> =
            doubtful.map(|one| (one.session_id, one.title, one.probability)).collect();
        print(&render_estimate(one.project, &one.estimate, &one.seen, &doubtful))?;
    }
    Ok(Exit::Passed)
}

fn of_project<'a>(
    project: Option<&'a str>,
    grades: &[&'a GradeRecord],
    labels: &'a BTreeMap<String, SessionLabel>,
    args: &EstimateArgs,
) -> OfProject<'a> {
    let labelled = labelled(grades, labels);
    let (estimate, seen) = (estimate(&labelled), outcome_table(&labelled));
    let mut doubtful = Vec::new();
    if let SuccessEstimate::Fitted(fit) = &estimate {
        let others = grades.iter().filter(|grade| success(grade, labels).is_none());
        doubtful = others
            .filter_map(|grade| {
                let probability = fit.probability(grade)?;
                let title = grade.task_summary.as_deref().unwrap_or_default();
                Some(Doubtful { session_id: &grade.session_id, title, probability })
            })
            .collect();
        doubtful.sort_by(|a, b| a.probability.total_cmp(&b.probability));
        doubtful.truncate(args.limit);
    }
    OfProject { project, estimate, seen, doubtful }
}

/// Returns the grades whose success is known.
pub(super) fn labelled<'a>(
    grades: &[&'a GradeRecord],
    labels: &'a BTreeMap<String, SessionLabel>,
) -> Vec<LabelledGrade<'a>> {
    let known = grades.iter().filter_map(|&grade| {
        let success = success(grade, labels)?;
        let named = labels.get(&grade.session_id).and_then(|label| label.task.as_deref());
        // The same request is the same task.
        let task = named.or(grade.task_summary.as_deref()).unwrap_or(&grade.session_id);
        Some(LabelledGrade { grade, success, task })
    });
    known.collect()
}

/// A label counts before a verifier in the session's file.
fn success(grade: &GradeRecord, labels: &BTreeMap<String, SessionLabel>) -> Option<bool> {
    // A label outranks the verdict of a verifier, because a person may have looked at it.
    labels.get(&grade.session_id).map(|label| label.success).or(grade.verdict())
}

/// The newest label of each session: overrides of `task_completed` are labels too.
pub(super) async fn stored(store: &Store) -> Result<BTreeMap<String, SessionLabel>, AppError> {
    let rows = store.labels().await?;
    if rows.unreadable > 0 {
        eprint(&format!("warning: {} cannot be read\n", plural(rows.unreadable, "label")));
    }
    let given = rows.items.into_iter();
    let mut labels: BTreeMap<String, SessionLabel> =
        given.map(|label| (label.session_id.clone(), label)).collect();
    for made in store.overrides().await?.items {
        // The newest word of a person counts, as a label or as an override.
        let is_newer =
            labels.get(&made.session_id).is_none_or(|one| one.labelled_at < made.made_at);
        if made.field == GradeField::TaskCompleted && is_newer {
            let task = labels.get(&made.session_id).and_then(|label| label.task.clone());
            let label = SessionLabel {
                session_id: made.session_id.clone(),
                success: made.human_value != 0,
                source: LabelSource::Override,
                task,
                note: Some(one_line(&made.reason, 240)),
                labelled_at: made.made_at,
            };
            labels.insert(made.session_id, label);
        }
    }
    Ok(labels)
}

/// Arguments of the table of outcomes.
#[derive(Debug, Args)]
pub struct OutcomesArgs {
    /// Use the labels of this file in place of the stored ones; nothing is stored
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Minimum reward in the file that counts as success
    #[arg(long, value_name = "0..1", default_value_t = 1.0,
        value_parser = crate::args::share, requires = "labels")]
    pub least_reward: f64,
    /// What makes a source, each with a table of its own
    #[arg(long, value_enum, default_value_t, value_name = "KEY")]
    pub by: OutcomeSource,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// What makes a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutcomeSource {
    /// The agent
    #[default]
    Agent,
    /// The model that answered first
    Model,
    /// The folder that the agent worked in
    Project,
    /// The first folder of the files below the one that all are in
    Folder,
}

impl From<OutcomeSource> for SourceKey {
    fn from(source: OutcomeSource) -> Self {
        match source {
            OutcomeSource::Agent => SourceKey::Agent,
            OutcomeSource::Model => SourceKey::Model,
            OutcomeSource::Project => SourceKey::Project,
            OutcomeSource::Folder => SourceKey::Folder,
        }
    }
}

/// The table of one source.
#[derive(Serialize)]
struct OfSource {
    source: String,
    #[serde(flatten)]
    table: OutcomeTable,
}

pub(super) async fn outcomes(
    project: &Project,
    args: &OutcomesArgs,
    as_json: bool,
) -> Result<Exit, AppError> {
    let store = Store::open(&database(project, &args.database)).await?;
    let labels = match &args.labels {
        Some(file) => {
            let given = from_file(project, file, args.least_reward, &store).await?.into_iter();
            given.map(|label| (label.session_id.clone(), label)).collect()
        }
        None => stored(&store).await?,
    };
    let grades = store.latest_grades(u64::from(u32::MAX), None).await?.items;
    store.close().await;
    let tasks: Vec<&GradeRecord> = grades.iter().filter(|grade| grade.is_task()).collect();
    let labelled = labelled(&tasks, &labels);
    if labelled.is_empty() {
        eprint(
            "no graded session has a label or a verifier's verdict\n\
             hint: `selftest grade latest 1000 --source DIR` grades sessions, `selftest sessions \
             label --labels FILE` labels them\n",
        );
        return Ok(Exit::NothingRan);
    }
    let sources = by_source(labelled, args.by.into()).into_iter();
    let tables: Vec<OfSource> =
        sources.map(|(source, of)| OfSource { source, table: outcome_table(&of) }).collect();
    if as_json {
        print(&format!("{:#}\n", json!(tables)))?;
        return Ok(Exit::Passed);
    }
    for one in &tables {
        print(&format!("{}\n{}", one_line(&one.source, 200), render_outcomes(&one.table)))?;
    }
    eprint("* beyond chance: the 95 % interval of the lift excludes 0\n");
    Ok(Exit::Passed)
}
