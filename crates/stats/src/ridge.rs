//! Logistic regression on several features with a ridge penalty.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{mean, real};

/// Maximum steps of Newton's method, and maximum halvings of one step.
const MAX_STEPS: u32 = 100;
const MAX_HALVINGS: u32 = 30;

/// A logistic model: `P(label) = σ(intercept + Σ weight · x)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RidgeLogistic {
    /// Log-odds of the label if all features are 0.
    pub intercept: f64,
    /// One weight per feature, in the feature's own unit.
    pub weights: Vec<f64>,
}

impl RidgeLogistic {
    /// Fits the model by maximising the likelihood minus `penalty / 2 · Σ weight²`, with weights in
    /// standard deviations of their features. The intercept is not penalised. The result is finite
    /// even if the labels are perfectly separable. Returns `None` unless both labels occur, if rows
    /// differ in length, or if a feature is not finite.
    ///
    /// Hoerl and Kennard (1970); for logistic regression le Cessie and van Houwelingen, "Ridge
    /// estimators in logistic regression" (1992).
    pub fn fit(rows: &[Vec<f64>], labels: &[bool], penalty: f64) -> Option<Self> {
        // The Hessian is solved once more per feature for the certainty, which is cheap next to the
        // fit.
        Self::fit_with_certainty(rows, labels, penalty).map(|(fit, _)| fit)
    }

    /// Like [`RidgeLogistic::fit`], and also returns each weight's distance from 0 in standard
    /// errors (Wald's statistic, with the curvature of the penalised likelihood). It is 0 for a
    /// constant feature.
    pub fn fit_with_certainty(
        rows: &[Vec<f64>],
        labels: &[bool],
        penalty: f64,
    ) -> Option<(Self, Vec<f64>)> {
        let width = rows.first()?.len();
        let is_sound = rows.len() == labels.len()
            && labels.contains(&true)
            && labels.contains(&false)
            && rows.iter().all(|row| row.len() == width && row.iter().all(|x| x.is_finite()));
        if !is_sound {
            return None;
        }
        // Features are standardised, so that one penalty fits a share between 0 and 1 as well as a
        // length in characters.
        let columns = (0..width).map(|column| {
            let values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
            let centre = mean(&values)?;
            let squares = values.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
            Some((centre, (squares / real(rows.len())).sqrt()))
        });
        let columns: Vec<(f64, f64)> = columns.collect::<Option<_>>()?;
        // A constant feature carries no information and gets no weight.
        let standard = |x: f64, (centre, scale): (f64, f64)| {
            if scale > 1e-12 { (x - centre) / scale } else { 0.0 }
        };
        let design: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| {
                let standardised = row.iter().zip(&columns).map(|(x, of)| standard(*x, *of));
                std::iter::once(1.0).chain(standardised).collect()
            })
            .collect();
        // Without any penalty the Hessian of a constant feature would be singular.
        let penalty = penalty.max(1e-9);
        let found = newton(&design, labels, penalty)?;
        let (_, curvature) = slopes(&design, labels, penalty, &found);
        let mut certainty = Vec::with_capacity(width);
        for (place, weight) in found.iter().enumerate().skip(1) {
            // The variance of a weight is its place on the diagonal of the inverse Hessian; solving
            // for a unit vector gives that column without inverting the matrix.
            let unit = (0..=width).map(|other| f64::from(u8::from(other == place))).collect();
            let variance = solve(curvature.clone(), unit)?[place];
            certainty.push(weight / variance.sqrt());
        }
        // Convert the weights from standard deviations back to the features' own units.
        let (mut intercept, mut weights) = (found[0], Vec::with_capacity(width));
        for (weight, (centre, scale)) in found[1..].iter().zip(&columns) {
            let weight = if *scale > 1e-12 { weight / scale } else { 0.0 };
            intercept -= weight * centre;
            weights.push(weight);
        }
        let fitted = Self { intercept, weights };
        let is_finite = fitted.weights.iter().chain([&fitted.intercept]).all(|x| x.is_finite());
        is_finite.then_some((fitted, certainty))
    }

    /// Returns the log-odds of the label; features without a weight are ignored.
    pub fn log_odds(&self, row: &[f64]) -> f64 {
        let weighted = self.weights.iter().zip(row).map(|(weight, x)| weight * x);
        self.intercept + weighted.sum::<f64>()
    }

    /// Returns the probability of the label.
    pub fn probability(&self, row: &[f64]) -> f64 {
        sigmoid(self.log_odds(row))
    }
}

/// Returns the probability of each row's label from a fit on all other rows, which estimates the
/// accuracy on unseen answers. Returns `None` with fewer than two of either label, and in the cases
/// of [`RidgeLogistic::fit`].
///
/// Stone, "Cross-validatory choice and assessment of statistical predictions" (1974).
pub fn leave_one_out(rows: &[Vec<f64>], labels: &[bool], penalty: f64) -> Option<Vec<f64>> {
    let each: Vec<usize> = (0..rows.len()).collect();
    leave_one_group_out(rows, labels, &each, penalty)
}

/// Like [`leave_one_out`], from a fit on the rows of all other groups, which estimates the accuracy
/// on unseen tasks. Also returns `None` if all labels of one kind belong to the same group.
pub fn leave_one_group_out<G: Ord>(
    rows: &[Vec<f64>],
    labels: &[bool],
    groups: &[G],
    penalty: f64,
) -> Option<Vec<f64>> {
    if groups.len() != rows.len() || labels.len() != rows.len() {
        return None;
    }
    let mut fits = BTreeMap::new();
    for group in groups {
        if !fits.contains_key(group) {
            let kept = (0..rows.len()).filter(|index| groups[*index] != *group);
            let (others, of_others): (Vec<Vec<f64>>, Vec<bool>) =
                kept.map(|index| (rows[index].clone(), labels[index])).unzip();
            // One fit per group, not per row: rows of a group share it.
            fits.insert(group, RidgeLogistic::fit(&others, &of_others, penalty)?);
        }
    }
    let of_row = |(row, group): (&Vec<f64>, &G)| Some(fits.get(group)?.probability(row));
    rows.iter().zip(groups).map(of_row).collect()
}

/// Returns true if some weighted sum of the features separates the labels. The likelihood alone
/// then has no maximum, and only the penalty bounds the weights.
pub fn is_separable(rows: &[Vec<f64>], labels: &[bool]) -> bool {
    // A tiny penalty lets the weights grow until they separate the labels if anything can, and
    // still has a finite optimum.
    let Some(fit) = RidgeLogistic::fit(rows, labels, 1e-6) else { return false };
    let of = |label: bool| {
        let rows = rows.iter().zip(labels).filter(move |(_, own)| **own == label);
        rows.map(|(row, _)| fit.log_odds(row))
    };
    of(true).fold(f64::MAX, f64::min) > of(false).fold(f64::MIN, f64::max)
}

/// Minimises the penalised negative log-likelihood, which is convex, by Newton's method. Steps are
/// halved until they no longer increase the loss.
fn newton(design: &[Vec<f64>], labels: &[bool], penalty: f64) -> Option<Vec<f64>> {
    let mut at = vec![0.0; design.first()?.len()];
    let mut loss = loss_of(design, labels, penalty, &at);
    for _ in 0..MAX_STEPS {
        let (gradient, hessian) = slopes(design, labels, penalty, &at);
        let step = solve(hessian, gradient)?;
        let mut size = 1.0;
        let mut gained = None;
        // A full Newton step can overshoot where the sigmoid is flat. The loss is convex, so some
        // fraction of the step always lowers it.
        for _ in 0..MAX_HALVINGS {
            let next: Vec<f64> = at.iter().zip(&step).map(|(at, step)| at - size * step).collect();
            let reached = loss_of(design, labels, penalty, &next);
            if reached <= loss {
                gained = Some((next, reached));
                break;
            }
            size /= 2.0;
        }
        let Some((next, reached)) = gained else { break };
        // Near the optimum the gain falls with the square of the distance; below this it is
        // rounding.
        let is_done = loss - reached < 1e-12 * (1.0 + loss);
        (at, loss) = (next, reached);
        if is_done {
            break;
        }
    }
    Some(at)
}

/// Returns the gradient of the penalised negative log-likelihood, and the lower half of the
/// Hessian.
fn slopes(
    design: &[Vec<f64>],
    labels: &[bool],
    penalty: f64,
    at: &[f64],
) -> (Vec<f64>, Vec<Vec<f64>>) {
    let mut gradient: Vec<f64> = at.iter().map(|weight| penalty * weight).collect();
    // The intercept is not penalised; the tiny diagonal below keeps the Hessian positive definite.
    gradient[0] = 0.0;
    let mut hessian = vec![vec![0.0; at.len()]; at.len()];
    for (place, row) in hessian.iter_mut().enumerate() {
        row[place] = if place == 0 { 1e-9 } else { penalty };
    }
    for (row, label) in design.iter().zip(labels) {
        let p = sigmoid(dot(row, at));
        let (miss, weight) = (p - f64::from(u8::from(*label)), p * (1.0 - p));
        for (i, x) in row.iter().enumerate() {
            gradient[i] += miss * x;
            for (j, y) in row[..=i].iter().enumerate() {
                hessian[i][j] += weight * x * y;
            }
        }
    }
    (gradient, hessian)
}

fn loss_of(design: &[Vec<f64>], labels: &[bool], penalty: f64, at: &[f64]) -> f64 {
    let of_row = |(row, label): (&Vec<f64>, &bool)| {
        // A label of false has the likelihood of the negated log-odds.
        let odds = if *label { dot(row, at) } else { -dot(row, at) };
        // `ln(1 + exp(-odds))` without overflow.
        (-odds).max(0.0) + (-odds.abs()).exp().ln_1p()
    };
    let misfit: f64 = design.iter().zip(labels).map(of_row).sum();
    misfit + penalty / 2.0 * at[1..].iter().map(|weight| weight * weight).sum::<f64>()
}

/// Solves a linear system by Cholesky decomposition, reading only the lower half of the matrix.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| matrix[i][k] * matrix[j][k]).sum();
            let rest = matrix[i][j] - sum;
            if i == j {
                // Not positive definite: rounding ate the penalty, and any step would be noise.
                matrix[i][i] = (rest > 0.0).then(|| rest.sqrt())?;
            } else {
                matrix[i][j] = rest / matrix[j][j];
            }
        }
    }
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| matrix[i][k] * right[k]).sum();
        right[i] = (right[i] - sum) / matrix[i][i];
    }
    // Forward substitution above solved for the lower factor, this for its transpose.
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| matrix[k][i] * right[k]).sum();
        right[i] = (right[i] - sum) / matrix[i][i];
    }
    Some(right)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the probability, 0 to 1, for these log-odds.
pub fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Noise;

    fn simulated(count: usize) -> (Vec<Vec<f64>>, Vec<bool>) {
        let mut noise = Noise::new(4);
        (0..count)
            .map(|_| {
                let row = vec![noise.normal(), 3.0 * noise.normal(), 7.0];
                let p = sigmoid(0.5 + 2.0 * row[0] - 0.5 * row[1]);
                (row, noise.chance(p))
            })
            .unzip()
    }

    #[test]
    fn known_weights_are_found() {
        let (rows, labels) = simulated(20_000);
        let found = RidgeLogistic::fit(&rows, &labels, 1e-6).unwrap();
        for (found, expected) in found.weights.iter().zip([2.0, -0.5, 0.0]) {
            assert!((found - expected).abs() < 0.1, "{found} for {expected}");
        }
        assert!((found.intercept - 0.5).abs() < 0.1, "{found:?}");
    }

    /// Where a number says nothing its certainty is that of chance: beyond 2 in one of twenty sets.
    #[test]
    fn noise_gets_no_certainty_and_a_signal_much() {
        let (mut beyond, mut signal) = (0, f64::MAX);
        for seed in 0..200 {
            let mut noise = Noise::new(seed);
            let (rows, labels): (Vec<Vec<f64>>, Vec<bool>) = (0..160)
                .map(|_| {
                    let row = vec![noise.normal(), 5.0 * noise.normal()];
                    let p = sigmoid(1.5 * row[0]);
                    (row, noise.chance(p))
                })
                .unzip();
            let (_, z) = RidgeLogistic::fit_with_certainty(&rows, &labels, 1.0).unwrap();
            signal = signal.min(z[0]);
            beyond += u32::from(z[1].abs() > 1.96);
        }
        assert!((2..=20).contains(&beyond), "{beyond} of 200");
        assert!(signal > 3.0, "{signal}");
    }

    /// At the minimum the gradient is 0: the condition that defines the estimate, checked by
    /// numbers that the fit does not use.
    #[test]
    fn no_nearby_weights_are_likelier() {
        let (rows, labels) = simulated(60);
        let columns: Vec<Vec<f64>> =
            rows.iter().map(|row| vec![1.0, row[0], row[1] / 3.0]).collect();
        let at = newton(&columns, &labels, 1.0).unwrap();
        let least = loss_of(&columns, &labels, 1.0, &at);
        for place in 0..3 {
            for step in [-1e-3, 1e-3] {
                let mut near = at.clone();
                near[place] += step;
                assert!(loss_of(&columns, &labels, 1.0, &near) > least);
            }
        }
    }

    #[test]
    fn a_separable_set_stays_finite_and_is_told() {
        let rows: Vec<Vec<f64>> = (0..20).map(|x| vec![f64::from(x), 1.0]).collect();
        let labels: Vec<bool> = (0..20).map(|x| x >= 10).collect();
        let found = RidgeLogistic::fit(&rows, &labels, 1.0).unwrap();
        assert!(found.weights[0] > 0.0 && found.weights[0] < 10.0, "{found:?}");
        assert!(is_separable(&rows, &labels));
        let mut mixed = labels.clone();
        mixed.swap(3, 15);
        assert!(!is_separable(&rows, &mixed));
    }

    #[test]
    fn leaving_one_out_is_worse_than_the_fit_itself() {
        let (rows, labels) = simulated(40);
        let held_out = leave_one_out(&rows, &labels, 1.0).unwrap();
        let fit = RidgeLogistic::fit(&rows, &labels, 1.0).unwrap();
        let brier = |said: Vec<f64>| {
            let pairs: Vec<(f64, bool)> = said.into_iter().zip(labels.iter().copied()).collect();
            crate::brier_score(&pairs).unwrap()
        };
        let own = brier(rows.iter().map(|row| fit.probability(row)).collect());
        assert!(brier(held_out) > own);
    }

    #[test]
    fn rows_of_a_group_are_held_out_together() {
        let (rows, labels) = simulated(40);
        let groups: Vec<usize> = (0..40).map(|row| row / 4).collect();
        let held_out = leave_one_group_out(&rows, &labels, &groups, 1.0).unwrap();
        let (others, of_others): (Vec<_>, Vec<_>) =
            rows[4..].iter().cloned().zip(labels[4..].iter().copied()).unzip();
        let fit = RidgeLogistic::fit(&others, &of_others, 1.0).unwrap();
        for (row, found) in rows[..4].iter().zip(&held_out) {
            assert!((fit.probability(row) - found).abs() < 1e-12);
        }
        assert_eq!(leave_one_group_out(&rows, &labels, &groups[1..], 1.0), None);
        assert_eq!(leave_one_group_out(&rows, &labels, &[0; 40], 1.0), None);
    }

    #[test]
    fn nonsense_has_no_fit() {
        let rows = vec![vec![1.0], vec![2.0], vec![3.0]];
        assert_eq!(RidgeLogistic::fit(&rows, &[true; 3], 1.0), None);
        assert_eq!(RidgeLogistic::fit(&[], &[], 1.0), None);
        assert_eq!(RidgeLogistic::fit(&rows, &[true, false], 1.0), None);
        let ragged = vec![vec![1.0], vec![2.0, 3.0]];
        assert_eq!(RidgeLogistic::fit(&ragged, &[true, false], 1.0), None);
        let infinite = vec![vec![1.0], vec![f64::NAN]];
        assert_eq!(RidgeLogistic::fit(&infinite, &[true, false], 1.0), None);
        assert_eq!(leave_one_out(&rows, &[true, false, false], 1.0), None);
    }
}
