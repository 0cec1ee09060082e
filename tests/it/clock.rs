//! The clock of the tests: it starts at one fixed instant with the test program and runs on from
//! there, so that no result depends on the day. The binary gets it by `SELFTEST_NOW`, files by
//! their times of change. Nothing here may ask the system for the date.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use jiff::{SignedDuration, Timestamp};
use selftest_clock::NOW_VARIABLE;

/// A Wednesday noon: neither a day nor a week nor a month has just begun, and all recorded
/// sessions of the tests are of earlier weeks.
const START: &str = "2026-11-25T12:00:00Z";

/// Variables by which `scripts/test-clock` gives a process another clock and time zone.
const FAKETIME: [&str; 5] =
    ["FAKETIME", "FAKETIME_DONT_FAKE_MONOTONIC", "LD_PRELOAD", "NO_FAKE_STAT", "TZ"];

/// The present time of the tests.
pub(crate) fn now() -> Timestamp {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let start: Timestamp = START.parse().unwrap();
    start + BEGUN.get_or_init(Instant::now).elapsed()
}

/// The time so many hours ago.
pub(crate) fn hours_ago(hours: i64) -> Timestamp {
    now() - SignedDuration::from_hours(hours)
}

/// Environment of a process of the binary.
pub(crate) fn environment() -> Vec<(&'static str, OsString)> {
    let mut variables = vec![(NOW_VARIABLE, now().to_string().into())];
    if std::env::var_os("FAKETIME").is_some() {
        let given = FAKETIME.iter().filter_map(|&name| Some((name, std::env::var_os(name)?)));
        variables.extend(given);
    }
    variables
}

/// Sets the time of a file's last change to so many hours ago.
pub(crate) fn age(file: &Path, hours: u64) {
    let time = SystemTime::from(now()) - Duration::from_hours(hours);
    File::options().append(true).open(file).unwrap().set_modified(time).unwrap();
}
