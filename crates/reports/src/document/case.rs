//! One case in the JSON report, with its `scores`: the rubric's categories by name, the overall score
//! last.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use selftest_checks::scenario::{CaseGrounds, GeneratedCase, Scenario, TaskStatus};
use selftest_harness::event::CategoryWeight;
use selftest_harness::judge::{CategoryScore, Verdict};
use selftest_harness::outcome::agreement::{PanelVote, is_disputed, votes};
use selftest_harness::outcome::case::{FormerVerdict, Interruption};
use selftest_harness::outcome::usage::{ModelPrices, UsageByRole};
use selftest_harness::outcome::{
    CaseResult, CaseStatus, CaseStep, CheckResult, GenerationRecord, Rerun, case_name,
};
use selftest_harness::sut::SutEvidence;
use selftest_harness::sut::namespace::{RunId, SessionId};
use selftest_models::structured::UnscoredReason;
use selftest_stats::score::{Score, Threshold};

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseDocument {
    /// ID of the scenario.
    pub id: String,
    /// Number of the repeat, from 1; absent in a run without repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Name of the skill that the case belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Prompt for the system under test; null if none was generated.
    pub prompt: Option<String>,
    /// Its first answer; null if it gave none.
    pub output: Option<String>,
    /// Expected status of the task after the first answer.
    pub expected_status: TaskStatus,
    /// Actual status of the task after the first answer.
    pub actual_status: Option<TaskStatus>,
    /// Scores of the step with the lowest overall score, which decides the case. All null if `pass`
    /// is null or no step was scored.
    pub scores: CaseScores,
    /// True if the case passed; null without a verdict.
    pub pass: Option<bool>,
    /// Wall time of the whole case.
    pub duration_ms: u64,
    /// Final status of the case.
    pub status: CaseStatus,
    /// Reason for the status in one line; null if passed.
    pub reason: Option<String>,
    /// Kind of the missing verdict; null unless the status is `unscored`.
    pub unscored_reason: Option<UnscoredReason>,
    /// Hints for the judge.
    pub hints: Option<String>,
    /// Grounds on which the answer was judged.
    #[serde(default, skip_serializing_if = "CaseGrounds::is_empty")]
    pub grounds: CaseGrounds,
    /// Minimum overall score to pass.
    pub threshold: Threshold,
    /// Minimum safety score to pass.
    pub safety_floor: Score,
    /// Session of the system under test.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// The scenario as configured.
    pub scenario: Scenario,
    /// The generator's attempts, with rejected prompts.
    pub generation: GenerationRecord,
    /// All exchanges: input, reply, judgement and its calls.
    pub steps: Vec<CaseStep>,
    /// Checks with their findings; empty without checks, or if the case did not get that far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    /// The error that ended the case.
    pub interruption: Option<Interruption>,
    /// Retries of a case that was worse than its baseline; absent without retries. All other fields
    /// except `status` and `reason` describe the first trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reruns: Vec<Rerun>,
    /// Traces of the system under test: its stderr, files and processes.
    pub evidence: SutEvidence,
    /// Remarks.
    pub notes: Vec<String>,
    /// Vote of each judge on a panel; absent for a single judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<PanelVote>,
    /// True if the judges of the panel disagree on whether the case passes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disputed: bool,
    /// Calls, tokens, time and cost by role; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageByRole>,
    /// Verdict of an earlier run on the same answers; absent unless they were judged again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<FormerVerdict>,
    /// SHA-256 of everything the result depends on, used by `--changed` to find it again; absent if
    /// part of that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
    /// The earlier run that the result was reused from, because nothing it depends on has changed;
    /// absent if the case was run in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub unchanged_since: Option<RunId>,
}

impl CaseDocument {
    /// Returns the name of the case: its ID, and the number of the repeat if any.
    pub fn name(&self) -> String {
        case_name(&self.id, self.repeat)
    }

    /// Returns the case as generated; `None` if generation failed.
    pub fn generated(&self) -> Option<GeneratedCase> {
        let (prompt, hints) = (self.prompt.clone()?, self.hints.clone()?);
        Some(GeneratedCase { prompt, hints, grounds: self.grounds.clone() })
    }

    /// Creates the document of a case. `categories` names the scores of an unscored case; costs are
    /// included if there are prices.
    pub fn new(
        case: &CaseResult,
        categories: &[CategoryWeight],
        prices: Option<&ModelPrices>,
    ) -> Self {
        let usage = UsageByRole::of(case, prices.unwrap_or(&ModelPrices::default()));
        let (status, reason) = case.status();
        let first = case.steps.first();
        let reply = first.and_then(|step| step.reply.as_ref());
        let generated = case.case.as_ref();
        let votes = votes(case);
        Self {
            id: case.scenario.id.clone(),
            repeat: case.repeat,
            skill: case.skill.clone(),
            prompt: generated.map(|generated| generated.prompt.clone()),
            output: reply.map(|reply| reply.output.clone()),
            expected_status: case.scenario.expected_status,
            actual_status: reply.map(|reply| reply.status),
            scores: scores(case, status, categories),
            pass: status.pass(),
            duration_ms: case.duration_ms,
            status,
            reason,
            unscored_reason: case.unscored_reason(),
            hints: generated.map(|generated| generated.hints.clone()),
            grounds: generated.map(|generated| generated.grounds.clone()).unwrap_or_default(),
            threshold: case.threshold,
            safety_floor: case.safety_floor,
            session_id: case.session_id.clone(),
            scenario: case.scenario.clone(),
            generation: case.generation.clone(),
            steps: case.steps.clone(),
            checks: case.checks.clone(),
            interruption: case.interruption.clone(),
            reruns: case.reruns.clone(),
            evidence: case.evidence.clone(),
            notes: case.notes.clone(),
            usage: (!usage.is_empty()).then_some(usage),
            disputed: is_disputed(&votes),
            votes,
            former: case.former,
            cache_key: case.cache_key.clone(),
            unchanged_since: case.unchanged_since.clone(),
        }
    }

    /// Converts the document back to a result; `index` is its position.
    pub fn result(&self, index: usize) -> CaseResult {
        CaseResult {
            index,
            scenario: self.scenario.clone(),
            repeat: self.repeat,
            skill: self.skill.clone(),
            session_id: self.session_id.clone(),
            generation: self.generation.clone(),
            case: self.generated(),
            steps: self.steps.clone(),
            checks: self.checks.clone(),
            interruption: self.interruption.clone(),
            reruns: self.reruns.clone(),
            evidence: self.evidence.clone(),
            notes: self.notes.clone(),
            former: self.former,
            cache_key: self.cache_key.clone(),
            unchanged_since: self.unchanged_since.clone(),
            threshold: self.threshold,
            safety_floor: self.safety_floor,
            duration_ms: self.duration_ms,
        }
    }
}

fn scores(case: &CaseResult, status: CaseStatus, categories: &[CategoryWeight]) -> CaseScores {
    // Scores beside no verdict would look like one.
    let step = case.weakest_step().filter(|_| status.pass().is_some());
    match step.and_then(|step| step.judgement.as_ref()).map(|judgement| &judgement.verdict) {
        Some(Verdict::Scored(card)) => {
            CaseScores { categories: card.categories.clone(), overall: Some(card.overall) }
        }
        // An unscored case still lists the categories, each with a null score.
        _ => CaseScores {
            categories: categories
                .iter()
                .map(|known| CategoryScore { category: known.id.clone(), score: None })
                .collect(),
            overall: None,
        },
    }
}

/// Name of the overall score, which no category may have.
const OVERALL: &str = "overall_score";

/// The judged scores of a case, each `null` without a verdict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseScores {
    /// Scores in the rubric's order.
    pub categories: Vec<CategoryScore>,
    /// Weighted sum, computed by the harness.
    pub overall: Option<Score>,
}

impl Serialize for CaseScores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.categories.len() + 1))?;
        for entry in &self.categories {
            map.serialize_entry(&entry.category, &entry.score)?;
        }
        map.serialize_entry(OVERALL, &self.overall)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for CaseScores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScoresVisitor;

        impl<'de> Visitor<'de> for ScoresVisitor {
            type Value = CaseScores;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("scores by category")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CaseScores, A::Error> {
                let mut scores = CaseScores::default();
                while let Some((category, score)) = map.next_entry::<String, Option<Score>>()? {
                    if category == OVERALL {
                        scores.overall = score;
                    } else {
                        scores.categories.push(CategoryScore { category, score });
                    }
                }
                Ok(scores)
            }
        }

        deserializer.deserialize_map(ScoresVisitor)
    }
}

impl JsonSchema for CaseScores {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Scores".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let score = || json_schema!({ "type": ["number", "null"], "minimum": 0.0, "maximum": 1.0 });
        json_schema!({
            "type": "object",
            "properties": { (OVERALL): score() },
            "required": [OVERALL],
            "additionalProperties": score(),
        })
    }
}
