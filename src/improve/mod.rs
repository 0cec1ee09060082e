//! What is made better from what happened: how well promoted skills work, and which of them are
//! taken out of use (seed 002).
//!
//! Pure: counts come in, scores and decisions with their reasons go out. Reads no file, no clock
//! and no database.

pub mod disabling;
pub mod effectiveness;
pub mod skill;
pub mod skill_settings;
pub mod trend;
