//! What is run: which scenarios, each with its thresholds and limits. Pure.

use std::time::Duration;

use crate::scenario::Scenario;
use crate::score::{Score, Strictness, Threshold};

/// Which scenarios of the configuration to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// All of them.
    #[default]
    All,
    /// The first so many.
    First(usize),
    /// These, in this order.
    Named(Vec<String>),
}

impl Selection {
    /// Reads the value of `--scenarios`: a number, or ids parted by commas.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse::<usize>() {
            return Ok(Self::First(number));
        }
        let ids: Vec<String> =
            text.split(',').map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).collect();
        if ids.is_empty() {
            return Err("expected a number or scenario ids parted by commas".to_owned());
        }
        Ok(Self::Named(ids))
    }
}

/// Values of the run that a scenario may override.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// How strict.
    pub strictness: Strictness,
    /// Least score before strictness.
    pub min_score_to_pass: Score,
    /// Least safety score.
    pub safety_floor: Score,
    /// Whether minor format deviations cost nothing.
    pub allow_minor_format_deviation: bool,
    /// Most questions in an answer that asks back.
    pub max_questions_allowed: u32,
    /// Time of the system under test per case, all its steps together.
    pub timeout: Duration,
}

/// One case to run.
#[derive(Debug, Clone)]
pub struct PlannedCase {
    /// Position, from 0.
    pub index: usize,
    /// The scenario.
    pub scenario: Scenario,
    /// Least overall score that passes.
    pub threshold: Threshold,
    /// The run's values with the scenario's overrides.
    pub limits: Defaults,
}

/// Makes the plan. The error names the unknown ids and the known ones.
pub fn plan(
    scenarios: &[Scenario],
    selection: &Selection,
    defaults: Defaults,
) -> Result<Vec<PlannedCase>, String> {
    let chosen: Vec<&Scenario> = match selection {
        Selection::All => scenarios.iter().collect(),
        Selection::First(number) => scenarios.iter().take(*number).collect(),
        Selection::Named(ids) => {
            let find = |id: &String| {
                scenarios.iter().find(|scenario| scenario.id == *id).ok_or_else(|| id.clone())
            };
            let (found, unknown): (Vec<_>, Vec<_>) = ids.iter().map(find).partition(Result::is_ok);
            let unknown: Vec<String> = unknown.into_iter().filter_map(Result::err).collect();
            if !unknown.is_empty() {
                let known: Vec<&str> =
                    scenarios.iter().map(|scenario| scenario.id.as_str()).collect();
                return Err(format!(
                    "--scenarios names `{}`, which the configuration does not have; it has: {}",
                    unknown.join("`, `"),
                    known.join(", ")
                ));
            }
            found.into_iter().filter_map(Result::ok).collect()
        }
    };
    let planned = chosen.into_iter().enumerate().map(|(index, scenario)| {
        let limits = Defaults {
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
        let threshold = Threshold::effective(limits.min_score_to_pass, limits.strictness);
        PlannedCase { index, scenario: scenario.clone(), threshold, limits }
    });
    Ok(planned.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::TaskStatus;

    fn scenario(id: &str) -> Scenario {
        Scenario {
            id: id.into(),
            description: "d".into(),
            expected_status: TaskStatus::Complete,
            requires_reply: false,
            reply_flow: vec![],
            strictness: None,
            min_score_to_pass: None,
            allow_minor_format_deviation: None,
            max_questions_allowed: None,
            timeout_seconds: None,
        }
    }

    fn defaults() -> Defaults {
        Defaults {
            strictness: Strictness::new(0.7).unwrap(),
            min_score_to_pass: Score::new(0.6).unwrap(),
            safety_floor: Score::new(0.5).unwrap(),
            allow_minor_format_deviation: true,
            max_questions_allowed: 5,
            timeout: Duration::from_mins(1),
        }
    }

    fn ids(selection: &Selection) -> Result<Vec<String>, String> {
        let scenarios = [scenario("a"), scenario("b"), scenario("c")];
        let cases = plan(&scenarios, selection, defaults())?;
        Ok(cases.into_iter().map(|case| case.scenario.id).collect())
    }

    #[test]
    fn selections() {
        assert_eq!(ids(&Selection::All).unwrap(), ["a", "b", "c"]);
        assert_eq!(ids(&Selection::parse("2").unwrap()).unwrap(), ["a", "b"]);
        assert_eq!(ids(&Selection::parse("99").unwrap()).unwrap(), ["a", "b", "c"]);
        assert_eq!(ids(&Selection::parse("c, a").unwrap()).unwrap(), ["c", "a"]);
        assert!(Selection::parse(",").is_err());
        let error = ids(&Selection::parse("a,x,y").unwrap()).unwrap_err();
        assert!(error.contains("`x`, `y`") && error.contains("a, b, c"), "{error}");
    }

    #[test]
    fn overrides() {
        let mut special = scenario("a");
        special.strictness = Some(Strictness::new(0.0).unwrap());
        special.timeout_seconds = Some(0.5);
        let cases = plan(&[special, scenario("b")], &Selection::All, defaults()).unwrap();
        assert_eq!(cases[0].threshold.get(), 0.6);
        assert_eq!(cases[0].limits.timeout, Duration::from_millis(500));
        assert_eq!(cases[1].threshold.get(), 0.74);
    }
}
