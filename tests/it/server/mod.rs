//! `selftest serve`: the real binary, asked over real sockets.

// What the tests stand on.
mod client;
pub(crate) mod site;

// What is answered.
mod grades;
mod improvement;
mod labels;
mod metrics;
mod reflections;
mod reports;
mod runs;
mod sessions;
mod skills;

// How.
mod access;
mod caching;
mod connections;
mod openapi;
mod problems;
