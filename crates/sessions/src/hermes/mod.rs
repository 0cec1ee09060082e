//! Hermes agent: three stores of the same sessions, a file for each, and what they share.

mod message;
mod prompt;
mod steer;

pub(super) mod gateway;
pub(super) mod snapshot;
pub(super) mod state;

#[cfg(test)]
mod tests;
