//! Grades in tool results: by rules with their evidence and corrections, and by models; and
//! `list_recent_grades`, the latest grades by models.

use jiff::Timestamp;
use schemars::JsonSchema;
use selftest_grading::grade::{
    ErrorCount, GradeEvidence, GradeOverride, GradePoint, GradeRecord, OutcomeEvidence,
    QualityGrade,
};
use selftest_store::{Cursor, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{QuoteLimit, ToolError, UntrustedText, clip_name, fit, fits};

/// Maximum number of evidence points per result.
pub(super) const MAX_POINTS: usize = 30;
/// Maximum number of error kinds per result.
pub(super) const MAX_ERRORS: usize = 15;
/// Maximum number of outcome signs per result.
const MAX_SIGNS: usize = 10;

/// A grade by fixed rules, without a model. Except for the outcome, it measures form and not
/// whether the work was right.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "they are the specification's columns")]
pub(super) struct RuleGrade {
    /// Outcome of the task: `checks_passed`, `contradicted`, `claimed` or `unknown`. Use this, and not
    /// `task_completed`, to see if the work was right.
    outcome: &'static str,
    /// Events that support the outcome, the decisive ones first.
    outcome_evidence: Vec<OutcomeSignAnswer>,
    /// Number of times the user objected to or interrupted the agent's work.
    corrections: u64,
    /// True if the task appears completed, according to the final message and the number of failed
    /// calls.
    task_completed: bool,
    /// Efficiency of tool use, 1 (very poor) to 5.
    tool_calls_efficient: u8,
    /// Form of the final response, 1 (very poor) to 5.
    response_quality: u8,
    /// True if a tool call succeeded after the last error, or if there were no errors.
    errors_recovered: bool,
    /// True with 3 or more consecutive errors.
    had_repeated_errors: bool,
    /// True with 5 or more consecutive errors, or more than 50 model calls.
    had_infinite_loop_risk: bool,
    /// True if the agent asked a clarifying question before it continued.
    had_user_clarification: bool,
    /// Number of model calls.
    model_calls: u64,
    /// Number of tool calls.
    tool_calls: u64,
    /// Number of failed tool calls.
    errors: u64,
    /// Kinds of errors, most frequent first.
    error_kinds: Vec<ErrorKindAnswer>,
    /// Reasons for the grade.
    evidence: Vec<EvidencePoint>,
    /// Time of grading.
    #[schemars(with = "String", extend("format" = "date-time"))]
    graded_at: Timestamp,
}

/// Errors of one class from one tool.
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorKindAnswer {
    /// Error class, such as `command_failed`.
    class: &'static str,
    /// Cause within the class, such as `edit_mismatch`.
    cause: &'static str,
    /// The tool.
    tool: String,
    /// Number of errors.
    count: u64,
    /// The first of these errors.
    example: Option<UntrustedText>,
}

/// One point for or against the session.
#[derive(Debug, Serialize, JsonSchema)]
struct EvidencePoint {
    /// The finding.
    found: &'static str,
    /// Points; negative values count against the session.
    worth: f64,
    /// Number of the event in `selftest sessions show`, from 0; null if it applies to the whole
    /// session.
    event: Option<u64>,
    /// Supporting text or numbers.
    words: Option<UntrustedText>,
}

/// An event that indicates the outcome of the task.
#[derive(Debug, Serialize, JsonSchema)]
struct OutcomeSignAnswer {
    /// The finding.
    found: &'static str,
    /// Number of the event in `selftest sessions show`, from 0.
    event: u64,
    /// The command, or the text of the user or agent.
    words: Option<UntrustedText>,
}

/// A person's correction of the grade by rules.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Correction {
    /// Corrected field.
    field: &'static str,
    /// Value by rules: 0 or 1, or 1 to 5.
    by_rules: u8,
    /// Corrected value.
    by_person: u8,
    /// Reason for the correction.
    reason: UntrustedText,
    /// Time of the correction.
    #[schemars(with = "String", extend("format" = "date-time"))]
    made_at: Timestamp,
}

impl RuleGrade {
    pub(super) fn of(grade: &GradeRecord, quoting: QuoteLimit) -> Self {
        let evidence = grade.details.evidence.iter().take(MAX_POINTS);
        let kinds = grade.details.errors.iter().take(MAX_ERRORS);
        let signs = grade.details.outcome_evidence.iter().take(MAX_SIGNS);
        Self {
            outcome: grade.outcome.name(),
            outcome_evidence: signs.map(|sign| OutcomeSignAnswer::of(sign, quoting)).collect(),
            corrections: grade.details.corrections,
            task_completed: grade.task_completed,
            tool_calls_efficient: grade.tool_calls_efficient.get(),
            response_quality: grade.response_quality.get(),
            errors_recovered: grade.errors_recovered,
            had_repeated_errors: grade.had_repeated_errors,
            had_infinite_loop_risk: grade.had_infinite_loop_risk,
            had_user_clarification: grade.had_user_clarification,
            model_calls: grade.total_api_calls,
            tool_calls: grade.details.tool_calls,
            errors: grade.total_errors,
            error_kinds: kinds.map(|error| ErrorKindAnswer::of(error, quoting)).collect(),
            evidence: evidence.map(|point| EvidencePoint::of(point, quoting)).collect(),
            graded_at: grade.graded_at,
        }
    }
}

impl OutcomeSignAnswer {
    fn of(evidence: &OutcomeEvidence, quoting: QuoteLimit) -> Self {
        Self {
            found: evidence.sign.words(),
            event: evidence.event,
            words: quoting.quote_optional(Some(&evidence.words)),
        }
    }
}

impl ErrorKindAnswer {
    fn of(error: &ErrorCount, quoting: QuoteLimit) -> Self {
        Self {
            class: error.class.name(),
            cause: error.cause.name(),
            tool: clip_name(&error.tool),
            count: error.count,
            example: quoting.quote_optional(Some(&error.example)),
        }
    }
}

impl EvidencePoint {
    fn of(evidence: &GradeEvidence, quoting: QuoteLimit) -> Self {
        Self {
            found: describe_point(evidence.point),
            worth: evidence.worth,
            event: evidence.event,
            words: quoting.quote_optional(Some(&evidence.words)),
        }
    }
}

impl Correction {
    pub(super) fn of(made: &GradeOverride, quoting: QuoteLimit) -> Self {
        Self {
            field: made.field.name(),
            by_rules: made.rule_value,
            by_person: made.human_value,
            reason: quoting.quote(&made.reason),
            made_at: made.made_at,
        }
    }
}

/// Describes a point in a sentence.
fn describe_point(point: GradePoint) -> &'static str {
    match point {
        GradePoint::SaysDone => "task_completed: the final message says that it is done",
        GradePoint::NamesOutput => "task_completed: the final message refers to something made",
        GradePoint::FewErrors => "task_completed: few errors for the number of model calls",
        GradePoint::SaysFailed => "task_completed: the final message says that it failed",
        GradePoint::ManyErrors => "task_completed: errors in more than 30 % of the model calls",
        GradePoint::ShortResponse => "task_completed: no final message, or a very short one",
        GradePoint::Over500 => "response_quality: longer than 500 characters",
        GradePoint::Over1000 => "response_quality: longer than 1000 characters",
        GradePoint::HasCode => "response_quality: has code blocks",
        GradePoint::HasLinks => "response_quality: has links or references",
        GradePoint::RepeatedErrors => "response_quality: 3 or more errors in a row",
        GradePoint::Over5Errors => "response_quality: more than 5 errors",
        GradePoint::LoopRisk => {
            "response_quality: 5 or more errors in a row, or over 50 model calls"
        }
        GradePoint::Efficiency => "tool_calls_efficient: the row of the table that applied",
        GradePoint::Recovery => "errors_recovered: what the errors were followed by",
        GradePoint::Clarification => "had_user_clarification: the agent asked back",
    }
}

/// Maximum number of notes per grade; the rubric has fewer.
const MAX_NOTES: usize = 8;

/// A grade of a session by a language model. Scores are from 0 to 1, or null if the model could not
/// tell.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ModelGrade {
    /// Session id.
    session_id: String,
    /// Model that graded the session.
    grader_model: String,
    /// Version of the rubric; scores of different versions are not comparable. Versions from
    /// 1073741824 on belong to a prompt that the project has edited.
    rubric_version: u32,
    /// Time of grading.
    #[schemars(with = "String", extend("format" = "date-time"))]
    graded_at: Timestamp,
    /// Was the problem solved?
    problem_solved: Option<f64>,
    /// Were tests added?
    tests_added: Option<f64>,
    /// Is the code clean?
    code_clean: Option<f64>,
    /// Were edge cases handled?
    edge_cases: Option<f64>,
    /// Weighted average of the known scores; null if fewer than two are known.
    overall: Option<f64>,
    /// The grader's summary.
    reasoning: Option<UntrustedText>,
}

/// A model's reasons for one score.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ScoreNote {
    /// Name of the score.
    dimension: String,
    /// Quotation from the session that supports the score.
    evidence: Option<UntrustedText>,
    /// The model's reasoning.
    reasoning: Option<UntrustedText>,
    /// True if the quotation does not occur in the session; the score is then ignored.
    unsupported: bool,
}

impl ModelGrade {
    pub(super) fn of(grade: &QualityGrade, quoting: QuoteLimit) -> Self {
        Self {
            session_id: clip_name(&grade.session_id),
            grader_model: clip_name(&grade.model),
            rubric_version: grade.rubric_version,
            graded_at: grade.ts,
            problem_solved: grade.problem_solved,
            tests_added: grade.tests_added,
            code_clean: grade.code_clean,
            edge_cases: grade.edge_cases,
            overall: grade.overall,
            reasoning: quoting.quote_optional(grade.reasoning.as_deref()),
        }
    }
}

/// Returns the reasons for each score. Empty if another program wrote the row.
pub(super) fn notes(grade: &QualityGrade, quoting: QuoteLimit) -> Vec<ScoreNote> {
    let dimensions = grade.details.as_ref().and_then(|details| details.get("dimensions"));
    let Some(Value::Object(dimensions)) = dimensions else { return Vec::new() };
    let of = |(dimension, note): (&String, &Value)| ScoreNote {
        dimension: clip_name(dimension),
        evidence: quoting.quote_optional(note["evidence"].as_str()),
        reasoning: quoting.quote_optional(note["reasoning"].as_str()),
        unsupported: note["unsupported"].as_bool().unwrap_or_default(),
    };
    dimensions.iter().take(MAX_NOTES).map(of).collect()
}

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
pub(super) async fn show_recent(
    store: &Store,
    arguments: &RecentArguments,
) -> Result<RecentGrades, ToolError> {
    let mut limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ToolError(format!("limit is {limit}, expected 1 to {MAX_LIMIT}")));
    }
    // Checked here as well: NaN and numbers out of range pass the schema of some clients.
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
    is_later_page: bool,
) -> Result<String, ToolError> {
    if is_later_page {
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
