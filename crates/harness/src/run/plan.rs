//! The plan of a run: the scenarios, with their thresholds, limits and seeds, and the share of them
//! that one of several machines runs. Pure.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::event::ShardRun;
use crate::outcome::CaseResult;
use crate::scenario::mix;
use crate::sut::Fixture;
use crate::sut::skill::Skill;
use selftest_checks::check::CommandCheck;
use selftest_checks::scenario::{CaseGrounds, GeneratedCase, Scenario};
use selftest_checks::suite::SuiteCase;
use selftest_stats::score::{Score, Strictness, Threshold};
use selftest_text::digest;

/// The value of `--scenarios` selects no cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// It is neither a number nor a list of ids.
    #[error("expected a number or comma-separated scenario ids")]
    Syntax,
    /// Some ids are unknown.
    #[error(
        "--scenarios names `{}`, which {whose} does not have; it has: {}",
        unknown.join("`, `"),
        known.join(", ")
    )]
    Unknown {
        /// The unknown ids.
        unknown: Vec<String>,
        /// The searched list, such as `the suite`.
        whose: &'static str,
        /// All ids of that list.
        known: Vec<String>,
    },
}

/// The scenarios of the configuration to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ScenarioSelection {
    /// All scenarios.
    #[default]
    All,
    /// The first N scenarios.
    First(usize),
    /// The scenarios with these ids, in this order.
    Named(Vec<String>),
}

impl ScenarioSelection {
    /// Parses the value of `--scenarios`: a number, or comma-separated ids.
    pub fn parse(text: &str) -> Result<Self, SelectionError> {
        if let Ok(number) = text.parse::<usize>() {
            return Ok(Self::First(number));
        }
        let ids: Vec<String> =
            text.split(',').map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).collect();
        if ids.is_empty() {
            return Err(SelectionError::Syntax);
        }
        Ok(Self::Named(ids))
    }
}

/// Values of the run that a scenario may override.
#[derive(Debug, Clone, Copy)]
pub struct ScenarioDefaults {
    /// Strictness of the threshold.
    pub strictness: Strictness,
    /// Minimum overall score, before strictness is added.
    pub min_score_to_pass: Score,
    /// Minimum safety score.
    pub safety_floor: Score,
    /// True if minor format deviations cost nothing.
    pub allow_minor_format_deviation: bool,
    /// Maximum number of questions in an answer that asks back.
    pub max_questions_allowed: u32,
    /// Time limit of the system under test per case, over all steps.
    pub timeout: Duration,
}

/// One case to run.
#[derive(Debug, Clone)]
pub struct PlannedCase {
    /// Position, from 0.
    pub index: usize,
    /// The scenario.
    pub scenario: Scenario,
    /// Prompt and hints from a suite. Absent if a generator writes them.
    pub frozen: Option<GeneratedCase>,
    /// Grounds written by the user; already included in a frozen case.
    pub grounds: CaseGrounds,
    /// Files copied into the folder of the system under test.
    pub fixtures: Arc<[Fixture]>,
    /// The recorded case, if its answers are only judged again.
    pub recorded: Option<Arc<CaseResult>>,
    /// SHA-256 of all inputs of the result. Absent if some are unknown.
    pub cache_key: Option<String>,
    /// The result of an earlier run with the same inputs. It is reused, and no model is called.
    pub reused_result: Option<Arc<CaseResult>>,
    /// Commands that set up that folder, in order.
    pub setup_commands: Arc<[CommandCheck]>,
    /// Name of the skill that the case belongs to.
    pub skill: Option<String>,
    /// The skill that the system under test receives for this case only.
    pub given_skill: Option<Arc<Skill>>,
    /// Number of the repeat, from 1. Absent in a run without repeats.
    pub repeat: Option<u32>,
    /// Minimum overall score that passes.
    pub threshold: Threshold,
    /// The run's values with the scenario's overrides.
    pub limits: ScenarioDefaults,
}

/// Plans scenarios for which a generator writes the cases. The error names the unknown ids and the
/// known ones.
pub fn plan(
    scenarios: &[Scenario],
    selection: &ScenarioSelection,
    defaults: ScenarioDefaults,
) -> Result<Vec<PlannedCase>, SelectionError> {
    let chosen = select(scenarios, |scenario| &scenario.id, selection, "the configuration")?;
    let planned = chosen.into_iter().enumerate();
    Ok(planned.map(|(index, scenario)| planned_case(index, scenario, defaults)).collect())
}

/// Plans the cases of a suite with repeats. The whole suite is repeated round by round, so that
/// changes over time affect all cases alike.
pub fn plan_suite(
    cases: &[SuiteCase],
    selection: &ScenarioSelection,
    defaults: ScenarioDefaults,
    repeats: u32,
) -> Result<Vec<PlannedCase>, SelectionError> {
    let chosen = select(cases, |case| &case.scenario.id, selection, "the suite")?;
    // Round by round, so that the repeats of a case are spread over the run and an early end leaves
    // whole rounds.
    let rounds = (1..=repeats).flat_map(|repeat| chosen.iter().map(move |case| (repeat, *case)));
    let planned = rounds.enumerate().map(|(index, (repeat, case))| {
        let mut planned = planned_case(index, &case.scenario, defaults);
        planned.scenario.files.extend(case.files.iter().cloned());
        PlannedCase {
            frozen: Some(case.generated()),
            repeat: (repeats > 1).then_some(repeat),
            ..planned
        }
    });
    Ok(planned.collect())
}

/// Plans to judge recorded answers again, with the thresholds of the original run. `defaults` are
/// those of that run.
pub fn plan_stored(cases: Vec<CaseResult>, defaults: ScenarioDefaults) -> Vec<PlannedCase> {
    let planned = cases.into_iter().enumerate().map(|(index, case)| {
        let planned = planned_case(index, &case.scenario, defaults);
        PlannedCase {
            frozen: case.case.clone(),
            repeat: case.repeat,
            // Of the recorded run: judging again must not move the bar as well.
            threshold: case.threshold,
            limits: ScenarioDefaults { safety_floor: case.safety_floor, ..planned.limits },
            recorded: Some(Arc::new(case)),
            ..planned
        }
    });
    planned.collect()
}

fn select<'a, T>(
    all: &'a [T],
    id: impl Fn(&T) -> &String,
    selection: &ScenarioSelection,
    whose: &'static str,
) -> Result<Vec<&'a T>, SelectionError> {
    let ids = match selection {
        ScenarioSelection::All => return Ok(all.iter().collect()),
        ScenarioSelection::First(number) => return Ok(all.iter().take(*number).collect()),
        ScenarioSelection::Named(ids) => ids,
    };
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for wanted in ids {
        match all.iter().find(|one| id(one) == wanted) {
            // In the order in which they are named.
            Some(one) => found.push(one),
            None => unknown.push(wanted.clone()),
        }
    }
    if !unknown.is_empty() {
        let known = all.iter().map(|one| id(one).clone()).collect();
        return Err(SelectionError::Unknown { unknown, whose, known });
    }
    Ok(found)
}

fn planned_case(index: usize, scenario: &Scenario, defaults: ScenarioDefaults) -> PlannedCase {
    let limits = ScenarioDefaults {
        strictness: scenario.strictness.unwrap_or(defaults.strictness),
        min_score_to_pass: scenario.min_score_to_pass.unwrap_or(defaults.min_score_to_pass),
        allow_minor_format_deviation: scenario
            .allow_minor_format_deviation
            .unwrap_or(defaults.allow_minor_format_deviation),
        max_questions_allowed: scenario
            .max_questions_allowed
            .unwrap_or(defaults.max_questions_allowed),
        timeout: scenario.timeout_seconds.map_or(defaults.timeout, Duration::from_secs_f64),
        safety_floor: defaults.safety_floor,
    };
    PlannedCase {
        index,
        scenario: scenario.clone(),
        frozen: None,
        grounds: scenario.grounds(),
        fixtures: Arc::new([]),
        recorded: None,
        cache_key: None,
        reused_result: None,
        setup_commands: Arc::new([]),
        skill: None,
        given_skill: None,
        repeat: None,
        threshold: Threshold::effective(limits.min_score_to_pass, limits.strictness),
        limits,
    }
}

/// A part of a case that samples.
#[derive(Debug, Clone, Copy)]
pub enum SeedPurpose {
    /// The system under test, if it accepts a seed.
    Sut,
    /// An attempt of the generator.
    Generate,
    /// A call to the judge, by step.
    Judge(u32),
}

/// Derives the seed of one call. It has at most 53 bits, so that JSON readers that use doubles keep
/// it exact.
pub fn derive_seed(run: u64, case: usize, purpose: SeedPurpose, number: u32) -> u64 {
    let purpose = match purpose {
        SeedPurpose::Sut => 0,
        SeedPurpose::Generate => 1,
        SeedPurpose::Judge(step) => 2 + u64::from(step),
    };
    // Mixed part by part, so that neighbouring cases and calls have unlike seeds.
    [case as u64, purpose, u64::from(number)]
        .into_iter()
        .fold(run, |state, part| mix(state ^ mix(part)))
        >> 11
}

/// Maximum number of shards: one for each case of the longest suite.
const MAX_SHARDS: usize = 10_000;

/// A text is not a shard such as `1/4`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// It does not consist of two numbers.
    #[error("expected K/N, such as 1/4 for the first of four shards")]
    Syntax,
    /// The number of shards is out of range.
    #[error("expected 1 to {MAX_SHARDS} shards, found {0}")]
    Count(usize),
    /// The shard's own number is out of range.
    #[error("there is no shard {number} of {of}: they count from 1 to {of}")]
    Number {
        /// Number of the shard.
        number: usize,
        /// Number of shards.
        of: usize,
    },
}

/// One of several shares that together contain all cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Number of this shard, from 1.
    number: usize,
    /// Number of shards.
    of: usize,
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.trim().parse().ok()?, of.trim().parse().ok()?)));
        let Some((number, of)) = numbers else {
            return Err(ShardError::Syntax);
        };
        if of == 0 || of > MAX_SHARDS {
            return Err(ShardError::Count(of));
        }
        if number == 0 || number > of {
            return Err(ShardError::Number { number, of });
        }
        Ok(Self { number, of })
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    /// Returns this shard of a whole plan, for the report.
    pub fn describe(self, plan: &[PlannedCase]) -> ShardRun {
        let scenarios = plan.iter().map(|planned| planned.scenario.id.clone()).collect();
        ShardRun { number: self.number, of: self.of, scenarios }
    }

    /// Keeps the cases of this shard with all their repeats. They keep their indices from the full
    /// plan, so that their seeds do not change. The assignment depends on the ids alone, not on
    /// their order, and shard sizes differ by at most one case.
    pub fn retain_own(self, plan: &mut Vec<PlannedCase>) {
        let own = self.own_ids(plan.iter().map(|planned| planned.scenario.id.as_str()));
        let own: BTreeSet<String> = own.into_iter().map(str::to_owned).collect();
        plan.retain(|planned| own.contains(&planned.scenario.id));
    }

    /// Returns those of these ids that belong to this shard.
    pub fn own_ids<'a>(self, ids: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
        let ids: BTreeSet<&str> = ids.collect();
        // Sorted by digest, because cases with adjacent names often take equally long.
        let mut mixed: Vec<(String, &str)> =
            ids.into_iter().map(|id| (digest::sha256_hex(id.as_bytes()), id)).collect();
        // Sorted, so that every machine computes the same shards.
        mixed.sort_unstable();
        mixed
            .into_iter()
            .skip(self.number.saturating_sub(1))
            .step_by(self.of)
            .map(|(_, id)| id)
            .collect()
    }
}

impl ShardRun {
    /// Returns the ids of the scenarios that this shard executes.
    pub fn own_ids(&self) -> BTreeSet<&str> {
        // A report that was edited may say 0, at which `step_by` panics.
        let shard = Shard { number: self.number, of: self.of.max(1) };
        shard.own_ids(self.scenarios.iter().map(String::as_str))
    }

    /// Returns the shard in the form of `--shard`.
    pub fn name(&self) -> String {
        Shard { number: self.number, of: self.of }.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use selftest_checks::scenario::TaskStatus;

    fn scenario(id: &str) -> Scenario {
        Scenario::new(id.to_owned(), TaskStatus::Complete)
    }

    fn defaults() -> ScenarioDefaults {
        ScenarioDefaults {
            strictness: Strictness::new(0.7).unwrap(),
            min_score_to_pass: Score::new(0.6).unwrap(),
            safety_floor: Score::new(0.5).unwrap(),
            allow_minor_format_deviation: true,
            max_questions_allowed: 5,
            timeout: Duration::from_mins(1),
        }
    }

    fn ids(selection: &ScenarioSelection) -> Result<Vec<String>, SelectionError> {
        let scenarios = [scenario("a"), scenario("b"), scenario("c")];
        let cases = plan(&scenarios, selection, defaults())?;
        Ok(cases.into_iter().map(|case| case.scenario.id).collect())
    }

    #[test]
    fn selections() {
        assert_eq!(ids(&ScenarioSelection::All).unwrap(), ["a", "b", "c"]);
        assert_eq!(ids(&ScenarioSelection::parse("2").unwrap()).unwrap(), ["a", "b"]);
        assert_eq!(ids(&ScenarioSelection::parse("99").unwrap()).unwrap(), ["a", "b", "c"]);
        assert_eq!(ids(&ScenarioSelection::parse("c, a").unwrap()).unwrap(), ["c", "a"]);
        assert!(ScenarioSelection::parse(",").is_err());
        let error = ids(&ScenarioSelection::parse("a,x,y").unwrap()).unwrap_err().to_string();
        assert!(error.contains("`x`, `y`") && error.contains("a, b, c"), "{error}");
    }

    #[test]
    fn a_suite_is_repeated_in_rounds() {
        let case = |id: &str| {
            let (prompt, hints) = (format!("do {id}"), "h".to_owned());
            SuiteCase::new(
                scenario(id),
                GeneratedCase { prompt, hints, ..GeneratedCase::default() },
            )
        };
        let cases = [case("a"), case("b"), case("c")];
        let planned = |selection: &str, repeats| {
            let selection = ScenarioSelection::parse(selection).unwrap();
            plan_suite(&cases, &selection, defaults(), repeats)
        };
        let once = planned("3", 1).unwrap();
        assert_eq!(once[2].frozen.as_ref().unwrap().prompt, "do c");
        assert!(once.iter().all(|case| case.repeat.is_none()));
        let twice = planned("c,a", 2).unwrap();
        let names: Vec<_> = twice
            .iter()
            .map(|case| (case.index, case.scenario.id.as_str(), case.repeat.unwrap()))
            .collect();
        assert_eq!(names, [(0, "c", 1), (1, "a", 1), (2, "c", 2), (3, "a", 2)]);
        let error = planned("x", 1).unwrap_err().to_string();
        assert!(error.contains("`x`, which the suite does not have"), "{error}");
    }

    #[test]
    fn overrides() {
        let mut special = scenario("a");
        special.strictness = Some(Strictness::new(0.0).unwrap());
        special.timeout_seconds = Some(0.5);
        let cases = plan(&[special, scenario("b")], &ScenarioSelection::All, defaults()).unwrap();
        assert_eq!(cases[0].threshold.get(), 0.6);
        assert_eq!(cases[0].limits.timeout, Duration::from_millis(500));
        assert_eq!(cases[1].threshold.get(), 0.74);
    }

    #[test]
    fn calls_differ_and_repeat() {
        let mut seeds = HashSet::new();
        for case in 0..50 {
            for number in 0..3 {
                for purpose in [
                    SeedPurpose::Sut,
                    SeedPurpose::Generate,
                    SeedPurpose::Judge(0),
                    SeedPurpose::Judge(1),
                ] {
                    assert!(seeds.insert(derive_seed(7, case, purpose, number)));
                }
            }
        }
        assert!(seeds.iter().all(|seed| *seed < 1 << 53));
        assert!(seeds.contains(&derive_seed(7, 3, SeedPurpose::Judge(1), 2)));
    }

    #[test]
    fn what_is_no_shard() {
        assert_eq!("2/4".parse(), Ok(Shard { number: 2, of: 4 }));
        for (text, why) in [
            ("5/4", "no shard 5 of 4"),
            ("0/4", "no shard 0 of 4"),
            ("1/0", "found 0"),
            ("1/10001", "found 10001"),
            ("x", "expected K/N"),
            ("1", "expected K/N"),
            ("-1/4", "expected K/N"),
            ("1/2/3", "expected K/N"),
        ] {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn shards_are_disjoint_complete_and_even(count in 0..60_usize, of in 1..9_usize) {
            let ids: Vec<String> = (0..count).map(|number| format!("case-{number}")).collect();
            let shards: Vec<BTreeSet<&str>> = (1..=of)
                .map(|number| Shard { number, of }.own_ids(ids.iter().map(String::as_str)))
                .collect();
            let backwards = Shard { number: 1, of }.own_ids(ids.iter().rev().map(String::as_str));
            prop_assert_eq!(&backwards, &shards[0]);
            let all: BTreeSet<&str> = shards.iter().flatten().copied().collect();
            prop_assert_eq!(all.len(), count);
            prop_assert_eq!(shards.iter().map(BTreeSet::len).sum::<usize>(), count);
            let sizes: Vec<usize> = shards.iter().map(BTreeSet::len).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}
