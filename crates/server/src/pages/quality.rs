//! Grades by models per dimension: mean and spread over the models, and the quotes and reasoning of
//! each. Only presents stored grades.

use selftest_grading::grade::QualityGrade;
use selftest_grading::grade::quality::{
    CombinedQuality, DimensionNote, FIRST_OWN_VERSION, QualityDimension, ScoreSpread,
    combine_grades, rubric_name,
};

/// Grades of one session by models.
pub(super) struct QualityView {
    pub(super) combined: CombinedQuality,
    pub(super) grades: Vec<QualityGrade>,
}

/// One dimension over all models.
pub(super) struct DimensionView<'g> {
    pub(super) name: &'static str,
    pub(super) mean: Option<f64>,
    pub(super) spread: Option<f64>,
    pub(super) weight: Option<f64>,
    /// Notes of each model. With a single model, empty notes are omitted.
    pub(super) notes: Vec<(&'g QualityGrade, Option<f64>, DimensionNote)>,
}

impl QualityView {
    /// Combines grades. Returns `None` for an empty list.
    pub(super) fn of(grades: Vec<QualityGrade>) -> Option<Self> {
        Some(Self { combined: combine_grades(&grades)?, grades })
    }

    pub(super) fn has_several(&self) -> bool {
        self.grades.len() > 1
    }

    /// Returns the rubric's name if the project has its own prompt.
    pub(super) fn own_rubric(&self) -> Option<String> {
        let version = self.combined.rubric_version;
        (version >= FIRST_OWN_VERSION).then(|| rubric_name(version))
    }

    pub(super) fn dimensions(&self) -> impl Iterator<Item = DimensionView<'_>> {
        let [_, means @ ..] = self.combined.rows();
        QualityDimension::ALL.into_iter().zip(means).map(|(dimension, (_, several))| {
            DimensionView {
                name: dimension.title(),
                mean: several.map(mean),
                spread: several.and_then(spread),
                weight: self.grades.iter().find_map(|grade| weight(grade, dimension)),
                notes: self
                    .grades
                    .iter()
                    .map(|grade| {
                        let note = dimension.note_of(grade).unwrap_or_default();
                        (grade, dimension.score_of(grade), note)
                    })
                    .filter(|(_, _, note)| self.has_several() || !is_empty(note))
                    .collect(),
            }
        })
    }
}

pub(super) fn mean(several: ScoreSpread) -> f64 {
    several.mean
}

/// Returns the highest score minus the lowest, if models differ.
pub(super) fn spread(several: ScoreSpread) -> Option<f64> {
    Some(several.spread).filter(|spread| *spread > 0.0)
}

fn is_empty(note: &DimensionNote) -> bool {
    note.evidence.trim().is_empty() && note.reasoning.trim().is_empty() && !note.unsupported
}

fn weight(grade: &QualityGrade, dimension: QualityDimension) -> Option<f64> {
    grade.details.as_ref()?.get("weights")?.get(dimension.name())?.as_f64()
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
        let quality = QualityView::of(grades.to_vec()).unwrap();
        let dimensions: Vec<_> = quality.dimensions().collect();
        let solved = &dimensions[0];
        assert_eq!((solved.mean, solved.weight), (Some(0.75), Some(0.4)));
        assert!((solved.spread.unwrap() - 0.3).abs() < 1e-9);
        let edges = &dimensions[3];
        let (_, _, note) = &edges.notes[0];
        assert!(note.unsupported && note.evidence == "q");
        assert_eq!((edges.spread, edges.weight), (None, None));
        assert_eq!(dimensions[1].mean, None);
        assert!(QualityView::of(Vec::new()).is_none());
    }

    #[test]
    fn notes_that_say_nothing_are_not_shown_for_a_single_model() {
        let quality = QualityView::of(vec![grade("a", Some(1.0), Value::Null)]).unwrap();
        assert!(quality.dimensions().all(|dimension| dimension.notes.is_empty()));
    }
}
