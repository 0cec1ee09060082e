//! `selftest`: a self-test harness for AI agents.
//!
//! ```text
//! config ─► plan ─► generate ─► execute in namespace ─► judge ─► gate ─► reports
//! ```
//!
//! The modules below are in reading order, lowest room first; `ARCHITECTURE.md` has the map, and
//! a test holds every import against it: a room imports lower rooms only.

pub mod clock;
pub mod digest;
pub mod redact;
pub mod score;
pub mod stats;
pub mod text;
pub mod words;

pub mod model;
pub mod prompts;
pub mod rubric;
pub mod session;

pub mod scenario;
pub mod signal;

pub mod judge;
pub mod sut;

pub mod grade;
pub mod outcome;

pub mod improve;

pub mod event;
pub mod exit;

pub mod report;
pub mod run;
pub mod store;

pub mod cli;
pub mod grader;

pub mod jobs;

pub mod config;
pub mod mcp;
pub mod server;

pub mod command;
