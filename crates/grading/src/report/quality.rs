//! Renders grades by models for a terminal. Texts inside the grades are untrusted.

use std::fmt::Write as _;

use crate::grade::QualityGrade;
use crate::grade::quality::{CombinedQuality, QualityDimension, rubric_name};
use selftest_text::escape::terminal;
use selftest_text::wording::plural;

const ID_WIDTH: usize = 36;
const MODEL_WIDTH: usize = 28;
const MAX_WORDS: usize = 160;

/// Renders a table with one line per grade and a heading.
pub fn table(grades: &[QualityGrade]) -> String {
    let mut text = heading();
    for grade in grades {
        text += &line(grade);
    }
    text
}

/// Returns the heading for [`line()`].
pub fn heading() -> String {
    format!(
        "{:>7} {:>6} {:>5} {:>5} {:>5}  {:<MODEL_WIDTH$} {:<ID_WIDTH$} {}\n",
        "OVERALL", "SOLVED", "TESTS", "CODE", "EDGES", "MODEL", "SESSION", "SUMMARY"
    )
}

/// Renders a grade as one line. `-` means that the model could not tell.
pub fn line(grade: &QualityGrade) -> String {
    format!(
        "{:>7} {:>6} {:>5} {:>5} {:>5}  {:<MODEL_WIDTH$} {:<ID_WIDTH$} {}\n",
        score(grade.overall),
        score(grade.problem_solved),
        score(grade.tests_added),
        score(grade.code_clean),
        score(grade.edge_cases),
        terminal(&grade.model, MODEL_WIDTH),
        // Cut without an ellipsis, since a prefix still finds the session.
        terminal(&grade.session_id, 2 * ID_WIDTH).chars().take(ID_WIDTH).collect::<String>(),
        terminal(grade.reasoning.as_deref().unwrap_or_default(), MAX_WORDS),
    )
}

/// Renders the grades of one session with their quotes and reasons, and the average of several
/// grades.
pub fn card(grades: &[QualityGrade], combined: Option<&CombinedQuality>) -> String {
    let mut text = String::new();
    for grade in grades {
        let (model, rubric) =
            (terminal(&grade.model, MAX_WORDS), rubric_name(grade.rubric_version));
        let _ = writeln!(text, "\nby {model}, {rubric}, {}", grade.ts);
        let _ = writeln!(text, "  {:<20} {}", "overall", score(grade.overall));
        for dimension in QualityDimension::ALL {
            let given = dimension.score_of(grade);
            let _ = writeln!(text, "  {:<20} {}", dimension.name(), score(given));
            let Some(note) = dimension.note_of(grade) else { continue };
            if note.unsupported {
                let _ =
                    writeln!(text, "    the quote is not in the session: the score was dropped");
            }
            for (what, words) in [("quote", &note.evidence), ("because", &note.reasoning)] {
                if !words.is_empty() {
                    let _ = writeln!(text, "    {what:<8} {}", terminal(words, MAX_WORDS));
                }
            }
        }
        if let Some(reasoning) = &grade.reasoning {
            let _ = writeln!(text, "  summary: {}", terminal(reasoning, 2 * MAX_WORDS));
        }
    }
    if let Some(combined) = combined.filter(|_| grades.len() > 1) {
        let models = plural(grades.len() as u64, "model");
        let _ = writeln!(text, "\naverage of {models} (spread: highest less lowest)");
        for (name, mean) in combined.rows() {
            let spread =
                mean.map_or_else(String::new, |mean| format!("  spread {:.2}", mean.spread));
            let mean = score(mean.map(|mean| mean.mean));
            let _ = writeln!(text, "  {name:<20} {mean}{spread}");
        }
    }
    text
}

fn score(score: Option<f64>) -> String {
    score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"))
}
