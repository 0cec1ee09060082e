//! The index of all runs: reads the heads of JSON reports, and renders `index.md` and the pass rates
//! of the latest runs as an SVG without scripts or external references. Opens no files.

use std::io::Read;
use std::sync::LazyLock;

use askama::Template;
use jiff::Timestamp;
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use super::wording;
use selftest_harness::event::{ExperimentRun, RejudgedRun, RunModels, SuiteRun};
use selftest_harness::outcome::usage::RunUsage;
use selftest_harness::outcome::{RunOutcome, RunSummary};
use selftest_harness::sut::namespace::RunId;
use selftest_stats::plot;
use selftest_stats::plot::{PlotScale, RIGHT, column};
use selftest_stats::score::Threshold;
use selftest_text::wording as text;

/// Name of the trend chart next to the index.
pub(super) const TREND_FILE: &str = "trend.svg";

/// Maximum number of bytes read from one file. The head of a report is a few kilobytes.
const MAX_HEAD: u64 = 4 * 1024 * 1024;

/// One run in the index.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEntry {
    /// ID of the run.
    pub run_id: RunId,
    /// Start time.
    pub started_at: Timestamp,
    /// Counts over its cases.
    pub summary: RunSummary,
    /// Outcome; absent if the run did not end.
    pub outcome: Option<RunOutcome>,
    /// Model of the judge.
    pub judge: String,
    /// Model of the generator; absent if the cases came from a suite.
    pub generator: Option<String>,
    /// Minimum overall score to pass.
    pub threshold: Threshold,
    /// The experiment it belongs to. Such a run says nothing about how the system develops from run
    /// to run.
    pub experiment: Option<ExperimentRun>,
    /// The suite whose cases were run; absent if they were generated.
    pub suite: Option<SuiteRun>,
    /// The run whose answers were judged again; absent if the run has answers of its own.
    pub rejudged: Option<RunId>,
    /// Usage of its models; absent if unknown.
    pub usage: Option<RunUsage>,
}

impl RunEntry {
    /// Returns the series that the run continues.
    pub fn series(&self) -> RunSeries {
        let replayed = self.suite.as_ref().is_some_and(|suite| suite.replayed);
        if self.experiment.is_some() {
            return RunSeries::Experiments;
        }
        if self.rejudged.is_some() {
            return RunSeries::JudgedAgain;
        }
        if replayed {
            return RunSeries::Replays;
        }
        let repeats = self.summary.repeats.unwrap_or(1);
        let suite = self.suite.as_ref().map(|suite| {
            let path = suite.path.trim_start_matches("./");
            (path.to_owned(), suite.repeats.max(repeats))
        });
        let (suite, repeats) = suite.map_or((None, repeats), |(path, all)| (Some(path), all));
        RunSeries::Suite { suite, repeats }
    }

    /// Returns the input and output tokens, the model time and the cost as text, each `-` if
    /// unknown.
    pub fn used(&self) -> [String; 3] {
        let nothing = || "-".to_owned();
        let Some(used) = &self.usage else { return [nothing(), nothing(), nothing()] };
        let total = &used.usage.total;
        let tokens = match (total.prompt_tokens, total.undivided_tokens) {
            (0, 0) => nothing(),
            (0, undivided) => undivided.to_string(),
            _ => format!("{} + {}", wording::tokens_in(total), wording::tokens_out(total)),
        };
        let time = if total.calls > 0 { text::duration(total.model_ms) } else { nothing() };
        [tokens, time, wording::cost(total, used.currency()).unwrap_or_else(nothing)]
    }
}

/// Runs that can be compared with each other from run to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSeries {
    /// Runs of one suite with the same number of repeats.
    Suite {
        /// Path of the suite; `None` for generated cases.
        suite: Option<String>,
        /// Number of times each case is run, from 1.
        repeats: u32,
    },
    /// Arms of experiments.
    Experiments,
    /// The cases of an earlier run, run again.
    Replays,
    /// The answers of an earlier run, judged again.
    JudgedAgain,
}

impl RunSeries {
    /// Returns true if the runs show how the system under test develops.
    pub fn is_development(&self) -> bool {
        matches!(self, Self::Suite { .. })
    }

    /// Returns the title, on one line. The path of a suite is untrusted.
    pub fn title(&self) -> String {
        let (suite, repeats) = match self {
            Self::Suite { suite, repeats } => (suite, *repeats),
            Self::Experiments => return "Experiments".to_owned(),
            Self::Replays => return "Replays".to_owned(),
            Self::JudgedAgain => return "Judged again".to_owned(),
        };
        let name = suite.as_deref().unwrap_or("Generated cases");
        let name = selftest_text::one_line(name, MAX_TITLE);
        if repeats > 1 { format!("{name}, each case {repeats} times") } else { name }
    }
}

/// Groups runs by series, in the order in which they are first met.
pub(super) fn by_series<'a>(
    runs: impl IntoIterator<Item = &'a RunEntry>,
) -> Vec<(RunSeries, Vec<&'a RunEntry>)> {
    let mut groups: Vec<(RunSeries, Vec<&RunEntry>)> = Vec::new();
    for run in runs {
        let series = run.series();
        match groups.iter_mut().find(|(known, _)| *known == series) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((series, vec![run])),
        }
    }
    groups
}

/// The runs in a folder.
#[derive(Debug, Default)]
pub(super) struct RunIndex {
    /// Newest first.
    pub(super) entries: Vec<RunEntry>,
    /// Number of JSON files that are not reports.
    pub(super) foreign: u32,
    /// Number of older files that were not read.
    pub(super) left_out: u32,
}

/// Maximum length of the title of a series, in bytes.
const MAX_TITLE: usize = 100;

/// Number of bytes read from a report at a time.
const CHUNK: u64 = 64 * 1024;

/// Maximum length of the `cases` key with surrounding whitespace, in bytes.
const MAX_KEY: usize = 64;

/// Matches the `cases` key in any formatting. It cannot match inside a string, where the quotes
/// would be escaped.
static CASES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#""cases"\s*:\s*\["#).expect("the pattern is a constant that a test uses")
});

/// Reads the entry of a report, stopping where the cases start, so that a long report costs no more
/// than a short one. Returns `None` if the file is not a report of this program.
pub(super) fn read_entry(file: impl Read) -> Option<RunEntry> {
    // The head is a small part of a long report, so read only as much as needed.
    let mut file = file.take(MAX_HEAD);
    let (mut bytes, mut cases) = (Vec::new(), None);
    while cases.is_none() {
        // The key may be split between two reads.
        let searched = bytes.len().saturating_sub(MAX_KEY);
        if file.by_ref().take(CHUNK).read_to_end(&mut bytes).ok()? == 0 {
            break;
        }
        cases = CASES.find_at(&bytes, searched).map(|cases| cases.start());
    }
    let before = bytes[..cases.unwrap_or(bytes.len())].trim_ascii_end();
    // Complete the head to a valid document without cases.
    let head = [before, b"\"cases\":[]}"].concat();
    let mut head: ReportHead = serde_json::from_slice(&head).ok().or_else(|| {
        // A different program may have reordered the keys.
        file.read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    })?;
    // Recompute what follows from the counts instead of trusting it.
    head.summary.passed.checked_add(head.summary.failed)?;
    head.summary.update_rate();
    Some(RunEntry {
        run_id: head.run_id,
        started_at: head.timestamp,
        summary: head.summary,
        outcome: head.outcome,
        judge: head.models.judge,
        generator: head.models.generator,
        threshold: head.config.effective_threshold,
        experiment: head.experiment,
        suite: head.suite,
        rejudged: head.rejudged.map(|rejudged| rejudged.run_id),
        usage: head.usage,
    })
}

/// The fields of a report that the index needs.
#[derive(Deserialize)]
struct ReportHead {
    run_id: RunId,
    timestamp: Timestamp,
    summary: RunSummary,
    // Null while the run is in progress, but never missing.
    #[serde(deserialize_with = "Option::deserialize")]
    outcome: Option<RunOutcome>,
    models: RunModels,
    config: ListedConfig,
    experiment: Option<ExperimentRun>,
    suite: Option<SuiteRun>,
    rejudged: Option<RejudgedRun>,
    usage: Option<RunUsage>,
}

/// The listed part of `config`.
#[derive(Deserialize)]
struct ListedConfig {
    effective_threshold: Threshold,
}

#[derive(Template)]
#[template(path = "index.md")]
struct IndexPage<'a> {
    runs: &'a RunIndex,
    /// The series with the newest run first.
    groups: Vec<(RunSeries, Vec<&'a RunEntry>)>,
}

/// Renders the index as Markdown.
pub(super) fn render(runs: &RunIndex) -> Result<String, askama::Error> {
    let groups = by_series(&runs.entries);
    IndexPage { runs, groups }.render().map(|text| format!("{}\n", text.trim_end()))
}

/// Maximum number of runs in a panel, latest first.
const MAX_RUNS: usize = 40;
/// Maximum number of panels, those with the latest runs first.
const MAX_PANELS: usize = 8;
/// Height of the plot of a single panel, and of one among several, in pixels.
const TALL: f64 = 200.0;
const LOW: f64 = 90.0;

#[derive(Template)]
#[template(path = "trend.svg")]
struct TrendChart<'a> {
    panels: Vec<TrendPanel<'a>>,
    description: String,
    height: f64,
}

/// The plot of one series.
struct TrendPanel<'a> {
    title: String,
    scale: PlotScale,
    /// Oldest first, with the position of each column.
    runs: Vec<(f64, &'a RunEntry)>,
    /// Columns with a date below them.
    dates: Vec<(f64, String)>,
}

/// Renders the chart of the latest runs from a list in the order of the index: one panel per suite
/// and number of repeats. Experiments, replays and runs that were judged again are no data points of
/// a trend.
pub fn trend_picture(newest_first: &[RunEntry]) -> Result<String, askama::Error> {
    let groups = by_series(newest_first).into_iter();
    let groups: Vec<_> =
        groups.filter(|(series, _)| series.is_development()).take(MAX_PANELS).collect();
    let plot = if groups.len() > 1 { LOW } else { TALL };
    let mut top = 0.0;
    let mut panels = Vec::new();
    let latest = newest_first.iter().filter(|run| run.series().is_development());
    let latest: Vec<&RunEntry> = latest.take(MAX_RUNS).collect();
    for (series, mut runs) in groups {
        runs.truncate(MAX_RUNS);
        runs.reverse();
        let scale = PlotScale { top: top + 44.0, bottom: top + 44.0 + plot, low: 0.0, high: 1.0 };
        top = scale.bottom + 24.0;
        let dates = dates(&runs);
        let columns = runs.iter().enumerate().map(|(at, run)| (column(at, runs.len()), *run));
        let runs = columns.collect();
        panels.push(TrendPanel { title: series.title(), scale, runs, dates });
    }
    let description = description(&latest);
    let height = if panels.is_empty() { TALL } else { top } + 32.0;
    let picture = TrendChart { panels, description, height };
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

impl TrendPanel<'_> {
    /// Returns the points of the line through the pass rates; empty if there are fewer than two.
    fn line(&self) -> String {
        let vertex = |(x, run): &(f64, &RunEntry)| {
            Some(format!("{},{}", plot::number(*x), self.height(run.summary.pass_rate?)))
        };
        let vertices: Vec<String> = self.runs.iter().filter_map(vertex).collect();
        if vertices.len() > 1 { vertices.join(" ") } else { String::new() }
    }

    /// Returns the vertical position of a share.
    fn height(&self, share: f64) -> String {
        plot::number(self.scale.y(share))
    }

    /// Returns the shares with a line across the plot.
    fn grid(&self) -> &'static [f64] {
        if self.scale.bottom - self.scale.top < TALL {
            &[0.0, 0.5, 1.0]
        } else {
            &[0.0, 0.25, 0.5, 0.75, 1.0]
        }
    }
}

const fn class(run: &RunEntry) -> &'static str {
    if matches!(run.outcome, Some(RunOutcome::Passed)) { "passed" } else { "other" }
}

fn title(run: &RunEntry) -> String {
    let rate = wording::pass_rate(&run.summary);
    let outcome = wording::outcome(run.outcome);
    let id = &run.run_id;
    match wording::interval(&run.summary) {
        Some(interval) => format!("{id}: {rate}, {interval}; {outcome}"),
        None => format!("{id}: {rate}; {outcome}"),
    }
}

/// Describes the latest runs, newest first.
fn description(runs: &[&RunEntry]) -> String {
    let count = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    match runs {
        [] => "No runs yet.".to_owned(),
        [last, ..] => {
            format!(
                "{}. The latest is {}.",
                selftest_text::wording::plural(count, "run"),
                title(last)
            )
        }
    }
}

/// Returns evenly spaced dates, including the latest, far enough apart to be readable.
fn dates(runs: &[&RunEntry]) -> Vec<(f64, String)> {
    // In pixels: the width of a date, and that of the plot.
    const DATE: usize = 96;
    const PLOT: usize = 644;
    let step = (runs.len() * DATE).div_ceil(PLOT).max(1);
    // Counted from the end, so that the latest run always has a date.
    let positions = (0..runs.len()).rev().step_by(step);
    // The last column may be narrower than half a date.
    let at = |position| column(position, runs.len()).min(RIGHT - 20.0);
    let date = |position: usize| selftest_text::wording::date(runs[position].started_at);
    positions.map(|position| (at(position), date(position))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn an_entry_is_read_without_the_cases() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let entry = read_entry(text.as_bytes()).unwrap();
        assert_eq!(entry.run_id.as_str(), "selftest-20260206-1234-bcdfgh");
        assert_eq!(entry.judge, "ollama/qwen2.5:7b");
        assert_eq!(entry.outcome, Some(RunOutcome::Failed));
        let cut = &text[..text.find("\"cases\"").unwrap()];
        assert_eq!(read_entry(cut.as_bytes()), Some(entry));
    }

    #[test]
    fn the_order_of_fields_does_not_matter() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let document: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text).unwrap();
        let mut turned = serde_json::Map::new();
        for (key, value) in document.iter().rev() {
            turned.insert(key.clone(), value.clone());
        }
        let turned = serde_json::Value::from(turned).to_string();
        assert_eq!(read_entry(turned.as_bytes()), read_entry(text.as_bytes()));
    }

    #[test]
    fn what_models_worked_is_told() {
        let priced = r#"{"calls":2,"prompt_tokens":1200,"completion_tokens":80,"model_ms":2500,"cost":0.0021}"#;
        let used = |total: &str| {
            let usage =
                format!(r#"{{"prices":{{"currency":"USD","models":{{}}}},"total":{total}}}"#);
            let text = fixture::rich_run().json().unwrap().unwrap();
            let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
            document["usage"] = serde_json::from_str(&usage).unwrap();
            read_entry(document.to_string().as_bytes()).unwrap().used()
        };
        assert_eq!(used(priced), ["1200 + 80", "2.5 s", "0.0021 USD"]);
        let undivided = r#"{"calls":0,"prompt_tokens":0,"completion_tokens":0,"undivided_tokens":90,"model_ms":0}"#;
        assert_eq!(used(undivided), ["90", "-", "-"]);
        let text = fixture::rich_run().json().unwrap().unwrap();
        let entry = RunEntry { usage: None, ..read_entry(text.as_bytes()).unwrap() };
        assert_eq!(entry.used(), ["-", "-", "-"]);
    }

    #[test]
    fn rates_are_not_believed() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let lie = text.replace("\"pass_rate\": 0.125", "\"pass_rate\": 1e300");
        assert_ne!(lie, text);
        assert_eq!(read_entry(lie.as_bytes()), read_entry(text.as_bytes()));
        let overflow = text.replace("\"passed\": 1,", "\"passed\": 4294967295,");
        assert_ne!(overflow, text);
        assert_eq!(read_entry(overflow.as_bytes()), None);
    }

    #[test]
    fn anything_else_is_no_entry() {
        let foreign = [
            "",
            "{}",
            "[]",
            "null",
            "<html>",
            "\u{0}",
            r#"{"run_id":"prod-1"}"#,
            r#"{"run_id":"selftest-20260206-1234-abc","timestamp":"yesterday"}"#,
        ];
        for text in foreign {
            assert_eq!(read_entry(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read_entry("[".repeat(100_000).as_bytes()), None);
        assert_eq!(read_entry(std::io::repeat(b'{')), None);
        assert_eq!(
            read_entry(std::io::Read::chain(&b"{\"a\":\""[..], std::io::repeat(b'x'))),
            None
        );
    }

    #[test]
    fn index() {
        insta::assert_snapshot!(render(&fixture::runs()).unwrap());
        insta::assert_snapshot!("index_empty", render(&RunIndex::default()).unwrap());
    }

    #[test]
    fn picture() {
        insta::assert_snapshot!(trend_picture(&fixture::runs().entries).unwrap());
    }

    #[test]
    fn nothing_runs_and_nothing_is_loaded() {
        let svg = trend_picture(&fixture::runs().entries).unwrap();
        for forbidden in ["<script", "href", "url(", "<image", "<foreignObject", "@import"] {
            assert!(!svg.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn forty_runs_are_drawn_and_no_more() {
        let run = fixture::runs().entries.remove(1);
        let svg = trend_picture(&vec![run; 90]).unwrap();
        assert_eq!(svg.matches("r=\"4.5\"").count(), MAX_RUNS + 2, "with the two of the legend");
        assert_eq!(svg.matches("class=\"date\"").count(), 7);
    }

    #[test]
    fn what_cannot_be_compared_is_in_different_panels_or_in_none() {
        let svg = trend_picture(&fixture::runs().entries).unwrap();
        assert_eq!(svg.matches("class=\"heading\"").count(), 3, "generated, suite, repeats");
        assert!(svg.contains("suites/&#60;b&#62;mail.yaml, each case 5 times"), "{svg}");
        for left_out in ["20260201", "20260210"] {
            assert!(!svg.contains(left_out), "a replay and an arm: {svg}");
        }
    }

    #[test]
    fn no_runs_are_a_picture_too() {
        assert!(trend_picture(&[]).unwrap().contains("No runs yet."));
    }
}
