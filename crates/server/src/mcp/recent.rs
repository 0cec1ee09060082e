//! `list_recent_grades`: the latest grades by models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{ToolError, fit, fits};
use super::grades::ModelGrade;
use selftest_store::{Cursor, Store};

/// Maximum number of grades per result.
const MAX_LIMIT: u32 = 50;
/// Default number of grades per result.
const DEFAULT_LIMIT: u32 = 20;

/// Arguments of `list_recent_grades`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecentArguments {
    /// Maximum number of grades to list. Default: 20.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<u32>,
    /// Only grades with at least this overall score.
    #[schemars(range(min = 0.0, max = 1.0))]
    min_overall: Option<f64>,
    /// `next_cursor` of the previous result, to continue after it.
    cursor: Option<String>,
}

/// Grades by models, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RecentGrades {
    /// Grades by the current rubric, one per session and model.
    grades: Vec<ModelGrade>,
    /// Value of `cursor` for the next page; null on the last one.
    next_cursor: Option<String>,
    /// Advice if nothing was found.
    remarks: Vec<String>,
}

/// Runs the tool.
pub(super) async fn show(
    store: &Store,
    arguments: &RecentArguments,
) -> Result<RecentGrades, ToolError> {
    let mut limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ToolError(format!("limit is {limit}, expected 1 to {MAX_LIMIT}")));
    }
    let least = arguments.min_overall;
    if let Some(least) = least.filter(|least| !(0.0..=1.0).contains(least)) {
        return Err(ToolError(format!("min_overall is {least}, expected 0 to 1")));
    }
    let cursor = arguments.cursor.as_deref().map(str::parse::<Cursor>).transpose();
    let cursor = cursor.map_err(|_| {
        let expected = "expected `next_cursor` of an answer before, or none for the newest grades";
        ToolError(format!("cursor is of another kind: {expected}"))
    })?;
    loop {
        let page = store.recent_quality(least, limit, cursor.as_ref()).await?;
        let remarks = match page.items.as_slice() {
            [] if page.next.is_none() => vec![explain_empty(store, least, cursor.is_some()).await?],
            _ => Vec::new(),
        };
        let answer = fit(|quoting| RecentGrades {
            grades: page.items.iter().map(|grade| ModelGrade::of(grade, quoting)).collect(),
            next_cursor: page.next.as_ref().map(ToString::to_string),
            remarks: remarks.clone(),
        });
        // Queries fewer rows instead of truncating the list, because the cursor must follow the
        // last row shown.
        if limit == 1 || fits(&answer) {
            return Ok(answer);
        }
        limit /= 2;
    }
}

/// Explains why the list is empty.
async fn explain_empty(
    store: &Store,
    least: Option<f64>,
    goes_on: bool,
) -> Result<String, ToolError> {
    if goes_on {
        return Ok("there are no more grades".to_owned());
    }
    let any = store.recent_quality(None, 1, None).await?;
    if let (Some(least), false) = (least, any.items.is_empty()) {
        return Ok(format!(
            "no grade has an overall score of at least {least}; call again with a lower \
             min_overall or without one"
        ));
    }
    let sessions = store.graded_sessions().await?;
    let first = if sessions == 0 {
        "no session is known yet: run `selftest grade latest` in the project first; then"
    } else {
        "no model has graded any session yet:"
    };
    Ok(format!(
        "{first} call grade_session for one session, or run `selftest grade backfill --limit 20`"
    ))
}
