//! Renderers of grades, skills, gaps, reflections and weekly reports. They return text; only
//! `weekly` writes files. Decides nothing.

pub mod grades;
pub mod improvement;
pub mod quality;
pub mod reflections;
pub mod skills;
pub mod transcript;
pub mod weekly;
