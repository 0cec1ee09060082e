//! Evidence for improving agents: effectiveness of promoted skills and when to disable them, gaps
//! and proposals to close them (docs/spec/skills-and-signals.md), and the model tier that a type of
//! task needs (docs/spec/session-grades.md#routing).
//!
//! These are pure functions from results to scores, decisions with reasons, prompts and advice.
//! They use no clock, disk or database, and promote nothing.

pub mod detect;
pub mod draft;
pub mod effectiveness;
pub mod gap;
pub mod recommend;
pub mod routing;
pub mod skill;
