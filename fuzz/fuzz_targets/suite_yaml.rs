//! A suite is whatever stands in the file: it is refused with words, or its text reads as the
//! same suite.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use selftest_config::suite;

fuzz_target!(|yaml: &str| {
    let path = Path::new("fuzz.yaml");
    match suite::parse(path, yaml.to_owned()) {
        Ok(read) => {
            let again = suite::parse(path, suite::suite_text(&read)).expect("what is written can be read");
            assert_eq!(again, read);
        }
        Err(errors) => assert!(!errors.render(false).is_empty()),
    }
});
