//! What makes the system under test better, and how that is known. Pure: touches neither clock
//! nor disk nor database.

pub mod experiment;
