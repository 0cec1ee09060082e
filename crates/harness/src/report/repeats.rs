//! Repeated cases, each with all its trials together. Pure.

use super::reading::Reading;
use selftest_stats::score::Score;

/// One case over all its trials so far.
pub(super) struct Repeated<'a> {
    /// Id of the scenario.
    pub(super) id: &'a str,
    passed: u32,
    /// Trials with a verdict.
    decided: u32,
    trials: u32,
    /// Over the trials with a score; none where no trial has one.
    pub(super) mean: Option<Score>,
    pub(super) lowest: Option<Score>,
    pub(super) highest: Option<Score>,
}

impl Repeated<'_> {
    /// `4 of 5`, and how many trials have no verdict.
    pub(super) fn passed_words(&self) -> String {
        let Self { passed, decided, trials, .. } = self;
        match trials - decided {
            0 => format!("{passed} of {decided}"),
            unscored => format!("{passed} of {decided}, {unscored} without a verdict"),
        }
    }
}

/// The cases in the order of their first trials; empty for a run without repeats.
pub(super) fn repeated<'a>(cases: &[Reading<'a>]) -> Vec<Repeated<'a>> {
    let mut found: Vec<(Repeated<'a>, f64, u32)> = Vec::new();
    for reading in cases.iter().filter(|reading| reading.case.repeat.is_some()) {
        let id = reading.case.scenario.id.as_str();
        let at = found.iter().position(|(case, ..)| case.id == id).unwrap_or_else(|| {
            let (mean, lowest, highest) = (None, None, None);
            let (passed, decided, trials) = (0, 0, 0);
            found.push((Repeated { id, passed, decided, trials, mean, lowest, highest }, 0.0, 0));
            found.len() - 1
        });
        let (case, sum, scored) = &mut found[at];
        case.trials += 1;
        case.decided += u32::from(reading.status.pass().is_some());
        case.passed += u32::from(reading.status.pass() == Some(true));
        if let Some(score) = reading.score() {
            *sum += score.get();
            *scored += 1;
            case.mean = Score::new((*sum / f64::from(*scored)).clamp(0.0, 1.0)).ok();
            let (lowest, highest) = (case.lowest.unwrap_or(score), case.highest.unwrap_or(score));
            case.lowest = Some(if score < lowest { score } else { lowest });
            case.highest = Some(if score > highest { score } else { highest });
        }
    }
    found.into_iter().map(|(case, ..)| case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Judgement, Verdict};
    use crate::report::fixture;
    use selftest_models::structured::UnscoredReason;

    #[test]
    fn trials_come_together_by_case() {
        let unscored = || Judgement {
            verdict: Verdict::Unscored {
                reason: UnscoredReason::Refused,
                detail: "no".to_owned(),
                partial: Vec::new(),
            },
            ..fixture::scored([1.0; 4], "")
        };
        let trials = [
            ("a", 1, fixture::scored([1.0; 4], "")),
            ("b", 1, unscored()),
            ("a", 2, fixture::scored([0.5; 4], "")),
            ("b", 2, unscored()),
            ("a", 3, unscored()),
        ];
        let mut cases = Vec::new();
        for (index, (id, repeat, judgement)) in trials.into_iter().enumerate() {
            let case = fixture::case(index, id, judgement);
            cases.push(crate::outcome::CaseResult { repeat: Some(repeat), ..case });
        }
        let readings: Vec<Reading<'_>> = cases.iter().map(Reading::new).collect();
        assert_eq!(readings[2].name(), "a #2");
        let found = repeated(&readings);
        let words: Vec<String> = found.iter().map(Repeated::passed_words).collect();
        assert_eq!(words, ["1 of 2, 1 without a verdict", "0 of 0, 2 without a verdict"]);
        assert_eq!(found[0].mean, Some(fixture::score(0.75)));
        assert_eq!(found[0].lowest, Some(fixture::score(0.5)));
        assert_eq!((found[1].mean, found[1].highest), (None, None));
    }
}
