//! Queries of `session_grades`, of `session_quality_grades`, whose grades are by language models
//! (docs/spec/session-quality.md#table), and what people add to grades: `grade_overrides`, whose rows
//! are only added, and `session_labels` of task success.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::bound::MAX_PATH;
use super::page::{Cursor, ResultPage};
use super::row::{Columns, Record, Rows, optional_unit, read_from, record};
use super::statement::{ToValue as _, Value, params, stored_as};
use super::{ColumnError, Store, StoreError, bound, lineage};
use selftest_grading::grade::{
    ErrorCause, ErrorClass, ErrorCount, GradeDetails, GradeField, GradeLevel, GradeOverride,
    GradeRecord, LabelSource, OutcomeState, QualityGrade, SessionKind, SessionLabel, TaskOutcome,
    TaskType, ToolUse,
};
use selftest_sessions::{SessionLineage, TokenCounts};

/// Maximum number of grades returned for an abbreviated id.
const MAX_FOUND: i64 = 100;

impl Store {
    /// Returns the grade of a session.
    pub async fn grade(&self, session_id: &str) -> Result<Option<GradeRecord>, StoreError> {
        let what = format!("the grade of session {session_id}");
        self.find_one(&what, "WHERE session_id = $1", params![session_id]).await
    }

    /// Returns the grades of sessions whose ids start with `prefix`, sorted by id, at most 100.
    pub async fn find_grades(&self, prefix: &str) -> Result<Rows<GradeRecord>, StoreError> {
        // Not `LIKE`, for which `%` and `_` in an id are wildcards.
        let query = "WHERE substr(session_id, 1, CAST($1 AS INTEGER)) = $2 \
                     ORDER BY session_id LIMIT $3";
        let prefix = bound::text(prefix, bound::NAME);
        let characters = prefix.chars().count() as u64;
        self.find(query, params![characters, prefix, MAX_FOUND]).await
    }

    /// Returns the grades of sessions in this file, or in files below this folder, newest first and
    /// undated ones last, at most `limit`, optionally of one agent.
    pub async fn grades_below(
        &self,
        path: &str,
        agent: Option<&str>,
        limit: u64,
    ) -> Result<Rows<GradeRecord>, StoreError> {
        let query = "WHERE (session_file = $1 \
                     OR substr(session_file, 1, CAST($2 AS INTEGER)) = $3) \
                     AND (CAST($4 AS TEXT) IS NULL OR agent = $4) \
                     ORDER BY counts_at IS NULL, counts_at DESC, session_id LIMIT $5";
        let path = bound::path(path);
        // The slash keeps `/a/b` from matching `/a/bc`.
        let folder = format!("{}/", path.trim_end_matches('/'));
        let characters = folder.chars().count() as u64;
        let (path, folder) = (path.to_value(MAX_PATH), folder.to_value(MAX_PATH));
        self.find(query, params![path, characters, folder, agent, limit]).await
    }

    /// Counts the sessions with a grade.
    pub async fn graded_sessions(&self) -> Result<u64, StoreError> {
        self.count("SELECT COUNT(*) AS count FROM session_grades", []).await
    }

    /// Returns the grades counted in `from..to`, oldest first, optionally of one agent.
    pub async fn grades_between(
        &self,
        from: Timestamp,
        to: Timestamp,
        agent: Option<&str>,
    ) -> Result<Rows<GradeRecord>, StoreError> {
        // Rows of other programs have no `counts_at`, and undated ones neither. The times of other
        // programs come in many formats and can only be compared after parsing.
        let query = "WHERE (counts_at >= $1 AND counts_at < $2 OR counts_at IS NULL) \
                     AND (CAST($3 AS TEXT) IS NULL OR agent = $3)";
        let mut rows = self.find::<GradeRecord>(query, params![from, to, agent]).await?;
        rows.items.retain(|grade| grade.is_in(&(from..to)));
        rows.items.sort_by(compare_by_time);
        Ok(rows)
    }

    /// Returns every grade, undated ones too, optionally of one agent.
    pub async fn all_grades(&self, agent: Option<&str>) -> Result<Rows<GradeRecord>, StoreError> {
        let query = "WHERE (CAST($1 AS TEXT) IS NULL OR agent = $1)";
        let mut rows = self.find::<GradeRecord>(query, params![agent]).await?;
        rows.items.sort_by(compare_by_time);
        Ok(rows)
    }

    /// Passes each grade counted in `from..to` to `each`, newest first. A single day may have too
    /// many grades to hold in memory. Grades of other programs are not included
    /// ([`Store::foreign_grades`]).
    pub async fn for_each_grade(
        &self,
        from: Timestamp,
        to: Timestamp,
        mut each: impl FnMut(GradeRecord),
    ) -> Result<(), StoreError> {
        let query = GradeRecord::select(
            "WHERE counts_at >= $1 AND counts_at < $2 ORDER BY counts_at DESC, session_id",
        );
        let read = |row: &Columns<'_>| {
            each(GradeRecord::read(row)?);
            Ok(())
        };
        self.fetch(query, params![from, to], read).await.map(drop)
    }

    /// Returns up to `limit` grades, newest first and undated ones last, optionally of one agent.
    pub async fn latest_grades(
        &self,
        limit: u64,
        agent: Option<&str>,
    ) -> Result<Rows<GradeRecord>, StoreError> {
        let agent_is = "(CAST($1 AS TEXT) IS NULL OR agent = $1)";
        // Rows of other programs have no `counts_at`; they are sorted after reading. So are undated
        // ones.
        let others = GradeRecord::select(&format!("WHERE counts_at IS NULL AND {agent_is}"));
        let ours = GradeRecord::select(&format!(
            "WHERE counts_at IS NOT NULL AND {agent_is} \
             ORDER BY counts_at DESC, session_id DESC LIMIT $2"
        ));
        let query = format!("{others} UNION ALL SELECT * FROM ({ours}) AS newest");
        let mut rows = self.fetch(query, params![agent, limit], GradeRecord::read).await?;
        rows.items.sort_by(|a, b| compare_by_time(b, a));
        rows.items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(rows)
    }

    /// Returns the latest time at which a grade is counted.
    pub async fn newest_counts_at(&self) -> Result<Option<Timestamp>, StoreError> {
        let newest = self.latest_grades(1, None).await?.items;
        Ok(newest.first().and_then(GradeRecord::started_at))
    }
}

fn compare_by_time(a: &GradeRecord, b: &GradeRecord) -> std::cmp::Ordering {
    (a.details.counts_at, &a.session_id).cmp(&(b.details.counts_at, &b.session_id))
}

/// Sessions of one agent and task type with the same grades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreCount {
    /// Task type.
    pub task_type: TaskType,
    /// True if they were completed.
    pub task_completed: bool,
    /// Efficiency of tool calls.
    pub efficiency: GradeLevel,
    /// Quality of answers.
    pub quality: GradeLevel,
    /// Number of sessions from the earlier part of the period.
    pub earlier: u64,
    /// Number of sessions from the later part.
    pub recent: u64,
}

fn read_score_count(row: &Columns<'_>) -> Result<ScoreCount, ColumnError> {
    let (sessions, recent): (u64, u64) = (row.get("sessions")?, row.get("recent")?);
    Ok(ScoreCount {
        task_type: row.get("task_type")?,
        task_completed: row.get("task_completed")?,
        efficiency: row.get("tool_calls_efficient")?,
        quality: row.get("response_quality")?,
        earlier: sessions.saturating_sub(recent),
        recent,
    })
}

impl Store {
    /// Counts the tasks in `earliest..to` by their grades, with those before `from` counted
    /// separately, optionally for one agent. Excludes the grades of [`Store::uncountable_grades`].
    pub async fn score_counts(
        &self,
        [earliest, from, to]: [Timestamp; 3],
        agent: Option<&str>,
    ) -> Result<Rows<ScoreCount>, StoreError> {
        // Grouped in the order of an index that covers the query. `COALESCE` hides the time column:
        // otherwise the planner would choose the index that starts with it and sort all of it.
        let query = "SELECT task_type, task_completed, tool_calls_efficient, response_quality, \
                     COUNT(*) AS sessions, \
                     SUM(CASE WHEN counts_at >= $2 THEN 1 ELSE 0 END) AS recent \
                     FROM session_grades \
                     WHERE COALESCE(counts_at, '') >= $1 AND COALESCE(counts_at, '') < $3 \
                     AND (CAST($4 AS TEXT) IS NULL OR agent = $4) \
                     AND COALESCE(session_kind, 'task') = 'task' \
                     AND session_id NOT IN (SELECT session_id FROM grade_overrides) \
                     GROUP BY agent, task_type, task_completed, tool_calls_efficient, \
                     response_quality";
        self.fetch(query, params![earliest, from, to, agent], read_score_count).await
    }

    /// Returns the grades in `from..to` that cannot be counted by their columns: human-corrected
    /// ones, and those of other programs, whose times come in many formats.
    pub async fn uncountable_grades(
        &self,
        from: Timestamp,
        to: Timestamp,
        agent: Option<&str>,
    ) -> Result<Vec<GradeRecord>, StoreError> {
        let corrected = "WHERE counts_at IS NOT NULL \
                         AND (CAST($1 AS TEXT) IS NULL OR agent = $1) \
                         AND session_id IN (SELECT session_id FROM grade_overrides)";
        let mut grades = self.foreign_grades(from, to, agent).await?;
        let corrected = self.find::<GradeRecord>(corrected, params![agent]).await?.items;
        grades.extend(corrected.into_iter().filter(|grade| grade.is_in(&(from..to))));
        Ok(grades)
    }

    /// Returns the grades in `from..to` written by other programs. Their times come in many formats
    /// and are compared after parsing.
    pub async fn foreign_grades(
        &self,
        from: Timestamp,
        to: Timestamp,
        agent: Option<&str>,
    ) -> Result<Vec<GradeRecord>, StoreError> {
        let foreign = "WHERE counts_at IS NULL AND (CAST($1 AS TEXT) IS NULL OR agent = $1)";
        let mut grades = self.find::<GradeRecord>(foreign, params![agent]).await?.items;
        grades.retain(|grade| grade.is_in(&(from..to)));
        Ok(grades)
    }
}

record!(GradeOverride, "grade_overrides", {
    session_id,
    field,
    rule_value,
    human_value,
    reason [bound::TEXT],
    made_at,
});

stored_as! { Text: GradeField => |field, _limit| field.name().to_owned() }
read_from! { |row, name| GradeField => row.named(name, GradeField::from_name) }

impl Store {
    /// Adds an override; earlier ones of the same field stay.
    pub async fn add_override(&self, made: &GradeOverride) -> Result<(), StoreError> {
        self.execute(GradeOverride::insert(), made.values()).await.map(drop)
    }

    /// Returns all overrides, oldest first.
    pub async fn overrides(&self) -> Result<Rows<GradeOverride>, StoreError> {
        self.find("ORDER BY made_at, id", []).await
    }

    /// Returns the overrides of one session, oldest first.
    pub async fn session_overrides(
        &self,
        session_id: &str,
    ) -> Result<Rows<GradeOverride>, StoreError> {
        self.find("WHERE session_id = $1 ORDER BY made_at, id", params![session_id]).await
    }
}

record!(SessionLabel, "session_labels", {
    session_id,
    success,
    source,
    task,
    note [bound::TEXT],
    labelled_at,
});

stored_as! { Text: LabelSource => |source, _limit| source.name().to_owned() }
read_from! { |row, name| LabelSource => row.named(name, LabelSource::from_name) }

impl Store {
    /// Saves labels in one transaction.
    pub async fn add_labels(&self, labels: &[SessionLabel]) -> Result<(), StoreError> {
        let mut writing = self.begin_write().await?;
        for label in labels {
            writing.execute(SessionLabel::upsert("session_id"), label.values()).await?;
        }
        writing.commit().await
    }

    /// Returns all labels, sorted by session.
    pub async fn labels(&self) -> Result<Rows<SessionLabel>, StoreError> {
        self.find("ORDER BY session_id", []).await
    }
}

/// Agent name for rows without one.
const UNKNOWN_AGENT: &str = "unknown";

// A row counts only if everything that averages need is present and in range: id, grading time,
// both levels, flags and counts. Invalid values elsewhere are read as if they were missing: no
// list, no time, an unknown class, the task type derived from the summary.
record!(GradeRecord, "session_grades", {
    session_id,
    session_file [MAX_PATH],
    graded_at,
    task_completed,
    tool_calls_efficient,
    response_quality,
    errors_recovered,
    total_api_calls,
    model,
    platform,
    session_start,
    duration_seconds,
    task_summary [bound::TEXT],
    total_errors,
    error_types,
    tools_with_errors,
    had_repeated_errors,
    had_infinite_loop_risk,
    had_user_clarification,
    outcome by outcome,
    session_kind,
    parent_session,
} + details: GradeDetails);

/// Reads the outcome of a task; unknown in rows of other programs and of earlier versions.
#[expect(clippy::unnecessary_wraps, reason = "the form of every reader of a column")]
fn outcome(row: &Columns<'_>, name: &str) -> Result<TaskOutcome, ColumnError> {
    Ok(row.named(name, TaskOutcome::from_name).unwrap_or_default())
}

stored_as! { Integer: GradeLevel => |level, _limit| i64::from(level.get()) }
stored_as! { Text:
    TaskType => |task_type, _limit| task_type.name().to_owned(),
    TaskOutcome => |outcome, _limit| outcome.name().to_owned(),
    SessionKind => |kind, _limit| kind.name().to_owned(),
    Vec<ErrorClass> => |classes, _limit| {
        bound::json(&classes.iter().map(|class| class.name()).collect::<Vec<_>>())
    },
    Vec<String> => |names, limit| {
        let names = names.iter().take(bound::NAMES);
        bound::json(&names.map(|name| bound::text(name, limit)).collect::<Vec<_>>())
    },
}
read_from! { |row, name|
    GradeLevel => {
        let level: i64 = row.get(name)?;
        let found = u8::try_from(level).ok().and_then(GradeLevel::new);
        found.ok_or_else(|| ColumnError::value(name, format_args!("{level}, not 1 to 5")))
    },
    TaskType => row.named(name, TaskType::from_name),
    TaskOutcome => row.named(name, TaskOutcome::from_name),
    // Rows of other programs and of earlier versions are tasks.
    SessionKind => Ok(row.named(name, SessionKind::from_name).unwrap_or_default()),
    Vec<ErrorClass> => {
        let names: Vec<String> = row.get(name)?;
        let class = |name: &String| ErrorClass::from_name(name).unwrap_or(ErrorClass::Unknown);
        Ok(names.iter().map(class).collect())
    },
    Vec<String> => {
        let list: Vec<serde_json::Value> = row.json(name).unwrap_or_default();
        Ok(list.into_iter().filter_map(|name| name.as_str().map(ToOwned::to_owned)).collect())
    },
}

impl Record for GradeDetails {
    const TABLE: &'static str = GradeRecord::TABLE;

    fn columns() -> Vec<&'static str> {
        vec![
            "agent",
            "task_type",
            "counts_at",
            "messages",
            "details_json",
            "claimed_id",
            "beginning",
            "lineage",
        ]
    }

    fn values(&self) -> Vec<Value> {
        let json = Value::Text(Some(bound::details(self)));
        let known = Some(&self.lineage).filter(|lineage| !lineage.id.is_empty());
        let claimed = known.map(|lineage| lineage.id.clone());
        let lineage = Value::Text(known.and_then(|lineage| serde_json::to_string(lineage).ok()));
        let mut values: Vec<Value> =
            params![self.agent, self.task_type, self.counts_at, self.messages].into();
        values.extend([json, claimed.to_value(bound::NAME)]);
        values.extend([known.and_then(lineage::beginning).to_value(bound::NAME), lineage]);
        values
    }

    fn read(row: &Columns<'_>) -> Result<Self, ColumnError> {
        let mut details = row.json("details_json").or_else(|_| details_of_columns(row))?;
        // Columns take precedence: queries filter by them, and other programs may update them.
        if let Some(agent) = row.optional("agent") {
            details.agent = agent;
        }
        if let Some(task_type) = row.optional("task_type") {
            details.task_type = task_type;
        }
        // Rows of other programs have only the start.
        details.counts_at = row.optional("counts_at").or_else(|| row.optional("session_start"));
        details.lineage = row.json("lineage").unwrap_or_default();
        Ok(details)
    }
}

/// Builds details for a row without them, such as those of the original program. Each tool and
/// error class counts once, as that program counts them: a lower bound.
fn details_of_columns(row: &Columns<'_>) -> Result<GradeDetails, ColumnError> {
    let tools: Vec<String> = row.get("tools_with_errors")?;
    let summary: Option<String> = row.get("task_summary")?;
    // Errors can only be attributed if there is exactly one tool.
    let tool = match tools.as_slice() {
        [tool] => tool.as_str(),
        _ => "unknown",
    };
    let error = |class: ErrorClass| ErrorCount {
        class,
        cause: ErrorCause::from_name(class.name()).unwrap_or_default(),
        template: String::new(),
        tool: tool.to_owned(),
        count: 1,
        first_event: 0,
        example: String::new(),
    };
    let errors = row.get::<Vec<ErrorClass>>("error_types")?.into_iter().map(error).collect();
    let one = ToolUse { calls: 1, errors: 1 };
    Ok(GradeDetails {
        agent: UNKNOWN_AGENT.to_owned(),
        project: None,
        task_type: summary.as_deref().map_or(TaskType::General, TaskType::from_request),
        counts_at: row.optional("session_start"),
        messages: 0,
        tool_calls: 0,
        rejected_calls: 0,
        pending_calls: 0,
        tools: tools.iter().map(|tool| (tool.clone(), one)).collect::<BTreeMap<_, _>>(),
        errors,
        longest_error_run: 0,
        tokens: TokenCounts::default(),
        evidence: Vec::new(),
        state: OutcomeState::Unknown,
        own_state: None,
        own_outcome: None,
        outcome_evidence: Vec::new(),
        results: Vec::new(),
        corrections: 0,
        lineage: SessionLineage::default(),
        foreign_edits: 0,
        rewinds: 0,
        spent: Vec::new(),
        copied: Vec::new(),
        copied_from: None,
        stated_cost: None,
    })
}

record!(QualityGrade, "session_quality_grades", {
    session_id,
    model as "grader_model",
    rubric_version,
    ts,
    problem_solved by optional_unit,
    tests_added by optional_unit,
    code_clean by optional_unit,
    edge_cases by optional_unit,
    overall by optional_unit,
    reasoning [bound::TEXT],
    details as "details_json",
});

stored_as! { Text: serde_json::Value => |json, _limit| bound::json(json) }
read_from! { |row, name| serde_json::Value => row.json(name) }

/// SQL predicate: the grade has this rubric version. `+ 0` hides the column from the index on
/// versions. Nearly all grades have the same version, and SQLite would prefer that index to the one
/// on sessions.
fn version_predicate(version: u32) -> String {
    format!("rubric_version + 0 = {version}")
}

/// SQL assignments that update a session's average and its rubric version.
fn average_assignments(version: u32, session_id: &str) -> String {
    format!(
        "quality_rubric = {version}, quality = (SELECT AVG(overall) FROM session_quality_grades \
         AS grade WHERE grade.session_id = {session_id} AND {})",
        version_predicate(version)
    )
}

impl Store {
    /// Returns the same database for a reader with that rubric version. Grades of other versions
    /// stay stored but are ignored. The default is the version of this binary.
    ///
    /// Averages are stored for one version only. This call recomputes those of another version, for
    /// all sessions that have grades of this one. Two concurrent readers with different rubrics may
    /// each miss averages of sessions that the other has graded since.
    pub async fn with_rubric(mut self, version: u32) -> Result<Self, StoreError> {
        self.rubric = version;
        // Two ranges and not `<>`, for which SQLite would read the whole index on `quality_rubric`.
        let others = format!(
            "(quality_rubric < {version} OR quality_rubric > {version}) AND EXISTS \
             (SELECT 1 FROM session_quality_grades AS grade \
             WHERE grade.session_id = session_grades.session_id AND {})",
            version_predicate(version)
        );
        // Read first: usually there is nothing to recompute, and no write lock is needed.
        let any = format!("SELECT session_id FROM session_grades WHERE {others} LIMIT 1");
        if self.fetch_one("a session", any, [], |_| Ok(())).await?.is_none() {
            return Ok(self);
        }
        let mut writing = self.begin_write().await?;
        let average = average_assignments(version, "session_grades.session_id");
        let query = format!("UPDATE session_grades SET {average} WHERE {others}");
        writing.execute(query, []).await?;
        writing.commit().await?;
        Ok(self)
    }

    /// Returns all model grades with the reader's rubric version, oldest first.
    pub async fn quality_grades(&self) -> Result<Rows<QualityGrade>, StoreError> {
        let query = format!("WHERE {} ORDER BY ts, id", version_predicate(self.rubric));
        self.find(&query, []).await
    }

    /// Returns a session's grades with the reader's rubric version, one per model.
    pub async fn session_quality_grades(
        &self,
        session_id: &str,
    ) -> Result<Rows<QualityGrade>, StoreError> {
        let version = version_predicate(self.rubric);
        let query = format!("WHERE session_id = $1 AND {version} ORDER BY grader_model");
        self.find(&query, params![session_id]).await
    }

    /// Returns a page of grades with the reader's rubric version, newest first, optionally with a
    /// minimum overall score.
    pub async fn recent_quality(
        &self,
        min_overall: Option<f64>,
        limit: u32,
        after: Option<&Cursor>,
    ) -> Result<ResultPage<QualityGrade>, StoreError> {
        // Without `+ 0`, unlike `version_predicate`: the index on version and time has this order.
        let query = format!(
            "SELECT id, {} FROM session_quality_grades WHERE rubric_version = {} \
             AND (CAST($1 AS DOUBLE PRECISION) IS NULL OR overall >= $1) \
             AND (CAST($2 AS TEXT) IS NULL OR ts < $2 OR (ts = $2 AND id < $3)) \
             ORDER BY ts DESC, id DESC LIMIT $4",
            QualityGrade::columns().join(", "),
            self.rubric
        );
        // Ids order grades with the same timestamp.
        let id = after.and_then(|cursor| cursor.id.parse::<i64>().ok()).unwrap_or(i64::MAX);
        let since = after.and_then(|cursor| cursor.value.as_deref());
        let values = params![min_overall, since, id, i64::from(limit) + 1];
        let place = |row: &Columns<'_>| Ok(Cursor { value: row.get("ts")?, ..Cursor::of_id(row)? });
        self.fetch_page(limit, query, values, place, QualityGrade::read).await
    }

    /// Returns id and file of the sessions, newest first, that have a rule-based grade but none by
    /// this model with the reader's rubric version. `since` and `agent` narrow the list.
    pub async fn sessions_without_quality(
        &self,
        model: &str,
        since: Option<jiff::Timestamp>,
        agent: Option<&str>,
    ) -> Result<Rows<(String, String)>, StoreError> {
        let query = "SELECT session_id, session_file FROM session_grades AS session \
                     WHERE (CAST($1 AS TEXT) IS NULL OR counts_at >= $1) \
                     AND (CAST($2 AS TEXT) IS NULL OR agent = $2) \
                     AND COALESCE(session_kind, 'task') = 'task' \
                     AND NOT EXISTS (SELECT 1 FROM session_quality_grades AS grade \
                     WHERE grade.session_id = session.session_id \
                     AND grader_model = $3 AND rubric_version = $4) \
                     ORDER BY counts_at DESC NULLS LAST, session_id";
        let values = params![since, agent, model, self.rubric];
        self.fetch(query, values, |row| Ok((row.get("session_id")?, row.get("session_file")?)))
            .await
    }

    /// Saves a model grade, replacing an older one of the same session, model and rubric version,
    /// and updates the session's average.
    pub async fn save_quality(&self, grade: &QualityGrade) -> Result<(), StoreError> {
        let mut writing = self.begin_write().await?;
        let query = QualityGrade::upsert("session_id, grader_model, rubric_version");
        writing.execute(query, grade.values()).await?;
        // Stored with the session, so that lists can sort and filter by it.
        let average = average_assignments(grade.rubric_version, "$1");
        let query = format!("UPDATE session_grades SET {average} WHERE session_id = $1");
        writing.execute(query, params![grade.session_id]).await?;
        writing.commit().await
    }
}
