//! `selftest serve`: the real binary, asked over real sockets.

// What the tests stand on.
mod client;
pub(crate) mod site;

// What is answered.
mod grades;
mod improvement;
mod metrics;
mod reports;
mod runs;
mod sessions;

// How.
mod access;
mod caching;
mod openapi;
mod problems;
mod starting;
mod token;
