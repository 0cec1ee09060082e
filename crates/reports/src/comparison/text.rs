//! A comparison for a terminal, and as Markdown for a pull request comment. Pure; its texts are
//! untrusted and escaped.

use super::{ComparedRun, RunComparison};
use crate::terminal::{StatusColour, TerminalStyle};
use crate::wording;
use selftest_harness::experiment::{
    Arms, Conclusion, ExperimentAnalysis, MeasureComparison, PairOutcome, PairedCase,
    PairedMeasure, format_signed,
};
use selftest_stats::Interval;
use selftest_text::escape::{inline, terminal};

/// Maximum length of a case's name, and of other untrusted texts, in bytes.
const MAX_NAME: usize = 64;
const MAX_WORDS: usize = 300;

/// Names of the arms, at most a few characters each.
pub type ArmLabels<'a> = Arms<&'a str>;

/// Formats the runs, one line per case, the differences with their intervals, and the conclusion.
pub fn text(found: &RunComparison, style: TerminalStyle) -> String {
    let mut text = String::new();
    for (name, side) in [("A", &found.a), ("B", &found.b)] {
        text += &side_line(name, side);
    }
    text.push('\n');
    text += &analysis_text(&found.analysis, super::NAMES, style);
    if let Some(attribution) = &found.attribution {
        text += &format!("by cause: {}\n", terminal(&attribution.sentence(), MAX_WORDS));
    }
    if let Some(sentence) = found.new_failures_sentence() {
        text += &format!("{}\n", style.paint(StatusColour::Bad, &terminal(&sentence, 2_000)));
    }
    for remark in &found.remarks {
        text += &format!("{}: {remark}\n", style.paint(StatusColour::Unsure, "note"));
    }
    text + verdict(&found.analysis, &found.sentence, style).as_str()
}

/// Formats one line per case, the differences with their intervals, and the unpaired cases.
pub fn analysis_text(
    analysis: &ExperimentAnalysis,
    labels: ArmLabels<'_>,
    style: TerminalStyle,
) -> String {
    let mut text = table(analysis, labels, style);
    text.push('\n');
    text.extend(measures(analysis).map(|line| format!("{line}\n")));
    text.extend(analysis.within_cases().map(|line| format!("{line}\n")));
    // Where checks alone decide there is no mean score that trials could be missing in.
    let broken = match analysis.score.measure.cases {
        0 => Arms::default(),
        _ => analysis.broken,
    };
    for (counts, what) in [
        (&analysis.unscored, "without a verdict, not in the averages"),
        (
            &broken,
            "decided without a score (by a check, a status or a timeout), not in the mean score",
        ),
    ] {
        if counts.control + counts.treatment > 0 {
            text += &format!(
                "trials {what}: {} of {} in {}, {} of {} in {}\n",
                counts.control,
                analysis.trials.control,
                labels.control,
                counts.treatment,
                analysis.trials.treatment,
                labels.treatment
            );
        }
    }
    for (names, label) in [
        (&analysis.unpaired.control, labels.control),
        (&analysis.unpaired.treatment, labels.treatment),
    ] {
        if !names.is_empty() {
            text += &format!("only in {label}: {}\n", terminal(&names.join(", "), 2_000));
        }
    }
    text
}

/// Formats one line per measure that cases have in both arms.
pub(super) fn measures(analysis: &ExperimentAnalysis) -> impl Iterator<Item = String> {
    let score = |value: f64| format!("{value:.2}");
    let percent = |share: f64| format!("{} %", selftest_text::wording::percent(share));
    let seconds = |value: f64| format!("{:.1} s", value / 1000.0);
    let count = |value: f64| format!("{value:.0}");
    let decided = |comparison: &MeasureComparison| {
        let MeasureComparison { wins, ties, losses, .. } = comparison;
        format!("; {wins} better, {ties} the same, {losses} worse")
    };
    let (scores, passes) = (&analysis.score, &analysis.pass_rate);
    let lines = [
        (line("score", &scores.measure, score, (1.0, 2, "")), decided(scores)),
        (line("passed", &passes.measure, percent, (100.0, 0, " points")), decided(passes)),
        (line("time", &analysis.duration_ms, seconds, (0.001, 1, " s")), String::new()),
        (line("tokens", &analysis.tokens, count, (1.0, 0, "")), String::new()),
    ];
    lines.into_iter().filter_map(|(line, rest)| Some(format!("{}{rest}", line?)))
}

/// Formats the conclusion as the last line.
pub(super) fn verdict(
    analysis: &ExperimentAnalysis,
    sentence: &str,
    style: TerminalStyle,
) -> String {
    let colour = match analysis.conclusion {
        Conclusion::Helps => StatusColour::Good,
        Conclusion::Harms => StatusColour::Bad,
        Conclusion::NotEnoughEvidence | Conclusion::Blocked => StatusColour::Unsure,
    };
    format!("\n{}\n", style.paint(colour, sentence))
}

fn side_line(name: &str, side: &ComparedRun) -> String {
    let suite = side.suite.as_ref().map(|suite| format!(", suite {}", wording::suite(suite)));
    let sut = terminal(&side.system_under_test, MAX_WORDS);
    let judge = terminal(&side.judge, MAX_WORDS);
    let suite = terminal(&suite.unwrap_or_default(), MAX_WORDS);
    format!("{name}  {}  {sut}, {}{suite}\n", side.run_id, wording::judged(&judge))
}

/// The values of a case: its scores, or where these do not differ but its passes do, the share of
/// passed trials.
pub(super) struct CaseCells {
    pub(super) arms: Arms<String>,
    pub(super) difference: String,
}

impl CaseCells {
    pub(super) fn of(case: &PairedCase) -> Self {
        let signed = |decimals: usize| move |difference| format_signed(difference, decimals);
        let scores = case.score.both().map(|pair| signed(2)(pair.treatment - pair.control));
        let is_shown = scores.as_ref().is_some_and(|shown| shown != "0.00");
        let passes = case.pass_rate.both().map(|pair| 100.0 * (pair.treatment - pair.control));
        // Below half a point it would be shown as 0 points.
        let passes = passes.filter(|points| !is_shown && (points.abs() >= 0.5 || scores.is_none()));
        let unknown = || "-".to_owned();
        match passes {
            Some(points) => Self {
                arms: case.pass_rate.map(|share| {
                    share.map_or_else(unknown, |share| {
                        format!("{} %", selftest_text::wording::percent(share))
                    })
                }),
                difference: format!("{} pts", signed(0)(points)),
            },
            None => Self {
                arms: case
                    .score
                    .map(|score| score.map_or_else(unknown, |score| format!("{score:.2}"))),
                difference: scores.unwrap_or_else(unknown),
            },
        }
    }
}

/// Returns the remark on a case whose score and passes contradict each other.
fn mixed_word(case: &PairedCase) -> &'static str {
    let is_higher = case.score.both().is_some_and(|score| score.treatment > score.control);
    if is_higher { "higher score, fewer passes" } else { "lower score, more passes" }
}

fn table(analysis: &ExperimentAnalysis, labels: ArmLabels<'_>, style: TerminalStyle) -> String {
    let names: Vec<String> =
        analysis.cases.iter().map(|case| terminal(&case.case, MAX_NAME)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let columns = labels.map(|label| label.chars().count().max(4));
    let heading = format!(
        "{:<width$}  {:>left$}  {:>right$}  {:>10}",
        "Case",
        labels.control,
        labels.treatment,
        "Difference",
        left = columns.control,
        right = columns.treatment
    );
    let mut text = style.paint(StatusColour::Faint, &heading) + "\n";
    for (case, name) in analysis.cases.iter().zip(&names) {
        let CaseCells { arms, difference } = CaseCells::of(case);
        let (word, colour) = match case.decided {
            Some(PairOutcome::Win) => ("better", StatusColour::Good),
            Some(PairOutcome::Tie) => ("same", StatusColour::Faint),
            Some(PairOutcome::Loss) if case.is_new_failure() => ("fails now", StatusColour::Bad),
            Some(PairOutcome::Loss) => ("worse", StatusColour::Bad),
            Some(PairOutcome::Mixed) => (mixed_word(case), StatusColour::Unsure),
            None => ("not compared", StatusColour::Unsure),
        };
        text += &format!(
            "{name:<width$}  {:>left$}  {:>right$}  {:>10}  {}\n",
            arms.control,
            arms.treatment,
            difference,
            style.paint(colour, word),
            left = columns.control,
            right = columns.treatment
        );
    }
    text
}

/// Formats `score: 0.70 to 0.80, +0.10 (95 % interval +0.02 to +0.18) over 5 cases`. Returns `None`
/// if no case has the measure in both arms. Differences are displayed with a factor, a number of
/// decimals and a unit.
fn line(
    name: &str,
    measure: &PairedMeasure,
    plain: impl Fn(f64) -> String,
    (factor, decimals, unit): (f64, usize, &str),
) -> Option<String> {
    let mean = measure.mean.both()?;
    let shown = |value: f64| format_signed(factor * value, decimals);
    let interval = measure.interval.map_or_else(String::new, |Interval { low, high }| {
        format!(" (95 % interval {} to {})", shown(low), shown(high))
    });
    Some(format!(
        "{name}: {} to {}, {}{unit}{interval} over {}",
        plain(mean.control),
        plain(mean.treatment),
        shown(measure.difference?),
        selftest_text::wording::cases(measure.cases)
    ))
}

/// Maximum length of a name, and of a sentence, in bytes.
const MAX_CELL: usize = 120;
const MAX_SENTENCE: usize = 1_000;
/// Maximum number of cases in the table, largest differences first.
const MAX_ROWS: usize = 50;

/// Renders the conclusion, then the runs, the differences with their intervals and p-values, and
/// the cases that differ.
pub fn markdown(found: &RunComparison) -> String {
    let analysis = &found.analysis;
    let mut text = format!("**{}**\n\n", inline(&found.sentence, MAX_SENTENCE));
    for (name, side) in [("A", &found.a), ("B", &found.b)] {
        text += &format!(
            "- {name}: {}, {}, {}\n",
            inline(&side.run_id, MAX_CELL),
            inline(&side.system_under_test, MAX_CELL),
            inline(&wording::judged(&side.judge), MAX_CELL)
        );
    }
    text.extend(measures(analysis).map(|line| format!("- {line}\n")));
    text.extend(analysis.within_cases().map(|line| format!("- {line}\n")));
    if let Some(attribution) = &found.attribution {
        text += &format!("- by cause: {}\n", inline(&attribution.sentence(), MAX_SENTENCE));
    }
    if let Some(sentence) = found.new_failures_sentence() {
        text += &format!("- {}\n", inline(&sentence, MAX_SENTENCE));
    }
    text.extend(
        found.remarks.iter().map(|remark| format!("- note: {}\n", inline(remark, MAX_SENTENCE))),
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
        // Where checks alone decide there is no score to go by.
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
            inline(&case.case, MAX_CELL),
            arms.control,
            arms.treatment
        );
    }
    if differing.len() > MAX_ROWS {
        text += &format!("\n{} more cases differ.\n", differing.len() - MAX_ROWS);
    }
    text
}
