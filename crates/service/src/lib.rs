//! Work on recorded sessions: from files on disk to grades in the store, the weekly schedule, and
//! the queue of gradings with its workers. Prints nothing and serves nothing.

pub mod grader;
pub mod jobs;
