//! Reads the Hermes agent: one module for each of its three stores of the same sessions, and shared
//! parts.

mod message;
mod prompt;
mod steer;

pub(super) mod gateway;
pub(super) mod snapshot;
pub(super) mod state;

#[cfg(test)]
mod tests;
