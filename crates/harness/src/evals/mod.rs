//! `evals.json` files of skills. Pure; nothing here runs what such a file says.

pub mod sentence;
