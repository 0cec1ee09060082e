//! The plan of a run: the scenarios, with their thresholds and limits. Pure.

use std::sync::Arc;
use std::time::Duration;

use crate::outcome::CaseResult;
use crate::sut::Fixture;
use crate::sut::skill::Skill;
use selftest_checks::check::CommandCheck;
use selftest_checks::scenario::{CaseGrounds, GeneratedCase, Scenario};
use selftest_checks::suite::SuiteCase;
use selftest_stats::score::{Score, Strictness, Threshold};

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

#[cfg(test)]
mod tests {
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
}
