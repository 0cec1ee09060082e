//! Tests of reading, grading and combining.
