//! Services for recorded sessions: grading files into the store, the weekly schedule, the queue of
//! model gradings and its workers, transcripts and search. Prints nothing and serves no requests.

pub mod grader;
pub mod jobs;
pub mod search;
pub mod transcripts;
