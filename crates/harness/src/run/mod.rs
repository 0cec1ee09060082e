//! A run: its plan, its execution, and its event stream. Prints and writes nothing.

mod again;
pub mod ahead;
pub mod arms;
pub mod cache_key;
pub mod case;
pub mod execute;
pub mod limits;
pub mod observe;
mod observed;
pub mod order;
pub mod plan;
pub mod runner;
pub mod seed;
pub mod shard;
