//! Completion, efficiency and quality over the weeks as a picture: SVG without scripts or outside
//! references. Returns text and opens no file.

use askama::Template;

use super::words;
use crate::grade::weekly::WeekNumbers;
use crate::grade::{GradeSummary, WeeklyReport};
use selftest_stats::plot::{Scale, column, number};

// The plot within the 720 × 420 picture: rates above, grades below.
const RATES: Scale = Scale { top: 44.0, bottom: 184.0, low: 0.0, high: 1.0 };
const GRADES: Scale = Scale { top: 244.0, bottom: 384.0, low: 1.0, high: 5.0 };

// Numbers are formatted before they get here; weeks are ours, so nothing is foreign.
#[derive(Template)]
#[template(path = "weekly/trend.svg")]
struct Picture {
    description: String,
    grid: Vec<GridLine>,
    whiskers: Vec<String>,
    series: [Series; 3],
    weeks: Vec<WeekLabel>,
}

struct GridLine {
    y: String,
    label: String,
}

struct Series {
    class: &'static str,
    /// Broken where a week has no number.
    path: String,
    points: Vec<Point>,
}

struct Point {
    x: String,
    y: String,
    title: String,
}

struct WeekLabel {
    x: String,
    label: String,
}

/// The picture of a report's history.
pub fn render(report: &WeeklyReport) -> Result<String, askama::Error> {
    let weeks = &report.history;
    let rates = [0.0, 0.5, 1.0]
        .map(|rate| GridLine { y: number(RATES.y(rate)), label: format!("{} %", rate * 100.0) });
    let grades = [1.0, 2.0, 3.0, 4.0, 5.0]
        .map(|grade| GridLine { y: number(GRADES.y(grade)), label: grade.to_string() });
    let whiskers = weeks.iter().enumerate().filter_map(|(position, week)| {
        let ends = week.summary.completion_rate.interval?;
        Some(RATES.whisker(column(position, weeks.len()), ends))
    });
    let labels = weeks.iter().enumerate().map(|(position, week)| {
        let name = week.week.to_string();
        // The year stands in the report; twelve of them would not fit.
        let label = name.split_once('-').map_or(name.as_str(), |(_, week)| week).to_owned();
        WeekLabel { x: number(column(position, weeks.len())), label }
    });
    let picture = Picture {
        description: description(report),
        grid: rates.into_iter().chain(grades).collect(),
        whiskers: whiskers.collect(),
        series: [
            series(weeks, "first", RATES, |summary| {
                (summary.completion_rate.rate, words::share(&summary.completion_rate))
            }),
            series(weeks, "first", GRADES, |summary| {
                let mean = summary.avg_tool_efficiency;
                (mean, format!("efficiency {}", words::mean(mean)))
            }),
            series(weeks, "second", GRADES, |summary| {
                let mean = summary.avg_response_quality;
                (mean, format!("quality {}", words::mean(mean)))
            }),
        ],
        weeks: labels.collect(),
    };
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

fn series(
    weeks: &[WeekNumbers],
    class: &'static str,
    scale: Scale,
    value: impl Fn(&GradeSummary) -> (Option<f64>, String),
) -> Series {
    let mut series = Series { class, path: String::new(), points: Vec::new() };
    let mut drawing = false;
    for (position, week) in weeks.iter().enumerate() {
        let (found, words) = value(&week.summary);
        let Some(found) = found else {
            drawing = false;
            continue;
        };
        let (x, y) = (number(column(position, weeks.len())), number(scale.y(found)));
        series.path.push_str(&format!("{}{x} {y}", if drawing { 'L' } else { 'M' }));
        series.points.push(Point { x, y, title: format!("{}: {words}", week.week) });
        drawing = true;
    }
    series
}

fn description(report: &WeeklyReport) -> String {
    let rows = report.history.iter().map(|week| {
        let summary = &week.summary;
        if summary.sessions == 0 {
            return format!("{}: no session.", week.week);
        }
        format!(
            "{}: completed {}, efficiency {}, quality {}.",
            week.week,
            words::share(&summary.completion_rate),
            words::mean(summary.avg_tool_efficiency),
            words::mean(summary.avg_response_quality)
        )
    });
    rows.collect::<Vec<_>>().join(" ")
}
