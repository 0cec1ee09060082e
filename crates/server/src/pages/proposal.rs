//! A proposed skill: its text, what it is for, what its test came to, and the forms by which
//! people decide. Work without JavaScript.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;

use super::experiment::TestView;
use super::gaps::status_class;
use super::{Frame, PageError, html, link, words};
use crate::App;
use crate::api::LONGEST_REASON;
use selftest_grading::improve::proposal::ProposalStatus;
use selftest_service::grader::decision::{DecisionFault, SkillPlace, accept, reject};

#[derive(Template)]
#[template(path = "page/proposal.html")]
struct ProposalPage {
    frame: Frame,
    name: String,
    status: &'static str,
    class: &'static str,
    gap: String,
    evidence: Vec<Evidence>,
    test: TestView,
    facts: Vec<(&'static str, String)>,
    skill: String,
    /// Where a decision is sent; `None` where it was made.
    decide: Option<Decide>,
}

struct Decide {
    accept: String,
    reject: String,
    folder: String,
    longest: usize,
}

struct Evidence {
    href: String,
    session: String,
    event: String,
    words: String,
}

fn missing(id: &str) -> PageError {
    PageError::not_found(format!("there is no proposal {:?}", words::line(id)))
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let proposal = app.store.proposal(&id).await?.ok_or_else(|| missing(&id))?;
    let gap = app.store.gap(&proposal.gap_id).await?;
    let evidence = gap.iter().flat_map(|gap| &gap.evidence).map(|one| Evidence {
        href: link::session(&one.session_id),
        session: words::line(&one.session_id),
        event: one.event.map_or_else(|| words::ABSENT.to_owned(), |event| format!("#{event}")),
        words: words::line(&one.words),
    });
    let mut facts = vec![
        ("Model", words::line(&proposal.model)),
        ("Drafted", format!("{} UTC", words::minute(proposal.created_at))),
        ("Prompt", words::line(&proposal.prompt_digest)),
    ];
    if let Some(at) = proposal.decided_at {
        facts.push(("Decided", format!("{} UTC", words::minute(at))));
    }
    for (name, value) in [("Reason", &proposal.reason), ("File", &proposal.file)] {
        facts.extend(value.as_deref().map(|value| (name, words::line(value))));
    }
    let address = link::proposal(&proposal.id);
    let waits = proposal.status == ProposalStatus::Proposed;
    html(&ProposalPage {
        frame: Frame::of("gaps"),
        name: words::line(&proposal.skill_name),
        status: proposal.status.name(),
        class: status_class(proposal.status.name()),
        gap: gap
            .as_ref()
            .map_or_else(|| words::line(&proposal.gap_id), |gap| words::line(&gap.description)),
        evidence: evidence.collect(),
        test: TestView::of(proposal.experiment.as_ref()),
        facts,
        skill: words::block(&proposal.skill_md),
        decide: waits.then(|| Decide {
            accept: format!("{address}/accept"),
            reject: format!("{address}/reject"),
            folder: words::line(&app.improvement.skills_folder.to_string_lossy()),
            longest: LONGEST_REASON,
        }),
    })
}

/// What a form says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    reason: String,
    /// `yes`, where another skill is to be drafted.
    again: Option<String>,
}

impl Said {
    /// The words, where they are not too long.
    fn reason(&self) -> Result<Option<&str>, PageError> {
        let reason = self.reason.trim();
        if reason.chars().count() > LONGEST_REASON {
            let message = format!("the reason has more than {LONGEST_REASON} characters");
            return Err(PageError::bad_request(message));
        }
        Ok(Some(reason).filter(|reason| !reason.is_empty()))
    }
}

pub(super) async fn accepted(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Form(said): Form<Said>,
) -> Result<Response, PageError> {
    let place = SkillPlace::Folder(&app.improvement.skills_folder);
    accept(&app.store, &id, place, said.reason()?).await?;
    Ok(Redirect::to(&link::proposal(&id)).into_response())
}

pub(super) async fn rejected(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Form(said): Form<Said>,
) -> Result<Response, PageError> {
    let Some(reason) = said.reason()? else {
        return Err(PageError::bad_request("say why, for those who read it later"));
    };
    reject(&app.store, &id, reason, said.again.is_some()).await?;
    Ok(Redirect::to(&link::proposal(&id)).into_response())
}

impl From<DecisionFault> for PageError {
    fn from(fault: DecisionFault) -> Self {
        let conflict = |message: String| Self { status: StatusCode::CONFLICT, message };
        match fault {
            DecisionFault::Store(error) => error.into(),
            DecisionFault::Unknown(id) => missing(&id),
            DecisionFault::Exists(_) => {
                conflict("another skill of that name was accepted before".to_owned())
            }
            DecisionFault::Decided { .. } | DecisionFault::Name(_) => conflict(fault.to_string()),
            DecisionFault::Write { .. } => Self::internal("the skill cannot be written", &fault),
        }
    }
}
