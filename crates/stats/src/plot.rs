//! Where numbers stand in a picture: what pictures over time have in common. Draws nothing.

use crate::Interval;

/// The sides of the plot within a picture 720 wide.
const LEFT: f64 = 56.0;
/// The right end of the plot, in units of a picture 720 wide.
pub const RIGHT: f64 = 700.0;
/// Half a whisker's cap.
pub const CAP: f64 = 4.0;

/// A vertical axis.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Vertical position of `high`.
    pub top: f64,
    /// Vertical position of `low`.
    pub bottom: f64,
    /// The value at the bottom.
    pub low: f64,
    /// The value at the top.
    pub high: f64,
}

impl Scale {
    /// Vertical position of a value, held between top and bottom.
    pub fn y(self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        self.bottom - (self.bottom - self.top) * part.clamp(0.0, 1.0)
    }

    /// The path of an interval with a cap at each end.
    pub fn whisker(self, x: f64, ends: Interval) -> String {
        let [left, right, x] = [x - CAP, x + CAP, x].map(number);
        let [high, low] = [ends.high, ends.low].map(|end| number(self.y(end)));
        format!("M{left} {high}H{right}M{x} {high}V{low}M{left} {low}H{right}")
    }
}

/// The middle of a column. Each position has one of its own, so that a single one stands in the
/// middle.
#[expect(clippy::cast_precision_loss, reason = "pictures show tens of positions")]
pub fn column(position: usize, count: usize) -> f64 {
    let column = (RIGHT - LEFT) / count.max(1) as f64;
    LEFT + column * (position as f64 + 0.5)
}

/// A coordinate as written into a picture: one decimal.
pub fn number(value: f64) -> String {
    format!("{value:.1}")
}
