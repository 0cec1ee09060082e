//! The self-test: generates scenarios, runs them against the system under test in an isolated
//! namespace, judges the answers and emits the results as events.
//!
//! Modules are listed in dependency order, lowest first. The crate does not depend on recorded
//! sessions, the database or the command line. `run` does not depend on the reports: they observe
//! its events.

mod prose;

pub mod prompts;
pub mod rubric;
pub mod scenario;

pub mod judge;
pub mod sut;

pub mod outcome;

pub mod calibration;

pub mod experiment;

pub mod skill_test;

pub mod gate;

pub mod event;
pub mod journal;

pub mod run;

#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
