//! A run: its plan, its execution, and its event stream. Prints and writes nothing.

pub mod arms;
pub mod cache_key;
pub mod case;
pub mod delivery;
pub mod execute;
pub mod plan;
mod rejudge;
pub mod runner;
