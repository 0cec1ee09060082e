//! Output of programs that failed, which a person pastes in place of a report.

use std::sync::LazyLock;

use regex::Regex;

use super::vocabulary::{Mood, anywhere, mood};
use crate::english;

/// Lines that programs begin like this when they fail.
static ERROR_LINE: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"(?m)^\W*(?:\S+[:>] +){0,3}(?:(?:fatal |uncaught |unhandled |compile |build |runtime |server |internal |syntax |type |an? )?(?:[a-z.]*error|[a-z.]*exception|panic|failure)(?:[:\[({!]| [a-z-]*\d| at | near |\s*$)|fatal:|traceback\b|failed(?: to\b|:| with\b| [\w/.]+::|\s*$)|err!|npm err|cannot [a-z]+|could not [a-z]+|unexpected [a-z ]{2,60}:|thread '[^']*' panicked|\S+: (?:command not found|no such file|permission denied)|(?:get|post|put|patch|delete) https?://\S+ (?:net::)?[45e]\w*|\d+:\d+ +error\b|\S+\.\w+:\d+:\d+: |undefined: |undefined (?:symbol|method|variable)|line \d+:\d+: )",
    )
});
/// What programs write when they fail, anywhere in a text.
static ERROR_OUTPUT: LazyLock<Regex> = LazyLock::new(|| {
    anywhere(&[
        r"\b[a-z.]*(?:error|exception)\b ?[:\[({]",
        r"command not found|no such file or directory|permission denied|returned error|exit(?:ed)?(?: with)? (?:code|status):? ?[1-9]",
        r"\berrno\b|econnrefused|enoent|module not found|cannot find|could not (?:find|resolve|connect|open|load)|undefined reference|segmentation fault",
        r"is not (?:recognized|a function|defined|assignable)|npm err|unexpected (?:token|identifier|end)|\bwarning in\b|unable to (?:resolve|locate|find|connect|open)",
        r"requires an argument|not found in\b|\bloading failed for\b|\b(?:has been|was) blocked (?:because|by)\b|failed to compile|\bpanicked at\b",
    ])
});
/// First lines of what is copied from a terminal, a log or a console.
static PASTED: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r#"^["']?(?:[$%❯➜] ?\S|[>#]\S|ps [a-z]:|\S+@\S+[ :].*[$%#>]|\(\w+\) \S+|last login:|\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[(?:\d+|error|err|warn(?:ing)?|info|debug|fatal|vite|webpack|plugin|stderr|stdout)\b[^\]\n]*\]|[\w./-]+:\d+(?::\d+)?(?:: | - )|\s*at \S+ ?\(|file:/|\S+: (?:error|fatal|cannot|can't|could not|command|no such|warning|\(\d+\))|(?:uncaught |unhandled )?[a-z.]*(?:error|exception)(?:(?: [a-z-]+){0,3}:|[\[({]| [a-z-]*\d|\s*$)|(?:syntax|type|parse|import) error\b|fatal:|traceback|failed (?:to|with) |unexpected [a-z ]{2,60}:|(?:access to|refused to) \S+|thread '|undefined: |unknown (?:flag|option|argument|command)|(?:get|post|put|patch|delete) https?://|err!|npm (?:err|warn)|✗|✘|❌)"#,
    )
});
/// Counts at the end of a run, of what failed and of what did not.
static COUNTS_FAULTS: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(r"\btest result: failed\b|\b[1-9][0-9]* (?:failed|failures?|errors?)\b")
});
static COUNTS_NONE: LazyLock<Regex> =
    LazyLock::new(|| english::regex(r"\btest result: ok\b|\b0 (?:failed|failures|errors)\b"));
/// An error that follows a few words of introduction in the same line: *now i have: Module not
/// found: …*, but not *now the cli: exit with an error*.
static INTRODUCED: LazyLock<Regex> = LazyLock::new(|| {
    english::regex(
        r"^(?:\S+ ){0,9}\S+ ?:? (?:[a-z.]*error: |[a-z.]*exception: |module not found: |fatal: |failed to compile|traceback )",
    )
});

/// Returns true if the message is what a program wrote when it failed, with at most a few words of
/// the person before it. `beginning` is folded, without quotes.
pub(super) fn is_failed_output(message: &str, beginning: &str, has_worked: bool) -> bool {
    const MAX_INTRODUCTION: usize = 10;
    const MAX_EXAMINED: usize = 4000;
    let first = beginning.trim_start().lines().next().unwrap_or_default();
    let has_lines = message.lines().filter(|line| !line.trim().is_empty()).count() > 1;
    if ends_in_question(message) {
        return false;
    }
    let asks = mood(first) != Mood::States || first.contains(" should ");
    if INTRODUCED.is_match(first) && !asks {
        return true;
    }
    let is_pasted = PASTED.is_match(first);
    let is_introduced = has_lines && first.split_whitespace().count() <= MAX_INTRODUCTION && !asks;
    // After mere talk, bare output may be shown for other reasons.
    if if is_pasted { !has_worked } else { !is_introduced } {
        return false;
    }
    // Under words of the person, a list holds requests, and only what begins like an error counts.
    let shows_error = |text: &String| {
        if is_pasted {
            return ERROR_LINE.is_match(text) || ERROR_OUTPUT.is_match(text);
        }
        text.lines().skip(1).any(|line| !is_list_item(line) && ERROR_LINE.is_match(line))
    };
    let [head, tail] = [
        &message[..message.floor_char_boundary(MAX_EXAMINED)],
        &message[message.ceil_char_boundary(message.len().saturating_sub(MAX_EXAMINED))..],
    ];
    let parts = [head, tail].map(str::to_lowercase);
    let passed = parts.iter().any(|part| COUNTS_NONE.is_match(part))
        && !parts.iter().any(|part| COUNTS_FAULTS.is_match(part));
    !passed && parts.iter().any(shows_error)
}

/// Returns true if the last line asks something. Such output is shown to be explained.
fn ends_in_question(message: &str) -> bool {
    let last = message.trim_end().lines().next_back().unwrap_or_default();
    last.ends_with('?') && !last.starts_with([' ', '\t'])
}

/// Returns true if a line is an item of a list: *- exit with code 2*, *3. fail*.
fn is_list_item(line: &str) -> bool {
    let line = line.trim_start();
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '•', '+'])
        || (after_number.len() < line.len() && after_number.starts_with(['.', ')']))
}
