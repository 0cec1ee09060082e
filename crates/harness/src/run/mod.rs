//! A run: its plan, its execution, and its event stream. Prints and writes nothing.

pub mod arms;
pub mod cache_key;
pub mod case;
pub mod execute;
pub mod limits;
pub mod observe;
pub mod plan;
pub mod prefetch;
mod rejudge;
pub mod runner;
pub mod seed;
pub mod shard;
