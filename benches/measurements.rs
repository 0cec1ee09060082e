//! The numbers of a benchmark: printed beside their limits, and with `SELFTEST_BENCH_WRITE=1` written
//! into the table of benches/README.md.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Bound, RangeBounds};
use std::process::ExitCode;

use jiff::tz::TimeZone;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/README.md");
/// The line above the rows, which stay in the order of the benchmarks' names.
const HEAD: &str = "|---|---|---|---|---|\n";

/// The numbers of one benchmark.
pub(crate) struct Measurements {
    benchmark: &'static str,
    /// Name, value and limit, as cells.
    rows: Vec<[String; 3]>,
    are_within: bool,
}

impl Measurements {
    pub(crate) fn of(benchmark: &'static str) -> Self {
        Self { benchmark, rows: Vec::new(), are_within: true }
    }

    /// Adds a number and prints it. It should be in `limit`: `..=10.0`, `5.0..`, or `..` for none.
    pub(crate) fn add(&mut self, name: &str, value: f64, unit: &str, limit: impl RangeBounds<f64>) {
        let is_within = limit.contains(&value);
        self.are_within &= is_within;
        let limit = match (limit.start_bound(), limit.end_bound()) {
            (Bound::Unbounded, Bound::Included(most)) => format!("at most {most} {unit}"),
            (Bound::Included(least), Bound::Unbounded) => format!("at least {least} {unit}"),
            _ => String::new(),
        };
        // Three digits say as much as a shared machine repeats.
        let decimals = if value >= 100.0 { 0 } else { usize::from(value < 10.0) + 1 };
        let value = format!("{value:.decimals$} {unit}");
        let mark = if is_within { "" } else { "  NOT MET" };
        println!("{name:<56} {value:>16}  {limit}{mark}");
        self.rows.push([name.to_owned(), value, limit]);
    }

    /// Writes the table if that is wanted. Fails if a number is outside of its limit.
    pub(crate) fn finish(self) -> ExitCode {
        if std::env::var_os("SELFTEST_BENCH_WRITE").is_some() {
            let text = fs::read_to_string(TABLE).unwrap();
            fs::write(TABLE, self.update_table(&text, &circumstances())).unwrap();
            return ExitCode::SUCCESS;
        }
        if self.are_within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Replaces the rows of this benchmark.
    fn update_table(&self, text: &str, circumstances: &str) -> String {
        let (above, rest) = text.split_once(HEAD).unwrap();
        let (rows, below) = rest.split_once("\n\n").unwrap();
        let mut all = BTreeMap::<&str, Vec<String>>::new();
        for row in rows.lines() {
            let benchmark = row.split('`').nth(1).unwrap();
            all.entry(benchmark).or_default().push(row.to_owned());
        }
        let row = |[name, value, limit]: &[String; 3]| {
            format!("| `{}` | {name} | {value} | {limit} | {circumstances} |", self.benchmark)
        };
        let _ = all.insert(self.benchmark, self.rows.iter().map(row).collect());
        let rows = all.into_values().flatten().collect::<Vec<_>>().join("\n");
        format!("{above}{HEAD}{rows}\n\n{below}")
    }
}

/// Returns when and where this runs: the day, the profile by the folder of this program, and how busy
/// the machine was.
fn circumstances() -> String {
    let program = std::env::current_exe().unwrap();
    let profile = program.parent().and_then(|deps| deps.parent()).and_then(|it| it.file_name());
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name"));
    let processor = processor.unwrap_or_default().trim_start_matches([':', '\t', ' ']).to_owned();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{}, `{}`, {cores} cores of {processor}, load {}",
        selftest_clock::now().to_zoned(TimeZone::UTC).strftime("%-d %B %Y"),
        profile.unwrap_or_default().display(),
        load.split(' ').next().unwrap_or("?"),
    )
}
