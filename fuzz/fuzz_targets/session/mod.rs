//! Invariants for any bytes, whatever reader they meet.

use selftest_sessions::{Collector, Format, Source, read, read_as};

/// Reads the bytes as that format, and as whatever they look like.
pub fn check(format: Format, bytes: &[u8]) {
    let source = Source::bytes("fuzz.json", bytes);
    let mut collector = Collector::default();
    let _ = read_as(format, &source, &mut collector);
    for session in collector.into_sessions() {
        assert!(!session.head.id.is_empty());
        for (number, event) in session.events.iter().enumerate() {
            assert_eq!(event.number, number as u64);
            assert!(event.text.len() < 40_000);
        }
    }
    let _ = read(&source, &mut Collector::default());
}
