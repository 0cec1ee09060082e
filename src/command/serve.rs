//! `selftest serve`: the web page and the HTTP API.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::anyhow;
use secrecy::SecretString;
use tokio::net::TcpListener;

use super::context::Project;
use super::failure::Failure;
use super::grade::database;
use super::grading::GradersOnRequest;
use super::print;
use crate::cli::{GlobalArgs, ServeArgs, SessionArgs};
use crate::exit::Exit;
use crate::report::RunArchive;
use crate::server::{Access, App, FindGrader, GradingWorkers, Improvement, serve};
use crate::store::Store;

pub(super) async fn execute(
    args: &ServeArgs,
    sessions: &SessionArgs,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let token = token(args, &project)?;
    if token.is_none() && !args.addr.ip().is_loopback() {
        let error = anyhow!("{} can be reached from other machines and no token is set", args.addr);
        let hint = "set --token-file or SELFTEST_TOKEN, or listen on 127.0.0.1";
        return Err(Failure::usage(error).hint(Some(hint)));
    }
    let resolved = project.load(Vec::new())?;
    let (json_folder, _) = project.report_folders(&resolved);
    let store = Store::open(&database(&project, &sessions.db)).await?;
    // Before the address is printed: whoever reads it may end the server at once.
    let interrupted = interruption()?;
    let listener = TcpListener::bind(args.addr).await.map_err(|error| {
        Failure::setup(anyhow!("cannot listen on {}: {error}", args.addr))
            .hint(Some("take another address with --addr; port 0 takes a free port"))
    })?;
    let address: SocketAddr =
        listener.local_addr().map_err(|error| Failure::setup(anyhow!(error)))?;
    print(&format!("http://{address}\n"))?;
    let improvement = Improvement {
        routing: resolved.config.routing.clone(),
        skills_folder: project.folder.join(&resolved.config.gaps.skills_folder),
    };
    let concurrency = resolved.config.grade.quality.concurrency as usize;
    let model = args.model.clone();
    let graders = Arc::new(GradersOnRequest::new(project, resolved, store.clone(), model));
    let find: Box<FindGrader> = Box::new(move || {
        let graders = Arc::clone(&graders);
        Box::pin(async move { graders.grader(None).await })
    });
    let queue = Arc::new(GradingWorkers::start(store.clone(), concurrency, find));
    let runs = RunArchive::new(json_folder);
    let app = App { store: store.clone(), runs, queue: Some(queue), improvement };
    let access = Access { token, hosts: args.hosts.clone() };
    let served = serve(listener, app, access, interrupted).await;
    store.close().await;
    served.map_err(|error| Failure::setup(anyhow!(error)))?;
    Ok(Exit::Passed)
}

/// The token of the command line, the environment or a file.
fn token(args: &ServeArgs, project: &Project) -> Result<Option<SecretString>, Failure> {
    let (token, origin) = match (&args.token, &args.token_file) {
        (None, None) => return Ok(None),
        (Some(token), _) => (token.clone(), "--token".to_owned()),
        (None, Some(file)) => {
            let origin = file.display().to_string();
            let token = fs::read_to_string(project.path(file))
                .map_err(|error| Failure::usage(anyhow!("cannot read {origin}: {error}")))?;
            (token, origin)
        }
    };
    let token = token.trim();
    if token.is_empty() {
        return Err(Failure::usage(anyhow!("the token of {origin} is empty")));
    }
    Ok(Some(token.into()))
}

/// Ends when somebody wants the server to end.
#[cfg(unix)]
fn interruption() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| Failure::setup(anyhow!(error)));
    let mut interrupted = listen(SignalKind::interrupt())?;
    let mut terminated = listen(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

/// Ends when somebody wants the server to end.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "on other systems it can fail")]
fn interruption() -> Result<impl Future<Output = ()>, Failure> {
    Ok(async {
        // Without signals there is nobody who could end it.
        let _ = tokio::signal::ctrl_c().await;
    })
}
