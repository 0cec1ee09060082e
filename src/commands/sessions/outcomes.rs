//! `selftest sessions outcomes`: how often labelled tasks had succeeded by what was seen of them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use selftest_app::{AppError, Project};
use selftest_grading::grade::GradeRecord;
use selftest_grading::grade::outcome_table::{OutcomeTable, SourceKey, by_source, outcome_table};
use selftest_grading::report::outcomes::render_outcomes;
use selftest_store::Store;
use selftest_text::one_line;
use serde::Serialize;
use serde_json::json;

use super::label::{from_file, labelled, stored};
use crate::args::DatabaseArgs;
use crate::args::sessions::database;
use crate::exit::Exit;
use crate::ui::{eprint, print};

/// Arguments of the table of outcomes.
#[derive(Debug, Args)]
pub struct OutcomesArgs {
    /// Use the labels of this file in place of the stored ones; nothing is stored
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Minimum reward in the file that counts as success
    #[arg(long, value_name = "0..1", default_value_t = 1.0,
        value_parser = crate::args::run::share, requires = "labels")]
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
