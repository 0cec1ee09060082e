//! `selftest serve --mcp`: grades and reports for agents, on stdin and stdout. Nothing but messages of the
//! protocol goes to stdout.

use std::sync::Arc;

use anyhow::anyhow;

use super::context::Project;
use super::failure::Failure;
use super::grade::database;
use super::grading::{GradersOnRequest, rubric};
use super::interruption::interruption;
use crate::cli::{DatabaseArgs, GlobalArgs};
use crate::exit::Exit;
use selftest_reports::RunArchive;
use selftest_server::mcp::McpServer;
use selftest_service::transcripts::TranscriptReader;
use selftest_store::Store;

pub(super) async fn execute(args: &DatabaseArgs, global: &GlobalArgs) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let resolved = project.load(Vec::new())?;
    let (json_folder, _) = project.report_folders(&resolved);
    let store = Store::open(&database(&project, args)).await?;
    let store = store.with_rubric(rubric(&project)).await?;
    let prices = resolved.config.prices.clone();
    let transcripts = TranscriptReader::new(project.redactor(&resolved), prices);
    let grading = GradersOnRequest::new(Arc::new(project), Arc::new(resolved), store.clone(), None);
    let runs = RunArchive::new(json_folder);
    let server = McpServer::new(store.clone(), runs, transcripts, Some(Arc::new(grading)));
    let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
    let served = server.serve(stdin, stdout, interruption()?).await;
    store.close().await;
    served.map_err(|error| {
        Failure::setup(anyhow!(error))
            .hint(Some("agents start `selftest serve --mcp` themselves; docs/server.md says how"))
    })?;
    Ok(Exit::Passed)
}
