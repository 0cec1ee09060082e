//! A judge's reply is foreign text: whatever it is, reading it neither panics nor hangs, and
//! what is accepted has a score in every category.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest::judge::verdict;
use selftest::rubric::Rubric;

fuzz_target!(|text: &str| {
    let rubric = Rubric::default();
    if let Ok(verdict) = verdict::read(text, &rubric) {
        assert_eq!(verdict.categories.len(), rubric.categories().len());
    }
});
