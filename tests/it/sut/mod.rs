//! Systems under test, driven through the library with the real binary as their supervisor.

mod command;
mod confinement;
mod examples;
mod http;
mod pm_runner;
pub(crate) mod world;
