//! Renders a run as a pull request comment: short, bounded, and with all text from models
//! neutralised. Pure.

use std::fmt::Write as _;

use super::causes::{CaseFault, SharedCause, SharedCauses};
use super::{against, wording};
use crate::document::{CaseDocument, ReportDocument};
use selftest_harness::gate::finding::{CaseChange, GateFinding, GatedCase};
use selftest_harness::outcome::CaseStatus;
use selftest_stats::score::Score;
use selftest_text::escape;
use selftest_text::wording::{percent, plural};

/// Start of every comment of this program; its key follows.
pub const MARK: &str = "<!-- selftest:comment ";

/// Maximum length of a comment, in bytes. GitHub accepts 65,536 characters.
const MAX_COMMENT: usize = 60_000;
/// Maximum number of rows in a table.
const MAX_ROWS: usize = 50;
/// Maximum number of cases whose prompt and answer are quoted.
const MAX_QUOTED: usize = 10;
/// Maximum length of a prompt or an answer, in bytes.
const MAX_QUOTE: usize = 600;
/// Maximum length of a reason, and of an ID, in bytes.
const MAX_REASON: usize = 200;
const MAX_ID: usize = 80;
/// Maximum number of shared causes that are listed.
const MAX_CAUSES: usize = 10;
/// Maximum number of IDs in a list.
const MAX_LISTED: usize = 30;

/// Returns the hidden line by which a later run finds its comment.
pub fn marker(key: &str) -> String {
    // `-->` would end the HTML comment, and `--` is not valid inside one.
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._/-".contains(c) { c } else { '_' };
    let key: String = key.chars().take(MAX_ID).map(plain).collect::<String>().replace("--", "-_");
    format!("{MARK}{key} -->")
}

/// Renders the comment. `link` leads to the run in CI.
pub fn render(report: &ReportDocument, key: &str, link: Option<&str>) -> String {
    let mut text = marker(key);
    text.push_str("\n## selftest: ");
    let outcome = wording::outcome(report.outcome);
    let _ = writeln!(text, "{outcome}\n\n{}\n", headline(report));
    let causes = SharedCauses::of(report.cases.iter().filter_map(CaseFault::of_document));
    shared(&mut text, &causes);
    match &report.gate {
        Some(gate) => against_baseline(&mut text, report, gate, &causes),
        None => failures(&mut text, report, &causes),
    }
    let mut foot = format!(
        "\n<sub>{}, {}",
        escape::inline_in_comment(report.run_id.as_str(), MAX_ID),
        wording::judged(escape::inline_in_comment(&report.models.judge, MAX_REASON).as_str())
    );
    if let Some(gate) = &report.gate {
        let (file, run) = (
            escape::inline_in_comment(&gate.baseline, MAX_REASON),
            escape::inline_in_comment(&gate.baseline_run_id, MAX_ID),
        );
        let _ = write!(foot, "; baseline {file} of {run}");
    }
    foot.push_str("</sub>");
    // The address comes from the environment and is written without escaping.
    if let Some(link) = link.filter(|link| is_plain_address(link)) {
        let _ = write!(foot, " · [the run]({link})");
    }
    foot.push('\n');
    // The footer is kept whole; only the text above it is cut.
    if text.len() + foot.len() > MAX_COMMENT {
        text = truncate_comment(&text, MAX_COMMENT - foot.len());
    }
    text + &foot
}

/// Summarises how many cases passed and what deserves attention.
fn headline(report: &ReportDocument) -> String {
    let summary = &report.summary;
    let passed = match summary.pass_rate {
        Some(rate) => {
            let decided = summary.passed + summary.failed;
            format!("**{} of {decided} passed ({} %)**", summary.passed, percent(rate))
        }
        None => "**no verdict**".to_owned(),
    };
    let mut parts = vec![passed];
    if let Some(gate) = &report.gate {
        parts.push(against::headline(gate));
    }
    parts.extend(wording::undecided(summary));
    parts.extend(wording::unchanged(summary));
    parts.join(", ")
}

/// Lists the causes that several cases have in common. The tables name them by their number.
fn shared(text: &mut String, causes: &SharedCauses) {
    for cause in causes.all().iter().take(MAX_CAUSES) {
        let _ = writeln!(
            text,
            "- **{}**, {}: {}",
            cause.name(),
            plural(cause.ids.len() as u64, "case"),
            escape::inline_in_comment(&cause.reason, MAX_QUOTE)
        );
    }
    if !causes.all().is_empty() {
        text.push('\n');
    }
}

fn against_baseline(
    text: &mut String,
    report: &ReportDocument,
    gate: &GateFinding,
    causes: &SharedCauses,
) {
    if let Some(why) = &gate.judge_difference {
        let why = escape::inline_in_comment(why, MAX_REASON);
        let _ =
            writeln!(text, "> {why}. Judged results were not compared; accept a new baseline.\n");
    }
    if gate.beyond_chance {
        text.push_str("> Too many failures to be flakiness; nothing was retried.\n\n");
    }
    if let Some(why) = gate.pooled_sentence() {
        let _ = writeln!(text, "> {why}.\n");
    }
    if gate.compared == 0 {
        text.push_str("> Nothing could be compared with the baseline.\n\n");
    }
    // The most urgent first, because a long comment is cut at its end.
    for (change, heading) in [
        (CaseChange::Regression, "Regressions"),
        (CaseChange::Unconfirmed, "Not confirmed"),
        (CaseChange::Undecided, "No verdict, passed before"),
        (CaseChange::Flaky, "Flaky"),
        (CaseChange::StillFailing, "Still failing"),
        (CaseChange::Fixed, "Fixed"),
        (CaseChange::New, "New"),
        (CaseChange::NotCompared, "Not compared"),
    ] {
        let found: Vec<&GatedCase> = gate.cases_with(change).collect();
        if !found.is_empty() {
            table(text, heading, &found, report, causes);
        }
    }
    if !gate.removed.is_empty() {
        let named: Vec<String> = gate
            .removed
            .iter()
            .take(MAX_LISTED)
            .map(|id| escape::inline_in_comment(id, MAX_ID).to_string())
            .collect();
        let more = gate.removed.len().saturating_sub(MAX_LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "### Removed\n\n{}{more}\n", named.join(", "));
    }
    let worse =
        gate.cases_with(CaseChange::Regression).chain(gate.cases_with(CaseChange::Unconfirmed));
    for gated in worse.take(MAX_QUOTED) {
        // With repeats, this is the first failed trial.
        let case = report.cases.iter().find(|case| case.id == gated.id && case.pass == Some(false));
        quote(text, case);
    }
}

fn table(
    text: &mut String,
    heading: &str,
    found: &[&GatedCase],
    report: &ReportDocument,
    causes: &SharedCauses,
) {
    let _ = writeln!(text, "### {heading}\n\n| Case | Passed | Score | Why |\n|---|---|---|---|");
    for case in found.iter().take(MAX_ROWS) {
        let score = match (case.score_before, case.score) {
            (None, None) => "-".to_owned(),
            (before, now) => format!("{} → {}", number(before), number(now)),
        };
        // A case whose trials failed for different reasons keeps the gate's reason.
        let reason = case.reason.as_deref();
        let trial =
            report.cases.iter().find(|it| it.id == case.id && it.reason.as_deref() == reason);
        let _ = writeln!(
            text,
            "| {} | {} of {} | {score} | {} |",
            escape::inline_in_comment(&case.id, MAX_ID),
            case.passed,
            case.decided,
            because(reason, trial, causes)
        );
    }
    more(text, found.len());
}

/// Returns the reason of a case, or the number of the cause that it shares with others.
fn because(reason: Option<&str>, case: Option<&CaseDocument>, causes: &SharedCauses) -> String {
    let shared = case
        .and_then(|case| causes.of_fault(CaseFault::of_document(case)))
        // A cause that the list above leaves out cannot be referred to by its name.
        .filter(|cause| cause.number <= MAX_CAUSES);
    shared.map_or_else(
        || escape::inline_in_comment(reason.unwrap_or_default(), MAX_REASON).to_string(),
        SharedCause::name,
    )
}

/// Lists the failures of a run without a baseline.
fn failures(text: &mut String, report: &ReportDocument, causes: &SharedCauses) {
    let failed: Vec<&CaseDocument> =
        report.cases.iter().filter(|case| case.pass == Some(false)).collect();
    let open: Vec<&CaseDocument> = report.cases.iter().filter(|case| case.pass.is_none()).collect();
    for (heading, found) in [("Failed", &failed), ("No verdict", &open)] {
        if found.is_empty() {
            continue;
        }
        let _ =
            writeln!(text, "### {heading}\n\n| Case | Result | Score | Why |\n|---|---|---|---|");
        for case in found.iter().take(MAX_ROWS) {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} |",
                escape::inline_in_comment(&case.name(), MAX_ID),
                case.status.label(),
                number(case.scores.overall),
                because(case.reason.as_deref(), Some(case), causes)
            );
        }
        more(text, found.len());
    }
    for case in failed.iter().take(MAX_QUOTED) {
        quote(text, Some(case));
    }
}

fn more(text: &mut String, count: usize) {
    match count.saturating_sub(MAX_ROWS) {
        0 => text.push('\n'),
        more => {
            let _ = writeln!(text, "\nand {more} more\n");
        }
    }
}

/// Writes the prompt and answer of a case as a collapsed section below its name. In the summary,
/// which is HTML, nothing of a case could be escaped as Markdown.
fn quote(text: &mut String, case: Option<&CaseDocument>) {
    let Some(case) = case.filter(|case| case.status != CaseStatus::NotRun) else { return };
    let Some(prompt) = &case.prompt else { return };
    let _ = writeln!(
        text,
        "**{}**\n\n<details><summary>Prompt and answer</summary>\n\n{}\n",
        escape::inline_in_comment(&case.name(), MAX_ID),
        escape::fenced(prompt, MAX_QUOTE)
    );
    if let Some(output) = &case.output {
        let _ = writeln!(text, "{}\n", escape::fenced(output, MAX_QUOTE));
    }
    text.push_str("</details>\n\n");
}

fn number(score: Option<Score>) -> String {
    wording::score(score)
}

/// Returns true if the address can be used in a link without escaping.
fn is_plain_address(link: &str) -> bool {
    (link.starts_with("https://") || link.starts_with("http://"))
        && link.len() <= 500
        // Without brackets, quotes and spaces nothing in it can end the Markdown link.
        && link.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/?#=&%+".contains(c))
}

/// Truncates a comment at a line break, leaving no section open.
fn truncate_comment(text: &str, limit: usize) -> String {
    const CUT: &str = "\n\nTruncated here; the report has the full text.\n";
    const CLOSE: &str = "\n</details>";
    let mut end = limit.saturating_sub(CUT.len() + CLOSE.len());
    // Do not cut inside a character.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    // A collapsed section is kept whole or dropped.
    let open = head.rfind("<details>").filter(|at| !head[*at..].contains("</details>"));
    let head = match open {
        Some(at) => &head[..at],
        None => head.rfind('\n').map_or(head, |at| &head[..at]),
    };
    format!("{}{CUT}", head.trim_end())
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Options, Parser, Tag};

    use super::*;
    use crate::fixture::{self, HOSTILE};
    use selftest_harness::gate::GateMode;

    fn report() -> ReportDocument {
        serde_json::from_str(&fixture::rich_run().json().unwrap().unwrap()).unwrap()
    }

    fn gated(id: &str, change: CaseChange, reason: &str) -> GatedCase {
        GatedCase {
            id: id.to_owned(),
            change,
            reason: Some(reason.to_owned()),
            passed: 0,
            decided: 3,
            score_before: Some(fixture::score(0.9)),
            score: Some(fixture::score(0.4)),
        }
    }

    fn finding(cases: Vec<GatedCase>) -> GateFinding {
        GateFinding {
            mode: GateMode::NoRegression,
            baseline: "config/selftest-baseline.json".to_owned(),
            baseline_run_id: "selftest-20260205-0800-mnpqrs".to_owned(),
            judge_difference: None,
            attribution: None,
            anchors: Vec::new(),
            pooled: None,
            compared: 12,
            passed_before: 10,
            trials_needed: 3,
            beyond_chance: false,
            cases,
            removed: vec!["old".to_owned(), HOSTILE.to_owned()],
        }
    }

    fn with_gate(cases: Vec<GatedCase>) -> ReportDocument {
        ReportDocument { gate: Some(finding(cases)), ..report() }
    }

    /// Checks the result as GitHub renders it: no images, no links or HTML but ours, no mentions.
    fn assert_harmless(text: &str) {
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        let mut in_code = false;
        for event in Parser::new_ext(text, options) {
            match event {
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(pulldown_cmark::TagEnd::CodeBlock) => in_code = false,
                Event::Start(Tag::Image { .. }) => panic!("an image in {text}"),
                Event::Start(Tag::Link { dest_url, .. }) => {
                    assert!(dest_url.starts_with("https://ci.example/"), "{dest_url}");
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    let html = html.trim();
                    let ours = html.starts_with(MARK)
                        || ["<sub>", "</sub>", "</details>"].contains(&html)
                        || html == "<details><summary>Prompt and answer</summary>";
                    assert!(ours, "{html}");
                }
                Event::Text(words) if !in_code => {
                    for part in ["@ev", "://", "#1"] {
                        assert!(!words.contains(part), "{part} in {words}");
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn comments() {
        let cases = vec![
            gated("explain_port", CaseChange::Regression, "answer: overall 0.40 is below 0.74"),
            gated("flow", CaseChange::Flaky, "failed at first"),
            gated("brand_new", CaseChange::New, ""),
        ];
        let link = Some("https://ci.example/runs/7");
        insta::assert_snapshot!("comment_gated", render(&with_gate(cases), "main", link));
        insta::assert_snapshot!("comment_absolute", render(&report(), "main", None));
    }

    #[test]
    fn a_cause_that_cases_share_is_stated_once() {
        let why = "output contains: no “14 days”";
        let mut report = report();
        for case in &mut report.cases {
            case.status = CaseStatus::SutError;
            (case.pass, case.reason) = (Some(false), Some(why.to_owned()));
            case.steps.clear();
        }
        let cases = report.cases.len();
        let absolute = render(&report, "main", None);
        assert_eq!(absolute.matches("14 days").count(), 1, "{absolute}");
        assert_eq!(absolute.matches("| cause 1 |").count(), cases, "{absolute}");
        let gated_cases =
            report.cases.iter().map(|case| gated(&case.id, CaseChange::Regression, why));
        report.gate = Some(finding(gated_cases.collect()));
        let against = render(&report, "main", None);
        assert_eq!(against.matches("14 days").count(), 1, "{against}");
        assert_eq!(against.matches("| cause 1 |").count(), cases, "{against}");
    }

    #[test]
    fn nothing_that_was_said_gets_out_of_its_place() {
        let hostile = format!("{HOSTILE} @everyone fixes #12 <!-- selftest:comment main -->");
        let mut report = with_gate(vec![
            gated(&hostile, CaseChange::Regression, &hostile),
            gated(&hostile, CaseChange::NotCompared, &hostile),
        ]);
        for case in &mut report.cases {
            case.output = Some(hostile.clone());
            case.prompt = Some(hostile.clone());
        }
        let link = Some("https://ci.example/runs/7");
        let text = render(&report, "main", link);
        assert_harmless(&text);
        assert_eq!(
            text.matches(&marker("main")).count(),
            1 + text.matches("fixes #12 <!--").count()
        );
        report.gate = None;
        assert_harmless(&render(&report, "main", Some("javascript:alert(1)")));
        assert!(!render(&report, "main", Some("https://x/) ![](https://y")).contains("[the run]"));
    }

    #[test]
    fn a_comment_has_a_bound() {
        let long = "word ".repeat(500);
        let cases: Vec<GatedCase> = (0..4_000)
            .map(|number| gated(&format!("case-{number}"), CaseChange::Regression, &long))
            .collect();
        let mut report = with_gate(cases);
        report.gate.as_mut().unwrap().removed = vec![long.clone(); 3_000];
        for (number, case) in report.cases.iter_mut().enumerate() {
            case.id = format!("case-{number}");
            case.pass = Some(false);
            case.prompt = Some("`".repeat(3_000));
            case.output = Some("<".repeat(3_000));
        }
        let text = render(&report, "main", None);
        assert!(text.len() <= MAX_COMMENT, "{}", text.len());
        assert!(text.contains("and 3950 more") && text.contains("and 2970 more"), "{text}");
        let cut = truncate_comment(
            &format!("{}\n\n<details>\n{}", "a ".repeat(100), "b ".repeat(900)),
            600,
        );
        assert!(cut.ends_with("the full text.\n") && !cut.contains("<details>"), "{cut}");
    }

    #[test]
    fn a_key_cannot_end_the_marker() {
        assert_eq!(marker("main"), "<!-- selftest:comment main -->");
        assert!(!marker("a-->b\n<b>")["<!--".len()..].trim_end_matches("-->").contains("-->"));
    }
}
