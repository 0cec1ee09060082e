//! Any bytes as a database of any agent: SQLite is real, its file is not trusted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest_sessions::{Collector, Format, Source, read_as};

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("selftest-fuzz-{}.db", std::process::id()));
    // With the header most bytes are refused for what they hold, not for what they are called.
    let header = b"SQLite format 3\0";
    if std::fs::write(&path, [header, bytes].concat()).is_ok() {
        for format in [
            Format::HermesState,
            Format::OpenCode,
            Format::Goose,
            Format::Crush,
            Format::CursorState,
            Format::Zed,
            Format::CursorStore,
        ] {
            let _ = read_as(format, &Source::file(&path), &mut Collector::default());
        }
    }
});
