//! What makes the agent better, and how that is known: gaps in its skills, proposals that could
//! close them, and which model a kind of task needs (seed 002, work item 2; seed 000 §10).
//!
//! Pure: grades come in, gaps, prompts and advice go out. Touches neither clock nor disk nor
//! database, and promotes nothing.

pub mod detect;
pub mod draft;
pub mod gap;
pub mod gap_settings;
pub mod proposal;
pub mod recommend;
pub mod routing;
