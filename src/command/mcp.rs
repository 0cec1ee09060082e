//! `selftest mcp`: grades and reports for agents, on stdin and stdout.

use super::failure::Failure;
use crate::cli::{GlobalArgs, SessionArgs};
use crate::exit::Exit;

pub(super) async fn execute(_: &SessionArgs, _: &GlobalArgs) -> Result<Exit, Failure> {
    Ok(Exit::NothingRan)
}
