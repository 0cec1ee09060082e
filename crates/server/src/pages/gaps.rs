//! The pages of gaps in the agent's skills, and of a proposed skill with its decision forms, which
//! work without JavaScript.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::filters::{ABSENT, one_line, thousands};
use super::{filters, links, quote, render_html};
use crate::App;
use crate::api::MAX_REASON;
use crate::problem::Problem;
use selftest_grading::improve::gap::{ProposalStatus, SkillGap, SkillProposal, SkillTest};
use selftest_grading::improve::recommend::RoutingReport;
use selftest_grading::improve::routing::TrendDirection;
use selftest_harness::event::SuiteRun;
use selftest_harness::experiment::{Arms, Conclusion, format_signed};
use selftest_reports::wording;
use selftest_service::grader::proposals::{SkillDestination, accept, reject};
use selftest_service::grader::routing;
use selftest_stats::Interval;

/// Maximum number of gaps and proposals on the page.
const MAX_ROWS: u64 = 200;
/// Maximum number of linked sessions per gap.
const MAX_SESSIONS: usize = 3;

#[derive(Template)]
#[template(path = "page/gaps.html")]
struct GapsPage {
    section: &'static str,
    gaps: Vec<SkillGap>,
    unreadable: u64,
    proposals: Vec<SkillProposal>,
    routing: RoutingReport,
}

impl GapsPage {
    fn proposals<'p>(&'p self, gap: &'p SkillGap) -> impl Iterator<Item = &'p SkillProposal> {
        self.proposals.iter().filter(|proposal| proposal.gap_id == gap.id)
    }

    /// Returns the first few sessions that show a gap.
    fn sessions(gap: &SkillGap) -> Vec<&str> {
        let mut sessions = Vec::new();
        for evidence in &gap.evidence {
            let id = evidence.session_id.as_str();
            // A gap often has several pieces of evidence in one session.
            if sessions.len() < MAX_SESSIONS && !sessions.contains(&id) {
                sessions.push(id);
            }
        }
        sessions
    }

    fn more_sessions(gap: &SkillGap) -> u64 {
        gap.sessions.saturating_sub(Self::sessions(gap).len() as u64)
    }
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let gaps = app.store.gaps(None, MAX_ROWS).await?;
    let proposals = app.store.proposals(None, MAX_ROWS).await?.items;
    let settings = &app.improvement.routing;
    let routing = routing(&app.store, settings, None, None, selftest_clock::now()).await?;
    render_html(&GapsPage {
        section: "gaps",
        gaps: gaps.items,
        unreadable: gaps.unreadable,
        proposals,
        routing,
    })
}

#[derive(Template)]
#[template(path = "page/proposal.html")]
struct ProposalPage {
    section: &'static str,
    proposal: SkillProposal,
    gap: Option<SkillGap>,
    test: TestView,
    /// Folder for accepted skills.
    folder: String,
}

fn unknown_proposal(id: &str) -> Problem {
    Problem::not_found(format!("there is no proposal {}", quote(id)))
}

pub(super) async fn proposal(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let proposal = app.store.proposal(&id).await?.ok_or_else(|| unknown_proposal(&id))?;
    render_html(&ProposalPage {
        section: "gaps",
        gap: app.store.gap(&proposal.gap_id).await?,
        test: TestView::of(proposal.experiment.as_ref()),
        folder: app.improvement.skills_folder.to_string_lossy().into_owned(),
        proposal,
    })
}

/// Fields of the decision form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DecisionForm {
    reason: String,
    /// `yes` to draft another skill.
    again: Option<String>,
}

impl DecisionForm {
    /// Returns the reason, if given. Fails if it is too long.
    fn reason(&self) -> Result<Option<&str>, Problem> {
        let reason = self.reason.trim();
        if reason.chars().count() > MAX_REASON {
            let message = format!("the reason has more than {MAX_REASON} characters");
            return Err(Problem::bad_request(message));
        }
        Ok(Some(reason).filter(|reason| !reason.is_empty()))
    }
}

pub(super) async fn accept_form(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Form(form): Form<DecisionForm>,
) -> Result<Response, Problem> {
    let place = SkillDestination::Folder(&app.improvement.skills_folder);
    accept(&app.store, &id, place, form.reason()?).await?;
    Ok(Redirect::to(&links::proposal(&id)).into_response())
}

pub(super) async fn reject_form(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Form(form): Form<DecisionForm>,
) -> Result<Response, Problem> {
    let Some(reason) = form.reason()? else {
        return Err(Problem::bad_request("say why, for those who read it later"));
    };
    reject(&app.store, &id, reason, form.again.is_some()).await?;
    // A redirect, so that loading the page again does not decide again.
    Ok(Redirect::to(&links::proposal(&id)).into_response())
}

/// The result of a test, or the reason why it is missing.
#[derive(Default)]
pub(super) struct TestView {
    /// Text and CSS class of the badge.
    pub(super) verdict: (&'static str, &'static str),
    pub(super) sentence: String,
    pub(super) rows: Vec<MeasureRow>,
    pub(super) remarks: Vec<String>,
    /// Link, id and arm of each run.
    pub(super) runs: Vec<(String, String, &'static str)>,
}

/// A measure in both arms.
pub(super) struct MeasureRow {
    pub(super) name: &'static str,
    pub(super) control: String,
    pub(super) treatment: String,
    pub(super) difference: String,
    pub(super) interval: String,
    /// Numbers of cases that are better, equal and worse with the skill.
    pub(super) decided: [String; 3],
    pub(super) cases: String,
}

/// A measure in a stored experiment; any part may be missing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredMeasure {
    cases: Option<u64>,
    mean: Arms<Option<f64>>,
    difference: Option<f64>,
    interval: Option<Interval>,
    wins: Option<u64>,
    ties: Option<u64>,
    losses: Option<u64>,
}

/// Format of a measure. Differences are multiplied by a factor and shown with these decimals and
/// unit.
struct MeasureFormat {
    key: &'static str,
    name: &'static str,
    value: fn(f64) -> String,
    factor: f64,
    decimals: usize,
    unit: &'static str,
}

const MEASURES: [MeasureFormat; 4] = [
    MeasureFormat {
        key: "score",
        name: "Mean score",
        value: |score| format!("{score:.2}"),
        factor: 1.0,
        decimals: 2,
        unit: "",
    },
    MeasureFormat {
        key: "pass_rate",
        name: "Passed",
        value: |share| format!("{} %", selftest_text::wording::percent(share)),
        factor: 100.0,
        decimals: 0,
        unit: " points",
    },
    MeasureFormat {
        key: "duration_ms",
        name: "Time",
        value: |milliseconds| format!("{:.1} s", milliseconds / 1000.0),
        factor: 0.001,
        decimals: 1,
        unit: " s",
    },
    MeasureFormat {
        key: "tokens",
        name: "Tokens",
        value: |tokens| format!("{tokens:.0}"),
        factor: 1.0,
        decimals: 0,
        unit: "",
    },
];

fn read_part<T: DeserializeOwned>(details: &Value, key: &str) -> Option<T> {
    T::deserialize(details.get(key)?).ok()
}

fn or_absent<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| one_line(&show(value)))
}

impl MeasureFormat {
    /// Formats a row. Returns `None` if nothing was measured.
    fn row(&self, details: &Value) -> Option<MeasureRow> {
        let stored: StoredMeasure = read_part(details, self.key)?;
        // Tokens and scores are missing if nothing measured them; a row of dashes would look like a
        // result.
        stored.mean.control.or(stored.mean.treatment).or(stored.difference)?;
        let by = |value: f64| format_signed(self.factor * value, self.decimals);
        Some(MeasureRow {
            name: self.name,
            control: or_absent(stored.mean.control, self.value),
            treatment: or_absent(stored.mean.treatment, self.value),
            difference: or_absent(stored.difference, |value| by(value) + self.unit),
            interval: or_absent(stored.interval, |Interval { low, high }| {
                format!("{} to {}", by(low), by(high))
            }),
            decided: [stored.wins, stored.ties, stored.losses]
                .map(|count| count.map(thousands).unwrap_or_default()),
            cases: or_absent(stored.cases, thousands),
        })
    }
}

fn remarks(details: &Value) -> Vec<String> {
    let suite: Option<SuiteRun> = read_part(details, "suite");
    let mut remarks: Vec<String> =
        suite.iter().map(|suite| one_line(&format!("Suite {}", wording::suite(suite)))).collect();
    for (key, what) in
        [("unscored", "without a verdict"), ("broken", "that were decided without a score")]
    {
        if let Some(Arms { control, treatment }) = read_part::<Arms<u64>>(details, key)
            && (control > 0 || treatment > 0)
        {
            remarks.push(format!(
                "Trials {what}, in no mean score: {} without the skill, {} with it.",
                thousands(control),
                thousands(treatment)
            ));
        }
    }
    remarks
}

fn runs(details: &Value) -> Vec<(String, String, &'static str)> {
    let ids: Arms<Option<String>> = read_part(details, "run_ids").unwrap_or_default();
    [(ids.control, "without the skill"), (ids.treatment, "with the skill")]
        .into_iter()
        .filter_map(|(id, which)| id.map(|id| (links::run(&id), one_line(&id), which)))
        .collect()
}

impl TestView {
    /// Creates the view of a stored test, if there is one.
    pub(super) fn of(test: Option<&SkillTest>) -> Self {
        let (conclusion, details) = match test {
            Some(SkillTest::Tested { conclusion, details }) => (conclusion, details),
            Some(SkillTest::NotTested { reason }) => return Self::none(reason),
            None => return Self::none("nothing was kept of a test"),
        };
        let verdict = match read_part(details, "conclusion") {
            Some(Conclusion::Helps) => ("helps", "good"),
            Some(Conclusion::Harms) => ("harms", "poor"),
            Some(Conclusion::NotEnoughEvidence) => ("not enough evidence", "none"),
            Some(Conclusion::Blocked) => ("blocked", "fair"),
            None => ("tested", "none"),
        };
        Self {
            verdict,
            sentence: one_line(conclusion),
            rows: MEASURES.iter().filter_map(|shown| shown.row(details)).collect(),
            remarks: remarks(details),
            runs: runs(details),
        }
    }

    fn none(why: &str) -> Self {
        let verdict = ("not tested", "fair");
        Self { verdict, sentence: one_line(why), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tested(details: Value) -> TestView {
        let conclusion = "It helps.\u{202e}".to_owned();
        TestView::of(Some(&SkillTest::Tested { conclusion, details }))
    }

    #[test]
    fn shows_what_was_measured() {
        let view = tested(json!({
            "conclusion": "harms",
            "score": {
                "cases": 8, "mean": { "control": 0.7, "treatment": 0.625 }, "difference": -0.08,
                "interval": { "low": -0.1, "high": -0.05 }, "wins": 0, "ties": 1, "losses": 7,
            },
            "pass_rate": { "mean": { "control": 1.0, "treatment": 0.5 }, "difference": -0.5 },
            "duration_ms": { "mean": { "control": 1500.0 } },
            "tokens": { "cases": 0, "mean": { "control": null, "treatment": null } },
            "unscored": { "control": 1, "treatment": 0 },
            "run_ids": { "control": "a", "treatment": "b/../c" },
        }));
        assert_eq!(view.verdict, ("harms", "poor"));
        let cells = |row: &MeasureRow| {
            let MeasureRow { name, control, treatment, difference, interval, decided, cases } = row;
            format!(
                "{name}: {control}, {treatment}, {difference}, {interval}, {decided:?}, {cases}"
            )
        };
        let rows: Vec<String> = view.rows.iter().map(cells).collect();
        assert_eq!(
            rows,
            [
                r#"Mean score: 0.70, 0.62, -0.08, -0.10 to -0.05, ["0", "1", "7"], 8"#,
                r#"Passed: 100 %, 50 %, -50 points, –, ["", "", ""], –"#,
                r#"Time: 1.5 s, –, –, –, ["", "", ""], –"#,
            ]
        );
        assert_eq!(
            view.remarks,
            ["Trials without a verdict, in no mean score: 1 without the skill, 0 with it."]
        );
        assert_eq!(view.runs[1].0, "/selftests/b%2F..%2Fc");
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        for details in [
            json!(null),
            json!([1, "score"]),
            json!({ "conclusion": 7, "score": "x", "run_ids": [], "suite": 1, "broken": {} }),
            json!({ "score": { "mean": { "control": "0.7" } }, "run_ids": { "control": 1 } }),
        ] {
            let view = tested(details);
            assert_eq!(view.verdict, ("tested", "none"));
            assert!(!view.sentence.contains('\u{202e}') && view.rows.is_empty());
            assert!(view.runs.is_empty() && view.remarks.is_empty());
        }
        let huge = tested(json!({ "score": { "difference": 1e300 } }));
        assert!(huge.rows[0].difference.len() < 400);
    }

    #[test]
    fn says_why_there_is_none() {
        let reason = "no suite is configured".to_owned();
        let view = TestView::of(Some(&SkillTest::NotTested { reason }));
        assert_eq!(
            (view.verdict.0, view.sentence.as_str()),
            ("not tested", "no suite is configured")
        );
        assert_eq!(TestView::of(None).sentence, "nothing was kept of a test");
    }
}
