//! A case in plain text, as test reports show a failure: what was asked, what came, and who found
//! what wrong with it. Bounded, without anything that a terminal would obey.

use std::fmt::Write as _;

use selftest_text::escape::{block, terminal};

use crate::case_view::{self, CaseView};
use crate::wording;
use selftest_checks::check::CheckOutcome;

/// Most bytes of a prompt, an answer or standard error.
const MAX_TEXT: usize = 4_000;
/// Most bytes of a line.
const MAX_LINE: usize = 600;
/// Most questions.
const MAX_QUESTIONS: usize = 12;

/// The case in words.
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

/// The checks that did not hold, or could not be decided.
fn checks(case: &CaseView<'_>) -> String {
    let open = case.result.checks.iter().filter(|it| it.finding.outcome != CheckOutcome::Held);
    let line = |check: &selftest_harness::outcome::CheckResult| {
        let words = format!("{}: {}", check.finding.outcome, check.describe());
        terminal(&words, MAX_LINE)
    };
    open.map(line).collect::<Vec<_>>().join("\n")
}

/// The yes/no questions of the judge, those most in doubt first.
fn questions(case: &CaseView<'_>) -> String {
    let step = case.deciding_step();
    let asked = step.map(case_view::questions).unwrap_or_default();
    let line = |asked: &&selftest_harness::judge::ScoredQuestion| {
        let probability = wording::score(Some(asked.probability));
        format!("{probability} {}", terminal(&asked.answer.question.text, MAX_LINE))
    };
    asked.iter().take(MAX_QUESTIONS).map(line).collect::<Vec<_>>().join("\n")
}
