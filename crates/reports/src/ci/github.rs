//! A run in GitHub Actions: annotations next to the lines of cases that did not pass, and a step
//! summary. Returns text; untrusted parts cannot act as workflow commands or markup.

use std::fmt::Write as _;

use selftest_text::build_log;
use selftest_text::escape::{self, inline};
use selftest_text::wording::{duration, plural};

use super::{CaseSource, CaseSources, CiRunView, MISSING};
use crate::case_view::{self, CaseView};
use crate::causes::{CaseFault, SharedCause, SharedCauses};
use crate::document::ReportDocument;
use crate::wording;
use selftest_harness::gate::finding::GateFinding;
use selftest_harness::outcome::CaseStatus;

/// Number of annotations per severity that GitHub displays for one step; it drops the rest
/// silently.
const MAX_ANNOTATIONS: usize = 10;
/// Maximum length of an annotation's message, in bytes.
const MAX_WORDS: usize = 1_000;
/// Maximum length of a summary, in bytes. GitHub accepts 1 MiB per step and rejects longer ones
/// entirely.
const MAX_SUMMARY: usize = 900_000;
/// Maximum number of shared causes in the summary; the table names them by number.
const MAX_CAUSES: usize = 20;
/// Maximum number of cases described in full in the summary.
const MAX_CASES: usize = 50;
/// Maximum length of a prompt or an answer, in bytes.
const MAX_QUOTE: usize = 1_500;
/// Maximum length of a table cell, in bytes.
const MAX_CELL: usize = 200;

/// Severity of an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnnotationSeverity {
    /// A failed case.
    Error,
    /// A case without a verdict.
    Warning,
}

impl AnnotationSeverity {
    const fn command(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Returns one workflow command per case that did not pass.
pub fn annotations(document: &ReportDocument, sources: &CaseSources) -> String {
    let run = CiRunView::new(document, sources);
    let cases = run.cases();
    // A flaky case counts as failed, but is only worth a warning.
    let is_flaky = |case: &&CaseView<'_>| case.status == CaseStatus::Flaky;
    let failed = |case: &&CaseView<'_>| case.status.pass() == Some(false) && !is_flaky(case);
    let doubtful = |case: &&CaseView<'_>| {
        is_flaky(case) || case.status.pass().is_none() && !case.was_not_run()
    };
    let failed: Vec<&CaseView<'_>> = cases.iter().filter(failed).collect();
    let blocking = document.gate.as_ref().and_then(GateFinding::blocking_sentence);
    let errors = about_run(AnnotationSeverity::Error, blocking);
    let errors = with_cases(&run, AnnotationSeverity::Error, &failed, errors);
    let doubtful: Vec<&CaseView<'_>> = cases.iter().filter(doubtful).collect();
    let not_run = case_view::not_run(&cases)
        .into_iter()
        .map(|(reason, names)| format!("{} not run: {reason}", plural(names.len() as u64, "case")));
    let missing = Some(run.missing().len() as u64).filter(|count| *count > 0);
    let missing = missing.map(|count| format!("{}: {MISSING}", plural(count, "case")));
    let warnings = about_run(AnnotationSeverity::Warning, not_run.chain(missing));
    let warnings = with_cases(&run, AnnotationSeverity::Warning, &doubtful, warnings);
    [errors, warnings].concat().concat()
}

/// Returns annotations that belong to no single case, at most half of those that are displayed.
fn about_run(
    severity: AnnotationSeverity,
    sentences: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let mut sentences: Vec<String> = sentences.into_iter().collect();
    let most = MAX_ANNOTATIONS / 2;
    if sentences.len() > most {
        let rest = plural((sentences.len() - (most - 1)) as u64, "more reason");
        sentences.truncate(most - 1);
        sentences.push(format!("{rest}; the step summary lists all cases"));
    }
    sentences.iter().map(|words| annotation(severity, None, "selftest", words)).collect()
}

/// Returns the annotations of cases, and then those of the run, for which room is kept.
fn with_cases(
    run: &CiRunView<'_>,
    severity: AnnotationSeverity,
    cases: &[&CaseView<'_>],
    about_run: Vec<String>,
) -> Vec<String> {
    let room = MAX_ANNOTATIONS.saturating_sub(about_run.len());
    let mut lines = case_annotations(run, severity, cases, room);
    lines.extend(about_run);
    lines
}

/// Returns at most `room` annotations of these cases. If there are too many, the last one stands for
/// the rest.
fn case_annotations(
    run: &CiRunView<'_>,
    severity: AnnotationSeverity,
    cases: &[&CaseView<'_>],
    room: usize,
) -> Vec<String> {
    // One annotation is reserved for the number of the others.
    let shown = if cases.len() > room { room.saturating_sub(1) } else { cases.len() };
    let line = |case: &&CaseView<'_>| {
        let title = format!("{} {}", case.label(), case.name());
        let reason = case.reason.as_deref().unwrap_or("it did not pass");
        annotation(severity, run.source(case), &title, reason)
    };
    let mut lines: Vec<String> = cases[..shown].iter().map(line).collect();
    if shown < cases.len() {
        let rest = plural((cases.len() - shown) as u64, "more case");
        let words = format!("{rest} with the same result; the step summary lists all");
        lines.push(annotation(severity, None, "selftest", &words));
    }
    lines
}

/// Formats one workflow command with a line break.
fn annotation(
    severity: AnnotationSeverity,
    source: Option<CaseSource<'_>>,
    title: &str,
    words: &str,
) -> String {
    let mut properties = Vec::new();
    if let Some(CaseSource { file, line }) = source {
        properties.push(format!("file={}", build_log::property(file)));
        properties.extend(line.map(|line| format!("line={line}")));
    }
    properties.push(format!("title={}", build_log::property(&escape::terminal(title, 120))));
    let words = build_log::message(&escape::terminal(words, MAX_WORDS));
    format!("::{} {}::{words}\n", severity.command(), properties.join(","))
}

/// Renders the step summary in Markdown: the result of the run, and the cases that did not pass.
pub fn step_summary(document: &ReportDocument, sources: &CaseSources) -> String {
    let run = CiRunView::new(document, sources);
    let cases = run.cases();
    let summary = &document.summary;
    let mut text = format!(
        "## Selftest: {} ({})\n\n",
        wording::outcome(document.outcome),
        wording::pass_rate(summary)
    );
    let mut facts: Vec<String> = wording::interval(summary).into_iter().collect();
    facts.extend(wording::undecided(summary));
    facts.extend(run.wall_ms().map(|ms| format!("took {}", duration(ms))));
    let used = run.usage.as_ref().map(|usage| wording::usage(&usage.usage.total, run.currency()));
    facts.extend(used);
    let judge = inline(&document.models.judge, MAX_CELL);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}. Judge: {judge}. Run {}.\n", facts.join("; "), document.run_id);
    let open: Vec<&CaseView<'_>> =
        cases.iter().filter(|case| case.status.pass() != Some(true)).collect();
    let causes = SharedCauses::of(open.iter().filter_map(|case| CaseFault::of(case.result)));
    for cause in causes.all().iter().take(MAX_CAUSES) {
        let count = plural(cause.ids.len() as u64, "case");
        let reason = inline(&cause.reason, MAX_QUOTE);
        let _ = writeln!(text, "- **{}**, {count}: {reason}", cause.name());
    }
    if !causes.all().is_empty() {
        text.push('\n');
    }
    if !open.is_empty() {
        text += "| Case | Result | Score | Reason |\n|------|--------|------:|--------|\n";
    }
    let mut left_out = 0_u64;
    for case in &open {
        // Half of the space is reserved for the sections below the table.
        if text.len() > MAX_SUMMARY / 2 {
            left_out += 1;
            continue;
        }
        let reason = causes
            .of_fault(CaseFault::of(case.result))
            .filter(|cause| cause.number <= MAX_CAUSES)
            .map_or_else(
                || inline(case.reason.as_deref().unwrap_or_default(), MAX_CELL).to_string(),
                SharedCause::name,
            );
        let (name, score) = (inline(case.name(), MAX_CELL), wording::score(case.score()));
        let _ = writeln!(text, "| {name} | {} | {score} | {reason} |", case.label());
    }
    if left_out > 0 {
        let _ = writeln!(text, "\n{} left out here.", plural(left_out, "case"));
    }
    let missing = run.missing();
    if !missing.is_empty() {
        let _ = writeln!(text, "\n{}: {MISSING}.", plural(missing.len() as u64, "case"));
    }
    for case in open.iter().filter(|case| !case.was_not_run()).take(MAX_CASES) {
        let section = section(case);
        if text.len() + section.len() > MAX_SUMMARY {
            break;
        }
        text += &section;
    }
    text + "\n"
}

/// Renders a case in full as a collapsed section.
fn section(case: &CaseView<'_>) -> String {
    let name = inline(case.name(), MAX_CELL);
    let mut text = format!("\n<details><summary>{} {name}</summary>\n\n", case.label());
    let mut quote = |heading: &str, body: &str| {
        if !body.trim().is_empty() {
            let _ = write!(text, "{heading}:\n\n{}\n\n", escape::fenced(body, MAX_QUOTE));
        }
    };
    if let Some(generated) = &case.result.case {
        quote("Prompt", &generated.prompt);
    }
    if let Some(step) = case.deciding_step() {
        if let Some(reply) = &step.reply {
            quote("Answer", &reply.output);
        }
        if let Some(card) = case_view::card(step) {
            quote("Judge", &card.reasoning);
        }
    }
    quote("Standard error", case.stderr().unwrap_or_default());
    text + "</details>\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;
    use crate::fixture;

    fn sources() -> CaseSources {
        let ids = fixture::document().scenarios;
        let lines: BTreeMap<String, u32> = ids.into_iter().zip((10..).step_by(7)).collect();
        CaseSources::new("config/a:b,c%.yaml", lines)
    }

    #[test]
    fn annotations_of_a_rich_run() {
        let text = annotations(&fixture::document(), &sources());
        for line in text.lines() {
            let known = ["::error file=config/a%3Ab%2Cc%25.yaml,line=", "::warning "];
            assert!(known.iter().any(|start| line.starts_with(start)), "{line}");
            assert_eq!(line.matches("::").count(), 2, "{line}");
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn annotations_of_many_cases_say_how_many_more_there_are() {
        let mut document = fixture::document();
        let failed = document.cases.iter().find(|case| case.pass == Some(false)).unwrap().clone();
        document.cases = vec![failed; 25];
        let text = annotations(&document, &CaseSources::default());
        let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("::error")).collect();
        assert_eq!(errors.len(), 10);
        assert!(
            errors[9].ends_with("16 more cases with the same result; the step summary lists all")
        );
    }

    #[test]
    fn what_was_not_run_is_said_beside_many_doubtful_cases() {
        let mut document = fixture::document();
        let of = |status: CaseStatus| {
            document.cases.iter().find(|case| case.status == status).unwrap().clone()
        };
        let (doubtful, skipped) = (of(CaseStatus::Unscored), of(CaseStatus::Skipped));
        document.cases = vec![doubtful; 12];
        document.cases.push(skipped);
        let text = annotations(&document, &CaseSources::default());
        let warnings: Vec<&str> =
            text.lines().filter(|line| line.starts_with("::warning")).collect();
        assert_eq!(warnings.len(), MAX_ANNOTATIONS, "{text}");
        assert!(text.contains("more cases with the same result"), "{text}");
        assert!(text.contains("1 case not run: the run was interrupted"), "{text}");
    }

    #[test]
    fn a_summary_holds_nothing_but_text() {
        let text = step_summary(&fixture::document(), &CaseSources::default());
        insta::assert_snapshot!(text);
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        for event in Parser::new_ext(&text, options) {
            match event {
                Event::Start(Tag::Link { .. } | Tag::Image { .. }) => panic!("{event:?}"),
                Event::Html(html) | Event::InlineHtml(html) => {
                    let ours = ["<details>", "</details>"];
                    assert!(ours.iter().any(|tag| html.starts_with(tag)), "{html}");
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_summary_stays_below_the_limit() {
        let mut document = fixture::document();
        let failed = document.cases.iter().find(|case| case.pass == Some(false)).unwrap().clone();
        document.cases = vec![failed; 10_000];
        let text = step_summary(&document, &CaseSources::default());
        assert!(text.len() < 1 << 20, "{}", text.len());
        assert!(text.contains("left out here."));
    }
}
