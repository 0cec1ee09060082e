//! Grades by models, dimension by dimension: the mean and spread over the models, and what each
//! of them quoted and argued. Reads the notes tolerantly: they may come from other programs.

use serde_json::Value;

use super::words;
use crate::grade::QualityGrade;

/// Key, name, and the score of a grade.
type Dimension = (&'static str, &'static str, fn(&QualityGrade) -> Option<f64>);

const DIMENSIONS: [Dimension; 4] = [
    ("problem_solved", "Problem solved", |grade| grade.problem_solved),
    ("tests_added", "Tests added", |grade| grade.tests_added),
    ("code_clean", "Code clean", |grade| grade.code_clean),
    ("edge_cases", "Edge cases handled", |grade| grade.edge_cases),
];

pub(super) struct Quality {
    pub(super) overall: Bar,
    pub(super) dimensions: Vec<DimensionView>,
    pub(super) models: Vec<ModelView>,
    pub(super) rubric: u32,
}

/// A mean over models.
pub(super) struct Bar {
    pub(super) score: String,
    pub(super) percent: String,
    pub(super) grade: &'static str,
    /// Lowest and highest, where several models differ.
    pub(super) spread: Option<String>,
}

pub(super) struct DimensionView {
    pub(super) name: &'static str,
    pub(super) bar: Bar,
    pub(super) weight: Option<String>,
    pub(super) notes: Vec<Note>,
}

/// What one model says of one dimension.
pub(super) struct Note {
    /// Named only where there are several.
    pub(super) model: Option<String>,
    pub(super) score: String,
    pub(super) evidence: Option<String>,
    pub(super) reasoning: Option<String>,
    pub(super) unsupported: bool,
}

pub(super) struct ModelView {
    pub(super) name: String,
    pub(super) overall: String,
    pub(super) at: String,
    pub(super) reasoning: Option<String>,
}

impl Quality {
    /// `None` without a grade.
    pub(super) fn of(grades: &[QualityGrade]) -> Option<Self> {
        let rubric = grades.first()?.rubric_version;
        let several = grades.len() > 1;
        let dimension = |(key, name, score): Dimension| DimensionView {
            name,
            bar: Bar::of(grades.iter().map(score)),
            weight: grades.iter().find_map(|grade| weight(grade, key)),
            notes: grades
                .iter()
                .map(|grade| Note::of(grade, key, score(grade), several))
                .filter(|note| several || !note.is_empty())
                .collect(),
        };
        Some(Self {
            overall: Bar::of(grades.iter().map(|grade| grade.overall)),
            dimensions: DIMENSIONS.into_iter().map(dimension).collect(),
            models: grades
                .iter()
                .map(|grade| ModelView {
                    name: words::line(&grade.model),
                    overall: words::score(grade.overall),
                    at: words::minute(grade.ts),
                    reasoning: grade.reasoning.as_deref().map(words::line),
                })
                .collect(),
            rubric,
        })
    }
}

impl Bar {
    #[expect(clippy::cast_precision_loss, reason = "a session has few graders")]
    fn of(scores: impl Iterator<Item = Option<f64>>) -> Self {
        let scores: Vec<f64> = scores.flatten().collect();
        let mean = (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64);
        let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self {
            score: words::score(mean),
            percent: words::percent(mean),
            grade: words::grade(mean),
            spread: (highest > lowest).then(|| format!("{lowest:.2} to {highest:.2}")),
        }
    }
}

impl Note {
    fn of(grade: &QualityGrade, key: &str, score: Option<f64>, several: bool) -> Self {
        let note = grade.details.as_ref().and_then(|details| note(details, key));
        let text = |name: &str| {
            let text = note?.get(name)?.as_str()?.trim();
            (!text.is_empty()).then(|| words::line(text))
        };
        Self {
            model: several.then(|| words::line(&grade.model)),
            score: words::score(score),
            evidence: text("evidence"),
            reasoning: text("reasoning"),
            unsupported: note
                .and_then(|note| note.get("unsupported")?.as_bool())
                .unwrap_or_default(),
        }
    }

    fn is_empty(&self) -> bool {
        self.evidence.is_none() && self.reasoning.is_none() && !self.unsupported
    }
}

fn note<'a>(details: &'a Value, key: &str) -> Option<&'a Value> {
    let notes = details.get("dimensions")?.as_array()?;
    notes.iter().find(|note| {
        // `edge_cases` is `edge_cases_handled` in the rubric of seed 003.
        note.get("dimension").and_then(Value::as_str).is_some_and(|name| name.starts_with(key))
    })
}

fn weight(grade: &QualityGrade, key: &str) -> Option<String> {
    let weights = grade.details.as_ref()?.get("weights")?.as_object()?;
    let (_, weight) = weights.iter().find(|(name, _)| name.starts_with(key))?;
    Some(format!("{:.2}", weight.as_f64()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grade(model: &str, solved: Option<f64>, details: Value) -> QualityGrade {
        QualityGrade {
            session_id: "s".to_owned(),
            model: model.to_owned(),
            rubric_version: 1,
            ts: "2026-11-20T10:00:00Z".parse().unwrap(),
            problem_solved: solved,
            tests_added: None,
            code_clean: None,
            edge_cases: Some(0.5),
            overall: solved,
            reasoning: None,
            details: Some(details),
        }
    }

    #[test]
    fn models_are_averaged_and_their_spread_is_said() {
        let notes = json!({
            "dimensions": [
                { "dimension": "edge_cases_handled", "evidence": "q", "unsupported": true },
                { "dimension": 7 }, null,
            ],
            "weights": { "problem_solved": 0.4, "edge_cases": "x" },
        });
        let grades = [grade("a", Some(0.6), notes), grade("b", Some(0.9), json!([1]))];
        let quality = Quality::of(&grades).unwrap();
        let solved = &quality.dimensions[0];
        assert_eq!((solved.bar.score.as_str(), solved.weight.as_deref()), ("0.75", Some("0.40")));
        assert_eq!(solved.bar.spread.as_deref(), Some("0.60 to 0.90"));
        let edges = &quality.dimensions[3];
        assert!(edges.notes[0].unsupported && edges.notes[0].evidence.as_deref() == Some("q"));
        assert_eq!((edges.bar.spread.as_deref(), edges.weight.as_deref()), (None, None));
        assert_eq!(quality.dimensions[1].bar.score, "–");
        assert!(Quality::of(&[]).is_none());
    }

    #[test]
    fn notes_that_say_nothing_are_not_shown_for_a_single_model() {
        let quality = Quality::of(&[grade("a", Some(1.0), Value::Null)]).unwrap();
        assert!(quality.dimensions.iter().all(|dimension| dimension.notes.is_empty()));
    }
}
