//! The flags of `selftest serve`.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

/// How the server is reached.
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
    /// Ask every visitor for this token
    #[arg(long, value_name = "TEXT", env = "SELFTEST_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Ask every visitor for the token in this file
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
    /// Answer requests to this host name too; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
    /// Most connections that are open at a time; beyond, the one that has said nothing for longest
    /// gives way. Each takes a file descriptor: see `ulimit -n`
    #[arg(long, value_name = "N", default_value = "512")]
    pub max_connections: NonZeroUsize,
    /// Only queue what is to be graded, and leave it to `selftest worker`
    #[arg(long)]
    pub no_worker: bool,
    /// The model that grades sessions on request; default: grade.quality.model of the
    /// configuration
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}
