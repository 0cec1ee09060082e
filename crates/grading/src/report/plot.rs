//! Data for line charts over weeks, formatted for the SVG templates of reports.

use selftest_stats::plot::{PlotScale, column, number};

/// A horizontal grid line and its label.
pub(super) struct GridLine {
    pub(super) y: String,
    pub(super) label: String,
}

impl GridLine {
    pub(super) fn at(scale: PlotScale, value: f64, label: String) -> Self {
        Self { y: number(scale.y(value)), label }
    }
}

/// Label of a week below its column.
pub(super) struct WeekLabel {
    pub(super) x: String,
    pub(super) label: String,
}

/// A number plotted over the weeks.
#[derive(Default)]
pub(super) struct PlotSeries {
    /// SVG path, interrupted at weeks without a value.
    pub(super) path: String,
    pub(super) points: Vec<PlotPoint>,
}

pub(super) struct PlotPoint {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) title: String,
}

impl PlotSeries {
    /// Plots the values of the weeks, each with a title.
    pub(super) fn new(
        scale: PlotScale,
        weeks: impl ExactSizeIterator<Item = Option<(f64, String)>>,
    ) -> Self {
        let count = weeks.len();
        let mut series = Self::default();
        let mut command = 'M';
        for (position, week) in weeks.enumerate() {
            let Some((value, title)) = week else {
                command = 'M';
                continue;
            };
            let (x, y) = (number(column(position, count)), number(scale.y(value)));
            series.path.push_str(&format!("{command}{x} {y}"));
            series.points.push(PlotPoint { x, y, title });
            command = 'L';
        }
        series
    }
}
