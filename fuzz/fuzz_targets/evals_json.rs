//! A file of cases is whatever stands in it: it is read or refused, every case has an id of its own
//! and a prompt, no path leads outside, and no message holds what a terminal would obey.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use selftest_checks::evals;

fuzz_target!(|bytes: &[u8]| {
    for name in
        ["evals.json", "promptfooconfig.yaml", "samples.jsonl", "eval.yaml", "case.yaml", "prompt.md", "task.toml"]
    {
        let Ok(file) = evals::read(name, bytes, &()) else { continue };
        let ids: BTreeSet<_> = file.cases.iter().map(|case| &case.id).collect();
        assert_eq!(ids.len(), file.cases.len());
        for case in &file.cases {
            assert!(!case.prompt.trim().is_empty());
            for file in &case.files {
                assert!(!file.path.starts_with('/') && !file.path.split('/').any(|part| part == ".."));
            }
        }
        for line in file.warnings.iter().chain(&file.refused) {
            assert!(!line.chars().any(char::is_control));
        }
    }
});
