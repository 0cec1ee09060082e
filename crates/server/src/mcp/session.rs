//! `get_session_grade`: all data about one session. Also looks up sessions for other tools.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{
    QuoteLimit, ToolError, UntrustedText, clip_name, fit, quote_for_message, truncation_remarks,
};
use super::grades::{Correction, MAX_ERRORS, MAX_POINTS, ModelGrade, RuleGrade, ScoreNote, notes};
use selftest_grading::grade::quality::{CombinedQuality, combine_grades};
use selftest_grading::grade::{
    GradeOverride, GradeRecord, QualityGrade, TokenCost, apply_overrides,
};
use selftest_models::prices::ModelPrices;
use selftest_store::Store;
use selftest_text::escape::terminal;
use selftest_text::wording::plural;

/// Maximum number of model grades and of corrections per result.
const MAX_LISTED: usize = 10;
/// Maximum length in bytes of a cost, which may list models without a price.
const MAX_COST: usize = 400;
/// Maximum number of ids listed in an error.
const MAX_IDS: usize = 5;

/// Arguments of `get_session_grade`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionArguments {
    /// Session id, or an unambiguous prefix of it.
    #[schemars(length(min = 1, max = 512))]
    pub(super) session_id: String,
}

/// All data about one session.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionGrade {
    /// Session id.
    session_id: String,
    /// The session itself; null without a grade by rules.
    session: Option<SessionInfo>,
    /// Grade by rules; null if missing.
    by_rules: Option<RuleGrade>,
    /// Corrections by people of the grade by rules, oldest first; the newest for a field applies.
    overrides: Vec<Correction>,
    /// Grade by rules with the overrides applied; null without overrides.
    with_overrides: Option<CorrectedGrade>,
    /// Grades by models, by the current rubric.
    by_models: Vec<ExplainedGrade>,
    /// Average of the model grades; null without model grades.
    average: Option<CombinedQuality>,
    /// Omitted parts, and possible next steps.
    remarks: Vec<String>,
}

/// A recorded session.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionInfo {
    /// `task` of a person; `subagent`, `warm_up` and `automatic` are excluded from rates.
    kind: &'static str,
    /// Session that started this one, or that this one continues.
    parent: Option<String>,
    /// Agent that recorded the session.
    agent: String,
    /// Model that did the work.
    model: Option<String>,
    /// Task type, such as `debugging`; inferred from the request.
    task_type: &'static str,
    /// Start of the first request.
    request: Option<UntrustedText>,
    /// Start time.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    started_at: Option<Timestamp>,
    /// Time between the first and the last timestamp.
    duration_seconds: Option<f64>,
    /// Number of messages of any role.
    messages: u64,
    /// Input tokens, output tokens and tokens read from a cache.
    tokens: SessionTokens,
    /// Cost, or why it is unknown.
    cost: String,
}

/// Tokens of a session.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionTokens {
    /// Input tokens, excluding those from a cache.
    input: u64,
    /// Output tokens.
    output: u64,
    /// Tokens read from a cache.
    cached: u64,
}

impl SessionTokens {
    fn of(grade: &GradeRecord) -> Self {
        let tokens = grade.details.tokens;
        Self { input: tokens.input, output: tokens.output, cached: tokens.cached }
    }
}

/// The fields that a person can override.
#[derive(Debug, Serialize, JsonSchema)]
struct CorrectedGrade {
    /// True if the task appears completed.
    task_completed: bool,
    /// 1 to 5.
    tool_calls_efficient: u8,
    /// 1 to 5.
    response_quality: u8,
    /// True if the session recovered from errors.
    errors_recovered: bool,
}

/// A grade by a model with its reasons.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedGrade {
    /// The grade.
    #[serde(flatten)]
    grade: ModelGrade,
    /// Reasons for each score.
    notes: Vec<ScoreNote>,
}

/// A session with its grade by rules, if any.
pub(super) struct SessionMatch {
    pub(super) session_id: String,
    rules: Option<GradeRecord>,
}

impl SessionMatch {
    /// Returns the file from which it was graded.
    pub(super) fn file(&self) -> Option<&str> {
        self.rules.as_ref().map(|grade| grade.session_file.as_str())
    }
}

/// Finds the session with this id or unambiguous prefix.
pub(super) async fn find(store: &Store, wanted: &str) -> Result<SessionMatch, ToolError> {
    // Every id begins with an empty text.
    if wanted.is_empty() {
        return Err(ToolError(
            "session_id is empty: give an id or the beginning of one".to_owned(),
        ));
    }
    let of = |grade: GradeRecord| SessionMatch {
        session_id: grade.session_id.clone(),
        rules: Some(grade),
    };
    // An exact id takes precedence over longer ones that start with it.
    if let Some(grade) = store.grade(wanted).await? {
        return Ok(of(grade));
    }
    let mut found = store.find_grades(wanted).await?.items;
    match found.len() {
        // The store returns a few matches at most, enough to see that a prefix is ambiguous.
        1 => Ok(of(found.remove(0))),
        // A session can have grades by models only.
        0 if !store.session_quality_grades(wanted).await?.items.is_empty() => {
            Ok(SessionMatch { session_id: wanted.to_owned(), rules: None })
        }
        0 => Err(unknown_session(store, wanted).await?),
        count => {
            let ids: Vec<String> = found
                .iter()
                .take(MAX_IDS)
                .map(|grade| quote_for_message(&grade.session_id))
                .collect();
            Err(ToolError(format!(
                "several session ids start with {}: {}{}; call again with more of \
                 the id",
                quote_for_message(wanted),
                ids.join(", "),
                if count > MAX_IDS { " and others" } else { "" }
            )))
        }
    }
}

async fn unknown_session(store: &Store, wanted: &str) -> Result<ToolError, ToolError> {
    let graded = store.graded_sessions().await?;
    let newest = store.latest_grades(MAX_IDS as u64, None).await?.items;
    let ids: Vec<String> =
        newest.iter().map(|grade| quote_for_message(&grade.session_id)).collect();
    let known = match ids.as_slice() {
        [] => "no session has been graded yet".to_owned(),
        ids => format!("{} graded, the newest {}", plural(graded, "session"), ids.join(", ")),
    };
    Ok(ToolError(format!(
        "no graded session has an id that begins with {} ({known}); check the id, or run \
         `selftest grade latest` in the project, which reads and grades new sessions",
        quote_for_message(wanted)
    )))
}

/// Runs the tool.
pub(super) async fn show(
    store: &Store,
    prices: &ModelPrices,
    wanted: &str,
) -> Result<SessionGrade, ToolError> {
    let known = find(store, wanted).await?;
    let made = store.session_overrides(&known.session_id).await?.items;
    let models = store.session_quality_grades(&known.session_id).await?.items;
    Ok(fit(|quoting| answer(&known, prices, &made, &models, quoting)))
}

fn answer(
    known: &SessionMatch,
    prices: &ModelPrices,
    made: &[GradeOverride],
    models: &[QualityGrade],
    quoting: QuoteLimit,
) -> SessionGrade {
    let rules = known.rules.as_ref();
    let counted = rules.filter(|_| !made.is_empty()).map(|rules| {
        let grade = apply_overrides(rules.clone(), made);
        CorrectedGrade {
            task_completed: grade.task_completed,
            tool_calls_efficient: grade.tool_calls_efficient.get(),
            response_quality: grade.response_quality.get(),
            errors_recovered: grade.errors_recovered,
        }
    });
    // Kept in the order in which they were made: the newest are at the end.
    let newest = &made[made.len().saturating_sub(MAX_LISTED)..];
    let explained = models.iter().take(MAX_LISTED).map(|grade| ExplainedGrade {
        grade: ModelGrade::of(grade, quoting),
        notes: notes(grade, quoting),
    });
    SessionGrade {
        session_id: clip_name(&known.session_id),
        session: rules.map(|grade| session_info(grade, prices, quoting)),
        by_rules: rules.map(|grade| RuleGrade::of(grade, quoting)),
        overrides: newest.iter().map(|one| Correction::of(one, quoting)).collect(),
        with_overrides: counted,
        by_models: explained.collect(),
        average: combine_grades(models),
        remarks: remarks(rules, made, models),
    }
}

fn session_info(grade: &GradeRecord, prices: &ModelPrices, quoting: QuoteLimit) -> SessionInfo {
    SessionInfo {
        kind: grade.session_kind.name(),
        parent: grade.parent_session.as_deref().map(clip_name),
        agent: clip_name(&grade.details.agent),
        model: grade.model.as_deref().map(clip_name),
        task_type: grade.details.task_type.name(),
        request: quoting.quote_optional(grade.task_summary.as_deref()),
        started_at: grade.started_at(),
        duration_seconds: grade.duration_seconds,
        messages: grade.details.messages,
        tokens: SessionTokens::of(grade),
        cost: terminal(&TokenCost::of_session(&grade.details, prices).words(), MAX_COST),
    }
}

fn remarks(
    rules: Option<&GradeRecord>,
    made: &[GradeOverride],
    models: &[QualityGrade],
) -> Vec<String> {
    let details = rules.map(|grade| &grade.details);
    let mut remarks = truncation_remarks([
        (details.map_or(0, |details| details.evidence.len()), MAX_POINTS, "points of evidence"),
        (details.map_or(0, |details| details.errors.len()), MAX_ERRORS, "kinds of errors"),
        (made.len(), MAX_LISTED, "overrides"),
        (models.len(), MAX_LISTED, "grades by models"),
    ]);
    match models.len() {
        0 => remarks.push(
            "no model has graded this session yet: call grade_session to let one do it".to_owned(),
        ),
        1 => remarks.push(
            "only one model has graded this session; where precision matters, call grade_session \
             with another model"
                .to_owned(),
        ),
        _ => {}
    }
    remarks
}
