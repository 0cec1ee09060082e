//! Recorded sessions from disk to grades in the store.
