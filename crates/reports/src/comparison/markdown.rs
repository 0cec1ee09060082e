//! A comparison as Markdown, for a pull request comment. Pure; untrusted texts in it are escaped.

use super::RunComparison;
use super::text::measures;
use crate::wording;
use selftest_harness::experiment::{PairOutcome, format_signed};
use selftest_text::escape::inline;

/// Maximum length of a name, and of a sentence, in bytes.
const MAX_NAME: usize = 120;
const MAX_WORDS: usize = 1_000;
/// Maximum number of cases in the table, largest differences first.
const MAX_ROWS: usize = 50;

/// Renders the conclusion, then the runs, the differences with their intervals and p-values, and
/// the cases that differ.
pub fn markdown(found: &RunComparison) -> String {
    let analysis = &found.analysis;
    let mut text = format!("**{}**\n\n", inline(&found.sentence, MAX_WORDS));
    for (name, side) in [("A", &found.a), ("B", &found.b)] {
        text += &format!(
            "- {name}: {}, {}, {}\n",
            inline(&side.run_id, MAX_NAME),
            inline(&side.system_under_test, MAX_NAME),
            inline(&wording::judged(&side.judge), MAX_NAME)
        );
    }
    text.extend(measures(analysis).map(|line| format!("- {line}\n")));
    text.extend(analysis.within_cases().map(|line| format!("- {line}\n")));
    if let Some(attribution) = &found.attribution {
        text += &format!("- by cause: {}\n", inline(&attribution.sentence(), MAX_WORDS));
    }
    text.extend(
        found.remarks.iter().map(|remark| format!("- note: {}\n", inline(remark, MAX_WORDS))),
    );
    let mut differing: Vec<_> = analysis
        .cases
        .iter()
        .filter(|case| matches!(case.decided, Some(PairOutcome::Win | PairOutcome::Loss)))
        .filter_map(|case| Some((case, case.score.both()?)))
        .collect();
    differing.sort_by(|(_, a), (_, b)| {
        let size = |score: &selftest_harness::experiment::Arms<f64>| {
            (score.treatment - score.control).abs()
        };
        size(b).total_cmp(&size(a))
    });
    if differing.is_empty() {
        return text;
    }
    text += "\n| Case | A | B | Difference |\n|------|---|---|------------|\n";
    for (case, score) in differing.iter().take(MAX_ROWS) {
        text += &format!(
            "| {} | {:.2} | {:.2} | {} |\n",
            inline(&case.case, MAX_NAME),
            score.control,
            score.treatment,
            format_signed(score.treatment - score.control, 2)
        );
    }
    if differing.len() > MAX_ROWS {
        text += &format!("\n{} more cases differ.\n", differing.len() - MAX_ROWS);
    }
    text
}
