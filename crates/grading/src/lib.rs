//! Grades of what agents did: recorded sessions by rules and by models, reflections, signals of
//! users; and what follows from grades: skills, gaps, routing, weekly reports, alerts.
//!
//! Modules stand in reading order. Pure but for the files of weekly reports: touches neither clock
//! nor database, opens no session file, and knows nothing of the self-test.

mod english;
pub mod prompts;
pub mod signal;

pub mod grade;

pub mod improve;

pub mod report;
