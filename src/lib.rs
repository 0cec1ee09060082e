//! `selftest`: a self-test harness for AI agents.
//!
//! ```text
//! config ─► plan ─► generate ─► execute in namespace ─► judge ─► gate ─► reports
//! ```
//!
//! This crate is the command line: one file per command, with its arguments and its code. The rest
//! is in the crates of `crates/`; `ARCHITECTURE.md` has the map.

pub mod args;
pub mod cli;
pub mod exit;

mod commands;
mod runtime;
mod show;
mod ui;

pub use commands::execute;
pub use ui::print_usage;
