//! The page of reflections.

use selftest_grading::grade::reflection::{IssueCode, ReflectionIssue, ReflectionScore};
use selftest_store::NewReflection;

use super::chrome::browse;
use super::demo::{self, SCRIPT};
use super::site::Site;

/// A reflection with its score.
pub(super) type Scored = (NewReflection, ReflectionScore);

const CODES: [IssueCode; 5] = [
    IssueCode::LowConfidence,
    IssueCode::GoalMisaligned,
    IssueCode::SummaryTooBrief,
    IssueCode::LoopTagMissing,
    IssueCode::SchemaMismatch,
];

fn one(number: u64, project: &str, day: u64, issues: usize) -> Scored {
    let agents = ["HAL", "SAGE", "CRITIC", "Orchestrator"];
    let agent = agents[usize::try_from(number / 12 % 4).unwrap()].to_owned();
    let words = |code: &IssueCode| match code {
        IssueCode::LowConfidence => "the confidence is 0.4, below 0.6".to_owned(),
        IssueCode::GoalMisaligned => {
            "the summary uses 0 of the 5 words of the goal, expected at least 25 %".to_owned()
        }
        IssueCode::SummaryTooBrief => "the summary has 9 characters, fewer than 50".to_owned(),
        IssueCode::LoopTagMissing => "none of the tags (2) refers to a loop".to_owned(),
        _ => format!("not of the expected schema: {SCRIPT}"),
    };
    let issues: Vec<ReflectionIssue> =
        CODES.iter().take(issues).map(|code| ReflectionIssue::new(*code, words(code))).collect();
    let lost: f64 = issues.iter().map(|issue| issue.deduction).sum();
    let score = ((1.0 - lost) * 100.0).round() / 100.0;
    let made_at = format!("2026-{:02}-{:02}T10:00:00Z", 10 + day / 30, 1 + day % 30);
    let reflection = NewReflection {
        project_id: project.to_owned(),
        reflection_id: format!("reflection-{number:04}"),
        agent: Some(agent.clone()),
        loop_count: Some(number),
        made_at: made_at.parse().unwrap(),
        document: serde_json::Map::new(),
    };
    let score = ReflectionScore {
        project_id: project.to_owned(),
        reflection_id: reflection.reflection_id.clone(),
        agent: Some(agent),
        loop_count: number,
        score,
        threshold: 0.6,
        weak: score < 0.6,
        issues,
        timestamp: reflection.made_at,
        made_at: reflection.made_at,
    };
    (reflection, score)
}

/// Two projects over some weeks; one of them gets better.
pub(super) fn some() -> Vec<Scored> {
    let shop = (0..48).map(|number| {
        let issues = if number % 12 == 5 {
            5
        } else {
            usize::from(number % 3 > 0) + usize::from(number < 20)
        };
        one(number, "web-shop", number, issues)
    });
    let docs = (0..9).map(|number| one(100 + number, "docs & <b>guides</b>", 3 * number, 3));
    shop.chain(docs).collect()
}

#[test]
fn a_project_is_looked_at() {
    let site = Site::with(demo::contents());
    browse(async |chrome| {
        chrome.open(&site.at("/reflections")).await;
        assert_eq!(chrome.text("nav a[aria-current]").await, "Reflections");
        chrome
            .until("[...document.images].every(image => image.complete && image.naturalWidth)")
            .await;
        chrome.click("tr[data-href] th a").await;
        chrome.shows("main h1", "web-shop").await;
        let remark = chrome.text(".remark").await;
        assert!(remark.starts_with("Proposed threshold: "), "{remark}");
        let weak = chrome.text("section[aria-label='Weak reflections'] tbody").await;
        assert!(weak.contains("low_confidence") && weak.contains("Orchestrator"), "{weak}");
        assert!(weak.contains(SCRIPT), "as text: {weak}");
    });
}
