//! Failed cases for a terminal: the prompt, the answer, what failed, and the judge's comment, all
//! bounded and wrapped. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use textwrap::Options;

use super::super::against::CaseStanding;
use super::super::case_view::{self, CaseView};
use super::super::causes::{CaseFault, SharedCauses};
use super::super::contrast::{Contrast, Piece, PieceKind};
use super::super::{traces, wording};
use super::{DetailLevel, MAX_NAMED, MAX_REASON, StatusColour, TerminalStyle, colour};
use selftest_checks::check::CheckOutcome;
use selftest_harness::gate::finding::GateFinding;
use selftest_harness::outcome::{CaseStep, CheckResult, StepKind};
use selftest_text::escape;

/// Width of a line, in columns.
const WIDTH: usize = 80;
/// Indentation of a part's text, in columns.
const INDENT: usize = 12;
/// Maximum number of judge questions displayed per case, the least likely first.
const MAX_QUESTIONS: usize = 2;
/// Maximum number of failed checks displayed per case.
const MAX_CHECKS: usize = 5;

/// One part of a failed case: its label and text.
struct FailedPart {
    label: &'static str,
    text: String,
}

/// Failed cases with one cause, or failed trials of one case: the first of them, and the others.
struct FailedGroup<'a> {
    case: &'a CaseView<'a>,
    others: Vec<&'a CaseView<'a>>,
}

impl<'a> FailedGroup<'a> {
    fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// Names the others.
    fn others(&self) -> Option<String> {
        let id = |case: &&'a CaseView<'a>| case.result.scenario.id.as_str();
        // Trials of one case are named by their numbers, those of several are counted.
        let is_one_case = self.others.iter().all(|case| id(case) == id(&self.case));
        let name = |case: &&'a CaseView<'a>| if is_one_case { case.name() } else { id(case) };
        let names = wording::listed(self.others.iter().map(name), 3 * MAX_NAMED)?;
        let is_same_case = |case: &&CaseView<'_>| {
            case.result.scenario.id == self.case.result.scenario.id
                && case.reason != self.case.reason
        };
        let why = if self.others.iter().any(is_same_case) { "" } else { ", for the same reason" };
        Some(format!("{names}{why}"))
    }
}

/// What the cases of a group have in common.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FailedKey<'a> {
    Cause(usize),
    Repeated(&'a str),
}

/// Groups failed cases by cause, and failed trials by case, in plan order.
fn grouped<'a>(failed: &[&'a CaseView<'a>]) -> Vec<FailedGroup<'a>> {
    let causes = SharedCauses::of(failed.iter().filter_map(|case| CaseFault::of(case.result)));
    let mut groups: Vec<FailedGroup<'a>> = Vec::new();
    let mut positions: BTreeMap<FailedKey<'a>, usize> = BTreeMap::new();
    for case in failed {
        let cause = causes.of_fault(CaseFault::of(case.result));
        let repeated = || case.result.repeat.map(|_| FailedKey::Repeated(&case.result.scenario.id));
        let key = cause.map(|cause| FailedKey::Cause(cause.number)).or_else(repeated);
        let position = key.as_ref().and_then(|key| positions.get(key)).copied();
        if let Some(position) = position {
            groups[position].others.push(case);
            continue;
        }
        if let Some(key) = key {
            positions.insert(key, groups.len());
        }
        groups.push(FailedGroup { case, others: Vec::new() });
    }
    groups
}

/// Formats the failed cases and the number of omitted ones. Cases with the same cause share their
/// details, unless all details are wanted. An empty line precedes each case, unless a single line is
/// all there is.
pub(super) fn failed(
    cases: &[CaseView<'_>],
    gate: Option<&GateFinding>,
    detail: DetailLevel,
    style: TerminalStyle,
) -> Vec<String> {
    let failed: Vec<&CaseView<'_>> =
        cases.iter().filter(|case| case.status.pass() == Some(false)).collect();
    let groups: Vec<FailedGroup<'_>> = match detail {
        DetailLevel::Full => {
            failed.iter().map(|case| FailedGroup { case, others: Vec::new() }).collect()
        }
        DetailLevel::Brief | DetailLevel::Normal => grouped(&failed),
    };
    let shown = &groups[..groups.len().min(detail.failed_cases())];
    let mut lines = Vec::new();
    for group in shown {
        let case = group.case;
        let mark = style.paint(colour(case.status), &case.label());
        let name = escape::terminal(case.name(), 64);
        if detail == DetailLevel::Brief {
            let names = std::iter::once(case).chain(group.others.iter().copied());
            let names = names.map(CaseView::name);
            let names = wording::listed(names, MAX_NAMED).unwrap_or_default();
            let reason = escape::terminal(reason(case), detail.part_bytes());
            lines.push(format!("{mark} {}: {reason}", escape::terminal(&names, MAX_REASON)));
            continue;
        }
        lines.push(String::new());
        let standing = gate.map(|gate| CaseStanding::of(gate, &case.result.scenario.id));
        let standing = standing
            .filter(|standing| *standing != CaseStanding::Same && standing.label() != case.label());
        let standing = standing.map(|standing| format!(" ({})", standing.label()));
        lines.push(format!("{mark} {name}{}", standing.unwrap_or_default()));
        for part in parts(case) {
            lines.extend(wrapped(&part, detail.part_bytes()));
        }
        if let Some(text) = group.others() {
            lines.extend(wrapped(&FailedPart { label: "also", text }, detail.part_bytes()));
        }
    }
    let left_out: usize = groups[shown.len()..].iter().map(FailedGroup::count).sum();
    if left_out > 0 {
        lines.push(String::new());
        let more = format!("{left_out} more failed; see the report");
        lines.push(style.paint(StatusColour::Faint, &more));
    }
    lines
}

fn reason<'a>(case: &'a CaseView<'_>) -> &'a str {
    case.reason.as_deref().unwrap_or("it did not pass")
}

fn parts(case: &CaseView<'_>) -> Vec<FailedPart> {
    let mut parts = Vec::new();
    let mut add = |label, text: String| {
        if !text.trim().is_empty() {
            parts.push(FailedPart { label, text });
        }
    };
    let step = case.deciding_step();
    if let Some(generated) = &case.result.case {
        add("prompt", generated.prompt.clone());
    }
    if let Some(step) = step {
        if step.kind != StepKind::Answer {
            add("then", step.input.clone());
        }
        if let Some(reply) = &step.reply {
            add("answer", reply.output.clone());
        }
    }
    match Contrast::of(case.result) {
        Some(contrast) => add("differs", marked(&contrast)),
        None => add("expected", traces::reference(case.result).unwrap_or_default().to_owned()),
    }
    add("failed", reason(case).to_owned());
    let failed = case.result.checks.iter();
    let failed = failed.filter(|check| check.finding.outcome == CheckOutcome::Failed);
    // The first one is the reason, unless a fact precedes it.
    let others = failed.map(CheckResult::describe).filter(|words| !reason(case).contains(words));
    for words in others.take(MAX_CHECKS) {
        add("failed", words);
    }
    // If the case failed for another reason, the judge's comment is irrelevant.
    if let Some(step) = step.filter(|step| case.falls_short(step)) {
        for words in doubts(step) {
            add("question", words);
        }
        if let Some(card) = case_view::card(step) {
            add("judge", card.reasoning.clone());
        }
    }
    if let Some(stderr) = case.stderr().filter(|_| step.is_none_or(|step| step.reply.is_none())) {
        add("stderr", stderr.to_owned());
    }
    parts
}

/// Marks what is missing, what came instead, and what must not be there, as `wdiff` does.
fn marked(contrast: &Contrast) -> String {
    let mark = |Piece { kind, text }: &Piece| match kind {
        PieceKind::Same => text.clone(),
        PieceKind::Missing => format!("[-{text}-]"),
        PieceKind::Added => format!("{{+{text}+}}"),
        PieceKind::Forbidden => format!("[!{text}!]"),
    };
    contrast.pieces.iter().map(mark).collect()
}

/// Returns the questions that the judge considers least likely.
fn doubts(step: &CaseStep) -> Vec<String> {
    let questions = case_view::questions(step).into_iter().take(MAX_QUESTIONS);
    let words = questions.map(|asked| {
        let yes = wording::score(Some(asked.probability));
        format!("{} (probability of yes {yes})", asked.answer.question.text)
    });
    words.collect()
}

/// Wraps a part between words, with its label before the first line.
fn wrapped(part: &FailedPart, limit: usize) -> Vec<String> {
    let text = escape::terminal(&part.text, limit);
    let first = format!("  {:<1$}", part.label, INDENT - 2);
    let rest = " ".repeat(INDENT);
    let options = Options::new(WIDTH).initial_indent(&first).subsequent_indent(&rest);
    textwrap::wrap(&text, options).into_iter().map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_is_wrapped_between_words_and_bounded() {
        let text = "The ferry leaves at seven in the morning, ".repeat(8);
        let part = FailedPart { label: "answer", text };
        let lines = wrapped(&part, 200);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("  answer    The ferry"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        assert!(lines[1].starts_with("            ") && lines[2].ends_with('…'), "{lines:?}");
    }

    proptest! {
        #[test]
        fn nothing_leaves_its_columns_or_steers_the_terminal(text in "\\PC{0,400}|[\\x00-\\x7f]{0,400}") {
            for line in wrapped(&FailedPart { label: "judge", text: text.clone() }, 300) {
                prop_assert!(textwrap::core::display_width(&line) <= WIDTH, "{line:?}");
                prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}
