//! Any bytes read as a session format, chosen by the first byte: no panic, and sessions satisfy their
//! contract.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest_sessions::{SessionCollector, SessionFormat, SessionSource, read, read_as};
use strum::VariantArray as _;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let formats = SessionFormat::VARIANTS;
    let format = formats[usize::from(*first) % formats.len()];
    let source = SessionSource::bytes("fuzz.json", bytes);
    let mut collector = SessionCollector::default();
    let _ = read_as(format, &source, &mut collector);
    for session in collector.into_sessions() {
        assert!(!session.head.id.is_empty());
        for (number, event) in session.events.iter().enumerate() {
            assert_eq!(event.number, number as u64);
            assert!(event.text.len() < 40_000);
        }
    }
    // The same bytes, in the format that they look like.
    let _ = read(&source, &mut SessionCollector::default());
});
