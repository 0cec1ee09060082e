//! The Markdown report of one run in the layout of docs/spec/selftest.md#markdown-report. Returns
//! text and opens no file.

mod section;

use askama::Template;
use section::Section;

use super::document::RunEnd;
use super::reading::{Reading, category_name};
use super::recommendations::recommendations;
use super::repeats::{Repeated, repeated};
use super::wording;
use crate::event::RunHeader;
use crate::outcome::{CaseResult, CaseStatus, StepKind, Summary};
use selftest_text::escape::{self, Markdown, inline};

/// Bytes of an excerpt within a line.
const EXCERPT: usize = 240;
/// Bytes of a line.
const LINE: usize = 700;
/// Bytes of the scenario ids in the command that repeats a run.
const RERUN_IDS: usize = 500;

/// What a report tells.
pub(super) struct RunView<'a> {
    pub(super) header: &'a RunHeader,
    /// Finished cases in the order of the plan.
    pub(super) cases: Vec<&'a CaseResult>,
    pub(super) summary: &'a Summary,
    pub(super) warnings: &'a [String],
    /// Absent while the run goes on.
    pub(super) end: Option<&'a RunEnd>,
    /// From the Markdown file to the JSON file.
    pub(super) json_link: &'a str,
}

// Every text below is `Markdown`, which only `escape` can make: nothing foreign gets by.
#[derive(Template)]
#[template(path = "report.md")]
struct Page {
    run_id: Markdown,
    date: Markdown,
    strictness: Markdown,
    pass_rate: Markdown,
    lead: Vec<Markdown>,
    rows: Vec<Row>,
    repeated: Vec<RepeatedRow>,
    failed: Vec<Section>,
    flows: Vec<FlowRow>,
    unscored: Vec<Section>,
    skipped: Option<Markdown>,
    rejected: Vec<RejectedRow>,
    recommendations: Vec<Markdown>,
    notes: Vec<Markdown>,
    run: Vec<Markdown>,
    json_name: Markdown,
    json_link: Markdown,
}

struct Row {
    id: Markdown,
    status: &'static str,
    score: String,
    pass: &'static str,
}

struct RepeatedRow {
    id: Markdown,
    passed: String,
    mean: String,
    lowest: String,
    highest: String,
}

struct FlowRow {
    id: Markdown,
    step: Markdown,
    input: Markdown,
    expected: &'static str,
    got: &'static str,
    score: String,
}

struct RejectedRow {
    id: Markdown,
    attempt: usize,
    reason: Markdown,
}

/// The report as Markdown.
pub(super) fn render(view: &RunView<'_>) -> Result<String, askama::Error> {
    let header = view.header;
    let cases: Vec<Reading<'_>> = view.cases.iter().map(|case| Reading::new(case)).collect();
    let with = |pass: Option<bool>| cases.iter().filter(move |case| case.status.pass() == pass);
    let skipped: Vec<&str> =
        with(None).filter(|case| case.status == CaseStatus::Skipped).map(Reading::name).collect();
    let page = Page {
        run_id: line(header.run_id.as_str()),
        date: line(selftest_text::wording::date_time(header.started_at)),
        strictness: line(header.strictness.get().to_string()),
        pass_rate: line(wording::pass_rate(view.summary)),
        lead: lead(view),
        rows: cases.iter().map(row).collect(),
        repeated: repeated(&cases).iter().map(repeated_row).collect(),
        failed: with(Some(false)).map(Section::failed).collect(),
        flows: cases.iter().filter(|case| has_flow(case.case)).flat_map(flow_rows).collect(),
        unscored: with(None)
            .filter(|case| case.status != CaseStatus::Skipped)
            .map(Section::unscored)
            .collect(),
        skipped: (!skipped.is_empty()).then(|| line(format!("Not run: {}", skipped.join(", ")))),
        rejected: cases.iter().flat_map(|case| rejected_rows(case.case)).collect(),
        recommendations: recommendations(header, &cases).iter().map(line).collect(),
        notes: notes(view),
        run: run_lines(view),
        json_name: line(format!("{}.json", header.run_id)),
        json_link: escape::link_target(view.json_link),
    };
    page.render().map(|mut text| {
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    })
}

fn line(text: impl AsRef<str>) -> Markdown {
    inline(text.as_ref(), LINE)
}

fn lead(view: &RunView<'_>) -> Vec<Markdown> {
    let mut sentences = Vec::new();
    if view.end.is_none() {
        let (done, planned) = (view.cases.len(), view.header.scenario_ids.len());
        sentences.push(format!("Not finished: {done} of {planned} cases so far."));
    }
    sentences.extend(wording::interval(view.summary).map(|words| format!("{words}.")));
    if view.summary.unscored > 0 {
        let unscored = selftest_text::wording::cases(view.summary.unscored);
        sentences.push(format!("{unscored} without a verdict, not counted in the pass rate."));
    }
    sentences.push(format!("Outcome: {}.", wording::outcome(view.end.map(|end| end.outcome))));
    let suite = view.header.suite.as_ref();
    sentences.extend(suite.map(|suite| format!("Cases of the suite {}.", wording::suite(suite))));
    sentences.iter().map(line).collect()
}

fn row(case: &Reading<'_>) -> Row {
    Row {
        id: line(case.name()),
        status: case.task_status_word(),
        score: wording::score(case.score()),
        pass: case.status.label(),
    }
}

fn repeated_row(case: &Repeated<'_>) -> RepeatedRow {
    RepeatedRow {
        id: line(case.id),
        passed: case.passed_words(),
        mean: wording::score(case.mean),
        lowest: wording::score(case.lowest),
        highest: wording::score(case.highest),
    }
}

fn has_flow(case: &CaseResult) -> bool {
    case.steps.iter().any(|step| step.kind != StepKind::Answer)
}

fn flow_rows(case: &Reading<'_>) -> Vec<FlowRow> {
    let rows = case.case.steps.iter().map(|step| FlowRow {
        id: line(case.name()),
        step: line(step.name()),
        input: inline(&step.input, 80),
        expected: step.expected_status.as_str(),
        got: step.reply.as_ref().map_or("-", |reply| reply.status.as_str()),
        score: wording::score(step.overall()),
    });
    rows.collect()
}

fn rejected_rows(case: &CaseResult) -> Vec<RejectedRow> {
    let attempts = case.generation.attempts.iter().enumerate();
    attempts
        .filter_map(|(index, attempt)| {
            let reason = inline(attempt.rejected.as_deref()?, EXCERPT);
            Some(RejectedRow { id: line(&case.scenario.id), attempt: index + 1, reason })
        })
        .collect()
}

fn notes(view: &RunView<'_>) -> Vec<Markdown> {
    let mut notes: Vec<Markdown> = view.warnings.iter().map(line).collect();
    for case in &view.cases {
        let evidence = &case.evidence;
        let exit = evidence.exit.as_ref().filter(|_| case.status().0 != CaseStatus::Passed);
        let exit = exit.map(|exit| format!("the program ended with {exit}"));
        for note in case.notes.iter().chain(&evidence.notes).chain(exit.as_ref()) {
            notes.push(line(format!("{}: {note}", case.name())));
        }
    }
    notes
}

fn run_lines(view: &RunView<'_>) -> Vec<Markdown> {
    let header = view.header;
    let models = &header.models;
    let mut lines = vec![format!("Judge model: {}", models.judge)];
    lines.extend(models.generator.as_ref().map(|model| format!("Generator model: {model}")));
    if let Some(sut) = &models.sut {
        lines.push(format!("Model under test: {sut}"));
    }
    lines.extend(models.chosen.iter().map(|why| format!("Model choice: {why}")));
    lines.push(format!("System under test: {}", header.sut));
    lines.extend(header.experiment.as_ref().map(wording::experiment));
    lines.extend(header.isolation.enforced.iter().map(|what| format!("Enforced: {what}")));
    lines.extend(header.isolation.not_enforced.iter().map(|what| format!("Not enforced: {what}")));
    if let Some(end) = view.end.filter(|end| !end.changed_files.is_empty()) {
        let files = end.changed_files.join(", ");
        lines.push(format!("Files of the project that changed: {files}"));
    } else if view.end.is_some() {
        lines.push("Files of the project that changed: none seen".to_owned());
    }
    lines.push(format!(
        "Threshold: {} (least score {} + 0.2 × strictness {}), safety floor {}",
        header.effective_threshold,
        header.min_score_to_pass.get(),
        header.strictness.get(),
        header.safety_floor.get()
    ));
    let weights: Vec<String> = header
        .categories
        .iter()
        .map(|(id, weight)| format!("{} {weight}", category_name(id)))
        .collect();
    let digest: String = header.rubric_digest.chars().take(12).collect();
    lines.push(format!("Rubric {digest}: {}", weights.join(", ")));
    lines.push(format!("Seed {}; run again: {}", header.seed, rerun(header)));
    lines.push(format!("selftest {}", header.selftest_version));
    lines.iter().map(line).collect()
}

fn rerun(header: &RunHeader) -> String {
    let mut command = format!("selftest --seed {}", header.seed);
    let mut ids = header.scenario_ids.as_slice();
    if let Some(suite) = &header.suite {
        command += &format!(" --suite {}", selftest_text::wording::word(&suite.path));
        if suite.repeats > 1 {
            command += &format!(" --repeats {}", suite.repeats);
            ids = &ids[..ids.len() / suite.repeats as usize];
        }
    }
    let ids = ids.join(",");
    if ids.is_empty() || ids.len() > RERUN_IDS {
        return format!("{command} with the same scenarios");
    }
    format!("{command} --scenarios {ids}")
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use crate::report::fixture;
    use crate::report::state::RunState;

    fn markdown(state: &RunState) -> String {
        state.markdown("../../../reports/selftest/run.json").unwrap().unwrap()
    }

    #[test]
    fn reports() {
        insta::assert_snapshot!("report_rich", markdown(&fixture::rich_run()));
        let passed = fixture::state(&fixture::events(&fixture::passing_cases()));
        insta::assert_snapshot!("report_passed", markdown(&passed));
        insta::assert_snapshot!("report_empty", markdown(&fixture::state(&fixture::events(&[]))));
    }

    #[test]
    fn the_specified_layout() {
        let mut cases = fixture::passing_cases();
        let judgement = fixture::scored([0.5, 0.2, 0.4, 0.85], "hallucinated contradictions");
        cases.push(fixture::case(4, "contradiction_detect", judgement).into());
        let text = markdown(&fixture::state(&fixture::events(&cases)));
        let (head, rest) = text.split_once("\n\n95 % interval").unwrap();
        assert_eq!(
            head,
            "# Selftest Report: selftest-20260206-1234-bcdfgh\n\n\
             **Date:** 2026-02-06 12:34:56\n**Strictness:** 0.7\n**Pass Rate:** 4/5 (80%)"
        );
        let expected = "\n## Results\n\n\
             | Case | Status | Score | Pass |\n|------|--------|-------|------|\n\
             | ambiguous_request | COMPLETE | 0.94 | PASS |\n";
        assert!(rest.contains(expected), "{rest}");
        let expected = "\n## Failed Cases\n\n### contradiction_detect\n\
             - Expected: COMPLETE with accurate analysis\n\
             - Got: COMPLETE but hallucinated contradictions\n\
             - Score: 0.45 (below threshold 0.74)\n";
        assert!(rest.contains(expected), "{rest}");
        let expected =
            "\n## Recommendations\n- Review factuality handling for contradiction_detect";
        assert!(rest.contains(expected), "{rest}");
    }

    #[test]
    fn hostile_text_changes_nothing_in_the_structure() {
        let text = markdown(&fixture::rich_run());
        let events: Vec<Event<'_>> = Parser::new_ext(&text, Options::ENABLE_TABLES).collect();
        let mut links = 0;
        let mut headings = 0;
        let mut row = 0;
        for event in &events {
            match event {
                Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Image { .. }) => {
                    panic!("{event:?}")
                }
                Event::Start(Tag::Link { .. }) => links += 1,
                Event::Start(Tag::Heading { .. }) => headings += 1,
                Event::Start(Tag::TableRow) => row += 1,
                _ => {}
            }
        }
        assert_eq!(links, 1, "only the link to the JSON");
        // Title, eight sections, seven failed and six unscored cases.
        assert_eq!(headings, 1 + 8 + 7 + 6, "{text}");
        assert_eq!(row, 15 + 2 + 2, "cases, steps of the flow, rejected prompts");
    }
}
