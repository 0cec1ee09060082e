//! Generates cases from scenarios, with or without a generator model.
//!
//! Independent of how a case is executed or judged.

pub mod draw;
pub mod example;
pub mod form;
pub mod generate;
pub mod generator_settings;
pub mod ground;
pub mod kind;
mod prompt_index;
pub mod rejection;
pub mod safety;
pub mod settled;
pub mod template;
