//! Work on recorded sessions: from files on disk to grades in the store, the weekly schedule,
//! the queue of gradings with its workers, and sessions to be read and searched. Prints nothing and serves nothing.

pub mod grader;
pub mod jobs;
pub mod search;
pub mod transcripts;
