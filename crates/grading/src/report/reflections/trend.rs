//! The mean score of reflections by week as a picture: SVG without scripts or outside references.
//! Returns text and opens no file.

use askama::Template;

use super::numbers;
use crate::grade::reflection::ReflectionWeek;
use selftest_stats::plot::{RIGHT, Scale, column, number};
use selftest_stats::score::Threshold;

/// The plot within the 720 × 280 picture.
const SCORES: Scale = Scale { top: 44.0, bottom: 244.0, low: 0.0, high: 1.0 };

// Numbers are formatted before they get here; weeks are ours, so nothing is foreign.
#[derive(Template)]
#[template(path = "reflections/trend.svg")]
struct Picture {
    description: String,
    grid: Vec<GridLine>,
    threshold: GridLine,
    whiskers: Vec<String>,
    /// Broken where a week has no reflection.
    path: String,
    points: Vec<Point>,
    weeks: Vec<WeekLabel>,
}

struct GridLine {
    y: String,
    label: String,
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

/// The picture of a trend, with the threshold of the configuration.
pub fn render(weeks: &[ReflectionWeek], threshold: Threshold) -> Result<String, askama::Error> {
    let line = |value: f64, label: String| GridLine { y: number(SCORES.y(value)), label };
    let mut picture = Picture {
        description: description(weeks),
        grid: [0.0, 0.25, 0.5, 0.75, 1.0].map(|score| line(score, format!("{score:.2}"))).into(),
        threshold: line(threshold.get(), format!("weak below {threshold}")),
        whiskers: Vec::new(),
        path: String::new(),
        points: Vec::new(),
        weeks: labels(weeks),
    };
    let mut drawing = false;
    for (position, week) in weeks.iter().enumerate() {
        let Some(mean) = week.mean else {
            drawing = false;
            continue;
        };
        let middle = column(position, weeks.len());
        picture.whiskers.extend(week.interval.map(|ends| SCORES.whisker(middle, ends)));
        let (x, y) = (number(middle), number(SCORES.y(mean)));
        picture.path.push_str(&format!("{}{x} {y}", if drawing { 'L' } else { 'M' }));
        picture.points.push(Point { x, y, title: title(week) });
        drawing = true;
    }
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

fn title(week: &ReflectionWeek) -> String {
    let [mean, interval] = numbers(week);
    let interval = week.interval.map(|_| format!(" ({interval})")).unwrap_or_default();
    format!("{}: {mean}{interval}, {} of {} weak", week.week, week.weak, week.count)
}

/// Names of weeks at even distances, the latest among them, far enough apart to be read.
fn labels(weeks: &[ReflectionWeek]) -> Vec<WeekLabel> {
    // In pixels: what a name needs, and the plot's width.
    const NAME: usize = 72;
    const PLOT: usize = 644;
    let step = (weeks.len() * NAME).div_ceil(PLOT).max(1);
    let positions = (0..weeks.len()).rev().step_by(step);
    let labels = positions.map(|position| WeekLabel {
        // The last column may be narrower than half a name.
        x: number(column(position, weeks.len()).min(RIGHT - 12.0)),
        label: weeks[position].week.to_string(),
    });
    labels.collect()
}

fn description(weeks: &[ReflectionWeek]) -> String {
    let told: Vec<String> = weeks
        .iter()
        .filter(|week| week.count > 0)
        .map(|week| format!("{}.", title(week)))
        .collect();
    if told.is_empty() { "No reflections yet.".to_owned() } else { told.join(" ") }
}
