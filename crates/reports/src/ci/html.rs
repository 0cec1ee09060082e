//! A run as one self-contained HTML page: for people, as a build artefact.
//!
//! Output of models and programs can only be text: the template escapes every value, and a content
//! security policy allows only the page's own style and script, by their digests. With more cases,
//! their texts are truncated further to keep the page small.

use askama::Template;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use selftest_text::escape::{block, terminal};
use selftest_text::wording::{date_time, duration, plural};
use sha2::{Digest as _, Sha256};
use strum::VariantArray as _;

use super::against::{CaseComparison, ComparisonGroup};
use super::run_view::{CiRunView, MISSING};
use crate::case_view::{self, CaseView};
use crate::wording;
use selftest_checks::check::CheckOutcome;
use selftest_harness::judge::fitness::JudgeFitness;
use selftest_harness::judge::{ScoredQuestion, Verdict};
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
    facts: Vec<(&'static str, String)>,
    usage: Vec<UsageRow>,
    has_money: bool,
    warnings: Vec<String>,
    /// Value, label and count of each result.
    kinds: [(&'static str, &'static str, usize); 4],
    /// Value, label and count of each comparison group; empty without a baseline.
    groups: Vec<(&'static str, &'static str, usize)>,
    /// Description of the baseline.
    baseline: Option<String>,
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

/// A case on the page.
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
    /// Comparison with the baseline, if there is one.
    against: Option<CaseComparison>,
    reason: Option<String>,
    /// Headings with their texts.
    texts: Vec<(String, String)>,
    checks: Vec<(&'static str, String, String)>,
    questions: Vec<(&'static str, String, String)>,
    facts: String,
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
    let mut cases: Vec<HtmlCase> =
        views.iter().zip(1..).map(|(view, number)| case(run, view, number, bounds)).collect();
    let removed = document.gate.iter().flat_map(|gate| &gate.removed);
    let gone = removed.zip(cases.len() + 1..).map(|(id, number)| removed_case(id, number));
    cases.extend(gone.collect::<Vec<_>>());
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
        shares: shares([("passed", passed), ("failed", failed), ("open", open)]),
        counts: {
            let unchanged = wording::unchanged(summary);
            let unchanged = unchanged.map(|words| format!("; {words}")).unwrap_or_default();
            format!("{passed} passed, {failed} failed, {open} without a verdict{unchanged}")
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
        baseline: document.gate.as_ref().map(|gate| {
            let words = format!("Baseline {} of {}", gate.baseline, gate.baseline_run_id);
            terminal(&words, MAX_LINE)
        }),
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

/// Counts the cases per comparison group, leaving out empty groups.
fn groups(cases: &[HtmlCase]) -> Vec<(&'static str, &'static str, usize)> {
    let count = |group: ComparisonGroup| {
        let stands = cases.iter().filter_map(|case| case.against.as_ref());
        stands.filter(|against| against.group == group).count()
    };
    if cases.iter().all(|case| case.against.is_none()) {
        return Vec::new();
    }
    let all = ("", "all", cases.len());
    let counted = ComparisonGroup::VARIANTS.iter().map(|&it| (it.value(), it.label(), count(it)));
    std::iter::once(all).chain(counted.filter(|(_, _, count)| *count > 0)).collect()
}

/// Returns the row of a case that only the baseline has.
fn removed_case(id: &str, number: usize) -> HtmlCase {
    HtmlCase {
        number,
        kind: "gone",
        label: "REMOVED".to_owned(),
        name: terminal(id, MAX_LINE),
        score: wording::score(None),
        ms: 0,
        time: String::new(),
        amount: String::new(),
        cost: String::new(),
        against: Some(CaseComparison::removed()),
        reason: None,
        texts: Vec::new(),
        checks: Vec::new(),
        questions: Vec::new(),
        facts: "in the baseline, no longer in the suite".to_owned(),
    }
}

/// Returns the digest by which the content security policy allows exactly this text.
fn source(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}

fn shares(counts: [(&'static str, usize); 3]) -> Vec<(&'static str, String, String)> {
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let mut before = 0;
    let mut found = Vec::new();
    for (class, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        found.push((class, share(before, total), share(count, total)));
        before += count;
    }
    found
}

#[expect(clippy::cast_precision_loss, reason = "cases are far fewer than 2^53")]
fn share(count: usize, total: usize) -> String {
    format!("{:.2}", count as f64 * 100.0 / total as f64)
}

/// Returns facts about the run as key and value.
fn facts(run: &CiRunView<'_>) -> Vec<(&'static str, String)> {
    let document = run.document;
    let models = &document.models;
    let fitness = models.judge_fitness.as_ref().map(JudgeFitness::summary);
    let suite = document.suite.as_ref().map(|suite| suite.path.clone());
    let known = [
        ("Judge", Some(models.judge.clone())),
        ("Judge measured", fitness),
        ("Generator", models.generator.clone()),
        ("System under test", Some(document.sut.clone())),
        ("Model under test", models.sut.clone()),
        ("Suite", suite),
        ("Threshold", Some(document.config.effective_threshold.to_string())),
        ("Seed", Some(document.seed.to_string())),
        ("Enforced", joined(&document.isolation.enforced)),
        ("Not enforced", joined(&document.isolation.not_enforced)),
        ("Changed project files", joined(&document.changed_files)),
    ];
    let line = |(key, value): (&'static str, Option<String>)| Some((key, terminal(&value?, 1_000)));
    known.into_iter().filter_map(line).collect()
}

fn joined(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join("; "))
}

fn case(run: &CiRunView<'_>, case: &CaseView<'_>, number: usize, bounds: PageBounds) -> HtmlCase {
    let result = case.result;
    let used = run.usage(case);
    let currency = run.currency();
    let mut facts: Vec<String> = Vec::new();
    let gate = run.document.gate.as_ref();
    let against = gate.map(|gate| CaseComparison::of(gate, &result.scenario.id));
    if let Some(against) = against.as_ref().filter(|against| !against.words.is_empty()) {
        facts.push(format!("compared with the baseline: {}, {}", against.label, against.words));
    }
    if !used.is_empty() {
        facts.push(wording::usage(&used.total, currency));
    }
    facts.push(result.session_id.to_string());
    let sandbox = result.evidence.sandbox.as_ref().map(SandboxEvidence::summary);
    facts.extend(sandbox.map(|line| terminal(&format!("isolation {line}"), MAX_LINE)));
    let notes = result.notes.iter().chain(&result.evidence.notes);
    facts.extend(notes.map(|note| terminal(note, MAX_LINE)));
    HtmlCase {
        number,
        kind: match case.status.pass() {
            Some(true) => "passed",
            Some(false) => "failed",
            None => "open",
        },
        label: case.label(),
        name: terminal(case.name(), MAX_LINE),
        score: wording::score(case.score()),
        ms: result.duration_ms,
        time: duration(result.duration_ms),
        amount: used.total.cost.map(|cost| cost.to_string()).unwrap_or_default(),
        cost: wording::cost(&used.total, currency).unwrap_or_default(),
        against,
        reason: case.reason.as_deref().map(|reason| terminal(reason, MAX_LINE)),
        texts: texts(case, bounds),
        checks: result.checks.iter().take(bounds.lines).map(check).collect(),
        questions: case
            .deciding_step()
            .map(case_view::questions)
            .unwrap_or_default()
            .into_iter()
            .take(bounds.lines)
            .map(question)
            .collect(),
        facts: facts.join("; "),
    }
}

/// Returns the exchanges in order.
fn texts(case: &CaseView<'_>, bounds: PageBounds) -> Vec<(String, String)> {
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
    add("Standard error".to_owned(), case.stderr().unwrap_or_default());
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
    use super::super::sources::CaseSources;
    use super::*;
    use crate::document::ReportDocument;
    use crate::fixture;

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
