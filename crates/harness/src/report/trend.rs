//! The pass rate of the latest runs as a picture: SVG without scripts or outside references.
//! Returns text and opens no file.

use askama::Template;

use super::index::RunEntry;
use super::wording;
use crate::outcome::Outcome;
use selftest_stats::plot::{CAP, RIGHT, Scale, column, number};

/// Most runs in the picture, the latest.
const RUNS: usize = 40;

/// The plot within the 720 × 300 picture.
const SHARES: Scale = Scale { top: 44.0, bottom: 244.0, low: 0.0, high: 1.0 };

// Numbers are formatted before they get here: askama escapes texts, and the id of a run is the
// only foreign one.
#[derive(Template)]
#[template(path = "trend.svg")]
struct Picture {
    description: String,
    grid: Vec<GridLine>,
    line: String,
    points: Vec<Point>,
    missing: Vec<Missing>,
    dates: Vec<DateLabel>,
}

struct GridLine {
    y: String,
    label: String,
}

struct Point {
    x: String,
    y: String,
    low: String,
    high: String,
    cap_left: String,
    cap_right: String,
    class: &'static str,
    title: String,
}

struct Missing {
    x: String,
    title: String,
}

struct DateLabel {
    x: String,
    text: String,
}

/// The picture of the latest runs; `newest_first` as the index lists them.
pub fn render(newest_first: &[RunEntry]) -> Result<String, askama::Error> {
    // An arm of an experiment is no point of a trend.
    let runs = newest_first.iter().filter(|run| run.experiment.is_none());
    let mut runs: Vec<&RunEntry> = runs.take(RUNS).collect();
    runs.reverse();
    let mut picture = Picture {
        description: description(&runs),
        grid: [0.0, 0.25, 0.5, 0.75, 1.0]
            .map(|share| GridLine {
                y: number(SHARES.y(share)),
                label: format!("{} %", share * 100.0),
            })
            .into(),
        line: String::new(),
        points: Vec::new(),
        missing: Vec::new(),
        dates: dates(&runs),
    };
    let mut vertices = Vec::new();
    for (position, run) in runs.iter().enumerate() {
        let x = column(position, runs.len());
        let title = title(run);
        let (Some(rate), Some(interval)) = (run.summary.pass_rate, run.summary.pass_rate_interval)
        else {
            picture.missing.push(Missing { x: number(x), title });
            continue;
        };
        vertices.push(format!("{},{}", number(x), number(SHARES.y(rate))));
        picture.points.push(Point {
            x: number(x),
            y: number(SHARES.y(rate)),
            low: number(SHARES.y(interval.low)),
            high: number(SHARES.y(interval.high)),
            cap_left: number(x - CAP),
            cap_right: number(x + CAP),
            class: if run.outcome == Some(Outcome::Passed) { "passed" } else { "other" },
            title,
        });
    }
    if vertices.len() > 1 {
        picture.line = vertices.join(" ");
    }
    picture.render().map(|text| format!("{}\n", text.trim_end()))
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

/// Dates of runs at even distances, the latest among them, far enough apart to be read.
fn dates(runs: &[&RunEntry]) -> Vec<DateLabel> {
    // In pixels: what a date needs, and the plot's width.
    const DATE: usize = 96;
    const PLOT: usize = 644;
    let step = (runs.len() * DATE).div_ceil(PLOT).max(1);
    let positions = (0..runs.len()).rev().step_by(step);
    let labels = positions.map(|position| DateLabel {
        // The last column may be narrower than half a date.
        x: number(column(position, runs.len()).min(RIGHT - 20.0)),
        text: selftest_text::wording::date(runs[position].started_at),
    });
    labels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

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
        assert_eq!(svg.matches("r=\"4.5\"").count(), RUNS + 2, "with the two of the legend");
        assert_eq!(svg.matches("class=\"date\"").count(), 7);
    }

    #[test]
    fn no_runs_are_a_picture_too() {
        assert!(render(&[]).unwrap().contains("No runs yet."));
    }
}
