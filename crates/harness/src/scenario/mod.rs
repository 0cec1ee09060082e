//! Generates cases from scenarios, with or without a generator model.
//!
//! Independent of how a case is executed or judged.

mod asked;
pub mod draw;
pub mod example;
pub mod form;
pub mod generate;
pub mod generator_settings;
pub mod ground;
pub mod kind;
pub mod rejection;
pub mod safety;
pub mod template;
