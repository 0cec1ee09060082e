//! `selftest serve --mcp`: grades and reports for agents, on stdin and stdout. Nothing but messages of the
//! protocol goes to stdout.

use std::sync::Arc;

use anyhow::anyhow;
use futures_util::future::BoxFuture;
use selftest_app::{AppError, GradersOnRequest, rubric_in_use};
use selftest_grading::grade::QualityGrade;
use selftest_reports::RunArchive;
use selftest_server::mcp::{McpServer, SessionGrading, SessionGradingError};
use selftest_service::transcripts::TranscriptReader;
use selftest_store::Store;

use crate::args::sessions::database;
use crate::args::{DatabaseArgs, GlobalArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::interruption;

pub(super) async fn execute(args: &DatabaseArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    let (json_folder, _) = project.report_folders(&resolved);
    let store = Store::open(&database(&project, args)).await?;
    let store = store.with_rubric(rubric_in_use(&project)).await?;
    let prices = resolved.config.prices.clone();
    let transcripts = TranscriptReader::new(project.redactor(&resolved), prices);
    let grading = GradersOnRequest::new(Arc::new(project), Arc::new(resolved), store.clone(), None);
    let runs = RunArchive::new(json_folder);
    let server =
        McpServer::new(store.clone(), runs, transcripts, Some(Arc::new(AgentGrading(grading))));
    let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
    let served = server.serve(stdin, stdout, interruption()?).await;
    store.close().await;
    served.map_err(|error| {
        AppError::setup(anyhow!(error))
            .hint(Some("agents start `selftest serve --mcp` themselves; docs/server.md says how"))
    })?;
    Ok(Exit::Passed)
}

/// Grades sessions at the request of the connected agent.
struct AgentGrading(GradersOnRequest);

impl SessionGrading for AgentGrading {
    fn grade(
        &self,
        session_id: String,
        model: Option<String>,
    ) -> BoxFuture<'_, Result<QualityGrade, SessionGradingError>> {
        Box::pin(async move {
            let graded = self.0.grade_session(&session_id, model).await;
            graded.map_err(SessionGradingError::new)
        })
    }
}
