//! `selftest improve signals`: what messages of users say about the answers that they got.

mod classify;
mod labels;
mod scan;
