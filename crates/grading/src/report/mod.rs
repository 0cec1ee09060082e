//! Renders grades, skills, gaps, reflections and weekly reports as text. Only `weekly` writes
//! files. The points of line charts over weeks are made here, for the SVG templates below.

pub mod grades;
pub mod improvement;
pub mod outcomes;
pub mod reflections;
pub mod session;
pub mod transcript;
pub mod weekly;

use std::fmt;

use selftest_stats::plot::{PlotScale, column, number};
use selftest_text::escape::inline;

/// Askama escaper for values in Markdown templates. Each value becomes a single line of at most 700
/// bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkdownEscaper;

impl askama::filters::Escaper for MarkdownEscaper {
    fn write_escaped_str<W: fmt::Write>(&self, mut output: W, text: &str) -> fmt::Result {
        output.write_str(inline(text, 700).as_str())
    }
}

/// A horizontal grid line and its label.
struct GridLine {
    y: String,
    label: String,
}

impl GridLine {
    fn at(scale: PlotScale, value: f64, label: String) -> Self {
        Self { y: number(scale.y(value)), label }
    }
}

/// Label of a week below its column.
struct WeekLabel {
    x: String,
    label: String,
}

/// A number plotted over the weeks.
#[derive(Default)]
struct PlotSeries {
    /// SVG path, interrupted at weeks without a value.
    path: String,
    points: Vec<PlotPoint>,
}

struct PlotPoint {
    x: String,
    y: String,
    title: String,
}

impl PlotSeries {
    /// Plots the values of the weeks, each with a title.
    fn new(scale: PlotScale, weeks: impl ExactSizeIterator<Item = Option<(f64, String)>>) -> Self {
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
