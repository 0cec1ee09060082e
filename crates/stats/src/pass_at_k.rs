//! pass@k and pass^k: the chance that at least one of k trials passes, and that all do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Interval, mean, mean_interval, real};

/// pass@k and pass^k over the cases with at least k trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PassAtK {
    /// Number of trials considered together.
    pub k: u32,
    /// Number of cases with at least that many trials.
    pub cases: u32,
    /// pass@k: probability that at least one of k trials passes, averaged over the cases.
    pub any: MeanShare,
    /// pass^k: probability that all k trials pass.
    pub all: MeanShare,
}

/// Mean of a share over cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeanShare {
    /// The mean.
    pub mean: f64,
    /// 95 % confidence interval over similar cases, by Student's t clamped to 0 and 1. Absent with
    /// fewer than two cases, or if all cases have the same share.
    pub interval: Option<Interval>,
}

/// Computes unbiased estimates of both from each case's trials, `(passed, trials)`. Returns `None`
/// if no case has k trials or k is 0.
///
/// For a case with n trials, c of which passed: `1 - C(n - c, k) / C(n, k)` (Chen et al.,
/// "Evaluating large language models trained on code", arXiv 2107.03374) and `C(c, k) / C(n, k)`
/// (Yao et al., "τ-bench", arXiv 2406.12045). The interval is over the means of the cases (Miller,
/// "Adding error bars to evals", arXiv 2411.00640).
pub fn pass_at_k(cases: &[(u32, u32)], k: u32) -> Option<PassAtK> {
    let known = cases.iter().filter(|(passed, trials)| k > 0 && *trials >= k && passed <= trials);
    let (any, all): (Vec<f64>, Vec<f64>) = known
        .map(|&(passed, trials)| {
            (1.0 - all_drawn_from(trials - passed, trials, k), all_drawn_from(passed, trials, k))
        })
        .unzip();
    // Student's interval knows nothing of bounds and may leave 0 to 1 if cases differ much.
    let cut = |Interval { low, high }| Interval { low: low.max(0.0), high: high.min(1.0) };
    let share = |values: &[f64]| {
        Some(MeanShare { mean: mean(values)?, interval: mean_interval(values).map(cut) })
    };
    let cases = u32::try_from(any.len()).unwrap_or(u32::MAX);
    Some(PassAtK { k, cases, any: share(&any)?, all: share(&all)? })
}

/// Returns `C(of, k) / C(total, k)`: the probability that k draws are all among the `of` items.
fn all_drawn_from(of: u32, total: u32, k: u32) -> f64 {
    // A product of ratios, because the binomials themselves overflow.
    (0..k).map(|drawn| real(of.saturating_sub(drawn) as usize) / f64::from(total - drawn)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Five trials, two passed. Of ten pairs three have none that passed, one has both.
        let found = pass_at_k(&[(2, 5)], 2).unwrap();
        assert!((found.any.mean - 0.7).abs() < 1e-12 && (found.all.mean - 0.1).abs() < 1e-12);
        assert_eq!(found.any.interval, None, "one case");
        let one = pass_at_k(&[(2, 5), (5, 5)], 1).unwrap();
        assert_eq!(one.any.mean, one.all.mean);
        assert!((one.any.mean - 0.7).abs() < 1e-12);
        assert!(one.any.interval.unwrap().high <= 1.0);
        let all = pass_at_k(&[(2, 5), (5, 5), (0, 5)], 5).unwrap();
        assert!((all.any.mean - 2.0 / 3.0).abs() < 1e-12);
        assert!((all.all.mean - 1.0 / 3.0).abs() < 1e-12);
    }

    /// The reference code of the paper: `1 - prod(1 - k / arange(n - c + 1, n + 1))`.
    #[test]
    fn as_the_papers_program_computes_it() {
        for (passed, trials, k) in [(13, 200, 1), (13, 200, 10), (13, 200, 100), (0, 9, 3)] {
            let product: f64 =
                (trials - passed + 1..=trials).map(|n| 1.0 - f64::from(k) / f64::from(n)).product();
            let expected = if trials - passed < k { 1.0 } else { 1.0 - product };
            let found = pass_at_k(&[(passed, trials)], k).unwrap().any.mean;
            assert!((found - expected).abs() < 1e-12, "{passed} of {trials}, {k}: {found}");
        }
    }

    #[test]
    fn cases_with_fewer_trials_do_not_count() {
        let found = pass_at_k(&[(1, 1), (1, 4), (4, 4)], 3).unwrap();
        assert_eq!(found.cases, 2);
        for (cases, k) in [(&[][..], 1), (&[(1, 2)], 3), (&[(1, 2)], 0), (&[(3, 2)], 1)] {
            assert_eq!(pass_at_k(cases, k), None);
        }
    }
}
