//! A comparison as Markdown, for a pull request comment. Pure; untrusted texts in it are escaped.

use super::RunComparison;
use super::text::{CaseCells, measures};
use crate::wording;
use selftest_harness::experiment::{Arms, PairOutcome};
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
    if let Some(sentence) = found.new_failures_sentence() {
        text += &format!("- {}\n", inline(&sentence, MAX_WORDS));
    }
    text.extend(
        found.remarks.iter().map(|remark| format!("- note: {}\n", inline(remark, MAX_WORDS))),
    );
    let mut differing: Vec<_> = analysis
        .cases
        .iter()
        .filter(|case| !matches!(case.decided, None | Some(PairOutcome::Tie)))
        .collect();
    let size = |means: Arms<Option<f64>>| {
        means.both().map_or(0.0, |pair| (pair.treatment - pair.control).abs())
    };
    differing.sort_by(|a, b| {
        let by_passes = size(b.pass_rate).total_cmp(&size(a.pass_rate));
        size(b.score).total_cmp(&size(a.score)).then(by_passes)
    });
    if differing.is_empty() {
        return text;
    }
    text += "\n| Case | A | B | Difference |\n|------|---|---|------------|\n";
    for case in differing.iter().take(MAX_ROWS) {
        let CaseCells { arms, difference } = CaseCells::of(case);
        text += &format!(
            "| {} | {} | {} | {difference} |\n",
            inline(&case.case, MAX_NAME),
            arms.control,
            arms.treatment
        );
    }
    if differing.len() > MAX_ROWS {
        text += &format!("\n{} more cases differ.\n", differing.len() - MAX_ROWS);
    }
    text
}
