//! Computes the cache key of a case: one digest over all inputs of its result. If the key is
//! unchanged, the earlier result is reused. docs/gate-in-ci.md lists the parts. Reads the fixture files
//! of cases.

use serde_json::{Value, json};

use super::plan::PlannedCase;
use crate::event::RunHeader;
use crate::judge::TEMPLATES;
use crate::sut::chat::TEMPLATE as CHAT;
use crate::sut::identity::{IdentityError, digest_of_fixtures};
use crate::sut::skill::Skill;
use selftest_checks::check::distinct_commands;
use selftest_checks::suite::case_digest;
use selftest_text::digest;

/// Incremented when the meaning of a part of the key changes.
const VERSION: u32 = 1;

/// Inputs that all cases of a run share.
#[derive(Debug)]
pub struct CacheScope<'a> {
    /// The facts of the run.
    pub header: &'a RunHeader,
    /// Settings of the judge.
    pub judge: Value,
    /// Settings of the system under test.
    pub sut: Value,
    /// Digest of the declared identity of the system under test.
    pub sut_digest: &'a str,
    /// Digest of the built-in assistant's weights, if it is under test and the server reports one.
    pub sut_weights: Option<&'a str>,
}

impl CacheScope<'_> {
    /// Returns the key of a case, or `None` if its result depends on unknown inputs: a prompt that
    /// is not generated yet, or commands, which may read any file.
    pub fn key(&self, planned: &PlannedCase) -> Result<Option<String>, IdentityError> {
        let Some(case) = &planned.frozen else { return Ok(None) };
        // A command may depend on anything on this machine.
        if !planned.setup_commands.is_empty() || !distinct_commands(&case.grounds.checks).is_empty()
        {
            return Ok(None);
        }
        let limits = &planned.limits;
        let header = self.header;
        let key = json!({
            "version": VERSION,
            "selftest": header.selftest_version,
            "id": planned.scenario.id,
            "case": case_digest(&planned.scenario, case),
            "files": digest_of_fixtures(&planned.fixtures)?,
            "skill": planned.given_skill.as_deref().map(Skill::digest),
            "limits": {
                "threshold": planned.threshold,
                "safety_floor": limits.safety_floor,
                "strictness": limits.strictness,
                "allow_minor_format_deviation": limits.allow_minor_format_deviation,
                "max_questions_allowed": limits.max_questions_allowed,
                "timeout_seconds": limits.timeout.as_secs_f64(),
            },
            "trials": header.suite.as_ref().map_or(1, |suite| suite.repeats),
            // A case decided by checks alone does not depend on the judge.
            "judge": case.needs_judge().then(|| self.judge()),
            "sut": self.sut(),
        });
        Ok(Some(digest::json_sha256_hex(key)))
    }

    fn judge(&self) -> Value {
        let models = &self.header.models;
        let identity =
            models.judge_identity(&self.header.prompt_digests, &self.header.rubric.digest);
        json!({
            "settings": self.judge,
            "identity": identity,
            "prompts": self.prompts(&TEMPLATES),
            "fitness": models.judge_fitness,
            "panel": models.panel,
        })
    }

    fn sut(&self) -> Value {
        json!({
            "settings": self.sut,
            "digest": self.sut_digest,
            "described": self.header.sut,
            "model": self.header.models.sut,
            "weights": self.sut_weights,
            "prompts": self.prompts(&[CHAT]),
        })
    }

    fn prompts(&self, names: &[&str]) -> Vec<Option<&String>> {
        names.iter().map(|name| self.header.prompt_digests.get(*name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::calibration::JudgeCalibration;
    use crate::event::{RubricDocument, RunConfig, RunModels};
    use crate::judge::prompt::TEMPLATE as VERDICT;
    use crate::run::plan::{ScenarioDefaults, ScenarioSelection, plan_suite};
    use crate::sut::namespace::{RunId, TaskGroupId};
    use crate::sut::{Fixture, FixtureSource, Isolation};
    use selftest_checks::scenario::{GeneratedCase, Scenario, TaskStatus};
    use selftest_checks::suite::SuiteCase;
    use selftest_stats::score::{Score, Strictness};

    fn planned(hints: &str) -> PlannedCase {
        let defaults = ScenarioDefaults {
            strictness: Strictness::new(0.7).unwrap(),
            min_score_to_pass: Score::new(0.6).unwrap(),
            safety_floor: Score::new(0.5).unwrap(),
            allow_minor_format_deviation: true,
            max_questions_allowed: 5,
            timeout: Duration::from_mins(1),
        };
        let scenario = Scenario::new("a".to_owned(), TaskStatus::Complete);
        let mut case = GeneratedCase {
            prompt: "Say it.".to_owned(),
            hints: hints.to_owned(),
            ..GeneratedCase::default()
        };
        if hints.is_empty() {
            case.grounds.checks.push(serde_json::from_value(json!({ "lines": 1 })).unwrap());
        }
        let suite = [SuiteCase::new(scenario, case)];
        plan_suite(&suite, &ScenarioSelection::All, defaults, 1).unwrap().remove(0)
    }

    fn header() -> RunHeader {
        let at = "2026-02-06T12:34:56Z".parse().unwrap();
        let models = json!({ "judge": "ollama/judge", "judge_weights": "v", "chosen": [] });
        let models: RunModels = serde_json::from_value(models).unwrap();
        RunHeader {
            run_id: RunId::fresh(at),
            task_group_id: TaskGroupId::fresh(at),
            started_at: at,
            selftest_version: "1.0.0".to_owned(),
            config: serde_json::from_value::<RunConfig>(json!({
                "strictness": 0.7, "min_score_to_pass": 0.6, "effective_threshold": 0.74,
                "safety_floor": 0.5, "allow_minor_format_deviation": true,
                "max_questions_allowed": 5, "timeout_seconds": 60.0, "concurrency": 1,
            }))
            .unwrap(),
            seed: 1,
            models,
            sut: "command ./agent".to_owned(),
            isolation: Isolation::default(),
            rubric: RubricDocument { digest: "r".to_owned(), categories: Vec::new() },
            prompt_digests: [(VERDICT.to_owned(), "p".to_owned())].into(),
            calibration: JudgeCalibration::default(),
            prices: None,
            suite: None,
            shard: None,
            experiment: None,
            rejudged: None,
            notices: Vec::new(),
            remarks: Vec::new(),
            scenario_ids: Vec::new(),
        }
    }

    /// The key where the run and the case were changed so.
    fn key(
        hints: &str,
        change: impl Fn(&mut RunHeader, &mut CacheScope<'_>, &mut PlannedCase),
    ) -> Option<String> {
        let mut header = header();
        let mut planned = planned(hints);
        let unchanged = header.clone();
        let mut scope = CacheScope {
            header: &unchanged,
            judge: json!({ "method": "auto" }),
            sut: json!({ "command": { "run": ["./agent"] } }),
            sut_digest: "d",
            sut_weights: None,
        };
        change(&mut header, &mut scope, &mut planned);
        CacheScope { header: &header, ..scope }.key(&planned).unwrap()
    }

    type Edit = fn(&mut RunHeader, &mut CacheScope<'_>, &mut PlannedCase);

    #[test]
    fn every_part_makes_another_key() {
        let judged = key("names x", |_, _, _| ()).unwrap();
        assert_eq!(key("names x", |_, _, _| ()), Some(judged.clone()));
        let edits: [Edit; 13] = [
            |_, _, planned| planned.frozen.as_mut().unwrap().prompt.push('!'),
            |_, _, planned| planned.scenario.id.push('b'),
            |_, _, planned| planned.limits.timeout = Duration::from_secs(5),
            |_, _, planned| planned.limits.safety_floor = Score::new(0.6).unwrap(),
            |_, _, planned| {
                let source = FixtureSource::Text("x".to_owned());
                planned.fixtures = Arc::new([Fixture { path: "a.md".to_owned(), source }]);
            },
            |_, _, planned| {
                planned.given_skill = Some(Arc::new(Skill::of_text("s", "Do it.")));
            },
            |_, scope, _| scope.sut_digest = "e",
            |_, scope, _| scope.sut = json!({ "command": { "run": ["./other"] } }),
            |_, scope, _| scope.judge = json!({ "method": "verdict" }),
            |header, _, _| header.models.judge = "ollama/other".to_owned(),
            |header, _, _| header.models.judge_weights = Some("w".to_owned()),
            |header, _, _| header.rubric.digest.push('!'),
            |header, _, _| {
                header.prompt_digests.insert(VERDICT.to_owned(), "another prompt".to_owned());
            },
        ];
        for (number, edit) in edits.into_iter().enumerate() {
            assert_ne!(key("names x", edit), Some(judged.clone()), "{number}");
        }
        // Nothing else does, such as a seed.
        let same = key("names x", |header, _, _| header.seed += 1);
        assert_eq!(same, Some(judged));
    }

    #[test]
    fn a_case_that_asks_no_judge_does_not_depend_on_one() {
        let checked = key("", |_, _, _| ());
        assert!(checked.is_some());
        let edit: Edit = |header, _, _| header.models.judge = "ollama/other".to_owned();
        assert_eq!(key("", edit), checked);
    }

    #[test]
    fn a_case_that_runs_commands_or_has_no_prompt_has_no_key() {
        let edits: [Edit; 2] = [
            |_, _, planned| planned.frozen = None,
            |_, _, planned| {
                let check =
                    serde_json::from_value(json!({ "command": { "run": ["make", "test"] } }))
                        .unwrap();
                planned.frozen.as_mut().unwrap().grounds.checks.push(check);
            },
        ];
        for edit in edits {
            assert_eq!(key("names x", edit), None);
        }
    }
}
