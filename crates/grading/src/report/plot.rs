//! Lines over weeks, as the pictures of reports draw them. Text for templates; draws nothing.

use selftest_stats::plot::{Scale, column, number};

/// A horizontal line and what it stands for.
pub(super) struct GridLine {
    pub(super) y: String,
    pub(super) label: String,
}

impl GridLine {
    pub(super) fn at(scale: Scale, value: f64, label: String) -> Self {
        Self { y: number(scale.y(value)), label }
    }
}

/// The name of a week below its column.
pub(super) struct WeekLabel {
    pub(super) x: String,
    pub(super) label: String,
}

/// One number over the weeks.
#[derive(Default)]
pub(super) struct Series {
    /// Broken where a week has no number.
    pub(super) path: String,
    pub(super) points: Vec<Point>,
}

pub(super) struct Point {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) title: String,
}

impl Series {
    /// The numbers of the weeks, each with its title.
    pub(super) fn of(
        scale: Scale,
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
            series.points.push(Point { x, y, title });
            command = 'L';
        }
        series
    }
}
