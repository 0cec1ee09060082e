//! Names, descriptions and arguments of the tools. Their implementations are in the other files.

use std::time::{Duration, Instant};

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{ToolError, fit};
use super::grades::{ModelGrade, RecentArguments, RecentGrades};
use super::report::{ReportArguments, RunReport};
use super::search::{SearchAnswer, SearchArguments, WorstArguments, WorstSessions};
use super::session::{SessionArguments, SessionGrade};
use super::transcript::{TranscriptAnswer, TranscriptArguments};
use super::{McpServer, SessionGradingError, grades, report, search, session, transcript};
use selftest_text::one_line;

/// Interval between progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum length of a model name in bytes.
const MAX_MODEL: usize = 200;

/// Arguments of `grade_session`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GradeArguments {
    /// Session id, or an unambiguous prefix of it.
    #[schemars(length(min = 1, max = 512))]
    session_id: String,
    /// A local model, such as ollama/qwen2.5-coder:7b. Default: the configured model.
    #[schemars(length(min = 1, max = 200))]
    model: Option<String>,
}

#[tool_router(vis = "pub(super)")]
impl McpServer {
    /// Returns all data about one recorded session.
    #[tool(
        title = "Grade of a session",
        description = "Everything known of one recorded agent session: its grade by fixed rules \
                       with the evidence in words, corrections by people, grades by language \
                       models (problem_solved, tests_added, code_clean, edge_cases, overall; 0 to \
                       1, null = cannot tell) with their reasons, and the average over the models \
                       with its spread. Reads only.",
        annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn get_session_grade(
        &self,
        Parameters(arguments): Parameters<SessionArguments>,
    ) -> Result<Json<SessionGrade>, ToolError> {
        let prices = self.transcripts.prices();
        session::show(&self.store, prices, &arguments.session_id).await.map(Json)
    }

    /// Lists the latest grades by models.
    #[tool(
        title = "Recent grades",
        description = "The newest grades of sessions by language models, newest first, page by \
                       page; with min_overall only those with at least that overall score. For \
                       ranking sessions, not for absolute scores. Reads only.",
        annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn list_recent_grades(
        &self,
        Parameters(arguments): Parameters<RecentArguments>,
    ) -> Result<Json<RecentGrades>, ToolError> {
        grades::show_recent(&self.store, &arguments).await.map(Json)
    }

    /// Lists the sessions that went worst.
    #[tool(
        title = "Worst sessions",
        description = "Recorded sessions, the worst first, page by page: tasks whose success \
                       something contradicts, then those of unknown outcome, claimed ones and those \
                       whose checks passed; of each those with most errors first. Reads only.",
        annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn list_worst_sessions(
        &self,
        Parameters(arguments): Parameters<WorstArguments>,
    ) -> Result<Json<WorstSessions>, ToolError> {
        search::show_worst(&self.store, arguments).await.map(Json)
    }

    /// Searches the text of sessions.
    #[tool(
        title = "Search in sessions",
        description = "Where words were said or done in recorded sessions: sessions, the newest \
                       first, each with its first events that hold all words. Phrases stand in \
                       quotation marks, login* finds beginnings. Can be narrowed by agent, \
                       project, model, tool, failed calls and time. Reads only.",
        annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn search_sessions(
        &self,
        Parameters(arguments): Parameters<SearchArguments>,
    ) -> Result<Json<SearchAnswer>, ToolError> {
        search::show(&self.store, arguments).await.map(Json)
    }

    /// Returns events of a session.
    #[tool(
        title = "Read a session",
        description = "What was said and done in one recorded session, from an event on, a few \
                       events at a time: messages, thoughts, calls of tools and their results, \
                       shortened so that an answer stays below 2000 tokens; one event alone is \
                       shown at greater length. Reads only.",
        annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn read_session(
        &self,
        Parameters(arguments): Parameters<TranscriptArguments>,
    ) -> Result<Json<TranscriptAnswer>, ToolError> {
        let session = session::find(&self.store, &arguments.session_id).await?;
        transcript::show(&self.transcripts, &session, &arguments).await.map(Json)
    }

    /// Returns one run of the self-test.
    #[tool(
        title = "Report of a self-test",
        description = "One run of the self-test in short, the newest when no run_id is given: \
                       outcome, counts, pass rate with its interval, threshold, and every case \
                       with status, scores and reason, those that did not pass first. Reads only.",
        annotations(read_only_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn get_selftest_report(
        &self,
        Parameters(arguments): Parameters<ReportArguments>,
    ) -> Result<Json<RunReport>, ToolError> {
        let runs = self.runs.clone();
        // A report of many cases takes a while to parse and must not hold up other tools.
        let read = tokio::task::spawn_blocking(move || report::show(&runs, &arguments));
        let report =
            read.await.map_err(|_| ToolError("reading the report failed; try again".to_owned()))?;
        report.map(Json)
    }

    /// Grades one session with a model.
    #[tool(
        title = "Grade a session now",
        description = "Lets a language model read one recorded session and grade it now, keeps \
                       the grade and returns it; an older grade by the same model and rubric \
                       version is replaced. Takes seconds to minutes on a local model; can be \
                       cancelled. Call get_session_grade first: there may be a grade already.",
        annotations(
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        )
    )]
    async fn grade_session(
        &self,
        Parameters(arguments): Parameters<GradeArguments>,
        context: RequestContext<RoleServer>,
    ) -> Result<Json<ModelGrade>, ToolError> {
        let Some(grading) = &self.grading else {
            return Err(ToolError(
                "this server has no model that could grade: set grade.quality.model in \
                 config/selftest.yaml, check it with `selftest doctor`, and start the server anew"
                    .to_owned(),
            ));
        };
        if arguments.model.as_ref().is_some_and(|model| !(1..=MAX_MODEL).contains(&model.len())) {
            return Err(ToolError(format!(
                "model is empty or longer than {MAX_MODEL} bytes: give a name such as \
                 ollama/qwen2.5-coder:7b, or leave it out for the configured model"
            )));
        }
        // Before a model is started, so that an unknown id fails at once.
        let session_id = session::find(&self.store, &arguments.session_id).await?.session_id;
        let graded = tokio::select! {
            graded = grading.grade(session_id, arguments.model) => graded,
            () = context.ct.cancelled() => {
                Err(SessionGradingError::new("the grading was cancelled"))
            }
            never = report_progress(&context) => match never {},
        };
        let grade = graded.map_err(|why| ToolError(one_line(&why.to_string(), 1000)))?;
        Ok(Json(fit(|quoting| ModelGrade::of(&grade, quoting))))
    }
}

/// Sends progress once a second to a client that requested it. Never returns.
async fn report_progress(context: &RequestContext<RoleServer>) -> std::convert::Infallible {
    let Some(token) = context.meta.get_progress_token() else {
        // Never ready, so that `select!` waits for the grade alone.
        return std::future::pending().await;
    };
    let begun = Instant::now();
    loop {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        let seconds = begun.elapsed().as_secs_f64();
        let message = format!("the model has been reading the session for {seconds:.0} s");
        let progress = ProgressNotificationParam::new(token.clone(), seconds).with_message(message);
        // A disconnected client is detected by the server's main loop.
        let _ = context.peer.notify_progress(progress).await;
    }
}
