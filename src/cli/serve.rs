//! Options of `selftest serve`.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

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
