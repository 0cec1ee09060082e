//! Evidence for improving agents: effectiveness of promoted skills and when to disable them, gaps
//! and proposals to close them (docs/spec/skills-and-signals.md), and the model tier that a type of
//! task needs (docs/spec/session-grades.md#routing).
//!
//! These are pure functions from results to scores, decisions with reasons, prompts and advice.
//! They use no clock, disk or database, and promote nothing.

pub mod detect;
pub mod disabling;
pub mod draft;
pub mod effectiveness;
pub mod evidence;
pub mod gap;
pub mod gap_settings;
pub mod proposal;
pub mod recommend;
pub mod routing;
pub mod skill;
pub mod skill_settings;
pub mod trend;
