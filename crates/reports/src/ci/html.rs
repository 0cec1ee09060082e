//! A run as one self-contained HTML page: for people, as a build artefact.
//!
//! Output of models and programs can only be text: the template escapes every value, and a content
//! security policy allows only the page's own style and script, by their digests. With more cases,
//! their texts are truncated further to keep the page small.

use std::collections::BTreeMap;

use askama::Template;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use selftest_text::escape::{block, terminal};
use selftest_text::wording::{date_time, duration, plural};
use sha2::{Digest as _, Sha256};

use super::{CiRunView, MISSING};
use crate::against::{self, CaseStanding};
use crate::case_view::{self, CaseView, RepeatedCaseView};
use crate::causes::{CaseFault, SharedCause, SharedCauses};
use crate::contrast::{Contrast, PieceKind};
use crate::{traces, wording};
use selftest_checks::check::CheckOutcome;
use selftest_harness::gate::finding::CaseChange;
use selftest_harness::judge::fitness::JudgeFitness;
use selftest_harness::judge::{ScoredQuestion, Verdict};
use selftest_harness::outcome::repeats::RepeatedResult;
use selftest_harness::outcome::usage::RoleUsage;
use selftest_harness::outcome::{CaseStep, CheckResult, RunOutcome, StepKind};
use selftest_harness::sut::SandboxEvidence;

/// The page's style.
const STYLE: &str = include_str!("../../templates/ci_report.css");
/// Script to filter, sort and expand; the page is readable without it.
const SCRIPT: &str = include_str!("../../templates/ci_report.js");

/// Target for the maximum size of a page, in bytes.
const MAX_BYTES: usize = 2_000_000;
/// Maximum length of a line, in bytes.
const MAX_LINE: usize = 400;

/// Minimum limit on texts at which differences are marked too.
const MIN_CONTRAST: usize = 2_000;

/// Limits on the details of each case.
#[derive(Debug, Clone, Copy)]
struct PageBounds {
    /// Maximum length of a prompt, an answer or a judge's comment, in bytes.
    text: usize,
    /// The same for a case that passed: readers look at the others.
    passed_text: usize,
    /// Maximum number of questions and checks per case.
    lines: usize,
}

/// Limits from generous to strict. The first one that keeps the page small enough is used,
/// otherwise the last.
const BOUNDS: [PageBounds; 7] = [
    PageBounds { text: 20_000, passed_text: 20_000, lines: 100 },
    PageBounds { text: 4_000, passed_text: 4_000, lines: 30 },
    PageBounds { text: 2_000, passed_text: 800, lines: 20 },
    PageBounds { text: 1_200, passed_text: 300, lines: 10 },
    PageBounds { text: 600, passed_text: 150, lines: 6 },
    PageBounds { text: 300, passed_text: 100, lines: 3 },
    PageBounds { text: 80, passed_text: 80, lines: 0 },
];

/// The page, escaped by the template.
#[derive(Template)]
#[template(path = "ci_report.html")]
struct HtmlPage<'a> {
    style_source: String,
    script_source: String,
    outcome: &'static str,
    outcome_class: &'static str,
    rate: String,
    run_id: &'a str,
    date: String,
    took: Option<String>,
    /// Class, start and width in percent.
    shares: Vec<(&'static str, String, String)>,
    counts: String,
    interval: Option<String>,
    calibration: Option<String>,
    /// Number of changes since the baseline, and what the gate found; absent without a baseline.
    gate: Option<(String, Vec<String>)>,
    causes: Vec<HtmlCause>,
    facts: Vec<(&'static str, String)>,
    isolation: Option<HtmlIsolation>,
    usage: Vec<UsageRow>,
    has_money: bool,
    warnings: Vec<String>,
    /// Value, label and count of each result.
    kinds: [(&'static str, &'static str, usize); 4],
    /// Value, label and count of each change since the baseline; empty without one.
    groups: Vec<(String, &'static str, usize)>,
    cases: Vec<HtmlCase>,
    missing: String,
    version: &'a str,
    /// Note about omitted parts, if any.
    cut: Option<String>,
}

/// The usage of one role.
struct UsageRow {
    role: &'static str,
    calls: String,
    tokens_in: String,
    tokens_out: String,
    time: String,
    cost: String,
}

/// A cause of several cases.
struct HtmlCause {
    name: String,
    class: &'static str,
    label: &'static str,
    reason: String,
    cases: String,
}

/// The protections of a run.
struct HtmlIsolation {
    summary: String,
    lines: Vec<String>,
}

/// A case on the page, or one of its trials.
struct HtmlCase {
    number: usize,
    kind: &'static str,
    label: String,
    name: String,
    score: String,
    ms: u64,
    time: String,
    /// Cost as a plain number, for sorting.
    amount: String,
    cost: String,
    /// How it stands against the baseline, if there is one.
    against: Option<CaseStanding>,
    /// What a reader of the list should know: the reason or the cause, and the trials.
    why: String,
    reason: Option<String>,
    contrast: Option<Contrast>,
    /// Headings with their texts.
    texts: Vec<(String, String)>,
    expectations: Vec<String>,
    checks: Vec<(&'static str, String, String)>,
    questions: Vec<(&'static str, String, String)>,
    /// Evidence and tool calls: headings with their texts.
    folded: Vec<(String, String)>,
    facts: String,
    /// The trials of a repeated case.
    trials: Vec<HtmlCase>,
}

impl HtmlCase {
    /// Adds a trial to a repeated case.
    fn add_trial(&mut self, mut trial: HtmlCase) {
        let is_first = self.trials.iter().all(|earlier| earlier.kind == "passed");
        if is_first && trial.kind != "passed" && !trial.why.is_empty() {
            self.why = format!("{}; {}", self.why, trial.why);
        }
        // Its line in the list of trials has no room for the reason.
        if trial.reason.is_none() && !trial.why.is_empty() {
            trial.reason = Some(std::mem::take(&mut trial.why));
        }
        self.ms += trial.ms;
        self.time = duration(self.ms);
        self.trials.push(trial);
    }

    /// Returns the key by which cases are sorted: what needs attention first.
    fn rank(&self) -> u8 {
        let regression = CaseStanding::Changed(CaseChange::Regression);
        match self.kind {
            "failed" if self.against == Some(regression) => 0,
            "failed" => 1,
            "open" => 2,
            "passed" => 3,
            _ => 4,
        }
    }
}

/// Renders the page of a run.
pub(super) fn render(run: &CiRunView<'_>) -> Result<String, askama::Error> {
    // Try the most generous limits first, and render again until the page is small enough.
    let mut text = page(run, BOUNDS[0]).render()?;
    for bounds in &BOUNDS[1..] {
        if text.len() <= MAX_BYTES {
            break;
        }
        let mut shorter = page(run, *bounds);
        shorter.cut = Some(format!(
            "texts are truncated to {} bytes, to {} in passed cases; the JSON report is complete",
            bounds.text, bounds.passed_text
        ));
        text = shorter.render()?;
    }
    Ok(text)
}

fn page<'a>(run: &CiRunView<'a>, bounds: PageBounds) -> HtmlPage<'a> {
    let document = run.document;
    let summary = &document.summary;
    let views = run.cases();
    let causes = SharedCauses::of(run.results.iter().filter_map(CaseFault::of));
    let mut cases = all_cases(run, &views, &causes, bounds);
    let removed = document.gate.iter().flat_map(|gate| &gate.removed);
    let gone = removed.zip(cases.len() + 1..).map(|(id, number)| removed_case(id, number));
    cases.extend(gone.collect::<Vec<_>>());
    // Stable, so that equals stay in the order of the plan.
    cases.sort_by_key(HtmlCase::rank);
    let count = |kind: &str| cases.iter().filter(|case| case.kind == kind).count();
    let (passed, failed, open) = (count("passed"), count("failed"), count("open"));
    let missing = run.missing();
    let missing = match missing.len() {
        0 => String::new(),
        count => format!("{}: {MISSING}.", plural(count as u64, "case")),
    };
    let rows = run.usage.as_ref().map(|usage| usage.usage.rows()).unwrap_or_default();
    let currency = run.currency();
    let row = |(role, used): (&'static str, &RoleUsage)| UsageRow {
        role,
        calls: used.calls.to_string(),
        tokens_in: match used.undivided_tokens {
            0 => wording::tokens_in(used),
            tokens if used.calls == 0 => format!("{tokens} in and out"),
            tokens => format!("{}, {tokens} in and out", wording::tokens_in(used)),
        },
        tokens_out: wording::tokens_out(used),
        time: duration(used.model_ms),
        cost: wording::cost(used, currency).unwrap_or_default(),
    };
    HtmlPage {
        // The policy of the page allows exactly these two texts by their digests, so a text of a
        // model that breaks out of its element still runs nothing.
        style_source: source(STYLE),
        script_source: source(SCRIPT),
        outcome: wording::outcome(document.outcome),
        outcome_class: match document.outcome {
            Some(RunOutcome::Passed) => "passed",
            Some(RunOutcome::Failed) => "failed",
            _ => "open",
        },
        rate: wording::pass_rate(summary),
        run_id: document.run_id.as_str(),
        date: date_time(document.timestamp),
        took: run.wall_ms().map(duration),
        shares: shares([
            ("passed", summary.passed),
            ("failed", summary.failed),
            ("open", summary.unscored),
        ]),
        counts: {
            let unchanged = wording::unchanged(summary);
            let unchanged = unchanged.map(|words| format!("; {words}")).unwrap_or_default();
            let trials = if summary.repeats.is_some() { "trials: " } else { "" };
            format!(
                "{trials}{} passed, {} failed, {} without a verdict{unchanged}",
                summary.passed, summary.failed, summary.unscored
            )
        },
        interval: wording::interval(summary),
        calibration: document
            .calibration
            .as_ref()
            .map(|found| terminal(&found.sentence(), MAX_LINE)),
        facts: facts(run),
        usage: rows.into_iter().map(row).collect(),
        has_money: currency.is_some(),
        warnings: document.warnings.iter().map(|words| terminal(words, MAX_LINE)).collect(),
        groups: groups(&cases),
        gate: document.gate.as_ref().map(|gate| {
            // What was compared is among the facts of the run.
            let findings = against::of_run(gate).into_iter().skip(1);
            let lines = findings.map(|line| terminal(&line, 2 * MAX_LINE)).collect();
            (against::headline(gate), lines)
        }),
        causes: causes.all().iter().map(cause).collect(),
        isolation: isolation(run),
        kinds: [
            ("", "all", cases.len()),
            ("failed", "failed", failed),
            ("open", "no verdict", open),
            ("passed", "passed", passed),
        ],
        cases,
        missing,
        version: &document.selftest_version,
        cut: None,
    }
}

fn cause(cause: &SharedCause) -> HtmlCause {
    HtmlCause {
        name: cause.name(),
        class: class(cause.status.pass()),
        label: cause.status.label(),
        reason: terminal(&cause.reason, MAX_LINE),
        cases: terminal(&cause.cases(), 2 * MAX_LINE),
    }
}

/// Returns the CSS class of a result.
const fn class(pass: Option<bool>) -> &'static str {
    match pass {
        Some(true) => "passed",
        Some(false) => "failed",
        None => "open",
    }
}

fn isolation(run: &CiRunView<'_>) -> Option<HtmlIsolation> {
    let isolation = &run.document.isolation;
    let mut summary = wording::enforcement(isolation);
    if let Some(cases) = case_view::isolation(run.results.iter()) {
        summary += &format!("; cases: {cases}");
    }
    let enforced = isolation.enforced.iter().map(|line| format!("Enforced: {line}"));
    let missing = isolation.not_enforced.iter().map(|line| format!("Not enforced: {line}"));
    // What is not enforced goes first, because the reader has to act on it.
    let lines: Vec<String> = missing.chain(enforced).map(|line| terminal(&line, 1_000)).collect();
    (!lines.is_empty()).then_some(HtmlIsolation { summary, lines })
}

/// Counts the cases per change since the baseline, worst first.
fn groups(cases: &[HtmlCase]) -> Vec<(String, &'static str, usize)> {
    let mut counts: BTreeMap<CaseStanding, usize> = BTreeMap::new();
    for standing in cases.iter().filter_map(|case| case.against) {
        *counts.entry(standing).or_default() += 1;
    }
    if counts.is_empty() {
        return Vec::new();
    }
    let all = (String::new(), "all", cases.len());
    let counted = counts.into_iter().map(|(it, count)| (it.value(), it.label(), count));
    std::iter::once(all).chain(counted).collect()
}

/// Returns the row of a case that only the baseline has.
fn removed_case(id: &str, number: usize) -> HtmlCase {
    HtmlCase {
        number,
        kind: "gone",
        label: CaseStanding::Removed.label().to_owned(),
        name: terminal(id, MAX_LINE),
        score: wording::score(None),
        ms: 0,
        time: String::new(),
        amount: String::new(),
        cost: String::new(),
        against: Some(CaseStanding::Removed),
        why: String::new(),
        reason: None,
        contrast: None,
        texts: Vec::new(),
        expectations: Vec::new(),
        checks: Vec::new(),
        questions: Vec::new(),
        folded: Vec::new(),
        facts: "in the baseline, no longer in the suite".to_owned(),
        trials: Vec::new(),
    }
}

/// Returns one entry per case in plan order: a repeated case holds its trials.
fn all_cases(
    run: &CiRunView<'_>,
    views: &[CaseView<'_>],
    causes: &SharedCauses,
    bounds: PageBounds,
) -> Vec<HtmlCase> {
    let repeated = case_view::repeated(views);
    let mut number = 0;
    let mut found: Vec<HtmlCase> = Vec::new();
    let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
    for view in views {
        let id = view.result.scenario.id.as_str();
        let trial = case(run, view, number + 1, causes, bounds);
        let group = repeated.iter().find(|group| view.result.repeat.is_some() && group.id == id);
        match (group, positions.get(id)) {
            // Positions are recorded when a row is pushed, and rows are never removed.
            (Some(_), Some(position)) => found[*position].add_trial(trial),
            (Some(group), None) => {
                positions.insert(id, found.len());
                number += 1;
                found.push(repeated_case(run, group, trial));
            }
            (None, _) => {
                number += 1;
                found.push(trial);
            }
        }
    }
    found
}

/// Returns the row of a repeated case, with its first trial.
fn repeated_case(run: &CiRunView<'_>, group: &RepeatedCaseView<'_>, trial: HtmlCase) -> HtmlCase {
    let gate = run.document.gate.as_ref();
    let row = HtmlCase {
        kind: match group.result() {
            RepeatedResult::Passed => "passed",
            RepeatedResult::Failed | RepeatedResult::Flaky => "failed",
            RepeatedResult::Unscored => "open",
        },
        label: group.result().label().to_owned(),
        score: wording::score(group.mean),
        against: gate.map(|gate| CaseStanding::of(gate, group.id)),
        why: match group.result() {
            RepeatedResult::Unscored => group.sentence(),
            RepeatedResult::Passed | RepeatedResult::Failed | RepeatedResult::Flaky => {
                format!("{}, {}", plural(group.trials(), "trial"), group.sentence())
            }
        },
        // The fields of a row that only its trials fill are the same as of a removed case.
        ..removed_case(group.id, trial.number)
    };
    let mut row = HtmlCase { facts: String::new(), ..row };
    row.add_trial(trial);
    row
}

/// Returns the digest by which the content security policy allows exactly this text.
fn source(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

fn shares(counts: [(&'static str, u32); 3]) -> Vec<(&'static str, String, String)> {
    let total: u32 = counts.iter().map(|(_, count)| count).sum();
    let mut before = 0;
    let mut found = Vec::new();
    for (class, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        // Parts of zero are filtered out, so `total` is not 0 here.
        found.push((class, share(before, total), share(count, total)));
        before += count;
    }
    found
}

fn share(count: u32, total: u32) -> String {
    format!("{:.2}", f64::from(count) * 100.0 / f64::from(total))
}

/// Returns facts about the run as key and value.
fn facts(run: &CiRunView<'_>) -> Vec<(&'static str, String)> {
    let document = run.document;
    let models = &document.models;
    let fitness = models.judge_fitness.as_ref().map(JudgeFitness::summary);
    let suite = document.suite.as_ref().map(|suite| suite.path.clone());
    let gate = document.gate.as_ref();
    let known = [
        ("Baseline", gate.and_then(|gate| against::of_run(gate).into_iter().next())),
        ("Judge", Some(models.judge.clone())),
        ("Judge measured", fitness),
        ("Generator", models.generator.clone()),
        ("System under test", Some(document.sut.clone())),
        ("Model under test", models.sut.clone()),
        ("Suite", suite),
        ("Threshold", Some(document.config.effective_threshold.to_string())),
        ("Seed", Some(document.seed.to_string())),
        ("Changed project files", joined(&document.changed_files)),
    ];
    let line = |(key, value): (&'static str, Option<String>)| Some((key, terminal(&value?, 1_000)));
    known.into_iter().filter_map(line).collect()
}

fn joined(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join("; "))
}

fn case(
    run: &CiRunView<'_>,
    case: &CaseView<'_>,
    number: usize,
    causes: &SharedCauses,
    bounds: PageBounds,
) -> HtmlCase {
    let result = case.result;
    let used = run.usage(case);
    let currency = run.currency();
    let mut facts: Vec<String> = Vec::new();
    let gate = run.document.gate.as_ref();
    let gated = gate.and_then(|gate| gate.of_case(&result.scenario.id));
    if let Some(gated) = gated {
        let label = gated.change.label();
        let words = against::details(gated, case.reason.as_deref());
        let words = if words.is_empty() { words } else { format!(", {words}") };
        facts.push(format!("compared with the baseline: {label}{words}"));
    }
    if !used.is_empty() {
        facts.push(wording::usage(&used.total, currency));
    }
    if traces::tool_calls(result).is_some_and(|calls| calls.is_empty()) {
        facts.push("no tool calls".to_owned());
    }
    facts.push(result.session_id.to_string());
    let sandbox = result.evidence.sandbox.as_ref().map(SandboxEvidence::summary);
    facts.extend(sandbox.map(|line| terminal(&format!("isolation {line}"), MAX_LINE)));
    let notes = result.notes.iter().chain(&result.evidence.notes);
    facts.extend(notes.map(|note| terminal(note, MAX_LINE)));
    let shared = causes.of_fault(CaseFault::of(result)).map(SharedCause::name);
    // A page that is cut that far has no room for both sides of a difference.
    let contrast = Contrast::of(result).filter(|_| bounds.text >= MIN_CONTRAST);
    let reason = case.reason.as_deref().map(|reason| terminal(reason, MAX_LINE));
    HtmlCase {
        number,
        kind: class(case.status.pass()),
        label: case.label(),
        name: terminal(case.name(), MAX_LINE),
        score: wording::score(case.score()),
        ms: result.duration_ms,
        time: duration(result.duration_ms),
        amount: used.total.cost.map(|cost| cost.to_string()).unwrap_or_default(),
        cost: wording::cost(&used.total, currency).unwrap_or_default(),
        against: gate.map(|gate| CaseStanding::of(gate, &result.scenario.id)),
        // The list states it, unless it refers to the cause.
        reason: reason.clone().filter(|_| shared.is_some()),
        why: shared.or(reason).unwrap_or_default(),
        texts: texts(case, contrast.as_ref(), bounds),
        contrast,
        expectations: traces::expectations(result)
            .iter()
            .take(bounds.lines)
            .map(|words| terminal(words, MAX_LINE))
            .collect(),
        checks: result.checks.iter().take(bounds.lines).map(check).collect(),
        questions: case_view::asked(case).into_iter().take(bounds.lines).map(question).collect(),
        folded: folded(case, bounds),
        facts: facts.join("; "),
        trials: Vec::new(),
    }
}

/// Returns the tool calls and the evidence.
fn folded(case: &CaseView<'_>, bounds: PageBounds) -> Vec<(String, String)> {
    let passed = case.status.pass() == Some(true);
    let limit = if passed { bounds.passed_text } else { bounds.text };
    let mut found = Vec::new();
    if let Some(calls) = traces::tool_calls(case.result).filter(|calls| !calls.is_empty()) {
        let heading = plural(calls.len() as u64, "tool call");
        found.push((heading, block(&calls.join("\n"), limit)));
    }
    let parts = traces::evidence(case.result).into_iter().take(bounds.lines);
    found.extend(parts.map(|part| {
        let heading = format!("Evidence: {}", terminal(part.title(), MAX_LINE));
        (heading, block(part.text.trim_end(), limit))
    }));
    found
}

/// Returns the exchanges in order.
fn texts(
    case: &CaseView<'_>,
    contrast: Option<&Contrast>,
    bounds: PageBounds,
) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let passed = case.status.pass() == Some(true);
    let limit = if passed { bounds.passed_text } else { bounds.text };
    let mut add = |heading: String, text: &str| {
        if !text.trim().is_empty() {
            found.push((heading, block(text.trim_end(), limit)));
        }
    };
    let prompt = case.result.case.as_ref().map(|generated| generated.prompt.as_str());
    if let Some(prompt) = prompt {
        add("Prompt".to_owned(), prompt);
    }
    for step in &case.result.steps {
        // The first input usually is the prompt, which is already there.
        if prompt != Some(step.input.as_str()) {
            add(format!("Input ({})", step.name()), &step.input);
        }
        if let Some(reply) = &step.reply {
            let expected = if reply.status == step.expected_status {
                String::new()
            } else {
                format!(", expected {}", step.expected_status)
            };
            add(format!("{} ({}{expected})", answer(step), reply.status), &reply.output);
        }
        match step.judgement.as_ref().map(|judgement| &judgement.verdict) {
            Some(Verdict::Scored(card)) => {
                add("Scores".to_owned(), &case_view::scores(card));
                add("Judge".to_owned(), &card.reasoning);
            }
            Some(Verdict::Unscored { detail, .. }) => add("Judge: no verdict".to_owned(), detail),
            None => {}
        }
    }
    if let Some(hints) = case.hints() {
        add("Hints for the judge".to_owned(), &hints);
    }
    let is_shown = contrast.is_some_and(Contrast::has_reference);
    if let Some(reference) = traces::reference(case.result).filter(|_| !is_shown) {
        add("Reference".to_owned(), reference);
    }
    found
}

fn answer(step: &CaseStep) -> String {
    match step.kind {
        StepKind::Answer => "Answer".to_owned(),
        StepKind::Reply(number) => format!("Answer {}", number + 1),
    }
}

fn check(check: &CheckResult) -> (&'static str, String, String) {
    let class = match check.finding.outcome {
        CheckOutcome::Held => "passed",
        CheckOutcome::Failed => "failed",
        CheckOutcome::Undecided => "open",
    };
    let words = format!("{}: {}", check.check, check.finding.sentence);
    (class, check.finding.outcome.to_string(), terminal(&words, MAX_LINE))
}

fn question(asked: &ScoredQuestion) -> (&'static str, String, String) {
    let class = if asked.probability.get() < 0.5 { "failed" } else { "passed" };
    let probability = wording::score(Some(asked.probability));
    (class, probability, terminal(&asked.answer.question.text, MAX_LINE))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::CaseSources;
    use super::*;
    use crate::document::ReportDocument;
    use crate::fixture;
    use selftest_harness::outcome::case::Interruption;

    fn html(document: &ReportDocument) -> String {
        render(&CiRunView::new(document, &CaseSources::default())).unwrap()
    }

    #[test]
    fn page_of_a_rich_run() {
        let text = html(&fixture::document());
        let start = text.find("</style>").unwrap();
        let end = text.rfind("<script>").unwrap();
        insta::assert_snapshot!(&text[start..end]);
    }

    #[test]
    fn a_repeated_case_is_one_row_and_cases_refer_to_their_cause() {
        let trial = |index: usize, repeat, score: f64| {
            let mut case = fixture::case(index, "a", fixture::scored([score; 4], "hm"));
            case.repeat = Some(repeat);
            Arc::new(case)
        };
        let broken = |index: usize, id| {
            let mut case = fixture::case(index, id, fixture::scored([1.0; 4], ""));
            case.interruption = Some(Interruption::SutError("KeyError: 'price'".to_owned()));
            case.steps.clear();
            Arc::new(case)
        };
        let cases = [trial(0, 1, 1.0), trial(1, 2, 0.3), broken(2, "b"), broken(3, "c")];
        let text = html(&fixture::state(&fixture::events(&cases)).document().unwrap());
        assert_eq!(text.matches("<details id=\"case-").count(), 3, "{text}");
        assert_eq!(text.matches("<details class=\"trial\">").count(), 2, "{text}");
        assert!(
            text.contains("2 trials, 1 of 2 passed (50 %, 95 % interval 9 % to 91 %)"),
            "{text}"
        );
        assert_eq!(text.matches("<span class=\"why\">cause 1</span>").count(), 2, "{text}");
        assert!(text.contains("<span class=\"soft\">b and c</span>"), "{text}");
    }

    #[test]
    fn nothing_foreign_is_markup_and_nothing_is_loaded() {
        let text = html(&fixture::document());
        assert_eq!(text.matches("<script>").count(), 1, "ours");
        assert!(text.contains("&#60;script&#62;alert(1)"), "{text}");
        for tag in ["<img", "<a ", "<iframe", "<object", "<form action", " src=", " style="] {
            assert!(!text.contains(tag), "{tag}");
        }
        assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'));
        let policy = text.find("Content-Security-Policy").unwrap();
        assert!(policy < text.find("<style>").unwrap(), "it holds for all that comes after it");
        // Neither may end its element early.
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</"));
    }

    #[test]
    fn a_page_of_a_thousand_long_cases_stays_small() {
        let mut document = fixture::document();
        let mut case = document.cases[0].clone();
        let long = "All work and no play <b>&</b> ".repeat(400);
        case.prompt = Some(long.clone());
        for step in &mut case.steps {
            step.input.clone_from(&long);
            step.reply.as_mut().unwrap().output.clone_from(&long);
        }
        document.cases = vec![case; 1_000];
        let text = html(&document);
        assert!(text.len() <= MAX_BYTES, "{}", text.len());
        assert!(text.contains("; the JSON report is complete"));
        assert_eq!(text.matches("<details id=\"case-").count(), 1_000);
    }
}
