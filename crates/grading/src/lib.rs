//! Grades of what agents did: recorded sessions graded by rules and by models, reflections, and
//! signals from users. Also what follows from grades: skills, gaps, routing, weekly reports and
//! alerts.
//!
//! Modules are listed in reading order. Apart from the files of weekly reports, nothing here
//! touches the clock, the database or session files, and nothing depends on the self-test.

mod english;
pub mod prompts;
pub mod signal;

pub mod grade;

pub mod improve;

pub mod report;
