//! Correction for multiple tests.

/// Returns the p-values after Holm's correction, in the given order, each at most 1.0.
///
/// Holm, "A simple sequentially rejective multiple test procedure" (1979). Comparing them with
/// alpha keeps the probability of any false alarm below alpha.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    // The k-th smallest of m p-values is multiplied by m - k + 1: once the smaller ones are
    // rejected, only the remaining hypotheses can still be false alarms.
    let mut corrected = vec![1.0; p_values.len()];
    let mut highest = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        // Taking the running maximum keeps the corrected values in the order of the original ones.
        highest = highest.max(p_values[at] * super::real(p_values.len() - rank)).min(1.0);
        corrected[at] = highest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        // Wikipedia, "Holm-Bonferroni method", example: only the first and the last are rejected
        // at 0.05. The corrected values are those of R's `p.adjust`.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
