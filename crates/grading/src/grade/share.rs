//! Shares, means and bounded lists, as reports hold them. An absent number stays absent.

use serde::{Deserialize, Serialize};

use selftest_stats::{Interval, wilson};

/// A part of a whole with what it is worth. Rounded to six places, as all numbers of a report
/// are: JSON then gives back what it was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The part.
    pub count: u64,
    /// The whole.
    pub of: u64,
    /// `count / of`, 0.0 to 1.0; absent where `of` is 0.
    pub rate: Option<f64>,
    /// Its 95 % Wilson interval; absent where `of` is 0.
    pub interval: Option<Interval>,
}

impl Share {
    /// The share of `count` in `of`.
    pub fn new(count: u64, of: u64) -> Self {
        let interval = wilson(saturated(count), saturated(of));
        let interval = interval
            .map(|Interval { low, high }| Interval { low: rounded(low), high: rounded(high) });
        Self { count, of, rate: ratio(count, of), interval }
    }
}

/// A list that was cut, and by how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Listed<T> {
    /// The first ones.
    pub items: Vec<T>,
    /// How many more there are.
    pub left_out: u64,
}

// Not derived: that would ask for `T: Default`.
impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: Vec::new(), left_out: 0 }
    }
}

impl<T> Listed<T> {
    /// The first `most` items.
    pub fn new(mut items: Vec<T>, most: usize) -> Self {
        let left_out = items.len().saturating_sub(most) as u64;
        items.truncate(most);
        Self { items, left_out }
    }

    /// How many there are in all.
    pub fn total(&self) -> u64 {
        self.left_out.saturating_add(self.items.len() as u64)
    }
}

/// `part / whole`; `None` where the whole is 0.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| rounded(part as f64 / whole as f64))
}

/// The sum. Counts come from files and a database that others write: they must not overflow.
pub(super) fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// The mean; `None` of nothing.
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
        assert_eq!(Share::new(0, 0), Share::default());
        assert_eq!(mean(std::iter::empty()), None);
        let share = Share::new(2, 3);
        assert_eq!(share.rate, Some(0.666_667));
        let json = serde_json::to_string(&share).unwrap();
        assert_eq!(serde_json::from_str::<Share>(&json).unwrap(), share);
    }

    #[test]
    fn a_cut_list_says_how_much_is_missing() {
        let list = Listed::new(vec![1, 2, 3], 2);
        assert_eq!((list.items.as_slice(), list.left_out, list.total()), (&[1, 2][..], 1, 3));
    }
}
