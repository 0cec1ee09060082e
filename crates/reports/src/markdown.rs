//! The Markdown report of one run, in the layout of docs/spec/selftest.md#markdown-report: the table
//! of results and a section per case that did not pass, each with all its trials. Returns text and
//! opens no files.

use std::collections::BTreeMap;
use std::fmt;

use askama::Template;

use super::against::{self, CaseStanding};
use super::case_view::{self, CaseView, MAX_EXCERPT, RepeatedCaseView};
use super::causes::{CaseFault, SharedCause, SharedCauses};
use super::contrast::Contrast;
use super::document::RunEnd;
use super::traces::{self, EvidenceKind, EvidencePart};
use super::{recommendations, wording};
use selftest_harness::calibration::RunCalibration;
use selftest_harness::event::RunHeader;
use selftest_harness::gate::finding::{GateFinding, GatedCase};
use selftest_harness::judge::Verdict;
use selftest_harness::outcome::agreement::{
    JudgeSamples, PanelAgreement, VerdictChanges, is_disputed,
};
use selftest_harness::outcome::case::FormerVerdict;
use selftest_harness::outcome::usage::RunUsage;
use selftest_harness::outcome::{CaseResult, CaseStatus, RunSummary, SkillResult, StepKind};
use selftest_harness::sut::SandboxState;
use selftest_stats::score::Score;
use selftest_text::escape::{self, Markdown};
use selftest_text::wording::{self as text, plural};

/// Maximum length of a text within a line, in bytes.
const MAX_INLINE: usize = 700;
/// Maximum length of a reason in a table, in bytes.
const MAX_CELL: usize = 160;
/// Maximum number of cases named with a note.
const MAX_NAMED: usize = 8;
/// Maximum length of a quoted prompt or output, in bytes.
const MAX_QUOTE: usize = 1_500;
/// Maximum length of a comparison of two texts, in bytes.
const MAX_DIFFERENCE: usize = 4_000;
/// Maximum length of an excerpt, a protocol or a list of calls that is folded, in bytes.
const MAX_FOLDED: usize = 4_000;
/// Maximum length of the scenario IDs in the command to rerun, in bytes.
const MAX_RERUN_IDS: usize = 500;

/// Breaks a line inside a paragraph. A constant, because editors remove blanks at the end of a line.
const HARD_BREAK: &str = "  ";

/// Escapes every value in the Markdown templates, as configured in `askama.toml`, so that untrusted
/// text stays text. A value must be a single text, not several pieces. Only `|safe` bypasses it,
/// for fenced blocks, link targets, numbers and the harness's own text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Escaper;

impl askama::filters::Escaper for Escaper {
    fn write_escaped_str<W: fmt::Write>(&self, mut dest: W, text: &str) -> fmt::Result {
        write!(dest, "{}", escape::inline(text, MAX_INLINE))
    }
}

/// The data of a report.
#[derive(Template)]
#[template(path = "report.md")]
struct MarkdownPage<'a> {
    header: &'a RunHeader,
    summary: &'a RunSummary,
    end: Option<&'a RunEnd>,
    /// Number of changes since the baseline; absent without one.
    headline: Option<String>,
    /// Comparison with the baseline, in sentences; empty without a baseline.
    gate: Vec<String>,
    /// Causes that several cases have in common.
    causes: &'a [SharedCause],
    rows: Vec<ResultRow>,
    failed: Vec<CaseSection<'a>>,
    /// Pass rate corrected by labels, on one line.
    calibration: Option<String>,
    json_link: &'a str,
    cases: &'a [CaseView<'a>],
    repeated: Vec<RepeatedCaseView<'a>>,
    /// Results of the repeats, in sentences.
    repeats: Vec<String>,
    /// Results by skill; empty unless there are several skills.
    skills: Vec<SkillResult>,
    usage: Option<&'a RunUsage>,
    /// Sentences on whether skills were loaded as expected.
    loading: Vec<String>,
    /// Cases with more than one step.
    flows: Vec<&'a CaseView<'a>>,
    unscored: Vec<CaseSection<'a>>,
    /// Reasons why cases were not run, with the cases.
    not_run: Vec<(String, Vec<&'a str>)>,
    /// Scenario, number of the attempt, and the reason why its prompt was rejected.
    rejected: Vec<(&'a str, usize, &'a str)>,
    notes: Vec<String>,
    /// Number of cases by sandbox state; absent without a sandbox.
    isolation: Option<String>,
    /// Cases whose verdict differs from the one in the rejudged run.
    changed: Vec<(&'a CaseView<'a>, FormerVerdict)>,
    /// Agreement of a panel's judges, in sentences; empty for a single judge.
    panel: Vec<String>,
    /// Cases on which the judges disagree.
    disputed: Vec<&'a CaseView<'a>>,
    /// Consistency of a judge that was sampled several times, on one line.
    samples: Option<String>,
    /// Summary of how the verdicts changed since the rejudged run.
    changes: String,
}

/// The facts of a report.
pub(super) struct MarkdownView<'a> {
    pub(super) header: &'a RunHeader,
    /// Finished cases in plan order.
    pub(super) cases: Vec<&'a CaseResult>,
    pub(super) summary: &'a RunSummary,
    pub(super) warnings: &'a [String],
    /// Absent while the run is in progress.
    pub(super) end: Option<&'a RunEnd>,
    /// Pass rate corrected by labels.
    pub(super) calibration: Option<RunCalibration>,
    /// Usage of models; absent if unknown.
    pub(super) usage: Option<RunUsage>,
    /// Link from the Markdown file to the JSON file.
    pub(super) json_link: &'a str,
}

/// Renders the report as Markdown.
pub(super) fn render(view: &MarkdownView<'_>) -> Result<String, askama::Error> {
    let cases: Vec<CaseView<'_>> = view.cases.iter().map(|case| CaseView::new(case)).collect();
    // A case that was interrupted midway has something to show.
    let is_told = |case: &&CaseView<'_>| match case.status {
        CaseStatus::Skipped => false,
        CaseStatus::NotRun => !case.result.steps.is_empty(),
        status => status.pass().is_none(),
    };
    let causes = SharedCauses::of(view.cases.iter().filter_map(|case| CaseFault::of(case)));
    let gate = view.end.and_then(|end| end.gate.as_deref());
    let failed = cases.iter().filter(|case| case.status.pass() == Some(false));
    let page = MarkdownPage {
        header: view.header,
        summary: view.summary,
        end: view.end,
        headline: gate.map(against::headline),
        gate: gate.map(|gate| gate_sentences(gate, &view.cases)).unwrap_or_default(),
        causes: causes.all(),
        rows: results(&cases, &causes, gate),
        failed: sections(failed, &cases, &causes, gate),
        calibration: view.calibration.as_ref().map(RunCalibration::sentence),
        json_link: view.json_link,
        repeated: case_view::repeated(&cases),
        repeats: case_view::repeats(view.cases.iter().copied())
            .map(|repeats| repeats.sentences())
            .unwrap_or_default(),
        usage: view.usage.as_ref(),
        skills: case_view::skills(view.cases.iter().copied()),
        loading: case_view::loading(view.cases.iter().copied()),
        flows: cases.iter().filter(|case| case.result.steps.len() > 1).collect(),
        unscored: sections(cases.iter().filter(is_told), &cases, &causes, gate),
        not_run: not_run(&cases, &causes),
        rejected: view.cases.iter().flat_map(|case| rejected_prompts(case)).collect(),
        notes: notes(view),
        isolation: case_view::isolation(view.cases.iter().copied()),
        panel: PanelAgreement::of(view.cases.iter().copied())
            .map(|panel| panel.sentences())
            .unwrap_or_default(),
        disputed: cases.iter().filter(|case| is_disputed(&case.votes)).collect(),
        samples: JudgeSamples::of(view.cases.iter().copied()).map(|found| found.sentence()),
        changed: changed(&cases),
        changes: VerdictChanges::of(view.cases.iter().copied()).sentence(),
        cases: &cases,
    };
    page.render().map(|text| format!("{}\n", text.trim_end()))
}

/// Describes the comparison with the baseline. The reason of a case that failed is not repeated:
/// the case has a section of its own.
fn gate_sentences(gate: &GateFinding, cases: &[&CaseResult]) -> Vec<String> {
    let passed_all = |gated: &GatedCase| {
        let mut trials = cases.iter().filter(|case| case.scenario.id == gated.id);
        trials.all(|case| case.status().0 == CaseStatus::Passed)
    };
    let mut sentences = against::of_run(gate);
    sentences.extend(against::of_cases(gate, passed_all));
    sentences
}

impl MarkdownPage<'_> {
    fn outcome(&self) -> &'static str {
        wording::outcome(self.end.map(|end| end.outcome))
    }

    /// Returns true if any case has a reason to display.
    fn has_reasons(&self) -> bool {
        self.rows.iter().any(|row| !row.reason.is_empty())
    }

    /// Returns true if any repeated case has scores: checks decide without.
    fn has_mean_scores(&self) -> bool {
        self.repeated.iter().any(|case| case.mean.is_some())
    }

    /// Summarises how many protections were enforced, and what came of them.
    fn enforcement(&self) -> String {
        let words = wording::enforcement(&self.header.isolation);
        let cases = self.isolation.as_ref().map(|cases| format!("; cases: {cases}"));
        words + &cases.unwrap_or_default()
    }
}

/// Returns the reasons why cases were not run. A cause that is stated above is named by its number.
fn not_run<'a>(cases: &'a [CaseView<'_>], causes: &SharedCauses) -> Vec<(String, Vec<&'a str>)> {
    let skipped = cases.iter().filter(|case| case.was_not_run());
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for case in skipped {
        let reason = because(case, causes);
        match found.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(case.name()),
            None => found.push((reason, vec![case.name()])),
        }
    }
    found
}

/// Returns cases whose verdict has changed.
fn changed<'a>(cases: &'a [CaseView<'a>]) -> Vec<(&'a CaseView<'a>, FormerVerdict)> {
    let former = |case: &'a CaseView<'a>| {
        let former = case.result.former?;
        (former.status != case.status).then_some((case, former))
    };
    cases.iter().filter_map(former).collect()
}

fn counted(names: &[&str]) -> String {
    text::plural(names.len() as u64, "case")
}

/// Formats a text as a fenced block.
fn quoted(text: &str) -> Markdown {
    escape::fenced(text, MAX_QUOTE)
}

/// Formats a text inside a section that is folded as a fenced block.
fn folded(text: &str) -> Markdown {
    escape::fenced(text, MAX_FOLDED)
}

/// Formats two texts with the lines marked in which they differ.
fn marked(lines: &str) -> Markdown {
    escape::fenced_as("diff", lines, MAX_DIFFERENCE)
}

fn rejected_prompts(case: &CaseResult) -> impl Iterator<Item = (&str, usize, &str)> {
    let attempts = case.generation.attempts.iter().zip(1..);
    attempts.filter_map(|(attempt, number)| {
        Some((case.scenario.id.as_str(), number, attempt.rejected.as_deref()?))
    })
}

/// Returns the warnings of the run and the notes on cases. Cases with the same note share a line.
fn notes(view: &MarkdownView<'_>) -> Vec<String> {
    let mut on_cases: Vec<(String, Vec<String>)> = Vec::new();
    let mut positions: BTreeMap<String, usize> = BTreeMap::new();
    for case in &view.cases {
        let evidence = &case.evidence;
        let exit = evidence.exit.as_ref().filter(|exit| *exit != "exit code 0");
        // A program may exit with anything after a good answer.
        let exit = exit.filter(|_| case.status().0 != CaseStatus::Passed);
        let exit = exit.map(|exit| format!("the program ended with {exit}"));
        let tried = evidence.sandbox.as_ref().filter(|it| it.state != SandboxState::Clean);
        let tried = tried.map(|sandbox| format!("isolation {}", sandbox.summary()));
        let all = case.notes.iter().chain(&evidence.notes).chain(exit.as_ref()).chain(&tried);
        for note in all {
            // In the order in which the cases first show a note, which a map alone would lose.
            let position = *positions.entry(note.clone()).or_insert_with(|| {
                on_cases.push((note.clone(), Vec::new()));
                on_cases.len() - 1
            });
            on_cases[position].1.push(case.name());
        }
    }
    let line = |(note, names): (String, Vec<String>)| {
        let names = wording::listed(names.iter().map(String::as_str), MAX_NAMED);
        format!("{}: {note}", names.unwrap_or_default())
    };
    let advice = view.cases.iter().filter_map(|case| CaseView::new(case).advice());
    view.warnings.iter().cloned().chain(on_cases.into_iter().map(line)).chain(advice).collect()
}

fn rerun(header: &RunHeader) -> String {
    // A rejudgement sent nothing to the system under test, and neither should its repetition.
    if let Some(rejudged) = &header.rejudged {
        return format!("selftest judge rejudge {} --seed {}", rejudged.run_id, header.seed);
    }
    let mut command = format!("selftest --seed {}", header.seed);
    let mut ids = header.scenario_ids.as_slice();
    let replayed = header.suite.as_ref().filter(|suite| suite.replayed);
    if let Some(run) = replayed.and_then(|suite| suite.run_id.as_ref()) {
        return format!("selftest compare --replay {run} --seed {}", header.seed);
    }
    if let Some(suite) = &header.suite {
        command += &format!(" --suite {}", text::shell_quote(&suite.path));
        for name in &suite.allowed_commands {
            command += &format!(" --allow-commands {}", text::shell_quote(name));
        }
        if suite.repeats > 1 {
            command += &format!(" --repeats {}", suite.repeats);
            // With repeats, the plan lists all cases once per round.
            ids = &ids[..ids.len() / suite.repeats as usize];
        }
    }
    let ids = ids.join(",");
    if ids.is_empty() || ids.len() > MAX_RERUN_IDS {
        // A command line has a maximum length, so a long list stays out of it.
        return format!("{command} with the same scenarios");
    }
    format!("{command} --scenarios {ids}")
}

/// A row of the table of results.
struct ResultRow {
    name: String,
    /// Status of the task, with counts if trials differ.
    status: String,
    /// The score, or the mean over the trials.
    score: Option<Score>,
    label: String,
    /// Trials, passed trials, their share and its interval; absent in a run without repeats.
    trials: Option<[String; 4]>,
    /// Change against the baseline. Absent without one.
    standing: Option<&'static str>,
    reason: String,
}

/// A case that did not pass.
struct CaseSection<'a> {
    heading: String,
    /// The first trial that did not pass.
    case: &'a CaseView<'a>,
    /// How many trials passed; absent in a run without repeats.
    trials: Option<String>,
    /// Further trials that did not pass, by reason.
    others: Vec<String>,
    /// Change against the baseline. Absent if there is none, or no baseline.
    standing: Option<&'static str>,
    /// The reason, or the cause that states it.
    because: String,
    contrast: Option<Contrast>,
    evidence: Vec<EvidencePart>,
    /// Absent if the system under test does not report them.
    calls: Option<Vec<String>>,
}

impl CaseSection<'_> {
    /// Returns true if the reason is not already part of what the case got.
    fn has_own_reason(&self) -> bool {
        !self.case.got(&self.because).contains(&self.because)
    }

    /// Returns the reference, unless the comparison with it is shown.
    fn reference(&self) -> Option<&str> {
        let is_shown = self.contrast.as_ref().is_some_and(Contrast::has_reference);
        traces::reference(self.case.result).filter(|_| !is_shown)
    }

    /// Counts the tool calls.
    fn call_words(&self) -> String {
        plural(self.calls.as_ref().map_or(0, Vec::len) as u64, "tool call")
    }

    /// Lists what the evidence consists of. Without paths: nothing foreign stands in a heading that
    /// is markup.
    fn evidence_words(&self) -> String {
        let is_excerpt = |part: &&EvidencePart| matches!(part.kind, EvidenceKind::Excerpt(_));
        let excerpts = self.evidence.iter().filter(is_excerpt).count() as u64;
        let others = self.evidence.iter().filter(|part| !is_excerpt(part));
        let mut words: Vec<String> = others.map(|part| part.title().to_lowercase()).collect();
        if excerpts > 0 {
            words.insert(0, plural(excerpts, "excerpt"));
        }
        words.join(", ")
    }
}

/// Returns the reason of a case, or the cause that states it.
fn because(case: &CaseView<'_>, causes: &SharedCauses) -> String {
    let shared = causes.of_fault(CaseFault::of(case.result)).map(SharedCause::name);
    shared.or_else(|| case.reason.clone()).unwrap_or_default()
}

fn standing(case: &CaseView<'_>, gate: Option<&GateFinding>) -> Option<&'static str> {
    gate.map(|gate| CaseStanding::of(gate, &case.result.scenario.id).label())
}

/// Returns one row per case, in plan order.
fn results(
    cases: &[CaseView<'_>],
    causes: &SharedCauses,
    gate: Option<&GateFinding>,
) -> Vec<ResultRow> {
    let repeated = case_view::repeated(cases);
    let single = cases.iter().filter(|case| case.result.repeat.is_none());
    let mut rows: Vec<ResultRow> = single
        .map(|case| ResultRow {
            name: case.name().to_owned(),
            status: case.task_status_word().to_owned(),
            score: case.score(),
            label: case.label(),
            trials: None,
            standing: standing(case, gate),
            reason: because(case, causes),
        })
        .collect();
    let all_trials = repeated.iter().map(|found| {
        let trials: Vec<&CaseView<'_>> =
            cases.iter().filter(|case| case.result.scenario.id == found.id).collect();
        let reasons = trials.iter().map(|case| because(case, causes));
        ResultRow {
            name: found.id.to_owned(),
            status: statuses(&trials),
            score: found.mean,
            label: found.result().label().to_owned(),
            trials: Some([
                found.trials().to_string(),
                found.passed_words(),
                found.rate(),
                found.interval(),
            ]),
            standing: trials.first().and_then(|case| standing(case, gate)),
            reason: reasons.into_iter().find(|reason| !reason.is_empty()).unwrap_or_default(),
        }
    });
    rows.extend(all_trials);
    rows
}

/// Returns the task statuses of the trials, the most frequent first.
fn statuses(trials: &[&CaseView<'_>]) -> String {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for case in trials {
        *counts.entry(case.task_status_word()).or_default() += 1;
    }
    // The trials column has the count already.
    if let [only] = counts.keys().collect::<Vec<_>>()[..] {
        return (*only).to_owned();
    }
    let mut counts: Vec<(&str, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    words.join(", ")
}

/// Returns one section per case: its first trial among `shown`, and what became of the others.
fn sections<'a>(
    shown: impl Iterator<Item = &'a CaseView<'a>>,
    all: &'a [CaseView<'a>],
    causes: &SharedCauses,
    gate: Option<&GateFinding>,
) -> Vec<CaseSection<'a>> {
    let repeated = case_view::repeated(all);
    let mut sections: Vec<CaseSection<'a>> = Vec::new();
    let mut stated: Vec<(String, &str)> = Vec::new();
    for case in shown {
        let id = case.result.scenario.id.as_str();
        let because = because(case, causes);
        // Of repeated trials only the first has a section; the others get one line in it.
        let same_case = |section: &&mut CaseSection<'_>| section.case.result.scenario.id == id;
        if let Some(section) = sections.iter_mut().find(same_case) {
            let same = section.because == because;
            let words = if same { "the same" } else { because.as_str() };
            section.others.push(format!("{}: {}: {words}", case.name(), case.label()));
            continue;
        }
        let mut evidence = traces::evidence(case.result);
        // The notes of the report state these, once for all cases.
        evidence.retain(|part| !matches!(part.kind, EvidenceKind::Exit | EvidenceKind::Isolation));
        // What a program printed before it failed in the same way is shown once.
        for part in evidence.iter_mut().filter(|part| part.kind == EvidenceKind::Stderr) {
            match stated.iter().find(|(known, _)| *known == part.text) {
                Some((_, name)) => part.text = format!("(the same as of {name})"),
                None => stated.push((part.text.clone(), case.name())),
            }
        }
        let found = repeated.iter().find(|found| found.id == id);
        let trials = found.map(|found| format!("{}; this is {}", found.sentence(), case.name()));
        sections.push(CaseSection {
            heading: if found.is_some() { id.to_owned() } else { case.name().to_owned() },
            case,
            trials,
            others: Vec::new(),
            standing: standing(case, gate).filter(|label| *label != CaseStanding::Same.label()),
            because: if because.is_empty() { "did not pass".to_owned() } else { because },
            contrast: Contrast::of(case.result),
            evidence,
            calls: traces::tool_calls(case.result),
        });
    }
    sections
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pulldown_cmark::{Event, Options, Parser, Tag};
    use serde_json::json;

    use crate::fixture;
    use crate::state::RunState;
    use selftest_harness::outcome::case::Interruption;

    fn markdown(state: &RunState) -> String {
        state.markdown("../../../reports/selftest/run.json").unwrap().unwrap()
    }

    #[test]
    fn reports() {
        insta::assert_snapshot!("report_rich", markdown(&fixture::rich_run()));
        let passed = fixture::state(&fixture::events(&fixture::passing_cases()));
        insta::assert_snapshot!("report_passed", markdown(&passed));
        let gone = fixture::state(&fixture::events(&fixture::cases_without_a_model()));
        insta::assert_snapshot!("report_without_a_model", markdown(&gone));
        insta::assert_snapshot!("report_empty", markdown(&fixture::state(&fixture::events(&[]))));
    }

    #[test]
    fn a_run_that_a_panel_judged() {
        let text = markdown(&fixture::state(&fixture::events(&fixture::cases_of_a_panel())));
        let section = text.split("## Results").nth(1).unwrap();
        insta::assert_snapshot!(section.split("## Failed Cases").next().unwrap().trim());
    }

    #[test]
    fn a_run_of_answers_that_are_judged_again() {
        let (cases, header) = fixture::rejudged();
        let text = markdown(&fixture::state(&fixture::events_of(header, &cases)));
        let section = text.split("## Rejudged").nth(1).unwrap();
        insta::assert_snapshot!(section.split("## Failed Cases").next().unwrap().trim());
        assert!(
            text.contains("rerun: selftest judge rejudge selftest-20260205-0800-vwxyz2 --seed 42"),
            "{text}"
        );
    }

    #[test]
    fn the_specified_layout() {
        let mut cases = fixture::passing_cases();
        let judgement = fixture::scored([0.5, 0.2, 0.4, 0.85], "hallucinated contradictions");
        cases.push(fixture::case(4, "contradiction_detect", judgement).into());
        let text = markdown(&fixture::state(&fixture::events(&cases)));
        let (head, rest) = text.split_once("\n\nOutcome: failed. 95 % interval").unwrap();
        assert_eq!(
            head,
            "# Selftest Report: selftest-20260206-1234-bcdfgh\n\n\
             **Date:** 2026-02-06 12:34:56  \n**Strictness:** 0.7  \n**Pass Rate:** 4/5 (80%)"
        );
        let expected = "\n## Results\n\n\
             | Case | Status | Score | Pass | Reason |\n|------|--------|-------|------|--------|\n\
             | ambiguous_request | COMPLETE | 0.94 | PASS |  |\n";
        assert!(rest.contains(expected), "{rest}");
        let expected = "\n## Failed Cases\n\n### contradiction_detect\n\
             - Reason: answer: overall 0.45 is below threshold 0.74\n\
             - Expected: COMPLETE with accurate analysis\n\
             - Got: COMPLETE but hallucinated contradictions\n\
             - Score: 0.45 (below threshold 0.74)\n";
        assert!(rest.contains(expected), "{rest}");
        let expected =
            "\n## Recommendations\n- Review factuality handling for contradiction_detect";
        assert!(rest.contains(expected), "{rest}");
    }

    /// Returns true for the tags of a folded section with a heading of letters and numbers.
    fn is_ours(tag: &str) -> bool {
        let tag = tag.trim_end();
        let heading = tag.strip_prefix("<details><summary>");
        let heading = heading.and_then(|rest| rest.strip_suffix("</summary>"));
        let plain = |c: char| c.is_ascii_alphanumeric() || " ,:;".contains(c);
        tag == "</details>" || heading.is_some_and(|words| words.chars().all(plain))
    }

    #[test]
    fn the_lines_of_the_head_stand_on_their_own() {
        let text = markdown(&fixture::rich_run());
        let breaks = Parser::new(&text).filter(|event| *event == Event::HardBreak).count();
        assert_eq!(breaks, 2, "between date, strictness and pass rate");
    }

    #[test]
    fn a_cause_of_many_cases_stands_once() {
        let broken = |index: usize| {
            let id = format!("case-{index}");
            let mut case = fixture::case(index, &id, fixture::scored([1.0; 4], ""));
            let why = "KeyError: 'discount' in agent.py".to_owned();
            case.interruption = Some(Interruption::SutError(why));
            case.evidence.stderr = Some("Traceback (most recent call last)".to_owned());
            case.evidence.exit = Some("exit code 1".to_owned());
            case.steps.clear();
            Arc::new(case)
        };
        let cases: Vec<_> = (0..8).map(broken).collect();
        let text = markdown(&fixture::state(&fixture::events(&cases)));
        for words in ["KeyError", "Traceback", "the program ended with exit code 1"] {
            assert_eq!(text.matches(words).count(), 1, "{words} in {text}");
        }
        assert!(
            text.contains("| 1 | SUT ERROR | KeyError: 'discount' in agent.py | case-0, case-1")
        );
        assert!(text.contains("### case-7\n- Expected: COMPLETE"), "{text}");
        assert!(text.contains("- Got: SUT ERROR: cause 1\n"), "{text}");
    }

    #[test]
    fn trials_of_a_case_share_a_row_and_a_section() {
        let trial = |index: usize, repeat, score: f64| {
            let mut case = fixture::case(index, "a", fixture::scored([score; 4], "hm"));
            case.repeat = Some(repeat);
            Arc::new(case)
        };
        let cases = [trial(0, 1, 1.0), trial(1, 2, 0.3), trial(2, 3, 0.2)];
        let text = markdown(&fixture::state(&fixture::events(&cases)));
        let row = "| a | COMPLETE | 0.50 | FLAKY | 3 | 1 of 3 | 33 % | 6 % to 79 % | answer: overall 0.30";
        assert!(text.contains(row), "{text}");
        assert_eq!(text.matches("### a\n").count(), 1, "{text}");
        assert!(text.contains("this is a #2"), "{text}");
        assert!(text.contains("- a #3: FAIL: answer: overall 0.20"), "{text}");
    }

    #[test]
    fn a_failed_case_shows_its_grounds() {
        let mut case = fixture::case(0, "a", fixture::scored([0.3; 4], "hm"));
        let grounds = &mut case.case.as_mut().unwrap().grounds;
        grounds.reference = Some("Here is the ferry.".to_owned());
        grounds.expectations = vec!["It names the ferry".to_owned()];
        grounds.facts = vec!["The ferry leaves at seven.".to_owned()];
        let call = json!({ "name": "read", "arguments": { "path": "<b>" } });
        let reply = case.steps[0].reply.as_mut().unwrap();
        reply.output = "Here is the bus.".to_owned();
        reply.tool_calls = Some(vec![serde_json::from_value(call).unwrap()]);
        let text = markdown(&fixture::state(&fixture::events(&[Arc::new(case)])));
        for part in [
            "```diff\n- Here is the ferry.\n+ Here is the bus.\n```",
            "\n\nReference against answer, `-` is expected",
            "Expectations:\n\n- It names the ferry\n",
            "<details><summary>1 tool call</summary>\n\n```text\nread {\"path\":\"<b>\"}\n```",
            "<details><summary>Evidence: facts of the project</summary>",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
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
                // The folded sections are ours, and hold nothing foreign in their headings.
                Event::Html(tag) if is_ours(tag) => {}
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
        // Title, nine sections, seven failed and six unscored cases.
        assert_eq!(headings, 1 + 9 + 7 + 6, "{text}");
        assert_eq!(row, 15 + 2 + 2 + 4 + 4, "cases, steps, rejected prompts, questions, costs");
    }
}
