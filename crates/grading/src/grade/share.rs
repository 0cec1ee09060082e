//! Shares, means and bounded lists for reports. A number without data stays absent.

use serde::{Deserialize, Serialize};

use selftest_stats::{Interval, wilson};

/// A share of a whole with its confidence interval.
///
/// Rounded to six places, like all numbers in a report, so that they survive a JSON round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Proportion {
    /// The part.
    pub count: u64,
    /// The whole.
    pub of: u64,
    /// `count / of`, 0.0 to 1.0; absent if `of` is 0.
    pub rate: Option<f64>,
    /// 95 % Wilson interval; absent if `of` is 0.
    pub interval: Option<Interval>,
}

impl Proportion {
    /// Creates the share of `count` in `of`.
    pub fn new(count: u64, of: u64) -> Self {
        let interval = wilson(saturated(count), saturated(of));
        let interval = interval
            .map(|Interval { low, high }| Interval { low: rounded(low), high: rounded(high) });
        Self { count, of, rate: ratio(count, of), interval }
    }
}

/// A truncated list and the number of items left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TruncatedList<T> {
    /// The first items.
    pub items: Vec<T>,
    /// Number of further items.
    pub left_out: u64,
}

// Not derived, since that would require `T: Default`.
impl<T> Default for TruncatedList<T> {
    fn default() -> Self {
        Self { items: Vec::new(), left_out: 0 }
    }
}

impl<T> TruncatedList<T> {
    /// Keeps the first `most` items.
    pub fn new(mut items: Vec<T>, most: usize) -> Self {
        let left_out = items.len().saturating_sub(most) as u64;
        items.truncate(most);
        Self { items, left_out }
    }

    /// Returns the total number of items.
    pub fn total(&self) -> u64 {
        self.left_out.saturating_add(self.items.len() as u64)
    }
}

/// Returns `part / whole`, or `None` if the whole is 0.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| rounded(part as f64 / whole as f64))
}

/// Returns the sum. It saturates, since the counts come from untrusted files and databases.
pub(super) fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Returns the mean, or `None` without values.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| rounded(sum / count))
}

pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

pub(super) fn saturated(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_count_has_no_rate() {
        assert_eq!(Proportion::new(0, 0), Proportion::default());
        assert_eq!(mean(std::iter::empty()), None);
        let share = Proportion::new(2, 3);
        assert_eq!(share.rate, Some(0.666_667));
        let json = serde_json::to_string(&share).unwrap();
        assert_eq!(serde_json::from_str::<Proportion>(&json).unwrap(), share);
    }

    #[test]
    fn a_cut_list_says_how_much_is_missing() {
        let list = TruncatedList::new(vec![1, 2, 3], 2);
        assert_eq!((list.items.as_slice(), list.left_out, list.total()), (&[1, 2][..], 1, 3));
    }
}
