//! `selftest serve`: the web page and the HTTP API.

use std::net::SocketAddr;

use anyhow::anyhow;
use tokio::net::TcpListener;

use super::context::Project;
use super::failure::Failure;
use super::grade::database;
use super::print;
use crate::cli::{GlobalArgs, ServeArgs, SessionArgs};
use crate::exit::Exit;
use crate::report::RunArchive;
use crate::server::{Access, App, serve};
use crate::store::Store;

pub(super) async fn execute(
    args: &ServeArgs,
    sessions: &SessionArgs,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let resolved = project.load(Vec::new())?;
    let (json_folder, _) = project.report_folders(&resolved);
    let store = Store::open(&database(&project, &sessions.db)).await?;
    let listener = TcpListener::bind(args.addr).await.map_err(|error| {
        Failure::setup(anyhow!("cannot listen on {}: {error}", args.addr))
            .hint(Some("take another address with --addr; port 0 takes a free port"))
    })?;
    let address: SocketAddr =
        listener.local_addr().map_err(|error| Failure::setup(anyhow!(error)))?;
    print(&format!("http://{address}\n"))?;
    let app = App { store: store.clone(), runs: RunArchive::new(json_folder), queue: None };
    let access = Access { token: None, hosts: args.hosts.clone() };
    let interrupted = async {
        // Without signals there is nobody who could end it.
        let _ = tokio::signal::ctrl_c().await;
    };
    let served = serve(listener, app, access, interrupted).await;
    store.close().await;
    served.map_err(|error| Failure::setup(anyhow!(error)))?;
    Ok(Exit::Passed)
}
