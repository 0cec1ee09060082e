//! Any JSON may come where a chat completion belongs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest_models::{StructuredMode, completion};

fuzz_target!(|body: &[u8]| {
    if let Ok(value) = serde_json::from_slice(body) {
        let _ = completion::parse_reply(&value, StructuredMode::Schema);
    }
});
