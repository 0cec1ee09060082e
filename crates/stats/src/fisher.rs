//! Fisher's exact test for two proportions.

use statrs::function::factorial::ln_binomial;

use super::TestTail;

/// Returns the one-sided p-value of Fisher's exact test: the probability under chance of a table in
/// which the first row's share of the first column is at least as extreme. Returns `None` if a row
/// is empty.
///
/// Fisher, "The design of experiments" (1935). `TestTail::Less`: the first row's share is lower.
pub fn fisher_exact([[a, b], [c, d]]: [[u32; 2]; 2], tail: TestTail) -> Option<f64> {
    let [a, b, c, d] = [a, b, c, d].map(u64::from);
    let (first, second, column) = (a + b, c + d, a + c);
    if first == 0 || second == 0 {
        return None;
    }
    // The margins are fixed, so the first cell determines the whole table.
    let cells = match tail {
        TestTail::Less => column.saturating_sub(second)..=a,
        TestTail::Greater => a..=first.min(column),
    };
    let all = ln_binomial(first + second, column);
    let chance = |cell| ln_binomial(first, cell) + ln_binomial(second, column - cell) - all;
    // Summing rounded terms can exceed 1 by a little.
    Some(cells.map(|cell| chance(cell).exp()).sum::<f64>().min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        // Agresti (1990), p. 61, Fisher's tea drinker; R's help page of `fisher.test`: p = 0.2429.
        let p = fisher_exact([[3, 1], [1, 3]], TestTail::Greater).unwrap();
        assert!((p - 17.0 / 70.0).abs() < 1e-9, "{p}");
        // Fisher (1962, 1970), convictions of like-sex twins; the same page: p = 0.0004652.
        let p = fisher_exact([[2, 15], [10, 3]], TestTail::Less).unwrap();
        assert!((p - 0.000_465_2).abs() < 5e-8, "{p}");
    }

    #[test]
    fn edges() {
        assert_eq!(fisher_exact([[0, 0], [1, 1]], TestTail::Less), None);
        let p = fisher_exact([[5, 0], [5, 0]], TestTail::Less).unwrap();
        assert!((p - 1.0).abs() < 1e-9, "{p}");
    }
}
