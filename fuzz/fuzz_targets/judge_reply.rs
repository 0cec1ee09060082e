//! A judge's reply is foreign text: reading it neither panics nor hangs, and what counts as
//! scored has a score in every category.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use selftest_harness::judge::Verdict;
use selftest_harness::judge::verdict::VerdictReader;
use selftest_harness::rubric::Rubric;

static READER: LazyLock<VerdictReader> = LazyLock::new(|| VerdictReader::new(Rubric::default(), 0));

fuzz_target!(|reply: &str| {
    if let Ok(Verdict::Scored(card)) = READER.read(reply) {
        assert_eq!(card.categories.len(), READER.rubric().categories().len());
        assert!(card.categories.iter().all(|category| category.score.is_some()));
        // One object and nothing else.
        assert!(reply.trim().starts_with('{') && reply.trim().ends_with('}'));
    }
});
