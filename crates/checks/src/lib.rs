//! Test cases, the checks that decide them without a model, and importers of foreign suites.
//!
//! Pure: nothing here runs a command, calls a model or opens a connection.

pub mod check;
pub mod evals;
pub mod export;
pub mod request;
pub mod scenario;
pub mod sentence;
pub mod suggest;
pub mod suite;
pub mod yaml;
