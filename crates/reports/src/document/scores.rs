//! The `scores` object of a case: the rubric's categories by name, with the overall score last.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use selftest_harness::judge::CategoryScore;
use selftest_stats::score::Score;

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
