//! Any JSON may come where a reply of `/api/chat` belongs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest_models::{StructuredMode, ollama};

fuzz_target!(|body: &[u8]| {
    if let Ok(value) = serde_json::from_slice(body) {
        let _ = ollama::parse_reply(&value, StructuredMode::Schema);
    }
});
