//! Results by skill, and the rates at which skills are loaded. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CaseResult, RunSummary};
use selftest_checks::check::CheckOutcome;
use selftest_stats::{Interval, wilson_clustered};
use selftest_text::wording::{percent, plural};

/// Counts over requests of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadingCounts {
    /// Requests at which the skill was loaded.
    pub loaded: u32,
    /// Requests at which it was not.
    pub not_loaded: u32,
    /// Unknown: the adapter reports no tool calls, or the case was interrupted.
    pub unknown: u32,
}

/// A share with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadingRate {
    /// Numerator of the share.
    pub count: u32,
    /// Denominator of the share.
    pub of: u32,
    /// From 0.0 to 1.0; null if the denominator is 0.
    pub share: Option<f64>,
    /// 95 % Wilson interval. With repeated requests it is not narrower than without repeats.
    pub interval: Option<Interval>,
}

/// Skill loading over all requests of a run; repeats count separately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadingRates {
    /// Requests that should make the agent load a skill.
    pub should_load: LoadingCounts,
    /// Requests that should not.
    pub should_not_load: LoadingCounts,
    /// Share of requests that should load a skill, among those at which one was loaded.
    pub precision: LoadingRate,
    /// Share of requests at which a skill was loaded, among those that should load one.
    pub recall: LoadingRate,
}

/// One request.
struct LoadingTrial {
    /// True if a skill should be loaded.
    wanted: bool,
    /// True if it was loaded; `None` if unknown.
    loaded: Option<bool>,
    /// Number of the repeat, from 1.
    repeat: u32,
}

impl LoadingTrial {
    fn of(case: &CaseResult) -> Option<Self> {
        let wanted = case.case.as_ref()?.should_load()?;
        let loaded = match case.checks.first().map(|check| check.finding.outcome) {
            Some(CheckOutcome::Held) => Some(wanted),
            // The only check of such a case is that of loading, so that its outcome says what the
            // agent did.
            Some(CheckOutcome::Failed) => Some(!wanted),
            Some(CheckOutcome::Undecided) | None => None,
        };
        Some(Self { wanted, loaded, repeat: case.repeat.unwrap_or(1) })
    }
}

impl LoadingCounts {
    fn add(&mut self, loaded: Option<bool>) {
        *match loaded {
            Some(true) => &mut self.loaded,
            Some(false) => &mut self.not_loaded,
            None => &mut self.unknown,
        } += 1;
    }

    fn total(self) -> u32 {
        self.loaded + self.not_loaded + self.unknown
    }

    fn words(self) -> String {
        let Self { loaded, not_loaded, unknown } = self;
        format!("{loaded} loaded, {not_loaded} not loaded, {unknown} not known")
    }
}

impl LoadingRate {
    fn new(count: u32, of: u32, repeats: u32) -> Self {
        let share = (of > 0).then(|| f64::from(count) / f64::from(of));
        Self { count, of, share, interval: wilson_clustered(count, of, repeats) }
    }

    fn words(&self, name: &str) -> String {
        let Self { count, of, .. } = self;
        match (self.share, self.interval) {
            (Some(share), Some(Interval { low, high })) => format!(
                "{name} {} % ({count} of {of}, 95 % interval {:.0} % to {:.0} %)",
                percent(share),
                low * 100.0,
                high * 100.0
            ),
            _ => format!("{name} unknown (of no request)"),
        }
    }
}

impl LoadingRates {
    /// Computes the rates from the cases that test only loading. Returns `None` if there is no such
    /// case.
    pub fn of<'a>(cases: impl Iterator<Item = &'a CaseResult>) -> Option<Self> {
        Self::of_trials(cases.filter_map(LoadingTrial::of))
    }

    fn of_trials(trials: impl Iterator<Item = LoadingTrial>) -> Option<Self> {
        let (mut should, mut should_not) = (LoadingCounts::default(), LoadingCounts::default());
        let mut repeats = 1;
        for LoadingTrial { wanted, loaded, repeat } in trials {
            if wanted { &mut should } else { &mut should_not }.add(loaded);
            // Trials are numbered from 1, so that the highest number is their count.
            repeats = repeats.max(repeat);
        }
        let right = should.loaded;
        (should.total() + should_not.total() > 0).then(|| Self {
            // Unknown requests are in neither denominator: nothing is assumed of them.
            precision: LoadingRate::new(right, right + should_not.loaded, repeats),
            recall: LoadingRate::new(right, right + should.not_loaded, repeats),
            should_load: should,
            should_not_load: should_not,
        })
    }

    /// Returns the rates and their counts as sentences for reports.
    pub fn sentences(&self) -> Vec<String> {
        let Self { should_load, should_not_load, precision, recall } = self;
        let requests = |counts: &LoadingCounts| plural(u64::from(counts.total()), "request");
        vec![
            format!(
                "Loading of skills: {}, {}",
                precision.words("precision"),
                recall.words("recall")
            ),
            format!(
                "{} that should load: {}; {} that should not: {}",
                requests(should_load),
                should_load.words(),
                requests(should_not_load),
                should_not_load.words()
            ),
        ]
    }
}

/// The cases of one skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillResult {
    /// Name of the skill.
    pub skill: String,
    /// Counts over its finished cases; repeats count separately.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// Reliability of loading the skill where it should be loaded. Absent if no case tests that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<LoadingRates>,
}

impl SkillResult {
    /// Groups the cases by skill, in the order of their first cases. Empty if no case belongs to a
    /// skill.
    pub fn all<'a>(cases: impl Iterator<Item = &'a CaseResult>) -> Vec<Self> {
        let mut found: Vec<(&str, Vec<&CaseResult>)> = Vec::new();
        for case in cases {
            let Some(skill) = case.skill.as_deref() else { continue };
            match found.iter_mut().find(|(name, _)| *name == skill) {
                // Linear: a run has few skills.
                Some((_, cases)) => cases.push(case),
                None => found.push((skill, vec![case])),
            }
        }
        found.into_iter().map(|(skill, cases)| Self::of(skill, &cases)).collect()
    }

    fn of(skill: &str, cases: &[&CaseResult]) -> Self {
        let mut summary = RunSummary::default();
        for case in cases {
            summary.add(case);
        }
        Self { skill: skill.to_owned(), summary, loading: LoadingRates::of(cases.iter().copied()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many trials of one sort.
    fn trials(count: usize, wanted: bool, loaded: Option<bool>) -> Vec<LoadingTrial> {
        (0..count).map(|_| LoadingTrial { wanted, loaded, repeat: 1 }).collect()
    }

    fn rates(trials: Vec<Vec<LoadingTrial>>) -> Option<LoadingRates> {
        LoadingRates::of_trials(trials.into_iter().flatten())
    }

    #[test]
    fn precision_and_recall_count_what_is_known() {
        let rates = rates(vec![
            trials(8, true, Some(true)),
            trials(2, true, Some(false)),
            trials(1, true, None),
            trials(1, false, Some(true)),
            trials(9, false, Some(false)),
            trials(1, false, None),
        ])
        .unwrap();
        assert_eq!((rates.precision.count, rates.precision.of), (8, 9));
        assert_eq!((rates.recall.count, rates.recall.of), (8, 10));
        assert_eq!(rates.recall.interval, selftest_stats::wilson(8, 10));
        assert_eq!(
            rates.sentences(),
            [
                "Loading of skills: precision 89 % (8 of 9, 95 % interval 57 % to 98 %), recall \
                 80 % (8 of 10, 95 % interval 49 % to 94 %)",
                "11 requests that should load: 8 loaded, 2 not loaded, 1 not known; 11 requests \
                 that should not: 1 loaded, 9 not loaded, 1 not known"
            ]
        );
    }

    #[test]
    fn where_nothing_is_known_there_is_no_rate() {
        let rates = rates(vec![trials(3, true, None)]).unwrap();
        assert_eq!((rates.precision.share, rates.recall.share), (None, None));
        assert!(rates.sentences()[0].contains("precision unknown"), "{rates:?}");
        assert_eq!(LoadingRates::of([].iter()), None);
    }

    #[test]
    fn repeats_make_no_interval_narrower() {
        let round = |repeat| {
            [Some(true), Some(false)]
                .map(|loaded| LoadingTrial { wanted: true, loaded, repeat })
                .into_iter()
                .collect::<Vec<_>>()
        };
        let interval = |trials| rates(trials).unwrap().recall.interval;
        assert_eq!(interval(vec![round(1)]), interval(vec![round(1), round(2)]));
    }
}
