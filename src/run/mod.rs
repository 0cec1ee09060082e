//! A run: a pure plan, its execution, and the stream of events. Prints nothing, writes nothing.

pub mod case;
pub mod execute;
pub mod observe;
pub mod plan;
pub mod runner;
pub mod seed;
