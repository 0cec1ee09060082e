//! The pass rates of the latest runs as a chart: SVG without scripts or external references.
//! Returns text and opens no files.

use askama::Template;

use super::index::RunEntry;
use super::wording;
use selftest_harness::outcome::RunOutcome;
use selftest_stats::plot::{self, PlotScale, RIGHT, column};

/// Maximum number of runs in the chart, latest first.
const MAX_RUNS: usize = 40;

/// Position of the plot within the 720 × 300 image.
const SHARES: PlotScale = PlotScale { top: 44.0, bottom: 244.0, low: 0.0, high: 1.0 };

#[derive(Template)]
#[template(path = "trend.svg")]
struct TrendChart<'a> {
    /// Oldest first, with the position of each column.
    runs: Vec<(f64, &'a RunEntry)>,
    description: String,
    /// Columns with a date below them.
    dates: Vec<(f64, String)>,
}

/// Renders the chart of the latest runs from a list in the order of the index.
pub fn render(newest_first: &[RunEntry]) -> Result<String, askama::Error> {
    // One arm of an experiment is not a data point of the trend.
    let runs = newest_first.iter().filter(|run| run.experiment.is_none());
    let mut runs: Vec<&RunEntry> = runs.take(MAX_RUNS).collect();
    runs.reverse();
    let columns = runs.iter().enumerate().map(|(at, run)| (column(at, runs.len()), *run));
    let picture = TrendChart {
        description: description(&runs),
        dates: dates(&runs),
        runs: columns.collect(),
    };
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

impl TrendChart<'_> {
    /// Returns the points of the line through the pass rates; empty if there are fewer than two.
    fn line(&self) -> String {
        let vertex = |(x, run): &(f64, &RunEntry)| {
            Some(format!("{},{}", plot::number(*x), height(run.summary.pass_rate?)))
        };
        let vertices: Vec<String> = self.runs.iter().filter_map(vertex).collect();
        if vertices.len() > 1 { vertices.join(" ") } else { String::new() }
    }
}

/// Returns the vertical position of a share.
fn height(share: f64) -> String {
    plot::number(SHARES.y(share))
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

fn description(runs: &[&RunEntry]) -> String {
    let count = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    match runs {
        [] => "No runs yet.".to_owned(),
        [.., last] => {
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
    fn picture() {
        insta::assert_snapshot!(render(&fixture::runs().entries).unwrap());
    }

    #[test]
    fn nothing_runs_and_nothing_is_loaded() {
        let svg = render(&fixture::runs().entries).unwrap();
        for forbidden in ["<script", "href", "url(", "<image", "<foreignObject", "@import"] {
            assert!(!svg.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn forty_runs_are_drawn_and_no_more() {
        let run = fixture::runs().entries.remove(1);
        let svg = render(&vec![run; 90]).unwrap();
        assert_eq!(svg.matches("r=\"4.5\"").count(), MAX_RUNS + 2, "with the two of the legend");
        assert_eq!(svg.matches("class=\"date\"").count(), 7);
    }

    #[test]
    fn no_runs_are_a_picture_too() {
        assert!(render(&[]).unwrap().contains("No runs yet."));
    }
}
