//! A case as plain text, in the way test reports display a failure: the prompt, the answer, and
//! what was wrong with it. Bounded, and free of control sequences.

use std::fmt::Write as _;

use selftest_text::escape::{block, terminal};

use crate::case_view::{self, CaseView};
use crate::wording;
use selftest_checks::check::CheckOutcome;

/// Maximum length of a prompt, an answer or stderr, in bytes.
const MAX_TEXT: usize = 4_000;
/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 600;
/// Maximum number of questions.
const MAX_QUESTIONS: usize = 12;

/// Describes the case.
pub(super) fn details(case: &CaseView<'_>) -> String {
    let mut text = String::new();
    let mut section = |heading: &str, body: &str| {
        if !body.trim().is_empty() {
            let body = block(body, MAX_TEXT);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{heading}:\n{}\n", body.trim_end());
        }
    };
    if let Some(generated) = &case.result.case {
        section("Prompt", &generated.prompt);
    }
    if let Some(step) = case.deciding_step() {
        // The first input usually is the prompt, which is already there.
        if case.result.case.as_ref().is_none_or(|generated| generated.prompt != step.input) {
            section("Said", &step.input);
        }
        if let Some(reply) = &step.reply {
            let heading = format!("Answer ({}, expected {})", reply.status, step.expected_status);
            section(&heading, &reply.output);
        }
        section("Checks", &checks(case));
        section("Questions, with the probability of yes", &questions(case));
        if let Some(card) = case_view::card(step) {
            section("Scores", &case_view::scores(card));
            section("Judge", &card.reasoning);
        }
    }
    section("Standard error", case.stderr().unwrap_or_default());
    text.truncate(text.trim_end().len());
    text
}

/// Lists the checks that failed or could not be decided.
fn checks(case: &CaseView<'_>) -> String {
    let open = case.result.checks.iter().filter(|it| it.finding.outcome != CheckOutcome::Held);
    let line = |check: &selftest_harness::outcome::CheckResult| {
        let words = format!("{}: {}", check.finding.outcome, check.describe());
        terminal(&words, MAX_LINE)
    };
    open.map(line).collect::<Vec<_>>().join("\n")
}

/// Lists the judge's yes/no questions, the least likely first.
fn questions(case: &CaseView<'_>) -> String {
    let step = case.deciding_step();
    let asked = step.map(case_view::questions).unwrap_or_default();
    let line = |asked: &&selftest_harness::judge::ScoredQuestion| {
        let probability = wording::score(Some(asked.probability));
        format!("{probability} {}", terminal(&asked.answer.question.text, MAX_LINE))
    };
    asked.iter().take(MAX_QUESTIONS).map(line).collect::<Vec<_>>().join("\n")
}
