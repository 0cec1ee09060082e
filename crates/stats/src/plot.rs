//! Coordinates shared by the charts over time. Draws nothing.

use crate::Interval;

/// Left end of the plot, in units of an image 720 wide.
const LEFT: f64 = 56.0;
/// Right end of the plot, in units of an image 720 wide.
pub const RIGHT: f64 = 700.0;
/// Half the width of a whisker's cap.
pub const CAP: f64 = 4.0;

/// A vertical axis.
#[derive(Clone, Copy)]
pub struct PlotScale {
    /// Vertical position of `high`.
    pub top: f64,
    /// Vertical position of `low`.
    pub bottom: f64,
    /// Value at the bottom.
    pub low: f64,
    /// Value at the top.
    pub high: f64,
}

impl PlotScale {
    /// Returns the vertical position of a value, clamped to the axis.
    pub fn y(self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        self.bottom - (self.bottom - self.top) * part.clamp(0.0, 1.0)
    }

    /// Returns the SVG path of an interval with a cap at each end.
    pub fn whisker(self, x: f64, ends: Interval) -> String {
        let [left, right, x] = [x - CAP, x + CAP, x].map(number);
        let [high, low] = [ends.high, ends.low].map(|end| number(self.y(end)));
        format!("M{left} {high}H{right}M{x} {high}V{low}M{left} {low}H{right}")
    }
}

/// Returns the middle of a column. The columns divide the plot evenly, so a single one is centred.
#[expect(clippy::cast_precision_loss, reason = "pictures show tens of positions")]
pub fn column(position: usize, count: usize) -> f64 {
    let column = (RIGHT - LEFT) / count.max(1) as f64;
    LEFT + column * (position as f64 + 0.5)
}

/// Formats a coordinate with one decimal.
pub fn number(value: f64) -> String {
    format!("{value:.1}")
}
