//! The output of a program is foreign text: its status is inferred without a panic, and only an
//! empty answer has none.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest_checks::check::questions::count_questions;
use selftest_harness::sut::answer;

fuzz_target!(|answer: &str| {
    assert_eq!(answer::infer_status(answer).is_none(), answer.trim().is_empty());
    let _ = count_questions(answer);
});
