//! A generator's reply is foreign text: a prompt that is accepted is not empty, and looking at
//! it neither panics nor hangs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest_harness::scenario::{generate, rejection};
use selftest_text::words::WordSet;

fuzz_target!(|reply: &str| {
    if let Ok(case) = generate::read_reply(reply) {
        assert!(!case.prompt.trim().is_empty());
        rejection::violations(&case.prompt);
        let words = WordSet::from_text(&case.prompt);
        let alike = words.jaccard(&words);
        assert!((0.0..=1.0).contains(&alike));
    }
});
