//! Tests of the condensed transcript as a whole.
