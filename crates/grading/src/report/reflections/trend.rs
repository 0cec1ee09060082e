//! Renders the weekly mean score of reflections as an SVG without scripts or external references.

use askama::Template;

use super::numbers;
use crate::grade::reflection::ReflectionWeek;
use crate::report::plot::{GridLine, PlotSeries, WeekLabel};
use selftest_stats::plot::{PlotScale, RIGHT, column, number};
use selftest_stats::score::Threshold;

/// Plot area within the 720 × 280 picture.
const SCORES: PlotScale = PlotScale { top: 44.0, bottom: 244.0, low: 0.0, high: 1.0 };

// Numbers are already formatted and week names are generated, so no field is untrusted.
#[derive(Template)]
#[template(path = "reflections/trend.svg")]
struct ReflectionTrendPicture {
    description: String,
    grid: [GridLine; 5],
    threshold: GridLine,
    whiskers: Vec<String>,
    means: PlotSeries,
    weeks: Vec<WeekLabel>,
}

/// Renders a trend together with the configured threshold.
pub fn render(weeks: &[ReflectionWeek], threshold: Threshold) -> Result<String, askama::Error> {
    let whiskers = weeks.iter().enumerate().filter_map(|(position, week)| {
        week.mean?;
        Some(SCORES.whisker(column(position, weeks.len()), week.interval?))
    });
    let picture = ReflectionTrendPicture {
        description: description(weeks),
        grid: [0.0, 0.25, 0.5, 0.75, 1.0]
            .map(|score| GridLine::at(SCORES, score, format!("{score:.2}"))),
        threshold: GridLine::at(SCORES, threshold.get(), format!("weak below {threshold}")),
        whiskers: whiskers.collect(),
        means: PlotSeries::new(SCORES, weeks.iter().map(|week| Some((week.mean?, title(week))))),
        weeks: labels(weeks),
    };
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

fn title(week: &ReflectionWeek) -> String {
    let [mean, interval] = numbers(week);
    let interval = week.interval.map(|_| format!(" ({interval})")).unwrap_or_default();
    format!("{}: {mean}{interval}, {} of {} weak", week.week, week.weak, week.count)
}

/// Returns week labels at even distances, always including the latest week, with enough space to be
/// legible.
fn labels(weeks: &[ReflectionWeek]) -> Vec<WeekLabel> {
    // In pixels: width of a label and width of the plot.
    const MAX_NAME: usize = 72;
    const PLOT: usize = 644;
    let step = (weeks.len() * MAX_NAME).div_ceil(PLOT).max(1);
    let positions = (0..weeks.len()).rev().step_by(step);
    let labels = positions.map(|position| WeekLabel {
        // The last column may be narrower than half a label.
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
