//! `selftest`: a self-test harness for AI agents.
//!
//! ```text
//! config ─► plan ─► generate ─► execute in namespace ─► judge ─► gate ─► reports
//! ```
//!
//! This crate is the command line: arguments, configuration, one file per subcommand. The rest is
//! in the crates of `crates/`; `ARCHITECTURE.md` has the map.

pub mod cli;
pub mod exit;

pub mod command;
mod ui;
