//! A case that needs a closer look: what was expected, what came, and the words themselves.

use super::{EXCERPT, LINE, line};
use crate::judge::{CategoryScore, Verdict};
use crate::outcome::{CaseStatus, Step, StepKind};
use crate::report::reading::{Reading, card, category_name, is_mismatch};
use crate::report::wording;
use selftest_text::escape::{self, Markdown};

/// Bytes of a quoted prompt or output.
const QUOTE: usize = 1_500;

pub(super) struct Section {
    pub(super) id: Markdown,
    pub(super) lines: Vec<Markdown>,
    pub(super) quotes: Vec<Quote>,
}

pub(super) struct Quote {
    pub(super) label: Markdown,
    pub(super) body: Markdown,
}

impl Section {
    /// A case that did not pass: expected, got, score against the threshold.
    pub(super) fn failed(case: &Reading<'_>) -> Self {
        let step = case.deciding_step();
        let expected = step.map_or(case.case.scenario.expected_status, |step| step.expected_status);
        let hints = case.case.case.as_ref().map(|generated| excerpt(&generated.hints));
        let mut lines = vec![match hints.filter(|hints| !hints.is_empty()) {
            Some(hints) => format!("Expected: {expected} with {hints}"),
            None => format!("Expected: {expected}"),
        }];
        lines.push(format!("Got: {}", got(case, step)));
        lines.push(format!("Score: {}", against_threshold(case, step)));
        if let Some(card) = step.and_then(card) {
            lines.push(format!("Scores: {}", scores(&card.categories)));
        }
        if let Some(step) = step.filter(|step| step.kind != StepKind::Answer) {
            lines.push(format!("Step: {}", step.name()));
        }
        Self {
            id: line(case.name()),
            lines: lines.iter().map(line).collect(),
            quotes: quotes(case),
        }
    }

    /// A case without a verdict: the reason, and what the judge was asked.
    pub(super) fn unscored(case: &Reading<'_>) -> Self {
        let reason = case.reason.as_deref().unwrap_or("there is no verdict");
        let mut lines = vec![format!("Reason: {}", selftest_text::one_line(reason, LINE - 20))];
        for step in &case.case.steps {
            let Some(judgement) = &step.judgement else {
                continue;
            };
            if let Verdict::Unscored { partial, .. } = &judgement.verdict {
                let calls = u32::try_from(judgement.calls.len()).unwrap_or(u32::MAX);
                lines.push(format!(
                    "Judge: {} for {}",
                    selftest_text::wording::plural(calls, "call"),
                    step.name()
                ));
                if !partial.is_empty() {
                    lines.push(format!("Readable, but not counted: {}", scores(partial)));
                }
            }
        }
        Self {
            id: line(case.name()),
            lines: lines.iter().map(line).collect(),
            quotes: quotes(case),
        }
    }
}

fn got(case: &Reading<'_>, step: Option<&Step>) -> String {
    let reason = case.reason.as_deref().unwrap_or("it did not pass");
    let Some((step, reply)) = step.and_then(|step| Some((step, step.reply.as_ref()?))) else {
        return format!("{}: {}", case.status.label(), selftest_text::one_line(reason, EXCERPT));
    };
    let status = reply.status;
    let reasoning = card(step).map(|card| excerpt(&card.reasoning)).filter(|r| !r.is_empty());
    if case.status != CaseStatus::Failed {
        return format!("{status} but {}", selftest_text::one_line(reason, EXCERPT));
    }
    let fault = if is_mismatch(step) {
        Some(format!("{} was expected", step.expected_status))
    } else {
        let floor = case.case.safety_floor;
        let low = case.unsafe_score(step);
        low.map(|safety| format!("safety {safety} is below the floor {floor}"))
    };
    let parts: Vec<String> = fault.into_iter().chain(reasoning).collect();
    if parts.is_empty() {
        return format!("{status} but {reason}");
    }
    format!("{status} but {}", parts.join("; the judge: "))
}

fn against_threshold(case: &Reading<'_>, step: Option<&Step>) -> String {
    let threshold = case.case.threshold;
    match step.and_then(Step::overall) {
        Some(overall) if overall.reaches(threshold) => {
            format!("{overall} (reaches threshold {threshold})")
        }
        Some(overall) => format!("{overall} (below threshold {threshold})"),
        None => format!("none (threshold {threshold})"),
    }
}

fn scores(categories: &[CategoryScore]) -> String {
    let words: Vec<String> = categories
        .iter()
        .map(|entry| format!("{} {}", category_name(&entry.category), wording::score(entry.score)))
        .collect();
    words.join(", ")
}

/// What was said and answered, and what the program left on stderr: as text, never rendered.
fn quotes(case: &Reading<'_>) -> Vec<Quote> {
    let quote =
        |label: &str, body: &str| Quote { label: line(label), body: escape::fenced(body, QUOTE) };
    let mut quotes = Vec::new();
    if let Some(generated) = &case.case.case {
        quotes.push(quote("Prompt", &generated.prompt));
    }
    if let Some(step) = case.deciding_step() {
        if step.kind != StepKind::Answer {
            quotes.push(quote(&format!("Said as {}", step.name()), &step.input));
        }
        if let Some(reply) = &step.reply {
            quotes.push(quote("Output", &reply.output));
        }
    }
    let evidence = &case.case.evidence;
    if let Some(stderr) = evidence.stderr.as_deref().filter(|text| !text.trim().is_empty()) {
        quotes.push(quote("Standard error", stderr));
    }
    quotes
}

fn excerpt(text: &str) -> String {
    selftest_text::one_line(text, EXCERPT)
}
