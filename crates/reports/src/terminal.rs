//! The closing summary of a run for a terminal, with paths as links (OSC 8). Returns text and prints
//! nothing.

mod failed;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::case_view::{self, CaseView, RepeatedCaseView, not_run, repeated};
use super::files::ReportPaths;
use super::{against, wording};
use selftest_harness::event::{RunHeader, RunNotice};
use selftest_harness::gate::finding::{CaseChange, GateFinding};
use selftest_harness::outcome::agreement::{JudgeSamples, PanelAgreement, VerdictChanges};
use selftest_harness::outcome::repeats::RepeatedResult;
use selftest_harness::outcome::usage::RunUsage;
use selftest_harness::outcome::{CaseResult, CaseStatus, RunOutcome, RunSummary, SkillResult};
use selftest_text::escape;
use selftest_text::wording::{percent, plural};

/// Maximum length of a reason, in bytes.
const MAX_REASON: usize = 200;
/// Maximum number of cases named on one line.
const MAX_NAMED: usize = 8;
/// Width of a line about the whole run, in columns.
const NOTICE_WIDTH: usize = 80;

/// Minimum ratio of a slow case's duration to the median.
const SLOW_FACTOR: u64 = 3;
/// Minimum excess over the median for a slow case, in milliseconds.
const SLOW_MARGIN: u64 = 1_000;
/// Minimum number of cases for one to be called slow.
const SLOW_CASES: usize = 4;

/// Level of detail in the output of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DetailLevel {
    /// The outcome, and one line per failed case.
    Brief,
    /// The table of all cases, and details of the first failed ones.
    #[default]
    Normal,
    /// The table, and full details of every failed case.
    Full,
}

impl DetailLevel {
    /// Returns the maximum number of failed cases to display.
    const fn failed_cases(self) -> usize {
        match self {
            Self::Brief | Self::Normal => 10,
            Self::Full => usize::MAX,
        }
    }

    /// Returns the maximum length of a prompt, an answer or a judge's comment, in bytes.
    const fn part_bytes(self) -> usize {
        match self {
            Self::Brief => 200,
            Self::Normal => 400,
            Self::Full => 4_000,
        }
    }
}

/// Display options of the closing summary.
#[derive(Debug, Clone, Copy)]
pub struct ClosingOptions<'a> {
    /// Capabilities of the terminal.
    pub style: TerminalStyle,
    /// Level of detail.
    pub detail: DetailLevel,
    /// Absolute folder that relative paths start from, if the terminal supports links.
    pub links: Option<&'a Path>,
    /// Wall time of the whole run.
    pub took: Duration,
    /// The comparison with the baseline, if there is one.
    pub gate: Option<&'a GateFinding>,
    /// True if the reader saw at the start of the run that it tests the example agent.
    pub is_announced: bool,
}

/// Capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalStyle {
    /// Lines can be redrawn: a terminal, and not CI.
    pub terminal: bool,
    /// Colours are enabled: a terminal without `NO_COLOR`.
    pub colour: bool,
}

/// Colours by meaning.
#[derive(Debug, Clone, Copy)]
pub(super) enum StatusColour {
    Good,
    Bad,
    Unsure,
    Faint,
}

impl TerminalStyle {
    /// Paints the text, if colours are enabled.
    pub(super) fn paint(self, colour: StatusColour, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match colour {
            StatusColour::Good => 32,
            StatusColour::Bad => 31,
            StatusColour::Unsure => 33,
            StatusColour::Faint => 2,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Returns the colour of a case's status.
pub(super) const fn colour(status: CaseStatus) -> StatusColour {
    match status.pass() {
        Some(true) => StatusColour::Good,
        Some(false) => StatusColour::Bad,
        None => StatusColour::Unsure,
    }
}

/// Renders the notices, the table of all cases, the details of the failed ones, the summary with
/// its interval, the reasons for missing verdicts, and the paths of the reports.
pub fn closing(
    header: &RunHeader,
    cases: &[Arc<CaseResult>],
    summary: &RunSummary,
    outcome: RunOutcome,
    paths: &ReportPaths,
    closing: &ClosingOptions<'_>,
) -> String {
    let ClosingOptions { style, detail, links, took, gate, is_announced } = *closing;
    let cases: Vec<CaseView<'_>> = cases.iter().map(|case| CaseView::new(case)).collect();
    let mut lines = notices(header, is_announced, style);
    if detail != DetailLevel::Brief {
        // With repeats, a row per case says more than one per trial.
        if detail == DetailLevel::Full || summary.repeats.is_none() {
            lines.extend(table(&cases, style));
        }
        lines.extend(repeats(&cases, style));
        lines.extend(skills(&cases, style));
    }
    lines.extend(failed::failed(&cases, gate, detail, style));
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(summary_line(summary, outcome, style));
    if let Some(words) = wording::interval(summary) {
        lines.push(style.paint(StatusColour::Faint, &words));
    }
    lines.extend(corrected(header, &cases).map(|words| style.paint(StatusColour::Faint, &words)));
    let used = RunUsage::of(cases.iter().map(|case| case.result), header.prices.as_ref());
    lines.extend(used.map(|used| {
        let words = wording::usage(&used.usage.total, used.currency());
        style.paint(StatusColour::Faint, &words)
    }));
    lines.extend(case_view::loading(cases.iter().map(|case| case.result)));
    if let Some(panel) = PanelAgreement::of(cases.iter().map(|case| case.result)) {
        let sentences = panel.sentences().into_iter();
        lines.extend(sentences.map(|words| format!("panel: {}", escape::terminal(&words, 1_000))));
    }
    if let Some(found) = JudgeSamples::of(cases.iter().map(|case| case.result)) {
        let words = format!("judge samples: {}", found.sentence());
        lines.push(style.paint(StatusColour::Faint, &words));
    }
    lines.extend(advice(header, &cases, style));
    for (reason, names) in not_run(&cases) {
        let count = plural(names.len() as u64, "case");
        lines.push(format!("{count} not run: {}", escape::terminal(reason, MAX_REASON)));
    }
    lines.extend(undecided(&cases));
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let took = selftest_text::wording::duration(took);
    let seed = format!("{}, seed {}, took {took}", header.run_id, header.seed);
    lines.push(String::new());
    lines.push(style.paint(StatusColour::Faint, &seed));
    if let Some(suite) = &header.suite {
        let suite = escape::terminal(&format!("suite {}", wording::suite(suite)), 4_096);
        lines.push(style.paint(StatusColour::Faint, &suite));
    }
    if let Some(rejudged) = &header.rejudged {
        let words = escape::terminal(&wording::rejudged(rejudged), 400);
        lines.push(style.paint(StatusColour::Faint, &words));
    }
    for path in [&paths.markdown, &paths.json] {
        lines.push(link_to_file(path, links));
    }
    if header.rejudged.is_some() {
        let changes = VerdictChanges::of(cases.iter().map(|case| case.result));
        lines.push(changes.sentence());
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Renders the comparison with the baseline: what changed in numbers, what was compared, and the
/// changed cases, those that changed alike on one line.
pub fn gate(finding: &GateFinding, style: TerminalStyle) -> String {
    let compared = against::of_run(finding);
    // Why a case failed or has no verdict stands above.
    let changed = against::of_cases(finding, |case| case.change == CaseChange::NotCompared);
    let faint = [against::headline(finding)].into_iter().chain(compared.first().cloned());
    let faint = faint.map(|line| (StatusColour::Faint, line));
    let rest = compared.into_iter().skip(1).chain(changed);
    let line = |text: &str| escape::terminal(text, 2 * MAX_REASON);
    let mut text = String::new();
    for (colour, words) in faint {
        text += &format!("{}\n", style.paint(colour, &line(&words)));
    }
    for words in rest {
        text += &format!("{}\n", line(&words));
    }
    text
}

/// Names the cases without a verdict and the reason, those with the same reason on one line.
fn undecided(cases: &[CaseView<'_>]) -> Vec<String> {
    let open = cases.iter().filter(|case| case.status.pass().is_none() && !case.was_not_run());
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for case in open {
        let Some(reason) = case.reason.as_deref() else { continue };
        match found.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(case.name()),
            None => found.push((reason, vec![case.name()])),
        }
    }
    let line = |(reason, names): (&str, Vec<&str>)| {
        let names = wording::listed(names.into_iter(), MAX_NAMED).unwrap_or_default();
        let reason = escape::terminal(reason, MAX_REASON);
        format!("{}: {reason}", escape::terminal(&names, MAX_REASON))
    };
    found.into_iter().map(line).collect()
}

/// Formats the notices for the first lines.
fn notices(header: &RunHeader, is_announced: bool, style: TerminalStyle) -> Vec<String> {
    let mut lines = Vec::new();
    let was_seen =
        |notice: &&RunNotice| is_announced && matches!(notice, RunNotice::ExampleAgent { .. });
    for notice in header.notices.iter().filter(|notice| !was_seen(notice)) {
        let sentence = escape::terminal(&notice.sentence(), 400);
        let wrapped = textwrap::wrap(&sentence, NOTICE_WIDTH).into_iter();
        lines.extend(wrapped.map(|line| style.paint(StatusColour::Unsure, &line)));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// Returns what the judge says of cases that their checks decided, and what it is worth.
fn advice(header: &RunHeader, cases: &[CaseView<'_>], style: TerminalStyle) -> Vec<String> {
    let mut paragraphs: Vec<String> = cases.iter().filter_map(CaseView::advice).collect();
    if let Some(fitness) = header.models.judge_fitness.as_ref().filter(|_| !paragraphs.is_empty()) {
        paragraphs.push(format!("The judge {}: {}", fitness.model, fitness.summary()));
    }
    let mut lines = Vec::new();
    for paragraph in paragraphs {
        let shown = escape::terminal(&paragraph, 600);
        let wrapped = textwrap::wrap(&shown, NOTICE_WIDTH).into_iter();
        lines.extend(wrapped.map(|line| style.paint(StatusColour::Faint, &line)));
    }
    lines
}

/// Returns the pass rate corrected by labels; `None` without labels.
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

fn table(cases: &[CaseView<'_>], style: TerminalStyle) -> Vec<String> {
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
    // Align text left, numbers right.
    let aligned = |column: usize, cell: &str| match column {
        2 | 3 | 5 => format!("{cell:>0$}", widths[column]),
        _ => format!("{cell:<0$}", widths[column]),
    };
    let head: Vec<String> = (0..6).map(|column| aligned(column, HEAD[column])).collect();
    let mut lines = vec![style.paint(StatusColour::Faint, &head.join("  "))];
    let slow = slow_from(cases);
    for (row, case) in rows.iter().zip(cases) {
        let mut cells: Vec<String> = (0..6)
            .map(|column| {
                // Align before colouring, because escape sequences would count as characters.
                let cell = aligned(column, &row[column]);
                if column == 4 { style.paint(colour(case.status), &cell) } else { cell }
            })
            .collect();
        if slow.is_some_and(|slow| case.result.duration_ms >= slow) {
            cells.push(style.paint(StatusColour::Unsure, "slow"));
        }
        lines.push(cells.join("  "));
    }
    lines
}

/// Returns the duration in milliseconds from which a case counts as slow.
fn slow_from(cases: &[CaseView<'_>]) -> Option<u64> {
    let mut times: Vec<u64> = cases
        .iter()
        .filter(|case| !case.was_not_run())
        .map(|case| case.result.duration_ms)
        .collect();
    times.sort_unstable();
    // The median, which the slow cases themselves do not move.
    let middle = *times.get(times.len() / 2)?;
    // Both: a factor alone marks noise among fast cases, a margin alone every slow suite.
    let slow = middle.saturating_mul(SLOW_FACTOR).max(middle.saturating_add(SLOW_MARGIN));
    (times.len() >= SLOW_CASES).then_some(slow)
}

/// Formats one line per repeated case.
fn repeats(cases: &[CaseView<'_>], style: TerminalStyle) -> Vec<String> {
    let line = |case: &RepeatedCaseView<'_>| {
        let id = escape::terminal(case.id, 64);
        let passed = format!("{id}: {}, {}", case.result().label(), case.sentence());
        if case.result() == RepeatedResult::Unscored {
            return passed;
        }
        // Checks decide without a score.
        if case.mean.is_none() {
            return passed;
        }
        let score = wording::score;
        let range = format!("({} to {})", score(case.lowest), score(case.highest));
        format!("{passed}, mean score {} {range}", score(case.mean))
    };
    let lines: Vec<String> = repeated(cases).iter().map(line).collect();
    let heading = (!lines.is_empty()).then(|| style.paint(StatusColour::Faint, "Over all repeats"));
    let gap = heading.as_ref().map(|_| String::new());
    let found = case_view::repeats(cases.iter().map(|case| case.result));
    let sentences = found.map(|found| found.sentences()).unwrap_or_default();
    gap.into_iter().chain(heading).chain(lines).chain(sentences).collect()
}

/// Formats one line per skill, if there are several.
fn skills(cases: &[CaseView<'_>], style: TerminalStyle) -> Vec<String> {
    let skills = case_view::skills(cases.iter().map(|case| case.result));
    let line = |skill: &SkillResult| {
        let RunSummary { passed, failed, unscored, .. } = &skill.summary;
        let rest = match unscored {
            0 => String::new(),
            unscored => format!(", {unscored} without a verdict"),
        };
        let name = escape::terminal(&skill.skill, 64);
        format!("{name}: {passed} of {} passed{rest}", passed + failed)
    };
    let lines: Vec<String> = skills.iter().map(line).collect();
    let heading = (!lines.is_empty()).then(|| style.paint(StatusColour::Faint, "By skill"));
    let gap = heading.as_ref().map(|_| String::new());
    gap.into_iter().chain(heading).chain(lines).collect()
}

fn summary_line(summary: &RunSummary, outcome: RunOutcome, style: TerminalStyle) -> String {
    let colour = match outcome {
        RunOutcome::Passed => StatusColour::Good,
        RunOutcome::Failed => StatusColour::Bad,
        RunOutcome::Inconclusive
        | RunOutcome::ModelUnavailable
        | RunOutcome::NothingRan
        | RunOutcome::Interrupted => StatusColour::Unsure,
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
    rest.extend(wording::unchanged(summary));
    if summary.rejected_prompts > 0 {
        rest.push(format!("{} rejected", plural(summary.rejected_prompts, "generated prompt")));
    }
    let rest = if rest.is_empty() { String::new() } else { format!("; {}", rest.join(", ")) };
    format!("{passed}, {}{rest}", style.paint(colour, &gate))
}

/// Formats a path, as a link to the file if `folder` is given, from which relative paths start.
fn link_to_file(path: &Path, folder: Option<&Path>) -> String {
    let shown = escape::terminal(&path.display().to_string(), 4_096);
    let Some(folder) = folder else { return shown };
    // Percent-encoded except for letters, digits and `/._-`, so that nothing in it can end the
    // link.
    let target = escape::link_target(&folder.join(path).to_string_lossy());
    format!("\u{1b}]8;;file://{}\u{1b}\\{shown}\u{1b}]8;;\u{1b}\\", target.as_str())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::fixture;
    use selftest_harness::outcome::case::Interruption;

    fn closing_of(cases: &[Arc<CaseResult>], colour: bool) -> String {
        let style = TerminalStyle { terminal: true, colour };
        let took = Duration::from_millis(64_200);
        let closing = ClosingOptions { style, took, ..plain(DetailLevel::Normal) };
        closing_by(&fixture::header(cases), cases, &closing)
    }

    fn closing_by(
        header: &RunHeader,
        cases: &[Arc<CaseResult>],
        how: &ClosingOptions<'_>,
    ) -> String {
        let (summary, outcome) = fixture::fold(cases);
        let paths = ReportPaths {
            json: PathBuf::from("reports/selftest/run.json"),
            markdown: PathBuf::from("docs/reports/selftest/run.md"),
        };
        closing(header, cases, &summary, outcome, &paths, how)
    }

    fn plain(detail: DetailLevel) -> ClosingOptions<'static> {
        let style = TerminalStyle { terminal: true, colour: false };
        ClosingOptions {
            style,
            detail,
            links: None,
            took: Duration::from_secs(3),
            gate: None,
            is_announced: false,
        }
    }

    #[test]
    fn what_the_reader_saw_at_the_start_is_not_repeated() {
        let cases = fixture::rich_cases();
        let notices = vec![RunNotice::ExampleAgent { config: None }];
        let header = RunHeader { notices, ..fixture::header(&cases) };
        let shown = plain(DetailLevel::Normal);
        assert!(
            closing_by(&header, &cases, &shown).starts_with("this run tests the example agent")
        );
        let shown = ClosingOptions { is_announced: true, ..shown };
        assert!(!closing_by(&header, &cases, &shown).contains("the example agent inside"));
    }

    #[test]
    fn what_a_run_is_not_comes_first() {
        let cases = fixture::rich_cases();
        let unfit = RunNotice::UnfitJudge {
            model: "embedded/smollm2-135m".to_owned(),
            measured: "AUC 0.60 [0.51, 0.68] on 160 known answers".to_owned(),
        };
        let notices = vec![RunNotice::BuiltInAssistant { config: None }, unfit];
        let header = RunHeader { notices, ..fixture::header(&cases) };
        let text = closing_by(&header, &cases, &plain(DetailLevel::Brief));
        assert!(
            text.starts_with("this run tested the built-in assistant, not your agent"),
            "{text}"
        );
        insta::assert_snapshot!("closing_brief", text);
    }

    #[test]
    fn all_failed_cases_are_shown_at_length_where_that_is_wanted() {
        let one = &fixture::rich_cases()[1];
        let many: Vec<_> = (0..12)
            .map(|index| {
                let mut case = CaseResult { index, ..(**one).clone() };
                case.case.as_mut().unwrap().prompt = "word ".repeat(200);
                Arc::new(case)
            })
            .collect();
        let header = fixture::header(&many);
        let normal = closing_by(&header, &many, &plain(DetailLevel::Normal));
        assert!(normal.contains("\n2 more failed; see the report\n"), "{normal}");
        let full = closing_by(&header, &many, &plain(DetailLevel::Full));
        assert!(!full.contains("more failed"), "{full}");
        assert_eq!(full.matches("  prompt ").count(), 12);
        assert_eq!(full.matches("word").count(), 12 * 200, "nothing is left out");
        let wide = |line: &&str| textwrap::core::display_width(line) > 80;
        let block = |text: &str| text.lines().skip(14).take(100).any(|line| wide(&line));
        assert!(!block(&normal), "{normal}");
    }

    #[test]
    fn cases_with_one_cause_share_their_details() {
        let broken = |index: usize| {
            let id = format!("case-{index}");
            let mut case = fixture::case(index, &id, fixture::scored([1.0; 4], ""));
            case.interruption = Some(Interruption::SutError("KeyError: 'price'".to_owned()));
            case.steps.clear();
            Arc::new(case)
        };
        let cases: Vec<_> = (0..4).map(broken).collect();
        let text = closing_of(&cases, false);
        assert_eq!(text.matches("KeyError").count(), 1, "{text}");
        assert!(
            text.contains("  also      case-1, case-2 and case-3, for the same reason"),
            "{text}"
        );
        let brief = closing_by(&fixture::header(&cases), &cases, &plain(DetailLevel::Brief));
        let line = "SUT ERROR case-0, case-1, case-2 and case-3: KeyError: 'price'";
        assert!(brief.contains(line), "{brief}");
    }

    #[test]
    fn a_repeated_case_is_one_row_with_its_interval() {
        let trial = |index: usize, repeat, score: f64| {
            let mut case = fixture::case(index, "a", fixture::scored([score; 4], "hm"));
            case.repeat = Some(repeat);
            Arc::new(case)
        };
        let text = closing_of(&[trial(0, 1, 1.0), trial(1, 2, 0.3), trial(2, 3, 0.2)], false);
        let row = "a: FLAKY, 1 of 3 passed (33 %, 95 % interval 6 % to 79 %), mean score 0.50";
        assert!(text.contains(row), "{text}");
        assert!(!text.contains("a #1"), "{text}");
    }

    #[test]
    fn cases_much_slower_than_the_rest_are_marked() {
        let times = [900, 1_000, 1_100, 1_200, 3_600];
        let mut cases: Vec<_> = fixture::rich_cases().into_iter().take(5).collect();
        for (case, duration_ms) in cases.iter_mut().zip(times) {
            *case = Arc::new(CaseResult { duration_ms, ..(**case).clone() });
        }
        let text = closing_of(&cases, false);
        let slow: Vec<&str> = text.lines().filter(|line| line.ends_with("  slow")).collect();
        assert_eq!(slow.len(), 1, "{text}");
        assert!(slow[0].starts_with("ambiguous_request"), "{text}");
        assert!(!closing_of(&cases[2..], false).contains("  slow"), "too few to compare");
    }

    #[test]
    fn reports_are_links_where_the_terminal_has_them() {
        let cases = fixture::passing_cases();
        let header = fixture::header(&cases);
        let how = ClosingOptions { links: Some(Path::new("/work")), ..plain(DetailLevel::Normal) };
        let text = closing_by(&header, &cases, &how);
        let target = "\u{1b}]8;;file:///work/docs/reports/selftest/run.md\u{1b}\\";
        assert!(text.contains(target), "{text:?}");
        assert_eq!(text.matches("\u{1b}]8;;\u{1b}\\").count(), 2);
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

    #[test]
    fn a_link_holds_the_whole_path_and_ends() {
        let path = Path::new("docs/a \u{1b}\\b.md");
        assert_eq!(link_to_file(Path::new("a/b.md"), None), "a/b.md");
        let link = link_to_file(path, Some(Path::new("/home/é")));
        assert_eq!(
            link,
            "\u{1b}]8;;file:///home/%C3%A9/docs/a%20%1B%5Cb.md\u{1b}\\docs/a \\b.md\u{1b}]8;;\u{1b}\\"
        );
    }
}
