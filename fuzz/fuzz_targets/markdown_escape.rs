//! Foreign text in a report stays text: on one line no markup, in a block no end of the fence.

#![no_main]

use libfuzzer_sys::fuzz_target;
use selftest_text::escape::{fenced, inline, terminal};

fuzz_target!(|text: &str| {
    let line = inline(text, 1000);
    let line = line.as_str();
    assert!(!line.contains(['<', '>', '|', '\n', '\r']), "{line:?}");
    assert!(!line.chars().any(char::is_control), "{line:?}");

    let block = fenced(text, 1000);
    let lines: Vec<&str> = block.as_str().lines().collect();
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    assert_eq!(first, format!("{last}text"));
    assert!(!lines[1..lines.len() - 1].iter().any(|line| line.trim_start().starts_with(last)));

    assert!(!terminal(text, 1000).chars().any(char::is_control));
});
