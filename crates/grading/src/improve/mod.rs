//! Improving agents, with evidence: experiments, how well promoted skills work and
//! which of them are disabled, gaps and proposals that could close them
//! (docs/spec/skills-and-signals.md), and which model a kind of task needs
//! (docs/spec/session-grades.md#routing).
//!
//! Pure: results come in; scores, decisions with their reasons, prompts and advice go out. Touches
//! neither clock nor disk nor database, and promotes nothing.

pub mod detect;
pub mod disabling;
pub mod draft;
pub mod effectiveness;
pub mod gap;
pub mod gap_settings;
pub mod proposal;
pub mod recommend;
pub mod routing;
pub mod skill;
pub mod skill_settings;
pub mod trend;
