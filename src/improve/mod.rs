//! What makes agents better, and how that is known: experiments, how well promoted skills work, and
//! which of them are taken out of use (seed 002).
//!
//! Pure: results come in, scores and decisions with their reasons go out. Touches neither clock
//! nor disk nor database.

pub mod disabling;
pub mod effectiveness;
pub mod experiment;
pub mod skill;
pub mod skill_settings;
pub mod trend;
