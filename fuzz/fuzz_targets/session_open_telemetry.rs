//! Any bytes read as `open-telemetry`: no panic, and what comes out keeps its promises.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest_sessions::Format;

mod session;

fuzz_target!(|bytes: &[u8]| session::check(Format::OpenTelemetry, bytes));
