//! `selftest serve --mcp`: the tools as an agent meets them.

// What the tests stand on.
pub(crate) mod conversation;
mod world;

mod answers;
mod lifecycle;
mod official;
mod transcripts;
