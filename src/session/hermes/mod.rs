//! Hermes agent: three stores of the same sessions, a file for each.

pub(super) mod gateway;
pub(super) mod snapshot;
pub(super) mod state;
