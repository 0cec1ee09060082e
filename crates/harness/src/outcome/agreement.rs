//! Agreement of two judges on which answers pass. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use selftest_stats::{Interval, cohen_kappa, wilson};
use selftest_text::wording::percent;

/// The agreement of two judges on the cases that both decided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeAgreement {
    /// Cases that both judges decided by scores.
    pub cases: u32,
    /// Cases with the same verdict from both.
    pub same: u32,
    /// 95 % Wilson interval of the share of equal verdicts.
    pub interval: Option<Interval>,
    /// Cohen's kappa: 1 is perfect agreement, 0 is chance. Absent if both judges gave the same
    /// verdict to every case, which chance would produce as well.
    pub kappa: Option<f64>,
    /// Its 95 % interval. Absent if the cases have no spread to estimate one from.
    pub kappa_interval: Option<Interval>,
}

impl JudgeAgreement {
    /// Computes the agreement from pairs of passes. Returns `None` without pairs.
    pub fn of(pairs: &[(bool, bool)]) -> Option<Self> {
        let cases = u32::try_from(pairs.len()).ok().filter(|cases| *cases > 0)?;
        let same = pairs.iter().filter(|(a, b)| a == b).count();
        let same = u32::try_from(same).unwrap_or(cases);
        let categories: Vec<(u8, u8)> =
            pairs.iter().map(|(a, b)| (u8::from(*a), u8::from(*b))).collect();
        let kappa = cohen_kappa(&categories);
        Some(Self {
            cases,
            same,
            interval: wilson(same, cases),
            kappa: kappa.map(|found| found.kappa),
            kappa_interval: kappa
                // Without spread, the interval would be a single point.
                .filter(|found| found.standard_error > 1e-9)
                .map(|found| found.interval),
        })
    }

    /// Returns the share of cases with equal verdicts.
    pub fn share(&self) -> f64 {
        f64::from(self.same) / f64::from(self.cases.max(1))
    }

    /// Formats the agreement for reports: `on 10 of 12 cases (83 %), kappa 0.62 [0.20, 1.00]`.
    pub fn describe(&self) -> String {
        let Self { cases, same, .. } = self;
        let noun = if *cases == 1 { "case" } else { "cases" };
        let kappa = match (self.kappa, self.kappa_interval) {
            (Some(kappa), Some(Interval { low, high })) => {
                format!("kappa {kappa:.2} [{low:.2}, {high:.2}]")
            }
            (Some(kappa), None) => format!("kappa {kappa:.2}, without an interval"),
            (None, _) => "no kappa, since all verdicts are the same".to_owned(),
        };
        format!("on {same} of {cases} {noun} ({} %), {kappa}", percent(self.share()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(cells: &[(bool, bool, usize)]) -> Vec<(bool, bool)> {
        cells.iter().flat_map(|&(a, b, count)| vec![(a, b); count]).collect()
    }

    #[test]
    fn agreement_in_words() {
        // Artstein and Poesio (2008): kappa 0.348.
        let (yes, no) = (true, false);
        let found = JudgeAgreement::of(&pairs(&[
            (no, no, 20),
            (no, yes, 20),
            (yes, no, 10),
            (yes, yes, 50),
        ]));
        let found = found.unwrap();
        assert_eq!((found.cases, found.same), (100, 70));
        assert_eq!(found.describe(), "on 70 of 100 cases (70 %), kappa 0.35 [0.16, 0.53]");
        let wilson = found.interval.unwrap();
        assert!(wilson.low > 0.6 && wilson.high < 0.79, "{wilson:?}");
    }

    #[test]
    fn what_cannot_be_estimated_is_absent() {
        assert_eq!(JudgeAgreement::of(&[]), None);
        let same = JudgeAgreement::of(&[(true, true)]).unwrap();
        assert_eq!((same.kappa, same.kappa_interval), (None, None));
        assert_eq!(
            same.describe(),
            "on 1 of 1 case (100 %), no kappa, since all verdicts are the same"
        );
        // Perfect on few cases: that its error is nil is no knowledge.
        let perfect = JudgeAgreement::of(&[(true, true), (false, false)]).unwrap();
        assert_eq!(perfect.kappa, Some(1.0));
        assert_eq!(perfect.describe(), "on 2 of 2 cases (100 %), kappa 1.00, without an interval");
    }
}
