//! `selftest improve reflect`: what agents say of their own work, graded (docs/spec/reflections.md).

// What the tests stand on.
pub(crate) mod made_up;

mod criteria;
mod grade;
mod hook;
mod lists;
