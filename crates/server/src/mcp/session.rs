//! `get_session_grade`: everything that is known of one session; and finding it.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::{Quoted, Quoting, ToolError, fitting, for_message, left_out, name};
use super::model_grade::{ModelGrade, Note, notes};
use super::rule_grade::{Correction, MAX_ERRORS, MAX_POINTS, RuleGrade};
use selftest_grading::grade::quality::{Combined, combine};
use selftest_grading::grade::{Cost, GradeRecord, Override, QualityGrade, overrides};
use selftest_models::prices::Prices;
use selftest_store::Store;
use selftest_text::escape::terminal;
use selftest_text::wording::plural;

/// Most grades by models, and most corrections, that are shown.
const MAX_LISTED: usize = 10;
/// Most bytes of a cost, which may name models without a price.
const MAX_COST: usize = 400;
/// Ids that a refusal names.
const MAX_IDS: usize = 5;

/// Which session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionArguments {
    /// Id of the session, or the beginning of it if no other session begins so.
    #[schemars(length(min = 1, max = 512))]
    pub(super) session_id: String,
}

/// Everything that is known of one session.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionGrade {
    /// Id of the session.
    session_id: String,
    /// The session itself; null where it has no grade by rules.
    session: Option<About>,
    /// The grade by rules; null where there is none.
    by_rules: Option<RuleGrade>,
    /// Corrections by people of the grade by rules, oldest first; the newest of a field counts.
    overrides: Vec<Correction>,
    /// The grade by rules with the overrides applied; null where there are none.
    with_overrides: Option<Counted>,
    /// Grades by models, of the rubric of now.
    by_models: Vec<Explained>,
    /// Their average; null where no model has graded the session.
    average: Option<Combined>,
    /// Parts not shown, and possible next steps.
    remarks: Vec<String>,
}

/// A recorded session.
#[derive(Debug, Serialize, JsonSchema)]
struct About {
    /// `task` of a person; `subagent`, `warm_up` and `automatic` count in no rate.
    kind: &'static str,
    /// The session that it was started by or goes on from.
    parent: Option<String>,
    /// The agent that recorded it.
    agent: String,
    /// The model that worked.
    model: Option<String>,
    /// Such as `debugging`; inferred from the request.
    task_type: &'static str,
    /// The beginning of the first request.
    request: Option<Quoted>,
    /// When it began.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    started_at: Option<Timestamp>,
    /// From its first time to its last.
    duration_seconds: Option<f64>,
    /// Messages of any role.
    messages: u64,
    /// Tokens that its models read, those from caches apart, and wrote.
    tokens: Tokens,
    /// Money, or why it is unknown.
    cost: String,
}

/// Tokens of a session.
#[derive(Debug, Serialize, JsonSchema)]
struct Tokens {
    /// Read, without those from a cache.
    input: u64,
    /// Written.
    output: u64,
    /// Read from a cache.
    cached: u64,
}

impl Tokens {
    fn of(grade: &GradeRecord) -> Self {
        let tokens = grade.details.tokens;
        Self { input: tokens.input, output: tokens.output, cached: tokens.cached }
    }
}

/// The fields that a person can override.
#[derive(Debug, Serialize, JsonSchema)]
struct Counted {
    /// Whether the task appears to have been completed.
    task_completed: bool,
    /// 1 to 5.
    tool_calls_efficient: u8,
    /// 1 to 5.
    response_quality: u8,
    /// Whether errors were recovered from.
    errors_recovered: bool,
}

/// A grade by a model with its reasons.
#[derive(Debug, Serialize, JsonSchema)]
struct Explained {
    /// The grade.
    #[serde(flatten)]
    grade: ModelGrade,
    /// The reasons for each score.
    notes: Vec<Note>,
}

/// A session and its grade by rules, where it has one.
pub(super) struct FoundSession {
    pub(super) session_id: String,
    rules: Option<GradeRecord>,
}

impl FoundSession {
    /// The file that it was graded from.
    pub(super) fn file(&self) -> Option<&str> {
        self.rules.as_ref().map(|grade| grade.session_file.as_str())
    }
}

/// The one session with that id, or whose id begins so.
pub(super) async fn find(store: &Store, wanted: &str) -> Result<FoundSession, ToolError> {
    if wanted.is_empty() {
        return Err(ToolError(
            "session_id is empty: give an id or the beginning of one".to_owned(),
        ));
    }
    let of = |grade: GradeRecord| FoundSession {
        session_id: grade.session_id.clone(),
        rules: Some(grade),
    };
    if let Some(grade) = store.grade(wanted).await? {
        return Ok(of(grade));
    }
    let mut found = store.find_grades(wanted).await?.items;
    match found.len() {
        1 => Ok(of(found.remove(0))),
        0 if !store.quality_of(wanted).await?.items.is_empty() => {
            Ok(FoundSession { session_id: wanted.to_owned(), rules: None })
        }
        0 => Err(unknown(store, wanted).await?),
        count => {
            let ids: Vec<String> =
                found.iter().take(MAX_IDS).map(|grade| for_message(&grade.session_id)).collect();
            Err(ToolError(format!(
                "several sessions have ids that begin with {}: {}{}; call again with more of \
                 the id",
                for_message(wanted),
                ids.join(", "),
                if count > MAX_IDS { " and others" } else { "" }
            )))
        }
    }
}

async fn unknown(store: &Store, wanted: &str) -> Result<ToolError, ToolError> {
    let graded = store.graded_sessions().await?;
    let newest = store.latest_grades(MAX_IDS as u64, None).await?.items;
    let ids: Vec<String> = newest.iter().map(|grade| for_message(&grade.session_id)).collect();
    let known = match ids.as_slice() {
        [] => "no session has been graded yet".to_owned(),
        ids => format!("{} graded, the newest {}", plural(graded, "session"), ids.join(", ")),
    };
    Ok(ToolError(format!(
        "no graded session has an id that begins with {} ({known}); check the id, or run \
         `selftest grade latest` in the project, which reads and grades new sessions",
        for_message(wanted)
    )))
}

/// The answer.
pub(super) async fn show(
    store: &Store,
    prices: &Prices,
    wanted: &str,
) -> Result<SessionGrade, ToolError> {
    let known = find(store, wanted).await?;
    let made = store.overrides_of(&known.session_id).await?.items;
    let models = store.quality_of(&known.session_id).await?.items;
    Ok(fitting(|quoting| answer(&known, prices, &made, &models, quoting)))
}

fn answer(
    known: &FoundSession,
    prices: &Prices,
    made: &[Override],
    models: &[QualityGrade],
    quoting: Quoting,
) -> SessionGrade {
    let rules = known.rules.as_ref();
    let counted = rules.filter(|_| !made.is_empty()).map(|rules| {
        let grade = overrides::apply(rules.clone(), made);
        Counted {
            task_completed: grade.task_completed,
            tool_calls_efficient: grade.tool_calls_efficient.get(),
            response_quality: grade.response_quality.get(),
            errors_recovered: grade.errors_recovered,
        }
    });
    let newest = &made[made.len().saturating_sub(MAX_LISTED)..];
    let explained = models.iter().take(MAX_LISTED).map(|grade| Explained {
        grade: ModelGrade::of(grade, quoting),
        notes: notes(grade, quoting),
    });
    SessionGrade {
        session_id: name(&known.session_id),
        session: rules.map(|grade| about(grade, prices, quoting)),
        by_rules: rules.map(|grade| RuleGrade::of(grade, quoting)),
        overrides: newest.iter().map(|one| Correction::of(one, quoting)).collect(),
        with_overrides: counted,
        by_models: explained.collect(),
        average: combine(models),
        remarks: remarks(rules, made, models),
    }
}

fn about(grade: &GradeRecord, prices: &Prices, quoting: Quoting) -> About {
    About {
        kind: grade.session_kind.name(),
        parent: grade.parent_session.as_deref().map(name),
        agent: name(&grade.details.agent),
        model: grade.model.as_deref().map(name),
        task_type: grade.details.task_type.name(),
        request: quoting.quote_some(grade.task_summary.as_deref()),
        started_at: grade.session_start,
        duration_seconds: grade.duration_seconds,
        messages: grade.details.messages,
        tokens: Tokens::of(grade),
        cost: terminal(&Cost::of(&grade.details.spent, prices).words(), MAX_COST),
    }
}

fn remarks(rules: Option<&GradeRecord>, made: &[Override], models: &[QualityGrade]) -> Vec<String> {
    let details = rules.map(|grade| &grade.details);
    let mut remarks = left_out([
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
