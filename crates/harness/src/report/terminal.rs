//! The closing table of a run for a terminal. Returns text and prints nothing.

use std::sync::Arc;

use super::case_view::{self, CaseView, Repeated, not_run, repeated};
use super::files::ReportPaths;

use super::wording;
use crate::event::RunHeader;
use crate::outcome::judge_samples::JudgeSamples;
use crate::outcome::panel::PanelAgreement;
use crate::outcome::rejudged::VerdictChanges;
use crate::outcome::usage::RunUsage;
use crate::outcome::{CaseResult, CaseStatus, RunOutcome, SkillResult, Summary};
use selftest_text::escape;
use selftest_text::wording::{percent, plural};

/// Bytes of a reason.
const REASON: usize = 200;

/// Abilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Lines can be redrawn: a terminal, and not CI.
    pub terminal: bool,
    /// Colours are wanted: a terminal without `NO_COLOR`.
    pub colour: bool,
}

/// Colours by meaning.
#[derive(Debug, Clone, Copy)]
pub(super) enum Colour {
    Good,
    Bad,
    Unsure,
    Faint,
}

impl Style {
    /// The text in a colour, if colours are wanted.
    pub(super) fn paint(self, colour: Colour, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Good => 32,
            Colour::Bad => 31,
            Colour::Unsure => 33,
            Colour::Faint => 2,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// The colour of a case's status.
pub(super) const fn colour(status: CaseStatus) -> Colour {
    match status.pass() {
        Some(true) => Colour::Good,
        Some(false) => Colour::Bad,
        None => Colour::Unsure,
    }
}

/// The table of all cases, the summary with its interval, why cases have no verdict or failed,
/// and where the reports are.
pub fn closing(
    header: &RunHeader,
    cases: &[Arc<CaseResult>],
    summary: &Summary,
    outcome: RunOutcome,
    paths: &ReportPaths,
    style: Style,
) -> String {
    let cases: Vec<CaseView<'_>> = cases.iter().map(|case| CaseView::new(case)).collect();
    let mut lines = table(&cases, style);
    lines.extend(repeats(&cases, style));
    lines.extend(skills(&cases, style));
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(summary_line(summary, outcome, style));
    if let Some(words) = wording::interval(summary) {
        lines.push(style.paint(Colour::Faint, &words));
    }
    lines.extend(corrected(header, &cases).map(|words| style.paint(Colour::Faint, &words)));
    let used = RunUsage::of(cases.iter().map(|case| case.result), header.prices.as_ref());
    lines.extend(used.map(|used| {
        let words = wording::usage(&used.usage.total, used.currency());
        style.paint(Colour::Faint, &words)
    }));
    lines.extend(case_view::loading(cases.iter().map(|case| case.result)));
    if let Some(panel) = PanelAgreement::of(cases.iter().map(|case| case.result)) {
        let sentences = panel.sentences().into_iter();
        lines.extend(sentences.map(|words| format!("panel: {}", escape::terminal(&words, 1_000))));
    }
    if let Some(found) = JudgeSamples::of(cases.iter().map(|case| case.result)) {
        let words = format!("judge asked several times: {}", found.sentence());
        lines.push(style.paint(Colour::Faint, &words));
    }
    for (reason, names) in not_run(&cases) {
        let count = plural(names.len() as u64, "case");
        lines.push(format!("{count} not run: {}", escape::terminal(reason, REASON)));
    }
    for case in cases.iter().filter(|case| !case.was_not_run()) {
        if let Some(reason) = &case.reason {
            let reason = escape::terminal(reason, REASON);
            lines.push(format!("{}: {reason}", escape::terminal(case.name(), 64)));
        }
    }
    let seed = format!("{}, seed {}", header.run_id, header.seed);
    lines.push(String::new());
    lines.push(style.paint(Colour::Faint, &seed));
    if let Some(suite) = &header.suite {
        let suite = escape::terminal(&format!("suite {}", wording::suite(suite)), 4_096);
        lines.push(style.paint(Colour::Faint, &suite));
    }
    if let Some(rejudged) = &header.rejudged {
        let words = escape::terminal(&wording::rejudged(rejudged), 400);
        lines.push(style.paint(Colour::Faint, &words));
    }
    for path in [&paths.markdown, &paths.json] {
        lines.push(escape::terminal(&path.display().to_string(), 4_096));
    }
    if header.rejudged.is_some() {
        let changes = VerdictChanges::of(cases.iter().map(|case| case.result));
        lines.push(changes.sentence());
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The pass rate as labels correct it; none where nobody has labelled anything.
fn corrected(header: &RunHeader, cases: &[CaseView<'_>]) -> Option<String> {
    let judged: Vec<_> = cases
        .iter()
        .map(|case| (case.name().to_owned(), case.status, &case.result.steps[..]))
        .collect();
    let found = header.calibration.apply(header.run_id.as_str(), &judged)?;
    Some(escape::terminal(&found.sentence(), 400))
}

/// Names of the columns.
const HEAD: [&str; 6] = ["Case", "Status", "Score", "Threshold", "Result", "Time"];

fn table(cases: &[CaseView<'_>], style: Style) -> Vec<String> {
    if cases.is_empty() {
        return Vec::new();
    }
    let rows: Vec<[String; 6]> = cases
        .iter()
        .map(|case| {
            [
                escape::terminal(case.name(), 64),
                case.task_status_word().to_owned(),
                wording::score(case.score()),
                case.result.threshold.to_string(),
                case.label(),
                selftest_text::wording::duration(case.result.duration_ms),
            ]
        })
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(HEAD[column].len())
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    // Words to the left, numbers to the right.
    let aligned = |column: usize, cell: &str| match column {
        2 | 3 | 5 => format!("{cell:>0$}", widths[column]),
        _ => format!("{cell:<0$}", widths[column]),
    };
    let head: Vec<String> = (0..6).map(|column| aligned(column, HEAD[column])).collect();
    let mut lines = vec![style.paint(Colour::Faint, &head.join("  "))];
    for (row, case) in rows.iter().zip(cases) {
        let cells: Vec<String> = (0..6)
            .map(|column| {
                let cell = aligned(column, &row[column]);
                if column == 4 { style.paint(colour(case.status), &cell) } else { cell }
            })
            .collect();
        lines.push(cells.join("  "));
    }
    lines
}

/// A line for each repeated case.
fn repeats(cases: &[CaseView<'_>], style: Style) -> Vec<String> {
    let line = |case: &Repeated<'_>| {
        format!(
            "{}: {}, {} passed, mean score {} ({} to {})",
            escape::terminal(case.id, 64),
            case.result().label(),
            case.passed_words(),
            wording::score(case.mean),
            wording::score(case.lowest),
            wording::score(case.highest)
        )
    };
    let lines: Vec<String> = repeated(cases).iter().map(line).collect();
    let heading = (!lines.is_empty()).then(|| style.paint(Colour::Faint, "Over all repeats"));
    let gap = heading.as_ref().map(|_| String::new());
    let found = case_view::repeats(cases.iter().map(|case| case.result));
    let sentences = found.map(|found| found.sentences()).unwrap_or_default();
    gap.into_iter().chain(heading).chain(lines).chain(sentences).collect()
}

/// A line for each skill, where the cases are those of several.
fn skills(cases: &[CaseView<'_>], style: Style) -> Vec<String> {
    let skills = case_view::skills(cases.iter().map(|case| case.result));
    let line = |skill: &SkillResult| {
        let SkillResult { passed, failed, unscored, .. } = skill;
        let rest = match unscored {
            0 => String::new(),
            unscored => format!(", {unscored} without a verdict"),
        };
        let name = escape::terminal(&skill.skill, 64);
        format!("{name}: {passed} of {} passed{rest}", passed + failed)
    };
    let lines: Vec<String> = skills.iter().map(line).collect();
    let heading = (!lines.is_empty()).then(|| style.paint(Colour::Faint, "By skill"));
    let gap = heading.as_ref().map(|_| String::new());
    gap.into_iter().chain(heading).chain(lines).collect()
}

fn summary_line(summary: &Summary, outcome: RunOutcome, style: Style) -> String {
    let colour = match outcome {
        RunOutcome::Passed => Colour::Good,
        RunOutcome::Failed => Colour::Bad,
        RunOutcome::Inconclusive
        | RunOutcome::ModelUnavailable
        | RunOutcome::NothingRan
        | RunOutcome::Interrupted => Colour::Unsure,
    };
    let passed = match summary.pass_rate {
        Some(rate) => {
            let decided = summary.passed + summary.failed;
            format!("{} of {decided} passed ({} %)", summary.passed, percent(rate))
        }
        None => "no verdict".to_owned(),
    };
    let gate = match outcome {
        RunOutcome::ModelUnavailable | RunOutcome::NothingRan | RunOutcome::Interrupted => {
            wording::outcome(Some(outcome)).to_owned()
        }
        _ => format!("gate {}", wording::outcome(Some(outcome))),
    };
    let mut rest = wording::undecided(summary);
    if summary.rejected_prompts > 0 {
        rest.push(format!("{} rejected", plural(summary.rejected_prompts, "generated prompt")));
    }
    let rest = if rest.is_empty() { String::new() } else { format!("; {}", rest.join(", ")) };
    format!("{passed}, {}{rest}", style.paint(colour, &gate))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::report::fixture;

    fn closing_of(cases: &[Arc<CaseResult>], colour: bool) -> String {
        let (summary, outcome) = fixture::fold(cases);
        let paths = ReportPaths {
            json: PathBuf::from("reports/selftest/run.json"),
            markdown: PathBuf::from("docs/reports/selftest/run.md"),
        };
        let style = Style { terminal: true, colour };
        closing(&fixture::header(cases), cases, &summary, outcome, &paths, style)
    }

    #[test]
    fn closing_table() {
        insta::assert_snapshot!("closing_rich", closing_of(&fixture::rich_cases(), false));
        insta::assert_snapshot!("closing_passed", closing_of(&fixture::passing_cases(), false));
        let cases = fixture::cases_without_a_model();
        insta::assert_snapshot!("closing_without_a_model", closing_of(&cases, false));
        insta::assert_snapshot!("closing_empty", closing_of(&[], false));
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        let text = closing_of(&fixture::rich_cases(), false);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        let coloured = closing_of(&fixture::rich_cases(), true);
        let mut rest = coloured.as_str();
        while let Some(start) = rest.find('\u{1b}') {
            rest = &rest[start..];
            let ours = ["[32m", "[31m", "[33m", "[2m", "[0m"];
            assert!(ours.iter().any(|code| rest[1..].starts_with(code)), "{rest:?}");
            rest = &rest[1..];
        }
    }
}
