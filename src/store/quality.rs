//! The table `session_quality_grades` (seed 003): grades by a language model. Only read here.

use super::row::{Columns, Rows};
use super::{Store, StoreError};
use crate::grade::QualityGrade;

fn read(row: &Columns<'_>) -> Result<QualityGrade, String> {
    let score = |name: &str| match row.optional_float(name) {
        Some(score) if !(0.0..=1.0).contains(&score) => Err(format!("{name} is {score}")),
        score => Ok(score),
    };
    Ok(QualityGrade {
        session_id: row.text("session_id")?,
        model: row.text("grader_model")?,
        rubric_version: row.number("rubric_version")?,
        ts: row.time("ts")?,
        problem_solved: score("problem_solved")?,
        tests_added: score("tests_added")?,
        code_clean: score("code_clean")?,
        edge_cases: score("edge_cases")?,
        overall: score("overall")?,
        reasoning: row.optional_text("reasoning"),
        details: row
            .optional_text("details_json")
            .and_then(|details| serde_json::from_str(&details).ok()),
    })
}

impl Store {
    /// Every grade by a model, oldest first.
    pub async fn quality_grades(&self) -> Result<Rows<QualityGrade>, StoreError> {
        self.fetch(sqlx::query("SELECT * FROM session_quality_grades ORDER BY ts, id"), read).await
    }
}
