//! A grader's reply is foreign text, and so is the transcript: reading them neither panics nor
//! hangs, and a score has a quote.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use selftest_grading::grade::quality::{QualityReader, QualityWeights};

static READER: LazyLock<QualityReader> = LazyLock::new(QualityReader::new);

fuzz_target!(|input: (&str, &str)| {
    let (reply, transcript) = input;
    if let Ok(reading) = READER.read(reply, transcript) {
        // One object and nothing else.
        assert!(reply.trim().starts_with('{') && reply.trim().ends_with('}'));
        for dimension in &reading.dimensions {
            assert!(dimension.score.is_none() || !dimension.evidence.is_empty());
            assert!(dimension.score.is_none() || !dimension.unsupported);
        }
        let overall = reading.overall(&QualityWeights::default());
        assert!(overall.is_none_or(|overall| (0.0..=1.0).contains(&overall)));
        assert!(reading.summary.chars().count() <= 200);
    }
});
