//! The self-test: scenarios are generated, run by the system under test in a namespace of its own,
//! judged, and reported.
//!
//! Modules stand in reading order, lowest first. Knows nothing of recorded sessions, of the
//! database or of the command line. `run` and `report` do not know each other: what happens is
//! told as events, which reports observe.

pub mod prompts;
pub mod rubric;
pub mod scenario;

pub mod judge;
pub mod sut;

pub mod outcome;

pub mod calibration;

pub mod experiment;

pub mod gate;
pub mod notice;

pub mod event;
pub mod journal;

pub mod run;

#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
