//! `selftest serve`: the web page and the HTTP API.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use tokio::net::TcpListener;

use crate::args::sessions::database;
use crate::args::{DatabaseArgs, GlobalArgs};
use crate::exit::Exit;
use crate::runtime::block_on;
use crate::ui::{interruption, print};
use crate::{runtime, ui};
use selftest_app::{
    AppError, GradersOnRequest, Project, grader_finder, reflection_grader, rubric_in_use,
    skill_tracker,
};
use selftest_grading::grade::QualityGrade;
use selftest_reports::RunArchive;
use selftest_server::mcp::{McpServer, SessionGrading, SessionGradingError};
use selftest_server::{AccessSettings, App, ImprovementSettings, SkillQueue, serve};
use selftest_service::grader::keep_tallies_current;
use selftest_service::jobs::{GradingQueue, GradingWorker};
use selftest_service::search::SearchIndex;
use selftest_service::transcripts::TranscriptReader;
use selftest_store::Store;
use selftest_text::file::read_named_text;

/// Maximum size of a file with a token, in bytes.
const MAX_TOKEN: u64 = 64 * 1024;

/// Options of the server.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Speak the Model Context Protocol on stdin and stdout instead, for an agent
    #[arg(long, conflicts_with_all = ["addr", "port", "token_file", "hosts", "max_connections", "no_worker", "model"])]
    pub mcp: bool,
    /// Address to listen on; any but a loopback address needs a token
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1")]
    pub addr: IpAddr,
    /// Port to listen on; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 7878)]
    pub port: u16,
    /// Require this token from every client
    #[arg(long, value_name = "TEXT", env = "SELFTEST_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Require the token in this file from every client
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
    /// Also accept requests for this host name; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
    /// Maximum number of open connections; beyond it, the longest idle one is closed. Each takes a file
    /// descriptor: see `ulimit -n`
    #[arg(long, value_name = "N", default_value = "512")]
    pub max_connections: NonZeroUsize,
    /// Only queue sessions to grade, and leave grading to `selftest worker`
    #[arg(long)]
    pub no_worker: bool,
    /// The model that grades sessions on request; default: grade.quality.model of the
    /// configuration
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

pub(super) fn execute(
    args: &ServeArgs,
    store: &DatabaseArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    if args.mcp {
        let runtime = runtime::start()?;
        let done = runtime.block_on(serve_mcp(store, global));
        // A read of stdin cannot be cancelled, and must not keep the process after SIGTERM.
        runtime.shutdown_background();
        return done;
    }
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    allocator::share_memory();
    block_on(listen(args, store, global))
}

async fn listen(
    args: &ServeArgs,
    store: &DatabaseArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    // Before anything is opened: a server without its token must not listen for a moment.
    let token = token(args, &project)?;
    let address = SocketAddr::new(args.addr, args.port);
    if token.is_none() && !args.addr.is_loopback() {
        let error = anyhow!("{address} can be reached from other machines and no token is set");
        let hint = "set --token-file or SELFTEST_TOKEN, or listen on 127.0.0.1";
        return Err(AppError::usage(error).hint(Some(hint)));
    }
    let resolved = project.load(Vec::new())?;
    let (json_folder, _) = project.report_folders(&resolved);
    let database = database(&project, store);
    let store =
        // A server runs for weeks beside other programs, and its queries are small.
        Store::open_low_memory(&database).await?.with_rubric(rubric_in_use(&project)).await?;
    let queue = GradingQueue::open(&database, &resolved.config.jobs).await?;
    let reflections = Arc::new(reflection_grader(&project, &resolved, store.clone())?);
    // Before the address is printed: a client that reads it may stop the server at once.
    let interrupted = interruption()?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        AppError::setup(anyhow!("cannot listen on {address}: {error}"))
            .hint(Some("use another port with --port; 0 takes a free one"))
    })?;
    let address: SocketAddr =
        listener.local_addr().map_err(|error| AppError::setup(anyhow!(error)))?;
    // The only line on stdout: a script that starts the server with `--port 0` reads the address
    // from it.
    print(&format!("http://{address}\n"))?;
    let improvement = ImprovementSettings {
        routing: resolved.config.routing.clone(),
        skills_folder: project.folder.join(&resolved.config.gaps.skills_folder),
    };
    let transcripts =
        TranscriptReader::new(project.redactor(&resolved), resolved.config.prices.clone());
    let index = SearchIndex::new(store.clone(), project.redactor(&resolved));
    let tracker = skill_tracker(&project, &resolved.config.skills, &store);
    let skills = Arc::new(SkillQueue::start(tracker));
    let worker = (!args.no_worker).then(|| {
        let concurrency = resolved.config.grade.quality.concurrency;
        let model = args.model.clone();
        let (project, resolved) = (Arc::new(project), Arc::new(resolved));
        let graders = GradersOnRequest::new(project, resolved, store.clone(), model);
        let find = grader_finder(graders);
        GradingWorker::new(store.clone(), queue.clone(), find, concurrency as usize)
    });
    let runs = RunArchive::new(json_folder);
    let told = Arc::clone(&skills);
    let queued = queue.clone();
    let app = App {
        store: store.clone(),
        runs,
        queue: queued,
        transcripts,
        reflections,
        skills: told,
        improvement,
    };
    let access = AccessSettings { token, hosts: args.hosts.clone() };
    let work = async {
        match &worker {
            Some(worker) => {
                tokio::select! {
                    () = worker.run() => {}
                    () = index.keep_filled() => {}
                }
            }
            // Without a worker the server alone decides when it ends.
            None => std::future::pending().await,
        }
    };
    let served = tokio::select! {
        // The other two never end by themselves; they stop with the server.
        served = serve(listener, app, access, args.max_connections, interrupted) => served,
        () = work => Ok(()),
        () = keep_tallies_current(&store) => Ok(()),
    };
    if let Some(worker) = &worker {
        worker.release().await;
        if let Err(error) = index.release().await {
            tracing::warn!("the search index stays reserved for two minutes: {error}");
        }
    }
    // Before the database closes: clients were promised that accepted records are written.
    skills.drain().await;
    queue.close().await;
    store.close().await;
    served.map_err(|error| AppError::setup(anyhow!(error)))?;
    Ok(Exit::Passed)
}

/// The token of the command line, the environment or a file.
fn token(args: &ServeArgs, project: &Project) -> Result<Option<SecretString>, AppError> {
    let (token, origin) = match (&args.token, &args.token_file) {
        (None, None) => return Ok(None),
        (Some(token), _) => (token.clone(), "--token".to_owned()),
        (None, Some(file)) => {
            let origin = file.display().to_string();
            let token = read_named_text(&project.path(file), MAX_TOKEN)
                .map_err(|error| AppError::usage(anyhow!("cannot read {origin}: {error}")))?;
            (token, origin)
        }
    };
    // Editors and `echo` end a file with a line break, which is no part of the token.
    let token = token.trim();
    if token.is_empty() {
        return Err(AppError::usage(anyhow!("the token of {origin} is empty")));
    }
    Ok(Some(token.into()))
}

async fn serve_mcp(args: &DatabaseArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
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
    // stdout belongs to the protocol from here on; notices go to stderr.
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
