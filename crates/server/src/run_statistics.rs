//! Statistics over the reports of runs. Each version of a report is read only once.

use std::collections::{BTreeMap, HashMap};
use std::io;

use selftest_harness::outcome::{CaseStatus, RunOutcome};
use selftest_harness::sut::namespace::RunId;
use selftest_reports::document::ReportDocument;
use selftest_reports::{RunArchive, RunFile};

/// Maximum number of runs to include, newest first.
const MAX_RUNS: usize = 100;

/// Outcome of an unfinished run.
pub(super) const UNFINISHED: &str = "unfinished";

/// Upper bounds in seconds of the latency histogram.
const BOUNDS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];

/// Statistics over runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RunStatistics {
    pub(super) runs: BTreeMap<&'static str, u64>,
    pub(super) cases: BTreeMap<CaseStatus, u64>,
    pub(super) prompt_tokens: u64,
    pub(super) reply_tokens: u64,
    /// Number of judge calls.
    pub(super) calls: u64,
    /// Total duration in seconds.
    pub(super) seconds: f64,
    /// Number of calls up to each of [`BOUNDS`].
    within: [u64; BOUNDS.len()],
}

impl RunStatistics {
    fn from_report(report: &ReportDocument) -> Self {
        let mut own = Self::default();
        own.runs.insert(report.outcome.map_or(UNFINISHED, RunOutcome::name), 1);
        for (status, cases) in &report.summary.by_status {
            *own.cases.entry(*status).or_default() += u64::from(*cases);
        }
        let steps = report.cases.iter().flat_map(|case| &case.steps);
        let judgements = steps.filter_map(|step| step.judgement.as_ref());
        for call in judgements.flat_map(|judgement| &judgement.calls) {
            let seconds = std::time::Duration::from_millis(call.duration_ms).as_secs_f64();
            own.calls += 1;
            own.seconds += seconds;
            own.prompt_tokens += call.usage.prompt_tokens.unwrap_or_default();
            own.reply_tokens += call.usage.completion_tokens.unwrap_or_default();
            // Prometheus buckets are cumulative.
            for (count, bound) in own.within.iter_mut().zip(BOUNDS) {
                *count += u64::from(seconds <= bound);
            }
        }
        own
    }

    fn add(&mut self, other: &Self) {
        for (outcome, runs) in &other.runs {
            *self.runs.entry(outcome).or_default() += runs;
        }
        for (status, cases) in &other.cases {
            *self.cases.entry(*status).or_default() += cases;
        }
        self.prompt_tokens += other.prompt_tokens;
        self.reply_tokens += other.reply_tokens;
        self.calls += other.calls;
        self.seconds += other.seconds;
        for (count, more) in self.within.iter_mut().zip(other.within) {
            *count += more;
        }
    }

    /// Returns the number of calls up to each bound, formatted as text, with `+Inf` last.
    pub(super) fn latencies(&self) -> impl Iterator<Item = (String, u64)> {
        let all = ("+Inf".to_owned(), self.calls);
        BOUNDS.iter().map(ToString::to_string).zip(self.within).chain([all])
    }
}

/// Cached statistics by report.
#[derive(Default)]
pub(super) struct RunStatisticsCache(HashMap<RunId, (RunFile, RunStatistics)>);

impl RunStatisticsCache {
    /// Computes statistics over the newest runs. Files that are not reports are ignored.
    pub(super) fn tally(&mut self, runs: &RunArchive) -> io::Result<RunStatistics> {
        let mut files = runs.files()?;
        files.truncate(MAX_RUNS);
        // Entries of reports that no longer exist are not carried over.
        let mut before = std::mem::take(&mut self.0);
        let mut all = RunStatistics::default();
        for file in files {
            let known = before.remove(&file.run_id).filter(|(known, _)| *known == file);
            let tally = match known {
                Some((_, tally)) => tally,
                // An unfinished run replaces its report, which may be missing at this moment.
                None => runs
                    .read(&file)
                    .map(|report| RunStatistics::from_report(&report))
                    .unwrap_or_default(),
            };
            all.add(&tally);
            self.0.insert(file.run_id.clone(), (file, tally));
        }
        Ok(all)
    }
}
