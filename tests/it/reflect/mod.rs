//! `selftest reflect`: what agents say of their own work, graded (seed 004).

// What the tests stand on.
pub(crate) mod made_up;

mod criteria;
mod grade;
mod hook;
mod lists;
mod refused;
