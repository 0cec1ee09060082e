//! Grades by models, dimension by dimension: the mean and spread over the models, and what each
//! of them quoted and argued. Decides nothing: `grade::quality` reads what is kept.

use super::words;
use selftest_grading::grade::QualityGrade;
use selftest_grading::grade::quality::{
    Dimension, FIRST_OWN_VERSION, Spread, combine, rubric_name,
};

pub(super) struct Quality {
    pub(super) overall: Bar,
    pub(super) dimensions: Vec<DimensionView>,
    pub(super) models: Vec<ModelView>,
    pub(super) version: u32,
    /// Where the prompt is the project's own.
    pub(super) own_rubric: Option<String>,
}

/// A mean over models.
pub(super) struct Bar {
    pub(super) score: String,
    pub(super) percent: String,
    pub(super) grade: &'static str,
    /// The highest less the lowest, where several models differ.
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
        let combined = combine(grades)?;
        let several = grades.len() > 1;
        let [(_, overall), dimensions @ ..] = combined.rows();
        let dimension = |(dimension, (_, mean)): (Dimension, (_, Option<Spread>))| DimensionView {
            name: dimension.title(),
            bar: Bar::of(mean),
            weight: grades.iter().find_map(|grade| weight(grade, dimension)),
            notes: grades
                .iter()
                .map(|grade| Note::of(grade, dimension, several))
                .filter(|note| several || !note.is_empty())
                .collect(),
        };
        let version = combined.rubric_version;
        Some(Self {
            overall: Bar::of(overall),
            dimensions: Dimension::ALL.into_iter().zip(dimensions).map(dimension).collect(),
            models: grades
                .iter()
                .map(|grade| ModelView {
                    name: words::line(&grade.model),
                    overall: words::score(grade.overall),
                    at: words::minute(grade.ts),
                    reasoning: grade.reasoning.as_deref().map(words::line),
                })
                .collect(),
            version,
            own_rubric: (version >= FIRST_OWN_VERSION).then(|| rubric_name(version)),
        })
    }
}

impl Bar {
    fn of(several: Option<Spread>) -> Self {
        let mean = several.map(|several| several.mean);
        let spread = several.map(|several| several.spread).filter(|spread| *spread > 0.0);
        Self {
            score: words::score(mean),
            percent: words::percent(mean),
            grade: words::grade(mean),
            spread: spread.map(|spread| format!("{spread:.2}")),
        }
    }
}

impl Note {
    fn of(grade: &QualityGrade, dimension: Dimension, several: bool) -> Self {
        let note = dimension.note_of(grade).unwrap_or_default();
        let text = |text: &str| (!text.trim().is_empty()).then(|| words::line(text));
        Self {
            model: several.then(|| words::line(&grade.model)),
            score: words::score(dimension.score_of(grade)),
            evidence: text(&note.evidence),
            reasoning: text(&note.reasoning),
            unsupported: note.unsupported,
        }
    }

    fn is_empty(&self) -> bool {
        self.evidence.is_none() && self.reasoning.is_none() && !self.unsupported
    }
}

fn weight(grade: &QualityGrade, dimension: Dimension) -> Option<String> {
    let weight = grade.details.as_ref()?.get("weights")?.get(dimension.name())?;
    Some(format!("{:.2}", weight.as_f64()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
            "dimensions": {
                "edge_cases_handled": { "evidence": "q", "unsupported": true },
                "code_clean": 7,
            },
            "weights": { "problem_solved": 0.4, "edge_cases_handled": "x" },
        });
        let grades = [grade("a", Some(0.6), notes), grade("b", Some(0.9), json!([1]))];
        let quality = Quality::of(&grades).unwrap();
        let solved = &quality.dimensions[0];
        assert_eq!((solved.bar.score.as_str(), solved.weight.as_deref()), ("0.75", Some("0.40")));
        assert_eq!(solved.bar.spread.as_deref(), Some("0.30"));
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
