//! `selftest improve reflect`: grades what agents say of their own work, and shows the scores.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use selftest_app::{AppError, Project, reflection_grader};
use selftest_grading::grade::reflection::{Reflection, ReflectionScore, parse_reflections};
use selftest_grading::report::reflections;
use selftest_service::grader::reflection::{ReflectionError, ReflectionGrader};
use selftest_store::{ReflectionQuery, Store};
use selftest_text::file::{bounded_text, read_named_text};
use selftest_text::one_line;
use selftest_text::wording::plural;
use serde_json::{Map, Value, json};

use crate::args::sessions::database;
use crate::args::{GlobalArgs, StoreArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Actions on reflections.
#[derive(Debug, Subcommand)]
pub enum ReflectAction {
    /// Grade reflections and store them with their scores
    #[command(after_help = "Exits 1 when a reflection is weak, as a gate, unless --exit-zero; 4 \
                            when there is none.")]
    Grade(GradeReflectionArgs),
    /// List the scores of a project, or all projects with scores
    Scores {
        /// The project; default: one line for each
        project: Option<String>,
        /// Maximum number of lines to print
        #[arg(long, value_name = "N", default_value_t = 50,
            value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// List the weak reflections of a project or of all, with their issues
    Weak {
        /// The project; default: all
        project: Option<String>,
        /// Maximum number of reflections to print
        #[arg(long, value_name = "N", default_value_t = 50,
            value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Print the mean score of each week with its interval, and the threshold that it suggests
    Trend {
        /// The project; default: all
        project: Option<String>,
    },
}

/// Reflections to grade.
#[derive(Debug, Args)]
pub struct GradeReflectionArgs {
    /// A JSON file with a reflection or a list of them, or JSON Lines; `-` for stdin
    #[arg(value_name = "FILE|-")]
    pub file: PathBuf,
    /// Their project; default: their `project_id`, else `default`
    #[arg(long, value_name = "ID")]
    pub project: Option<String>,
    /// Store nothing and call no hook
    #[arg(long)]
    pub dry_run: bool,
    /// Exit 0 even if a reflection is weak; errors still count
    #[arg(long)]
    pub exit_zero: bool,
}

/// Most bytes of a file with reflections.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Project of reflections that name none.
const DEFAULT_PROJECT: &str = "default";

/// An example of a reflection, for hints.
const EXAMPLE: &str = "a reflection is an object such as {\"goal\": \"…\", \"summary\": \"…\", \
                       \"confidence\": 0.8, \"tags\": [\"loop:1\"]}";

pub(super) async fn execute(
    action: &ReflectAction,
    args: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    let store = Store::open(&database(&project, &args.database)).await?;
    let grader = reflection_grader(&project, &resolved, store.clone())?;
    let done = match action {
        ReflectAction::Grade(asked) => grade(asked, &grader, &project, args.json).await,
        ReflectAction::Scores { project, limit } => {
            scores(&grader, project.as_deref(), *limit, args.json).await
        }
        ReflectAction::Weak { project, limit } => {
            weak(&grader, project.as_deref(), *limit, args.json).await
        }
        ReflectAction::Trend { project } => trend(&grader, project.as_deref(), args.json).await,
    };
    // So that the file alone is the whole database: people copy it.
    store.close().await;
    done
}

async fn grade(
    asked: &GradeReflectionArgs,
    grader: &ReflectionGrader,
    project: &Project,
    json: bool,
) -> Result<Exit, AppError> {
    let is_stdin = asked.file == Path::new("-");
    let shown = if is_stdin { "stdin".to_owned() } else { asked.file.display().to_string() };
    let text = if is_stdin {
        bounded_text(std::io::stdin().lock(), MAX_FILE_BYTES)
    } else {
        read_named_text(&project.path(&asked.file), MAX_FILE_BYTES)
    };
    let text = text.map_err(|why| AppError::usage(anyhow!("cannot read {shown}: {why}")))?;
    let documents = parse_reflections(&text)
        .map_err(|error| AppError::usage(anyhow!("{shown}, {error}")).hint(Some(EXAMPLE)))?;
    let count = documents.len();
    let mut scores = Vec::new();
    for (place, document) in documents.into_iter().enumerate() {
        let project_id = project_of(asked, &document);
        // What comes by a pipe may be the same words once more.
        let known_by = (!is_stdin).then_some(place);
        let graded = if asked.dry_run {
            grader.preview(&project_id, document).await
        } else {
            grader.submit(&project_id, document, known_by).await.map(|done| done.score)
        };
        let score = graded.map_err(|fault| refused(fault, &shown, place + 1, count))?;
        // After each one, so that an error in a later document leaves no weak reflection
        // unreported.
        if !asked.dry_run {
            recover(grader, &score).await?;
        }
        scores.push(score);
    }
    if json {
        print(&format!("{:#}\n", json!(scores)))?;
    } else if !scores.is_empty() {
        print(&reflections::cards(&scores))?;
    }
    let weak = scores.iter().filter(|score| score.weak).count() as u64;
    if scores.is_empty() {
        eprint(&format!("{shown} holds no reflection\n"));
        return Ok(Exit::NothingRan);
    }
    eprint(&format!("{} graded, {weak} weak\n", plural(scores.len() as u64, "reflection")));
    Ok(if weak > 0 && !asked.exit_zero { Exit::Failed } else { Exit::Passed })
}

fn project_of(asked: &GradeReflectionArgs, document: &Map<String, Value>) -> String {
    let stated = || Reflection::from_document(document).project_id;
    asked.project.clone().or_else(stated).unwrap_or_else(|| DEFAULT_PROJECT.to_owned())
}

/// The reflections before it are kept: what was graded is not lost.
fn refused(fault: ReflectionError, shown: &str, place: usize, count: usize) -> AppError {
    match fault {
        ReflectionError::Store(error) => error.into(),
        fault => {
            let hint = match fault {
                ReflectionError::Taken { .. } => {
                    Some("give each reflection a reflection_id of its own, or none")
                }
                _ => None,
            };
            let what = format!("{shown}, reflection {place} of {count}");
            AppError::usage(anyhow::Error::new(fault).context(what)).hint(hint)
        }
    }
}

async fn recover(grader: &ReflectionGrader, score: &ReflectionScore) -> Result<(), AppError> {
    for fault in grader.notify_recovery_hook(score).await? {
        eprint(&format!("warning: {}\n", one_line(&fault, 400)));
    }
    Ok(())
}

async fn scores(
    grader: &ReflectionGrader,
    project: Option<&str>,
    limit: u32,
    json: bool,
) -> Result<Exit, AppError> {
    let Some(project) = project else {
        let projects = grader.store().reflecting_projects(None, limit).await?.items;
        if json {
            print(&format!("{:#}\n", json!(projects)))?;
        } else if projects.is_empty() {
            nothing_yet();
        } else {
            print(&reflections::projects(&projects))?;
        }
        return Ok(Exit::Passed);
    };
    let found = grader.reflection_scores(project, limit, None).await?;
    if json {
        print(&format!("{:#}\n", json!(found)))?;
    } else if found.reflection_scores.is_empty() {
        nothing_yet();
    } else {
        print(&reflections::scores(&found))?;
    }
    Ok(Exit::Passed)
}

async fn weak(
    grader: &ReflectionGrader,
    project: Option<&str>,
    limit: u32,
    json: bool,
) -> Result<Exit, AppError> {
    if let (Some(project), true) = (project, json) {
        let found = grader.weak_reflections(project, limit, None).await?;
        print(&format!("{:#}\n", json!(found)))?;
        return Ok(Exit::Passed);
    }
    let project_id = project.map(ToOwned::to_owned);
    let asked = ReflectionQuery { project_id, weak: true, limit, after: None };
    let found = grader.store().scored_reflections(&asked).await?.items;
    if json {
        print(&format!("{:#}\n", json!(found)))?;
    } else if found.is_empty() {
        eprint("no weak reflection\n");
    } else {
        let scores: Vec<ReflectionScore> = found.into_iter().map(|weak| weak.score).collect();
        print(&reflections::cards(&scores))?;
    }
    Ok(Exit::Passed)
}

async fn trend(
    grader: &ReflectionGrader,
    project: Option<&str>,
    json: bool,
) -> Result<Exit, AppError> {
    let weeks = grader.trend(project).await?;
    // Thresholds are of a project: agents of different ones are not each other's history.
    let proposal = match project {
        Some(project) => grader.proposal(project).await?,
        None => None,
    };
    if json {
        let json = json!({ "project_id": project, "weeks": weeks, "proposal": proposal });
        print(&format!("{json:#}\n"))?;
    } else if weeks.is_empty() {
        nothing_yet();
    } else {
        print(&reflections::trend_table(&weeks))?;
        if project.is_some() {
            let settings = grader.settings();
            print(&format!("\n{}\n", reflections::proposal(proposal.as_ref(), settings)))?;
        }
    }
    Ok(Exit::Passed)
}

fn nothing_yet() {
    eprint("no reflections yet; `selftest improve reflect grade FILE` grades some\n");
}
