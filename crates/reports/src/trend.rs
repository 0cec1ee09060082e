//! The pass rates of the latest runs as a chart: SVG without scripts or external references.
//! Returns text and opens no files.

use askama::Template;

use super::index::{RunEntry, by_series};
use super::wording;
use selftest_harness::outcome::RunOutcome;
use selftest_stats::plot::{self, PlotScale, RIGHT, column};

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
pub fn render(newest_first: &[RunEntry]) -> Result<String, askama::Error> {
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
    fn what_cannot_be_compared_is_in_different_panels_or_in_none() {
        let svg = render(&fixture::runs().entries).unwrap();
        assert_eq!(svg.matches("class=\"heading\"").count(), 3, "generated, suite, repeats");
        assert!(svg.contains("suites/&#60;b&#62;mail.yaml, each case 5 times"), "{svg}");
        for left_out in ["20260201", "20260210"] {
            assert!(!svg.contains(left_out), "a replay and an arm: {svg}");
        }
    }

    #[test]
    fn no_runs_are_a_picture_too() {
        assert!(render(&[]).unwrap().contains("No runs yet."));
    }
}
